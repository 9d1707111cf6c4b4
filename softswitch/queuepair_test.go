package softswitch

import (
	"net/netip"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/units"
)

// ackOf returns a NIC's acknowledgement to queue pair qp of 10.0.2.1.
func ackOf(qp uint32) []byte {
	f := packet.Frame{
		TTL: 64, Src: netip.MustParseAddr("10.0.3.1"), Dst: netip.MustParseAddr("10.0.2.1"), SrcPort: 50000, DstPort: packet.RoCEv2Port,
		BTH: packet.BTH{Opcode: packet.Acknowledge, PKey: packet.DefaultPKey, DestQP: qp},
	}
	return f.Append(nil)
}

// Once the table reports queue pairs, the agent learns them from acknowledgements. It keeps them
// when its settings change, and removes them when they are idle and when it stops.
func TestAgentLearnsQueuePairs(t *testing.T) {
	loop := clock.NewLoop()
	s, err := NewOnLoop(loop, Config{Name: "s", CPUPort: ids.CPUPort, Traffic: tm.Config{Queues: 8}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var ports [3]*Port
	for n := 1; n <= 2; n++ {
		if ports[n], err = s.AddPort(uint32(n), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Server().LoadPipeline(p4src.P4Info, p4src.JSON()); err != nil {
		t.Fatal(err)
	}
	apply(t, s, route()...)
	apply(t, s, watch(p4v1.Update_INSERT, 2, paccSettings(units.Millisecond, 500*time.Millisecond)))
	at := loop.Now()
	run := func(d units.Time) {
		at += d
		loop.RunUntil(at)
	}
	run(200 * units.Millisecond)
	expect := func(when string, want int) {
		t.Helper()
		st, _, _ := s.PACC()
		if n := entriesOf(t, s, ids.TableQueuePair); st.QueuePairs != want || n != want {
			t.Errorf("%s: %d queue pairs are known, %d entries, want %d", when, st.QueuePairs, n, want)
		}
	}
	ports[1].Receive(ackOf(7), loop.Now())
	run(10 * units.Millisecond)
	expect("while nothing is to be learned", 0)
	apply(t, s, p4rtmsg.Modify(&p4v1.TableEntry{
		TableId: ids.TableQueuePair, IsDefaultAction: true,
		Action: p4rtmsg.Call(&p4v1.Action{ActionId: ids.ActionLearnQueuePair}),
	}))
	for _, qp := range []uint32{7, 8, 7, 0} { // 0 is nobody's
		ports[1].Receive(ackOf(qp), loop.Now())
	}
	run(10 * units.Millisecond)
	expect("two queue pairs", 2)
	apply(t, s, watch(p4v1.Update_MODIFY, 2, paccSettings(2*units.Millisecond, 500*time.Millisecond)))
	run(300 * units.Millisecond)
	ports[1].Receive(ackOf(8), loop.Now())
	expect("after a change", 2)
	run(400 * units.Millisecond)
	expect("one is idle", 1)
	apply(t, s, watch(p4v1.Update_DELETE, 2, nil))
	run(200 * units.Millisecond)
	if n := entriesOf(t, s, ids.TableQueuePair); n != 0 {
		t.Errorf("asleep: %d entries", n)
	}
}
