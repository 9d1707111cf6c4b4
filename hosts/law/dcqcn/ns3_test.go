package dcqcn_test

import (
	"math"
	"testing"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/dcqcn"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

// ns3 returns the parameters of run.py --cc dcqcn, or --cc dcqcn_paper, at 100 Gb/s.
func ns3(visit func(*dcqcn.Params, *param.Set, *law.Flow)) (p dcqcn.Params) {
	param.Defaults(func(s *param.Set) { visit(&p, s, &law.Flow{Rate: 100 * units.Gbps}) })
	return p
}

// The parameters of simulation/run.py in HPCC's public simulator, at --bw 100.
func TestNS3Sets(t *testing.T) {
	want := dcqcn.Params{
		LineRate: 100 * units.Gbps, MinRate: units.Gbps, Gain: 1.0 / 256, FastRecovery: 1,
		AdditiveIncrease: 20 * units.Mbps, HyperIncrease: 200 * units.Mbps, KeepTarget: true, AlphaClock: true, MarkedACKs: true,
	}
	for _, c := range []struct {
		visit                func(*dcqcn.Params, *param.Set, *law.Flow)
		alpha, cut, increase units.Time
	}{
		{(*dcqcn.Params).VisitNS3, us, 4 * us, 300 * us},
		{(*dcqcn.Params).VisitNS3Paper, 50 * us, 50 * us, 55 * us},
	} {
		want.AlphaTimer, want.CutInterval, want.IncreaseTimer = c.alpha, c.cut, c.increase
		if got := ns3(c.visit); got != want {
			t.Errorf("parameters %+v, want %+v", got, want)
		}
	}
}

// Alpha and cuts follow their own clocks (UpdateAlphaMlx, CheckRateDecreaseMlx): each step is compared with its
// closed form.
func TestNS3Clocks(t *testing.T) {
	l := newLaw(t, ns3((*dcqcn.Params).VisitNS3))
	const g = 1.0 / 256
	fall := func(n int) float64 { return math.Pow(1-g, float64(n)) }
	ns := units.Nanosecond
	l.OnAck(&law.Ack{Now: 10 * us, CE: true}) // starts the clocks; alpha is 1 and its bit clear
	near(t, "rate at the first notification", rate(l), 100e9)
	if at := l.Timer(); at != 14*us+ns {
		t.Fatalf("the first cut is due at %v, want 14.001 µs", at)
	}
	l.OnEvent(law.Tick, 14*us+ns)
	r := 100e9 * (1 - fall(4)/2)
	near(t, "rate after the first cut, alpha four steps below 1", rate(l), r)
	near(t, "target after the first cut", float64(l.Target()), 100e9)
	l.OnAck(&law.Ack{Now: 15*us + 500*ns, CE: true}) // only the clock at 16 µs counts them, however many there are
	l.OnAck(&law.Ack{Now: 15*us + 600*ns, CE: true})
	if at := l.Timer(); at != 18*us+ns {
		t.Fatalf("the second cut is due at %v, want 18.001 µs", at)
	}
	a := (fall(6) + g) * fall(2)
	near(t, "alpha at 18 µs", 1e9*l.Alpha(18*us), 1e9*a)
	l.OnEvent(law.Tick, 18*us+ns)
	r *= 1 - a/2
	near(t, "rate after the second cut", rate(l), r)
	near(t, "target, kept as nothing has increased", float64(l.Target()), 100e9)
	if at := l.Timer(); at != 318*us+ns {
		t.Fatalf("the increase is due at %v, want 300 µs after the cut", at)
	}
	for range 3 { // fast recovery, additive, hyper: the target is at line rate
		l.OnEvent(law.Tick, l.Timer())
		r = (r + 100e9) / 2
		near(t, "rate after increase", rate(l), r)
	}
	for l.Timer() < 2000*us {
		l.OnEvent(law.Tick, l.Timer())
	}
	r = rate(l)
	l.OnAck(&law.Ack{Now: 2000 * us, CE: true})
	at := l.Timer()
	if (at-10*us-ns)%(4*us) != 0 || at <= 2000*us || at > 2004*us+ns {
		t.Errorf("a cut is due at %v, want the next multiple of 4 µs from the first notification", at)
	}
	l.OnEvent(law.Tick, at)
	near(t, "target after an increase", float64(l.Target()), r)
}

// A continuous stream of notifications keeps alpha at 1 and halves the rate every cut interval, down to the minimum of
// 1 Gb/s.
func TestNS3AlwaysMarked(t *testing.T) {
	l := newLaw(t, ns3((*dcqcn.Params).VisitNS3Paper))
	for now := units.Time(0); now < 2000*us; now += us / 2 {
		for l.Timer() <= now {
			l.OnEvent(law.Tick, l.Timer())
		}
		l.OnAck(&law.Ack{Now: now, CE: true})
		if cuts := int((now - units.Nanosecond) / (50 * us)); now > us {
			near(t, "rate", rate(l), max(100e9/math.Pow(2, float64(cuts)), 1e9))
		}
	}
	near(t, "alpha", 1e9*l.Alpha(2000*us), 1e9)
}

func TestNS3NeedsACutInterval(t *testing.T) {
	p := ns3((*dcqcn.Params).VisitNS3)
	p.CutInterval = 0
	if _, err := dcqcn.New(p); err == nil {
		t.Error("alpha_clock without a cut_interval is taken")
	}
}
