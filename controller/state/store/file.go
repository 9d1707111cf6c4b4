package store

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/state/outcome"
)

const (
	// lockWait is how long Open waits for another process to release the file.
	lockWait = time.Second
	// slack is how many bytes a journal may always grow by before it is compacted.
	slack = 1 << 20
	// endBucket is the bucket with the end of the chain, and its only key. It is separate from the records, so that
	// an older page of records is not mistaken for the last one.
	endBucket    = "end"
	recordBucket = "records" // number of a piece → the piece; a record is its JSON and a newline, cut into pieces
	// pieceSize is the largest size of a piece in bytes: two fill a page of 4096 bytes. Each change rewrites the
	// last leaf, and bbolt may put four values into a leaf, however large they are. So a record is not stored as
	// one value.
	pieceSize = (4096-pageHead)/2 - itemSize - 8
)

func pieceKey(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// pieces cuts records up.
func pieces(texts ...[]byte) (list [][]byte) {
	for _, text := range texts {
		list = slices.AppendSeq(list, slices.Chunk(append(text[:len(text):len(text)], '\n'), pieceSize))
	}
	return list
}

// file is a state file: a chain of records in bbolt, which no other process has open. The Store's lock guards it.
type file struct {
	chain
	path  string
	sync  bool
	db    *bolt.DB
	old   io.Closer // keeps the file locked until it is rewritten; nil when db does
	aside string    // new name of the old file; empty if it is not kept
	kept  string    // name that the kept file got: aside, or aside with a number if that name is taken
	fresh bool      // there was no file
	limit int64     // the size of the records at which the file is written anew
	// update runs a transaction: db.Update, except in tests.
	update func(*bolt.DB, func(*bolt.Tx) error) error
}

// openFile opens or creates a file and adds its content to an empty state. A file of an older version is rewritten.
// So is a damaged file if the damage is accepted; damaged is then the damage.
func openFile(path string, o Options, state *contents) (f *file, damaged error, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, nil, fmt.Errorf("state file %s: %w", path, err)
	}
	f = &file{path: path, sync: !o.NoSync, limit: slack, update: (*bolt.DB).Update}
	in, err := lock(path, os.O_RDWR)
	switch {
	case errors.Is(err, os.ErrNotExist):
		f.fresh = true
		return f, nil, f.rewrite(state)
	case err != nil:
		return nil, nil, err
	}
	data, err := io.ReadAll(in)
	if err == nil {
		f.chain, err = state.load("state file "+path, data)
	}
	var bad *DamagedError
	switch {
	case errors.As(err, &bad) && o.AcceptLoss:
		f.old, f.aside, damaged = in, path+".damaged", bad.Err
		err = f.rewrite(state)
	case bad != nil:
		bad.Has = state.summary().String()
		f.old = in
	case err != nil:
		f.old = in
	case isText(data):
		f.old, f.aside = in, path+".version2"
		err = f.rewrite(state)
	default:
		f.limit += 2 * f.summed
		f.db, err = f.open(in, 0)
	}
	if err != nil && !IsDiskFull(err) {
		return nil, nil, errors.Join(err, f.close())
	}
	return f, damaged, err // the next change tries again
}

