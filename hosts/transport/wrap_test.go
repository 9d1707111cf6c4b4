package transport

import (
	"testing"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/units"
)

type open struct{}

func (open) OnAck(*law.Ack)                {}
func (open) OnEvent(law.Event, units.Time) {}
func (open) Timer() units.Time             { return units.MaxTime }
func (open) Allowance() law.Allowance {
	return law.Allowance{Rate: units.Rate(8e15), Window: 4000}
}

// PSNs wrap after 2^24 packets; packet numbers do not.
func TestWrap(t *testing.T) {
	const start = 2<<PSNBits - 500
	s, err := NewSender(SenderConfig{Law: open{}, MSS: 1000}, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.una, s.next, s.high = start, start, start
	r := Receiver{next: start}
	now := units.Time(0)
	for i := uint64(start); i < start+1000; i++ {
		now += 1000
		if s.Ready(now) > now {
			t.Fatalf("packet %d is not ready", i)
		}
		if seg := s.Send(now); seg.Index != i {
			t.Fatalf("packet %d, want %d", seg.Index, i)
		}
		deliver, _, psn := r.OnData(PSN(i), false)
		if !deliver {
			t.Fatalf("packet %d was not taken", i)
		}
		if i%3 == 0 { // cumulative
			s.OnFeedback(&Feedback{PSN: psn}, now+500)
		}
	}
	if got := s.Stats(); got.Stale != 0 || s.una < start+998 {
		t.Errorf("acknowledged up to %d, %+v", s.una, got)
	}
}
