package lawtest

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/ledbat"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/prioplus"
	"github.com/headgate/headgate/hosts/law/swift"
	"github.com/headgate/headgate/units"
)

const (
	line = 100 * units.Gbps
	back = 6 * us
)

// bench is the reference configuration's bottleneck: 100 Gb/s, 12.2 µs, one-way delays.
type bench struct {
	*Net
	link        *Link
	oneWay, rtt units.Time
	bdp         units.Bytes
	ledbat      bool
}

func newBench() *bench {
	n := New()
	b := &bench{Net: n, link: n.Link(line, 6*us)}
	b.oneWay, b.rtt = Base(line, back, b.link)
	b.bdp = b.rate().BytesIn(b.rtt)
	return b
}

func (b *bench) rate() units.Rate { return units.Rate(Goodput(line)) }

// channel is a channel by queues.
func (b *bench) channel(target, limit units.Bytes) (p prioplus.Params) {
	f := law.Flow{Rate: b.rate(), BaseRTT: b.rtt, MSS: MSS, Target: b.oneWay + line.TxTime(target), Limit: prioplus.NoLimit, Rand: b.Rand}
	level := prioplus.High
	if limit > 0 {
		f.Limit, level = b.oneWay+line.TxTime(limit), prioplus.Low
	}
	p.Level = level
	param.Defaults(func(s *param.Set) { p.Visit(s, &f) })
	p.OneWay, p.Filter = b.oneWay, 1
	return p
}

func (b *bench) law(p prioplus.Params) law.Law {
	var under prioplus.DelayLaw
	var err error
	if b.ledbat {
		under, err = ledbat.New(param.For[ledbat.Params](law.Flow{Rate: line, MSS: MSS}))
	} else {
		p := param.For[swift.Params](law.Flow{Rate: line, BaseRTT: b.rtt, MSS: MSS})
		p.Increase = b.bdp * 12 / 10000
		under, err = swift.New(p)
	}
	if err != nil {
		panic(err)
	}
	l, err := prioplus.New(under, p)
	if err != nil {
		panic(err)
	}
	return l
}

func (b *bench) start(at units.Time, p prioplus.Params, size units.Bytes) *Flow {
	return b.Start(at, &Flow{Law: b.law(p), Path: []*Link{b.link}, NIC: line, Back: back, Size: size})
}

// A small Figure 10a: priorities start one after the other, then end in reverse. At each time the
// highest has the link, the queue is at its target, and the others send almost nothing.
func TestStrictPriorityAndWorkConservation(t *testing.T) {
	for _, under := range []string{"Swift", "LEDBAT"} {
		t.Run(under, func(t *testing.T) {
			b := newBench()
			b.ledbat = under == "LEDBAT"
			targets := []units.Bytes{50 * units.KB, 100 * units.KB, 200 * units.KB, 400 * units.KB}
			const each, hold = 10, 2 * ms
			for i, target := range targets {
				limit := target + 30*units.KB
				if i == len(targets)-1 {
					limit = 0
				}
				for range each {
					b.start(units.Time(i)*hold, b.channel(target, limit), 0)
				}
			}
			check := func(active int) {
				b.RunUntil(b.Now() + hold/2)
				q := b.Watch(b.link, 2*us)
				r := b.Rates(hold / 2)
				var own, others float64
				for i, v := range r {
					if i/each == active {
						own += v
					} else {
						others += v
					}
				}
				mean := q.Mean() / float64(targets[active])
				t.Logf("priority %d: %.1f Gb/s, others %.2f, queue %.2f of its target", active+1, own/1e9, others/1e9, mean)
				if own < 91.2e9 {
					t.Errorf("priority %d has %.1f Gb/s, want 91.2 at least", active+1, own/1e9)
				}
				if others > 0.5e9 {
					t.Errorf("below priority %d %.2f Gb/s are sent", active+1, others/1e9)
				}
				// Ten line-rate starts at once are more than LEDBAT's linear decrease can undo in
				// the time, because the highest priority has no limit that would stop it.
				bound := 0.02
				if b.ledbat {
					bound = 0.08 // its gain per packet is coarser than Swift's
				}
				if math.Abs(mean-1) > bound && !(b.ledbat && active == len(targets)-1) {
					t.Errorf("mean queue is %.3f of priority %d's target", mean, active+1)
				}
			}
			for i := range targets {
				check(i)
			}
			for i := len(targets) - 1; i > 0; i-- {
				for _, f := range b.Flows[i*each : (i+1)*each] {
					f.Stop()
				}
				check(i - 1)
			}
		})
	}
}

