package emulation

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/emulation/network"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/units"
)

const (
	// settleOver is the length of the windows over which a queue is averaged to judge whether it has settled:
	// PACC's T. settleBand is the distance from its level that still counts as settled, as a fraction.
	settleOver = 80 * units.Microsecond
	settleBand = 0.2
)

// Record is the recorded data of one play on any kind of fabric. All times and rates but those of Wires are the
// scenario's own.
type Record struct {
	Variant string
	Config  *config.Config
	Times   []units.Time // when each phase began and, last, when the play ended
	Series  Series
	Flows   []FlowTotal // one for each flow, in the order in which the scenario names them
	Wires   []network.Wire
	Pauses  Meters         // counters of PAUSE frames on the wires
	Paths   [][][]int      // by phase and flow: the wires on which packets were seen in the second half
	Peak    units.Bytes    // the largest length of the recorded queue
	Losses  network.Losses // without retransmissions, which are in Flows
	Pools   map[string]Pools
	Faults  []string
	Late    units.Time // the largest lateness of fabric or controller, by the wall clock
	Bad     []string   // other reasons why the play is invalid
}

// Assess computes the result of a play and decides whether the play is valid.
func (s *Scenario) Assess(rec *Record) (*Result, error) {
	res := &Result{
		Variant: rec.Variant, Losses: rec.Losses, Pools: rec.Pools, Faults: rec.Faults, Flows: rec.Flows,
		Pause: rec.pause(s), Series: rec.curves(s), WorstLagMS: millis(rec.Late), MaxLagMS: millis(maxLag(rec.Config)),
	}
	for _, f := range rec.Flows {
		res.CNPs += f.CNPs
		res.Losses.Retransmits += f.Retransmits
	}
	for i := range s.Phases {
		p, err := rec.phase(s, i)
		if err != nil {
			return nil, err
		}
		res.Phases = append(res.Phases, p)
	}
	if s.Victim != "" {
		res.Victim = victim(s.Victim, res.Phases[0], res.Phases[1])
	}
	if s.Port.Node != "" {
		res.Queue = rec.queue(s)
	}
	res.validate(s, rec.Bad...)
	return res, nil
}

// phase measures one phase.
func (rec *Record) phase(s *Scenario, i int) (PhaseResult, error) {
	conf, start, end := s.Phases[i], rec.Times[i], rec.Times[i+1]
	steady, changes := rec.steady(Window{start, end}, conf.Actions)
	w := steady
	if !conf.Whole {
		w.From = (w.From + w.To) / 2
	}
	out := PhaseResult{Name: conf.Name, StartUS: start.Micros(), EndUS: end.Micros(), FromUS: w.From.Micros(), ToUS: w.To.Micros()}
	for _, a := range conf.Actions {
		out.Actions = append(out.Actions, a.String())
	}
	out.Actions = append(out.Actions, changes...)
	part, over := rec.Series.between(w), s.Over
	if len(part) == 0 {
		return out, nil
	}
	var running []int
	for k, f := range part[len(part)/2].Flows {
		if !f.Running {
			continue
		}
		running = append(running, k)
		out.Flows = append(out.Flows, FlowPhase{
			Name: rec.Flows[k].Name, Measured: math.Round(part.rate(k)), Lowest: math.Round(part.lowest(k, over)),
			MaxQDUS: part.mean(func(p Point) float64 { return p.Flows[k].MaxQD.Micros() }),
			RTTUS:   part.mean(func(p Point) float64 { return p.Flows[k].RTT.Micros() }),
		})
	}
	if s.Law != Soze {
		return out, nil
	}
	return out, rec.shares(s, &out, running, rec.Paths[i], rec.Series.between(steady))
}

