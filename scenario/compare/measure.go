package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/headgate/headgate/scenario/inproc"
	"github.com/headgate/headgate/units"
)

// RateOver is over how long a flow's rate at a time is taken, settleOver over how long a
// queue is averaged to judge whether it has settled: PACC's T. Both at line rate.
const (
	RateOver   = 50 * units.Microsecond
	settleOver = 80 * units.Microsecond
)

// settleBand is how far from its target a queue may be and still count as there.
const settleBand = 0.2

// Series are samples at a fixed interval, oldest first.
type Series []Point

// between returns the samples in [w.From, w.To].
func (s Series) between(w Window) Series {
	lo, _ := slices.BinarySearchFunc(s, w.From, func(p Point, t units.Time) int { return cmp.Compare(p.At, t) })
	hi, exact := slices.BinarySearchFunc(s, w.To, func(p Point, t units.Time) int { return cmp.Compare(p.At, t) })
	if exact {
		hi++
	}
	if lo >= hi {
		return nil
	}
	return s[lo:hi]
}

// goodput returns the mean payload rate of flow i over the whole series in Gb/s.
func (s Series) goodput(i int) float64 {
	if len(s) < 2 {
		return 0
	}
	first, last := s[0], s[len(s)-1]
	if last.At <= first.At {
		return 0
	}
	return float64(last.Delivered[i]-first.Delivered[i]) * 8 / (last.At - first.At).Seconds() / 1e9
}

// lowest returns the lowest rate of flow i over any part of the given length, in Gb/s.
func (s Series) lowest(i int, over units.Time) float64 {
	low := math.Inf(1)
	for a, b := 0, 0; b < len(s); b++ {
		for s[b].At-s[a].At >= over {
			low = min(low, s[a:b+1].goodput(i))
			a++
		}
	}
	if math.IsInf(low, 1) {
		return s.goodput(i)
	}
	return low
}

// queueMean returns the mean of the recorded queue in bytes.
func (s Series) queueMean() float64 {
	if len(s) == 0 {
		return 0
	}
	sum := 0.0
	for _, p := range s {
		sum += float64(p.Queue)
	}
	return sum / float64(len(s))
}

// queueQuantile returns a quantile of the recorded queue in bytes, q from 0 to 1.
func (s Series) queueQuantile(q float64) float64 {
	if len(s) == 0 {
		return 0
	}
	v := make([]float64, len(s))
	for i, p := range s {
		v[i] = float64(p.Queue)
	}
	slices.Sort(v)
	return v[int(math.Round(q*float64(len(v)-1)))]
}

// settle returns how long after the first sample the queue's mean over a window comes
// within band (a fraction) of the target and stays there to the end; false when it never
// does, or only so late that less than one window remains.
func (s Series) settle(target units.Bytes, band float64, window units.Time) (units.Time, bool) {
	var at units.Time
	settled := false
	for a, b := 0, 0; a < len(s); a++ {
		for b < len(s) && s[b].At < s[a].At+window {
			b++
		}
		if b == len(s) {
			break
		}
		within := math.Abs(s[a:b].queueMean()/float64(target)-1) <= band
		switch {
		case within && !settled:
			at, settled = s[a].At-s[0].At, true
		case !within:
			settled = false
		}
	}
	return at, settled
}

// measure makes a variant's result; on the loop.
func (r *Run) measure(before inproc.Losses) *Result {
	s, rec := r.Scenario, r.recorder
	all := Series(rec.series())
	res := &Result{Variant: s.Variants[r.Index].Name, Losses: r.fabric.Losses().Since(before)}
	calm, burst := all.between(s.Before), all.between(s.During)
	name := func(i int) (string, int) {
		if i < len(s.Flows) {
			return s.Flows[i].Name, 1
		}
		b := s.Bursts[i-len(s.Flows)]
		return b.Name, len(b.From) * max(b.Rounds, 1)
	}
	res.Series = all.curves()
	for i := range rec.delivered {
		n, count := name(i)
		res.Series.Goodput[n] = all.rates(i)
		res.Flows = append(res.Flows, FlowResult{
			Name: n, Flows: count, Before: calm.goodput(i), During: burst.goodput(i), Lowest: burst.lowest(i, RateOver),
		})
	}
	for _, t := range rec.tallies {
		f := &res.Flows[t.index]
		f.CNPs += t.cnps
		f.Senders = append(f.Senders, Sender{Host: t.from, CNPs: t.cnps})
	}
	r.senders(res)
	for _, f := range res.Flows {
		res.CNPs.All += f.CNPs
		if f.Name == s.Victim {
			res.Victim = &Victim{Flow: f.Name, Before: f.Before, During: f.During, Lowest: f.Lowest, Lost: lost(f.Before, f.During)}
		}
	}
	res.CNPs.Strays = rec.strays
	res.Pause = r.pause()
	res.Queue = r.queue(all)
	res.WorstLagMS = rec.lag.Seconds() * 1e3
	return res
}

