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

// meters are the measures, by the word after "what".
var meters = map[string]*meter{
	"goodput": growth("Gb/s", needGroup|keySpan, gbps, goodputOf),
	"others":  growth("Gb/s", needGroup|keySpan, gbps, func(r *run, me *Measure) float64 { return delivered(r, me) - goodputOf(r, me) }),
	"share": {"%", needGroup | keySpan | keyGrowth, func(r *run, me *Measure) (reading, error) {
		own, all := r.grown(me, goodputOf), r.grown(me, delivered)
		return one(func() float64 { return 100 * own() / all() }), nil
	}},

	"fct":      many("µs", aboutFlows|keyStat, ofFlows(fctOf)),
	"lasted":   many("µs", aboutFlows|keyStat, lasted),
	"slowdown": many("", aboutFlows|keyStat, ofFlows(slowdownOf)),
	"flow_goodput": many("Gb/s", aboutFlows|keyStat, ofFlows(func(f *sim.Result) float64 {
		return float64(f.Spec.Size) * 8 / f.FCT.Seconds() / 1e9
	})),
	"gap":        value("", aboutFlows|needOver, func(*run, *Measure) float64 { return math.NaN() }), // see fillGaps
	"done":       value("", aboutFlows, func(r *run, me *Measure) float64 { return float64(len(ofFlows(fctOf)(r, me))) }),
	"cct":        many("µs", aboutFlows|keyStat, (*run).jobTimes),
	"jobs":       value("", aboutFlows, (*run).jobsEnded),
	"unfinished": value("", aboutFlows, unfinished),
	"met":        value("%", aboutFlows, (*run).deadlinesMet),
	"makespan":   value("µs", keyGroup, (*run).makespan),

	"queue": {"KB", needQueue | keySpan | keyStat, func(r *run, me *Measure) (reading, error) {
		o := r.sim.Observe(r.ports[me.queue], uint8(r.plan.Queues[me.queue].class), me.from, me.to)
		return r.levels(me, o), nil
	}},
	"gauge": {"", needGauge | keySpan | keyStat, (*run).follow},

	"pauses":     growth("", keyPort|keySpan, amount, pausesOf),
	"pause_rate": growth("1/ms", keyPort|keySpan, func(grown, seconds float64) float64 { return grown / (seconds * 1e3) }, pausesOf),
	"port_pauses": growth("", keyPort|keySpan, amount, func(r *run, me *Measure) float64 {
		if me.port < 0 {
			return float64(r.sim.Stats().PortPauses)
		}
		return float64(r.sim.Port(r.portAt[me.port]).PortPauses)
	}),
	"pause_time": growth("µs", keyPort|keySpan, amount, func(r *run, me *Measure) float64 { return r.pauseTime(me.port, me.class).Micros() }),
	"paused": many("%", keyStat, func(r *run, _ *Measure) (parts []float64) {
		for _, t := range r.stoppedFor() {
			parts = append(parts, 100*float64(t)/float64(r.sim.Now()))
		}
		return parts
	}),
	"stopped": value("µs", 0, func(r *run, _ *Measure) (sum float64) {
		for _, t := range r.stoppedFor() {
			sum += t.Micros()
		}
		return sum
	}),
	"throughput": growth("Gb/s", needPort|keySpan, gbps, func(r *run, me *Measure) float64 { return float64(r.sim.Port(r.portAt[me.port]).TxBytes) }),

	"at_pause":       xoffs("KB", keyHosts|keyStat, func(x *xoff) []float64 { return x.amounts }),
	"at_pause_ratio": {"", needSwitch | keyHosts | keySpan, pausedRatio},
	"xoff_arrival":   xoffs("Gb/s", keyStat, func(x *xoff) []float64 { return x.rates[0] }),
	"xoff_departure": xoffs("Gb/s", keyStat, func(x *xoff) []float64 { return x.rates[1] }),

	"phase_margin": value("°", needPort, phaseMargin),

	"drops": growth("", keySpan|keyClass, amount, dropsOf),
	"lossless_drops": value("", 0, func(r *run, _ *Measure) float64 {
		return r.overMemories(func(st headroom.Stats) float64 { return float64(st.LosslessDrops) }, func(a, b float64) float64 { return a + b })
	}),
	"headroom": value("KB", 0, func(r *run, _ *Measure) float64 {
		return r.overMemories(func(st headroom.Stats) float64 { return float64(st.Peak.Headroom+st.Peak.Insurance) / 1e3 }, math.Max)
	}),
	"victim_flows": value("", keyGroup|needLinks, func(r *run, me *Measure) float64 { return float64(r.victims(me.group)) }),
	"cnps":         growth("", keyGroup|keySpan, amount, cnpsOf),
	"retransmits": growth("", keySpan, amount, func(r *run, _ *Measure) float64 {
		st := r.sim.Stats()
		return float64(st.DataSent - st.DataDelivered)
	}),

	"deadlocked": value("", 0, func(r *run, _ *Measure) float64 { // 1 or 0: the mean is the fraction of runs
		return float64(oneIf(r.sim.FirstDeadlock() != nil))
	}),
	"deadlock": value("µs", 0, func(r *run, _ *Measure) float64 {
		if d := r.sim.FirstDeadlock(); d != nil {
			return d.Since.Micros()
		}
		return math.NaN()
	}),
	"takeover": value("µs", needGroup|keySpan, func(r *run, me *Measure) float64 {
		return r.out.Series.takeover(me.group, me.from.Micros(), me.to.Micros())
	}),
	"recovery": value("µs", needGroup|keySpan, func(r *run, me *Measure) float64 {
		return r.out.Series.recovery(me.group, me.from.Micros(), me.to.Micros())
	}),
	"converge":      tracked("µs", needNear, func(t *track, me *Measure) reading { return one(func() float64 { return t.within(me.near) }) }),
	"flow_converge": tracked("µs", needNear|keyStat, func(t *track, me *Measure) reading { return spreadOf(me, func() []float64 { return t.each(me.near) }) }),
	"flow_rate":     tracked("Gb/s", keyStat, func(t *track, me *Measure) reading { return spreadOf(me, t.rates) }),
	"fairness":      tracked("", 0, func(t *track, _ *Measure) reading { return one(func() float64 { return jain(t.rates()) }) }),
	"unfairness":    tracked("%", keyStat, func(t *track, me *Measure) reading { return spreadOf(me, t.errors) }),
}

