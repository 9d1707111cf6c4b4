package timely_test

import (
	"math"
	"strings"
	"testing"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/timely"
	"github.com/headgate/headgate/units"
)

const us = units.Microsecond

func params() timely.Params {
	p := param.For[timely.Params](law.Flow{Rate: 10 * units.Gbps, BaseRTT: 20 * us})
	p.StartRate = 5 * units.Gbps
	return p
}

// feeder gives a law one acknowledgement per round.
type feeder struct {
	*timely.Law
	seq uint64
}

func newLaw(t testing.TB, p timely.Params) *feeder {
	t.Helper()
	l, err := timely.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return &feeder{Law: l}
}

func (f *feeder) round(rtt units.Time) float64 {
	f.seq += 1000
	f.OnAck(&law.Ack{RTT: rtt, Acked: 1000, AckedSeq: f.seq, SentSeq: f.seq})
	return f.rate()
}

func (f *feeder) rate() float64 { return float64(f.Allowance().Rate) }

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Abs(want)+2 {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func TestAlgorithm1(t *testing.T) {
	p := params()
	p.MaxDecrease = 1
	l := newLaw(t, p)
	near(t, "the first round trip only starts", l.round(100*us), 5e9)
	near(t, "below the low threshold", l.round(49*us), 5e9+10e6)
	l.round(49 * us) // diff: 0.125·0.875·(−51)
	r := l.rate()
	diff := 0.125*(0.125*0.875*-51) + 0.875*21 // µs
	near(t, "rising between the thresholds", l.round(70*us), r*(1-0.8*diff/20))
	r = l.rate()
	near(t, "above the high threshold", l.round(1000*us), r*(1-0.8*0.5))
}

// §4.4: five increases in a row by the gradient, then steps of 5δ.
func TestHyperactiveIncrease(t *testing.T) {
	l := newLaw(t, params())
	l.round(100 * us)
	for i := range 7 {
		before := l.rate()
		step := 10e6
		if i >= 4 {
			step = 50e6
		}
		near(t, "increase", l.round(100*us)-before, step)
	}
	l.round(300 * us) // rising: a cut, and the count starts again
	for l.round(300 * us); ; {
		before := l.rate()
		if l.round(300*us) > before { // the gradient has decayed
			near(t, "first increase after a cut", l.rate()-before, 10e6)
			return
		}
	}
}

// A burst of other flows takes at most half of the rate in a round trip, however steep the gradient is.
func TestOneBurst(t *testing.T) {
	l := newLaw(t, params())
	l.round(60 * us)
	near(t, "a gradient of 17 base round trips", l.round(450*us), 2.5e9)
	near(t, "and the queue drains", l.round(60*us), 2.5e9+10e6)
	l.round(60 * us)
	near(t, "far above the high threshold", l.round(units.Second)/l.rate(), 1)
	if l.rate() < 1.2e9 {
		t.Errorf("rate %v after two bursts, want a quarter of 5 Gb/s or more", l.rate())
	}
}

func TestAcksWithinARoundDoNothing(t *testing.T) {
	l := newLaw(t, params())
	l.OnAck(&law.Ack{RTT: 30 * us, Acked: 1000, AckedSeq: 1000, SentSeq: 100000})
	for seq := uint64(2000); seq <= 100000; seq += 1000 {
		l.OnAck(&law.Ack{RTT: 30 * us, Acked: 1000, AckedSeq: seq, SentSeq: seq + 100000})
	}
	near(t, "rate", l.rate(), 5e9)
	l.OnAck(&law.Ack{RTT: 30 * us, Acked: 1000, AckedSeq: 101000, SentSeq: 200000})
	near(t, "rate", l.rate(), 5e9+10e6)
}

func TestLossHalvesOncePerRoundTrip(t *testing.T) {
	l := newLaw(t, params())
	l.OnEvent(law.Loss, units.Millisecond)
	l.OnEvent(law.Loss, units.Millisecond+us)
	near(t, "rate", l.rate(), 2.5e9)
}

func TestParams(t *testing.T) {
	for name, bad := range map[string]func(*timely.Params){
		"line_rate":    func(p *timely.Params) { p.LineRate = 0 },
		"min_rtt":      func(p *timely.Params) { p.MinRTT = 0 },
		"min_rate":     func(p *timely.Params) { p.MinRate = 11 * units.Gbps },
		"start_rate":   func(p *timely.Params) { p.StartRate = 11 * units.Gbps },
		"low_rtt":      func(p *timely.Params) { p.LowRTT = -1 },
		"high_rtt":     func(p *timely.Params) { p.HighRTT = us },
		"alpha":        func(p *timely.Params) { p.Alpha = math.NaN() },
		"beta":         func(p *timely.Params) { p.Beta = 2 },
		"increase":     func(p *timely.Params) { p.Increase = -1 },
		"hyper_after":  func(p *timely.Params) { p.HyperAfter = -1 },
		"max_decrease": func(p *timely.Params) { p.MaxDecrease = 0 },
		"hyper_factor": func(p *timely.Params) { p.HyperFactor = 0.5 },
	} {
		p := params()
		bad(&p)
		if _, err := timely.New(p); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: error %v, want one that names it", name, err)
		}
	}
}

func BenchmarkOnAck(b *testing.B) {
	l := newLaw(b, params())
	b.ReportAllocs()
	a := law.Ack{RTT: 60 * us, Acked: 1000}
	for b.Loop() {
		a.AckedSeq += 1000
		a.SentSeq = a.AckedSeq
		l.OnAck(&a)
	}
}

// The parameters of HPCC's public simulator (run.py --cc timely at --bw 100), and its update step by step
// (UpdateRateTimely).
func TestNS3(t *testing.T) {
	var p timely.Params
	param.Defaults(func(s *param.Set) { p.VisitNS3(s, &law.Flow{Rate: 100 * units.Gbps, BaseRTT: 8 * us}) })
	want := timely.Params{
		LineRate: 100 * units.Gbps, MinRTT: 20 * us, MinRate: units.Gbps, StartRate: 100 * units.Gbps, LowRTT: 50 * us, HighRTT: 500 * us,
		Alpha: 0.875, Beta: 0.8, Increase: 100 * units.Mbps, HyperAfter: 6, HyperFactor: 5, MaxDecrease: 1, HyperBelow: true,
	}
	if p != want {
		t.Fatalf("parameters %+v, want %+v", p, want)
	}
	l := newLaw(t, p)
	l.round(60 * us)
	near(t, "a round trip of 1 ms", l.round(units.Millisecond), 100e9*(1-0.8*(1-0.5))) // above TimelyTHigh
	near(t, "a gradient of more than 1/β takes all but the floor", func() float64 { l.round(100 * us); return l.round(400 * us) }(), 1e9)
	r := 1e9
	for i := range 8 { // below TimelyTLow: five steps of 100 Mb/s, then of 500
		r += 100e6
		if i >= 5 {
			r += 400e6
		}
		near(t, "a round trip of 40 µs", l.round(40*us), r)
	}
}
