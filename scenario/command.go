package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/examples"
)

// Command is `headgate run` with its flags.
type Command struct {
	File     string        // fabric file; empty for the built-in one
	Scenario string        // name of a script
	For      time.Duration // of all phases together
	JSON     string        // file for the report; "-" for standard output, empty for none
	Plot     string        // file for the picture; empty for none
	Restarts []string      // SWITCH@TIME
	Plain    bool          // lines instead of the live view
	Check    bool          // a miss is an error
	Log      string        // file for logs; "-" for standard error, empty for none
}

// ErrMissed is returned under Check when the report is not Within.
var ErrMissed = errors.New("a flow missed its share or a packet was lost")

// Run plays the scenario and writes its table to out.
func (c Command) Run(ctx context.Context, out *os.File) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	var closeLog func() error
	if o.Log, closeLog, err = c.logger(); err != nil {
		return err
	}
	defer closeLog()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	text := io.Writer(out)
	if c.JSON == "-" {
		text = os.Stderr // standard output is for the JSON alone
	}
	if !c.Plain && c.JSON != "-" && term.IsTerminal(out.Fd()) {
		live := NewLive(cancel)
		defer live.Close()
		o.Show = live
	} else {
		plain := NewPlain(text)
		defer plain.Close()
		o.Show = plain
	}
	report, recording, err := Play(ctx, o)
	if err != nil {
		return err
	}
	fmt.Fprintln(text)
	if err := report.WriteTable(text); err != nil {
		return err
	}
	if err := c.writeJSON(report, out); err != nil {
		return err
	}
	if c.Plot != "" {
		if err := recording.Plot(c.Plot); err != nil {
			return fmt.Errorf("--plot %s: %w", c.Plot, err)
		}
	}
	if c.Check && !report.Within {
		return ErrMissed
	}
	return nil
}

// options turns flags into Options; an error names the flag, its value and what is allowed.
func (c Command) options() (Options, error) {
	o := Options{For: c.For}
	var err error
	if c.File == "" {
		o.Config, err = config.Reparse("built-in leaf-spine.yaml", examples.LeafSpine, nil)
	} else {
		o.Config, err = config.Load(config.Options{File: c.File})
	}
	if err != nil {
		return o, err
	}
	var names []string
	for _, s := range Scripts() {
		names = append(names, s.Name)
		if s.Name == c.Scenario {
			o.Script = s
		}
	}
	if o.Script.Name == "" {
		return o, fmt.Errorf("--scenario %q: want one of %s", c.Scenario, strings.Join(names, ", "))
	}
	for _, text := range c.Restarts {
		name, at, ok := strings.Cut(text, "@")
		after, err := time.ParseDuration(at)
		if !ok || err != nil {
			return o, fmt.Errorf("--restart %q: want SWITCH@TIME, for example leaf1@12s", text)
		}
		o.Restarts = append(o.Restarts, Restart{Switch: name, At: after})
	}
	switch ext := filepath.Ext(c.Plot); ext {
	case "", ".svg", ".png", ".pdf":
		if c.Plot != "" && ext == "" {
			return o, fmt.Errorf("--plot %q: want a name that ends in .svg, .png or .pdf", c.Plot)
		}
	default:
		return o, fmt.Errorf("--plot %q: want a name that ends in .svg, .png or .pdf", c.Plot)
	}
	return o, nil
}

func (c Command) logger() (*slog.Logger, func() error, error) {
	none := func() error { return nil }
	switch c.Log {
	case "":
		return slog.New(slog.DiscardHandler), none, nil
	case "-":
		return slog.New(slog.NewTextHandler(os.Stderr, nil)), none, nil
	}
	f, err := os.Create(c.Log)
	if err != nil {
		return nil, nil, fmt.Errorf("--log: %w", err)
	}
	return slog.New(slog.NewTextHandler(f, nil)), f.Close, nil
}

func (c Command) writeJSON(r *Report, out io.Writer) error {
	switch c.JSON {
	case "":
		return nil
	case "-":
		return r.WriteJSON(out)
	}
	f, err := os.Create(c.JSON)
	if err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	if err := r.WriteJSON(f); err != nil {
		f.Close()
		return fmt.Errorf("--json %s: %w", c.JSON, err)
	}
	return f.Close()
}
