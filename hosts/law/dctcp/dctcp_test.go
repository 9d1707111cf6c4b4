package dctcp_test

import (
	"math"
	"strings"
	"testing"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/dctcp"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

const us = units.Microsecond

func params() dctcp.Params {
	return param.For[dctcp.Params](law.Flow{Rate: 100 * units.Gbps, MSS: 1000})
}

// d2tcp returns the parameters of a flow with a deadline.
func d2tcp(f law.Flow) (p dctcp.Params) {
	param.Defaults(func(s *param.Set) { p.VisitD2TCP(s, &f) })
	return p
}

func newLaw(t testing.TB, p dctcp.Params) *dctcp.Law {
	t.Helper()
	l, err := dctcp.New(p)
	if err != nil {
		t.Fatal(err)
	}
	l.OnEvent(law.Start, 0)
	return l
}

func window(l *dctcp.Law) float64 { return float64(l.Allowance().Window) }

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Abs(want)+1 {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// ack acknowledges one packet with a full window in flight.
func ack(l *dctcp.Law, seq *uint64, ce bool) *law.Ack {
	*seq += 1000
	w := l.Allowance().Window
	return &law.Ack{RTT: 10 * us, Acked: 1000, Inflight: w, AckedSeq: *seq, SentSeq: *seq + uint64(w), CE: ce}
}

func TestSlowStartThenAlpha(t *testing.T) {
	l := newLaw(t, params())
	var seq uint64
	for range 10 {
		l.OnAck(ack(l, &seq, false))
	}
	near(t, "window after ten acknowledgements of slow start", window(l), 20000)
	l.OnAck(ack(l, &seq, true))
	near(t, "window after the first mark", window(l), 20000*(1-l.Alpha()/2))
	w := window(l)
	l.OnAck(ack(l, &seq, true))
	near(t, "window after a second mark of the same window", window(l), w)
	l.OnAck(ack(l, &seq, false))
	near(t, "no increase by more than MSS²/W", window(l), w+1000*1000/w)
}

// Equation 1: with a constant share of marks, alpha approaches that share.
func TestAlphaIsTheShareOfMarks(t *testing.T) {
	p := params()
	p.MaxWindow = 10000
	l := newLaw(t, p)
	var seq uint64
	for i := range 20000 {
		a := ack(l, &seq, i%5 == 0)
		a.SentSeq = seq + 10000
		l.OnAck(a)
	}
	if a := l.Alpha(); math.Abs(a-0.2) > 0.01 {
		t.Errorf("alpha = %v with one packet in five marked, want 0.2", a)
	}
}

func TestLossHalves(t *testing.T) {
	l := newLaw(t, params())
	l.OnEvent(law.Loss, 0)
	near(t, "window", window(l), 5000)
	for range 10 {
		l.OnEvent(law.Loss, 0)
	}
	near(t, "floor", window(l), 1000)
}

func TestIdleFlowDoesNotGrow(t *testing.T) {
	l := newLaw(t, params())
	l.OnAck(&law.Ack{RTT: us, Acked: 1000, Inflight: 1000, AckedSeq: 1000, SentSeq: 2000})
	near(t, "window", window(l), 10000)
}

// D2TCP §3.2: d = B/(¾·W/RTT) divided by the remaining time, between 0.5 and 2; p = α^d.
func TestUrgency(t *testing.T) {
	l := newLaw(t, d2tcp(law.Flow{Rate: 100 * units.Gbps, MSS: 1000, Deadline: units.Millisecond, Size: 750 * 1000}))
	a := law.Ack{Now: 0, RTT: 10 * us, AckedSeq: 0, SentSeq: 10000}
	near(t, "d with 100 round trips to go and 100 left", l.Urgency(&a), 1)
	a.AckedSeq = 300 * 1000
	near(t, "d with 60 round trips to go", 100*l.Urgency(&a), 60)
	a.AckedSeq = 700 * 1000
	near(t, "d of a far deadline", 10*l.Urgency(&a), 5)
	a.Now = 2 * units.Millisecond
	near(t, "d of a missed deadline", l.Urgency(&a), 2)
}

func TestParams(t *testing.T) {
	for name, bad := range map[string]func(*dctcp.Params){
		"line_rate":      func(p *dctcp.Params) { p.LineRate = 0 },
		"mss":            func(p *dctcp.Params) { p.MSS = 0 },
		"gain":           func(p *dctcp.Params) { p.Gain = math.NaN() },
		"increase":       func(p *dctcp.Params) { p.Increase = -1 },
		"initial_window": func(p *dctcp.Params) { p.InitialWindow = 1 },
		"max_window":     func(p *dctcp.Params) { p.MaxWindow = 2000 },
		"deadline":       func(p *dctcp.Params) { p.Deadline = -1 },
		"size":           func(p *dctcp.Params) { p.Deadline = 1 },
		"min_urgency":    func(p *dctcp.Params) { p.Deadline, p.Size, p.MinUrgency = 1, 1, 1.5 },
		"max_urgency":    func(p *dctcp.Params) { p.Deadline, p.Size, p.MinUrgency, p.MaxUrgency = 1, 1, 0.5, 0.5 },
	} {
		p := params()
		bad(&p)
		if _, err := dctcp.New(p); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: error %v, want one that names it", name, err)
		}
	}
}

func BenchmarkOnAck(b *testing.B) {
	l := newLaw(b, params())
	var seq uint64
	a := law.Ack{RTT: 10 * us, Acked: 1000, Inflight: 1 << 40}
	b.ReportAllocs()
	for b.Loop() {
		seq += 1000
		a.AckedSeq, a.SentSeq, a.CE = seq, seq+100000, seq%50000 == 0
		l.OnAck(&a)
	}
}
