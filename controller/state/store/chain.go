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
	pieces  int                 // number of values that hold them in the file
	size    int64               // in bytes
	summary int                 // number of records of the summary of earlier changes, with the header
	summed  int64               // size of those records, in bytes
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

// seal returns the contents as the records of a new file. The summary counts as the change after before.
func (c *contents) seal(before, log audit.Head) (texts [][]byte, l chain, err error) {
	list := c.records(Version)
	list[0].Header.Change, list[0].AuditLog = before.Seq+1, log
	l = chain{records: len(list), summary: len(list), before: before, end: audit.Head{Seq: before.Seq + 1, Hash: before.Hash}, log: log}
	for _, r := range list {
		r.Prev = hex.EncodeToString(l.end.Hash[:])
		text, err := json.Marshal(r)
		if err != nil {
			return nil, l, err
		}
		l.end.Hash, l.size = sha256.Sum256(text), l.size+int64(len(text))
		texts = append(texts, text)
	}
	return texts, l, nil
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
	if l.records, l.size = l.records+1, l.size+int64(len(text)); l.records <= l.summary {
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

// load adds the content of a file. name is for messages. If the file is damaged, the content before
// the damage is loaded.
func (c *contents) load(name string, data []byte) (l chain, err error) {
	if isText(data) {
		l, _, err = c.read(name, bytes.NewReader(data))
		return l, err
	}
	var end audit.Head
	var text []byte // pieces so far of an incomplete record
	err = readPages(data, func(bucket string, k, v []byte) error {
		switch {
		case bucket == endBucket && string(k) == endBucket:
			return end.UnmarshalText(v)
		case bucket == recordBucket && bytes.Equal(k, pieceKey(l.pieces)):
			l.pieces++
			text = append(text, v...)
			if !bytes.HasSuffix(v, []byte("\n")) {
				return nil
			}
			if err := l.add(c, text[:len(text)-1]); err != nil {
				return fmt.Errorf("record %d: %w", l.records+1, err)
			}
			text = text[:0]
			return nil
		}
		return fmt.Errorf("record %d: %q of %q is in its place", l.records+1, k, bucket)
	})
	if err == nil && len(text) > 0 {
		err = fmt.Errorf("record %d has no end", l.records+1)
	}
	if err == nil {
		err = l.whole()
	}
	if err == nil && l.end != end {
		err = fmt.Errorf("it ends with change %d, and says that it ends with change %d", l.end.Seq, end.Seq)
	}
	return l, damage(name, err)
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
