package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
)

// Numbers of bbolt's layout, whose version is 2; see go.etcd.io/bbolt/internal/common.
const (
	boltMagic   = 0xED0CDAED
	boltVersion = 2

	pageHead    = 16 // id 8, kind 2, count 2, overflow 4
	itemSize    = 16 // a branch: position 4, key size 4, page 8; a leaf: flags 4, position 4, sizes 4 and 4
	metaSize    = 64
	bucketHead  = 16 // page of the root 8, sequence 8
	smallPage   = 1 << 10
	largestPage = 1 << 16

	branchPage   = 1
	leafPage     = 2
	freelistPage = 16
)

// tree reads a file of bbolt. bbolt itself trusts the file. It has checksums only in its two meta pages, and falls
// back to the older one. It follows cycles of pages, and it reads beyond the end of the file, which kills the
// process.
type tree struct {
	data []byte
	size uint64 // size of a page
	seen []bool // pages that are already claimed
	each func(bucket string, key, value []byte) error
}

// meta is a meta page.
type meta struct{ size, root, freelist, end, tx uint64 }

// readPages calls each for every key of every bucket, in order. It then checks that each page is used once, so that
// bbolt's later writes cannot overwrite other data.
func readPages(data []byte, each func(bucket string, key, value []byte) error) error {
	first, err := readMeta(data, 0)
	if err != nil {
		return err
	}
	second, err := readMeta(data, first.size)
	if err != nil {
		return err
	}
	m := first
	if second.tx > first.tx {
		m = second
	}
	switch {
	case first.size != second.size || first.tx%2 != 0 || max(first.tx, second.tx)-min(first.tx, second.tx) != 1:
		return errors.New("its meta pages do not belong together")
	case m.end > uint64(len(data))/m.size:
		return fmt.Errorf("it was cut: it has %d bytes, want %d", len(data), m.end*m.size)
	}
	t := tree{data: data, size: m.size, seen: make([]bool, m.end), each: each}
	t.seen[0], t.seen[1] = true, true
	if err := t.freelist(m.freelist); err != nil {
		return err
	}
	if _, err := t.walk("", m.root); err != nil {
		return err
	}
	for id, seen := range t.seen {
		if !seen {
			return fmt.Errorf("page %d belongs to nothing", id)
		}
	}
	return nil
}

// readMeta reads the meta page at offset at. The first meta page gives the page size, and so the offset of the
// second.
func readMeta(data []byte, at uint64) (m meta, err error) {
	if uint64(len(data)) < at+pageHead+metaSize {
		return m, fmt.Errorf("it is no state file: it has %d bytes", len(data))
	}
	b := data[at+pageHead:][:metaSize]
	le := binary.LittleEndian
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaSize-8])
	m = meta{uint64(le.Uint32(b[8:])), le.Uint64(b[16:]), le.Uint64(b[32:]), le.Uint64(b[40:]), le.Uint64(b[48:])}
	switch {
	case at == 0 && (le.Uint32(b) != boltMagic || le.Uint32(b[4:]) != boltVersion):
		return m, errors.New("it is no state file")
	case le.Uint32(b) != boltMagic || sum.Sum64() != le.Uint64(b[56:]):
		return m, fmt.Errorf("the meta page at byte %d has a wrong checksum", at)
	case m.size < smallPage || m.size > largestPage || m.size&(m.size-1) != 0:
		return m, fmt.Errorf("its pages have %d bytes", m.size)
	}
	return m, nil
}

// claim marks a page as used.
func (t *tree) claim(id uint64) error {
	if id >= uint64(len(t.seen)) {
		return fmt.Errorf("page %d is beyond its end", id)
	}
	if t.seen[id] {
		return fmt.Errorf("page %d belongs to two things", id)
	}
	t.seen[id] = true
	return nil
}

// page returns a page with its overflow pages.
func (t *tree) page(id uint64) ([]byte, error) {
	if err := t.claim(id); err != nil {
		return nil, err
	}
	b := t.data[id*t.size:]
	over := uint64(binary.LittleEndian.Uint32(b[12:]))
	if own := binary.LittleEndian.Uint64(b); own != id || over >= uint64(len(t.seen))-id {
		return nil, fmt.Errorf("page %d says that it is page %d, and %d more", id, own, over)
	}
	for i := range over {
		if err := t.claim(id + 1 + i); err != nil {
			return nil, err
		}
	}
	return b[:(over+1)*t.size], nil
}

func (t *tree) freelist(id uint64) error {
	b, err := t.page(id)
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	count, list := uint64(le.Uint16(b[10:])), b[pageHead:]
	if count == 0xFFFF {
		count, list = le.Uint64(list), list[8:]
	}
	if le.Uint16(b[8:]) != freelistPage || count > uint64(len(list))/8 {
		return fmt.Errorf("page %d is no list of free pages", id)
	}
	for i := range count {
		if err := t.claim(le.Uint64(list[8*i:])); err != nil {
			return err
		}
	}
	return nil
}

// walk reads a page of a bucket and all pages below it; "" is the root bucket. It returns the first key.
func (t *tree) walk(bucket string, id uint64) ([]byte, error) {
	b, err := t.page(id)
	if err != nil {
		return nil, err
	}
	first, err := t.items(bucket, b)
	if err != nil {
		err = fmt.Errorf("page %d: %w", id, err)
	}
	return first, err
}

func (t *tree) items(bucket string, b []byte) (first []byte, err error) {
	if len(b) < pageHead {
		return nil, errors.New("it is too short")
	}
	le := binary.LittleEndian
	kind, count := le.Uint16(b[8:]), uint64(le.Uint16(b[10:]))
	if kind != branchPage && kind != leafPage || pageHead+count*itemSize > uint64(len(b)) {
		return nil, errors.New("it is neither a branch nor a leaf")
	}
	for i := range count {
		at := pageHead + i*itemSize
		item := b[at:]
		flags, start, keySize, valueSize, child := uint32(0), at+uint64(le.Uint32(item)), uint64(le.Uint32(item[4:])), uint64(0), le.Uint64(item[8:])
		if kind == leafPage {
			flags, start, keySize, valueSize = le.Uint32(item), at+uint64(le.Uint32(item[4:])), uint64(le.Uint32(item[8:])), uint64(le.Uint32(item[12:]))
		}
		if start+keySize+valueSize > uint64(len(b)) {
			return nil, fmt.Errorf("item %d ends beyond it", i)
		}
		key, value := b[start:start+keySize], b[start+keySize:start+keySize+valueSize]
		if i == 0 {
			first = key
		}
		switch {
		case kind == branchPage:
			below, err := t.walk(bucket, child)
			if err != nil {
				return nil, err
			}
			if string(below) != string(key) {
				return nil, fmt.Errorf("item %d has another key than page %d begins with", i, child)
			}
		case flags == 0 && bucket != "":
			err = t.each(bucket, key, value)
		case flags == 1 && bucket == "" && keySize > 0 && len(value) >= bucketHead:
			if root := le.Uint64(value); root != 0 {
				_, err = t.walk(string(key), root)
			} else {
				_, err = t.items(string(key), value[bucketHead:])
			}
		default:
			err = fmt.Errorf("item %d is neither a value nor a bucket", i)
		}
		if err != nil {
			return nil, err
		}
	}
	return first, nil
}
