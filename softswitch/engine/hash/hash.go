// Package hash implements the hash functions and checksums of BMv2 by the names that programs use.
package hash

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"strconv"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// Func maps bytes to a number.
type Func func(b []byte) uint64

// Named returns BMv2's hash algorithm with that name, or nil if there is none.
func Named(name string) Func {
	switch name {
	case "crc32", "crc_32":
		return ieee
	case "csum16", "cksum16":
		return Internet
	case "xor16":
		return func(b []byte) uint64 { return xorWords(b, 2) }
	case "xor32":
		return func(b []byte) uint64 { return xorWords(b, 4) }
	case "identity":
		return identity
	case "xxh64", "bmv2_hash":
		return xxhash.Sum64
	case "hash_ex":
		return hashEx
	case "toeplitz":
		// Only BMv2's control plane can set the key. The key is 0 at first, which makes every
		// result 0.
		return func([]byte) uint64 { return 0 }
	}
	for _, k := range crcCatalogue {
		if k.name == name {
			return newCRC(k.width, k.poly, k.init, k.xorOut, k.reflect)
		}
	}
	return customCRC(name)
}

// crcCatalogue lists the CRCs that P4-14 programs name, with their parameters (Ross Williams' model). The values
// are BMv2's, even where catalogues differ.
var crcCatalogue = [...]struct {
	name               string
	width              int
	poly, init, xorOut uint64
	reflect            bool
}{
	{"crc16", 16, 0x8005, 0, 0, true},
	{"crcCCITT", 16, 0x1021, 0xffff, 0, false},
	{"crc8_custom", 8, 0x07, 0, 0, false},
	{"crc16_custom", 16, 0x8005, 0, 0, true},
	{"crc32_custom", 32, 0x04c11db7, 0xffffffff, 0xffffffff, true},
	{"crc64_custom", 64, 0x1b, 0, 0, true},
	{"crc_8", 8, 0x07, 0x00, 0x00, false},
	{"crc_8_darc", 8, 0x39, 0x00, 0x00, true},
	{"crc_8_i_code", 8, 0x1d, 0xfd, 0x00, false},
	{"crc_8_itu", 8, 0x07, 0x00, 0x55, false},
	{"crc_8_maxim", 8, 0x31, 0x00, 0x00, true},
	{"crc_8_rohc", 8, 0x07, 0x00, 0x00, true},
	{"crc_8_wcdma", 8, 0x9b, 0x00, 0x00, true},
	{"crc_16", 16, 0x8005, 0x0000, 0x0000, true},
	{"crc_16_buypass", 16, 0x8005, 0x0000, 0x0000, false},
	{"crc_16_dds_110", 16, 0x8005, 0x800d, 0x0000, false},
	{"crc_16_dect", 16, 0x0589, 0x0000, 0x0001, false},
	{"crc_16_dnp", 16, 0x3d65, 0x0000, 0xffff, true},
	{"crc_16_en_13757", 16, 0x3d65, 0x0000, 0xffff, false},
	{"crc_16_genibus", 16, 0x1021, 0xffff, 0xffff, false},
	{"crc_16_maxim", 16, 0x8005, 0x0000, 0xffff, true},
	{"crc_16_mcrf4xx", 16, 0x1021, 0xffff, 0x0000, true},
	{"crc_16_riello", 16, 0x1021, 0xb2aa, 0x0000, true},
	{"crc_16_t10_dif", 16, 0x8bb7, 0x0000, 0x0000, false},
	{"crc_16_teledisk", 16, 0xa097, 0x0000, 0x0000, false},
	{"crc_16_usb", 16, 0x8005, 0xffff, 0xffff, true},
	{"x_25", 16, 0x1021, 0xffff, 0xffff, true},
	{"xmodem", 16, 0x1021, 0x0000, 0x0000, false},
	{"modbus", 16, 0x8005, 0xffff, 0x0000, true},
	{"kermit", 16, 0x1021, 0x0000, 0x0000, true},
	{"crc_ccitt_false", 16, 0x1021, 0xffff, 0x0000, false},
	{"crc_aug_ccitt", 16, 0x1021, 0x1d0f, 0x0000, false},
	{"crc_32_bzip2", 32, 0x04c11db7, 0xffffffff, 0xffffffff, false},
	{"crc_32c", 32, 0x1edc6f41, 0xffffffff, 0xffffffff, true},
	{"crc_32d", 32, 0xa833982b, 0xffffffff, 0xffffffff, true},
	{"crc_32_mpeg", 32, 0x04c11db7, 0xffffffff, 0, false},
	{"posix", 32, 0x04c11db7, 0, 0xffffffff, false},
	{"crc_32q", 32, 0x814141ab, 0, 0, false},
	{"jamcrc", 32, 0x04c11db7, 0xffffffff, 0, true},
	{"xfer", 32, 0x000000af, 0, 0, false},
	{"crc_64", 64, 0x1b, 0, 0, true},
	{"crc_64_we", 64, 0x42f0e1eba9ea3693, 1<<64 - 1, 1<<64 - 1, false},
	{"crc_64_jones", 64, 0xad93d23594c935a9, 1<<64 - 1, 0, true},
}

