package bmv2

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/encoding/prototext"

	feature "github.com/headgate/headgate/controller/feature/buffer"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tables/buffer"
	"github.com/headgate/headgate/tables/red"
	"github.com/headgate/headgate/tests/dataplane/control"
)

// ports is the number of the switches' ports; packets arrive on all of them.
const ports = 4

// routes is the number of prefixes in the tables, each behind one of the ports.
const routes = 1000

// hops is the number of next hops of the plain router.
const hops = 64

// program is a P4 program with its entries and packets.
type program struct {
	name    string
	info    *p4configv1.P4Info
	json    []byte
	entries []*p4v1.Update
	frame   func(r *rand.Rand, port, size int) []byte
}

func loadProgram(t *testing.T, name string) *program {
	t.Helper()
	p := &program{name: name, info: new(p4configv1.P4Info)}
	var info []byte
	var err error
	switch name {
	case "l3":
		info, err = os.ReadFile("testdata/l3.p4info.txtpb")
		must(t, err)
		p.json, err = os.ReadFile("../../../softswitch/engine/testdata/l3.json")
		must(t, err)
		p.frame = udpFrame
	case "tables":
		info, err = os.ReadFile("testdata/tables.p4info.txtpb")
		must(t, err)
		p.json, err = os.ReadFile("testdata/tables.json")
		must(t, err)
	case "headgate":
		info, p.json = p4src.P4Info, p4src.JSON()
		p.frame, p.entries = shimFrame, headgateEntries()
	default:
		t.Fatalf("-programs %q: want l3, headgate or tables", name)
	}
	must(t, prototext.Unmarshal(info, p.info))
	if name == "l3" {
		p.entries, err = l3Entries(p.info)
		must(t, err)
	}
	return p
}

// prefix is the network of route i.
func prefix(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
}

func mac(kind, i int) net.HardwareAddr {
	return net.HardwareAddr{2, 0, 0, byte(kind), byte(i >> 8), byte(i)}
}

// headgateEntries are the entries that the controller writes: classes, groups of four next hops, limits and
// marking curves of every queue.
func headgateEntries() []*p4v1.Update {
	all := []*p4v1.Update{control.PollSession(), control.Scale(0)}
	for dscp := range uint64(64) {
		all = append(all, control.Class(dscp, dscp/8, dscp/8))
	}
	for m := uint32(1); m <= 16; m++ {
		all = append(all, control.Member(m, m%ports+1, mac(1, int(m)), mac(2, int(m))))
	}
	for g := uint32(1); g <= 16; g++ {
		var w []control.Weight
		for k := range uint32(4) {
			w = append(w, control.Weight{Member: (g+k)%16 + 1, Weight: 1})
		}
		all = append(all, control.Group(g, w...))
	}
	for i := range routes {
		all = append(all, control.Route(prefix(i), uint32(i%16+1)))
	}
	for port := uint32(1); port <= ports; port++ {
		for q := range uint64(ids.QueuesPerPort) {
			all = append(all, control.QueueLimit(port, q, 1<<31))
		}
	}
	all = append(all, control.PuntEtherType(0x88cc, 2))
	for q := range uint64(ids.QueuesPerPort) {
		all = append(all, control.Marking(q, []red.Entry{{Low: 1 << 16, High: 1<<17 - 1, P: 655}, {Low: 1 << 17, High: 1<<18 - 1, P: 6553}, {Low: 1 << 18, High: control.Depth.Max, P: 65536}})...)
	}
	return all
}

// l3Entries are the plain router's entries: routes to next hops to ports.
func l3Entries(info *p4configv1.P4Info) (all []*p4v1.Update, err error) {
	p, err := pipeline.New(info, nil)
	if err != nil {
		return nil, err
	}
	add := func(table string, m buffer.Match, action string, params ...uint64) {
		e, failed := feature.Entity(p, buffer.Entry{Table: table, Match: []buffer.Match{m}, Action: buffer.Action{Name: action, Params: params}})
		all, err = append(all, p4rtmsg.Insert(e)), errors.Join(err, failed)
	}
	for i := range hops {
		add("I.next_hops", buffer.Match{Field: "m.next_hop", Value: uint64(i), Prefix: buffer.Exact},
			"I.forward", uint64(i%ports+1), macNumber(1, i), macNumber(2, i))
	}
	for i := range routes {
		dst := prefix(i).Addr().As4()
		add("I.routes", buffer.Match{Field: "hdr.ipv4.dst", Value: uint64(binary.BigEndian.Uint32(dst[:])), Prefix: 24},
			"I.set_next_hop", uint64(i%hops))
	}
	return all, err
}

func macNumber(kind, i int) uint64 {
	return binary.BigEndian.Uint64(append([]byte{0, 0}, mac(kind, i)...))
}

// ipFrame is a packet to a host behind one of the routes. Its UDP datagram has no checksum and begins with the
// given bytes.
func ipFrame(r *rand.Rand, port, size int, tos uint8, dstPort uint16, begin ...byte) []byte {
	dst := prefix(r.IntN(routes)).Addr().As4()
	dst[3] = byte(1 + r.IntN(254))
	ip := &layers.IPv4{
		Version: 4, TTL: 64, TOS: tos, Protocol: layers.IPProtocolUDP, DstIP: dst[:],
		SrcIP: net.IP{192, 168, byte(port), byte(r.IntN(256))},
	}
	udp := make([]byte, size-14-20)
	binary.BigEndian.PutUint16(udp, uint16(1024+r.IntN(60000)))
	binary.BigEndian.PutUint16(udp[2:], dstPort)
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	copy(udp[8:], begin)
	b := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
		&layers.Ethernet{DstMAC: mac(1, port), SrcMAC: mac(2, port), EthernetType: layers.EthernetTypeIPv4}, ip, gopacket.Payload(udp))
	if err != nil {
		panic(err) // the layers are valid
	}
	return b.Bytes()
}

func udpFrame(r *rand.Rand, port, size int) []byte { return ipFrame(r, port, size, 0, 9) }

// shimFrame is a frame with a maxQD shim, in one of eight classes, ECN-capable. Every fourth is plain UDP.
func shimFrame(r *rand.Rand, port, size int) []byte {
	const ect0 = 2
	tos := byte(r.IntN(8))<<5 | ect0
	if r.IntN(4) == 0 {
		return ipFrame(r, port, size, tos, 9)
	}
	return ipFrame(r, port, size, tos, ids.UDPPortMaxQD, 1<<4)
}
