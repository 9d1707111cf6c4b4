package lawtest

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/headgate/headgate/hosts/law/none"
	"github.com/headgate/headgate/units"
)

// The completion time of a single flow is known to the picosecond.
func TestLoneFlow(t *testing.T) {
	n := New()
	l := n.Link(100*units.Gbps, units.Microsecond)
	a, err := none.New(200*units.Gbps, 0)
	if err != nil {
		t.Fatal(err)
	}
	const packets = 500
	f := n.Start(units.Microsecond, &Flow{
		Law: a, Path: []*Link{l}, NIC: 100 * units.Gbps, Back: 3 * units.Microsecond, Size: packets * MSS,
	})
	n.RunUntil(units.Millisecond)
	_, rtt := Base(f.NIC, f.Back, l)
	if want := rtt + (packets-1)*l.Rate.TxTime(Frame); f.FCT != want {
		t.Errorf("done after %v, want %v", f.FCT, want)
	}
}

// Two flows without a limit share a link and fill its queue without bound.
func TestOverload(t *testing.T) {
	n := New()
	l := n.Link(100*units.Gbps, units.Microsecond)
	for range 2 {
		a, err := none.New(200*units.Gbps, 0)
		if err != nil {
			t.Fatal(err)
		}
		n.Start(0, &Flow{Law: a, Path: []*Link{l}, NIC: 100 * units.Gbps, Back: units.Microsecond})
	}
	r := n.Rates(100 * units.Microsecond)
	if got := floats.Sum(r) / Goodput(l.Rate); math.Abs(got-1) > 0.03 {
		t.Errorf("utilisation %v", got)
	}
	if Jain(r) < 0.999 {
		t.Errorf("rates %v", r)
	}
	if want := float64(100*units.Gbps) * 100e-6 / 8; math.Abs(float64(l.Queue)/want-1) > 0.03 {
		t.Errorf("queue %v, want %v B", l.Queue, want)
	}
}
