package experiment

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/sim"
)

// aboutFlows are the keys of measures of flows.
const aboutFlows = keyGroup | keyStart | keySizes

// meters are what can be measured, by the word after "what".
var meters = map[string]*meter{
	"goodput": {unit: "Gb/s", keys: needGroup | keySpan, of: gbps,
		growth: func(r *run, me *Measure) [2]float64 { return [2]float64{float64(r.sim.Delivered(me.group))} }},
	"others": {unit: "Gb/s", keys: needGroup | keySpan, of: gbps,
		growth: func(r *run, me *Measure) [2]float64 {
			return [2]float64{r.delivered() - float64(r.sim.Delivered(me.group))}
		}},
	"share": {unit: "%", keys: needGroup | keySpan,
		growth: func(r *run, me *Measure) [2]float64 {
			return [2]float64{float64(r.sim.Delivered(me.group)), r.delivered()}
		},
		of: func(grown [2]float64, _ float64) float64 { return 100 * grown[0] / grown[1] }},

	"fct":      {unit: "µs", keys: aboutFlows | keyStat, many: ofFlows(fctOf)},
	"lasted":   {unit: "µs", keys: aboutFlows | keyStat, many: lasted},
	"slowdown": {keys: aboutFlows | keyStat, many: ofFlows(slowdownOf)},
	"flow_goodput": {unit: "Gb/s", keys: aboutFlows | keyStat, many: ofFlows(func(f *sim.Result) float64 {
		return float64(f.Spec.Size) * 8 / f.FCT.Seconds() / 1e9
	})},
	"gap":  {keys: aboutFlows | needOver},
	"done": {keys: aboutFlows, value: func(r *run, _ int, me *Measure) float64 { return float64(len(ofFlows(fctOf)(r, 0, me))) }},
	"cct":  {unit: "µs", keys: aboutFlows | keyStat, many: func(r *run, _ int, me *Measure) []float64 { return r.jobTimes(me) }},
	"jobs": {keys: aboutFlows, value: func(r *run, _ int, me *Measure) float64 { return r.jobsEnded(me) }},
	"unfinished": {keys: aboutFlows, value: func(r *run, _ int, me *Measure) (n float64) {
		r.flows(me, func(f *sim.Result, _ int) {
			if f.FCT == 0 && f.Spec.Size > 0 {
				n++
			}
		})
		return n
	}},
	"met":      {unit: "%", keys: aboutFlows, value: func(r *run, _ int, me *Measure) float64 { return r.deadlinesMet(me) }},
	"makespan": {unit: "µs", keys: keyGroup, value: func(r *run, _ int, me *Measure) float64 { return r.makespan(me.group) }},

	"queue": {unit: "KB", keys: needQueue | keySpan | keyStat},
	"gauge": {keys: needGauge | keySpan | keyStat},

	"pauses":     {keys: keyPort | keySpan, growth: pausesOf, of: amount},
	"pause_rate": {unit: "1/ms", keys: keyPort | keySpan, growth: pausesOf, of: func(grown [2]float64, seconds float64) float64 { return grown[0] / (seconds * 1e3) }},
	"port_pauses": {keys: keyPort | keySpan, of: amount, growth: func(r *run, me *Measure) [2]float64 {
		if me.port < 0 {
			return [2]float64{float64(r.sim.Stats().PortPauses)}
		}
		return [2]float64{float64(r.sim.Port(r.portAt[me.port]).PortPauses)}
	}},
	"pause_time": {unit: "µs", keys: keyPort | keySpan, of: amount, growth: func(r *run, me *Measure) [2]float64 {
		return [2]float64{r.pauseTime(me.port, me.class).Micros()}
	}},
	"paused": {unit: "%", keys: keyStat, many: func(r *run, _ int, _ *Measure) (parts []float64) {
		for _, t := range r.stoppedFor() {
			parts = append(parts, 100*float64(t)/float64(r.sim.Now()))
		}
		slices.Sort(parts)
		return parts
	}},
	"stopped": {unit: "µs", value: func(r *run, _ int, _ *Measure) (sum float64) {
		for _, t := range r.stoppedFor() {
			sum += t.Micros()
		}
		return sum
	}},
	"throughput": {unit: "Gb/s", keys: needPort | keySpan, of: gbps,
		growth: func(r *run, me *Measure) [2]float64 {
			return [2]float64{float64(r.sim.Port(r.portAt[me.port]).TxBytes)}
		}},

	"at_pause":       {unit: "KB", keys: needSwitch | keyHosts | keySpan | keyStat, many: pausedAt},
	"at_pause_ratio": {keys: needSwitch | keyHosts | keySpan, value: pausedRatio},
	"xoff_arrival":   xoffRates(0),
	"xoff_departure": xoffRates(1),

	"phase_margin": {unit: "°", keys: needPort, value: phaseMargin},

	"drops": {keys: keySpan | keyClass, of: amount, growth: dropsOf},
	"lossless_drops": {value: func(r *run, _ int, _ *Measure) float64 {
		return r.overMemories(func(st headroom.Stats) float64 { return float64(st.LosslessDrops) }, func(a, b float64) float64 { return a + b })
	}},
	"headroom": {unit: "KB", value: func(r *run, _ int, _ *Measure) float64 {
		return r.overMemories(func(st headroom.Stats) float64 { return float64(st.Peak.Headroom+st.Peak.Insurance) / 1e3 }, math.Max)
	}},
	"victim_flows": {keys: keyGroup | needLinks, value: func(r *run, _ int, me *Measure) float64 { return float64(r.victims(me.group)) }},
	"cnps":         {keys: keyGroup | keySpan, of: amount, growth: cnpsOf},
	"retransmits":  {keys: keySpan, of: amount, growth: counted(func(s *sim.Stats) uint64 { return s.DataSent - s.DataDelivered })},

	"deadlocked": {value: func(r *run, _ int, _ *Measure) float64 { // 1 or 0: its mean is the part of runs
		if r.sim.FirstDeadlock() != nil {
			return 1
		}
		return 0
	}},
	"deadlock": {unit: "µs", value: func(r *run, _ int, _ *Measure) float64 {
		if d := r.sim.FirstDeadlock(); d != nil {
			return d.Since.Micros()
		}
		return math.NaN()
	}},
	"takeover": {unit: "µs", keys: needGroup | keySpan, value: func(r *run, _ int, me *Measure) float64 {
		return r.out.Series.takeover(me.group, me.from.Micros(), me.to.Micros())
	}},
	"recovery": {unit: "µs", keys: needGroup | keySpan, value: func(r *run, _ int, me *Measure) float64 {
		return r.out.Series.recovery(me.group, me.from.Micros(), me.to.Micros())
	}},
	"converge": {unit: "µs", keys: keyGroup | keySpan | needEvery | needNear, value: func(r *run, i int, me *Measure) float64 {
		return r.tracks[i].within(me.near)
	}},
	"flow_converge": {unit: "µs", keys: keyGroup | keySpan | needEvery | needNear | keyStat, many: func(r *run, i int, me *Measure) []float64 {
		return r.tracks[i].each(me.near)
	}},
	"flow_rate":  {unit: "Gb/s", keys: keyGroup | keySpan | needEvery | keyStat, many: func(r *run, i int, _ *Measure) []float64 { return r.tracks[i].rates() }},
	"fairness":   {keys: keyGroup | keySpan | needEvery, value: func(r *run, i int, _ *Measure) float64 { return jain(r.tracks[i].rates()) }},
	"unfairness": {unit: "%", keys: keyGroup | keySpan | needEvery | keyStat, many: func(r *run, i int, me *Measure) []float64 { return r.tracks[i].errors() }},
}

