package engine

import (
	"encoding/binary"
	"hash/crc32"
	"math/big"
	"math/bits"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// hashFn maps bytes to a number.
type hashFn func(b []byte) uint64

// hashNamed returns the hash algorithm of that name as BMv2 knows it, nil if there is none.
func hashNamed(name string) hashFn {
	switch name {
	case "crc32", "crc_32":
		return func(b []byte) uint64 { return uint64(crc32.ChecksumIEEE(b)) }
	case "crc16":
		return newCRC(16, 0x8005, 0, 0, true)
	case "crcCCITT":
		return newCRC(16, 0x1021, 0xffff, 0, false)
	case "csum16", "cksum16":
		return csum16
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
		// The key is set through the control plane of BMv2 only; it starts as 0, and so
		// does every result.
		return func([]byte) uint64 { return 0 }
	case "crc8_custom":
		return newCRC(8, 0x07, 0, 0, false)
	case "crc16_custom":
		return newCRC(16, 0x8005, 0, 0, true)
	case "crc32_custom":
		return newCRC(32, 0x04c11db7, 0xffffffff, 0xffffffff, true)
	case "crc64_custom":
		return newCRC(64, 0x1b, 0, 0, true)
	}
	for _, k := range crcCatalogue {
		if k.name == name {
			return newCRC(k.width, k.poly, k.init, k.xorOut, k.reflect)
		}
	}
	return customCRC(name)
}

// crcCatalogue lists the CRCs that P4-14 programs name, with their parameters (Ross
// Williams' model), with the values BMv2 gives them even where catalogues differ.
var crcCatalogue = [...]struct {
	name               string
	width              int
	poly, init, xorOut uint64
	reflect            bool
}{
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

// newCRC builds a table-driven CRC. The remainder is kept at the top of 64 bits, so that
// one loop serves all widths; reflection is of the input bytes and of the result.
func newCRC(width int, poly, init, xorOut uint64, reflect bool) hashFn {
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

// customCRC reads names such as poly_0x104c11db7_init_0xffffffff_not_rev_xout_0x0.
func customCRC(name string) hashFn {
	tokens := strings.Split(name, "_")
	var poly string
	var init, xorOut uint64
	reflect := true
	number := func(s string) (uint64, bool) {
		z, ok := new(big.Int).SetString(strings.TrimPrefix(s, "0x"), 16)
		return lowOrZero(z, ok), ok && z.Sign() >= 0 && z.BitLen() <= 64
	}
	for len(tokens) > 0 {
		if len(tokens) < 2 {
			return nil
		}
		key, val, ok := tokens[0], tokens[1], true
		tokens = tokens[2:]
		switch key {
		case "poly":
			poly = val
		case "init":
			init, ok = number(val)
		case "xout":
			xorOut, ok = number(val)
		case "not":
			reflect, ok = false, val == "rev"
		default:
			return nil
		}
		if !ok {
			return nil
		}
	}
	digits, found := strings.CutPrefix(poly, "0x1") // the top bit says the width
	width := 4 * len(digits)
	if !found || width != 8 && width != 16 && width != 32 && width != 64 {
		return nil
	}
	p, ok := number(digits)
	if !ok {
		return nil
	}
	mask := lastMask(width)
	return newCRC(width, p, init&mask, xorOut&mask, reflect)
}

func lowOrZero(z *big.Int, ok bool) uint64 {
	if !ok {
		return 0
	}
	return lowWord(z)
}

// csum16 is the Internet checksum (RFC 1071).
func csum16(b []byte) uint64 { return foldSum(sumWords(0, b)) }

func sumWords(sum uint64, b []byte) uint64 {
	for len(b) >= 8 {
		v := binary.BigEndian.Uint64(b)
		sum += v>>32 + v&0xffffffff
		b = b[8:]
	}
	if len(b) >= 4 {
		sum += uint64(binary.BigEndian.Uint32(b))
		b = b[4:]
	}
	if len(b) >= 2 {
		sum += uint64(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) > 0 {
		sum += uint64(b[0]) << 8
	}
	return sum
}

func foldSum(sum uint64) uint64 {
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

// identity is the first eight bytes as a number.
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

// maxRobin bounds what round_robin_consistent remembers; beyond it new inputs start over.
const maxRobin = 1 << 16

// robin is the state of one round-robin calculation of an instance; mu guards it.
type robin struct {
	mu   sync.Mutex
	n    uint64
	seen map[string]uint64
}

func (r *robin) next(algo string, b []byte) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if algo == "round_robin_consistent" {
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
