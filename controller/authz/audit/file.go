package audit

import (
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
	"sync/atomic"
	"syscall"

	"github.com/headgate/headgate/internal/ring"
)

// link is a line of a log.
type link struct {
	Seq   uint64          `json:"seq"`            // from 1 without a gap
	Prev  string          `json:"prev"`           // SHA-256 of the previous line without newline; zeros for the first
	State Head            `json:"state,omitzero"` // head of the state file when the line was written
	Entry json.RawMessage `json:"entry"`
}

// Head is the end of a hash chain: the number and the SHA-256 of the last line of a log, or of the last change of a
// state file. The zero Head is the end of an empty chain.
type Head struct {
	Seq  uint64
	Hash [sha256.Size]byte
}

// String formats a head as in the file whose name ends in .head.
func (m Head) String() string { return fmt.Sprintf("%020d %x\n", m.Seq, m.Hash) }

// MarshalText writes a head on one line.
func (m Head) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%d %x", m.Seq, m.Hash), nil }

// UnmarshalText parses the text of String and MarshalText.
func (m *Head) UnmarshalText(text []byte) error {
	var hash string
	if _, err := fmt.Sscanf(string(text), "%d %s", &m.Seq, &hash); err != nil {
		return err
	}
	raw, err := hex.DecodeString(hash)
	if err != nil || len(raw) != len(m.Hash) {
		return errors.New("it holds no SHA-256")
	}
	copy(m.Hash[:], raw)
	return nil
}

// HeadName returns the name of the file that holds a log's head.
func HeadName(path string) string { return path + ".head" }

// headError explains why the file with the head cannot be opened.
func headError(path string, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return &DamagedError{Path: path, Err: fmt.Errorf("%s is missing, which says where it ends", HeadName(path))}
	}
	return fmt.Errorf("audit log: %w", err)
}

// fileSize is how large a file becomes, in bytes, before the next one is begun.
const fileSize = 64 << 20

// remembered is how many of its last entries a log compares with the keeper's.
const remembered = 4096

// File is the whole audit log as an append-only file. Each line has the hash of the line before. A full file is
// renamed: the number of its first line is appended to its name, and the chain goes on in a new file. A second file
// holds the hash of the last line. To change or remove a line unnoticed, one must change every later line, the second
// file, and each copy of either. It is safe for concurrent use.
type File struct {
	path string
	most int64 // largest size of a file in bytes; see fileSize

	mu       sync.Mutex // guards what follows
	file     *os.File
	headFile *os.File // locked by the process that has the file open
	first    uint64   // number of the file's first line
	size     int64
	end      Head
	failed   error
	late     [][]byte // entries that could not be written yet
	recent   *ring.Last[string]
	said     Said
	state    func() Head // nil: no state file is beside it

	written atomic.Pointer[Head] // copy of end, for callers that must not wait for mu
}

// Said is what the log recorded about the state file.
type Said struct {
	State      Head   // head of the state file when the last line was written; zero if no line has one
	Generation uint64 // generation that was applied last, 0 for none
	Last       string // the last line's entry, as the log has it
}

// OpenFile opens or creates a log. It checks only the current file and the one before, so that a restart is quick;
// Verify checks all files. known is the last line that the state file has recorded. If the log was changed or cut,
// or lacks known, OpenFile returns a *DamagedError. It removes a last line that a crash cut short, and reports that
// to log.
func OpenFile(path string, known Head, log *slog.Logger) (*File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("audit log %s: %w", path, err)
	}
	t := &File{path: path, most: fileSize, recent: ring.NewLast[string](remembered)}
	if err := t.begin(known, log); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Path returns the name of the file that is written.
func (t *File) Path() string { return t.path }

// Said returns what the log had recorded about the state file when it was opened.
func (t *File) Said() Said { return t.said }

// Follow makes the log write the head of a state file into each later line. state returns that head. It must not
// wait for the log.
func (t *File) Follow(state func() Head) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state = state
}

// End returns the last line on disk. It does not block.
func (t *File) End() Head { return *t.written.Load() }

