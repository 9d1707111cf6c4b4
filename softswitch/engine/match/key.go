// Package match finds the entries of tables: by exact keys, longest prefixes, masks with
// priorities, and ranges. Start reading at NewIndex, which chooses the index for a key.
package match

import (
	"errors"
	"fmt"
	"slices"

	"github.com/headgate/headgate/softswitch/engine/phv"
)

// ErrInvalid reports a key that does not fit its table.
var ErrInvalid = errors.New("invalid")

// Kind is how one field of a table's key matches.
type Kind uint8

// The match kinds of v1model. Optional appears in BMv2 JSON as ternary.
const (
	Exact Kind = iota
	LPM
	Ternary
	Range
	Optional
	Selector
)

// Field describes one field of a table's key.
type Field struct {
	Name string
	Kind Kind
	Bits int
}

// Value is one field of an entry's key. Numbers are big-endian and at most as wide as the field;
// shorter ones are zero-padded on the left.
type Value struct {
	Value  []byte // exact, LPM, ternary; the low end of a range
	Mask   []byte // ternary; the high end of a range
	Prefix int    // LPM: number of leading bits that count
	Any    bool   // don't care (ternary, range, optional; LPM is Prefix 0)
	Range  bool   // value sets only: Value and Mask are the ends of a range
}

// Words checks a value and returns it as words, the least significant first: value and mask,
// or the ends of a range.
func (f Field) Words(m *Value) (value, mask []uint64, err error) {
	return f.words(m, make([]uint64, 2*phv.Words(f.Bits)))
}

// words does what Words does and stores the result in both, which must be zero.
func (f Field) words(m *Value, both []uint64) (value, mask []uint64, err error) {
	n := len(both) / 2
	value, mask = both[:n:n], both[n:]
	put := func(dst []uint64, b []byte) {
		if !phv.PutBytes(dst, b, f.Bits) {
			err = fmt.Errorf("key field %q: value 0x%x has more than %d bits: %w", f.Name, b, f.Bits, ErrInvalid)
		}
	}
	switch {
	case m.Any && f.Kind == Exact:
		return nil, nil, fmt.Errorf("key field %q: an exact match needs a value: %w", f.Name, ErrInvalid)
	case m.Any:
		if f.Kind == Range {
			prefixMask(mask, f.Bits, f.Bits)
		}
		return value, mask, nil
	case f.Kind == LPM:
		if m.Prefix < 0 || m.Prefix > f.Bits {
			return nil, nil, fmt.Errorf("key field %q: prefix length %d, allowed are 0 to %d: %w", f.Name, m.Prefix, f.Bits, ErrInvalid)
		}
		prefixMask(mask, f.Bits, m.Prefix)
	case f.Kind == Range || f.Kind != Exact && m.Mask != nil:
		put(mask, m.Mask)
	default:
		prefixMask(mask, f.Bits, f.Bits)
	}
	put(value, m.Value)
	// As in BMv2, a range whose ends are swapped is allowed and matches nothing.
	for i := range value {
		if f.Kind != Range {
			value[i] &= mask[i]
		}
	}
	return value, mask, err
}

// prefixMask sets the first length bits of a number of the given width in bits.
func prefixMask(dst []uint64, bits, length int) {
	for i := range dst {
		lo, hi := max(64*i, bits-length), min(64*i+64, bits)
		if lo < hi {
			dst[i] = phv.LastMask(hi-lo) << (lo - 64*i)
		}
	}
}

// Key is the key of a table: its fields are packed without gaps, the first one most
// significant.
type Key struct {
	Kind   Kind // Exact, LPM, Ternary or Range; it applies to the whole key
	Fields []Field
	At     []int // lowest bit of each field
	Bits   int
	Words  int // at least one
	lpm    int // index of the LPM field, if Kind is LPM
}

// NewKey lays out a key.
func NewKey(kind Kind, fields []Field) (*Key, error) {
	k := &Key{Kind: kind, Fields: fields, At: make([]int, len(fields)), lpm: -1}
	for i, f := range slices.Backward(fields) {
		k.At[i] = k.Bits
		k.Bits += f.Bits
		switch {
		case f.Kind == LPM && k.lpm >= 0:
			return nil, fmt.Errorf("it has two lpm fields")
		case f.Kind == LPM:
			k.lpm = i
		}
		if f.Kind > kind && (f.Kind != LPM || kind != Ternary) && f.Kind != Optional {
			return nil, fmt.Errorf("its match_type does not allow that of its field %q", f.Name)
		}
	}
	if kind == LPM && k.lpm < 0 {
		k.Kind = Exact
	}
	k.Words = max(1, phv.Words(k.Bits))
	return k, nil
}

