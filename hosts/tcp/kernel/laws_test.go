//go:build linux

package kernel

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/prioplus"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/hosts/law/swift"
	"github.com/headgate/headgate/units"
)

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -no-global-types -tags linux -cflags "-O2 -g -mcpu=v3 -Wall -Werror" -output-suffix _test -type soze_step -type prio_step laws laws.bpf.c

// loadLawPrograms loads the laws' test programs, or skips the test if the kernel cannot.
func loadLawPrograms(t *testing.T) *lawsObjects {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("loading eBPF needs root")
	}
	var o lawsObjects
	if err := loadLawsObjects(&o, nil); errors.Is(err, ebpf.ErrNotSupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatalf("%+v", explain(err))
	}
	t.Cleanup(func() { o.Close() })
	return &o
}

// sozeError bounds the relative difference of the C law's window and pace from the Go law's on the same trace:
// the logarithms' tables have an error of 5e-5, and the roundings of a trace add up.
const sozeError = 2e-4

// TestSozeAgrees gives both laws the same random traces: acknowledgements of a path with a varying queue, losses
// and changes of weight.
func TestSozeAgrees(t *testing.T) {
	programs := loadLawPrograms(t)
	worst := 0.0
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		rate := []units.Rate{50 * units.Mbps, units.Gbps, 25 * units.Gbps, 100 * units.Gbps}[seed%4]
		par := param.For[soze.Params](law.Flow{Rate: rate, MSS: 1448, Scale: float64(100*units.Gbps) / float64(rate)})
		par.Alpha, par.Beta, par.MinWindow, par.WholeWindow = rate, rate/100, units.Bytes(1+seed%2)*par.MSS, true
		longest := soze.LongestQD(par.P + par.K)
		weight := math.Exp(rng.Float64()*4 - 2)
		l, err := soze.New(par, weight)
		if err != nil {
			t.Fatal(err)
		}
		s := lawsSozeStep{Mss: 1448, LgWeight: lg(weight)}
		s.Params = sozeParams(par, longest)
		step := func(event uint32) {
			s.Event = event
			if _, err := programs.Soze.Run(&ebpf.RunOptions{Context: &s, ContextOut: &s}); err != nil {
				t.Fatal(err)
			}
		}
		step(0)
		base, queue := par.K/4, units.Time(0)
		now, gate, acked := units.Second, units.Time(0), units.Bytes(0)
		for i := range 400 {
			queue = min(max(queue+units.Time((rng.Float64()-0.45)*float64(par.K)/5), 0), 2*par.K) / units.Microsecond * units.Microsecond
			a := law.Ack{Now: now, RTT: base + queue, MaxQD: queue, Acked: units.Bytes(1+rng.IntN(4)) * 1448}
			now += units.Time(rng.Int64N(int64(base))) / units.Nanosecond * units.Nanosecond
			if rng.IntN(20) == 0 {
				a.MaxQD, a.RTT = longest, a.RTT+2*longest
			}
			acked += a.Acked
			a.AckedSeq, a.Inflight = uint64(acked), units.Bytes(rng.IntN(2))*l.Allowance().Window
			a.SentSeq = a.AckedSeq + uint64(a.Inflight)
			a.RTT = a.RTT / units.Nanosecond * units.Nanosecond
			l.OnAck(&a)
			s.Ack.Now, s.Ack.Rtt, s.Ack.MaxQd, s.Ack.Acked = nanos(a.Now), nanos(a.RTT), nanos(a.MaxQD), uint64(a.Acked)
			s.Ack.Inflight, s.Ack.AckedSeq, s.Ack.SentSeq = uint64(a.Inflight), a.AckedSeq, a.SentSeq
			step(1)
			switch rng.IntN(40) {
			case 0:
				if now < gate {
					break // the Go law counts a round trip's losses once
				}
				gate = now + a.RTT
				l.OnEvent(law.Loss, now)
				s.Ack.Acked = s.Flow.Window
				step(2)
			case 1:
				weight = math.Exp(rng.Float64()*4 - 2)
				if err := l.SetWeight(weight); err != nil {
					t.Fatal(err)
				}
				if s.LgWeight = lg(weight); s.Flow.Joined != 0 {
					step(3)
				}
			}
			want := l.Allowance()
			for _, c := range []struct {
				what      string
				got, want float64
			}{
				{"window", float64(s.Flow.Window), float64(want.Window)},
				{"pace", float64(s.Flow.Rate) * 8, float64(want.Rate)},
			} {
				off := max(math.Abs(c.got-c.want)-8, 0) / c.want // both count whole bytes
				worst = max(worst, off)
				if off > sozeError {
					t.Fatalf("seed %d, step %d: %s %v, the Go law has %v: %.2g off", seed, i, c.what, c.got, c.want, off)
				}
			}
		}
	}
	t.Logf("at most %.2g off", worst)
}