// gbps makes Gb/s of bytes.
func gbps(grown [2]float64, seconds float64) float64 { return grown[0] * 8 / seconds / 1e9 }

func amount(grown [2]float64, _ float64) float64 { return grown[0] }

func counted(of func(*sim.Stats) uint64) func(*run, *Measure) [2]float64 {
	return func(r *run, _ *Measure) [2]float64 {
		st := r.sim.Stats()
		return [2]float64{float64(of(&st))}
	}
}

// dropsOf counts packets that buffers dropped, of a class or all.
func dropsOf(r *run, me *Measure) [2]float64 {
	st := r.sim.Stats()
	if me.class < 0 {
		return [2]float64{float64(st.Dropped)}
	}
	return [2]float64{float64(st.Drops[me.class])}
}

// cnpsOf counts CNPs that were sent, or those that reached the senders of a group.
func cnpsOf(r *run, me *Measure) [2]float64 {
	if me.group < 0 {
		return [2]float64{float64(r.sim.Stats().CNPs)}
	}
	sum := 0.0
	for _, f := range r.sim.Results() {
		if f.Spec.Group == me.group {
			sum += float64(f.CNPs)
		}
	}
	return [2]float64{sum}
}

// delivered returns the payload of all groups.
func (r *run) delivered() float64 {
	sum := 0.0
	for g := range r.plan.Groups {
		sum += float64(r.sim.Delivered(g))
	}
	return sum
}

