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
	"github.com/headgate/headgate/cnpgen/flowtable"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/session"
	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
	"github.com/headgate/headgate/packet"
)

// enabled switches PACC on in the example: 50 Mb/s represent 100 Gb/s, T is 160 ms, Q_th 500 KB and
// the gap 8 ms.
func enabled(more string) func(string) string {
	return func(s string) string {
		return s + "\npacc: {enabled: true, cnp_dscp: 48, force: true" + more + "}\n"
	}
}

func TestDesired(t *testing.T) {
	env := testenv.New(t, "../../..", enabled(""), New(nil), qos.New(nil))
	lines := testenv.Lines(t, New(nil), env, "leaf1")
	want := []string{
		"ingress.pacc.queue_pair default → learn_queue_pair()",
		"ingress.pacc.queue_pair_ipv6 default → learn_queue_pair_ipv6()",
		"ingress.pacc.watched_queue egress_port=1 queue=0 → watch(threshold=500000)",
		"ingress.pacc.watched_queue egress_port=2 queue=0 → watch(threshold=500000)",
		"ingress.pacc.watched_queue egress_port=3 queue=0 → watch(threshold=500000)",
		"ingress.pacc.watched_queue egress_port=4 queue=0 → watch(threshold=500000)",
		"digest flow_digest_t → max_timeout=20ms, max_list_size=256, ack_timeout=1s",
		"digest queue_pair_digest_t → max_timeout=20ms, max_list_size=256, ack_timeout=1s",
		"digest flow_ipv6_digest_t → max_timeout=20ms, max_list_size=256, ack_timeout=1s",
		"digest queue_pair_ipv6_digest_t → max_timeout=20ms, max_list_size=256, ack_timeout=1s",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("leaf1 gets\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	off := testenv.Lines(t, New(nil), testenv.New(t, "../../..", nil, New(nil), qos.New(nil)), "leaf1")
	if want := []string{"ingress.pacc.queue_pair default → know_queue_pair()", "ingress.pacc.queue_pair_ipv6 default → know_queue_pair_ipv6()"}; !slices.Equal(off, want) {
		t.Errorf("without PACC a switch gets %v, want %v", off, want)
	}
}

// Without PACC, the entries that it learned are removed, once.
func TestSweep(t *testing.T) {
	row := func(table uint32) *p4v1.Entity {
		return p4rtmsg.Entity(&p4v1.TableEntry{TableId: table, IdleTimeoutNs: 5})
	}
	reads, rows := 0, map[uint32][]*p4v1.Entity{}
	for _, table := range []uint32{ids.TableFlow, ids.TableCongestedFlow, ids.TableQueuePairIPv6} {
		rows[table] = []*p4v1.Entity{row(table)}
	}
	sw := &testenv.Switch{Switch: "leaf1", Answer: func(requests []*p4v1.Entity) (list []*p4v1.Entity) {
		reads++
		for _, r := range requests {
			list = append(list, rows[r.GetTableEntry().GetTableId()]...)
		}
		return list
	}}
	l := New(nil).Attach(testenv.New(t, "../../..", nil, New(nil), qos.New(nil)), sw)
	tick := func() {
		t.Helper()
		if err := l.Tick(context.Background(), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	tick()
	if len(sw.Written) != 3 || sw.Written[0].GetType() != p4v1.Update_DELETE || sw.Written[0].GetEntity().GetTableEntry().GetIdleTimeoutNs() != 0 {
		t.Fatalf("written %v, want three deletes of keys", sw.Written)
	}
	rows = nil
	tick()
	tick()
	if len(sw.Written) != 3 || reads != 2 {
		t.Errorf("%d updates and %d reads, want no more than 3 and 2", len(sw.Written), reads)
	}
}

// If the switch runs the loop, its entries carry the settings, and the controller learns nothing.
func TestDesiredAtSwitch(t *testing.T) {
	env := testenv.New(t, "../../..", enabled(", at: switch, threshold: 40KB, burst: 3KB, max_flows: 77"), New(nil), qos.New(nil))
	f := New(nil)
	list, err := f.Desired(env)
	if err != nil || len(list) != 6 {
		t.Fatalf("%d entities, %v", len(list), err)
	}
	list = list[2:] // after the default actions of the queue pairs
	s, ok, err := cnpgen.ParseSettings(list[0].GetTableEntry().GetMetadata())
	if !ok || err != nil || s.MaxFlows != 77 || s.DSCP != 48 || s.Ageing != 5*time.Second || s.Params.Threshold != 40_000 ||
		s.Params.Burst != 3000 || s.Params.Interval.Duration() != 160*time.Millisecond || s.Params.CNPGap.Duration() != 8*time.Millisecond {
		t.Errorf("settings %+v, %v, %v", s, ok, err)
	}
	// Entries have the form in which a switch returns them; otherwise they would be written again
	// and again.
	same := list[0].GetTableEntry().GetMetadata()
	if err := env.Pipeline.Normalize(list[0]); err != nil || string(list[0].GetTableEntry().GetMetadata()) != string(same) {
		t.Errorf("Normalize takes the settings away: %v", err)
	}
}

// TestCounted: the flows' bytes are reported as bursts. They come from the controller's loop, or from a switch's own
// loop, whose table is read but not written. A switch without a loop, or not read yet, reports nothing.
func TestCounted(t *testing.T) {
	key := cnpgen.Flow{FlowKey: cnpgen.FlowKey{Src: netip.MustParseAddr("10.0.1.1"), Dst: netip.MustParseAddr("10.0.2.1")}, Port: 3}
	entries := flowtable.FlowEntries(key, 0)
	for _, at := range []string{"controller", "switch"} {
		t.Run(at, func(t *testing.T) {
			sent := int64(5000) // earlier than the loop
			sw := &testenv.Switch{Switch: "leaf1", Answer: func(requests []*p4v1.Entity) (list []*p4v1.Entity) {
				if requests[0].GetTableEntry().GetTableId() != ids.TableQueuePair {
					for _, e := range entries {
						list = append(list, p4rtmsg.Entity(&p4v1.TableEntry{TableId: e.GetTableId(), Match: e.GetMatch(), CounterData: &p4v1.CounterData{ByteCount: sent}}))
					}
				}
				return list
			}}
			f := New(&testenv.Callbacks{})
			loop := f.Attach(testenv.New(t, "../../..", enabled(", at: "+at), New(nil), qos.New(nil)), sw)
			if _, ok := f.Counted("leaf1"); ok {
				t.Error("something is counted before it was read")
			}
			now := time.Now()
			for _, n := range []int64{0, 0, 700, 300, 0, -5000, 40} { // the last but one is a restart
				sent += n
				if err := loop.Tick(context.Background(), now); err != nil {
					t.Fatal(err)
				}
				now = now.Add(time.Minute) // however late the previous read was
			}
			got, ok := f.Counted("leaf1")
			if !ok || len(got.Pairs) != 1 {
				t.Fatalf("%v, %+v", ok, got)
			}
			p := got.Pairs[0]
			if p.Src != key.Src || p.Dst != key.Dst || p.Bytes != 1040 || p.Begun != 2 || p.Ended != 1 || p.EndedBytes != 1000 || p.RunningBytes != 40 {
				t.Errorf("counted %+v, want a burst of 1000 B and one of 40 B so far", p)
			}
			if at == "switch" && (len(sw.Written) > 0 || len(sw.Polled) > 0) {
				t.Errorf("written %v, polled %v on a switch with its own loop", sw.Written, sw.Polled)
			}
			if _, ok := f.Counted("leaf2"); ok {
				t.Error("leaf2 has counted something")
			}
			f.Attach(testenv.New(t, "../../..", nil, New(nil), qos.New(nil)), sw)
			if _, ok := f.Counted("leaf1"); ok {
				t.Error("something is counted without PACC")
			}
		})
	}
}

// rig is a loop for a switch whose table the test owns.
type rig struct {
	*testing.T
	f         *feature.Feature
	sw        *testenv.Switch
	callbacks *testenv.Callbacks
	loop      *loop
	now       time.Time
	rows      []*p4v1.TableEntry // including counters
}

func newRig(t *testing.T) *rig {
	r := &rig{T: t, callbacks: &testenv.Callbacks{}, sw: &testenv.Switch{Switch: "leaf1"}, now: time.Now()}
	r.sw.Answer = func(requests []*p4v1.Entity) []*p4v1.Entity {
		var list []*p4v1.Entity
		for _, q := range requests {
			for _, e := range r.rows {
				if e.GetTableId() == q.GetTableEntry().GetTableId() && q.GetTableEntry().GetCounterData() != nil {
					list = append(list, p4rtmsg.Entity(e))
				}
			}
		}
		return list
	}
	r.f = New(r.callbacks)
	l := r.f.Attach(testenv.New(t, "../../..", enabled(""), New(nil), qos.New(nil)), r.sw)
	r.loop = l.(*loop)
	r.loop.began = r.now
	return r
}

// tick advances time by d, calls the loop, answers its polls with a queue on port 3, and returns
// the packets that it sends.
func (r *rig) tick(d time.Duration, queue uint32) []*p4v1.PacketOut {
	r.Helper()
	r.now = r.now.Add(d)
	r.sw.Out, r.sw.Polled = nil, nil
	if err := r.loop.Tick(context.Background(), r.now); err != nil {
		r.Fatal(err)
	}
	for _, port := range r.sw.Polled {
		report := &feature.Report{Report: pollreport.Report{Port: port}, Asked: r.now}
		if port == 3 {
			report.QueueBytes[0] = queue
		}
		r.loop.Receive(r.now, feature.Message{Report: report})
	}
	return r.sw.Out
}

func digest(id uint32, src, dst string, last uint64) *p4v1.DigestList {
	field := func(b []byte) *p4v1.P4Data { return &p4v1.P4Data{Data: &p4v1.P4Data_Bitstring{Bitstring: b}} }
	return &p4v1.DigestList{DigestId: id, Data: []*p4v1.P4Data{{Data: &p4v1.P4Data_Struct{Struct: &p4v1.P4StructLike{
		Members: []*p4v1.P4Data{field(netip.MustParseAddr(src).AsSlice()), field(netip.MustParseAddr(dst).AsSlice()), field(p4rtmsg.Uint(last))},
	}}}}}
}

func TestLoop(t *testing.T) {
	r := newRig(t)
	if r.loop.Interval() != 8*time.Millisecond {
		t.Errorf("interval %v, want the gap of 8ms", r.loop.Interval())
	}
	r.tick(0, 0)
	r.tick(80*time.Millisecond, 0) // the ticks of the four ports are a quarter of a period apart; port 3 is next
	r.loop.Receive(r.now, feature.Message{Digest: digest(ids.DigestFlowDigestT, "10.0.1.1", "10.0.2.1", 3)})
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
	// At 100 Gb/s the weights are a quarter of the paper's. A queue 400 KB above Q_th gives 5 CNPs.
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
	if m := cnps[0].GetMetadata(); bytestring.Low64(m[2].Value) != ids.PacketOutPipeline {
		t.Errorf("the CNP's mode is %x, want through the pipeline", m[2].Value)
	}
	shown := testenv.Shown(r.f, "leaf1")
	for _, want := range []struct {
		metric string
		keys   []string
		value  float64
	}{{"pacc_cnps", nil, 5}, {"pacc_flows", nil, 1}, {"pacc_queue_bytes", []string{"3"}, 900_000}, {"pacc_granted_cnps", []string{"3"}, 5}} {
		if n, ok := testenv.Number(shown, want.metric, want.keys...); !ok || n != want.value {
			t.Errorf("shown is %s %v = %v, %v, want %v", want.metric, want.keys, n, ok, want.value)
		}
	}

	// Both idle entries are removed.
	r.sw.Written = nil
	for _, m := range []feature.Message{ // the first three belong to other features
		{Packet: &pipeline.PacketIn{Fields: map[string]uint64{"reason": 2}}},
		{Digest: &p4v1.DigestList{DigestId: 1}},
		{Idle: &p4v1.IdleTimeoutNotification{TableEntry: []*p4v1.TableEntry{{TableId: 1, Match: flow.GetMatch()}}}},
	} {
		r.loop.Receive(r.now, m)
	}
	r.tick(8*time.Millisecond, 0)
	if len(r.sw.Written) != 0 {
		t.Errorf("written %v because of others' messages", r.sw.Written)
	}
	r.loop.Receive(r.now, feature.Message{Idle: &p4v1.IdleTimeoutNotification{TableEntry: []*p4v1.TableEntry{flow}}})
	r.tick(8*time.Millisecond, 0)
	if len(r.sw.Written) != 2 || r.sw.Written[1].GetType() != p4v1.Update_DELETE {
		t.Errorf("written %v, want two deletes", r.sw.Written)
	}
}

// Entries that the switch refuses are not in the table, and existing entries stay.
func TestWriteRefused(t *testing.T) {
	r := newRig(t)
	r.tick(0, 0)
	key := func(n byte) cnpgen.Flow {
		return cnpgen.Flow{FlowKey: cnpgen.FlowKey{Src: netip.AddrFrom4([4]byte{10, 0, 1, n}), Dst: netip.AddrFrom4([4]byte{10, 0, 2, 1})}, Port: 3}
	}
	update := func(f cnpgen.Flow, kind p4v1.Update_Type) *p4v1.Update {
		return &p4v1.Update{Type: kind, Entity: p4rtmsg.Entity(flowtable.FlowEntries(f, 0)[0])}
	}
	r.sw.Err = &session.WriteError{Total: 6, Failed: []session.UpdateError{
		{Update: update(key(1), p4v1.Update_INSERT), Code: codes.ResourceExhausted, Message: "table full"},
		{Update: update(key(2), p4v1.Update_INSERT), Code: codes.AlreadyExists},
		{Update: update(key(3), p4v1.Update_DELETE), Code: codes.NotFound},
	}}
	r.loop.sw.ctx = context.Background()
	refused, err := r.loop.sw.Write([]cnpgen.Flow{key(1), key(2)}, []cnpgen.Flow{key(3)})
	if !slices.Equal(refused, []cnpgen.Flow{key(1)}) || err == nil || !strings.Contains(err.Error(), "table full") {
		t.Errorf("refused %v, %v, want the first flow", refused, err)
	}
	r.sw.Err = session.ErrDisconnected
	if refused, err := r.loop.sw.Write([]cnpgen.Flow{key(1), key(2)}, nil); len(refused) != 2 || err == nil {
		t.Errorf("without a connection: refused %v, %v", refused, err)
	}
}

// Notifications name the queue pairs that the switch has reported or that an earlier loop has
// stored, until those are idle.
func TestQueuePairs(t *testing.T) {
	r := newRig(t)
	flow := cnpgen.Flow{FlowKey: cnpgen.FlowKey{Src: netip.MustParseAddr("10.0.1.1"), Dst: netip.MustParseAddr("10.0.2.1")}, Port: 3}
	r.loop.sw.ctx = context.Background()
	if err := r.loop.sw.WriteQueuePairs([]cnpgen.QueuePair{{FlowKey: flow.FlowKey, QP: 7}}, nil); err != nil {
		t.Fatal(err)
	}
	left := r.sw.Written[0].GetEntity().GetTableEntry()
	left.CounterData = &p4v1.CounterData{} // the rig's mark
	r.sw.Answer = func(requests []*p4v1.Entity) []*p4v1.Entity {
		if requests[0].GetTableEntry().GetTableId() == ids.TableQueuePair {
			return []*p4v1.Entity{{Entity: &p4v1.Entity_TableEntry{TableEntry: left}}}
		}
		return nil
	}
	r.sw.Written = nil
	r.tick(0, 0)
	r.loop.Receive(r.now, feature.Message{Digest: digest(ids.DigestQueuePairDigestT, "10.0.1.1", "10.0.2.1", 0x12345)})
	r.loop.Receive(r.now, feature.Message{Digest: digest(ids.DigestQueuePairDigestT, "10.0.1.1", "10.0.2.1", 7)})
	r.tick(8*time.Millisecond, 0)
	if n := r.loop.Stats().QueuePairs; n != 2 || len(r.sw.Written) != 1 || r.sw.Written[0].GetType() != p4v1.Update_INSERT {
		t.Fatalf("%d queue pairs, written %v; want two, one of them new", n, r.sw.Written)
	}
	learned := r.sw.Written[0].GetEntity().GetTableEntry()
	if q, ok := flowtable.ReadQueuePair(learned); !ok || q != (cnpgen.QueuePair{FlowKey: flow.FlowKey, QP: 0x12345}) || learned.GetTableId() != ids.TableQueuePair || learned.GetIdleTimeoutNs() != 5e9 {
		t.Errorf("entry %v", learned)
	}
	if err := r.loop.sw.CNP(flow, 0x12345); err != nil {
		t.Fatal(err)
	}
	var n packet.Notification
	if err := n.Decode(r.sw.Out[0].GetPayload()); err != nil || n.DestQP != 0x12345 {
		t.Errorf("notification %+v, %v", n, err)
	}
	r.sw.Written = nil
	r.loop.Receive(r.now, feature.Message{Idle: &p4v1.IdleTimeoutNotification{TableEntry: []*p4v1.TableEntry{learned}}})
	r.tick(8*time.Millisecond, 0)
	if n := r.loop.Stats().QueuePairs; n != 1 || len(r.sw.Written) != 1 || r.sw.Written[0].GetType() != p4v1.Update_DELETE {
		t.Errorf("%d queue pairs, written %v; want one, the other deleted", n, r.sw.Written)
	}
}

// TestFullTableIsToldOnce: a full table is reported once, and once more when it has room again.
func TestFullTableIsToldOnce(t *testing.T) {
	r := newRig(t)
	for _, step := range []struct {
		after time.Duration
		stats cnpgen.LoopStats
		kind  string
	}{
		{0, cnpgen.LoopStats{}, ""},
		{0, cnpgen.LoopStats{Evicted: 3, Flows: 9}, "pacc.full"},
		{50 * time.Second, cnpgen.LoopStats{Evicted: 4}, ""},
		{50 * time.Second, cnpgen.LoopStats{Evicted: 4, Refused: 1}, ""},
		{50 * time.Second, cnpgen.LoopStats{Evicted: 4, Refused: 1}, ""},
		{50 * time.Second, cnpgen.LoopStats{Evicted: 4, Refused: 1}, "pacc.full_over"},
		{50 * time.Second, cnpgen.LoopStats{Evicted: 4, Refused: 1}, ""},
		{0, cnpgen.LoopStats{Evicted: 4, Refused: 2}, "pacc.full"},
	} {
		r.now, r.callbacks.Events = r.now.Add(step.after), nil
		r.loop.reportFull(r.now, step.stats)
		if len(r.callbacks.Events) > 1 || len(r.callbacks.Events) == 1 != (step.kind != "") || step.kind != "" && r.callbacks.Events[0].Kind != step.kind {
			t.Errorf("%+v: events %+v", step, r.callbacks.Events)
		}
	}
}
