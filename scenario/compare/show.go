package compare

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/units"
)

// Snapshot is a variant at one moment; rates and times are at line rate.
type Snapshot struct {
	At, End units.Time
	Lag     units.Time // of the process behind the wall clock
	Rates   []Rate
	Queue   units.Bytes
	Pauses  uint64
}

// Rate is the payload rate of a flow, or of all flows of a burst, over the last twentieth of
// the variant.
type Rate struct {
	Name string
	Gbps float64
}

// Snapshot returns the run as it is now.
func (r *Run) Snapshot() Snapshot {
	all := Series(r.recorder.series())
	lag, _ := r.fabric.Loop.Lag()
	s := Snapshot{End: r.Scenario.End, Lag: lag}
	if len(all) == 0 {
		return s
	}
	last := all[len(all)-1]
	s.At, s.Queue, s.Pauses = last.At, last.Queue, last.Pauses
	recent := all.between(Window{last.At - r.Scenario.End/20, last.At})
	for i, f := range r.Scenario.Flows {
		s.Rates = append(s.Rates, Rate{f.Name, recent.goodput(i)})
	}
	for i, b := range r.Scenario.Bursts {
		s.Rates = append(s.Rates, Rate{b.Name, recent.goodput(len(r.Scenario.Flows) + i)})
	}
	return s
}

// line is a snapshot in one line.
func (s Snapshot) line() string {
	parts := make([]string, 0, len(s.Rates)+2)
	for _, f := range s.Rates {
		parts = append(parts, fmt.Sprintf("%s %5.1f Gb/s", f.Name, f.Gbps))
	}
	parts = append(parts, fmt.Sprintf("queue %4.0f KB", float64(s.Queue)/1e3), fmt.Sprintf("%d PAUSE", s.Pauses))
	return fmt.Sprintf("%5.0f of %.0f µs  %s", s.At.Micros(), s.End.Micros(), strings.Join(parts, "   "))
}

// summary is a result in one line.
func (v *Result) summary() string {
	if v.Victim != nil {
		return fmt.Sprintf("%d PAUSE frames, %.0f µs paused, %s %.1f → %.1f Gb/s, %d lossless drops",
			v.Pause.Frames, v.Pause.TimeUS, v.Victim.Flow, v.Victim.Before, v.Victim.During, v.LosslessDrops)
	}
	return fmt.Sprintf("queue peak %.0f KB, settled at %.0f KB, %d CNPs", v.Queue.PeakKB, v.Queue.SettledKB, v.CNPs.All)
}

// Plain shows a comparison as lines, for pipes and logs.
type Plain struct {
	w    io.Writer
	mu   sync.Mutex // one line at a time
	stop context.CancelFunc
	done sync.WaitGroup
}

var _ Show = (*Plain)(nil)

// NewPlain returns a Show that writes lines to w.
func NewPlain(w io.Writer) *Plain { return &Plain{w: w} }

// plainEvery is the interval of the lines with rates.
const plainEvery = 2 * time.Second

func (p *Plain) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, format+"\n", args...)
}

// Variant implements Show.
func (p *Plain) Variant(s *Scenario, i int) {
	if i == 0 {
		p.printf("%s", s.Title)
	}
	p.printf("\nvariant %d of %d: %s", i+1, len(s.Variants), s.Variants[i].Name)
}

// Ready implements Show.
func (p *Plain) Ready(r *Run) {
	c := r.Config
	p.printf("  %d switches ready, %d hosts; API at %s, metrics at %s", len(c.Switches), len(c.Hosts), c.Controller.Listen, c.Controller.Metrics)
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
				p.printf("  %s", r.Snapshot().line())
			}
		}
	})
}

// Result implements Show.
func (p *Plain) Result(_ *Run, v *Result) {
	p.Close()
	p.printf("  %s", v.summary())
}

// Close ends the lines; harmless when there are none.
func (p *Plain) Close() {
	if p.stop != nil {
		p.stop()
	}
	p.done.Wait()
}