// newCRC builds a table-driven CRC. It keeps the remainder at the top of 64 bits, so that one loop
// serves all widths. reflect applies to the input bytes and to the result.
func newCRC(width int, poly, init, xorOut uint64, reflect bool) Func {
	up := uint(64 - width)
	var table [256]uint64
	for i := range table {
		r := uint64(i) << 56
		for range 8 {
			if r>>63 != 0 {
				r = r<<1 ^ poly<<up
			} else {
				r <<= 1
			}
		}
		table[i] = r
	}
	return func(b []byte) uint64 {
		r := init << up
		for _, x := range b {
			if reflect {
				x = bits.Reverse8(x)
			}
			r = r<<8 ^ table[byte(r>>56)^x]
		}
		if reflect {
			return bits.Reverse64(r) ^ xorOut
		}
		return r>>up ^ xorOut
	}
}

// customCRC reads names such as poly_0x104c11db7_init_0xffffffff_not_rev_xout_0x0. The
// polynomial's top bit gives the width.
func customCRC(name string) Func {
	tokens := strings.Split(name, "_")
	var width int
	var poly, init, xorOut uint64
	reflect := true
	for len(tokens) >= 2 {
		key, digits := tokens[0], strings.TrimPrefix(tokens[1], "0x")
		tokens = tokens[2:]
		if key == "not" && digits == "rev" {
			reflect = false
			continue
		}
		if key == "poly" {
			var found bool
			if digits, found = strings.CutPrefix(digits, "1"); !found {
				return nil
			}
			width = 4 * len(digits)
		}
		to, ok := map[string]*uint64{"poly": &poly, "init": &init, "xout": &xorOut}[key]
		v, err := strconv.ParseUint(digits, 16, 64)
		if !ok || err != nil {
			return nil
		}
		*to = v
	}
	if len(tokens) != 0 || width != 8 && width != 16 && width != 32 && width != 64 {
		return nil
	}
	mask := uint64(1)<<width - 1
	return newCRC(width, poly, init&mask, xorOut&mask, reflect)
}

// Internet is the Internet checksum (RFC 1071).
func Internet(b []byte) uint64 { return Fold(Sum(0, b)) }

// Sum adds b to sum as 32-bit words, and the rest as 16-bit words. Fold gives the same checksum
// for both (RFC 1071).
func Sum(sum uint64, b []byte) uint64 {
	i := 0
	for ; i <= len(b)-4; i += 4 {
		sum += uint64(binary.BigEndian.Uint32(b[i : i+4]))
	}
	if i <= len(b)-2 {
		sum += uint64(binary.BigEndian.Uint16(b[i : i+2]))
		i += 2
	}
	if i < len(b) {
		sum += uint64(b[i]) << 8
	}
	return sum
}

// Fold is the Internet checksum of a sum of words.
func Fold(sum uint64) uint64 {
	sum = sum>>32 + sum&0xffffffff
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^sum & 0xffff
}

// xorWords folds big-endian words of n bytes; a short last word is padded with zeros.
func xorWords(b []byte, n int) uint64 {
	var v uint64
	for i, x := range b {
		v ^= uint64(x) << (8 * (n - 1 - i%n))
	}
	return v
}

// identity returns the first eight bytes as a number.
func identity(b []byte) uint64 {
	var v uint64
	for i := range min(8, len(b)) {
		v = v<<8 | uint64(b[i])
	}
	return v
}

// hashEx is simple_switch's example hash; its bytes are signed.
func hashEx(b []byte) uint64 {
	h := uint32(2166136261)
	for _, x := range b {
		h = (h ^ uint32(int32(int8(x)))) * 16777619
	}
	h += h << 13
	h ^= h >> 7
	h += h << 3
	h ^= h >> 17
	h += h << 5
	return uint64(h)
}

// maxRobin bounds the inputs that round_robin_consistent remembers. When there are more, it forgets
// all of them.
const maxRobin = 1 << 16

// Robin is the state of a round-robin calculation; mu guards it.
type Robin struct {
	mu   sync.Mutex
	n    uint64
	seen map[string]uint64
}

// Next returns the next number. A consistent calculation returns the same number for equal inputs.
func (r *Robin) Next(consistent bool, b []byte) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if consistent {
		if v, ok := r.seen[string(b)]; ok {
			return v
		}
		if r.seen == nil || len(r.seen) >= maxRobin {
			r.seen = map[string]uint64{}
		}
		r.seen[string(b)] = r.n
	}
	r.n++
	return r.n - 1
}

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