// value makes a meter that is read at the end of a run.
func value(unit string, k keys, of func(*run, *Measure) float64) *meter {
	return &meter{unit, k, func(r *run, me *Measure) (reading, error) { return one(func() float64 { return of(r, me) }), nil }}
}

// many makes a meter of a statistic. The numbers are read at the end of a run.
func many(unit string, k keys, of func(*run, *Measure) []float64) *meter {
	return &meter{unit, k, func(r *run, me *Measure) (reading, error) {
		return spreadOf(me, func() []float64 { return of(r, me) }), nil
	}}
}

// growth makes a meter of a counter's growth. of computes the value from the growth and its time in seconds.
func growth(unit string, k keys, of func(grown, seconds float64) float64, counter func(*run, *Measure) float64) *meter {
	return &meter{unit, k | keyGrowth, func(r *run, me *Measure) (reading, error) {
		grown := r.grown(me, counter)
		return one(func() float64 { return of(grown(), (me.to - me.from).Seconds()) }), nil
	}}
}

// grown returns a function that reads a counter's growth in the time of a measure, or in the whole run.
func (r *run) grown(me *Measure, counter func(*run, *Measure) float64) func() float64 {
	if !me.span && me.meter.keys&needGroup == 0 {
		return func() float64 { return counter(r, me) }
	}
	grown := 0.0
	r.at(me.from, func() { grown = counter(r, me) })
	r.at(me.to, func() { grown = counter(r, me) - grown })
	return func() float64 { return grown }
}

// one returns the reading of a number without a distribution.
func one(v func() float64) reading {
	return func() (float64, func(q float64) float64) { return v(), nil }
}

// spreadOf returns the reading of a measure's statistic of numbers.
func spreadOf(me *Measure, of func() []float64) reading {
	return func() (float64, func(q float64) float64) {
		all := of()
		slices.Sort(all)
		return statistic(all, me.stat), func(q float64) float64 { return quantile(all, q) }
	}
}

// levels returns the reading of a statistic of levels. Each level is weighted by the time for which it held.
func (r *run) levels(me *Measure, of ...*sim.Occupancy) reading {
	return func() (float64, func(q float64) float64) {
		o := of[0]
		for i, other := range of {
			if other.Until(r.sim.Now()); i > 0 {
				o.Join(other)
			}
		}
		at := func(q float64) float64 { return o.Quantile(q) / me.scale }
		if me.stat == "mean" {
			return o.Mean() / me.scale, at
		}
		return at(quantiles[me.stat]), at
	}
}

// gbps converts bytes in a time to Gb/s.
func gbps(grown, seconds float64) float64 { return grown * 8 / seconds / 1e9 }

