package sim

import (
	"reflect"
	"strings"
	"testing"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/dcqcn"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

var line25 = topo.Line{Rate: 25 * units.Gbps, Delay: units.Microsecond}

type vendor struct{}

func (vendor) NewLaw(f FlowInfo) (law.Law, error) { return dcqcn.New(dcqcn.Vendor(f)) }

// paccStar is n hosts that send to one receiver, whose port has PACC.
func paccStar(t *testing.T, seed uint64, n int, stop units.Time, change func(*cnpgen.Params)) (s *Sim, port int) {
	t.Helper()
	g := must[*topo.Graph](t)(topo.Star(n+1, line25))
	s = must[*Sim](t)(New(Config{Graph: g, Seed: seed, Groups: n, PACC: &PACC{Params: func(r units.Rate) cnpgen.Params {
		p := paperParams(r)
		change(&p)
		return p
	}}}))
	var flows []FlowSpec
	for i := range n {
		flows = append(flows, FlowSpec{Src: i, Dst: n, Stop: stop, Group: i, Law: vendor{}})
	}
	if err := s.AddFlows(flows); err != nil {
		t.Fatal(err)
	}
	return s, must[int](t)(s.PortOf(n+1, n))
}

// swing runs to a time and returns the smallest and largest queue after another time.
func swing(t *testing.T, s *Sim, port int, from, to units.Time) (least, most units.Bytes) {
	t.Helper()
	least = units.GB
	for at := from; at <= to; at += 10 * units.Microsecond {
		if err := s.Run(at); err != nil {
			t.Fatal(err)
		}
		q := s.Queued(port, 0)
		least, most = min(least, q), max(most, q)
	}
	return least, most
}

// TestPACCHoldsQueue: four DCQCN flows without a notification point have equal rates. With rounding down, the
// queue settles where shares are whole CNPs, at Q_th + n/β1 = 205 KB; with carried remainders it settles near
// Q_th. A controller with a wrong or inverted proportional or differential part leaves these bounds.
func TestPACCHoldsQueue(t *testing.T) {
	const ms = units.Millisecond
	for _, tt := range []struct {
		name      string
		change    func(*cnpgen.Params)
		low, high units.Bytes
		spread    float64
	}{
		{"as in the paper", func(*cnpgen.Params) {}, 190 * units.KB, 220 * units.KB, 0.05},
		{"carry", func(p *cnpgen.Params) { p.Carry = true }, 125 * units.KB, 165 * units.KB, 0.08},
		{"twice the threshold", func(p *cnpgen.Params) { p.Threshold *= 2 }, 315 * units.KB, 345 * units.KB, 0.05},
	} {
		s, port := paccStar(t, 0, 4, 100*ms, tt.change)
		if least, most := swing(t, s, port, 20*ms, 30*ms); least < tt.low || most > tt.high {
			t.Errorf("%s: queue from %v to %v, want %v to %v", tt.name, least, most, tt.low, tt.high)
		}
		if err := s.Run(90 * ms); err != nil { // rates converge slowly with carried remainders
			t.Fatal(err)
		}
		var before [4]units.Bytes
		for i := range before {
			before[i] = s.Delivered(i)
		}
		runAll(t, s, 100*ms)
		var rates []float64
		for i := range before {
			rates = append(rates, float64(s.Delivered(i)-before[i]))
		}
		low, high, sum := rates[0], rates[0], 0.0
		for _, r := range rates {
			low, high, sum = min(low, r), max(high, r), sum+r
		}
		if (high-low)/(sum/4) > tt.spread {
			t.Errorf("%s: rates differ by %.1f %%: %v", tt.name, 100*(high-low)/(sum/4), rates)
		}
		if used := sum * 8 / 10e-3 / 25e9 * 1054 / 1000; used < 0.99 {
			t.Errorf("%s: utilisation %.3f", tt.name, used)
		}
		if st := s.Stats(); st.CNPs == 0 || st.Marks != 0 {
			t.Errorf("%s: %d CNPs and %d marks, want CNPs of the switch alone", tt.name, st.CNPs, st.Marks)
		}
		if st, ok := paccStats(s, port); !ok || st.CNPs < s.Stats().CNPs || st.Missed != 0 {
			t.Errorf("%s: port's counts %+v for %d CNPs", tt.name, st, s.Stats().CNPs)
		}
	}
}

// TestPACCDamps: without its differential part the queue swings more. The test uses several phases of the port's
// ticks, because the two flows may also swing against each other.
func TestPACCDamps(t *testing.T) {
	const ms = units.Millisecond
	span := func(beta2 float64) units.Bytes {
		var sum units.Bytes
		for seed := range uint64(4) {
			s, port := paccStar(t, seed, 2, 10*ms, func(p *cnpgen.Params) { p.Beta2 = beta2 })
			least, most := swing(t, s, port, ms, 6*ms)
			sum += most - least
		}
		return sum
	}
	if with, without := span(0.1), span(0); 3*with > 2*without {
		t.Errorf("the queue swings by %v with β2 and %v without, want less than two thirds", with, without)
	}
}

// TestPACCBurstFilter: none of nine bursts of 30 KB that meet a tick causes a CNP while the filtered queue is
// below Q_burst. Without the filter some do. Lasting congestion passes the filter.
func TestPACCBurstFilter(t *testing.T) {
	burst := func(w float64) (cnps, filtered uint64) {
		g := must[*topo.Graph](t)(topo.Star(10, line25))
		s := must[*Sim](t)(New(Config{Graph: g, PACC: &PACC{Params: func(r units.Rate) cnpgen.Params {
			p := paperParams(r)
			p.FilterWeight, p.Burst = w, 110*units.KB
			return p
		}}}))
		var flows []FlowSpec
		for i := range 9 {
			flows = append(flows, FlowSpec{Src: i, Dst: 9, Size: 30 * units.KB, Start: 65 * units.Microsecond, Law: vendor{}})
		}
		if err := s.AddFlows(flows); err != nil {
			t.Fatal(err)
		}
		runAll(t, s, 10*units.Millisecond)
		st, _ := paccStats(s, must[int](t)(s.PortOf(10, 9)))
		return s.Stats().CNPs, st.Filtered
	}
	if cnps, filtered := burst(0.4); cnps != 0 || filtered == 0 {
		t.Errorf("with the filter %d CNPs, %d ticks held back", cnps, filtered)
	}
	if cnps, filtered := burst(1); cnps == 0 || filtered != 0 {
		t.Errorf("without it %d CNPs, %d ticks held back", cnps, filtered)
	}
	s, _ := paccStar(t, 0, 4, units.Millisecond, func(p *cnpgen.Params) { p.FilterWeight, p.Burst = 0.4, 110*units.KB })
	runAll(t, s, units.Millisecond)
	if s.Stats().CNPs == 0 {
		t.Error("congestion that lasts gets no CNPs")
	}
}

// TestPACCIsFair: long flows converge to equal rates, whatever their start times, and with bursts between them.
func TestPACCIsFair(t *testing.T) {
	const ms = units.Millisecond
	for seed := range uint64(6) {
		rng := Stream(seed, "mix")
		n := 2 + rng.IntN(7)
		g := must[*topo.Graph](t)(topo.Star(n+5, line25))
		s := must[*Sim](t)(New(Config{Graph: g, Groups: n + 1, PACC: &PACC{Params: paperParams}}))
		var flows []FlowSpec
		for i := range n {
			flows = append(flows, FlowSpec{Src: i, Dst: n + 4, Start: units.Time(rng.Int64N(int64(10 * ms))), Stop: 80 * ms, Group: i, Law: vendor{}})
		}
		for range 20 {
			flows = append(flows, FlowSpec{
				Src: n + rng.IntN(4), Dst: n + 4, Size: units.Bytes(1000 + rng.IntN(60_000)), Start: units.Time(rng.Int64N(int64(60 * ms))), Group: n, Law: vendor{},
			})
		}
		if err := s.AddFlows(flows); err != nil {
			t.Fatal(err)
		}
		if err := s.Run(60 * ms); err != nil {
			t.Fatal(err)
		}
		before := make([]units.Bytes, n)
		for i := range before {
			before[i] = s.Delivered(i)
		}
		if err := s.Run(80 * ms); err != nil {
			t.Fatal(err)
		}
		sum, squares := 0.0, 0.0
		for i := range before {
			r := float64(s.Delivered(i) - before[i])
			sum, squares = sum+r, squares+r*r
		}
		jain := sum * sum / float64(n) / squares
		t.Logf("seed %d: %d flows, fairness %.4f", seed, n, jain)
		if jain < 0.98 {
			t.Errorf("seed %d: fairness of %d flows %.4f, want at least 0.98", seed, n, jain)
		}
	}
}

// TestPACCAcrossTheFabric sends CNPs over several hops in shared buffers and through the failure of a link. The
// buffers' accounts stay right, and two runs agree.
func TestPACCAcrossTheFabric(t *testing.T) {
	run := func() (Stats, []Result) {
		g := must[*topo.Graph](t)(topo.LeafSpine(3, 2, 4, line25, line100))
		var buffers []*headroom.MMU
		s := must[*Sim](t)(New(Config{
			Graph: g, PACC: &PACC{Params: paperParams},
			NewBuffer: func(i SwitchInfo) (Buffer, error) {
				c := headroom.Config{Policy: headroom.DSH, Buffer: 4 * units.MB, Lossless: 0x7F}
				for p := range i.Rates {
					c.Ports = append(c.Ports, headroom.Port{Rate: i.Rates[p], Delay: i.Delay[p]})
				}
				m, err := headroom.New(c)
				buffers = append(buffers, m)
				return m, err
			},
		}))
		var flows []FlowSpec
		for i := range 8 {
			flows = append(flows, FlowSpec{Src: i, Dst: 8 + i%2, Size: 2 * units.MB, Law: vendor{}})
		}
		if err := s.AddFlows(flows); err != nil {
			t.Fatal(err)
		}
		l, ok := g.LinkBetween(12, 15)
		if !ok {
			t.Fatal("no link from the first leaf to the first spine")
		}
		s.At(units.Millisecond, func(s *Sim) error { return s.SetLink(l, true) })
		s.At(2*units.Millisecond, func(s *Sim) error { return s.SetLink(l, false) })
		runAll(t, s, 50*units.Millisecond)
		if s.Running() != 0 {
			t.Fatalf("%d flows still run", s.Running())
		}
		// The ticks end with the traffic.
		if err := s.Run(units.MaxTime); err != nil {
			t.Fatal(err)
		}
		for i, m := range buffers {
			if err := m.Audit(); err != nil {
				t.Errorf("switch %d: %v", i, err)
			}
			if u := m.Usage(); u != (headroom.Usage{}) {
				t.Errorf("switch %d: %+v is still accounted", i, u)
			}
		}
		return s.Stats(), s.Results()
	}
	st, results := run()
	if st.CNPs == 0 || st.Dropped != 0 {
		t.Errorf("%d CNPs, %d drops", st.CNPs, st.Dropped)
	}
	again, resultsAgain := run()
	if st != again || !reflect.DeepEqual(times(results), times(resultsAgain)) {
		t.Errorf("two runs differ:\n%+v\n%+v", st, again)
	}
}

func times(results []Result) (fct []units.Time) {
	for _, r := range results {
		fct = append(fct, r.FCT)
	}
	return fct
}

func TestPACCRefuses(t *testing.T) {
	g := must[*topo.Graph](t)(topo.Star(2, line25))
	for want, c := range map[string]PACC{
		"pacc: class 8": {Class: 8, Params: paperParams},
		"pacc: beta1":   {Params: func(units.Rate) cnpgen.Params { p := paperParams(units.Gbps); p.Beta1 = 0; return p }},
	} {
		if _, err := New(Config{Graph: g, PACC: &c}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// paperParams are the paper's parameters for a line rate, with its period.
func paperParams(rate units.Rate) cnpgen.Params { return cnpgen.ParamsFor(rate, cnpgen.PaperInterval) }

// paccStats returns PACC's counters at an egress port; false without PACC or at a host.
func paccStats(s *Sim, port int) (cnpgen.Stats, bool) {
	if s.paccs == nil || s.paccs[port] == nil {
		return cnpgen.Stats{}, false
	}
	return s.paccs[port].engine.Stats(), true
}
