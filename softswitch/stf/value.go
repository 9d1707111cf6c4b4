package stf

import (
	"fmt"
	"math/big"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/softswitch/engine"
)

// number reads a number of the given width: 10, 0x0a, 0b1010, or an IPv4, IPv6 or MAC address.
func number(s string, bits int) ([]byte, error) {
	z, ok := new(big.Int).SetString(s, 0)
	if !ok {
		a, err := netip.ParseAddr(s)
		mac := strings.ReplaceAll(s, ":", "")
		switch {
		case err == nil && a.BitLen() == bits:
			return a.AsSlice(), nil
		case bits == 48 && len(mac) == 12:
			z, ok = new(big.Int).SetString(mac, 16)
		case strings.Trim(s, "0123456789") == "" && s != "":
			z, ok = new(big.Int).SetString(s, 10) // leading zeros
		}
	}
	if !ok || z.Sign() < 0 || z.BitLen() > bits {
		return nil, fmt.Errorf("%q is not a number of at most %d bits", s, bits)
	}
	return z.Bytes(), nil
}

// digitBits returns the number of bits per digit of s, and s without its prefix.
func digitBits(s string) (int, string, error) {
	if len(s) > 2 && s[0] == '0' {
		switch s[1] {
		case 'x', 'X':
			return 4, s[2:], nil
		case 'b', 'B':
			return 1, s[2:], nil
		case 'o', 'O':
			return 3, s[2:], nil
		}
	}
	return 0, "", fmt.Errorf("%q needs a prefix 0x, 0b or 0o", s)
}

func pair(value, mask string, bits int) (engine.Match, error) {
	a, err := number(value, bits)
	if err != nil {
		return engine.Match{}, err
	}
	b, err := number(mask, bits)
	return engine.Match{Value: a, Mask: b}, err
}

func match(text string, k engine.KeyField) (engine.Match, error) {
	switch k.Kind {
	case engine.Ternary, engine.Optional:
		return ternary(text, k.Bits)
	case engine.LPM:
		return prefix(text, k.Bits)
	case engine.Range:
		if lo, hi, ok := strings.Cut(text, "->"); ok {
			return pair(lo, hi, k.Bits)
		}
		return pair(text, text, k.Bits)
	}
	v, err := number(text, k.Bits)
	return engine.Match{Value: v}, err
}

// ternary masks the digits that are given and are not *, as bmv2stf.py does.
func ternary(text string, bits int) (engine.Match, error) {
	if v, m, ok := strings.Cut(text, "&&&"); ok {
		return pair(v, m, bits)
	}
	n, digits, err := digitBits(text)
	if err != nil {
		return engine.Match{}, err
	}
	value, mask := new(big.Int), new(big.Int)
	for _, d := range digits {
		value.Lsh(value, uint(n))
		mask.Lsh(mask, uint(n))
		if d == '*' {
			continue
		}
		x, err := strconv.ParseUint(string(d), 1<<n, 8)
		if err != nil {
			return engine.Match{}, fmt.Errorf("%q in %q is not a digit", d, text)
		}
		value.Or(value, big.NewInt(int64(x)))
		mask.Or(mask, big.NewInt(1<<n-1))
	}
	if value.BitLen() > bits {
		return engine.Match{}, fmt.Errorf("%q has more than %d bits", text, bits)
	}
	limit := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	mask.And(mask, limit.Sub(limit, big.NewInt(1)))
	return engine.Match{Value: value.Bytes(), Mask: mask.Bytes()}, nil
}

// prefix reads VALUE/LENGTH, or a value whose trailing * are not part of the prefix.
func prefix(text string, bits int) (engine.Match, error) {
	v, l, ok := strings.Cut(text, "/")
	length := 0
	if ok {
		n, err := strconv.ParseUint(l, 0, 16)
		if err != nil || int(n) > bits {
			return engine.Match{}, fmt.Errorf("prefix length %q, allowed are 0 to %d", l, bits)
		}
		length = int(n)
	} else {
		n, digits, err := digitBits(v)
		if err != nil { // a decimal number is an exact match
			n, digits = 1, strings.Repeat("0", bits)
		}
		length = min(bits, n*(len(digits)-strings.Count(digits, "*")))
		v = strings.ReplaceAll(v, "*", "0")
	}
	b, err := number(v, bits)
	return engine.Match{Value: b, Prefix: length}, err
}

// bySuffix returns the one of names that equals name, or else the only one that ends in it.
func bySuffix(kind, name string, names []string) (string, error) {
	if slices.Contains(names, name) {
		return name, nil
	}
	found := ""
	for _, n := range names {
		if strings.HasSuffix(n, name) {
			if found != "" && found != n {
				return "", fmt.Errorf("%s %q is ambiguous between %q and %q", kind, name, found, n)
			}
			found = n
		}
	}
	if found == "" {
		return "", fmt.Errorf("there is no %s %q", kind, name)
	}
	return found, nil
}

var stackIndex = regexp.MustCompile(`^(.*)\$([0-9]+)(.*)$`)

// keyField returns the index of the key field that a match names, in the ways that bmv2stf.py
// allows.
func keyField(name string, key []engine.KeyField) (int, error) {
	if m := stackIndex.FindStringSubmatch(name); m != nil {
		name = m[1] + "[" + m[2] + "]" + m[3]
	}
	for _, try := range []string{name, name + "$", name + ".$valid$", strings.TrimSuffix(name, "valid") + "$valid$"} {
		for i, k := range key {
			if k.Name == try {
				return i, nil
			}
		}
	}
	for i := len(key) - 1; i >= 0; i-- {
		n := key[i].Name
		if strings.HasSuffix(n, "."+name) || strings.HasSuffix(n, "."+name+"$") || name == "valid" && strings.HasSuffix(n, "$valid$") {
			return i, nil
		}
	}
	return 0, fmt.Errorf("there is no key field %q", name)
}