func amount(grown, _ float64) float64 { return grown }

func goodputOf(r *run, me *Measure) float64 { return float64(r.sim.Delivered(me.group)) }

// delivered returns the payload of all groups.
func delivered(r *run, _ *Measure) (sum float64) {
	for g := range r.plan.Groups {
		sum += float64(r.sim.Delivered(g))
	}
	return sum
}

// dropsOf counts the packets of a class, or of all, that buffers dropped.
func dropsOf(r *run, me *Measure) float64 {
	st := r.sim.Stats()
	if me.class < 0 {
		return float64(st.Dropped)
	}
	return float64(st.Drops[me.class])
}

// cnpsOf counts the CNPs that were sent, or that reached the senders of a group.
func cnpsOf(r *run, me *Measure) (sum float64) {
	if me.group < 0 {
		return float64(r.sim.Stats().CNPs)
	}
	for _, f := range r.sim.Results() {
		if f.Spec.Group == me.group {
			sum += float64(f.CNPs)
		}
	}
	return sum
}

// pausesOf counts PAUSE frames: all that buffers sent, or those that stopped the measure's port or one of its classes.
func pausesOf(r *run, me *Measure) float64 {
	switch {
	case me.port < 0:
		return float64(r.sim.Stats().PausesSent)
	case me.class < 0:
		return float64(r.sim.Port(r.portAt[me.port]).Frames)
	}
	return float64(r.sim.Port(r.portAt[me.port]).Pauses[me.class])
}

// pauseTime returns the total time for which a class of a port was stopped. Port −1 adds up all ports and classes,
// class −1 all classes.
func (r *run) pauseTime(port, class int) (sum time) {
	if port < 0 {
		return r.sim.PauseTime()
	}
	for c, t := range r.sim.Port(r.portAt[port]).Paused {
		if class < 0 || c == class {
			sum += t
		}
	}
	return sum
}

func fctOf(r *sim.Result) float64      { return r.FCT.Micros() }
func slowdownOf(r *sim.Result) float64 { return float64(r.FCT) / float64(r.Ideal) }

// ofFlows returns a number of each flow that a measure is about and that has ended.
func ofFlows(of func(*sim.Result) float64) func(*run, *Measure) []float64 {
	return func(r *run, me *Measure) (out []float64) {
		r.flows(me, func(f *sim.Result, _ int) {
			if f.FCT > 0 {
				out = append(out, of(f))
			}
		})
		return out
	}
}

// lasted returns the FCT of each flow with a size. For a flow that has not ended it returns the time since its
// start, because in a deadlock only flows from before the deadlock end.
func lasted(r *run, me *Measure) (out []float64) {
	r.flows(me, func(f *sim.Result, i int) {
		if start := r.sim.StartOf(i); f.FCT > 0 {
			out = append(out, f.FCT.Micros())
		} else if f.Spec.Size > 0 && start < r.sim.Now() {
			out = append(out, (r.sim.Now() - start).Micros())
		}
	})
	return out
}

func unfinished(r *run, me *Measure) (n float64) {
	r.flows(me, func(f *sim.Result, _ int) {
		if f.FCT == 0 && f.Spec.Size > 0 {
			n++
		}
	})
	return n
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

// times returns a number of each flow of a group that has ended, sorted.
func (r *run) times(group int, of func(*sim.Result) float64) []float64 {
	all := ofFlows(of)(r, &Measure{group: group, sizes: everySize})
	slices.Sort(all)
	return all
}

// takeover returns the time in µs from from on until a group has its goodput for good. Its goodput is the mean of
// the second half of the samples between from and to. It has the goodput for good from the first sample on after
// which no sample up to to is below 95 % of it. takeover returns NaN if the last sample is below.
func (s *Series) takeover(group int, from, to float64) float64 {
	first, end := s.after(from), s.after(to)
	if first == end {
		return math.NaN()
	}
	return s.above(group, first, end, stat.Mean(s.Goodput[group][(first+end)/2:end], nil)) - from
}

// recovery returns the time in µs from from on until a group has its earlier goodput for good (SPFC, Figure 6a).
// It is like takeover, but with the mean of the second half of the samples up to from.
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

// above returns the time from which on a group has at least 95 % of a goodput in all samples from first to end.
func (s *Series) above(group, first, end int, goodput float64) float64 {
	return forGood(s.Time[first:end], func(i int) bool { return s.Goodput[group][first+i] >= 0.95*goodput })
}

// forGood returns the first time from which on all times are good, or NaN if the last one is not.
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