// senders adds what the sending hosts know of their flows.
func (r *Run) senders(res *Result) {
	byHost := map[started]int{}
	for _, st := range r.keys {
		byHost[started{host: st.host, key: st.key}] = st.index
	}
	seen := map[string]bool{}
	for _, st := range r.keys {
		if seen[st.host.Config().Name] {
			continue
		}
		seen[st.host.Config().Name] = true
		for _, rep := range st.host.Report() {
			i, ok := byHost[started{host: st.host, key: rep.Key}]
			if !ok {
				continue
			}
			f := &res.Flows[i]
			f.Retransmits += rep.Retransmits
			res.Losses.Retransmits += rep.Retransmits
			if b := i - len(r.Scenario.Flows); b >= 0 && rep.Finished > 0 {
				f.Done++
				f.Last = max(f.Last, ((rep.Finished - r.at(r.Scenario.Bursts[b].At)) / units.Time(r.Config.Scale)).Micros())
			}
		}
	}
}

// rates returns flow i's rate around each sample.
func (s Series) rates(i int) []float64 {
	out := make([]float64, len(s))
	for k, p := range s {
		out[k] = round(s.between(Window{p.At - RateOver/2, p.At + RateOver/2}).goodput(i), 100)
	}
	return out
}

// curves returns all of the samples but the rates.
func (s Series) curves() Curves {
	c := Curves{Goodput: map[string][]float64{}}
	for _, p := range s {
		c.TimeUS = append(c.TimeUS, p.At.Micros())
		c.QueueKB = append(c.QueueKB, float64(p.Queue)/1e3)
		c.Pauses = append(c.Pauses, p.Pauses)
	}
	return c
}

// round keeps one part in parts.
func round(v, parts float64) float64 { return math.Round(v*parts) / parts }

// lost returns how much less during is than before, in percent.
func lost(before, during float64) float64 {
	if before <= 0 {
		return 0
	}
	return (1 - during/before) * 100
}

func (r *Run) pause() Pause {
	var p Pause
	now := r.fabric.Loop.Now()
	for i := range r.recorder.meters {
		m := &r.recorder.meters[i]
		m.advance(now)
		p.Frames += m.pauses
		p.Refreshes += m.refreshes
		p.Resumes += m.resumes
		took := (m.total / units.Time(r.Config.Scale)).Micros()
		p.TimeUS += took
		if m.pauses+m.refreshes > 0 {
			p.Links = append(p.Links, PausedLink{Paused: r.fabric.Wires[i].To.String(), Frames: m.pauses, TimeUS: took})
		}
	}
	slices.SortFunc(p.Links, func(a, b PausedLink) int {
		return cmp.Or(-cmp.Compare(a.TimeUS, b.TimeUS), cmp.Compare(a.Paused, b.Paused))
	})
	return p
}

func (r *Run) queue(all Series) Queue {
	const kb = 1e3
	s := r.Scenario
	_, peak := r.recorder.queue()
	late := all.between(Window{s.End - (s.End-s.During.From)/3, s.End})
	q := Queue{
		Port: s.Port.String(), PeakKB: float64(peak) / kb, MeanKB: all.between(s.During).queueMean() / kb,
		SettledKB: late.queueMean() / kb, LowKB: late.queueQuantile(0.05) / kb, HighKB: late.queueQuantile(0.95) / kb,
	}
	if s.Target > 0 {
		if at, ok := all.between(Window{s.During.From, s.End}).settle(s.Target, settleBand, settleOver); ok {
			q.Settled, q.SettledUS = true, at.Micros()
		}
	}
	return q
}
