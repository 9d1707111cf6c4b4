package dataplane

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tests/dataplane/target"
)

// frame describes a frame of IPv4, or of IPv6 if its addresses are. gopacket builds it, so that the tests do not
// share errors with Headgate's own codecs.
type frame struct {
	inPort           uint32 // the port of the sending host
	src, dst         netip.Addr
	srcPort, dstPort uint16
	ttl, dscp, ecn   uint8
	tcp              bool
	udpChecksum      bool
	flowLabel        uint32 // of IPv6
	payload          []byte
}

// newFrame is a UDP frame of 100 bytes from the host behind one port to the host behind another.
func newFrame(from, to uint32) frame {
	return frame{
		inPort: from, src: address(from, 1), dst: address(to, 1), srcPort: 1000, dstPort: 2000,
		ttl: 64, payload: make([]byte, 100-14-20-8),
	}
}

// frame is newFrame, with IPv6 if the rig uses IPv6.
func (r *rig) frame(from, to uint32) frame { return frameOf(r.six, from, to) }

func frameOf(six bool, from, to uint32) frame {
	f := newFrame(from, to)
	if six {
		f.src, f.dst = addressIPv6(from, 1), addressIPv6(to, 1)
		return f.long(100)
	}
	return f
}

// long gives the frame a length in bytes.
func (f frame) long(bytes int) frame {
	f.payload = make([]byte, bytes-14-20-8)
	if f.src.Is6() {
		f.payload = make([]byte, bytes-14-40-8)
	}
	return f
}

// l4 returns the offset of the part behind IP's header.
func l4(frame []byte) int {
	if binary.BigEndian.Uint16(frame[12:]) == ids.EtherTypeIPv6 {
		return 14 + 40
	}
	return 14 + 20
}

// shim adds a maxQD shim and, behind it, the transport header of our hosts.
func (f frame) shim(version uint8, echo bool, maxQD uint16) frame {
	f.dstPort = ids.UDPPortMaxQD
	first := version << 4
	if echo {
		first |= 0x08
	}
	f.payload = bytes.Clone(f.payload)
	f.payload[0], f.payload[1] = first, ids.MaxQDNextBTH
	binary.BigEndian.PutUint16(f.payload[2:], maxQD)
	binary.BigEndian.PutUint16(f.payload[6:], ids.DefaultPartitionKey)
	return f
}

func (f frame) bytes(t testing.TB) []byte {
	t.Helper()
	eth := &layers.Ethernet{SrcMAC: hostMAC(f.inPort), DstMAC: switchMAC(f.inPort), EthernetType: layers.EthernetTypeIPv4}
	protocol := layers.IPProtocolUDP
	if f.tcp {
		protocol = layers.IPProtocolTCP
	}
	var ip interface {
		gopacket.NetworkLayer
		gopacket.SerializableLayer
	} = &layers.IPv4{
		Version: 4, TTL: f.ttl, TOS: f.dscp<<2 | f.ecn, Protocol: protocol,
		SrcIP: f.src.AsSlice(), DstIP: f.dst.AsSlice(),
	}
	if f.src.Is6() {
		eth.EthernetType = layers.EthernetTypeIPv6
		ip = &layers.IPv6{
			Version: 6, HopLimit: f.ttl, TrafficClass: f.dscp<<2 | f.ecn, FlowLabel: f.flowLabel, NextHeader: protocol,
			SrcIP: f.src.AsSlice(), DstIP: f.dst.AsSlice(),
		}
	}
	var segment gopacket.SerializableLayer
	length := len(f.payload) + 8
	if f.tcp {
		tcp := &layers.TCP{SrcPort: layers.TCPPort(f.srcPort), DstPort: layers.TCPPort(f.dstPort), SYN: true}
		must(t, tcp.SetNetworkLayerForChecksum(ip))
		segment, length = tcp, len(f.payload)+20
	} else {
		udp := &layers.UDP{SrcPort: layers.UDPPort(f.srcPort), DstPort: layers.UDPPort(f.dstPort)}
		must(t, udp.SetNetworkLayerForChecksum(ip))
		segment = udp
	}
	buf := gopacket.NewSerializeBuffer()
	must(t, gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
		eth, ip, segment, gopacket.Payload(f.payload)))
	b := buf.Bytes()
	at := l4(b)
	b = b[:at+length] // without padding
	if !f.tcp && !f.udpChecksum {
		b[at+6], b[at+7] = 0, 0
	}
	return b
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// decoded is a frame that left a port.
type decoded struct {
	port uint32
	data []byte
	eth  *layers.Ethernet
	ip   *layers.IPv4
	ip6  *layers.IPv6
	udp  *layers.UDP
}

// decode parses a frame and checks its IPv4 checksum.
func decode(t testing.TB, f target.Frame) decoded {
	t.Helper()
	d := decoded{port: f.Port, data: f.Data}
	p := gopacket.NewPacket(f.Data, layers.LayerTypeEthernet, gopacket.NoCopy)
	d.eth, _ = p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	d.ip, _ = p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
	d.ip6, _ = p.Layer(layers.LayerTypeIPv6).(*layers.IPv6)
	d.udp, _ = p.Layer(layers.LayerTypeUDP).(*layers.UDP)
	if d.ip != nil && d.ip6 == nil && sum(f.Data[14:34]) != 0xffff {
		t.Errorf("port %d: IPv4 checksum of %x is wrong", f.Port, f.Data)
	}
	return d
}

// trafficClass returns DSCP and ECN.
func (d decoded) trafficClass() uint8 {
	if d.ip6 != nil {
		return d.ip6.TrafficClass
	}
	return d.ip.TOS
}

// ecn returns the ECN field.
func (d decoded) ecn() uint8 { return d.trafficClass() & 3 }

// source returns the source's address.
func (d decoded) source() net.IP {
	if d.ip6 != nil {
		return d.ip6.SrcIP
	}
	return d.ip.SrcIP.To4()
}

// maxQD returns the value of the shim.
func (d decoded) maxQD() uint16 { return binary.BigEndian.Uint16(d.udp.Payload[2:]) }

// sum is the one's complement sum of RFC 1071; 0xffff over a correct header.
func sum(b []byte) uint16 {
	var s uint32
	for i := 0; i+1 < len(b); i += 2 {
		s += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for s>>16 != 0 {
		s = s&0xffff + s>>16
	}
	return uint16(s)
}

// repeat returns n copies of a frame with source ports from first on.
func repeat(t testing.TB, f frame, n int, first uint16) [][]byte {
	t.Helper()
	frames := make([][]byte, n)
	for i := range frames {
		f.srcPort = first + uint16(i)
		frames[i] = f.bytes(t)
	}
	return frames
}
