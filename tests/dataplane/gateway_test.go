package dataplane

import (
	"bytes"
	"net"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/headgate/headgate/p4src/ids"
)

var gatewayMAC = net.HardwareAddr{2, 0, 0, 0, 0, 0xfe}

// withGateway gives the switch its own addresses, and makes it a proxy for a prefix of each IP version.
func withGateway(r *rig) (ipv4, ipv6 netip.Addr) {
	ipv4, ipv6 = netip.MustParseAddr("169.254.1.1"), netip.MustParseAddr("fe80::1")
	r.write(
		answerFor(netip.PrefixFrom(ipv4, 32), true, gatewayMAC), answerFor(netip.MustParsePrefix("10.0.0.0/16"), false, gatewayMAC),
		answerFor(netip.PrefixFrom(ipv6, 128), true, gatewayMAC), answerFor(netip.MustParsePrefix("2001:db8::/32"), false, gatewayMAC),
	)
	return ipv4, ipv6
}

func serialize(r *rig, l ...gopacket.SerializableLayer) []byte {
	r.Helper()
	buf := gopacket.NewSerializeBuffer()
	must(r.T, gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, l...))
	return buf.Bytes()
}

// answered sends a frame to port 1 and returns the answer. The test fails if there is an answer and none is
// expected, or the reverse.
func answered(r *rig, what string, frame []byte, want bool) []byte {
	r.Helper()
	r.send(1, frame)
	if !want {
		r.silent()
		return nil
	}
	got := r.receive(1, 1)[0].data
	if eth := [12]byte(got); [6]byte(eth[:6]) != [6]byte(hostMAC(1)) || [6]byte(eth[6:]) != [6]byte(gatewayMAC) {
		r.Errorf("%s: answered from %x to %x", what, eth[6:], eth[:6])
	}
	return got
}

func testGatewayARP(r *rig) {
	gateway, _ := withGateway(r)
	broadcast := net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	for _, tt := range []struct {
		name           string
		operation      uint16
		sender, target netip.Addr
		change         func(*layers.ARP)
		want           bool
	}{
		{"gateway", 1, address(1, 1), gateway, nil, true},
		{"another host", 1, address(1, 1), address(2, 1), nil, true},
		{"what nobody has", 1, address(1, 1), netip.MustParseAddr("192.0.2.1"), nil, false},
		{"reply", 2, address(1, 1), gateway, nil, false},
		{"probe", 1, netip.IPv4Unspecified(), address(1, 1), nil, false},
		{"announcement", 1, address(1, 1), address(1, 1), nil, false},
		{"hardware", 1, address(1, 1), gateway, func(a *layers.ARP) { a.AddrType = 6 }, false},
		{"protocol", 1, address(1, 1), gateway, func(a *layers.ARP) { a.Protocol = layers.EthernetTypeIPv6 }, false},
	} {
		arp := &layers.ARP{
			AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: tt.operation,
			SourceHwAddress: hostMAC(1), SourceProtAddress: tt.sender.AsSlice(), DstHwAddress: make([]byte, 6), DstProtAddress: tt.target.AsSlice(),
		}
		if tt.change != nil {
			tt.change(arp)
		}
		request := serialize(r, &layers.Ethernet{SrcMAC: hostMAC(1), DstMAC: broadcast, EthernetType: layers.EthernetTypeARP}, arp)
		got := answered(r, tt.name, request, tt.want)
		if !tt.want {
			continue
		}
		reply, _ := gopacket.NewPacket(got, layers.LayerTypeEthernet, gopacket.Default).Layer(layers.LayerTypeARP).(*layers.ARP)
		if reply == nil || reply.Operation != 2 || !bytes.Equal(reply.SourceHwAddress, gatewayMAC) || !bytes.Equal(reply.SourceProtAddress, tt.target.AsSlice()) ||
			!bytes.Equal(reply.DstHwAddress, hostMAC(1)) || !bytes.Equal(reply.DstProtAddress, tt.sender.AsSlice()) || len(got) != len(request) {
			r.Errorf("%s: answered %x", tt.name, got)
		}
	}
	r.noDropsBut(ids.DropNotIPv4)
}

