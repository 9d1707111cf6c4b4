package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/headgate/headgate/internal/ring"
)

// link is a line of a trail.
type link struct {
	Seq   uint64          `json:"seq"`  // from 1 without a gap
	Prev  string          `json:"prev"` // SHA-256 of the line before, without its end; zeros for the first
	Entry json.RawMessage `json:"entry"`
}

// mark is the end of a chain: the last line's number and SHA-256.
type mark struct {
	seq  uint64
	hash [sha256.Size]byte
}

// String writes a mark as it stands in the file that ends in .head.
func (m mark) String() string { return fmt.Sprintf("%020d %x\n", m.seq, m.hash) }

func parseMark(text []byte) (m mark, err error) {
	var hash string
	if _, err = fmt.Sscanf(string(text), "%d %s\n", &m.seq, &hash); err != nil {
		return m, err
	}
	raw, err := hex.DecodeString(hash)
	if err != nil || len(raw) != len(m.hash) {
		return m, errors.New("it holds no SHA-256")
	}
	copy(m.hash[:], raw)
	return m, nil
}

// HeadOf is the name of the file that says where a trail ends.
func HeadOf(path string) string { return path + ".head" }

// remembered is how many of the last entries a trail compares with those of a keeper.
const remembered = 4096

// Trail is the whole audit log as a file to which lines are added, each of which has the hash of
// the one before. Beside it stands a file with the hash of the last line. Whoever changes or
// removes a line must change every later one, and that file, and each copy of either that was
// taken. It is safe for concurrent use.
type Trail struct {
	path string

	mu     sync.Mutex // guards what follows
	file   *os.File
	head   *os.File
	size   int64
	end    mark
	failed error
	late   [][]byte // entries that could not be written yet
	recent *ring.Last[string]
}

// OpenTrail opens or creates a trail and checks it whole. One that was changed or cut is refused
// with a *DamagedError; a last line that a crash cut short is removed, and the log says so.
func OpenTrail(path string, log *slog.Logger) (*Trail, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("audit log %s: %w", path, err)
	}
	t := &Trail{path: path, recent: ring.NewLast[string](remembered)}
	var err error
	if t.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	if err := t.begin(log); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *Trail) begin(log *slog.Logger) error {
	if err := syscall.Flock(int(t.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("audit log %s is in use by another process", t.path)
	}
	info, err := t.file.Stat()
	if err != nil {
		return err
	}
	flags := os.O_RDWR
	if info.Size() == 0 {
		flags |= os.O_CREATE
	}
	if t.head, err = os.OpenFile(HeadOf(t.path), flags, 0o600); errors.Is(err, os.ErrNotExist) {
		return &DamagedError{Path: t.path, Err: fmt.Errorf("%s is missing, which says where it ends", HeadOf(t.path))}
	} else if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(t.head, 200))
	if err != nil {
		return err
	}
	var want mark
	if len(text) > 0 || info.Size() > 0 {
		if want, err = parseMark(text); err != nil {
			return &DamagedError{Path: HeadOf(t.path), Err: err}
		}
	}
	var torn int64
	if t.end, t.size, torn, err = walk(t.path, t.file, want, func(_, entry []byte) error { t.recent.Push(string(entry)); return nil }); err != nil {
		return err
	}
	if torn > 0 {
		log.Warn("the last line of the audit log was not written whole, as when the machine stops, and is removed", "file", t.path, "line", t.end.seq+1, "bytes", torn)
		if err := t.file.Truncate(t.size); err != nil {
			return err
		}
	}
	return t.writeHead()
}

// writeHead follows the lines: after a crash it may be behind them, never ahead.
func (t *Trail) writeHead() error {
	_, err := t.head.WriteAt([]byte(t.end.String()), 0)
	return err
}

// Close releases the files.
func (t *Trail) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.file.Close()
	if t.head != nil {
		err = errors.Join(err, t.head.Close())
	}
	return err
}

// Err returns why the last line could not be written, nil when it was.
func (t *Trail) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