func (t *File) begin(known Head, log *slog.Logger) error {
	list, err := parts(t.path)
	if err != nil {
		return err
	}
	info, err := os.Stat(t.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("audit log: %w", err)
	}
	empty := len(list) == 1 && (err != nil || info.Size() == 0)
	flags := os.O_RDWR
	if empty {
		flags |= os.O_CREATE
	}
	if t.headFile, err = os.OpenFile(HeadName(t.path), flags, 0o600); err != nil {
		return headError(t.path, err)
	}
	if err := syscall.Flock(int(t.headFile.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("audit log %s is in use by another process", t.path)
	}
	text, err := io.ReadAll(io.LimitReader(t.headFile, 200))
	if err != nil {
		return err
	}
	var want Head
	if len(text) > 0 || !empty {
		if err := want.UnmarshalText(text); err != nil {
			return &DamagedError{Path: HeadName(t.path), Err: err}
		}
	}
	// A crash may have happened between the renaming of the last file and the creation of this one.
	if t.file, err = os.OpenFile(t.path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	list = list[max(0, len(list)-2):]
	w := walker{begin: list[0].first, want: want, known: known, each: t.remember}
	if err := w.walk(list); err != nil {
		return err
	}
	t.end, t.first, t.size, t.said.State = w.end, w.first, w.size, w.state
	if w.torn > 0 {
		log.Warn("the last line of the audit log was not written whole, as when the machine stops, and is removed", "file", t.path, "line", t.end.Seq+1, "bytes", w.torn)
		if err := t.file.Truncate(t.size); err != nil {
			return err
		}
	}
	t.failed = t.writeHead() // a full disk must not prevent a start
	return nil
}

// remember extracts from an existing line what the log needs later.
func (t *File) remember(_, entry []byte) error {
	t.recent.Push(string(entry))
	t.said.Last = string(entry)
	for _, what := range []string{Apply, AcceptLoss} {
		var e Entry
		if bytes.Contains(entry, []byte(`"`+what+`"`)) && json.Unmarshal(entry, &e) == nil && e.What == what && e.Refused == "" {
			t.said.Generation = uint64(e.Value)
		}
	}
	return nil
}

// writeHead follows the lines: after a crash it may be behind them, never ahead.
func (t *File) writeHead() error {
	end := t.end
	t.written.Store(&end)
	_, err := t.headFile.WriteAt([]byte(end.String()), 0)
	return err
}

// Close releases the files.
func (t *File) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var err error
	for _, f := range []*os.File{t.file, t.headFile} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// Err tries again to write the waiting lines. It returns why they cannot be written, nil when none waits.
func (t *File) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed != nil {
		t.failed = t.flush()
	}
	return t.failed
}

// catchUp adds the keeper's entries that the file lost in a crash. It compares the last entries only. If the file
// is empty, it adds all.
func (t *File) catchUp(kept []Entry) error {
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

// maxLate bounds the entries that wait for room on a full disk.
const maxLate = 1 << 16

// Append adds entries; they are on disk when it returns nil. Entries that cannot be written are written with the next
// that can.
func (t *File) Append(entries ...Entry) error {
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

// turn appends the number of the first line to the name of a full file and begins the next file.
func (t *File) turn() error {
	if t.size < t.most {
		return nil
	}
	f, err := os.OpenFile(t.path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err = os.Rename(t.path, part{t.path, t.first}.name()); err == nil {
		err = os.Rename(f.Name(), t.path)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	err = t.file.Close() // the lines are already on disk
	t.file, t.first, t.size = f, t.end.Seq+1, 0
	return err
}

func (t *File) flush() error {
	if err := t.turn(); err != nil {
		return err
	}
	var out bytes.Buffer
	var state Head
	if t.state != nil {
		state = t.state()
	}
	end := t.end
	for _, e := range t.late {
		text, err := json.Marshal(link{Seq: end.Seq + 1, Prev: hex.EncodeToString(end.Hash[:]), State: state, Entry: e})
		if err != nil {
			return err
		}
		end = Head{end.Seq + 1, sha256.Sum256(text)}
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

// Export calls line for each line of a consistent snapshot. It returns the content of the file with the head:
// number and hash of the last line.
func (t *File) Export(line func(text []byte) error) (head string, err error) {
	t.mu.Lock()
	end := t.end
	w := walker{want: end, each: func(text, _ []byte) error { return line(text) }}
	list, err := parts(t.path)
	if err == nil {
		err = w.open(list)
	}
	t.mu.Unlock()
	if err != nil {
		return "", err
	}
	w.begin, w.last = list[0].first, end.Seq
	return end.String(), w.read()
}

// DamagedError is an audit log that was changed or cut.
type DamagedError struct {
	Path string
	Line uint64 // 1-based; 0 if no single line is at fault
	Err  error
}

// Error names the line.
func (e *DamagedError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("audit log %s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("audit log %s:%d: %v", e.Path, e.Line, e.Err)
}

// Unwrap returns the fault that was found.
func (e *DamagedError) Unwrap() error { return e.Err }
