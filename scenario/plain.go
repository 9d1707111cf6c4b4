package scenario

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

type silent struct{}

func (silent) Ready(*Run)         {}
func (silent) Phase(*Run, int)    {}
func (silent) Fault(*Run, string) {}
func (silent) Done(*Run)          {}

// Plain shows a run as lines, for pipes and logs.
type Plain struct {
	w    io.Writer
	mu   sync.Mutex // one line at a time
	stop context.CancelFunc
	done sync.WaitGroup
}

// NewPlain returns a Show that writes lines to w.
func NewPlain(w io.Writer) *Plain { return &Plain{w: w} }

// plainEvery is the interval of the lines with rates.
const plainEvery = 2 * time.Second

func (p *Plain) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, format+"\n", args...)
}

// Ready implements Show.
func (p *Plain) Ready(r *Run) {
	c := r.opts.Config
	p.printf("%s", r.opts.Script.Title)
	p.printf("fabric %s: %d switches ready, %d hosts, %d links; API at %s, metrics at %s",
		c.Name, len(c.Switches), len(c.Hosts), len(c.Links), c.Controller.Listen, c.Controller.Metrics)
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
				p.rates(r.Snapshot(ctx))
			}
		}
	})
}

func (p *Plain) rates(s Snapshot) {
	parts := make([]string, 0, len(s.Flows))
	for _, f := range s.Flows {
		parts = append(parts, fmt.Sprintf("%s(w %g) %.2f Mb/s qd %.1f ms", f.Name, f.Weight, float64(f.Rate)/1e6, millis(f.MaxQD)))
	}
	p.printf("  %5.1f s  %s", s.Elapsed.Seconds(), strings.Join(parts, "   "))
}

// Phase implements Show.
func (p *Plain) Phase(r *Run, i int) {
	ph := r.opts.Script.Phases[i]
	p.printf("\nphase %d of %d: %s", i+1, len(r.opts.Script.Phases), ph.Name)
	for _, a := range ph.Actions {
		p.printf("  %s", a)
	}
}

// Fault implements Show.
func (p *Plain) Fault(_ *Run, text string) { p.printf("  FAULT: %s", text) }

// Done implements Show.
func (p *Plain) Done(*Run) { p.Close() }

// Close ends the lines; harmless when there are none.
func (p *Plain) Close() {
	if p.stop != nil {
		p.stop()
	}
	p.done.Wait()
}
