package symbolic

import (
	"encoding/binary"
	"net/netip"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
)

// gateways are the addresses that the gateway answers for: its own, and prefixes as a proxy.
func gateways() []*p4v1.Update {
	const mac = 0x020000000999
	return []*p4v1.Update{
		p4rtmsg.Insert(p4rtmsg.Entry(ids.TableGatewayIPv4, 0, p4rtmsg.Do(ids.ActionOwnIPv4, mac), p4rtmsg.LPM(ids.FieldGatewayIPv4Addr, host(99, 1).AsSlice(), 32))),
		p4rtmsg.Insert(p4rtmsg.Entry(ids.TableGatewayIPv4, 0, p4rtmsg.Do(ids.ActionProxyIPv4, mac), p4rtmsg.LPM(ids.FieldGatewayIPv4Addr, host(77, 0).AsSlice(), 24))),
		p4rtmsg.Insert(p4rtmsg.Entry(ids.TableGatewayIPv6, 0, p4rtmsg.Do(ids.ActionOwnIPv6, mac), p4rtmsg.LPM(ids.FieldGatewayIPv6Addr, hostIPv6(99, 1).AsSlice(), 128))),
		p4rtmsg.Insert(p4rtmsg.Entry(ids.TableGatewayIPv6, 0, p4rtmsg.Do(ids.ActionProxyIPv6, mac), p4rtmsg.LPM(ids.FieldGatewayIPv6Addr, hostIPv6(77, 0).AsSlice(), 64))),
	}
}

// request is a frame that asks the gateway, or nearly does: ARP, a neighbour solicitation, or an echo request.
func (b *both) request(in uint32) []byte {
	f := make([]byte, 2*b.cell)
	copy(f, []byte{2, 0, 0, 0, 1, byte(in), 2, 0, 0, 0, 2, byte(in)})
	net := []byte{99, 99, 77, 50}[b.rng.IntN(4)]
	sender, target := hostIPv6(in, b.rng.Uint32N(hosts)), hostIPv6(uint32(net), 1)
	switch b.rng.IntN(12) {
	case 0:
		sender = netip.IPv6Unspecified()
	case 1:
		sender = target
	}
	odd := func(data []byte, n int) { // changes one of the first n bytes
		if b.rng.IntN(4) == 0 {
			data[b.rng.IntN(n)] ^= 1 << b.rng.IntN(8)
		}
	}
	switch b.rng.IntN(4) {
	case 0:
		binary.BigEndian.PutUint16(f[12:], ids.EtherTypeARP)
		arp := f[14:]
		copy(arp, []byte{0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 2, byte(in)})
		odd(arp, 8)
		copy(arp[14:], narrow(sender))
		copy(arp[24:], narrow(target))
	case 1:
		b.headerIPv6(f, in, sender, target)
		ip := f[14:]
		ip[7] = 255
		odd(ip[7:], 1)
		length := []byte{24, 32}[b.rng.IntN(2)]
		binary.BigEndian.PutUint16(ip[4:], uint16(length))
		icmp := ip[40:][:length]
		icmp[0] = ids.ICMPv6NeighborSolicitation
		odd(icmp, 2)
		a := target.As16()
		copy(icmp[8:], a[:])
		if length == 32 {
			copy(icmp[24:], []byte{1, 1, 2, 0, 0, 0, 2, byte(in)})
			odd(icmp[24:], 2)
		}
		pseudo := append(append([]byte{}, ip[8:40]...), 0, length, 0, ids.IPProtocolICMPv6)
		binary.BigEndian.PutUint16(icmp[2:], internet(append(pseudo, icmp...)))
	case 2:
		binary.BigEndian.PutUint16(f[12:], ids.EtherTypeIPv4)
		ip := f[14:]
		copy(ip, []byte{0x45, 9 << 2, 0, 0, 0, 0, 0, 0, 9, ids.IPProtocolICMP})
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
		copy(ip[12:], narrow(hostIPv6(in, 1)))
		copy(ip[16:], narrow(target))
		b.echo(ip[20:], ids.ICMPEcho)
		odd(ip[20:], 2)
		binary.BigEndian.PutUint16(ip[10:], internet(ip[:20]))
	case 3:
		b.headerIPv6(f, in, hostIPv6(in, 1), target)
		b.echo(f[54:], ids.ICMPv6Echo)
		odd(f[54:], 2)
	}
	return f
}

// narrow returns a host's IPv4 address for its IPv6 address.
func narrow(a netip.Addr) []byte {
	if a.IsUnspecified() {
		return make([]byte, 4)
	}
	b := a.As16()
	return host(uint32(b[7]), uint32(b[15])).AsSlice()
}

// headerIPv6 writes the header of ICMPv6.
func (b *both) headerIPv6(f []byte, in uint32, src, dst netip.Addr) {
	binary.BigEndian.PutUint16(f[12:], ids.EtherTypeIPv6)
	ip := f[14:]
	binary.BigEndian.PutUint32(ip, 6<<28|9<<22)
	binary.BigEndian.PutUint16(ip[4:], uint16(len(ip)-40))
	ip[6], ip[7] = ids.IPProtocolICMPv6, 9
	copy(ip[8:], src.AsSlice())
	copy(ip[24:], dst.AsSlice())
}

// echo writes an echo request whose checksum is close to a carry.
func (b *both) echo(icmp []byte, kind byte) {
	icmp[0] = kind
	binary.BigEndian.PutUint16(icmp[2:], []uint16{0, 0xff, 0x100, 0x101, 0xf7ff, 0xf800, 0xffff, uint16(b.rng.Uint32())}[b.rng.IntN(8)])
}

// tcp writes a TCP header with options, perhaps with the maxQD option among them.
func (b *both) tcp(segment []byte) {
	const timestamps, sack, maxqd = ids.TCPTimestampsHead, ids.TCPSackHead, ids.TCPMaxQDHead
	layouts := [][]uint32{ // heads, each followed by 8 bytes; 0 is a block of SACK
		{maxqd}, {timestamps, maxqd}, {sack + 8, maxqd}, {sack + 16, 0, maxqd}, {timestamps, sack + 8, maxqd},
		{sack + 24, 0, 0, maxqd}, {timestamps, sack + 16, 0, maxqd}, {timestamps}, {},
	}
	options := segment[20:20]
	for _, head := range layouts[b.rng.IntN(len(layouts))] {
		if b.rng.IntN(12) == 0 {
			head ^= 1 << b.rng.IntN(32)
		}
		if head != 0 {
			options = binary.BigEndian.AppendUint32(options, head)
		}
		options = binary.BigEndian.AppendUint32(options, []uint32{0, b.rng.Uint32()}[b.rng.IntN(2)]&0x00ffffff)
		if head != maxqd {
			options = binary.BigEndian.AppendUint32(options, b.rng.Uint32())
		}
	}
	segment[12] = byte(5+len(options)/4) << 4
}
