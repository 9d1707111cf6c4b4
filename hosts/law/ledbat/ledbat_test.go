package ledbat_test

import (
	"math"
	"strings"
	"testing"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/ledbat"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

const us = units.Microsecond

func params() ledbat.Params {
	p := param.For[ledbat.Params](law.Flow{Rate: 100 * units.Gbps, MSS: 1000})
	p.Target, p.Filter, p.InitialWindow = 20*us, 1, 100000
	return p
}

func newLaw(t testing.TB, p ledbat.Params) *ledbat.Law {
	t.Helper()
	l, err := ledbat.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Abs(want)+1e-6 {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func ack(now, delay units.Time) *law.Ack {
	return &law.Ack{Now: now, RTT: 2 * delay, Delay: delay, Acked: 1000, Inflight: 1 << 30}
}

// §2.4.2: cwnd += GAIN·off_target·acked·MSS/cwnd.
func TestStep(t *testing.T) {
	l := newLaw(t, params())
	l.OnAck(ack(0, 10*us)) // the base delay
	w := 100000.0 + 10
	near(t, "on an empty path", l.Window(), w)
	l.OnAck(ack(0, 25*us))
	w += 0.25 * 1000 * 1000 / w
	near(t, "a quarter off the target", l.Window(), w)
	l.OnAck(ack(0, 30*us))
	near(t, "at the target", l.Window(), w)
	l.OnAck(ack(0, 50*us))
	w -= 1000 * 1000 / w
	near(t, "as far above", l.Window(), w)
	l.SetIncrease(0.5, 3000)
	l.OnAck(ack(0, 20*us))
	w += (0.25*1000 + 3000) * 1000 / w
	near(t, "half the gain and 3000 B", l.Window(), w)
	l.OnAck(ack(0, 50*us))
	w -= 0.5 * 1000 * 1000 / w
	near(t, "extra is for below the target", l.Window(), w)
}

func TestFlightBoundsGrowth(t *testing.T) {
	l := newLaw(t, params())
	l.OnAck(&law.Ack{RTT: us, Delay: us, Acked: 1000, Inflight: 98990})
	near(t, "the flight before and one packet", l.Window(), 100010)
	l.OnAck(&law.Ack{RTT: us, Delay: us, Acked: 1000, Inflight: 0})
	near(t, "growth is refused, the window stays", l.Window(), 100010)
}

func TestFilterTakesTheLeast(t *testing.T) {
	p := params()
	p.Filter, p.BaseDelay = 3, 10*us
	l := newLaw(t, p)
	l.OnAck(ack(0, 30*us))
	w := l.Window()
	l.OnAck(ack(0, 90*us))
	l.OnAck(ack(0, 90*us))
	near(t, "two noisy delays of three", l.Window(), w)
	l.OnAck(ack(0, 90*us))
	if l.Window() >= w {
		t.Error("three of three are not noise")
	}
}

// The base delay is forgotten after BASE_HISTORY intervals, so that the law notices a longer path.
func TestBaseHistory(t *testing.T) {
	p := params()
	p.BaseHistory, p.BaseInterval = 2, units.Millisecond
	l := newLaw(t, p)
	l.OnAck(ack(0, 10*us))
	for i := range 3 {
		before := l.Window()
		l.OnAck(ack(units.Time(i+1)*units.Millisecond, 50*us))
		grew := l.Window() > before
		if want := i >= 1; grew != want {
			t.Errorf("interval %d: grew %v, want %v", i+1, grew, want)
		}
	}
}

func TestLossHalvesOncePerRoundTrip(t *testing.T) {
	l := newLaw(t, params())
	l.OnAck(ack(0, 30*us))
	w := l.Window()
	l.OnEvent(law.Loss, 0)
	l.OnEvent(law.Loss, 59*us)
	near(t, "window", l.Window(), w/2)
	l.OnEvent(law.Loss, 60*us)
	near(t, "window", l.Window(), w/4)
	l.SetWindow(0)
	near(t, "MIN_CWND", l.Window(), 2000)
}

func TestParams(t *testing.T) {
	for name, bad := range map[string]func(*ledbat.Params){
		"line_rate":        func(p *ledbat.Params) { p.LineRate = 0 },
		"mss":              func(p *ledbat.Params) { p.MSS = 0 },
		"target":           func(p *ledbat.Params) { p.Target = units.Second },
		"gain":             func(p *ledbat.Params) { p.Gain = math.NaN() },
		"filter":           func(p *ledbat.Params) { p.Filter = 17 },
		"base_delay":       func(p *ledbat.Params) { p.BaseDelay = -1 },
		"base_history":     func(p *ledbat.Params) { p.BaseHistory = 17 },
		"base_interval":    func(p *ledbat.Params) { p.BaseInterval = -1 },
		"allowed_increase": func(p *ledbat.Params) { p.AllowedIncrease = -1 },
		"min_window":       func(p *ledbat.Params) { p.MinWindow = -1 },
		"max_window":       func(p *ledbat.Params) { p.MaxWindow = 1 },
		"initial_window":   func(p *ledbat.Params) { p.InitialWindow = 1 },
	} {
		p := params()
		bad(&p)
		if _, err := ledbat.New(p); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: error %v, want one that names it", name, err)
		}
	}
}

func BenchmarkOnAck(b *testing.B) {
	l := newLaw(b, params())
	a := ack(0, 0)
	b.ReportAllocs()
	for b.Loop() {
		a.Now += 80 * units.Nanosecond
		a.Delay = 25*us + a.Now%(10*us)
		l.OnAck(a)
	}
}