// IsDiskFull reports whether an error means that the disk is full or a quota is used up.
func IsDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// lock opens a file and locks it against other processes that use lock.
func lock(path string, flags int) (*os.File, error) {
	for end := time.Now().Add(lockWait); ; time.Sleep(20 * time.Millisecond) {
		f, err := os.OpenFile(path, flags, 0o600)
		if err != nil {
			return nil, fmt.Errorf("state file: %w", err)
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		mine, _ := f.Stat()
		now, _ := os.Stat(path)
		if err == nil && os.SameFile(mine, now) { // the path still names the locked file
			return f, nil
		}
		_ = f.Close()
		if err != nil && time.Now().After(end) {
			return nil, fmt.Errorf("state file %s is in use by another process: stop it, or name another file", path)
		}
	}
}

// open opens a locked file, which is sound or empty, by bbolt, which will close it. size is the initial size of the
// memory map: whenever the file outgrows the map, bbolt copies all unwritten data.
func (f *file) open(in *os.File, size int64) (*bolt.DB, error) {
	return bolt.Open(in.Name(), 0o600, &bolt.Options{
		Timeout: lockWait, NoSync: !f.sync, NoGrowSync: !f.sync, NoStatistics: true, InitialMmapSize: int(size),
		OpenFile: func(string, int, os.FileMode) (*os.File, error) { return in, nil },
	})
}

func (f *file) close() error {
	var err error
	for _, c := range []io.Closer{f.db, f.old} {
		if c != nil && c != (*bolt.DB)(nil) {
			err = errors.Join(err, c.Close())
		}
	}
	return err
}

// append adds a change to the chain.
func (f *file) append(r record, state *contents) error {
	if f.db == nil {
		if err := f.rewrite(state); err != nil {
			return err
		}
	}
	r.Prev = hex.EncodeToString(f.end.Hash[:])
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	end := audit.Head{Seq: f.end.Seq + 1, Hash: sha256.Sum256(text)}
	parts := pieces(text)
	if err := f.put(f.db, f.pieces, end, parts); err != nil {
		if !IsDiskFull(err) { // it is unknown whether the change is on disk
			f.db, f.old = nil, held{f.db}
			return outcome.Unknown(fmt.Errorf("state file: %w", err))
		}
		return fmt.Errorf("state file: %w", err)
	}
	f.pieces, f.end, f.size, f.log = f.pieces+len(parts), end, f.size+int64(len(text)), cmp.Or(r.AuditLog, f.log)
	return nil
}

// held keeps a failed file locked. The file is not closed, because bbolt may wait for ever for the failed
// transaction.
type held struct{ *bolt.DB }

// Close implements io.Closer.
func (held) Close() error { return nil }

// put writes pieces, numbered from from on, and the end of the chain. It returns a panic of bbolt as an error:
// bbolt panics if another program has overwritten a page of the file.
func (f *file) put(db *bolt.DB, from int, end audit.Head, parts [][]byte) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %v", f.path, p)
		}
	}()
	return f.update(db, func(tx *bolt.Tx) error {
		for bucket, write := range map[string]func(*bolt.Bucket) error{
			endBucket: func(b *bolt.Bucket) error {
				text, err := end.MarshalText()
				return errors.Join(err, b.Put([]byte(endBucket), text))
			},
			recordBucket: func(b *bolt.Bucket) error {
				b.FillPercent = 1 // pieces are added at the end
				for i, part := range parts {
					if err := b.Put(pieceKey(from+i), part); err != nil {
						return err
					}
				}
				return nil
			},
		} {
			b, err := tx.CreateBucketIfNotExists([]byte(bucket))
			if err == nil {
				err = write(b)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (f *file) tidy(state *contents) error {
	if f.size <= f.limit {
		return nil
	}
	f.limit = 2 * f.size
	return f.rewrite(state)
}

// rewrite replaces the file by one that contains only a summary of the state. The summary counts as a change.
func (f *file) rewrite(state *contents) error {
	texts, l, err := state.seal(f.end, f.log)
	if err != nil {
		return err
	}
	// The name contains the process id, because no lock protects the temporary file.
	temporary := fmt.Sprintf("%s.%d%s", f.path, os.Getpid(), partial)
	parts := pieces(texts...)
	l.pieces = len(parts)
	db, err := f.write(temporary, parts, l)
	if err != nil {
		return err
	}
	if f.aside != "" {
		f.kept, err = keep(f.path, f.aside)
	}
	place := os.Rename
	if f.fresh {
		place = os.Link // Link fails if another process was faster
	}
	if err == nil {
		err = place(temporary, f.path)
	}
	_ = os.Remove(temporary)
	if err == nil && f.sync {
		err = syncFolder(filepath.Dir(f.path))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("state file: %w", err), db.Close())
	}
	_ = f.close()
	f.chain, f.db, f.old, f.aside, f.fresh, f.limit = l, db, nil, "", false, 2*l.size+slack
	return nil
}

// write makes a new file of a chain's pieces, locked and on disk.
func (f *file) write(path string, parts [][]byte, l chain) (*bolt.DB, error) {
	in, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state file: %w", err)
	}
	db, err := f.open(in, l.size+l.size/8) // an eighth more for the pages' headers
	if err == nil {
		if err = f.put(db, 0, l.end, parts); err != nil {
			_ = db.Close()
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("state file: %w", err), os.Remove(path))
	}
	return db, nil
}

// keep links a file to a second name. If that name is taken, it appends a number.
func keep(path, as string) (name string, err error) {
	name = as
	for n := 2; ; n++ {
		if err := os.Link(path, name); !errors.Is(err, os.ErrExist) {
			return name, err
		}
		name = fmt.Sprintf("%s.%d", as, n)
	}
}