func testGatewayNeighbour(r *rig) {
	_, gateway := withGateway(r)
	host := netip.MustParseAddr("fe80::200:ff:fe00:101")
	sourceMAC := layers.ICMPv6Options{{Type: layers.ICMPv6OptSourceAddress, Data: hostMAC(1)}}
	const router, solicited, override = 0x80, 0x40, 0x20
	for _, tt := range []struct {
		name           string
		source, target netip.Addr
		options        layers.ICMPv6Options
		change         func(frame []byte) []byte
		flags          uint8 // of the answer, 0 for no answer
	}{
		{"gateway", host, gateway, sourceMAC, nil, router | solicited | override},
		{"without an option", host, gateway, nil, nil, router | solicited | override},
		{"another host", addressIPv6(1, 1), addressIPv6(2, 1), sourceMAC, nil, solicited},
		{"what nobody has", host, netip.MustParseAddr("2001:dead::1"), sourceMAC, nil, 0},
		{"is the address free", netip.IPv6Unspecified(), addressIPv6(1, 1), nil, nil, 0},
		{"its own address", addressIPv6(1, 1), addressIPv6(1, 1), sourceMAC, nil, 0},
		{"from beyond a router", host, gateway, sourceMAC, func(f []byte) []byte { f[hopLimitAt] = 254; return f }, 0},
		{"wrong checksum", host, gateway, sourceMAC, func(f []byte) []byte { f[56] ^= 1; return f }, 0},
		{"wrong checksum, without an option", host, gateway, nil, func(f []byte) []byte { f[56] ^= 1; return f }, 0},
		{"nonce", host, gateway, layers.ICMPv6Options{{Type: 14, Data: make([]byte, 6)}}, nil, 0},
	} {
		ip := &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocolICMPv6, SrcIP: tt.source.AsSlice(), DstIP: net.ParseIP("ff02::1:ff00:1")}
		icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeNeighborSolicitation, 0)}
		must(r.T, icmp.SetNetworkLayerForChecksum(ip))
		request := serialize(r, &layers.Ethernet{SrcMAC: hostMAC(1), DstMAC: net.HardwareAddr{0x33, 0x33, 0xff, 0, 0, 1}, EthernetType: layers.EthernetTypeIPv6},
			ip, icmp, &layers.ICMPv6NeighborSolicitation{TargetAddress: tt.target.AsSlice(), Options: tt.options})
		if tt.change != nil {
			request = tt.change(request)
		}
		got := answered(r, tt.name, request, tt.flags != 0)
		if tt.flags == 0 {
			continue
		}
		p := gopacket.NewPacket(got, layers.LayerTypeEthernet, gopacket.Default)
		ip, _ = p.Layer(layers.LayerTypeIPv6).(*layers.IPv6)
		na, _ := p.Layer(layers.LayerTypeICMPv6NeighborAdvertisement).(*layers.ICMPv6NeighborAdvertisement)
		if na == nil || na.Flags != tt.flags || !na.TargetAddress.Equal(tt.target.AsSlice()) || len(na.Options) != 1 ||
			na.Options[0].Type != layers.ICMPv6OptTargetAddress || !bytes.Equal(na.Options[0].Data, gatewayMAC) {
			r.Errorf("%s: answered %x", tt.name, got)
			continue
		}
		if ip.HopLimit != 255 || !ip.SrcIP.Equal(tt.target.AsSlice()) || !ip.DstIP.Equal(tt.source.AsSlice()) || len(got) != 14+40+32 {
			r.Errorf("%s: answered by %+v", tt.name, ip)
		}
		checkICMPv6(r, tt.name, got)
	}
	r.noDropsBut(ids.DropLinkScope)
}

// checkICMPv6 checks the checksum over the pseudo-header of RFC 8200 §8.1.
func checkICMPv6(r *rig, what string, frame []byte) {
	r.Helper()
	payload := frame[54:]
	pseudo := append(bytes.Clone(frame[14+8:54]), 0, 0, 0, byte(len(payload)), 0, 0, 0, 58)
	if sum(append(pseudo, payload...)) != 0xffff {
		r.Errorf("%s: the ICMPv6 checksum of %x is wrong", what, frame)
	}
}

func testGatewayEcho(r *rig) {
	ipv4, ipv6 := withGateway(r)
	eth := func(kind layers.EthernetType) *layers.Ethernet {
		return &layers.Ethernet{SrcMAC: hostMAC(1), DstMAC: gatewayMAC, EthernetType: kind}
	}
	payload := gopacket.Payload(bytes.Repeat([]byte("ping"), 14))
	for i := range 300 { // sums with and without a carry
		seq := uint16(i * 223)
		four := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolICMPv4, SrcIP: address(1, 1).AsSlice(), DstIP: ipv4.AsSlice()}
		request := serialize(r, eth(layers.EthernetTypeIPv4), four,
			&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeEchoRequest, 0), Id: 7, Seq: seq}, payload)
		got := answered(r, "IPv4", request, true)
		want := bytes.Clone(got)
		if got[34] != 0 || sum(got[34:]) != 0xffff || !bytes.Equal(got[26:34], append(ipv4.AsSlice(), address(1, 1).AsSlice()...)) || !bytes.Equal(got[38:], request[38:]) {
			r.Fatalf("an echo request %x is answered with %x", request, want)
		}
		source := netip.MustParseAddr("fe80::200:ff:fe00:101")
		six := &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocolICMPv6, SrcIP: source.AsSlice(), DstIP: ipv6.AsSlice()}
		icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeEchoRequest, 0)}
		must(r.T, icmp.SetNetworkLayerForChecksum(six))
		request = serialize(r, eth(layers.EthernetTypeIPv6), six, icmp, &layers.ICMPv6Echo{Identifier: 7, SeqNumber: seq}, payload)
		got = answered(r, "IPv6", request, true)
		if got[54] != 129 || !bytes.Equal(got[22:54], append(ipv6.AsSlice(), source.AsSlice()...)) || !bytes.Equal(got[58:], request[58:]) {
			r.Fatalf("an echo request %x is answered with %x", request, got)
		}
		checkICMPv6(r, "echo", got)
	}
	// Another device answers for an address for which the switch is only a proxy.
	far := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolICMPv4, SrcIP: address(1, 1).AsSlice(), DstIP: address(2, 1).AsSlice()}
	r.send(1, serialize(r, eth(layers.EthernetTypeIPv4), far, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeEchoRequest, 0)}, payload))
	if got := r.receive(2, 1)[0]; got.data[34] != 8 {
		r.Errorf("a ping of another host leaves as %x", got.data)
	}
	r.noDropsBut()
}
