package store

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/headgate/headgate/controller/authz/audit"
)

// chain is the position to which a state was read, or a state file was written.
type chain struct {
	records int                 // number of records
	size    int64               // of their lines, in bytes
	summary int                 // number of records of the summary of earlier changes, with the header
	summed  int64               // size of those records' lines, in bytes
	before  audit.Head          // the change before the summary
	end     audit.Head          // the last change
	hashes  [][sha256.Size]byte // hashes of the summary and of each later change, in the order of reading
	log     audit.Head          // the audit log's last line when the last change was made
}

// hash returns the hash of a change; false if the change is merged into the summary.
func (l *chain) hash(change uint64) ([sha256.Size]byte, bool) {
	switch first := l.before.Seq + 1; {
	case change == l.before.Seq:
		return l.before.Hash, true
	case change >= first && change-first < uint64(len(l.hashes)):
		return l.hashes[change-first], true
	}
	return [sha256.Size]byte{}, false
}

// seal returns the contents as the lines of a new file or a backup. The summary counts as the change after before.
func (c *contents) seal(before, log audit.Head) (lines []byte, l chain, err error) {
	list := c.records(Version)
	list[0].Header.Change, list[0].AuditLog = before.Seq+1, log
	l = chain{records: len(list), summary: len(list), before: before, end: audit.Head{Seq: before.Seq + 1, Hash: before.Hash}, log: log}
	for _, r := range list {
		r.Prev = hex.EncodeToString(l.end.Hash[:])
		text, err := json.Marshal(r)
		if err != nil {
			return nil, l, err
		}
		l.end.Hash = sha256.Sum256(text)
		lines = appendLine(lines, text)
	}
	l.size = int64(len(lines))
	return lines, l, nil
}

// add reads the next record of a state into the contents. The record must continue the chain.
func (l *chain) add(c *contents, text []byte) error {
	r, err := decode(text)
	if err == nil && (r.Header != nil) != (l.records == 0) {
		err = errors.New("a header belongs into the first line and nowhere else")
	}
	if err != nil {
		return err
	}
	chained := l.end.Seq > 0
	if h := r.Header; h != nil {
		if h.Version != Version && h.Version != lineVersion {
			return &versionError{h.Version}
		}
		if chained = h.Version == Version; chained {
			var prev [sha256.Size]byte
			if n, err := hex.Decode(prev[:], []byte(r.Prev)[:min(len(r.Prev), 2*len(prev))]); err != nil || n != len(prev) || h.Change == 0 {
				return errors.New("the header names no change")
			}
			l.before = audit.Head{Seq: h.Change - 1, Hash: prev}
			l.end = audit.Head{Seq: h.Change, Hash: prev}
		}
		l.summary, c.term = 1+h.Lines, h.Term
	}
	if chained {
		if r.Prev != hex.EncodeToString(l.end.Hash[:]) {
			return errors.New("it does not follow on the one before: one of them was changed, moved or removed")
		}
		l.end.Hash = sha256.Sum256(text)
		if l.records >= l.summary {
			l.end.Seq++
		}
		if l.records+1 >= l.summary {
			l.hashes = append(l.hashes, l.end.Hash)
		}
		if r.AuditLog != (audit.Head{}) {
			l.log = r.AuditLog
		}
	}
	if l.records, l.size = l.records+1, l.size+lineSize(text); l.records <= l.summary {
		l.summed = l.size
	}
	c.apply(r)
	return nil
}

// whole returns an error if records of the summary are missing.
func (l *chain) whole() error {
	if l.records < max(l.summary, 1) {
		return fmt.Errorf("it ends after %d of %d lines", l.records, max(l.summary, 1))
	}
	return nil
}

type versionError struct{ version int }

func (e *versionError) Error() string {
	return fmt.Sprintf("its layout has version %d, this program reads version %d and %d: use the program that wrote it, or move it away", e.version, lineVersion, Version)
}

// isText reports whether a file begins like a text file of lines, with a CRC-32C in hexadecimal.
func isText(data []byte) bool {
	_, err := hex.DecodeString(string(data[:min(8, len(data))]))
	return err == nil && len(data) > 8 && data[8] == ' '
}

// markSize is the size of a state file's first line: the end of the chain, as audit.Head.String writes it.
var markSize = len(audit.Head{}.String())

// load adds the content of a state file or a backup. name is for messages. If the file is damaged, the content before
// the damage is loaded. What follows the end that a state file names was not acknowledged: a crash may have left a part
// of a line there.
func (c *contents) load(name string, data []byte) (l chain, err error) {
	if isText(data) {
		l, _, err = c.read(name, bytes.NewReader(data))
		return l, err
	}
	if bytes.HasPrefix(data[min(16, len(data)):], []byte("\xed\xda\x0c\xed")) {
		return l, fmt.Errorf("%s: it is a bbolt file, as unreleased builds wrote: make a backup with the build that wrote it, and restore that", name)
	}
	var end audit.Head
	if len(data) < markSize || data[markSize-1] != '\n' || end.UnmarshalText(data[:markSize]) != nil {
		return l, damage(name, errors.New("it is no state file"))
	}
	l, _, err = c.read(name, bytes.NewReader(data[markSize:]))
	switch hash, known := l.hash(end.Seq); {
	case known && hash == end.Hash && end.Seq > l.before.Seq:
		return l, nil
	case err == nil:
		err = damage(name, fmt.Errorf("it ends with change %d, and says that it ends with change %d", l.end.Seq, end.Seq))
	}
	return l, err
}

// damage wraps a read error with the name of the file or journal. An unknown version is no damage.
func damage(name string, err error) error {
	var version *versionError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &version):
		return fmt.Errorf("%s: %w", name, version)
	}
	return &DamagedError{Name: name, Err: err}
}

// read adds the records in lines; name is for messages. It returns how many bytes it read.
func (c *contents) read(name string, from io.Reader) (l chain, end int64, err error) {
	in := bufio.NewReader(from)
	for {
		text, err := in.ReadBytes('\n')
		end += int64(len(text))
		if errors.Is(err, io.EOF) { // a line without a newline was never confirmed to a client
			switch {
			case end == 0:
				err = nil
			case len(text) > 0 && l.end.Seq > 0:
				err = errors.New("its last line has no end")
			default:
				err = l.whole()
			}
			return l, end, damage(name, err)
		}
		if err != nil {
			return l, end, fmt.Errorf("%s: %w", name, err)
		}
		if text, err = cut(text[:len(text)-1]); err == nil {
			err = l.add(c, text)
		}
		if err != nil {
			return l, end, damage(name, fmt.Errorf("line %d: %w", l.records+1, err))
		}
	}
}