// steady returns the longest part of a phase in which only the phase's actions change weights. It also returns all
// other changes, such as an operator's.
func (rec *Record) steady(phase Window, actions []Action) (longest Window, changes []string) {
	from, last := phase.From, Point{}
	end := func(to units.Time) {
		if to-from > longest.To-longest.From {
			longest = Window{from, to}
		}
	}
	for _, p := range rec.Series.between(phase) {
		changed := false
		for k := range min(len(p.Flows), len(last.Flows)) {
			was, is := last.Flows[k], p.Flows[k]
			if !was.Running || !is.Running || was.Weight == is.Weight {
				continue
			}
			to := Weight{rec.Flows[k].Name, is.Weight}
			if !slices.ContainsFunc(actions, func(a Action) bool { return a.Weight != nil && *a.Weight == to }) {
				changed = true
				changes = append(changes, fmt.Sprintf("%v, by an operator at %v", Action{Weight: &to}, p.At.Duration().Round(time.Millisecond)))
			}
		}
		if changed {
			end(last.At)
			from = p.At
		}
		last = p
	}
	end(phase.To)
	return longest, changes
}

// record returns the recorder's record. It runs on the loop.
func (r *Run) record(lost network.Losses) *Record {
	rec := r.recorder
	out := &Record{
		Variant: r.Scenario.Variants[r.Index].Name, Config: r.Config, Times: r.times, Series: rec.series(), Wires: r.fabric.Wires,
		Pauses: rec.meters, Paths: rec.paths, Losses: lost, Late: rec.lag,
	}
	_, out.Peak = rec.queue()
	for i := range rec.meters {
		rec.meters[i].paused.Time = rec.meters[i].paused.Total(r.fabric.Loop.Now()) // time after the end does not count
	}
	for _, t := range rec.tracks {
		out.Flows = append(out.Flows, total(t, rec))
	}
	return out
}

// total adds up the hosts' counters of a track's flows.
func total(t *track, rec *recorder) FlowTotal {
	out := FlowTotal{Name: t.Name, Flows: t.count(), Delivered: int64(t.delivered)}
	from := map[agent.FlowKey]string{}
	for _, s := range t.sent {
		from[s.key] = s.host.Config().Name
	}
	for _, rep := range t.reports() {
		out.CNPs += rep.CNPs
		out.Retransmits += rep.Retransmits
		if rep.Finished > 0 {
			out.Done++
			out.LastUS = max(out.LastUS, ((rep.Finished-rec.began)/rec.scale - t.begun).Micros())
			if t.Size > 0 {
				out.Ended = append(out.Ended, Completion{from[rep.Key], int64(t.Size), ((rep.Finished - rep.Started) / rec.scale).Micros()})
			}
		}
	}
	return out
}

// victim compares a flow's rates in two phases. It returns nil if the flow had no rate before, or did not run
// during.
func victim(name string, before, during PhaseResult) *Victim {
	b, d := before.flow(name), during.flow(name)
	if !(b.Measured > 0 && d.Measured >= 0) {
		return nil
	}
	return &Victim{Flow: name, Before: b.Measured, During: d.Measured, Lowest: d.Lowest, Lost: (1 - d.Measured/b.Measured) * 100}
}

// curves returns the samples in the form of a report.
func (rec *Record) curves(s *Scenario) Curves {
	c := Curves{Rates: map[string][]float64{}}
	for _, p := range rec.Series {
		c.TimeUS = append(c.TimeUS, p.At.Micros())
		c.Pauses = append(c.Pauses, p.Pauses)
		if s.Port.Node != "" {
			c.QueueKB = append(c.QueueKB, float64(p.Queue)/1e3)
		}
	}
	for i, f := range rec.Flows {
		c.Rates[f.Name] = rec.Series.rates(i, s.Over)
	}
	return c
}

func (rec *Record) pause(s *Scenario) (p Pause) {
	for i, m := range rec.Pauses {
		p.Frames += m.pauses
		p.Refreshes += m.refreshes
		p.Resumes += m.resumes
		took := (m.paused.Time / units.Time(s.scale(rec.Config))).Micros()
		p.TimeUS += took
		if m.pauses+m.refreshes > 0 {
			p.Links = append(p.Links, PausedLink{Paused: rec.Wires[i].To.String(), Frames: m.pauses, TimeUS: took})
		}
	}
	slices.SortFunc(p.Links, func(a, b PausedLink) int {
		return cmp.Or(-cmp.Compare(a.TimeUS, b.TimeUS), cmp.Compare(a.Paused, b.Paused))
	})
	return p
}

