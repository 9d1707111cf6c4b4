package agent_test

import (
	"testing"

	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/dcqcn"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// TestNotificationPoint marks every packet of a flow: its receiver answers with one
// notification per gap, and the sender slows down.
func TestNotificationPoint(t *testing.T) {
	for _, gap := range []units.Time{0, 50 * units.Millisecond} {
		const rate = 10 * units.Mbps
		s := newStar(t)
		dcqcnLaw := func(agent.FlowSpec) (law.Law, error) {
			return dcqcn.New(param.For[dcqcn.Params](law.Flow{Rate: rate, Scale: 1000}))
		}
		from, to := config(1, rate), config(2, rate)
		from.NewLaw, to.NewLaw, to.CNPGap = dcqcnLaw, dcqcnLaw, gap
		sender, receiver := s.host(from, rate), s.host(to, rate)
		var marked packet.Frame
		s.harm = func(frame []byte) (int, units.Time) {
			if err := marked.Decode(frame); err != nil {
				t.Fatal(err)
			}
			if marked.BTH.Opcode.IsSend() {
				marked.ECN = packet.CE
				copy(frame, marked.Append(nil))
			}
			return 1, 0
		}
		key := s.start(sender, agent.FlowSpec{Dst: addr(2), DstPort: packet.RoCEv2Port})
		s.loop.RunUntil(units.Second)
		r := sender.Report()[0]
		if gap == 0 {
			if n := receiver.Stats().CNPsSent; n != 0 || r.CNPs != 0 {
				t.Errorf("%v: without a gap the receiver sent %d notifications and the flow took %d, want none", key, n, r.CNPs)
			}
			continue
		}
		// At most 1 s / 50 ms; fewer towards the end, when packets are further apart than the gap.
		if r.CNPs < 10 || r.CNPs > 20 || receiver.Stats().CNPsSent < r.CNPs || sender.Stats().CNPs != r.CNPs {
			t.Errorf("the flow took %d notifications of %d, want 10 to 20", r.CNPs, receiver.Stats().CNPsSent)
		}
		if r.Allowed > rate/10 {
			t.Errorf("the flow may send %v after a second of marks, want less than a tenth of %v", r.Allowed, rate)
		}
	}
}

// TestNotificationByAddresses: a notification from a switch that knows no queue pairs applies to
// the flows towards the address in its source field.
func TestNotificationByAddresses(t *testing.T) {
	s := newStar(t)
	h := s.host(config(1, 10*units.Mbps), 10*units.Mbps)
	for _, dst := range []byte{2, 2, 3} {
		s.start(h, agent.FlowSpec{Dst: addr(dst)})
	}
	f := packet.Frame{
		Src: addr(2), Dst: addr(1), TTL: 64, DstPort: packet.RoCEv2Port,
		BTH: packet.BTH{Opcode: packet.CNP, BECN: true}, Payload: make([]byte, 16),
	}
	h.Receive(f.Append(nil))
	f.BTH.DestQP = 0xabcdef // for no flow
	h.Receive(f.Append(nil))
	f.Src = addr(4)
	h.Receive(f.Append(nil))
	f.Src, f.BTH.DestQP = addr(3), 1 // for a flow to another host
	h.Receive(f.Append(nil))
	for _, r := range h.Report() {
		want := uint64(0)
		if r.Key.Dst == addr(2) {
			want = 2
		}
		if r.CNPs != want {
			t.Errorf("%v took %d notifications, want %d", r.Key, r.CNPs, want)
		}
	}
	if err := h.StopFlow(h.Report()[2].Key); err != nil {
		t.Fatal(err)
	}
	f.BTH.DestQP = 3 // of that flow, but too late
	h.Receive(f.Append(nil))
	if st := h.Stats(); st.CNPs != 2 || st.Unknown != 3 {
		t.Errorf("counted %d notifications and %d of no flow, want 2 and 3", st.CNPs, st.Unknown)
	}
}

// The deferred notification of a window is sent at its end, when no more packets arrive.
func TestNotificationOwed(t *testing.T) {
	s := newStar(t)
	cfg := config(2, 10*units.Mbps)
	cfg.CNPGap = 50 * units.Millisecond
	h := s.host(cfg, 10*units.Mbps)
	f := packet.Frame{
		Src: addr(1), Dst: addr(2), TTL: 64, SrcPort: 5000, DstPort: packet.RoCEv2Port, ECN: packet.CE,
		BTH: packet.BTH{Opcode: packet.SendMiddle, DestQP: 1}, Payload: make([]byte, 100),
	}
	for at, want := range map[units.Time]uint64{0: 1, 49 * units.Millisecond: 1, 51 * units.Millisecond: 2, units.Second: 2} {
		s.loop.At(at, func() {
			if got := h.Stats().CNPsSent; got != want {
				t.Errorf("%d notifications after %v, want %d", got, at, want)
			}
		})
	}
	h.Receive(f.Append(nil))
	f.BTH.PSN = 1
	h.Receive(f.Append(nil))
	s.loop.RunUntil(2 * units.Second)
}