// catchUp adds the entries of a keeper that a crash kept from the trail: of the last ones those
// that it does not have, and all of them when it is empty.
func (t *Trail) catchUp(kept []Entry) error {
	known := map[string]bool{}
	t.mu.Lock()
	for _, e := range t.recent.All() {
		known[e] = true
	}
	t.mu.Unlock()
	if len(known) > 0 {
		kept = kept[max(0, len(kept)-remembered/4):]
	}
	var missing []Entry
	for _, e := range kept {
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if !known[string(text)] {
			missing = append(missing, e)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return t.Append(missing...)
}

// maxLate bounds what waits for a disk to have room again.
const maxLate = 1 << 16

// Append adds entries, on disk when it returns nil. What cannot be written is written with the
// next entry that can.
func (t *Trail) Append(entries ...Entry) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range entries {
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if len(t.late) < maxLate {
			t.late = append(t.late, text)
		}
	}
	t.failed = t.flush()
	return t.failed
}

func (t *Trail) flush() error {
	var out bytes.Buffer
	end := t.end
	for _, e := range t.late {
		text, err := json.Marshal(link{Seq: end.seq + 1, Prev: hex.EncodeToString(end.hash[:]), Entry: e})
		if err != nil {
			return err
		}
		end = mark{end.seq + 1, sha256.Sum256(text)}
		out.Write(text)
		out.WriteByte('\n')
	}
	_, err := t.file.WriteAt(out.Bytes(), t.size)
	if err == nil {
		err = t.file.Sync()
	}
	if err != nil {
		return errors.Join(err, t.file.Truncate(t.size))
	}
	for _, e := range t.late {
		t.recent.Push(string(e))
	}
	t.size, t.end, t.late = t.size+int64(out.Len()), end, nil
	return t.writeHead()
}

// Export calls line for each line as it is now, and returns the content of the file with the head.
func (t *Trail) Export(line func(text []byte) error) (head string, err error) {
	t.mu.Lock()
	end, size := t.end, t.size
	t.mu.Unlock()
	_, _, _, err = walk(t.path, io.NewSectionReader(t.file, 0, size), end, func(text, _ []byte) error { return line(text) })
	return end.String(), err
}

// DamagedError is an audit log that was changed or cut.
type DamagedError struct {
	Path string
	Line uint64 // 1-based; 0 when it is about no line
	Err  error
}

// Error names the line.
func (e *DamagedError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("audit log %s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("audit log %s:%d: %v", e.Path, e.Line, e.Err)
}

// Unwrap returns what was found.
func (e *DamagedError) Unwrap() error { return e.Err }

// Verify checks a trail's file, or an exported copy, with the file beside it that says where it
// ends. It returns the number of lines and the hash of the last one, in hexadecimal. A line that
// was not written whole and that the head does not know is no damage: a crash leaves that.
func Verify(path string) (lines uint64, hash string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", fmt.Errorf("audit log: %w", err)
	}
	defer f.Close()
	text, err := os.ReadFile(HeadOf(path))
	if errors.Is(err, os.ErrNotExist) {
		return 0, "", &DamagedError{Path: path, Err: fmt.Errorf("%s is missing, which says where it ends", HeadOf(path))}
	}
	if err != nil {
		return 0, "", fmt.Errorf("audit log: %w", err)
	}
	want, err := parseMark(text)
	if err != nil {
		return 0, "", &DamagedError{Path: HeadOf(path), Err: err}
	}
	end, _, _, err := walk(path, f, want, func(_, _ []byte) error { return nil })
	return end.seq, hex.EncodeToString(end.hash[:]), err
}

// walk reads and checks lines. It returns the last whole one's mark, where it ends, and how many
// bytes are behind it. The line of want must be there.
func walk(path string, from io.Reader, want mark, each func(line, entry []byte) error) (end mark, size, torn int64, err error) {
	damaged := func(line uint64, format string, args ...any) error {
		return &DamagedError{path, line, fmt.Errorf(format, args...)}
	}
	if want.seq == 0 && want != (mark{}) {
		return end, 0, 0, damaged(0, "%s is wrong", HeadOf(path))
	}
	in := bufio.NewReader(from)
	for {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if end.seq < want.seq {
				return end, size, int64(len(text)), damaged(end.seq+1, "it was cut: %d lines are missing", want.seq-end.seq)
			}
			return end, size, int64(len(text)), nil
		}
		if err != nil {
			return end, size, 0, fmt.Errorf("audit log: %w", err)
		}
		size += int64(len(text))
		text = text[:len(text)-1]
		n := end.seq + 1
		var l link
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.DisallowUnknownFields()
		switch err := dec.Decode(&l); {
		case err != nil || dec.More():
			return end, size, 0, damaged(n, "it is no line of an audit log")
		case l.Seq != n:
			return end, size, 0, damaged(n, "it has the number %d: lines were removed, added or moved", l.Seq)
		case l.Prev != hex.EncodeToString(end.hash[:]):
			return end, size, 0, damaged(max(n-1, 1), "it was changed: the line after it has the hash of another")
		}
		end = mark{n, sha256.Sum256(text)}
		if n == want.seq && end.hash != want.hash {
			return end, size, 0, damaged(n, "it was changed: %s has the hash of another", HeadOf(path))
		}
		if err := each(text, l.Entry); err != nil {
			return end, size, 0, err
		}
	}
}