// pausesOf counts PAUSE frames: those that buffers asked for, or those that stopped a port or
// a class of it.
func pausesOf(r *run, me *Measure) [2]float64 {
	switch {
	case me.port < 0:
		return [2]float64{float64(r.sim.Stats().PausesSent)}
	case me.class < 0:
		return [2]float64{float64(r.sim.Port(r.portAt[me.port]).Frames)}
	}
	return [2]float64{float64(r.sim.Port(r.portAt[me.port]).Pauses[me.class])}
}

// pauseTime returns how long classes of a port were stopped, in sum; −1 stands for all.
func (r *run) pauseTime(port, class int) time {
	if port < 0 {
		return r.sim.PauseTime()
	}
	var sum time
	for c, t := range r.sim.Port(r.portAt[port]).Paused {
		if class < 0 || c == class {
			sum += t
		}
	}
	return sum
}

func fctOf(r *sim.Result) float64      { return r.FCT.Micros() }
func slowdownOf(r *sim.Result) float64 { return float64(r.FCT) / float64(r.Ideal) }

// ofFlows returns a number of each flow that has ended, sorted, of those that a measure is
// about.
func ofFlows(of func(*sim.Result) float64) func(*run, int, *Measure) []float64 {
	return func(r *run, _ int, me *Measure) []float64 {
		var out []float64
		r.flows(me, func(f *sim.Result, _ int) {
			if f.FCT > 0 {
				out = append(out, of(f))
			}
		})
		slices.Sort(out)
		return out
	}
}

// lasted returns the FCT of each flow with a size, or how long it has lasted where it has not ended: in a
// deadlock those that end are the ones that came before it. In order of size.
func lasted(r *run, _ int, me *Measure) (out []float64) {
	r.flows(me, func(f *sim.Result, i int) {
		if start := r.sim.StartOf(i); f.FCT > 0 {
			out = append(out, f.FCT.Micros())
		} else if f.Spec.Size > 0 && start < r.sim.Now() {
			out = append(out, (r.sim.Now() - start).Micros())
		}
	})
	slices.Sort(out)
	return out
}

// flows calls fn for each flow that a measure is about.
func (r *run) flows(me *Measure, fn func(f *sim.Result, i int)) {
	results := r.sim.Results()
	for i := range results {
		f, start := &results[i], r.sim.StartOf(i)
		if (me.group < 0 || f.Spec.Group == me.group) && me.sizes.has(f.Spec.Size) && (!me.span || me.from <= start && start < me.to) {
			fn(f, i)
		}
	}
}

// times returns a number of each flow of a group that has ended, in order of size.
func (r *run) times(group int, of func(*sim.Result) float64) []float64 {
	return ofFlows(of)(r, 0, &Measure{group: group, sizes: everySize})
}

// takeover returns how long after from a group has its goodput for good, in µs: up to the end
// of the first sample that no later one follows, up to the time to, with less than 95 % of the
// mean of their second half. NaN when the last sample has less.
func (s *Series) takeover(group int, from, to float64) float64 {
	first, end := s.after(from), s.after(to)
	if first == end {
		return math.NaN()
	}
	return s.above(group, first, end, stat.Mean(s.Goodput[group][(first+end)/2:end], nil)) - from
}

// recovery returns how long after from a group has for good what it had before (SPFC, Figure 6a), in µs: as takeover,
// with the mean of the second half of the samples up to from.
func (s *Series) recovery(group int, from, to float64) float64 {
	first, end := s.after(from), s.after(to)
	if first == 0 || first == end {
		return math.NaN()
	}
	return s.above(group, first, end, stat.Mean(s.Goodput[group][first/2:first], nil)) - from
}

// after returns the number of samples up to a time.
func (s *Series) after(t float64) int {
	return sort.Search(len(s.Time), func(i int) bool { return s.Time[i] > t })
}

// above returns from which time on a group has 95 % of a goodput in all samples from first to end.
func (s *Series) above(group, first, end int, goodput float64) float64 {
	return forGood(s.Time[first:end], func(i int) bool { return s.Goodput[group][first+i] >= 0.95*goodput })
}

// forGood returns the first of the times from which on all are good, NaN when the last is not.
func forGood(times []float64, good func(i int) bool) float64 {
	i := len(times)
	for i > 0 && good(i-1) {
		i--
	}
	if i == len(times) {
		return math.NaN()
	}
	return times[i]
}
