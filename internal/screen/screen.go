// Package screen draws a picture on a terminal again and again while something runs.
package screen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
)

// Screen is a picture and the terminal that it is drawn on. It is a bubbletea model that only draws.
type Screen struct {
	In    io.Reader
	Out   io.Writer
	Every time.Duration // between two drawings
	// Picture returns the lines for a terminal with that many columns; 0 means that the number is unknown.
	Picture func(columns int) string
	// Whole takes the whole terminal, says how to leave, and gives the terminal back as it was.
	Whole bool

	text          string
	interrupted   bool // Ctrl-C was pressed
	width, height int
}

type tick struct{}

// Run draws while run runs, until someone presses q, esc or ctrl-c. An interruption is context.Canceled; the end
// of ctx is no error.
func (s *Screen) Run(ctx context.Context, run func() error) error {
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithOutput(s.Out), tea.WithoutSignalHandler()}
	if f, ok := s.Out.(*os.File); !ok || !term.IsTerminal(f.Fd()) {
		options = append(options, tea.WithWindowSize(80, 24)) // a terminal of unknown size
	}
	if f, ok := s.In.(*os.File); !ok || !term.IsTerminal(f.Fd()) {
		options = append(options, tea.WithInput(nil))
	}
	p := tea.NewProgram(s, options...)
	ended := make(chan error, 1)
	go func() { ended <- run(); p.Quit() }()
	_, err := p.Run()
	if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, context.Canceled) {
		err = nil
	}
	if err == nil && s.interrupted {
		err = context.Canceled
	}
	if err != nil {
		return err
	}
	select {
	case err := <-ended:
		return err
	default: // the operator quit; what runs ends with the process
		return nil
	}
}

// Init implements tea.Model.
func (s *Screen) Init() tea.Cmd { return func() tea.Msg { return tick{} } }

// Update implements tea.Model.
func (s *Screen) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case tick:
		s.text = s.Picture(s.width)
		return s, tea.Tick(s.Every, func(time.Time) tea.Msg { return tick{} })
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case tea.KeyPressMsg:
		if k := m.String(); k == "q" || k == "ctrl+c" || k == "esc" {
			s.interrupted = k == "ctrl+c"
			return s, tea.Quit
		}
	}
	return s, nil
}

// View implements tea.Model. It shows as much of the picture as fits.
func (s *Screen) View() tea.View {
	lines := strings.Split(strings.TrimRight(s.text, "\n"), "\n")
	if room := s.height - 2; s.Whole && s.height > 2 && len(lines) > room {
		lines = append(lines[:room-1], fmt.Sprintf("… %d more lines", len(lines)-room+1))
	}
	for i, l := range lines {
		if s.width > 0 {
			lines[i] = ansi.Truncate(l, s.width, "")
		}
	}
	end := "\n"
	if s.Whole {
		end = "\n\nq to leave"
	}
	v := tea.NewView(strings.Join(lines, "\n") + end)
	v.AltScreen = s.Whole
	return v
}