// drawn is a source of random numbers that remembers its last number.
type drawn struct {
	rand.Source
	last uint64
}

func (d *drawn) Uint64() uint64 {
	d.last = d.Source.Uint64()
	return d.last
}

// prioError bounds the relative difference of the C law's window from the Go law's on the same trace, while both
// take the same decisions. Steps of less than 1/1024 byte are lost.
const prioError = 1e-3

// TestPrioPlusAgrees gives both laws the same random traces: delays from the empty path's to beyond the limit,
// losses, and answers to probes.
func TestPrioPlusAgrees(t *testing.T) {
	programs := loadLawPrograms(t)
	worst, stops := 0.0, 0
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 2))
		rate := []units.Rate{50 * units.Mbps, units.Gbps, 25 * units.Gbps, 100 * units.Gbps}[seed%4]
		stretch := float64(100*units.Gbps) / float64(rate)
		f := law.Flow{Rate: rate, MSS: 1448, BaseRTT: units.Time(12e6 * stretch), Scale: stretch}
		f.Target = f.BaseRTT + f.Stretch(16*units.Microsecond)
		f.Limit = f.Target + f.Stretch(2400*units.Nanosecond)
		source := &drawn{Source: rand.NewPCG(seed, 3)}
		f.Rand = rand.New(source)
		under, par := param.For[swift.Params](f), param.For[prioplus.Params](f)
		sw, err := swift.New(under)
		if err != nil {
			t.Fatal(err)
		}
		l, err := prioplus.New(sw, par)
		if err != nil {
			t.Fatal(err)
		}
		s := lawsPrioStep{Mss: 1448, Params: prioParams(par, under), Channel: programPrioChannel{Target: nanos(f.Target), Limit: nanos(f.Limit)}}
		step := func(event uint32) {
			s.Event, s.Ack.Random = event, source.last
			if _, err := programs.Prioplus.Run(&ebpf.RunOptions{Context: &s, ContextOut: &s}); err != nil {
				t.Fatal(err)
			}
		}
		const start, ack, loss, probeSent = 0, 1, 2, 4
		now, acked, delay := units.Second, units.Bytes(0), f.BaseRTT
		l.OnEvent(law.Start, now)
		s.Ack.Now = nanos(now)
		step(start)
		for i := range 600 {
			was := l.Allowance().Rate == 0
			delay = min(max(delay+units.Time((rng.Float64()-0.48)*float64(f.Limit)/8), f.BaseRTT), 2*f.Limit) / units.Nanosecond * units.Nanosecond
			now += units.Time(rng.Int64N(int64(f.BaseRTT))) / units.Nanosecond * units.Nanosecond
			a := law.Ack{Now: now, RTT: delay, Acked: units.Bytes(1+rng.IntN(4)) * 1448}
			if was && rng.IntN(2) == 0 {
				l.OnEvent(law.ProbeSent, now)
				step(probeSent)
				a.Probe = true
			}
			acked += a.Acked
			a.AckedSeq, a.Inflight = uint64(acked), units.Bytes(rng.IntN(2))*l.Allowance().Window
			a.SentSeq = a.AckedSeq + uint64(rng.IntN(4))*1448
			l.OnAck(&a)
			s.Ack.Now, s.Ack.Rtt, s.Ack.Acked, s.Ack.Inflight = nanos(now), nanos(delay), uint64(a.Acked), uint64(a.Inflight)
			s.Ack.AckedSeq, s.Ack.SentSeq, s.Ack.Probe = a.AckedSeq, a.SentSeq, 0
			if a.Probe {
				s.Ack.Probe = 1
			}
			step(ack)
			if rng.IntN(60) == 0 {
				l.OnEvent(law.Loss, now)
				step(loss)
			}
			allowed := l.Allowance()
			if stopped := allowed.Rate == 0; stopped != (s.Flow.Stopped != 0) {
				t.Fatalf("seed %d, step %d: stopped %v, the Go law %v", seed, i, !stopped, stopped)
			} else if stopped && !was {
				stops++
			}
			if d := int64(nanos(allowed.Probe)) - int64(s.Flow.ProbeAt); d < -2 || d > 2 {
				t.Fatalf("seed %d, step %d: probe at %d, the Go law has %d ns", seed, i, s.Flow.ProbeAt, nanos(allowed.Probe))
			}
			got, want := float64(s.Flow.Window)/1024, sw.Window()
			off := max(math.Abs(got-want)-1, 0) / want
			if worst = max(worst, off); off > prioError {
				t.Fatalf("seed %d, step %d: window %v, the Go law has %v: %.2g off", seed, i, got, want, off)
			}
		}
	}
	if stops < 50 {
		t.Errorf("only %d stops", stops)
	}
	t.Logf("at most %.2g off in %d stops", worst, stops)
}
