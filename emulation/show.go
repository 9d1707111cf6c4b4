package emulation

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/emulation/network"
	"github.com/headgate/headgate/units"
)

// Snapshot is a play at one moment; rates and times are the scenario's own.
type Snapshot struct {
	At, End  units.Time
	Lag      units.Time // lateness of the fabric by the wall clock
	Flows    []FlowNow
	Recorded bool // a queue is recorded
	Queue    units.Bytes
	Pauses   uint64
	Switches []SwitchNow
}

// FlowNow is a running flow, or a burst, at one moment.
type FlowNow struct {
	Name       string
	Weight     float64   // 0 for none
	History    []float64 // rates in bits per second, oldest first, the last one now
	MaxQD, RTT units.Time
}

// Rate is the flow's payload rate now, in bits per second.
func (f FlowNow) Rate() float64 {
	if len(f.History) == 0 {
		return 0
	}
	return f.History[len(f.History)-1]
}

// SwitchNow is a switch at one moment. Its state is the controller's, its longest queues are the switch's own.
type SwitchNow struct {
	Name, State string
	Entries     uint64
	Port        uint32 // port with the most bytes queued
	Queued      units.Bytes
}

// historyPoints is the number of rates that a FlowNow keeps. Each rate covers historySpan of wall-clock time.
const (
	historyPoints = 120
	historySpan   = 500 * units.Millisecond
)

// Snapshot returns the present state of the play.
func (r *Run) Snapshot(ctx context.Context) Snapshot {
	all, rec := r.recorder.series(), r.recorder
	lag, _ := r.fabric.Loop.Lag()
	s := Snapshot{End: rec.end, Lag: lag, Recorded: r.Scenario.Port.Node != "", Switches: r.switches(ctx)}
	if len(all) == 0 {
		return s
	}
	last, span := all[len(all)-1], historySpan/rec.scale
	s.At, s.Queue, s.Pauses = last.At, last.Queue, last.Pauses
	for i, f := range last.Flows {
		if !f.Running {
			continue
		}
		n := FlowNow{Name: rec.tracks[i].Name, Weight: f.Weight, MaxQD: f.MaxQD, RTT: f.RTT}
		for k := units.Time(historyPoints); k > 0; k-- {
			if to := last.At - (k-1)*span; to >= span {
				n.History = append(n.History, all.between(Window{to - span, to}).rate(i))
			}
		}
		s.Flows = append(s.Flows, n)
	}
	return s
}

func (r *Run) switches(ctx context.Context) []SwitchNow {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	list, err := r.control.Admin.ListSwitches(ctx, &pb.ListSwitchesRequest{})
	if err != nil {
		return nil
	}
	out := make([]SwitchNow, len(list.Switches))
	for i, sw := range list.Switches {
		out[i] = SwitchNow{Name: sw.Name, State: network.StateName(sw.State), Entries: sw.Entries}
	}
	slices.SortFunc(out, func(a, b SwitchNow) int { return cmp.Compare(a.Name, b.Name) })
	if r.fabric.Loop.Do(ctx, func() {
		for i := range out {
			for _, p := range r.fabric.Switch(out[i].Name).PortStats() {
				queued := units.Bytes(0)
				for _, q := range p.Queues.Queues {
					queued += q.Bytes
				}
				if queued > out[i].Queued {
					out[i].Port, out[i].Queued = p.Port, queued
				}
			}
		}
	}) != nil {
		return nil
	}
	return out
}

// rateText returns a rate in a suitable unit.
func rateText(bps float64) string {
	if bps >= 1e9 {
		return fmt.Sprintf("%.2f Gb/s", bps/1e9)
	}
	return fmt.Sprintf("%.2f Mb/s", bps/1e6)
}

// progress describes how much of a play is done.
func (s Snapshot) progress() string {
	step := max(s.End.Duration()/200, 1)
	return fmt.Sprintf("%v of %v", s.At.Duration().Round(step), s.End.Duration())
}

// recorded describes the recorded queue and the PAUSE frames.
func (s Snapshot) recorded() string {
	return fmt.Sprintf("queue %.0f KB   %d PAUSE frames", float64(s.Queue)/1e3, s.Pauses)
}

// line describes a snapshot in one line.
func (s Snapshot) line() string {
	parts := []string{s.progress()}
	for _, f := range s.Flows {
		text := f.Name
		if f.Weight > 0 {
			text += fmt.Sprintf("(w %g)", f.Weight)
		}
		text += " " + rateText(f.Rate())
		if f.MaxQD > 0 {
			text += fmt.Sprintf(" qd %.1f ms", millis(f.MaxQD))
		}
		parts = append(parts, text)
	}
	if s.Recorded {
		parts = append(parts, s.recorded())
	}
	return strings.Join(parts, "   ")
}

// summary describes a result in one line.
func (v *Result) summary() string {
	switch {
	case len(v.Invalid) > 0:
		return "INVALID: " + v.Invalid[0]
	case v.Victim != nil:
		return fmt.Sprintf("%d PAUSE frames, %.0f µs paused, %s %s → %s, %d lossless drops", v.Pause.Frames, v.Pause.TimeUS,
			v.Victim.Flow, rateText(v.Victim.Before), rateText(v.Victim.During), v.Losses.Lossless)
	case v.Queue != nil:
		return fmt.Sprintf("queue peak %.0f KB, settled at %.0f KB, %d CNPs", v.Queue.PeakKB, v.Queue.SettledKB, v.CNPs)
	}
	return fmt.Sprintf("%s, %s dropped", units.Count(len(v.Phases), "phase"), units.Count(v.Losses.Dropped(), "packet"))
}

// Plain shows a run as lines, for pipes and logs.
type Plain struct {
	w    io.Writer
	mu   sync.Mutex // one line at a time
	stop context.CancelFunc
	done sync.WaitGroup
}

// NewPlain returns a view that writes lines to w.
func NewPlain(w io.Writer) *Plain { return &Plain{w: w} }

// plainEvery is the interval of the lines with rates.
const plainEvery = 2 * time.Second

func (p *Plain) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, format+"\n", args...)
}

// Show implements the function type Show.
func (p *Plain) Show(e Event) {
	r := e.Run
	s, c := r.Scenario, r.Config
	switch e.Kind {
	case Started:
		if r.Index == 0 {
			p.printf("%s", s.Title)
		}
		if len(s.Variants) > 1 {
			p.printf("\nvariant %d of %d: %s", r.Index+1, len(s.Variants), s.Variants[r.Index].Name)
		}
	case Ready:
		p.printf("fabric %s: %s ready, %s, %s; API at %s, page at %s",
			c.Name, units.Count(len(c.Switches), "switch"), units.Count(len(c.Hosts), "host"), units.Count(len(c.Links), "link"), c.Controller.Listen, pageOf(c))
		p.follow(r)
	case PhaseBegun:
		p.printf("\nphase %d of %d: %s", e.Phase+1, len(s.Phases), s.Phases[e.Phase].Name)
		for _, a := range s.Phases[e.Phase].Actions {
			p.printf("  %s", a)
		}
	case Faulted:
		p.printf("  FAULT: %s", e.Fault)
	case Ended:
		p.Close()
		p.printf("  %s", e.Result.summary())
	}
}

// follow writes a line with rates every plainEvery until Close.
func (p *Plain) follow(r *Run) {
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	p.done.Go(func() {
		tick := time.NewTicker(plainEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				p.printf("  %s", r.Snapshot(ctx).line())
			}
		}
	})
}

// Close ends the lines. It does nothing if there are none.
func (p *Plain) Close() {
	if p.stop != nil {
		p.stop()
	}
	p.done.Wait()
}
