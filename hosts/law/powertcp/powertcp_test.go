package powertcp_test

import (
	"math"
	"strings"
	"testing"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/powertcp"
	"github.com/headgate/headgate/units"
)

const us = units.Microsecond

func params() powertcp.Params {
	p := param.For[powertcp.Params](law.Flow{Rate: 100 * units.Gbps, BaseRTT: 12 * us, MSS: 1000})
	p.Increase = 1500
	return p
}

func newLaw(t testing.TB, p powertcp.Params) *powertcp.Law {
	t.Helper()
	l, err := powertcp.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func window(l *powertcp.Law) float64 { return float64(l.Allowance().Window) }

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6*math.Abs(want)+1 {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func TestStart(t *testing.T) {
	a := newLaw(t, params()).Allowance()
	near(t, "cwnd_init = HostBw·τ", float64(a.Window), 150000)
	near(t, "rate = cwnd/τ", float64(a.Rate), 100e9)
}

// Algorithm 1 with a full τ between acknowledgements, so that Γ_smooth is the sample.
func TestAlgorithm1(t *testing.T) {
	l := newLaw(t, params())
	hop := law.Hop{Rate: 100 * units.Gbps}
	seq := uint64(0)
	next := func(sent, queue units.Bytes) {
		seq += 1000
		hop.Time += 12 * us
		hop.TxBytes += sent
		hop.Queue = queue
		l.OnAck(&law.Ack{Acked: 1000, AckedSeq: seq, SentSeq: seq, INT: []law.Hop{hop}})
	}
	next(0, 0)
	// The queue of a busy link grows by 75 KB within τ: current 1.5, voltage 1.5.
	next(150000, 75000)
	near(t, "power", 1000*l.Power(), 2250)
	w := 0.9*(150000/2.25+1500) + 0.1*150000
	near(t, "window", window(l), w)
	// It shrinks as fast: current 0.5, voltage 1.
	next(150000, 0)
	near(t, "power of a draining queue", 1000*l.Power(), 500)
	near(t, "window", window(l), min(0.9*(w/0.5+1500)+0.1*w, 150000))
}

// Theorem 1: in equilibrium, power is 1 plus the sum of the flows' β. With a full link and no
// queue, the window grows by γ·β only.
func TestFullLinkIsPowerOne(t *testing.T) {
	l := newLaw(t, params())
	hop := law.Hop{Rate: 100 * units.Gbps, Queue: 75000}
	for seq := uint64(1000); seq <= 10000; seq += 1000 {
		if seq > 3000 {
			hop.Queue = 0
		}
		l.OnAck(&law.Ack{Acked: 1000, AckedSeq: seq, SentSeq: seq, INT: []law.Hop{hop}})
		hop.Time += 12 * us
		hop.TxBytes += 150000
		if seq >= 6000 {
			near(t, "power", 1000*l.Power(), 1000)
		}
	}
}

// cwnd_old moves once per round trip, so one overload is not answered twice.
func TestOldWindow(t *testing.T) {
	l := newLaw(t, params())
	hop := law.Hop{Rate: 100 * units.Gbps, Queue: 150000}
	w := 150000.0
	for seq := uint64(1000); seq <= 100000; seq += 1000 {
		l.OnAck(&law.Ack{Acked: 1000, AckedSeq: seq, SentSeq: 100000, INT: []law.Hop{hop}})
		hop.Time += 12 * us
		hop.TxBytes += 150000
		if seq > 1000 {
			w = 0.9*(150000.0/2+1500) + 0.1*w
			near(t, "window", window(l), w)
		}
	}
}

// Algorithm 2: Γ = (θ' + 1)·θ/τ, the window once per round trip.
func TestTheta(t *testing.T) {
	p := params()
	p.Theta = true
	l := newLaw(t, p)
	ack := func(now, rtt units.Time, acked, sent uint64) {
		l.OnAck(&law.Ack{Now: now, RTT: rtt, Acked: 1000, AckedSeq: acked, SentSeq: sent})
	}
	ack(100*us, 12*us, 1000, 1000)
	ack(112*us, 18*us, 2000, 20000) // ends the round: gradient 0.5, θ/τ 1.5
	near(t, "power", 1000*l.Power(), 2250)
	w := 0.9*(150000/2.25+1500) + 15000
	near(t, "window", window(l), w)
	ack(124*us, 18*us, 3000, 20000) // within the round
	near(t, "power of a steady queue", 1000*l.Power(), 1500)
	near(t, "window within a round", window(l), w)
}

func TestStrangeTelemetry(t *testing.T) {
	l := newLaw(t, params())
	l.OnAck(&law.Ack{Acked: 1000, AckedSeq: 1000})
	long := make([]law.Hop, 100)
	for i := range 3 {
		for j := range long {
			long[j] = law.Hop{Rate: units.Gbps, Time: units.Time(i/2) * us}
		}
		l.OnAck(&law.Ack{Acked: 1000, AckedSeq: 2000, INT: long})
	}
	l.OnAck(&law.Ack{Acked: 1000, AckedSeq: 3000, INT: []law.Hop{{}}})
	l.OnAck(&law.Ack{Acked: 1000, AckedSeq: 4000, INT: []law.Hop{{Time: us}}})
	if w := window(l); !(w >= 1000 && w <= 150000) {
		t.Errorf("window %v", w)
	}
}

func TestParams(t *testing.T) {
	for name, bad := range map[string]func(*powertcp.Params){
		"line_rate": func(p *powertcp.Params) { p.LineRate = 0 },
		"base_rtt":  func(p *powertcp.Params) { p.BaseRTT = 1 },
		"mss":       func(p *powertcp.Params) { p.MSS = 0 },
		"gamma":     func(p *powertcp.Params) { p.Gamma = math.NaN() },
		"flows":     func(p *powertcp.Params) { p.Flows = -1 },
		"increase":  func(p *powertcp.Params) { p.Increase = -1 },
	} {
		p := params()
		bad(&p)
		if _, err := powertcp.New(p); err == nil || !strings.HasPrefix(err.Error(), name) {
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
