package pacc

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/controller/session"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
	"github.com/headgate/headgate/pacc"
	"github.com/headgate/headgate/pacc/local"
	"github.com/headgate/headgate/packet"
)

// section switches PACC on in the example: 50 Mb/s stand for 100 Gb/s, T is 160 ms, Q_th
// 500 KB and the gap 8 ms.
func section(more string) func(string) string {
	return func(s string) string {
		return s + "\npacc: {enabled: true, cnp_dscp: 48, force: true" + more + "}\n"
	}
}

func TestDesired(t *testing.T) {
	env := testenv.New(t, "../../..", section(""))
	lines := testenv.Lines(t, New(nil), env, "leaf1")
	want := []string{
		"ingress.pacc.watched_queue egress_port=1 queue=0 → watch(threshold=500000)",
		"ingress.pacc.watched_queue egress_port=2 queue=0 → watch(threshold=500000)",
		"ingress.pacc.watched_queue egress_port=3 queue=0 → watch(threshold=500000)",
		"ingress.pacc.watched_queue egress_port=4 queue=0 → watch(threshold=500000)",
		"digest flow_digest_t",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("leaf1 gets\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if off := testenv.Lines(t, New(nil), testenv.New(t, "../../..", nil), "leaf1"); len(off) != 0 {
		t.Errorf("without PACC a switch gets %v", off)
	}
}

// Without PACC what it has learned before is taken out, once.
func TestSweep(t *testing.T) {
	row := func(table uint32) *p4v1.Entity {
		return &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{TableId: table, IdleTimeoutNs: 5}}}
	}
	reads, rows := 0, map[uint32][]*p4v1.Entity{ids.TableFlow: {row(ids.TableFlow)}, ids.TableCongestedFlow: {row(ids.TableCongestedFlow)}}
	sw := &testenv.Switch{Switch: "leaf1", Answer: func(requests []*p4v1.Entity) []*p4v1.Entity {
		reads++
		return rows[requests[0].GetTableEntry().GetTableId()]
	}}
	l := New(nil).Attach(testenv.New(t, "../../..", nil), sw)
	tick := func() {
		t.Helper()
		if err := l.Tick(context.Background(), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	tick()
	if len(sw.Written) != 2 || sw.Written[0].GetType() != p4v1.Update_DELETE || sw.Written[0].GetEntity().GetTableEntry().GetIdleTimeoutNs() != 0 {
		t.Fatalf("written %v, want two deletes of keys", sw.Written)
	}
	rows = nil
	tick()
	tick()
	if len(sw.Written) != 2 || reads != 4 {
		t.Errorf("%d updates and %d reads, want no more than 2 and 4", len(sw.Written), reads)
	}
}

// With the loop in the switch its entries carry the settings, and nothing is learned here.
func TestDesiredAtSwitch(t *testing.T) {
	env := testenv.New(t, "../../..", section(", at: switch, threshold: 40KB, burst: 3KB, max_flows: 77"))
	f := New(nil)
	list, err := f.Desired(env, "leaf1")
	if err != nil || len(list) != 4 {
		t.Fatalf("%d entities, %v", len(list), err)
	}
	s, ok, err := local.Parse(list[0].GetTableEntry().GetMetadata())
	if !ok || err != nil || s.MaxFlows != 77 || s.DSCP != 48 || s.Ageing != 5*time.Second || s.Params.Threshold != 40_000 ||
		s.Params.Burst != 3000 || s.Params.Interval.Duration() != 160*time.Millisecond || s.Params.CNPGap.Duration() != 8*time.Millisecond {
		t.Errorf("settings %+v, %v, %v", s, ok, err)
	}
	// What a switch returns is in this form too, or it would be written for ever.
	same := list[0].GetTableEntry().GetMetadata()
	if err := env.Pipeline.Normalize(list[0]); err != nil || string(list[0].GetTableEntry().GetMetadata()) != string(same) {
		t.Errorf("Normalize takes the settings away: %v", err)
	}
	if f.Attach(env, &testenv.Switch{Switch: "leaf1"}) != nil {
		t.Error("there is a loop in the controller too")
	}
}

// rig is a loop on a switch whose table the test holds.
type rig struct {
	*testing.T
	sw   *testenv.Switch
	hub  *testenv.Hub
	loop *loop
	now  time.Time
	rows []*p4v1.TableEntry // with counters
}

func newRig(t *testing.T) *rig {
	r := &rig{T: t, hub: &testenv.Hub{}, sw: &testenv.Switch{Switch: "leaf1"}, now: time.Now()}
	r.sw.Answer = func(requests []*p4v1.Entity) []*p4v1.Entity {
		var list []*p4v1.Entity
		for _, q := range requests {
			for _, e := range r.rows {
				if e.GetTableId() == q.GetTableEntry().GetTableId() && q.GetTableEntry().GetCounterData() != nil {
					list = append(list, &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: e}})
				}
			}
		}
		return list
	}
	l := New(r.hub).Attach(testenv.New(t, "../../..", section("")), r.sw)
	r.loop = l.(*loop)
	r.loop.began = r.now
	return r
}

