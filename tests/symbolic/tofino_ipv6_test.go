package symbolic

import (
	"encoding/binary"
	"net/netip"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
)

func hostIPv6(port, n uint32) netip.Addr {
	return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 7: byte(port), 15: byte(n)})
}

// routeIPv6 leads to the hosts behind a port.
func routeIPv6(port uint32) *p4v1.Update {
	u := route(port)
	e := u.GetEntity().GetTableEntry()
	e.TableId = ids.TableIPv6LPM
	e.Match = []*p4v1.FieldMatch{p4rtmsg.LPM(ids.FieldIPv6LPMDstAddr, hostIPv6(port, 0).AsSlice(), 64)}
	return u
}

// sourceChecks are the source checks of a port: only its own hosts may send.
func sourceChecks(port uint32) []*p4v1.Update {
	four, six := p4rtmsg.Exact(ids.FieldSourceCheckIngressPort, uint64(port)), p4rtmsg.Exact(ids.FieldSourceCheckIPv6IngressPort, uint64(port))
	return []*p4v1.Update{
		p4rtmsg.Insert(p4rtmsg.Entry(ids.TableSourceCheck, 0, p4rtmsg.Do(ids.ActionPermitSource), four, p4rtmsg.LPM(ids.FieldSourceCheckSrcAddr, host(port, 0).AsSlice(), 24))),
		p4rtmsg.Insert(p4rtmsg.Entry(ids.TableSourceCheck, 0, p4rtmsg.Do(ids.ActionRefuseSource), four)),
		p4rtmsg.Insert(p4rtmsg.Entry(ids.TableSourceCheckIPv6, 0, p4rtmsg.Do(ids.ActionPermitSourceIPv6), six, p4rtmsg.LPM(ids.FieldSourceCheckIPv6SrcAddr, hostIPv6(port, 0).AsSlice(), 64))),
		p4rtmsg.Insert(p4rtmsg.Entry(ids.TableSourceCheckIPv6, 0, p4rtmsg.Do(ids.ActionRefuseSourceIPv6), six)),
	}
}

// frameIPv6 turns f into an IPv6 packet, of a kind as in frame.
func (b *both) frameIPv6(f []byte, kind int, in uint32) []byte {
	binary.BigEndian.PutUint16(f[12:], ids.EtherTypeIPv6)
	const header = 40
	if len(f) < 14+header+28 {
		f = append(f, make([]byte, 2*b.cell)...)[:2*b.cell]
	}
	ip := f[14:]
	udp := ip[header:]
	class := uint32(8+b.rng.IntN(ids.QueuesPerPort))<<2 | b.rng.Uint32N(4)
	if in == controllers {
		class &^= 3
	}
	binary.BigEndian.PutUint32(ip, 6<<28|class<<20|b.rng.Uint32N(1<<20))
	binary.BigEndian.PutUint16(ip[4:], uint16(len(udp)))
	ip[6], ip[7] = ids.IPProtocolUDP, byte(min(b.rng.IntN(40), 9))
	src, dst := hostIPv6(in, b.rng.Uint32N(hosts)).As16(), hostIPv6(1+b.rng.Uint32N(ports), b.rng.Uint32N(hosts)).As16()
	if in != controllers && b.rng.IntN(20) == 0 {
		src = hostIPv6(1+b.rng.Uint32N(ports), 1).As16() // perhaps another port's
	}
	linkLocal := [16]byte{0xfe, 0x80, 15: 1}
	binary.BigEndian.PutUint16(udp, 1000+uint16(kind))
	binary.BigEndian.PutUint16(udp[2:], 2000)
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	binary.BigEndian.PutUint16(udp[6:], 0xbeef)
	switch kind {
	case 2:
		dst[7] = 99 // no route
	case 3:
		ip[6] = ids.IPProtocolTCP
		if len(udp) >= 60 {
			b.tcp(udp)
		}
		if b.rng.IntN(3) == 0 {
			binary.BigEndian.PutUint16(ip[4:], uint16(20+b.rng.IntN(min(len(udp)-20, 50))))
		}
	case 4:
		binary.BigEndian.PutUint16(udp[2:], ids.UDPPortRoCE)
	case 5:
		ip[6] = 44 // a fragment header
	case 6:
		ip[6] = ids.IPProtocolICMPv6
	case 7, 8, 9, 10, 11:
		b.shim(udp, kind)
	case 12:
		switch b.rng.IntN(3) {
		case 0:
			src = linkLocal
		case 1:
			dst = linkLocal
		case 2:
			dst = [16]byte{0xff, 2, 15: 1}
		}
	case 13:
		ip[0] ^= byte(16 << b.rng.IntN(4)) // version
	case 14:
		binary.BigEndian.PutUint16(ip[4:], uint16(b.rng.IntN(len(udp)))) // less than the frame's
	case 15:
		binary.BigEndian.PutUint16(udp[4:], uint16(b.rng.IntN([]int{12, 2 * len(udp)}[b.rng.IntN(2)])))
	}
	copy(ip[8:], src[:])
	copy(ip[24:], dst[:])
	return b.cut(f, in, header)
}