// TestLEDBATGivesWayInCrowds starts three priorities of 30 flows one after the other over LEDBAT
// with its defaults. MIN_CWND is two packets, 60 KB per priority. It would hold the delay above the
// lower channels' limits and below the higher ones' targets.
func TestLEDBATGivesWayInCrowds(t *testing.T) {
	b := newBench()
	b.ledbat = true
	const each, hold = 30, 3 * ms
	for i := range units.Time(3) {
		for range each {
			target := 50 * units.KB * units.Bytes(i+1)
			b.start(i*hold, b.channel(target, target+30*units.KB), 0)
		}
	}
	for i := range 3 {
		b.RunUntil(b.Now() + hold/3)
		r := b.Rates(hold - hold/3)
		own := floats.Sum(r[i*each : (i+1)*each])
		t.Logf("priority %d: %.1f Gb/s", i+1, own/1e9)
		if own < 91.2e9 {
			t.Errorf("priority %d has %.1f Gb/s, want 91.2 at least", i+1, own/1e9)
		}
	}
}

// crowd runs many equal flows and returns the state of the queue after the first milliseconds.
func crowd(t *testing.T, flows int, change func(*prioplus.Params)) (q Queues, b *bench, use float64) {
	b = newBench()
	for range flows {
		p := b.channel(200*units.KB, 230*units.KB)
		change(&p)
		b.start(0, p, 0)
	}
	b.RunUntil(1500 * us)
	w := b.Watch(b.link, us)
	r := b.Rates(2500 * us)
	use = floats.Sum(r) / Goodput(line)
	t.Logf("%d flows: queue mean %.0f, p1 %.0f, p99 %.0f B, utilisation %.3f", flows, w.Mean(), w.At(0.01), w.At(0.99), use)
	return *w, b, use
}

// Figure 10b and §4.3.1: many flows stay at D_target, because of the estimate of their number.
func TestCardinalityHoldsACrowd(t *testing.T) {
	q, b, use := crowd(t, 200, func(*prioplus.Params) {})
	if m := q.Mean(); m < 160e3 || m > 205e3 {
		t.Errorf("mean queue %.0f B, D_target is 200 KB", m)
	}
	if p := q.At(0.99); p > 230e3 {
		t.Errorf("p99 of the queue %.0f B is beyond D_limit, 230 KB", p)
	}
	if use < 0.98 {
		t.Errorf("utilisation %.3f", use)
	}
	most := 0.0
	for _, f := range b.Flows {
		most = max(most, reflect.ValueOf(f.Law).Elem().FieldByName("flows").Float())
	}
	if most < 20 {
		t.Errorf("the largest estimate is %.0f of 200 flows", most)
	}
	without, _, lost := crowd(t, 200, func(p *prioplus.Params) { p.NoCardinality = true })
	if spread, was := q.At(0.99)-q.At(0.01), without.At(0.99)-without.At(0.01); was < 2*spread && lost > 0.9 {
		t.Errorf("without the estimate the queue varies by %.0f B and %.3f is used, with it by %.0f", was, lost, spread)
	}
}

// Figure 10c and §4.2.3: a priority that takes over from a lower one raises the delay to its target
// without overshooting. An increase in each round trip would react twice to the same delay.
func TestDualRTTDoesNotOvershoot(t *testing.T) {
	peak := func(every bool) units.Bytes {
		b := newBench()
		for range 4 {
			b.start(0, b.channel(50*units.KB, 80*units.KB), 0)
		}
		b.RunUntil(2 * ms)
		for range 2 {
			p := b.channel(300*units.KB, 1000*units.KB)
			p.EveryRTT = every
			b.start(b.Now(), p, 0)
		}
		b.link.Peak = 0
		r := b.Rates(ms)
		t.Logf("every round trip %v: longest queue %v, taken over %.1f Gb/s", every, b.link.Peak, floats.Sum(r[4:])/1e9)
		if got := floats.Sum(r[4:]); got < 60e9 {
			t.Errorf("the higher priority has %.1f Gb/s over its first ms", got/1e9)
		}
		return b.link.Peak
	}
	if got := peak(false); got > 345*units.KB {
		t.Errorf("the queue overshoots to %v, D_target is 300 KB", got)
	}
	if got := peak(true); got < 360*units.KB {
		t.Errorf("the ablation overshoots to %v only: the test shows nothing", got)
	}
}

