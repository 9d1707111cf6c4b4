package transport_test

import (
	"testing"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/units"
)

const us = units.Microsecond

func probing(t testing.TB) (*fixed, *transport.Sender) {
	t.Helper()
	l := newFixed(0, 0)
	l.allow.Probe = 5 * us
	return l, newSender(t, transport.SenderConfig{Law: l, MSS: 1000, Size: 3000, InitialRTO: units.Millisecond})
}

// A law stops data and asks for a probe. The probe is sent and answered, and data continues.
func TestProbe(t *testing.T) {
	l, s := probing(t)
	if at := s.Ready(0); at != 5*us {
		t.Fatalf("probe ready at %v, want 5 µs", at)
	}
	seg := s.Send(5 * us)
	if !seg.Probe || seg.Len != 0 || s.Stats().Probes != 1 || s.Stats().Sent != 0 {
		t.Fatalf("segment %+v, counts %+v", seg, s.Stats())
	}
	if n := len(l.events); l.events[n-1] != law.ProbeSent {
		t.Errorf("events %v", l.events)
	}
	l.allow.Probe = 0
	if at := s.Ready(6 * us); at != units.MaxTime {
		t.Errorf("ready at %v with a probe on its way", at)
	}
	fb := transport.Feedback{PSN: transport.PSN(seg.Index), Probe: true, Delay: 7 * us, MaxQD: 2 * us}
	if !s.OnFeedback(&fb, 17*us) {
		t.Fatal("the answer was not taken")
	}
	a := l.acks[0]
	if !a.Probe || a.RTT != 12*us || a.Delay != 7*us || a.MaxQD != 2*us || a.Acked != 0 || a.AckedSeq != 0 || a.SentSeq != 0 {
		t.Errorf("the law was told %+v", a)
	}
	if s.OnFeedback(&fb, 18*us) || s.Stats().Stale != 1 {
		t.Error("a second answer was taken")
	}
	if s.Deadline() != units.MaxTime {
		t.Errorf("deadline %v with nothing to wait for", s.Deadline())
	}
	l.allow = law.Allowance{Rate: units.Gbps, Window: 3000}
	if seg := s.Send(s.Ready(20 * us)); seg.Probe || seg.Index != 0 {
		t.Errorf("data is %+v", seg)
	}
}

// After a lost probe or answer, the timeout tells the law. An answer that arrives after the next probe has left
// is ignored.
func TestLostProbe(t *testing.T) {
	l, s := probing(t)
	first := s.Send(5 * us)
	at := s.Deadline()
	if at != 5*us+units.Millisecond {
		t.Fatalf("deadline %v", at)
	}
	s.OnTimer(at)
	if n := len(l.events); l.events[n-1] != law.Loss || s.Stats().Timeouts != 1 {
		t.Fatalf("events %v, counts %+v", l.events, s.Stats())
	}
	if s.Deadline() != units.MaxTime {
		t.Errorf("deadline %v after the probe was given up", s.Deadline())
	}
	l.allow.Probe = at + us
	second := s.Send(s.Ready(at))
	if s.OnFeedback(&transport.Feedback{PSN: transport.PSN(first.Index), Probe: true}, at+2*us) {
		t.Error("the answer to the first probe was taken for the second's")
	}
	if !s.OnFeedback(&transport.Feedback{PSN: transport.PSN(second.Index), Probe: true}, at+9*us) || l.acks[0].RTT != 8*us {
		t.Error("the answer to the second was not taken")
	}
}

// Probes beside data in flight: packet numbers and timeouts do not interfere.
func TestProbeBesideData(t *testing.T) {
	l := newFixed(units.Gbps, 2000)
	s := newSender(t, transport.SenderConfig{Law: l, MSS: 1000, InitialRTO: units.Millisecond})
	s.Send(0)
	l.allow = law.Allowance{Probe: 2 * us}
	p := s.Send(2 * us)
	if !s.OnFeedback(&transport.Feedback{PSN: 0, CE: true}, 10*us) || l.acks[0].Probe || l.acks[0].Acked != 1000 {
		t.Fatalf("data's acknowledgement: %+v", l.acks)
	}
	if d := s.Deadline(); d == units.MaxTime {
		t.Error("the probe is not waited for")
	}
	if !s.OnFeedback(&transport.Feedback{PSN: transport.PSN(p.Index), Probe: true}, 12*us) {
		t.Error("the probe's answer was not taken")
	}
	if s.OnFeedback(&transport.Feedback{PSN: 0, Probe: true}, 13*us) {
		t.Error("an answer without a probe was taken")
	}
}

// A flow that has sent all its data does not probe.
func TestNoProbeWithNothingToSend(t *testing.T) {
	l := newFixed(units.Gbps, 2000)
	s := newSender(t, transport.SenderConfig{Law: l, MSS: 1000, Size: 1000})
	s.Send(0)
	l.allow = law.Allowance{Probe: us}
	if at := s.Ready(us); at != units.MaxTime {
		t.Errorf("ready at %v", at)
	}
}

// A packet's send time follows the present rate, not the rate when the packet before it left.
func TestPacingFollowsTheRate(t *testing.T) {
	l := newFixed(8*units.Mbps, 10000) // 1000 B per ms
	s := newSender(t, transport.SenderConfig{Law: l, MSS: 1000})
	s.Send(0)
	if at := s.Ready(0); at != units.Millisecond {
		t.Fatalf("next packet at %v", at)
	}
	l.allow.Rate = 80 * units.Mbps
	if at := s.Ready(10 * us); at != 100*us {
		t.Errorf("next packet at %v after the rate rose, want 100 µs", at)
	}
	l.allow.Rate = 4 * units.Mbps
	if at := s.Ready(10 * us); at != 2*units.Millisecond {
		t.Errorf("next packet at %v after the rate fell, want 2 ms", at)
	}
	l.allow.Rate = 1
	if at := s.Ready(10 * us); at <= 2*units.Millisecond || at == units.MaxTime {
		t.Errorf("next packet at %v at 1 b/s", at)
	}
}

func TestProbesAllocateNothing(t *testing.T) {
	l, s := probing(t)
	now := 5 * us
	fb := transport.Feedback{Probe: true}
	l.events = make([]law.Event, 0, 1<<12)
	l.acks = make([]law.Ack, 0, 1<<12)
	if n := testing.AllocsPerRun(1000, func() {
		fb.PSN = transport.PSN(s.Send(now).Index)
		now += us
		s.OnFeedback(&fb, now)
	}); n != 0 {
		t.Errorf("%v allocations per probe", n)
	}
}
