package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// part is a file of a log. The name of a full file ends in the number of its first line.
type part struct {
	path  string
	first uint64 // line; 0 in the file that is not full
}

func (p part) name() string {
	if p.first == 0 {
		return p.path
	}
	return fmt.Sprintf("%s.%d", p.path, p.first)
}

// parts returns a log's files in the order of their lines. The oldest full files may have been moved away, but not
// all of them.
func parts(path string) ([]part, error) {
	dir, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	var list []part
	for _, e := range dir {
		number, ok := strings.CutPrefix(e.Name(), filepath.Base(path)+".")
		n, err := strconv.ParseUint(number, 10, 64)
		if ok && err == nil && n > 0 && strconv.FormatUint(n, 10) == number {
			list = append(list, part{path, n})
		}
	}
	slices.SortFunc(list, func(a, b part) int { return cmp.Compare(a.first, b.first) })
	return append(list, part{path: path}), nil
}

// Verify checks a log's files, or an exported copy, against the file with its head. The first line must have the
// number from; earlier lines are in files that were moved away. It returns the number of the last line and its hash
// in hexadecimal. An incomplete last line that the head does not count is not damage: a crash can leave one.
func Verify(path string, from uint64) (last uint64, hash string, err error) {
	list, err := parts(path)
	if err != nil {
		return 0, "", err
	}
	if first := cmp.Or(list[0].first, 1); first != from && len(list) > 1 {
		return 0, "", &DamagedError{Path: list[0].name(), Err: fmt.Errorf("it begins with line %d, want line %d: files of the log are elsewhere", first, from)}
	}
	w := walker{begin: from, each: func(_, _ []byte) error { return nil }}
	if err := w.open(list); err != nil {
		return 0, "", err
	}
	text, err := os.ReadFile(HeadName(path))
	if err != nil {
		err = headError(path, err)
	} else if err = w.want.UnmarshalText(text); err != nil {
		err = &DamagedError{Path: HeadName(path), Err: err}
	}
	if err != nil {
		w.close()
		return 0, "", err
	}
	err = w.read()
	return w.end.Seq, hex.EncodeToString(w.end.Hash[:]), err
}

// walker reads and checks lines.
type walker struct {
	begin uint64 // the number of the first line; 0 for 1
	last  uint64 // number of the last line to check; 0 for all
	want  Head   // end of the log according to the .head file: its line must exist
	known Head   // end of the log according to a state file: its line must exist; zero without a state file
	each  func(line, entry []byte) error

	files []*os.File

	end   Head   // head of the last whole line
	state Head   // state head in the last line that has one
	first uint64 // number of the last file's first line
	size  int64  // bytes of that file's whole lines
	torn  int64  // bytes behind them

	at DamagedError // the last whole line
}

func (w *walker) walk(list []part) error {
	if err := w.open(list); err != nil {
		return err
	}
	return w.read()
}

func (w *walker) open(list []part) error {
	for _, p := range list {
		f, err := os.Open(p.name())
		if err != nil {
			w.close()
			return fmt.Errorf("audit log: %w", err)
		}
		w.files = append(w.files, f)
	}
	return nil
}

func (w *walker) close() {
	for _, f := range w.files {
		_ = f.Close()
	}
}

// read reads the open file, and closes it.
func (w *walker) read() error {
	defer w.close()
	if w.want.Seq == 0 && w.want != (Head{}) {
		return w.damaged(w.files[len(w.files)-1], 0, "the file that ends in .head is wrong")
	}
	if w.begin > 1 {
		w.end.Seq = w.begin - 1 // the first line has its hash
	}
	for i, f := range w.files {
		if err := w.file(f); err != nil {
			return err
		}
		if w.torn > 0 && i < len(w.files)-1 {
			return w.damaged(f, w.end.Seq-w.first+2, "it was cut: the line is not whole, and others follow")
		}
	}
	if most := max(w.want.Seq, w.known.Seq); w.end.Seq < most {
		by := "the file that ends in .head"
		if w.want.Seq < most {
			by = "the state file"
		}
		return w.damaged(w.files[len(w.files)-1], w.end.Seq-w.first+2, "it was cut: %d lines are missing, as %s says", most-w.end.Seq, by)
	}
	return nil
}

func (w *walker) damaged(f *os.File, line uint64, format string, args ...any) error {
	return &DamagedError{f.Name(), line, fmt.Errorf(format, args...)}
}

func (w *walker) file(f *os.File) error {
	in := bufio.NewReader(f)
	w.first, w.size, w.torn = w.end.Seq+1, 0, 0
	for w.last == 0 || w.end.Seq < w.last {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			w.torn = int64(len(text))
			return nil
		}
		if err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
		w.size += int64(len(text))
		if err := w.line(f, text[:len(text)-1]); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) line(f *os.File, text []byte) error {
	number := w.end.Seq + 1
	at := DamagedError{Path: f.Name(), Line: number - w.first + 1}
	var l link
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	err := dec.Decode(&l)
	begins := w.begin > 1 && number == w.begin
	switch {
	case err != nil || dec.More():
		return w.damaged(f, at.Line, "it is no line of an audit log")
	case l.Seq != number:
		return w.damaged(f, at.Line, "it has the number %d, want %d: lines were removed, added or moved", l.Seq, number)
	case l.Prev != hex.EncodeToString(w.end.Hash[:]) && !begins:
		if w.at.Line == 0 {
			w.at = at
		}
		w.at.Err = errors.New("it was changed: the line after it has the hash of another")
		return &w.at
	}
	w.end, w.at = Head{number, sha256.Sum256(text)}, at
	if l.State != (Head{}) {
		w.state = l.State
	}
	switch {
	case number == w.want.Seq && w.end != w.want:
		return w.damaged(f, at.Line, "it was changed: the file that ends in .head has the hash of another")
	case number == w.known.Seq && w.end != w.known:
		return w.damaged(f, at.Line, "it was changed: the state file has the hash of another")
	}
	return w.each(text, l.Entry)
}
