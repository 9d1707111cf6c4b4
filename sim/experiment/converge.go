package experiment

import (
	"math"
	"slices"

	"github.com/headgate/headgate/internal/maxmin"
	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/units"
)

// ackRounds is the number of rounds in fair. Rates that ignore acknowledgements are wrong by 6 % with packets of
// 1000 B. Each round leaves 0.06 of the error, so four rounds leave 10⁻⁵.
const ackRounds = 4

// track compares the flows of a group with their weighted max-min fair rates, sample by sample. A flow counts in
// the samples during which it runs all the time.
type track struct {
	start, every time
	payload      float64 // fraction of a link's bytes that is payload
	group        int
	acked        map[int]units.Bytes // bytes acknowledged at the end of the last sample, by result
	times        []float64           // ends of the samples, µs
	who          [][]int             // per sample: the results of the flows that count
	off          [][]float64         // their distances from the fair rate, as fractions of that rate
	gbps         []float64           // rates of all flows in all samples
}

// tracked makes a meter that compares flows with their fair rates.
func tracked(unit string, k keys, read func(t *track, me *Measure) reading) *meter {
	return &meter{unit, keyGroup | keySpan | needEvery | k, func(r *run, me *Measure) (reading, error) { return read(r.track(me), me), nil }}
}

// track schedules the samples of a measure.
func (r *run) track(me *Measure) *track {
	t := &track{start: me.from, every: me.every, group: me.group, payload: r.sim.PayloadPart()}
	r.at(me.from, func() { t.note(r.sim) })
	for at := me.from + me.every; at <= me.to; at += me.every {
		r.at(at, func() { t.sample(r.sim) })
	}
	return t
}

func (t *track) note(s *sim.Sim) {
	t.acked = map[int]units.Bytes{}
	s.Flows(func(f *sim.Flow) { t.acked[f.Result] = f.Acked })
}

func (t *track) sample(s *sim.Sim) {
	var flows []maxmin.Flow
	var back [][]int32
	var rates []float64 // NaN of flows that do not count
	var results []int
	s.Flows(func(f *sim.Flow) {
		path := make([]int, len(f.Path))
		for i, port := range f.Path {
			path[i] = int(port)
		}
		flows, back = append(flows, maxmin.Flow{Weight: f.Weight, Path: path}), append(back, f.Back)
		rate := math.NaN()
		if before, ok := t.acked[f.Result]; ok && (t.group < 0 || f.Spec.Group == t.group) {
			rate = float64(f.Acked-before) * 8 / t.every.Seconds()
		}
		rates, results = append(rates, rate), append(results, f.Result)
	})
	t.note(s)
	for _, rate := range rates {
		if !math.IsNaN(rate) {
			t.gbps = append(t.gbps, rate/1e9)
		}
	}
	fair, err := t.fair(s, flows, back)
	var who []int
	var off []float64
	for i, rate := range rates {
		if err == nil && !math.IsNaN(rate) {
			who, off = append(who, results[i]), append(off, math.Abs(rate/fair.Rate[i]-1))
		}
	}
	t.times, t.who, t.off = append(t.times, s.Now().Micros()), append(t.who, who), append(t.off, off)
}

// fair returns the weighted max-min fair payload rates on the capacity that acknowledgements leave. No law
// controls acknowledgements: they take a part of the rates that they answer. A few rounds find the fixed point of
// both.
func (t *track) fair(s *sim.Sim, flows []maxmin.Flow, back [][]int32) (fair maxmin.Allocation, err error) {
	capacity := make([]float64, s.Ports())
	for range ackRounds {
		for i := range capacity {
			capacity[i] = float64(s.PortRate(i)) * t.payload
		}
		for i, rate := range fair.Rate {
			for _, port := range back[i] {
				capacity[port] -= rate * s.AckPart() * t.payload
			}
		}
		if fair, err = maxmin.Solve(capacity, flows); err != nil {
			return fair, err
		}
	}
	return fair, nil
}

// within returns the time in µs from the start to the end of the first sample from which on every flow is within
// part of its fair rate. It returns NaN if the last sample has a flow that is not within it, or no flow.
func (t *track) within(part float64) float64 {
	return forGood(t.times, func(i int) bool {
		return len(t.off[i]) > 0 && slices.Max(t.off[i]) <= part
	}) - t.start.Micros()
}

// each returns, for each flow, the time in µs from the start to the end of the first sample from which on the flow
// is within part of its fair rate. It returns nil if a flow is not within it in its own last sample.
func (t *track) each(part float64) (all []float64) {
	since := map[int]float64{} // by result: the end of the first of such samples, NaN after a sample that is off
	for i, off := range t.off {
		for j, x := range off {
			of := t.who[i][j]
			if was, seen := since[of]; x > part {
				since[of] = math.NaN()
			} else if !seen || math.IsNaN(was) {
				since[of] = t.times[i] - t.start.Micros()
			}
		}
	}
	for _, at := range since {
		if math.IsNaN(at) {
			return nil
		}
		all = append(all, at)
	}
	return all
}

// rates returns the rates of all flows in all samples, sorted, in Gb/s.
func (t *track) rates() []float64 {
	slices.Sort(t.gbps)
	return t.gbps
}

// jain returns Jain's index of fairness (DEC-TR-301, 1984): 1 for equal rates, NaN for no rates.
func jain(rates []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, x := range rates {
		sum, squares = sum+x, squares+x*x
	}
	return sum * sum / (float64(len(rates)) * squares)
}

// errors returns the distances of all flows in all samples, in percent.
func (t *track) errors() []float64 {
	all := slices.Concat(t.off...)
	for i := range all {
		all[i] *= 100
	}
	return all
}
