package hash

import (
	"encoding/binary"
	"hash/crc32"
)

// slices[k][b] is what byte b contributes to a CRC-32 if k more bytes follow it.
var slices = func() (t [8][256]uint32) {
	t[0] = *crc32.IEEETable
	for i := range t[0] {
		for k := 1; k < len(t); k++ {
			v := t[k-1][i]
			t[k][i] = t[0][byte(v)] ^ v>>8
		}
	}
	return t
}()

// longInput is the input length in bytes from which package crc32 is faster than ieee.
const longInput = 64

// ieee computes crc32.ChecksumIEEE. It is made for inputs as short as a pair of addresses: it
// takes eight and four bytes at a time (slicing-by-8, Kounavis and Berry, 2005).
func ieee(b []byte) uint64 {
	if len(b) >= longInput {
		return uint64(crc32.ChecksumIEEE(b))
	}
	v := ^uint32(0)
	for ; len(b) >= 8; b = b[8:] {
		x, y := binary.LittleEndian.Uint32(b)^v, binary.LittleEndian.Uint32(b[4:])
		v = slices[7][byte(x)] ^ slices[6][byte(x>>8)] ^ slices[5][byte(x>>16)] ^ slices[4][x>>24] ^
			slices[3][byte(y)] ^ slices[2][byte(y>>8)] ^ slices[1][byte(y>>16)] ^ slices[0][y>>24]
	}
	if len(b) >= 4 {
		x := binary.LittleEndian.Uint32(b) ^ v
		v = slices[3][byte(x)] ^ slices[2][byte(x>>8)] ^ slices[1][byte(x>>16)] ^ slices[0][x>>24]
		b = b[4:]
	}
	for _, x := range b {
		v = slices[0][byte(v)^x] ^ v>>8
	}
	return uint64(^v)
}
