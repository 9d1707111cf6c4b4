package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/cli/command"
)

// redraw is the time between two drawings of a live table.
const redraw = 200 * time.Millisecond

// follower turns a stream into lines or a live table. record is called with every message, in order.
// After it lines is called, or on a terminal draw. The calls never overlap.
type follower[M proto.Message] struct {
	record func(M)
	lines  func(M) []string
	draw   func(w io.Writer) // nil: write lines on a terminal too
}

// follow runs until the stream or ctx ends. The end of ctx is no error.
func follow[M any, P interface {
	*M
	proto.Message
}](ctx context.Context, e *env, stream grpc.ServerStreamingClient[M], f follower[P]) error {
	if f.record == nil {
		f.record = func(P) {}
	}
	receive := func(show func(P) error) error {
		for {
			m, err := stream.Recv()
			switch {
			case ctx.Err() != nil || errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return err
			}
			if err := show(m); err != nil {
				return err
			}
		}
	}
	switch {
	case e.Format != command.Table:
		return receive(func(m P) error { return e.line(m) })
	case e.Terminal && f.draw != nil:
		var mu sync.Mutex
		return live(ctx, e, func() string {
			mu.Lock()
			defer mu.Unlock()
			var out bytes.Buffer
			// Writing a table to memory cannot fail.
			_ = (command.Output{Out: &out}).Tabs(f.draw)
			return out.String()
		}, func() error {
			return receive(func(m P) error {
				mu.Lock()
				defer mu.Unlock()
				f.record(m)
				return nil
			})
		})
	}
	return receive(func(m P) error {
		f.record(m)
		for _, l := range f.lines(m) {
			if _, err := fmt.Fprintln(e.Out, command.Clean(l)); err != nil {
				return err
			}
		}
		return nil
	})
}

// live draws a picture repeatedly while run runs, until someone presses q or ctrl-c.
func live(ctx context.Context, e *env, picture func() string, run func() error) error {
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithOutput(e.Out), tea.WithoutSignalHandler()}
	if f, ok := e.Out.(*os.File); !ok || !term.IsTerminal(f.Fd()) {
		options = append(options, tea.WithWindowSize(80, 24)) // a terminal of unknown size
	}
	if f, ok := e.In.(*os.File); !ok || !term.IsTerminal(f.Fd()) {
		options = append(options, tea.WithInput(nil))
	}
	shown := &screen{picture: picture}
	p := tea.NewProgram(shown, options...)
	ended := make(chan error, 1)
	go func() { ended <- run(); p.Quit() }()
	_, err := p.Run()
	if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, context.Canceled) {
		err = nil
	}
	if err == nil && shown.interrupted {
		err = context.Canceled
	}
	if err != nil {
		return err
	}
	select {
	case err := <-ended:
		return err
	default: // the operator quit; the stream ends with the process
		return nil
	}
}

// screen is a bubbletea model that only draws.
type screen struct {
	picture       func() string
	interrupted   bool // by ctrl-c
	text          string
	width, height int
}

type tick struct{}

func again() tea.Msg { time.Sleep(redraw); return tick{} }

// Init implements tea.Model.
func (s *screen) Init() tea.Cmd { return func() tea.Msg { return tick{} } }

// Update implements tea.Model.
func (s *screen) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case tick:
		s.text = s.picture()
		return s, again
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

// View implements tea.Model. It shows as much of the picture as fits, and how to quit.
func (s *screen) View() tea.View {
	lines := strings.Split(strings.TrimRight(s.text, "\n"), "\n")
	if room := s.height - 2; s.height > 2 && len(lines) > room {
		lines = append(lines[:room-1], fmt.Sprintf("… %d more lines", len(lines)-room+1))
	}
	for i, l := range lines {
		if r := []rune(l); s.width > 0 && len(r) > s.width {
			lines[i] = string(r[:s.width])
		}
	}
	v := tea.NewView(strings.Join(lines, "\n") + "\n\nq to leave")
	v.AltScreen = true
	return v
}
