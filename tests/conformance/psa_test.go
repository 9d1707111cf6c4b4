package conformance

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/tests/dataplane/embedded"
	"github.com/headgate/headgate/tests/dataplane/target"
)

// psaPrograms is the folder of the PSA programs and their compiled forms.
const psaPrograms = "../../../softswitch/arch/psa/testdata/"

// TestPSA drives PSA programs by P4Runtime: every object of their P4Info is written and read, and acts on frames
// between ports. BMv2 has no P4Runtime server for PSA.
func TestPSA(t *testing.T) {
	for name, test := range map[string]func(*rig){
		"Entries": testPSAEntries, "State": testPSAState, "Replication": testPSAReplication,
		"DigestsAndPacketIO": testPSADigestsAndPacketIO, "Push": testPSAPush, "Left": testPSALeft,
	} {
		t.Run(name, func(t *testing.T) {
			s, err := embedded.Start()
			if err != nil {
				t.Fatal(err)
			}
			test(newRig(t, s, quirks{}))
		})
	}
}

// way is a frame of ways.p4: its op chooses the action, and egress writes path.
type way struct {
	dst     uint64
	op, a   byte
	b, c    uint16
	path    uint16
	ingress uint32
}

func (w way) frame() []byte {
	f := append(binary.BigEndian.AppendUint64(nil, w.dst)[2:], w.op, w.a)
	f = binary.BigEndian.AppendUint16(f, w.b)
	f = binary.BigEndian.AppendUint16(f, w.c)
	f = append(f, 0, 0) // sum; egress computes it
	f = binary.BigEndian.AppendUint32(f, w.ingress)
	return binary.BigEndian.AppendUint16(f, w.path)
}

// ways sends a frame to port 1 and checks the frames that leave, in any order, by port.
func (r *rig) ways(sent way, want map[uint32]way) {
	r.Helper()
	r.send(1, sent.frame())
	got := map[uint32][]byte{}
	wanted := map[uint32][]byte{}
	for port, w := range want {
		wanted[port] = w.frame()
		f := r.next()
		f.Data[12], f.Data[13] = 0, 0
		got[f.Port] = f.Data
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		r.Errorf("%+v (-want +got):\n%s", sent, diff)
	}
}

// one reads an entity and checks that it is the only one.
func (r *rig) one(m any) *p4v1.Entity {
	r.Helper()
	all := r.read(p4rtmsg.Entity(m))
	if len(all) != 1 {
		r.Fatalf("read %v: %d entities", m, len(all))
	}
	return all[0]
}

// Values of psa's packet path, as ways.p4 writes them.
const (
	unicast  = 1
	inGroup  = 0x200
	clonedIn = 3
	clonedEg = 4
)

func testPSAEntries(r *rig) {
	p := r.load(psaPrograms + "ways")
	low, high := p.entry("entries", ternary(0x0a0000000000, 0xff0000000000), 10, p.do("set_c", 0x1111)), p.entry("entries", ternary(0x0a0000000001, 0xffffffffffff), 20, p.do("set_c", 0x2222))
	r.write(insert(low), insert(high))
	r.refused(codes.AlreadyExists, insert(high))
	r.refused(codes.InvalidArgument, insert(p.entry("entries", ternary(1, 1), 0, p.do("set_c", 1))))
	r.refused(codes.PermissionDenied, insert(p.entry("ways", exact(99), 0, p.do("to_port")))) // a table of constant entries
	sent := way{dst: 0x0a0000000001, op: 0, a: 3}
	passed := way{dst: sent.dst, op: 0, a: 3, c: 0x2222, path: unicast, ingress: 1}
	r.ways(sent, map[uint32]way{3: passed})
	r.write(remove(&p4v1.TableEntry{TableId: high.TableId, Match: high.Match, Priority: high.Priority}))
	passed.c = 0x1111
	r.ways(sent, map[uint32]way{3: passed})
	r.reads(&p4v1.TableEntry{TableId: p.table("entries")}, low)
	r.write(modify(&p4v1.TableEntry{TableId: p.table("entries"), IsDefaultAction: true, Action: p.do("set_c", 7)}))
	r.write(remove(low))
	passed.c = 7
	r.ways(sent, map[uint32]way{3: passed})
}

