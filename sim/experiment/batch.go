package experiment

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	gotime "time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Batch selects runs of an experiment: every variant with every seed, or a shard of these.
type Batch struct {
	File  *File
	Seed  uint64 // seed of the first run; the others follow
	Seeds int    // at least 1
	Shard int    // 0 to Shards − 1
	// Shards is the number of processes that divide the runs, at least 1.
	Shards int
	// Jobs is the number of runs at a time; 0 means as many as the processors allow.
	Jobs int
	// Cores is the number of processors for one run; 0 divides the processors among the runs that go on at a time.
	Cores int
	// Watch receives progress from several goroutines; it may be nil.
	Watch func(Progress)
}

// Progress is the progress of a batch.
type Progress struct {
	Runs, Done int
	Part       float64 // part of the whole batch that is done, 0 to 1
	Elapsed    gotime.Duration
	Left       gotime.Duration // estimated; 0 when unknown
}

// Report is a batch's result. Performance depends on the machine, the rest does not.
type Report struct {
	Experiment  string      `json:"experiment"`
	Title       string      `json:"title"`
	Paper       string      `json:"paper,omitempty"`
	Seed        uint64      `json:"seed"`
	Seeds       int         `json:"seeds"`
	Shard       int         `json:"shard"`
	Shards      int         `json:"shards"`
	Expected    int         `json:"expected_runs"` // number of runs in the whole experiment
	Interrupted bool        `json:"interrupted,omitempty"`
	Outcomes    []*Outcome  `json:"outcomes"`             // by variant and seed; those of this shard
	Judgements  []Judgement `json:"judgements,omitempty"` // verdicts on the file's claims, over all shards
	Performance Performance `json:"performance"`
}

// Performance is a batch's cost in time and memory.
type Performance struct {
	PacketHops       uint64  `json:"packet_hops"`
	Events           uint64  `json:"events"`
	WallSeconds      float64 `json:"wall_seconds"`
	CPUSeconds       float64 `json:"cpu_seconds"` // processor time of the process, garbage collection included
	HopsPerCPUSecond float64 `json:"packet_hops_per_cpu_second"`
	Allocations      uint64  `json:"allocations"`
	AllocatedBytes   uint64  `json:"allocated_bytes"`
	PeakMemory       int64   `json:"peak_memory_bytes"` // resident set of the process
	PeakPackets      int     `json:"peak_packets"`      // most packets in the fabric of a run
	// Cores is the number of processors that worked on one run. Why gives the reason if it is less than asked for.
	Cores int    `json:"cores"`
	Why   string `json:"why,omitempty"`
	// Parallelism is the number of events divided by the events of the busiest partition of each window. It bounds
	// the speed-up by many processors with these partitions.
	Parallelism float64 `json:"parallelism,omitempty"`
	// Windows counts windows. Serial counts the windows that ran sequentially.
	Windows uint64 `json:"windows,omitempty"`
	Serial  uint64 `json:"serial_windows,omitempty"`
}

type task struct {
	plan *Plan
	seed uint64
}

