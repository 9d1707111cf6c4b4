package sim

import (
	"testing"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// timed is a law that needs one-way delays and keeps the longest.
type timed struct {
	law.Law
	longest *units.Time
}

func (timed) Needs() Needs { return Needs{Delay: true} }

func (l timed) NewLaw(f FlowInfo) (law.Law, error) {
	inner, err := lineRate{}.NewLaw(f)
	return timed{inner, l.longest}, err
}

func (l timed) OnAck(a *law.Ack) {
	*l.longest = max(*l.longest, a.Delay)
	l.Law.OnAck(a)
}

// TestLawThatAsksForDelaysLater gives a flow another law, the first that needs delays, while packets without time
// stamps are in flight. Those give no delay; later packets give theirs.
func TestLawThatAsksForDelaysLater(t *testing.T) {
	g := must[*topo.Graph](t)(topo.Star(2, line100))
	s := must[*Sim](t)(New(Config{Graph: g}))
	if err := s.AddFlows([]FlowSpec{{Src: 0, Dst: 1, Size: units.MB, Law: lineRate{}}}); err != nil {
		t.Fatal(err)
	}
	var longest units.Time
	s.At(30*units.Microsecond, func(s *Sim) error { return s.SetLaw(0, timed{longest: &longest}) })
	if err := s.RunFlows(units.Millisecond); err != nil {
		t.Fatal(err)
	}
	if alone := 2 * (line100.Delay + line100.Rate.TxTime(1054)); longest < alone || longest > alone+units.Microsecond {
		t.Errorf("the longest delay that the law was told is %v, want %v", longest, alone)
	}
}