func (rec *Record) queue(s *Scenario) *Queue {
	const kb = 1e3
	from, end := rec.Times[1], rec.Times[len(rec.Times)-1]
	rest, late := rec.Series.between(Window{from, end}), rec.Series.between(Window{end - (end-from)/3, end})
	return &Queue{
		Port: s.Port.String(), PeakKB: float64(rec.Peak) / kb,
		SettledKB: late.queueMean() / kb, LowKB: late.queueQuantile(0.05) / kb, HighKB: late.queueQuantile(0.95) / kb,
		SettledUS: rest.settle(Series.queueMean, float64(s.Target), settleBand, settleOver),
		SteadyUS:  rest.settle(Series.queueMean, late.queueMean(), settleBand, settleOver),
	}
}

// Series are samples at a fixed interval, oldest first.
type Series []Point

// Window is a part of a play's time.
type Window struct{ From, To units.Time }

// between returns the samples from w.From to w.To, both included.
func (s Series) between(w Window) Series {
	at := func(p Point, t units.Time) int { return cmp.Compare(p.At, t) }
	lo, _ := slices.BinarySearchFunc(s, w.From, at)
	hi, exact := slices.BinarySearchFunc(s, w.To, at)
	if exact {
		hi++
	}
	if lo >= hi {
		return nil
	}
	return s[lo:hi]
}

// rate returns the mean payload rate of flow i over the whole series in bits per second.
func (s Series) rate(i int) float64 {
	if len(s) < 2 {
		return 0
	}
	first, last := s[0], s[len(s)-1]
	if last.At <= first.At {
		return 0
	}
	return float64(last.Flows[i].Delivered-first.Flows[i].Delivered) * 8 / (last.At - first.At).Seconds()
}

// rates returns flow i's rate around each sample.
func (s Series) rates(i int, over units.Time) []float64 {
	out := make([]float64, len(s))
	for k, p := range s {
		out[k] = math.Round(s.between(Window{p.At - over/2, p.At + over/2}).rate(i))
	}
	return out
}

// lowest returns the lowest mean rate of flow i over any part of length over.
func (s Series) lowest(i int, over units.Time) float64 {
	low := math.Inf(1)
	for a, b := 0, 0; b < len(s); b++ {
		for s[b].At-s[a].At >= over {
			low = min(low, s[a:b+1].rate(i))
			a++
		}
	}
	if math.IsInf(low, 1) {
		return s.rate(i)
	}
	return low
}

// mean returns the mean of a quantity.
func (s Series) mean(of func(Point) float64) float64 {
	if len(s) == 0 {
		return 0
	}
	sum := 0.0
	for _, p := range s {
		sum += of(p)
	}
	return sum / float64(len(s))
}

// queueMean returns the mean of the recorded queue in bytes.
func (s Series) queueMean() float64 {
	return s.mean(func(p Point) float64 { return float64(p.Queue) })
}

// queueQuantile returns the quantile q, from 0 to 1, of the recorded queue in bytes.
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

// settle returns, in microseconds, how long after the first sample a value comes within band (a fraction) of a
// level and stays there. The value is averaged over windows of the given length. It returns nil if the value never
// settles, or only in the last window.
func (s Series) settle(value func(Series) float64, level, band float64, window units.Time) (at *float64) {
	if level <= 0 {
		return nil
	}
	for a, b := 0, 0; a < len(s); a++ {
		for b < len(s) && s[b].At < s[a].At+window {
			b++
		}
		if b == len(s) {
			break
		}
		switch within := math.Abs(value(s[a:b+1])/level-1) <= band; {
		case !within:
			at = nil
		case at == nil:
			us := (s[a].At - s[0].At).Micros()
			at = &us
		}
	}
	return at
}