func testPSAState(r *rig) {
	p := r.load(psaPrograms + "ways")
	register := func(v uint64) *p4v1.RegisterEntry {
		return &p4v1.RegisterEntry{RegisterId: find(p, p.info.Registers, "totals").Preamble.Id, Index: &p4v1.Index{Index: 3}, Data: bits(v)}
	}
	counter := func(data *p4v1.CounterData) *p4v1.CounterEntry {
		return &p4v1.CounterEntry{CounterId: find(p, p.info.Counters, "seen").Preamble.Id, Index: &p4v1.Index{Index: 3}, Data: data}
	}
	r.write(p4rtmsg.Modify(register(40)), p4rtmsg.Modify(counter(&p4v1.CounterData{PacketCount: 5, ByteCount: 100})))
	sent := way{op: 6, a: 3, b: 2} // adds b to register a, and counts
	r.ways(sent, map[uint32]way{3: {op: 6, a: 3, b: 2, c: 42, path: unicast, ingress: 1}})
	want := register(42)
	if diff := cmp.Diff(p4rtmsg.Entity(want), r.one(&p4v1.RegisterEntry{RegisterId: want.RegisterId, Index: want.Index}), protocmp.Transform()); diff != "" {
		r.Errorf("register (-want +got):\n%s", diff)
	}
	counted := counter(&p4v1.CounterData{PacketCount: 6, ByteCount: 100 + int64(len(sent.frame()))})
	if diff := cmp.Diff(p4rtmsg.Entity(counted), r.one(counter(nil)), protocmp.Transform()); diff != "" {
		r.Errorf("counter (-want +got):\n%s", diff)
	}

	// Meter 1 starts without a rate, so every packet is green. With a burst of one packet, the second is yellow
	// and the third red.
	meter := func(c *p4v1.MeterConfig) *p4v1.MeterEntry {
		return &p4v1.MeterEntry{MeterId: find(p, p.info.Meters, "rate").Preamble.Id, Index: &p4v1.Index{Index: 1}, Config: c}
	}
	colour := func(want uint16) {
		r.Helper()
		r.ways(way{op: 10, a: 2}, map[uint32]way{2: {op: 10, a: 2, b: want, path: unicast, ingress: 1}})
	}
	colour(1)
	colour(1)
	slow := meter(&p4v1.MeterConfig{Cir: 1, Cburst: 1, Pir: 1, Pburst: 2})
	r.write(p4rtmsg.Modify(slow))
	colour(1)
	colour(2)
	colour(3)
	if diff := cmp.Diff(p4rtmsg.Entity(slow), r.one(meter(nil)), protocmp.Transform()); diff != "" {
		r.Errorf("meter (-want +got):\n%s", diff)
	}
}

func testPSAReplication(r *rig) {
	r.load(psaPrograms + "ways")
	group := &p4v1.MulticastGroupEntry{MulticastGroupId: 9, Replicas: replicas(copied{2, 4, 0}, copied{3, 5, 0})}
	r.write(insert(group))
	multicast := func(path uint16) way { return way{op: 2, a: 9, path: path, ingress: 1} }
	r.ways(way{op: 2, a: 9}, map[uint32]way{2: multicast(inGroup | 4), 3: multicast(inGroup | 5)})
	r.write(remove(&p4v1.MulticastGroupEntry{MulticastGroupId: 9}))

	session := func(id uint32) *p4v1.CloneSessionEntry {
		return &p4v1.CloneSessionEntry{SessionId: id, Replicas: replicas(copied{4, 1, 0})}
	}
	// An ingress clone is the frame as it arrived.
	r.write(insert(session(6)))
	r.ways(way{op: 3, a: 6, b: 2}, map[uint32]way{
		2: {op: 3, a: 6, b: 2, c: 0xc0c0, path: unicast, ingress: 1},
		4: {op: 3, a: 6, b: 2, path: clonedIn},
	})
	// An egress clone is the frame as it leaves. The program defines session 7.
	r.write(insert(session(7)))
	sent := way{op: 11, a: 2, path: unicast, ingress: 1}
	cloned := sent
	cloned.path = clonedEg
	r.ways(way{op: 11, a: 2}, map[uint32]way{2: sent, 4: cloned})
	r.write(remove(&p4v1.CloneSessionEntry{SessionId: 7}))
	r.ways(way{op: 11, a: 2}, map[uint32]way{2: sent})
}

func testPSADigestsAndPacketIO(r *rig) {
	p := r.load(psaPrograms + "learn")
	r.write(insert(&p4v1.DigestEntry{DigestId: p.digest("learn"), Config: &p4v1.DigestEntry_Config{MaxListSize: 1}}))
	frame := append([]byte("dddddd"), from(alice)[6:]...)
	in := func(m *p4v1.StreamMessageResponse, port uint64) {
		r.Helper()
		want := &p4v1.PacketIn{Payload: frame, Metadata: []*p4v1.PacketMetadata{{MetadataId: 1, Value: number(port)}}}
		if diff := cmp.Diff(want, m.GetPacket(), protocmp.Transform()); diff != "" {
			r.Errorf("packet-in (-want +got):\n%s", diff)
		}
	}
	learned := func(m *p4v1.StreamMessageResponse, port uint64) {
		r.Helper()
		want := []*p4v1.P4Data{{Data: &p4v1.P4Data_Struct{Struct: &p4v1.P4StructLike{Members: []*p4v1.P4Data{bits(alice), bits(port)}}}}}
		if diff := cmp.Diff(want, m.GetDigest().GetData(), protocmp.Transform()); diff != "" {
			r.Errorf("digest (-want +got):\n%s", diff)
		}
	}
	// A packet's messages arrive in any order.
	both := func(port uint64) {
		r.Helper()
		first, second := r.primary.next(patience), r.primary.next(patience)
		if first.GetDigest() == nil {
			first, second = second, first
		}
		learned(first, port)
		in(second, port)
	}
	r.send(3, frame)
	both(3)

	// An entry sends the frame to the CPU port. PSA's ports have 32 bits.
	route := p.entry("routes", exact(0x646464646464), 0, p.do("to_port", 5))
	r.write(insert(route))
	r.send(4, frame)
	if f := r.next(); f.Port != 5 || string(f.Data) != string(frame) {
		r.Errorf("port %d sent %x", f.Port, f.Data)
	}
	learned(r.primary.next(patience), 4)

	// The program knows the CPU port as PSA_PORT_CPU.
	r.primary.send(packetOut(string(frame), number(6)))
	if f := r.next(); f.Port != 6 || string(f.Data) != string(frame) {
		r.Errorf("port %d sent %x", f.Port, f.Data)
	}
	learned(r.primary.next(patience), 0xfffffffd)

	// A packet may pack several digests.
	r.write(insert(&p4v1.DigestEntry{DigestId: p.digest("alarm"), Config: &p4v1.DigestEntry_Config{MaxListSize: 1}}))
	alarming := bytes.Clone(frame)
	binary.BigEndian.PutUint16(alarming[12:], 0x88b5)
	r.passes(4, alarming, 5, alarming)
	learned(r.primary.next(patience), 4)
	alarm := r.primary.next(patience).GetDigest()
	want := []*p4v1.P4Data{{Data: &p4v1.P4Data_Struct{Struct: &p4v1.P4StructLike{Members: []*p4v1.P4Data{bits(0x646464646464)}}}}}
	if diff := cmp.Diff(want, alarm.GetData(), protocmp.Transform()); diff != "" || alarm.GetDigestId() != p.digest("alarm") {
		r.Errorf("the second digest, %#x (-want +got):\n%s", alarm.GetDigestId(), diff)
	}
}

