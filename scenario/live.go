package scenario

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"

	"github.com/headgate/headgate/scenario/inproc"
)

// Live shows a run on a terminal: rates as they move, queues, switch states. Ctrl-C and q
// end the run through its cancel function.
type Live struct {
	program *tea.Program
	ended   chan struct{}
}

// NewLive returns a Show on the terminal; cancel ends the run when the user asks to.
func NewLive(cancel context.CancelFunc) *Live {
	l := &Live{program: tea.NewProgram(&screen{cancel: cancel, note: "starting switches"}), ended: make(chan struct{})}
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
	readyMsg struct{ run *Run }
	noteMsg  string
	phaseMsg int
	frameMsg Snapshot
)

// Ready implements Show.
func (l *Live) Ready(r *Run) { l.program.Send(readyMsg{r}) }

// Phase implements Show.
func (l *Live) Phase(_ *Run, i int) { l.program.Send(phaseMsg(i)) }

// Fault implements Show.
func (l *Live) Fault(_ *Run, text string) { l.program.Send(noteMsg("FAULT: " + text)) }

// Done implements Show.
func (l *Live) Done(*Run) { l.Close() }

// screen is the view's state, owned by the program's goroutine.
type screen struct {
	cancel context.CancelFunc
	run    *Run
	phase  int
	note   string
	now    Snapshot
}

// Init implements tea.Model.
func (s *screen) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case tea.KeyPressMsg:
		if k := m.String(); k == "q" || k == "ctrl+c" {
			s.note = "stopping"
			s.cancel()
			return s, tea.Quit
		}
	case readyMsg:
		s.run, s.note = m.run, ""
		return s, s.frame()
	case phaseMsg:
		s.phase, s.note = int(m), ""
	case noteMsg:
		s.note = string(m)
	case frameMsg:
		s.now = Snapshot(m)
		return s, s.frame()
	}
	return s, nil
}

// frame takes the next snapshot in a moment.
func (s *screen) frame() tea.Cmd {
	run := s.run
	return tea.Tick(250*time.Millisecond, func(time.Time) tea.Msg {
		return frameMsg(run.Snapshot(context.Background()))
	})
}

var (
	bold  = lipgloss.NewStyle().Bold(true)
	faint = lipgloss.NewStyle().Faint(true)
	alarm = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Color("9"))
)

// View implements tea.Model.
func (s *screen) View() tea.View {
	if s.run == nil {
		return tea.NewView(s.note + " …\n")
	}
	o := s.run.opts
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n\n", bold.Render(o.Script.Title),
		faint.Render(fmt.Sprintf("fabric %s · API %s · metrics %s · q ends", o.Config.Name, o.Config.Controller.Listen, o.Config.Controller.Metrics)))
	ph := o.Script.Phases[s.phase]
	fmt.Fprintf(&b, "%s  phase %d of %d: %s\n", progress(s.now), s.phase+1, len(o.Script.Phases), bold.Render(ph.Name))
	for _, a := range ph.Actions {
		fmt.Fprintf(&b, "    %s\n", a)
	}
	if s.note != "" {
		fmt.Fprintf(&b, "%s\n", alarm.Render(s.note))
	}
	fmt.Fprintf(&b, "\n%s\n%s\n", flowTable(s.now), switchTable(s.now))
	return tea.NewView(b.String())
}

func progress(s Snapshot) string {
	const width = 30
	done := 0
	if s.Total > 0 {
		done = min(max(int(s.Elapsed*width/s.Total), 0), width)
	}
	return fmt.Sprintf("%s%s %4.1f of %.0f s", strings.Repeat("█", done), strings.Repeat("░", width-done), s.Elapsed.Seconds(), s.Total.Seconds())
}

func flowTable(s Snapshot) string {
	peak := 1.0
	for _, f := range s.Flows {
		for _, r := range f.History {
			peak = max(peak, r)
		}
	}
	t := table.New().Border(lipgloss.HiddenBorder()).
		Headers("flow", "weight", "rate Mb/s", fmt.Sprintf("last %d s", historyPoints/2), "maxQD ms", "RTT ms")
	for _, f := range s.Flows {
		t.Row(fmt.Sprintf("%s %s→%s", f.Name, f.From, f.To), fmt.Sprintf("%g", f.Weight), fmt.Sprintf("%.2f", float64(f.Rate)/1e6),
			sparkline(f.History, peak), fmt.Sprintf("%.1f", millis(f.MaxQD)), fmt.Sprintf("%.1f", millis(f.RTT)))
	}
	return t.String()
}

func switchTable(s Snapshot) string {
	t := table.New().Border(lipgloss.HiddenBorder()).Headers("switch", "state", "entries", "busiest port", "queued", "delay ms")
	for _, sw := range s.Switches {
		row := []string{sw.Name, sw.State, fmt.Sprint(sw.Entries), "", "", ""}
		if p := sw.Busiest; p != nil {
			row[3] = fmt.Sprintf("%d → %s", p.Port, p.Peer)
			row[4] = fmt.Sprintf("%.1f KB", float64(inproc.Queued(p))/1000)
			row[5] = fmt.Sprintf("%.1f", float64(p.QueueingDelayNs)/1e6)
		}
		t.Row(row...)
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
