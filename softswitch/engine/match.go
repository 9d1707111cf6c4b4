package engine

import (
	"fmt"
	"math/big"
)

// matchWords turns one Match into limbs: value and mask, or the ends of a range.
func matchWords(k KeyField, m *Match) (value, mask []uint64, err error) {
	n := (k.Bits + 63) / 64
	value, mask = make([]uint64, n), make([]uint64, n)
	all := func(dst []uint64) {
		for i := range dst {
			dst[i] = ^uint64(0)
		}
		dst[n-1] &= lastMask(k.Bits)
	}
	put := func(dst []uint64, b []byte) error {
		z := new(big.Int).SetBytes(b)
		if z.BitLen() > k.Bits {
			return fmt.Errorf("key field %q: value 0x%x has more than %d bits: %w", k.Name, b, k.Bits, ErrInvalid)
		}
		putWords(dst, z, k.Bits)
		return nil
	}
	if m.Any {
		if k.Kind == Exact {
			return nil, nil, fmt.Errorf("key field %q: an exact match needs a value: %w", k.Name, ErrInvalid)
		}
		if k.Kind == Range {
			all(mask)
		}
		return value, mask, nil
	}
	if err := put(value, m.Value); err != nil {
		return nil, nil, err
	}
	switch k.Kind {
	case LPM:
		if m.Prefix < 0 || m.Prefix > k.Bits {
			return nil, nil, fmt.Errorf("key field %q: prefix length %d, allowed are 0 to %d: %w", k.Name, m.Prefix, k.Bits, ErrInvalid)
		}
		prefixMask(mask, k.Bits, m.Prefix)
	case Ternary, Range:
		if k.Kind == Ternary && m.Mask == nil {
			all(mask)
			break
		}
		if err := put(mask, m.Mask); err != nil {
			return nil, nil, err
		}
		if k.Kind == Range {
			// BMv2 takes a range whose ends are swapped; it matches nothing.
			return value, mask, nil
		}
	default:
		all(mask)
		if k.Kind == Optional && m.Mask != nil {
			if err := put(mask, m.Mask); err != nil {
				return nil, nil, err
			}
		}
	}
	for i := range value {
		value[i] &= mask[i]
	}
	return value, mask, nil
}

// prefixMask sets the first length of bits bits.
func prefixMask(dst []uint64, bits, length int) {
	for i := range dst {
		lo, hi := max(64*i, bits-length), min(64*i+64, bits)
		if lo < hi {
			dst[i] = lastMask(hi-lo) << (lo - 64*i)
		}
	}
}

// place copies a field's limbs to its position in a packed key.
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
	dst[len(dst)-1] &= lastMask(bits)
}