// testPSAPush: a PSA program replaces a v1model program while the switch runs, and the reverse.
func testPSAPush(r *rig) {
	old := r.load("route")
	for range 2 {
		r.must(r.push(&p4v1.Uint128{Low: 1}, loadProgram(r.T, psaPrograms+"ways")))
		r.ways(way{op: 0, a: 3}, map[uint32]way{3: {op: 0, a: 3, path: unicast, ingress: 1}})
		r.must(r.push(&p4v1.Uint128{Low: 1}, old))
	}
	got, err := r.client.GetForwardingPipelineConfig(r.context(), &p4v1.GetForwardingPipelineConfigRequest{DeviceId: target.DeviceID})
	if arch := got.GetConfig().GetP4Info().GetPkgInfo().GetArch(); err != nil || arch != "v1model" {
		r.Errorf("the switch runs a program for %q, %v", arch, err)
	}
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// testPSALeft: p4c-bm2-psa omits direct counters, action profiles and the names of digests from the compiled program.
// A direct counter, and digests that cannot be distinguished, are refused; the rest of the program works. A program
// whose table has an action profile is refused, because the table could not be programmed.
func testPSALeft(r *rig) {
	p := r.load(psaPrograms + "left")
	e := p.entry("counted", exact(2), 0, p.do("to_port", 5))
	r.write(insert(e))
	frame := append([]byte{0, 0, 0, 0, 0, 2}, from(alice)[6:]...)
	r.passes(1, frame, 5, frame)
	const want = `table "In.counted": it has no direct counter in the program`
	counter := &p4v1.DirectCounterEntry{TableEntry: &p4v1.TableEntry{TableId: e.TableId, Match: e.Match}, Data: &p4v1.CounterData{}}
	if got := details(r.try(modify(counter))); len(got) != 1 || got[0].GetMessage() != want {
		r.Errorf("write of the counter: %v, want %q", got, want)
	}
	stream, err := r.client.Read(r.context(), &p4v1.ReadRequest{DeviceId: target.DeviceID, Entities: []*p4v1.Entity{of(counter)}})
	r.must(err)
	if _, err = stream.Recv(); len(details(err)) != 1 || details(err)[0].GetMessage() != want {
		r.Errorf("read of the counter: %v, want %q", err, want)
	}
	// All digests of the program have one name. Digests with unique widths are recognised.
	for name, other := range map[string]string{"from": "In.to", "to": "In.from", "by": ""} {
		err := r.try(insert(&p4v1.DigestEntry{DigestId: p.digest(name), Config: &p4v1.DigestEntry_Config{MaxListSize: 1}}))
		want := fmt.Sprintf(`digest "In.%s" is in the P4Info, but not in the program: it has fields of the same widths as %q, and the compiler left the names of digests out`, name, other)
		if got := details(err); other == "" && err != nil || other != "" && (len(got) != 1 || got[0].GetMessage() != want) {
			r.Errorf("digest %s: %v, %q", name, err, got)
		}
	}
	r.passes(2, frame, 5, frame)
	if d := r.primary.next(patience).GetDigest(); d.GetDigestId() != p.digest("by") {
		r.Errorf("digest %v, want that of the port", d)
	}
	err = r.push(&p4v1.Uint128{Low: 1}, loadProgram(r.T, psaPrograms+"profile"))
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), `table "In.spread": its implementation, action profile "In.members", is not in the BMv2 JSON: the compiler left it out`) {
		r.Errorf("push of a program with an action profile: %v", err)
	}
}
