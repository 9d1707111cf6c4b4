package emulation

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	"github.com/charmbracelet/x/ansi"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/units"
)

// Live shows a run on a terminal: rates as they move, queues, switches, and the results of the
// variants before. Ctrl-C and q end the run through its cancel function.
type Live struct {
	program *tea.Program
	ended   chan struct{}
}

// NewLive returns a view on the terminal; cancel ends the run when the user asks to.
func NewLive(cancel context.CancelFunc) *Live {
	l := &Live{program: tea.NewProgram(&screen{cancel: cancel}), ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		_, _ = l.program.Run() // an unusable terminal must not end the run
	}()
	return l
}

// Close gives the terminal back.
func (l *Live) Close() {
	l.program.Quit()
	<-l.ended
}

// Show is a Show.
func (l *Live) Show(e Event) { l.program.Send(e) }

// frameMsg is a moment of a run.
type frameMsg struct {
	run *Run
	now Snapshot
}

// screen is the view's state, owned by the program's goroutine.
type screen struct {
	cancel  context.CancelFunc
	run     *Run // nil before the first variant
	ready   bool // its switches hold their configuration and it is not over
	phase   int
	note    string
	now     Snapshot
	results []*Result
	width   int // of the terminal in columns; 0 until it is known
}

// Init implements tea.Model.
func (s *screen) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		s.width = m.Width
	case tea.KeyPressMsg:
		if k := m.String(); k == "q" || k == "ctrl+c" {
			s.note = "stopping …"
			s.cancel()
			return s, tea.Quit
		}
	case Event:
		return s, s.event(m)
	case frameMsg:
		if m.run == s.run && s.ready { // else of a variant that is over
			s.now = m.now
			return s, frame(m.run)
		}
	}
	return s, nil
}

// event takes what happens in the run.
func (s *screen) event(e Event) tea.Cmd {
	switch e.Kind {
	case Started:
		s.run, s.ready, s.phase, s.note = e.Run, false, 0, "switches come up …"
	case Ready:
		s.ready, s.note, s.now = true, "", Snapshot{}
		return frame(e.Run)
	case PhaseBegun:
		s.phase, s.note = e.Phase, ""
	case Faulted:
		s.note = "FAULT: " + e.Fault
	case Ended:
		s.results, s.ready = append(s.results, e.Result), false
	}
	return nil
}

// frame takes the next snapshot of a run in a moment.
func frame(r *Run) tea.Cmd {
	return tea.Tick(250*time.Millisecond, func(time.Time) tea.Msg { return frameMsg{r, r.Snapshot(context.Background())} })
}

var (
	bold  = lipgloss.NewStyle().Bold(true)
	faint = lipgloss.NewStyle().Faint(true)
	alarm = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Color("9"))
)

// View implements tea.Model.
func (s *screen) View() tea.View {
	if s.run == nil {
		return tea.NewView("…\n")
	}
	sc, c := s.run.Scenario, s.run.Config
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n\n", bold.Render(sc.Title),
		faint.Render(fmt.Sprintf("fabric %s · API %s · page %s · q ends", c.Name, c.Controller.Listen, pageOf(c))))
	if len(sc.Variants) > 1 {
		for _, v := range s.results {
			fmt.Fprintf(&b, "  %-14s %s\n", v.Variant, v.summary())
		}
		fmt.Fprintf(&b, "variant %d of %d: %s\n", s.run.Index+1, len(sc.Variants), bold.Render(sc.Variants[s.run.Index].Name))
	}
	if s.ready {
		p := sc.Phases[s.phase]
		fmt.Fprintf(&b, "%s  %s  phase %d of %d: %s\n", bar(s.now, max(s.width-70, 30)), s.now.progress(), s.phase+1, len(sc.Phases), bold.Render(p.Name))
		for _, a := range p.Actions {
			fmt.Fprintf(&b, "    %s\n", a)
		}
	}
	if s.note != "" {
		fmt.Fprintf(&b, "%s\n", alarm.Render(s.note))
	}
	if s.ready {
		fmt.Fprintf(&b, "\n%s\n", s.now.flowTable(max(s.width-70, 20)))
		if s.now.Recorded {
			fmt.Fprintf(&b, "%s\n", s.now.recorded())
		}
		fmt.Fprintf(&b, "%s\n", s.now.switchTable())
	}
	lines := strings.Split(b.String(), "\n")
	for i, l := range lines {
		if s.width > 0 {
			lines[i] = ansi.Truncate(l, s.width, "…")
		}
	}
	return tea.NewView(strings.Join(lines, "\n"))
}

// pageOf is the address of the controller's page, which is beside the metrics.
func pageOf(c *config.Config) string {
	if c.Controller.Metrics == "off" {
		return "off"
	}
	return "http://" + c.Controller.Metrics + "/"
}

// bar shows how far a play has come in so many columns.
func bar(s Snapshot, width int) string {
	done := 0
	if s.End > 0 {
		done = min(max(int(s.At*units.Time(width)/s.End), 0), width)
	}
	return strings.Repeat("█", done) + strings.Repeat("░", width-done)
}

// flowTable shows the rates before in so many columns.
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
