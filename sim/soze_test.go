package sim

import (
	"math"
	"testing"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/internal/maxmin"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

type sozeMaker struct{}

func (sozeMaker) Needs() Needs { return Needs{MaxQD: true} }

func (sozeMaker) NewLaw(f FlowInfo) (law.Law, error) {
	return soze.New(param.For[soze.Params](f), f.Weight)
}

// TestSozeIsWeightedMaxMin runs flows of random weights over a chain of three links and compares their goodput
// with the solver's shares; the laws' control loop is between the two.
func TestSozeIsWeightedMaxMin(t *testing.T) {
	const flows, switches = 8, 4
	for seed := range uint64(2) {
		rng := Stream(seed, "case")
		g := &topo.Graph{Hosts: 2 * flows, Switches: switches}
		for i := range 2 * flows {
			g.Names = append(g.Names, "h"+string(rune('a'+i)))
		}
		g.Names = append(g.Names, "s0", "s1", "s2", "s3")
		for i := range switches - 1 {
			g.Links = append(g.Links, topo.Link{A: 2*flows + i, B: 2*flows + i + 1, Rate: units.Rate(40+20*rng.IntN(4)) * units.Gbps, Delay: units.Microsecond})
		}
		var specs []FlowSpec
		var model []maxmin.Flow
		for i := range flows {
			from := rng.IntN(switches - 1)
			to := from + 1 + rng.IntN(switches-1-from)
			for _, end := range []struct{ host, sw int }{{i, from}, {flows + i, to}} {
				g.Links = append(g.Links, topo.Link{A: end.host, B: 2*flows + end.sw, Rate: 100 * units.Gbps, Delay: units.Microsecond})
			}
			w := 0.5 + float64(rng.IntN(8))/2
			specs = append(specs, FlowSpec{Src: i, Dst: flows + i, Stop: 12 * units.Millisecond, Weight: w, Group: i, Law: sozeMaker{}})
			f := maxmin.Flow{Weight: w}
			for l := from; l < to; l++ {
				f.Path = append(f.Path, l)
			}
			model = append(model, f)
		}
		var capacity []float64
		for i := range switches - 1 {
			capacity = append(capacity, float64(g.Links[i].Rate)/1e9*1000/1054)
		}
		want, err := maxmin.Solve(capacity, model)
		if err != nil {
			t.Fatal(err)
		}
		s := must[*Sim](t)(New(Config{Graph: g, Seed: seed, Groups: flows}))
		if err := s.AddFlows(specs); err != nil {
			t.Fatal(err)
		}
		if err := s.Run(8 * units.Millisecond); err != nil {
			t.Fatal(err)
		}
		var before [flows]units.Bytes
		for i := range before {
			before[i] = s.Delivered(i)
		}
		if err := s.Run(12 * units.Millisecond); err != nil {
			t.Fatal(err)
		}
		for i := range flows {
			got := float64(s.Delivered(i)-before[i]) * 8 / 4e-3 / 1e9
			if math.Abs(got-want.Rate[i]) > 0.05*want.Rate[i] {
				t.Errorf("seed %d flow %d of weight %g: %.2f Gb/s, want %.2f", seed, i, model[i].Weight, got, want.Rate[i])
			}
		}
	}
}

// TestSozeWeightSteps: a weight that grows by 5 ‰ is visible in its flow's share (Figure 18), whatever fraction
// of a packet the window has.
func TestSozeWeightSteps(t *testing.T) {
	for _, flows := range []int{2, 4, 10} {
		g := must[*topo.Graph](t)(topo.Star(flows+1, line100))
		s := must[*Sim](t)(New(Config{Graph: g, Groups: flows}))
		var specs []FlowSpec
		for i := range flows {
			specs = append(specs, FlowSpec{Src: i, Dst: flows, Group: i, Law: sozeMaker{}})
		}
		if err := s.AddFlows(specs); err != nil {
			t.Fatal(err)
		}
		others := float64(flows - 1)
		for _, w := range []float64{1, 1.005, 1.010, 1.015} {
			if err := s.Run(s.Now() + 2*units.Millisecond); err != nil {
				t.Fatal(err)
			}
			own, all := s.Delivered(0), delivered(s, flows)
			if err := s.Run(s.Now() + 8*units.Millisecond); err != nil {
				t.Fatal(err)
			}
			got := float64(s.Delivered(0)-own) / float64(delivered(s, flows)-all)
			if want := w / (w + others); math.Abs(got/want-1) > 0.0015 {
				t.Errorf("%d flows, weight %.3f: share %.5f, want %.5f", flows, w, got, want)
			}
			if err := s.SetWeight(0, w+0.005); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func delivered(s *Sim, groups int) (n units.Bytes) {
	for i := range groups {
		n += s.Delivered(i)
	}
	return n
}

// echoes is Söze that records the echoes that it gets.
type echoes struct {
	law.Law
	seen map[units.Time]bool
}

func (e echoes) OnAck(a *law.Ack) {
	e.seen[a.MaxQD] = true
	e.Law.OnAck(a)
}

func (e echoes) Needs() Needs { return Needs{MaxQD: true} }

func (e echoes) NewLaw(f FlowInfo) (law.Law, error) {
	l, err := sozeMaker{}.NewLaw(f)
	return echoes{l, e.seen}, err
}

// TestMaxQDIsAField: hosts see the value of the 16-bit field, in whole units up to its maximum.
func TestMaxQDIsAField(t *testing.T) {
	for _, unit := range []units.Time{units.Microsecond, 100 * units.Picosecond} {
		g := must[*topo.Graph](t)(topo.Star(3, line100))
		s := must[*Sim](t)(New(Config{Graph: g, MaxQDUnit: unit}))
		seen := map[units.Time]bool{}
		if err := s.AddFlows([]FlowSpec{
			{Src: 0, Dst: 2, Stop: units.Millisecond, Law: echoes{seen: seen}},
			{Src: 1, Dst: 2, Stop: units.Millisecond, Law: sozeMaker{}},
		}); err != nil {
			t.Fatal(err)
		}
		if err := s.Run(units.Millisecond); err != nil {
			t.Fatal(err)
		}
		for d := range seen {
			if d%unit != 0 || d > 65535*unit {
				t.Errorf("unit %v: an echo of %v", unit, d)
			}
		}
		if len(seen) < 3 {
			t.Errorf("unit %v: only %d values seen", unit, len(seen))
		}
	}
}