// tick calls the loop after d, answering its polls with a queue on port 3, and returns the
// packets that are no polls.
func (r *rig) tick(d time.Duration, queue uint32) []*p4v1.PacketOut {
	r.Helper()
	r.now = r.now.Add(d)
	r.sw.Out = nil
	if err := r.loop.Tick(context.Background(), r.now); err != nil {
		r.Fatal(err)
	}
	var rest []*p4v1.PacketOut
	for _, p := range r.sw.Out {
		m := p.GetMetadata()
		if pipeline.Number(m[2].Value) != ids.PacketOutPoll {
			rest = append(rest, p)
			continue
		}
		report := pollreport.Report{Port: uint32(pipeline.Number(m[0].Value))}
		if report.Port == 3 {
			report.QueueBytes[0] = queue
		}
		in := &pipeline.PacketIn{Fields: map[string]uint64{"reason": ids.PacketInPoll}, Payload: append(report.Append(nil), p.GetPayload()...)}
		if !r.loop.Receive(r.now, feature.Message{Packet: in}) {
			r.Fatal("the answer to a poll was not taken")
		}
	}
	return rest
}

func digest(src, dst string, port uint64) *p4v1.DigestList {
	field := func(b []byte) *p4v1.P4Data { return &p4v1.P4Data{Data: &p4v1.P4Data_Bitstring{Bitstring: b}} }
	return &p4v1.DigestList{DigestId: ids.DigestFlowDigestT, Data: []*p4v1.P4Data{{Data: &p4v1.P4Data_Struct{Struct: &p4v1.P4StructLike{
		Members: []*p4v1.P4Data{field(netip.MustParseAddr(src).AsSlice()), field(netip.MustParseAddr(dst).AsSlice()), field(pipeline.Uint(port))},
	}}}}}
}

func TestLoop(t *testing.T) {
	r := newRig(t)
	if r.loop.Interval() != 8*time.Millisecond {
		t.Errorf("interval %v, want the gap of 8ms", r.loop.Interval())
	}
	r.tick(0, 0)
	if !r.loop.Receive(r.now, feature.Message{Digest: digest("10.0.1.1", "10.0.2.1", 3)}) {
		t.Fatal("a digest was not taken")
	}
	r.tick(8*time.Millisecond, 0)
	if len(r.sw.Written) != 2 || r.sw.Written[0].GetType() != p4v1.Update_INSERT {
		t.Fatalf("written %v, want a flow's two entries", r.sw.Written)
	}
	flow, congested := r.sw.Written[0].GetEntity().GetTableEntry(), r.sw.Written[1].GetEntity().GetTableEntry()
	if flow.GetTableId() != ids.TableFlow || flow.GetIdleTimeoutNs() != 5e9 || congested.GetTableId() != ids.TableCongestedFlow {
		t.Errorf("entries %v and %v", flow, congested)
	}
	r.rows = []*p4v1.TableEntry{congested, flow} // in any order
	flow.CounterData, congested.CounterData = &p4v1.CounterData{}, &p4v1.CounterData{}
	r.tick(152*time.Millisecond, 900_000)
	flow.CounterData = &p4v1.CounterData{ByteCount: 900_000, PacketCount: 900}
	congested.CounterData = &p4v1.CounterData{ByteCount: 1, PacketCount: 700}
	r.tick(160*time.Millisecond, 900_000)
	var cnps []*p4v1.PacketOut
	for range 19 {
		cnps = append(cnps, r.tick(8*time.Millisecond, 900_000)...)
	}
	// 100 Gb/s: weights are the paper's over four. 400 KB over Q_th is 5 CNPs.
	if len(cnps) != 5 {
		t.Fatalf("%d CNPs in a period, want 5", len(cnps))
	}
	var n packet.Notification
	if err := n.Decode(cnps[0].GetPayload()); err != nil {
		t.Fatal(err)
	}
	if n.FlowSrc != netip.MustParseAddr("10.0.1.1") || n.FlowDst != netip.MustParseAddr("10.0.2.1") || n.DSCP != 48 {
		t.Errorf("notification %+v", n)
	}
	if m := cnps[0].GetMetadata(); pipeline.Number(m[2].Value) != ids.PacketOutPipeline {
		t.Errorf("the CNP's mode is %x, want through the pipeline", m[2].Value)
	}
	if last := r.hub.Loops[len(r.hub.Loops)-1]; last.Switch != "leaf1" || last.CNPs == 0 || last.Flows != 1 || len(last.PortLoops) != 4 {
		t.Errorf("shown is %+v", last)
	}

	// Idle: both entries leave.
	r.sw.Written = nil
	if !r.loop.Receive(r.now, feature.Message{Idle: &p4v1.IdleTimeoutNotification{TableEntry: []*p4v1.TableEntry{flow}}}) {
		t.Error("an idle flow was not taken")
	}
	r.tick(8*time.Millisecond, 0)
	if len(r.sw.Written) != 2 || r.sw.Written[1].GetType() != p4v1.Update_DELETE {
		t.Errorf("written %v, want two deletes", r.sw.Written)
	}
	// Others' messages are left alone.
	for name, m := range map[string]feature.Message{
		"a poll of telemetry": {Packet: &pipeline.PacketIn{Fields: map[string]uint64{"reason": ids.PacketInPoll}, Payload: append(pollreport.Report{}.Append(nil), "headgate12345678"...)}},
		"a punted packet":     {Packet: &pipeline.PacketIn{Fields: map[string]uint64{"reason": 2}}},
		"another digest":      {Digest: &p4v1.DigestList{DigestId: 1}},
		"another table":       {Idle: &p4v1.IdleTimeoutNotification{TableEntry: []*p4v1.TableEntry{{TableId: 1}}}},
	} {
		if r.loop.Receive(r.now, m) {
			t.Errorf("%s was taken", name)
		}
	}
}

