package sim

import (
	"math/rand/v2"
	"testing"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/none"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// alternating is noise that alternates between 0 and 700 ns.
type alternating struct{ n int }

func (a *alternating) Draw(*rand.Rand) units.Time {
	a.n++
	return units.Time(a.n%2) * 700 * units.Nanosecond
}

// hearing is a law that records the delays that it gets.
type hearing struct {
	law.Law
	rtt, delay []units.Time
}

func (h *hearing) OnAck(a *law.Ack) {
	h.rtt, h.delay = append(h.rtt, a.RTT), append(h.delay, a.Delay)
}

type hearingMaker struct {
	law   *hearing
	needs Needs
}

func (h *hearingMaker) Needs() Needs { return h.needs }

// NewLaw makes a law that sends one packet per round trip.
func (h *hearingMaker) NewLaw(f FlowInfo) (law.Law, error) {
	inner, err := none.New(f.Rate, f.MSS)
	h.law = &hearing{Law: inner}
	return h.law, err
}

// TestNoiseReachesLaws compares the delays that laws get, one-way and round-trip, with the path's own delay plus
// the noise, with and without time stamps in packets.
func TestNoiseReachesLaws(t *testing.T) {
	for _, needs := range []Needs{{}, {Delay: true}} {
		g := must[*topo.Graph](t)(topo.Star(2, line100))
		s := must[*Sim](t)(New(Config{Graph: g, Noise: &alternating{}}))
		m := &hearingMaker{needs: needs}
		if err := s.AddFlows([]FlowSpec{{Src: 0, Dst: 1, Size: 20 * units.KB, Law: m}}); err != nil {
			t.Fatal(err)
		}
		runAll(t, s, units.Second)
		if len(m.law.rtt) != 20 {
			t.Fatalf("%d acknowledgements, want 20", len(m.law.rtt))
		}
		rtt, oneWay := 2*line100.Delay+2*line100.Rate.TxTime(1054)+2*line100.Delay+2*line100.Rate.TxTime(64), 2*line100.Delay+2*line100.Rate.TxTime(1054)
		for i := range m.law.rtt {
			noise := units.Time((i+1)%2) * 700 * units.Nanosecond
			if got := m.law.rtt[i]; got != rtt+noise {
				t.Errorf("needs %+v: round trip %d is %v, want %v + %v", needs, i, got, rtt, noise)
			}
			if got := m.law.delay[i]; needs.Delay && got != oneWay+noise {
				t.Errorf("one-way delay %d is %v, want %v + %v", i, got, oneWay, noise)
			}
		}
	}
}
