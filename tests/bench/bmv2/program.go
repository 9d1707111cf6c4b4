package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tables/red"
	"github.com/headgate/headgate/tests/dataplane/control"
)

// ports is how many ports the switches have; packets come in on all of them.
const ports = 4

// routes is how many prefixes the tables hold, each behind one of the ports.
const routes = 1000

// program is a P4 program with its entries and packets.
type program struct {
	name    string
	info    *p4configv1.P4Info
	json    []byte
	entries []*p4v1.Update
	frame   func(r *rand.Rand, port, size int) []byte
}

func loadProgram(name string) (*program, error) {
	p := &program{name: name, info: new(p4configv1.P4Info)}
	var info []byte
	var err error
	switch name {
	case "l3":
		if info, err = os.ReadFile("tests/bench/bmv2/testdata/l3.p4info.txtpb"); err != nil {
			return nil, err
		}
		if p.json, err = os.ReadFile("softswitch/engine/testdata/l3.json"); err != nil {
			return nil, err
		}
		p.frame = udpFrame
	case "headgate":
		info, p.json = p4src.P4Info, p4src.JSON
		p.frame = shimFrame
	default:
		return nil, fmt.Errorf("program %q: want l3 or headgate", name)
	}
	if err := prototext.Unmarshal(info, p.info); err != nil {
		return nil, err
	}
	if name == "l3" {
		p.entries, err = l3Entries(p.info)
		return p, err
	}
	p.entries = headgateEntries()
	return p, nil
}

// prefix is the network of route i.
func prefix(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
}

func mac(kind, i int) net.HardwareAddr {
	return net.HardwareAddr{2, 0, 0, byte(kind), byte(i >> 8), byte(i)}
}

// headgateEntries is the pipeline as the controller fills it: classes, groups of four next
// hops, limits and marking curves of every queue.
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
		all = append(all, control.Marking(q, []red.Entry{{Low: 1024, High: 2047, P: 655}, {Low: 2048, High: 4095, P: 6553}, {Low: 4096, High: 65535, P: 65536}})...)
	}
	return all
}

// l3Entries fills the plain router: routes to next hops to ports.
func l3Entries(info *p4configv1.P4Info) ([]*p4v1.Update, error) {
	table, action := map[string]uint32{}, map[string]uint32{}
	for _, t := range info.GetTables() {
		table[t.GetPreamble().GetName()] = t.GetPreamble().GetId()
	}
	for _, a := range info.GetActions() {
		action[a.GetPreamble().GetName()] = a.GetPreamble().GetId()
	}
	number := func(v uint64) []byte {
		b := binary.BigEndian.AppendUint64(nil, v)
		for len(b) > 1 && b[0] == 0 {
			b = b[1:]
		}
		return b
	}
	insert := func(tableName, actionName string, m *p4v1.FieldMatch, args ...[]byte) *p4v1.Update {
		a := &p4v1.Action{ActionId: action[actionName]}
		for i, v := range args {
			a.Params = append(a.Params, &p4v1.Action_Param{ParamId: uint32(i + 1), Value: v})
		}
		return &p4v1.Update{Type: p4v1.Update_INSERT, Entity: &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{
			TableId: table[tableName], Match: []*p4v1.FieldMatch{m},
			Action: &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: a}},
		}}}}
	}
	var all []*p4v1.Update
	const hops = 64
	for i := range hops {
		m := &p4v1.FieldMatch{FieldId: 1, FieldMatchType: &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: number(uint64(i))}}}
		all = append(all, insert("I.next_hops", "I.forward", m, number(uint64(i%ports+1)), mac(1, i), mac(2, i)))
	}
	for i := range routes {
		m := &p4v1.FieldMatch{FieldId: 1, FieldMatchType: &p4v1.FieldMatch_Lpm{
			Lpm: &p4v1.FieldMatch_LPM{Value: prefix(i).Addr().AsSlice(), PrefixLen: 24}}}
		all = append(all, insert("I.routes", "I.set_next_hop", m, number(uint64(i%hops))))
	}
	return all, nil
}

// udpFrame is a packet to a host behind one of the routes.
func udpFrame(r *rand.Rand, port, size int) []byte {
	f := make([]byte, size)
	copy(f, mac(1, port))
	copy(f[6:], mac(2, port))
	f[12] = 8
	h := f[14:34]
	h[0], h[8], h[9] = 0x45, 64, 17
	binary.BigEndian.PutUint16(h[2:], uint16(size-14))
	dst := prefix(r.IntN(routes)).Addr().As4()
	dst[3] = byte(1 + r.IntN(254))
	copy(h[12:], []byte{192, 168, byte(port), byte(r.IntN(256))})
	copy(h[16:], dst[:])
	binary.BigEndian.PutUint16(f[34:], uint16(1024+r.IntN(60000)))
	binary.BigEndian.PutUint16(f[36:], 9)
	binary.BigEndian.PutUint16(f[38:], uint16(size-34))
	checksum(h)
	return f
}

// shimFrame is one with a maxQD shim, in one of eight classes, ECN-capable; every fourth
// is plain UDP.
func shimFrame(r *rand.Rand, port, size int) []byte {
	f := udpFrame(r, port, size)
	h := f[14:34]
	h[1] = byte(r.IntN(8))<<5 | 2
	if r.IntN(4) != 0 {
		binary.BigEndian.PutUint16(f[36:], ids.UDPPortMaxQD)
		f[42], f[43] = 1<<4, 0
	}
	checksum(h)
	return f
}

// checksum fills in an IPv4 header's checksum (RFC 791).
func checksum(h []byte) {
	h[10], h[11] = 0, 0
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(h[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(h[10:], ^uint16(sum))
}