// Entry is the key of a table's entry. Among entries with equal priority, the one with the lower
// Order wins.
type Entry struct {
	Order    uint64
	short    [2]uint64 // value and mask, if the key has one word
	*long              // value, mask and ranges of wider keys and of those with ranges; else nil
	priority int       // priority of the entry; for an LPM entry, the length of its prefix
	Owner    any       // the table's entry with this key
}

// long holds the words of a key, least significant first, and its ranges.
type long struct {
	values []uint64 // packed like the key
	masks  []uint64
	ranges []span
}

// value returns the words of the value, packed like the key.
func (e *Entry) value() []uint64 {
	if e.long == nil {
		return e.short[:1]
	}
	return e.values
}

// mask returns the words of the mask.
func (e *Entry) mask() []uint64 {
	if e.long == nil {
		return e.short[1:]
	}
	return e.masks
}

// spans returns the ranges.
func (e *Entry) spans() []span {
	if e.long == nil {
		return nil
	}
	return e.ranges
}

// span is a range of one field of the key.
type span struct {
	at, bits int
	lo, hi   []uint64
}

func (s span) equal(o span) bool {
	return s.at == o.at && slices.Equal(s.lo, o.lo) && slices.Equal(s.hi, o.hi)
}

// Fill checks and packs the key of an entry. Priority counts only for keys of the kinds Ternary
// and Range; the higher one wins.
func (k *Key) Fill(e *Entry, key []Value, priority int) error {
	if len(k.Fields) == 0 {
		return fmt.Errorf("it has no key, hence only a default entry: %w", ErrInvalid)
	}
	if len(key) != len(k.Fields) {
		return fmt.Errorf("key has %d fields, want %d: %w", len(key), len(k.Fields), ErrInvalid)
	}
	if k.Words > 1 || k.Kind == Range {
		both := make([]uint64, 2*k.Words)
		e.long = &long{values: both[:k.Words:k.Words], masks: both[k.Words:]}
	}
	switch {
	case k.Kind >= Ternary:
		e.priority = priority
	case k.Kind == LPM && !key[k.lpm].Any:
		e.priority = key[k.lpm].Prefix
	}
	for i, f := range k.Fields {
		if f.Kind == Range {
			lo, hi, err := f.Words(&key[i])
			if err != nil {
				return err
			}
			e.ranges = append(e.ranges, span{k.At[i], f.Bits, lo, hi})
			continue
		}
		var short [4]uint64
		words := short[:]
		if f.Bits > 128 {
			words = make([]uint64, 2*phv.Words(f.Bits))
		}
		v, m, err := f.words(&key[i], words[:2*phv.Words(f.Bits)])
		if err != nil {
			return err
		}
		place(e.value(), v, k.At[i])
		place(e.mask(), m, k.At[i])
	}
	return nil
}

// place copies a field's words to its position in a packed key.
func place(dst, src []uint64, at int) {
	for i, v := range src {
		q, s := (at+64*i)/64, uint((at+64*i)%64)
		dst[q] |= v << s
		if s > 0 && q+1 < len(dst) {
			dst[q+1] |= v >> (64 - s)
		}
	}
}

// fetch is the inverse of place for one field.
func fetch(dst, src []uint64, at, bits int) {
	for i := range dst {
		q, s := (at+64*i)/64, uint((at+64*i)%64)
		dst[i] = src[q] >> s
		if s > 0 && q+1 < len(src) {
			dst[i] |= src[q+1] << (64 - s)
		}
	}
	dst[len(dst)-1] &= phv.LastMask(bits)
}

// matches compares a packed key with the entry.
func (e *Entry) matches(key []uint64) bool {
	value, mask := e.value(), e.mask()
	for i := range key {
		if key[i]&mask[i] != value[i] {
			return false
		}
	}
	return e.inRanges(key)
}

func (e *Entry) inRanges(key []uint64) bool {
	var buf [4]uint64
	ranges := e.spans()
	for i := range ranges {
		r := &ranges[i]
		if s := uint(r.at % 64); s+uint(r.bits) <= 64 {
			if v := key[r.at/64] >> s & phv.LastMask(r.bits); v < r.lo[0] || v > r.hi[0] {
				return false
			}
			continue
		}
		v := buf[:]
		if len(r.lo) > len(v) {
			v = make([]uint64, len(r.lo))
		}
		v = v[:len(r.lo)]
		fetch(v, key, r.at, r.bits)
		if !InRange(v, r.lo, r.hi) {
			return false
		}
	}
	return true
}

// InRange reports whether lo ≤ v ≤ hi. The numbers have the same number of words.
func InRange(v, lo, hi []uint64) bool { return compare(v, lo) >= 0 && compare(v, hi) <= 0 }

func compare(a, b []uint64) int {
	for i := len(a) - 1; i >= 0; i-- {
		if a[i] != b[i] {
			if a[i] < b[i] {
				return -1
			}
			return 1
		}
	}
	return 0
}