// §4.3.1: rare large noise of the delay does not stop a flow.
func TestFilterBearsNoise(t *testing.T) {
	run := func(filter int) (use float64, probes int) {
		b := newBench()
		for range 4 {
			p := b.channel(100*units.KB, 130*units.KB)
			p.Filter = filter
			f := b.start(0, p, 0)
			f.Noise = func() units.Time {
				if b.Rand.IntN(1000) == 0 {
					return 20 * us
				}
				return 0
			}
		}
		b.RunUntil(ms)
		use = floats.Sum(b.Rates(3*ms)) / Goodput(line)
		for _, f := range b.Flows {
			probes += f.Probes
		}
		t.Logf("filter %d: utilisation %.3f, %d probes", filter, use, probes)
		return use, probes
	}
	use, probes := run(2)
	if use < 0.97 || probes > 20 {
		t.Errorf("two in a row: utilisation %.3f, %d probes", use, probes)
	}
	if one, p := run(1); one > 0.95 || p < 2*probes {
		t.Errorf("one alone: utilisation %.3f, %d probes; the test shows nothing", one, p)
	}
}

// §4.2.1: probes that are lost are sent again.
func TestLostProbes(t *testing.T) {
	b := newBench()
	lost := 0
	f := b.start(0, b.channel(100*units.KB, 130*units.KB), 100*units.KB)
	f.Drop = func(_ uint32, probe bool) bool {
		if probe && lost < 2 {
			lost++
			return true
		}
		return false
	}
	b.RunUntil(50 * ms)
	if f.FCT == 0 || lost != 2 || f.Sender.Stats().Probes != 3 {
		t.Errorf("done after %v with %d probes lost of %d", f.FCT, lost, f.Sender.Stats().Probes)
	}
}

// Figure 10b in the configuration of the authors' public simulation: 300 flows of 500 KB. It has a
// mean queue of 181 KB from 1 to 12 ms (99 %: 210.4, 229.6 and 224.2 KB with three seeds, about
// D_limit, beyond which all flows stop) and completion times of 10.95 ms in the mean, 13.31 ms at
// 99 %; it uses another form of the estimate than the paper, so the numbers are near, not equal. No
// law can complete all flows before 12.65 ms.
func TestReferenceCrowd(t *testing.T) {
	const flows, seeds = 300, 10 // p99 of the queue: 218 to 247 KB of single seeds
	var queue, queueP99, fctMean, fctP99 float64
	for seed := range uint64(seeds) {
		b := newBench()
		b.Rand = rand.New(rand.NewPCG(seed, 2))
		for range flows {
			b.start(0, b.channel(200*units.KB, 230*units.KB), 500*units.KB)
		}
		b.RunUntil(ms)
		w := b.Watch(b.link, us)
		b.RunUntil(12 * ms)
		q := append(Queues(nil), *w...)
		b.RunUntil(30 * ms)
		fct := make([]float64, flows)
		for i, f := range b.Flows {
			fct[i] = f.FCT.Seconds() * 1e3
		}
		slices.Sort(fct)
		if fct[0] == 0 {
			t.Errorf("seed %d: a flow has not ended", seed)
		}
		queue, queueP99 = queue+q.Mean()/seeds, queueP99+q.At(0.99)/seeds
		fctMean, fctP99 = fctMean+floats.Sum(fct)/flows/seeds, fctP99+fct[flows*99/100]/seeds
	}
	t.Logf("queue mean %.0f p99 %.0f B; FCT mean %.2f p99 %.2f ms", queue, queueP99, fctMean, fctP99)
	if math.Abs(queue/181e3-1) > 0.1 || math.Abs(queueP99/221.4e3-1) > 0.05 {
		t.Errorf("queue mean %.0f p99 %.0f B, want 181 KB within 10 %% and 221.4 KB within 5 %%", queue, queueP99)
	}
	if math.Abs(fctMean/10.95-1) > 0.1 || math.Abs(fctP99/13.31-1) > 0.1 {
		t.Errorf("FCT mean %.2f p99 %.2f ms, want 10.95 and 13.31 within 10 %%", fctMean, fctP99)
	}
}
