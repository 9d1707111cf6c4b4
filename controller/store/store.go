// Package store keeps what the controller must not forget in one bbolt file: the desired
// configuration, weights, budgets and the audit log. Every change is one transaction, on
// disk before the call returns, so a crash at any moment leaves the last whole change.
package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/headgate/headgate/controller/weights"
)

// Version is the layout of the buckets. A file of another version is refused, never guessed at.
const Version = 1

// Layout: bucket "headgate" holds the key "version" and the nested buckets
//
//	config   "desired" → JSON of Config
//	flows    five-tuple as text → JSON of flowRecord
//	budgets  application → JSON of budgetRecord
//	audit    sequence number, 8 bytes big endian → JSON of entryRecord
var (
	bucketRoot    = []byte("headgate")
	bucketConfig  = []byte("config")
	bucketFlows   = []byte("flows")
	bucketBudgets = []byte("budgets")
	bucketAudit   = []byte("audit")
	keyVersion    = []byte("version")
	keyDesired    = []byte("desired")
)

// lockWait is how long Open waits for another process to let go of the file.
const lockWait = time.Second

// Config is the desired configuration.
type Config struct {
	File       string    `json:"file"` // its name, for messages
	YAML       string    `json:"yaml"`
	Generation uint64    `json:"generation"` // counts applied configurations
	Applied    time.Time `json:"applied"`
}

// Options of a Store.
type Options struct {
	Audit  int  // audit entries kept, the oldest go first; 0 means weights.DefaultAudit
	NoSync bool // trust the operating system with the last changes; for tests
}

// Store owns its file: a second Open of the same path fails. It is safe for concurrent use.
// Without a path it keeps the configuration in memory and forgets the rest, which the weight
// registry holds in memory anyway.
type Store struct {
	db    *bbolt.DB // nil in memory
	audit int

	mu     sync.Mutex // guards config in memory
	config *Config
}

var _ weights.Keeper = (*Store)(nil)

// Open opens or creates the file, with its folder. An empty path keeps nothing on disk.
func Open(path string, o Options) (*Store, error) {
	s := &Store{audit: o.Audit}
	if s.audit <= 0 {
		s.audit = weights.DefaultAudit
	}
	if path == "" {
		return s, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("state file %s: %w", path, err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockWait, NoSync: o.NoSync, FreelistType: bbolt.FreelistMapType})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, fmt.Errorf("state file %s is in use by another process: stop it, or set another controller.state", path)
	case err != nil:
		return nil, fmt.Errorf("state file %s: %w", path, err)
	}
	s.db = db
	if err := db.Update(s.prepare); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("state file %s: %w", path, err)
	}
	return s, nil
}

// prepare makes the buckets of a new file and checks the version of an old one.
func (s *Store) prepare(tx *bbolt.Tx) error {
	root := tx.Bucket(bucketRoot)
	if root == nil {
		var err error
		if root, err = tx.CreateBucket(bucketRoot); err != nil {
			return err
		}
		if err := root.Put(keyVersion, number(Version)); err != nil {
			return err
		}
	}
	v := root.Get(keyVersion)
	if len(v) != 8 || binary.BigEndian.Uint64(v) != Version {
		return fmt.Errorf("its layout has version %x, this program reads version %d: use the program that wrote it, or move the file away", v, Version)
	}
	for _, b := range [][]byte{bucketConfig, bucketFlows, bucketBudgets, bucketAudit} {
		if _, err := root.CreateBucketIfNotExists(b); err != nil {
			return err
		}
	}
	return nil
}

// Close lets go of the file.
func (s *Store) Close() error {
	if s.db == nil {
		return nil
	}
	return s.db.Close()
}

// SaveConfig replaces the desired configuration.
func (s *Store) SaveConfig(c Config) error {
	if s.db == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.config = &c
		return nil
	}
	return s.db.Update(func(tx *bbolt.Tx) error {
		return put(bucket(tx, bucketConfig), keyDesired, c)
	})
}

// LoadConfig returns the desired configuration; false when none was saved yet.
func (s *Store) LoadConfig() (c Config, ok bool, err error) {
	if s.db == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.config == nil {
			return c, false, nil
		}
		return *s.config, true, nil
	}
	err = s.db.View(func(tx *bbolt.Tx) error {
		v := bucket(tx, bucketConfig).Get(keyDesired)
		if v == nil {
			return nil
		}
		ok = true
		if err := json.Unmarshal(v, &c); err != nil {
			return fmt.Errorf("state file %s: configuration: %w", s.db.Path(), err)
		}
		return nil
	})
	return c, ok && err == nil, err
}

func bucket(tx *bbolt.Tx, name []byte) *bbolt.Bucket { return tx.Bucket(bucketRoot).Bucket(name) }

func put(b *bbolt.Bucket, key []byte, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return b.Put(key, text)
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
