package compare

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
)

// Live shows a comparison on a terminal: the variant that runs as it moves, and the results
// of those before. Ctrl-C and q end the run through its cancel function.
type Live struct {
	program *tea.Program
	ended   chan struct{}
}

var _ Show = (*Live)(nil)

// NewLive returns a Show on the terminal; cancel ends the run when the user asks to.
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

// Messages of the view.
type (
	variantMsg struct {
		scenario *Scenario
		index    int
	}
	readyMsg  struct{ run *Run }
	resultMsg struct{ result *Result }
	frameMsg  struct {
		run *Run
		now Snapshot
	}
)

// Variant implements Show.
func (l *Live) Variant(s *Scenario, i int) { l.program.Send(variantMsg{s, i}) }

// Ready implements Show.
func (l *Live) Ready(r *Run) { l.program.Send(readyMsg{r}) }

// Result implements Show.
func (l *Live) Result(_ *Run, v *Result) { l.program.Send(resultMsg{v}) }

// screen is the view's state, owned by the program's goroutine.
type screen struct {
	cancel   context.CancelFunc
	scenario *Scenario
	index    int
	run      *Run // nil while a fabric is brought up
	now      Snapshot
	results  []*Result
	stopping bool
}

// Init implements tea.Model.
func (s *screen) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case tea.KeyPressMsg:
		if k := m.String(); k == "q" || k == "ctrl+c" {
			s.stopping = true
			s.cancel()
			return s, tea.Quit
		}
	case variantMsg:
		s.scenario, s.index, s.run = m.scenario, m.index, nil
	case readyMsg:
		s.run, s.now = m.run, Snapshot{}
		return s, frame(m.run)
	case resultMsg:
		s.results, s.run = append(s.results, m.result), nil
	case frameMsg:
		if m.run == s.run { // else of a variant that is over
			s.now = m.now
			return s, frame(m.run)
		}
	}
	return s, nil
}

// frame takes the next snapshot of a run in a moment.
func frame(r *Run) tea.Cmd {
	return tea.Tick(250*time.Millisecond, func(time.Time) tea.Msg { return frameMsg{r, r.Snapshot()} })
}

var (
	bold  = lipgloss.NewStyle().Bold(true)
	faint = lipgloss.NewStyle().Faint(true)
)

// View implements tea.Model.
func (s *screen) View() tea.View {
	if s.scenario == nil {
		return tea.NewView("…\n")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", bold.Render(s.scenario.Title))
	for _, v := range s.results {
		fmt.Fprintf(&b, "  %-14s %s\n", v.Variant, v.summary())
	}
	fmt.Fprintf(&b, "\n%s of %d: %s", fmt.Sprint("variant ", s.index+1), len(s.scenario.Variants), bold.Render(s.scenario.Variants[s.index].Name))
	switch {
	case s.stopping:
		b.WriteString("  stopping …\n")
	case s.run == nil:
		b.WriteString("  switches come up …\n")
	default:
		c := s.run.Config.Controller
		fmt.Fprintf(&b, "  %s\n\n%s  %.0f of %.0f µs at line rate\n%s\n", faint.Render(fmt.Sprintf("API %s · metrics %s · q ends", c.Listen, c.Metrics)),
			bar(s.now), s.now.At.Micros(), s.now.End.Micros(), s.now.table())
	}
	return tea.NewView(b.String())
}

func bar(s Snapshot) string {
	const width = 40
	done := 0
	if s.End > 0 {
		done = min(max(int(s.At*width/s.End), 0), width)
	}
	return strings.Repeat("█", done) + strings.Repeat("░", width-done)
}

func (s Snapshot) table() string {
	t := table.New().Border(lipgloss.HiddenBorder()).Headers("flow", "Gb/s")
	for _, f := range s.Rates {
		t.Row(f.Name, fmt.Sprintf("%.1f", f.Gbps))
	}
	return t.String() + fmt.Sprintf("\nqueue %.0f KB   PAUSE frames %d", float64(s.Queue)/1e3, s.Pauses)
}