// Run runs the batch. When ctx ends, the runs in progress stop early. They are kept and marked, and the report is
// marked too.
func (b *Batch) Run(ctx context.Context) (*Report, error) {
	if b.Seeds < 1 || b.Shards < 1 || b.Shard < 0 || b.Shard >= b.Shards {
		return nil, fmt.Errorf("shard %d/%d of %d seeds: want a shard from 0 to one less than their number, and at least one seed", b.Shard, b.Shards, b.Seeds)
	}
	var mine []task
	all := 0
	for _, p := range b.File.Plans {
		for s := range b.Seeds {
			if all%b.Shards == b.Shard {
				mine = append(mine, task{p, b.Seed + uint64(s)})
			}
			all++
		}
	}
	rep := &Report{
		Experiment: b.File.Name, Title: b.File.Title, Paper: b.File.Paper, Seed: b.Seed, Seeds: b.Seeds,
		Shard: b.Shard, Shards: b.Shards, Expected: all, Outcomes: make([]*Outcome, len(mine)),
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, _ := usage()
	start := gotime.Now()
	watch := &watcher{parts: make([]float64, len(mine)), start: start, tell: b.Watch}
	jobs, cores := b.share(len(mine))
	for _, p := range b.File.Plans {
		p.Config.Cores = cores
	}
	err := parallel(ctx, len(mine), jobs, func(ctx context.Context, i int) error {
		t := mine[i]
		out, err := t.plan.Run(ctx, b.File.Name, t.seed, func(part float64) { watch.set(i, part) })
		if err != nil {
			return fmt.Errorf("%s seed %d: %w", label(t.plan.Variant), t.seed, err)
		}
		watch.set(i, 1)
		rep.Outcomes[i] = out
		return nil
	})
	if err != nil {
		return nil, err
	}
	runtime.ReadMemStats(&after)
	rep.Outcomes = slices.DeleteFunc(rep.Outcomes, func(o *Outcome) bool {
		rep.Interrupted = rep.Interrupted || o == nil || o.Interrupted
		return o == nil // the run was not started
	})
	rep.fillGaps()
	if b.Shards == 1 {
		rep.Judgements = b.File.Judge(rep)
	}
	pf := &rep.Performance
	for _, o := range rep.Outcomes {
		pf.PacketHops += o.Stats.PacketHops
		pf.Events += o.Stats.Events
	}
	pf.share(rep.Outcomes)
	used, peak := usage()
	pf.WallSeconds, pf.CPUSeconds, pf.PeakMemory = gotime.Since(start).Seconds(), used-cpu, peak
	pf.HopsPerCPUSecond = float64(pf.PacketHops) / max(pf.CPUSeconds, 1e-9)
	pf.Allocations, pf.AllocatedBytes = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
	return rep, nil
}

// share returns how many of n runs go on at a time, and the number of processors for each.
func (b *Batch) share(n int) (jobs, cores int) {
	all := runtime.GOMAXPROCS(0)
	jobs = cmp.Or(b.Jobs, max(all/max(b.Cores, 1), 1))
	return jobs, cmp.Or(b.Cores, max(all/max(min(jobs, n), 1), 1))
}

// share sums up how runs were shared between processors.
func (p *Performance) share(runs []*Outcome) {
	var events, critical uint64
	for _, o := range runs {
		w := &o.work
		p.PeakPackets = max(p.PeakPackets, o.packets)
		p.Cores, p.Why = max(p.Cores, w.Cores), cmp.Or(p.Why, w.Why)
		p.Windows, p.Serial = p.Windows+w.Windows, p.Serial+w.Serial
		events, critical = events+w.Events, critical+w.Critical
	}
	if critical > 0 {
		p.Parallelism = float64(events) / float64(critical)
	}
}

// parallel calls do for 0 to n − 1, jobs at a time, in order, until one fails or ctx ends. It returns the error of
// the lowest failed number.
func parallel(ctx context.Context, n, jobs int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(jobs)
	errs := make([]error, n)
	for i := range n {
		group.Go(func() error {
			if ctx.Err() == nil {
				errs[i] = do(ctx, i)
			}
			return errs[i]
		})
	}
	_ = group.Wait() // errs has its error, too
	return cmp.Or(errs...)
}

// watcher turns the parts of single runs into the progress of the batch.
type watcher struct {
	mu    sync.Mutex
	parts []float64
	start gotime.Time
	tell  func(Progress)
}

func (w *watcher) set(i int, part float64) {
	if w.tell == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.parts[i] = part
	p := Progress{Runs: len(w.parts), Elapsed: gotime.Since(w.start)}
	for _, x := range w.parts {
		p.Part += x / float64(len(w.parts))
		if x == 1 {
			p.Done++
		}
	}
	if p.Part > 0.01 {
		p.Left = gotime.Duration(float64(p.Elapsed) * (1 - p.Part) / p.Part)
	}
	w.tell(p)
}

// usage returns the processor time of the process in seconds, and its largest resident set
// in bytes; Linux counts KiB.
func usage() (cpu float64, peak int64) {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0, 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9, u.Maxrss * 1024
}

func label(variant string) string {
	if variant == "" {
		return "run"
	}
	return "variant " + variant
}
