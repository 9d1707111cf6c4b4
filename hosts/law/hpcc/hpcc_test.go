package hpcc_test

import (
	"math"
	"strings"
	"testing"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/hpcc"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

const us = units.Microsecond

func params() hpcc.Params {
	return param.For[hpcc.Params](law.Flow{Rate: 100 * units.Gbps, BaseRTT: 12 * us, MSS: 1000})
}

func newLaw(t testing.TB, p hpcc.Params) *hpcc.Law {
	t.Helper()
	l, err := hpcc.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func window(l *hpcc.Law) float64 { return float64(l.Allowance().Window) }

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6*math.Abs(want)+1 {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// round gives the law one acknowledgement that ends a round, dt after the previous one.
type feeder struct {
	*hpcc.Law
	seq uint64
	hop law.Hop
}

func (f *feeder) round(dt units.Time, sent, queue units.Bytes) float64 {
	f.seq += 1000
	f.hop.Time += dt
	f.hop.TxBytes += sent
	f.hop.Queue = queue
	f.hop.Rate = 100 * units.Gbps
	f.OnAck(&law.Ack{Acked: 1000, AckedSeq: f.seq, SentSeq: f.seq, INT: []law.Hop{f.hop}})
	return window(f.Law)
}

func TestStart(t *testing.T) {
	l := newLaw(t, params())
	a := l.Allowance()
	near(t, "W_init = B·T", float64(a.Window), 150000)
	near(t, "R = W/T", float64(a.Rate), 100e9)
}

// Algorithm 1 with a full round trip between acknowledgements, so that U is the sample.
func TestAlgorithm1(t *testing.T) {
	p := params()
	p.Increase = 100
	f := &feeder{Law: newLaw(t, p)}
	f.round(0, 0, 0) // stores the link's counters
	// A link that sent at its full rate with 75 KB queued: u = 1 + 75000/150000.
	w := 150000*0.95 + 100
	near(t, "W at a full link", f.round(12*us, 150000, 75000), w)
	near(t, "U counts the smaller queue of two", 1000*f.Utilisation(), 1000)
	near(t, "W with the queue seen twice", f.round(12*us, 150000, 75000), w/(1.5/0.95)+100)
	near(t, "U", 1000*f.Utilisation(), 1500)
	w = w/(1.5/0.95) + 100
	for range 5 { // stages 0 to 4 of additive increase
		w += 100
		near(t, "additive increase", f.round(12*us, 75000, 0), w)
	}
	w = w/(0.5/0.95) + 100
	near(t, "multiplicative increase after five stages, at most W_init", f.round(12*us, 75000, 0), min(w, 150000))
}

// Line 9: a sample has the weight of its time as a fraction of T. Before the first sample, the flow
// assumes that its own traffic fills the path.
func TestMovingAverage(t *testing.T) {
	f := &feeder{Law: newLaw(t, params())}
	near(t, "U of a flow that starts with B·T", 1000*f.Utilisation(), 1000)
	f.round(0, 0, 0)
	near(t, "W in the first moment at a full link", f.round(3*us, 37500, 75000), 150000*0.95+75)
	f.round(6*us, 37500, 0)
	near(t, "U", 1000*f.Utilisation(), 1000*(0.5*1+0.5*0.5))
}

// Within a round, each acknowledgement computes W from the same reference window, so that one
// overload is not counted twice.
func TestReferenceWindow(t *testing.T) {
	p := params()
	p.Increase = 100
	l := newLaw(t, p)
	hop := law.Hop{Rate: 100 * units.Gbps, Queue: 150000}
	send := func(seq uint64) {
		hop.Time += 12 * us
		hop.TxBytes += 150000
		l.OnAck(&law.Ack{Acked: 1000, AckedSeq: seq, SentSeq: 100000, INT: []law.Hop{hop}})
	}
	send(1000)
	for seq := uint64(2000); seq <= 100000; seq += 1000 {
		send(seq)
		near(t, "W", window(l), 150000/(2/0.95)+100)
	}
	send(101000) // ends the round
	send(102000)
	near(t, "W in the next round", window(l), (150000/(2/0.95)+100)/(2/0.95)+100)
}

func TestBusiestLinkDecides(t *testing.T) {
	p := params()
	p.Increase = 100
	l := newLaw(t, p)
	hops := []law.Hop{{Rate: 100 * units.Gbps}, {Rate: 400 * units.Gbps, Queue: 600000}}
	l.OnAck(&law.Ack{Acked: 1000, AckedSeq: 1000, SentSeq: 1000, INT: hops})
	hops[0].Time, hops[0].TxBytes = 12*us, 75000
	hops[1].Time, hops[1].TxBytes = 12*us, 300000
	l.OnAck(&law.Ack{Acked: 1000, AckedSeq: 2000, SentSeq: 2000, INT: hops})
	near(t, "U", 1000*l.Utilisation(), 1500)
}

func TestStrangeTelemetry(t *testing.T) {
	l := newLaw(t, params())
	l.OnAck(&law.Ack{Acked: 1000, AckedSeq: 1000})
	long := make([]law.Hop, 100)
	for i := range 3 {
		for j := range long {
			long[j] = law.Hop{Rate: units.Gbps, Time: units.Time(i/2) * us} // the clock stands still
		}
		l.OnAck(&law.Ack{Acked: 1000, AckedSeq: 2000, INT: long})
	}
	l.OnAck(&law.Ack{Acked: 1000, AckedSeq: 3000, INT: []law.Hop{{}}})
	l.OnAck(&law.Ack{Acked: 1000, AckedSeq: 4000, INT: []law.Hop{{Time: us}}})
	if w := window(l); !(w >= 1000 && w <= 150000) {
		t.Errorf("W = %v", w)
	}
}

func TestParams(t *testing.T) {
	for name, bad := range map[string]func(*hpcc.Params){
		"line_rate": func(p *hpcc.Params) { p.LineRate = 0 },
		"base_rtt":  func(p *hpcc.Params) { p.BaseRTT = 1 },
		"mss":       func(p *hpcc.Params) { p.MSS = 0 },
		"eta":       func(p *hpcc.Params) { p.Eta = math.NaN() },
		"max_stage": func(p *hpcc.Params) { p.MaxStage = -1 },
		"flows":     func(p *hpcc.Params) { p.Flows = -1 },
		"increase":  func(p *hpcc.Params) { p.Increase = -1 },
	} {
		p := params()
		bad(&p)
		if _, err := hpcc.New(p); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: error %v, want one that names it", name, err)
		}
	}
}

func BenchmarkOnAck(b *testing.B) {
	l := newLaw(b, params())
	hops := make([]law.Hop, 5)
	a := law.Ack{Acked: 1000, INT: hops}
	b.ReportAllocs()
	for b.Loop() {
		for i := range hops {
			hops[i].Rate = 100 * units.Gbps
			hops[i].Time += 80 * units.Nanosecond
			hops[i].TxBytes += 1000
		}
		a.AckedSeq += 1000
		a.SentSeq = a.AckedSeq + 150000
		l.OnAck(&a)
	}
}

// The parameters of HPCC's public simulator (run.py --cc hp at --bw 100) over T = 16 µs: 80 B are 40 Mb/s · T, and the
// minimum is 1 Gb/s · T.
func TestNS3(t *testing.T) {
	var p hpcc.Params
	param.Defaults(func(s *param.Set) { p.VisitNS3(s, &law.Flow{Rate: 100 * units.Gbps, BaseRTT: 16 * us, MSS: 1000}) })
	want := hpcc.Params{LineRate: 100 * units.Gbps, BaseRTT: 16 * us, MSS: 1000, Eta: 0.95, Flows: 100, Increase: 80, MinRate: units.Gbps}
	if p != want {
		t.Fatalf("parameters %+v, want %+v", p, want)
	}
	l := &feeder{Law: newLaw(t, p)}
	l.round(16*us, 200_000, 0)
	l.round(16*us, 200_000, 0) // U = 1 over a whole T
	near(t, "divided by the utilisation in each round", l.round(16*us, 200_000, 0), 200_000*0.95*0.95+0.95*80+80)
	for range 50 {
		l.round(16*us, 200_000, 20_000_000)
	}
	near(t, "the floor", window(l.Law), 2000)
}
