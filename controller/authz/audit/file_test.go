package audit

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// logFile writes an audit log of n entries, closes it, and returns its name.
func logFile(t *testing.T, entries int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit")
	l, err := OpenFile(path, Head{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		if err := l.Append(Entry{What: Weight, Identity: "cn:alice", Value: float64(i), Subject: "a\nb"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Whatever was changed in a log, Verify names the line, and no controller appends to it.
func TestTampering(t *testing.T) {
	nth := func(text []byte, n int) (start, end int) {
		for range n - 1 {
			start += bytes.IndexByte(text[start:], '\n') + 1
		}
		return start, start + bytes.IndexByte(text[start:], '\n') + 1
	}
	for _, c := range []struct {
		name string
		do   func(text, head []byte) ([]byte, []byte)
		want string
	}{
		{"nothing", func(text, head []byte) ([]byte, []byte) { return text, head }, ""},
		{"the third is changed", func(text, head []byte) ([]byte, []byte) {
			start, _ := nth(text, 3)
			return append(text[:start:start], bytes.Replace(text[start:], []byte("cn:alice"), []byte("cn:bobby"), 1)...), head
		}, ":3: it was changed"},
		{"the first is changed", func(text, head []byte) ([]byte, []byte) {
			return bytes.Replace(text, []byte("cn:alice"), []byte("cn:bobby"), 1), head
		}, ":1: it was changed"},
		{"the last is changed", func(text, head []byte) ([]byte, []byte) {
			start, _ := nth(text, 5)
			return append(text[:start:start], bytes.Replace(text[start:], []byte("cn:alice"), []byte("cn:bobby"), 1)...), head
		}, ":5: it was changed"},
		{"the second is removed", func(text, head []byte) ([]byte, []byte) {
			start, end := nth(text, 2)
			return append(text[:start:start], text[end:]...), head
		}, ":2: it has the number 3"},
		{"the end is cut", func(text, head []byte) ([]byte, []byte) { _, end := nth(text, 3); return text[:end], head }, ":4: it was cut: 2 lines are missing"},
		{"the end is cut in a line", func(text, head []byte) ([]byte, []byte) { return text[:len(text)-9], head }, ":5: it was cut: 1 lines are missing"},
		{"all is cut", func(_, head []byte) ([]byte, []byte) { return nil, head }, ":1: it was cut: 5 lines are missing"},
		{"a line is no JSON", func(text, head []byte) ([]byte, []byte) {
			start, _ := nth(text, 4)
			return append(append(text[:start:start], "x\n"...), text[start:]...), head
		}, ":4: it is no line"},
		{"the head is lost", func(text, _ []byte) ([]byte, []byte) { return text, nil }, ".head is missing"},
		{"the head is another", func(text, head []byte) ([]byte, []byte) { head[30] ^= 1; return text, head }, ":5: it was changed"},
		{"the head is none", func(text, _ []byte) ([]byte, []byte) { return text, []byte("x") }, ".head"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := logFile(t, 5)
			text, head := c.do(content(t, path), content(t, HeadName(path)))
			if err := errors.Join(os.WriteFile(path, text, 0o600), os.Remove(HeadName(path))); err != nil {
				t.Fatal(err)
			}
			if head != nil {
				if err := os.WriteFile(HeadName(path), head, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			lines, _, err := Verify(path, 1)
			l, openErr := OpenFile(path, Head{}, slog.New(slog.DiscardHandler))
			if openErr == nil {
				_ = l.Close()
			}
			if c.want == "" {
				if err != nil || openErr != nil || lines != 5 {
					t.Errorf("%d lines, %v, %v", lines, err, openErr)
				}
				return
			}
			var damaged *DamagedError
			for _, err := range []error{err, openErr} {
				if !errors.As(err, &damaged) || !strings.Contains(err.Error(), c.want) {
					// An empty log with a head counts as new only if the head says so.
					t.Errorf("%v, want damage with %q", err, c.want)
				}
			}
		})
	}
}

// TestTornLine: after a crash in the middle of a line the log is valid, and reports the removed
// part.
func TestTornLine(t *testing.T) {
	path := logFile(t, 3)
	whole := content(t, path)
	for _, torn := range []string{`{"seq":4,"prev":"`, "{"} {
		if err := os.WriteFile(path, append(bytes.Clone(whole), torn...), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, _, err := Verify(path, 1); n != 3 || err != nil {
			t.Errorf("%q: %d lines, %v", torn, n, err)
		}
		var log strings.Builder
		l, err := OpenFile(path, Head{}, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log.String(), "line=4") {
			t.Errorf("the log says %q", log.String())
		}
		if err := l.Close(); err != nil || !bytes.Equal(content(t, path), whole) {
			t.Errorf("%v, and left is\n%s", err, content(t, path))
		}
	}
	// The head is older than the lines, because of a crash between the two writes.
	behind := content(t, HeadName(logFile(t, 0)))
	if err := os.WriteFile(HeadName(path), behind, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := OpenFile(path, Head{}, slog.New(slog.DiscardHandler))
	if err == nil {
		err = errors.Join(l.Append(Entry{What: Apply}), l.Close())
	}
	if n, _, verr := Verify(path, 1); n != 4 || err != nil || verr != nil {
		t.Errorf("%d lines, %v, %v", n, err, verr)
	}
}

// TestCatchUp: entries that a keeper has, but that a crash kept from the file, are added once.
func TestCatchUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	k := &keeper{}
	for i := range 3 {
		k.kept = append(k.kept, Entry{What: Weight, Value: float64(i)})
	}
	for range 2 {
		tr, err := OpenFile(path, Head{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		New(Options{Keeper: k, File: tr}).Record(Entry{What: Apply}, nil)
		k.kept = append(k.kept, Entry{What: LinkUp, Value: float64(len(k.kept))}) // and a crash
		if err := tr.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n, _, err := Verify(path, 1); n != 6 || err != nil { // 3 and 1, then 1 and 1
		t.Errorf("%d lines, %v", n, err)
	}
}

// TestFullDisk: an entry that could not be written is written together with the next one.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	l, err := OpenFile(path, Head{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	good := l.file
	if l.file, err = os.Open(path); err != nil { // which cannot be written
		t.Fatal(err)
	}
	if l.Append(Entry{What: Weight}) == nil || l.Err() == nil {
		t.Error("a line that cannot be written is no error")
	}
	_ = l.file.Close()
	l.file = good
	if err := errors.Join(l.Append(Entry{What: Apply}), l.Err(), l.Close()); err != nil {
		t.Error(err)
	}
	if n, _, err := Verify(path, 1); n != 2 || err != nil {
		t.Errorf("%d lines, %v", n, err)
	}
}

// TestRefusalsAreSummarised: 40 000 refusals of two calls do not displace any other entry.
func TestRefusalsAreSummarised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Limit: 10})
		l.Record(Entry{Identity: "cn:alice", What: Apply}, nil)
		no := errors.New("over its budget")
		for i := range 80000 {
			l.Record(Entry{Identity: "cn:eve", Peer: fmt.Sprintf("10.0.0.9:%d", i%60000), What: Weight, Value: float64(i)}, no)
		}
		for i := range 5 {
			l.Record(Entry{Peer: fmt.Sprintf("10.0.0.8:%d", i), What: Denied, Subject: "/x"}, no)
		}
		l.Record(Entry{Peer: "10.0.0.8:1", What: Denied, Subject: "/y"}, no)
		l.Record(Entry{Identity: "cn:eve", What: Weight}, nil)
		if n := len(l.List("", 99)); n != 5 {
			t.Errorf("%d lines at first, want the change, three first refusals, and what was granted", n)
		}
		time.Sleep(Window + time.Second)
		synctest.Wait()
		list := l.List("", 99)
		counts := map[string]int{}
		for _, e := range list {
			counts[e.What+e.Subject] += e.Count
		}
		if len(list) != 7 || list[0].Identity != "cn:alice" || counts[Weight] != 79999 || counts[Denied+"/x"] != 4 {
			t.Errorf("%d lines, counts %v", len(list), counts)
		}
		l.Record(Entry{Identity: "cn:eve", What: Weight}, no)
		l.Record(Entry{Identity: "cn:eve", What: Weight}, no)
		l.Close()
		if last := l.List("", 1)[0]; last.Count != 1 || !strings.Contains(last.Refused, "1 more within 1m0s") {
			t.Errorf("after the end: %+v", last)
		}
		for i := range 3 * maxKinds {
			l.Record(Entry{Identity: fmt.Sprint(i), What: Weight}, no)
		}
		if n := len(l.refusals.counts); n > maxKinds+1 {
			t.Errorf("%d kinds are counted apart", n)
		}
		l.Close()
	})
}

func FuzzVerify(f *testing.F) {
	f.Add([]byte(`{"seq":1,"prev":"","entry":{}}`+"\n"), []byte(Head{}.String()))
	f.Fuzz(func(t *testing.T, text, head []byte) {
		path := filepath.Join(t.TempDir(), "audit")
		if err := errors.Join(os.WriteFile(path, text, 0o600), os.WriteFile(HeadName(path), head, 0o600)); err != nil {
			t.Fatal(err)
		}
		lines, _, err := Verify(path, 1)
		if err == nil && int(lines) != bytes.Count(text, []byte("\n")) {
			t.Errorf("%d lines of %q", lines, text)
		}
	})
}

// parted writes a log of 20 lines in parts of a few lines, and returns the parts' names.
func parted(t *testing.T) (path string, names []string, firsts []uint64) {
	t.Helper()
	path = logFile(t, 0)
	for range 4 { // a restart continues the log
		l, err := OpenFile(path, Head{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		l.most = 1000
		for i := range 5 {
			if err := l.Append(Entry{What: Weight, Identity: "cn:alice", Value: float64(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	list, err := parts(path)
	if err != nil || len(list) < 4 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, p := range list {
		names, firsts = append(names, p.name()), append(firsts, p.first)
	}
	return path, names, firsts
}

// TestParts: a log of several files is one chain. Verify finds a change in any file; a starting
// controller finds one in the last two. The oldest file may be kept elsewhere.
func TestParts(t *testing.T) {
	path, names, firsts := parted(t)
	all := ""
	for _, n := range names {
		all += string(content(t, n))
	}
	open := func() (*File, error) { return OpenFile(path, Head{}, slog.New(slog.DiscardHandler)) }
	l, err := open()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	head, err := l.Export(func(line []byte) error { out.Write(append(line, '\n')); return nil })
	if err != nil || out.String() != all || head != string(content(t, HeadName(path))) {
		t.Errorf("%v, head %s, exported:\n%s", err, head, &out)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if n, _, err := Verify(path, 1); n != 20 || err != nil {
		t.Errorf("%d lines, %v", n, err)
	}
	last := len(names) - 2 // that is full
	for _, c := range []struct {
		name   string
		file   int
		change func(text []byte) []byte // nil removes the file
		want   string
		opens  bool
	}{
		{"a line of the first", 0, func(b []byte) []byte { return bytes.Replace(b, []byte("alice"), []byte("bobby"), 1) }, filepath.Base(names[0]) + ":1: it was changed", true},
		{"the first's last line", 0, func(b []byte) []byte {
			i := bytes.LastIndex(b, []byte("alice"))
			return append(b[:i:i], bytes.Replace(b[i:], []byte("alice"), []byte("bobby"), 1)...)
		}, filepath.Base(names[0]) + fmt.Sprintf(":%d: it was changed", firsts[1]-1), true},
		{"the second is gone", 1, nil, filepath.Base(names[2]) + ":1: it has the number", true},
		{"the last full one is cut", last, func(b []byte) []byte { return b[:len(b)-5] }, "others follow", false},
		{"the last full one is gone", last, nil, ":1: it has the number", false},
		{"the last one is gone", last + 1, nil, "no such file", false},
	} {
		was := content(t, names[c.file])
		err := os.Remove(names[c.file])
		if c.change != nil {
			err = os.WriteFile(names[c.file], c.change(bytes.Clone(was)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := Verify(path, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		l, err := open()
		if (err == nil) != c.opens {
			t.Errorf("%s: the controller says %v", c.name, err)
		}
		if err == nil {
			_ = l.Close()
		}
		if err := os.WriteFile(names[c.file], was, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The oldest part is kept elsewhere, and a crash happened between the two renames of a full file.
	if err := errors.Join(os.Rename(names[0], filepath.Join(t.TempDir(), "old")), os.Rename(path, part{path, firsts[last] + uint64(bytes.Count(content(t, names[last]), []byte("\n")))}.name())); err != nil {
		t.Fatal(err)
	}
	if l, err = open(); err == nil {
		err = errors.Join(l.Append(Entry{What: Apply}), l.Close())
	}
	if _, _, verr := Verify(path, 1); err != nil || verr == nil || !strings.Contains(verr.Error(), fmt.Sprintf("begins with line %d, want line 1", firsts[1])) {
		t.Errorf("%v, %v", err, verr)
	}
	if n, _, err := Verify(path, firsts[1]); n != 21 || err != nil {
		t.Errorf("from %d: %d lines, %v", firsts[1], n, err)
	}
}