// What the switch refuses is not in the table; what is there already is.
func TestWriteRefused(t *testing.T) {
	r := newRig(t)
	r.tick(0, 0)
	key := func(n byte) pacc.Flow {
		return pacc.Flow{FlowKey: cnpgen.FlowKey{Src: netip.AddrFrom4([4]byte{10, 0, 1, n}), Dst: netip.AddrFrom4([4]byte{10, 0, 2, 1})}, Port: 3}
	}
	update := func(f pacc.Flow, kind p4v1.Update_Type) *p4v1.Update {
		both, err := r.loop.sw.entries(f)
		if err != nil {
			t.Fatal(err)
		}
		return &p4v1.Update{Type: kind, Entity: both[0]}
	}
	r.sw.Err = &session.WriteError{Total: 6, Failed: []session.UpdateError{
		{Update: update(key(1), p4v1.Update_INSERT), Code: codes.ResourceExhausted, Message: "table full"},
		{Update: update(key(2), p4v1.Update_INSERT), Code: codes.AlreadyExists},
		{Update: update(key(3), p4v1.Update_DELETE), Code: codes.NotFound},
	}}
	r.loop.sw.ctx = context.Background()
	refused, err := r.loop.sw.Write([]pacc.Flow{key(1), key(2)}, []pacc.Flow{key(3)})
	if !slices.Equal(refused, []pacc.Flow{key(1)}) || err == nil || !strings.Contains(err.Error(), "table full") {
		t.Errorf("refused %v, %v, want the first flow", refused, err)
	}
	r.sw.Err = session.ErrDisconnected
	if refused, err := r.loop.sw.Write([]pacc.Flow{key(1), key(2)}, nil); len(refused) != 2 || err == nil {
		t.Errorf("without a connection: refused %v, %v", refused, err)
	}
}

func TestEvictionsAreTold(t *testing.T) {
	r := newRig(t)
	r.loop.tellEvictions(r.now, pacc.Stats{})
	r.loop.tellEvictions(r.now, pacc.Stats{Evicted: 3, Flows: 9})
	r.loop.tellEvictions(r.now.Add(time.Second), pacc.Stats{Evicted: 4})
	r.loop.tellEvictions(r.now.Add(time.Minute), pacc.Stats{Evicted: 5})
	if len(r.hub.Events) != 2 || r.hub.Events[0].Kind != "pacc.evicted" || !strings.Contains(r.hub.Events[1].Message, "2 left it") {
		t.Errorf("events %+v, want two", r.hub.Events)
	}
}
