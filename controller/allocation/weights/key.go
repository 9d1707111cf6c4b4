package weights

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"strings"
)

// Key names a flow by its five-tuple; the protocol is UDP. Addresses are of one version of IP, ports 1 to
// 65535. It has 36 bytes and no pointer, of the 64 of two netip.AddrPort: MaxFlows of them are kept twice.
type Key struct {
	src, dst end
}

type end struct {
	addr [16]byte // IPv4 mapped to IPv6
	port uint16
}

func (e end) addrPort() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(e.addr).Unmap(), e.port)
}

// Src returns the source's address and port.
func (k Key) Src() netip.AddrPort { return k.src.addrPort() }

// Dst returns the destination's address and port.
func (k Key) Dst() netip.AddrPort { return k.dst.addrPort() }

// NewKey checks the four parts of a flow's name. Its error is an *InvalidError whose field is
// src_ipv4, dst_ipv4, src_port or dst_port.
func NewKey(src, dst string, srcPort, dstPort uint32) (Key, error) {
	s, err := address("src_ipv4", src)
	if err != nil {
		return Key{}, err
	}
	d, err := address("dst_ipv4", dst)
	if err != nil {
		return Key{}, err
	}
	if s.BitLen() != d.BitLen() {
		return Key{}, &InvalidError{Field: "dst_ipv4", Value: fmt.Sprintf("%q", dst), Allowed: fmt.Sprintf("an address of the version of IP that the source's is of, %v", s)}
	}
	for _, p := range []struct {
		field string
		port  uint32
	}{{"src_port", srcPort}, {"dst_port", dstPort}} {
		if p.port == 0 || p.port > 65535 {
			return Key{}, &InvalidError{Field: p.field, Value: fmt.Sprint(p.port), Allowed: "a UDP port from 1 to 65535"}
		}
	}
	return Key{src: end{s.As16(), uint16(srcPort)}, dst: end{d.As16(), uint16(dstPort)}}, nil
}

func address(field, text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Is4In6() || a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return a, &InvalidError{Field: field, Value: fmt.Sprintf("%q", text), Allowed: "a unicast address such as 10.0.0.1 or 2001:db8::1"}
	}
	return a, nil
}

// KeyForm is how people write a flow.
const KeyForm = "SRC:SPORT,DST:DPORT such as 10.0.0.1:1001,10.0.0.2:50151"

// ParseKey reads what String writes; blanks around the two ends are fine.
func ParseKey(text string) (Key, error) {
	bad := &InvalidError{Field: "flow", Value: fmt.Sprintf("%q", text), Allowed: KeyForm}
	src, dst, ok := strings.Cut(text, ",")
	if !ok {
		return Key{}, bad
	}
	ends := [2]netip.AddrPort{}
	for i, s := range []string{src, dst} {
		ap, err := netip.ParseAddrPort(strings.TrimSpace(s))
		if err != nil {
			return Key{}, bad
		}
		ends[i] = ap
	}
	k, err := NewKey(ends[0].Addr().String(), ends[1].Addr().String(), uint32(ends[0].Port()), uint32(ends[1].Port()))
	if err != nil {
		return Key{}, fmt.Errorf("flow %q: %w", text, err)
	}
	return k, nil
}

// String writes the flow as SRC:SPORT,DST:DPORT; the zero Key, which is no flow, as "".
func (k Key) String() string {
	if k == (Key{}) {
		return ""
	}
	return k.Src().String() + "," + k.Dst().String()
}

// MarshalText writes the flow as String does.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (k *Key) UnmarshalText(text []byte) (err error) {
	*k = Key{}
	if len(text) > 0 {
		*k, err = ParseKey(string(text))
	}
	return err
}

// Compare orders keys by source, source port, destination, destination port.
func (k Key) Compare(o Key) int {
	return cmp.Or(k.src.compare(o.src), k.dst.compare(o.dst))
}

func (e end) compare(o end) int {
	return cmp.Or(bytes.Compare(e.addr[:], o.addr[:]), cmp.Compare(e.port, o.port))
}
