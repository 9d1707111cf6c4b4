package emulation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/screen"
	"github.com/headgate/headgate/units"
)

// Live shows a run on a terminal: current rates, queues, switches, and the results of earlier variants. Ctrl-C and
// q end the run through its cancel function. It is safe for concurrent use.
type Live struct {
	over, ended chan struct{}

	mu      sync.Mutex
	run     *Run // nil before the first variant
	ready   bool // the switches hold their configuration and the play is not over
	phase   int
	note    string
	results []*Result
}

// NewLive returns a view on the terminal. It calls cancel when the user asks to end the run.
func NewLive(cancel context.CancelFunc) *Live {
	l := &Live{over: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		s := screen.Screen{In: os.Stdin, Out: os.Stdout, Every: 250 * time.Millisecond, Picture: l.picture}
		err := s.Run(context.Background(), func() error { <-l.over; return nil })
		if err == nil || errors.Is(err, context.Canceled) { // an unusable terminal must not end the run
			cancel()
		}
	}()
	return l
}

// Close gives the terminal back.
func (l *Live) Close() {
	close(l.over)
	<-l.ended
}

// Show implements the function type Show.
func (l *Live) Show(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e.Kind {
	case Started:
		l.run, l.ready, l.phase, l.note = e.Run, false, 0, "switches come up …"
	case Ready:
		l.ready, l.note = true, ""
	case PhaseBegun:
		l.phase, l.note = e.Phase, ""
	case Faulted:
		l.note = "FAULT: " + e.Fault
	case Ended:
		l.results, l.ready = append(l.results, e.Result), false
	}
}

// picture draws the present state of the run. It does not block Show while it asks the controller.
func (l *Live) picture(width int) string {
	l.mu.Lock()
	run, ready := l.run, l.ready
	l.mu.Unlock()
	var now Snapshot
	if ready {
		now = run.Snapshot(context.Background())
	}
	return l.draw(now, width)
}

var (
	bold  = lipgloss.NewStyle().Bold(true)
	faint = lipgloss.NewStyle().Faint(true)
	alarm = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Color("9"))
)

// draw draws a snapshot of the run.
func (l *Live) draw(now Snapshot, width int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run == nil {
		return "…"
	}
	sc, c := l.run.Scenario, l.run.Config
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n\n", bold.Render(sc.Title),
		faint.Render(fmt.Sprintf("fabric %s · API %s · page %s · q ends", c.Name, c.Controller.Listen, pageOf(c))))
	if len(sc.Variants) > 1 {
		for _, v := range l.results {
			fmt.Fprintf(&b, "  %-14s %s\n", v.Variant, v.summary())
		}
		fmt.Fprintf(&b, "variant %d of %d: %s\n", l.run.Index+1, len(sc.Variants), bold.Render(sc.Variants[l.run.Index].Name))
	}
	if l.ready {
		p := sc.Phases[l.phase]
		fmt.Fprintf(&b, "%s  %s  phase %d of %d: %s\n", bar(now, max(width-70, 30)), now.progress(), l.phase+1, len(sc.Phases), bold.Render(p.Name))
		for _, a := range p.Actions {
			fmt.Fprintf(&b, "    %s\n", a)
		}
	}
	if l.note != "" {
		fmt.Fprintf(&b, "%s\n", alarm.Render(l.note))
	}
	if l.ready {
		fmt.Fprintf(&b, "\n%s\n", now.flowTable(max(width-70, 20)))
		if now.Recorded {
			fmt.Fprintf(&b, "%s\n", now.recorded())
		}
		fmt.Fprintf(&b, "%s\n", now.switchTable())
	}
	return b.String()
}

// pageOf returns the address of the controller's page, which the metrics' server also serves.
func pageOf(c *config.Config) string {
	if c.Controller.Metrics == "off" {
		return "off"
	}
	return "http://" + c.Controller.Metrics + "/"
}

// bar draws the progress of a play in width columns.
func bar(s Snapshot, width int) string {
	done := 0
	if s.End > 0 {
		done = min(max(int(s.At*units.Time(width)/s.End), 0), width)
	}
	return strings.Repeat("█", done) + strings.Repeat("░", width-done)
}

// flowTable draws the recent rates of the flows in width columns.
func (s Snapshot) flowTable(width int) string {
	peak := 1.0
	for _, f := range s.Flows {
		for _, r := range f.History {
			peak = max(peak, r)
		}
	}
	t := table.New().Border(lipgloss.HiddenBorder()).Headers("flow", "weight", "rate", "before", "maxQD ms", "RTT ms")
	for _, f := range s.Flows {
		before := f.History[max(len(f.History)-width, 0):]
		row := []string{f.Name, "", rateText(f.Rate()), sparkline(before, peak), "", ""}
		if f.Weight > 0 {
			row[1] = fmt.Sprintf("%g", f.Weight)
		}
		if f.RTT > 0 {
			row[4], row[5] = fmt.Sprintf("%.3g", millis(f.MaxQD)), fmt.Sprintf("%.3g", millis(f.RTT))
		}
		t.Row(row...)
	}
	return t.String()
}

func (s Snapshot) switchTable() string {
	t := table.New().Border(lipgloss.HiddenBorder()).Headers("switch", "state", "entries", "busiest port", "queued")
	for _, sw := range s.Switches {
		t.Row(sw.Name, sw.State, fmt.Sprint(sw.Entries), fmt.Sprint(sw.Port), fmt.Sprintf("%.1f KB", float64(sw.Queued)/1000))
	}
	return t.String()
}

// sparkline draws values from 0 to peak as bars.
func sparkline(values []float64, peak float64) string {
	const bars = "▁▂▃▄▅▆▇█"
	runes := []rune(bars)
	out := make([]rune, 0, historyPoints)
	for _, v := range values {
		out = append(out, runes[min(max(int(v/peak*float64(len(runes))), 0), len(runes)-1)])
	}
	return string(out)
}
