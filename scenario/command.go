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
	"github.com/headgate/headgate/scenario/compare"
)

// Command is `headgate run` with its flags.
type Command struct {
	File     string        // fabric file; empty for the built-in one
	Scenario string        // name of a script or of a comparison
	Variants []string      // of a comparison; all when empty
	For      time.Duration // of all phases of a script together; DefaultFor when 0
	JSON     string        // file for the report; "-" for standard output, empty for none
	Plot     string        // file for the picture; empty for none
	Restarts []string      // SWITCH@TIME
	Plain    bool          // lines instead of the live view
	Check    bool          // a miss is an error
	Log      string        // file for logs; "-" for standard error, empty for none
}

// DefaultFor is how long the phases of a script take together unless Command.For says.
const DefaultFor = 40 * time.Second

// ErrMissed is returned under Check when the report is not Within.
var ErrMissed = errors.New("the run did not show what it should: see the end of its table")

// Names returns what Command.Scenario may be, the default first.
func Names() []string {
	var names []string
	for _, s := range Scripts() {
		names = append(names, s.Name)
	}
	for _, s := range compare.All() {
		names = append(names, s.Name)
	}
	return names
}

// result is what a run ends with.
type result interface {
	WriteTable(w io.Writer) error
	WriteJSON(w io.Writer) error
}

// Run plays the scenario and writes its table to out.
func (c Command) Run(ctx context.Context, out *os.File) error {
	if err := c.checkPlot(); err != nil {
		return err
	}
	log, closeLog, err := c.logger()
	if err != nil {
		return err
	}
	defer closeLog()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	text := io.Writer(out)
	if c.JSON == "-" {
		text = os.Stderr // standard output is for the JSON alone
	}
	play := c.script
	if s, ok := compare.Find(c.Scenario); ok {
		play = func(ctx context.Context, t terminal, log *slog.Logger) (result, func(string) error, bool, error) {
			return c.compare(ctx, s, t, log)
		}
	}
	live := !c.Plain && c.JSON != "-" && term.IsTerminal(out.Fd())
	report, plot, within, err := play(ctx, terminal{live, text, cancel}, log)
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
		if err := plot(c.Plot); err != nil {
			return fmt.Errorf("--plot %s: %w", c.Plot, err)
		}
	}
	if c.Check && !within {
		return ErrMissed
	}
	return nil
}

// terminal is where a run shows itself.
type terminal struct {
	live   bool // as a view, else as lines
	text   io.Writer
	cancel context.CancelFunc // ends the run, for the view
}

// script plays a script on the fabric of a file.
func (c Command) script(ctx context.Context, t terminal, log *slog.Logger) (result, func(string) error, bool, error) {
	if len(c.Variants) > 0 {
		return nil, nil, false, fmt.Errorf("--variant %s: scenario %s has no variants", strings.Join(c.Variants, ","), c.Scenario)
	}
	o, err := c.options()
	if err != nil {
		return nil, nil, false, err
	}
	o.Log = log
	if t.live {
		live := NewLive(t.cancel)
		defer live.Close()
		o.Show = live
	} else {
		plain := NewPlain(t.text)
		defer plain.Close()
		o.Show = plain
	}
	report, recording, err := Play(ctx, o)
	if err != nil {
		return nil, nil, false, err
	}
	return report, recording.Plot, report.Within, nil
}

// compare plays the variants of a comparison on its own fabric.
func (c Command) compare(ctx context.Context, s compare.Scenario, t terminal, log *slog.Logger) (result, func(string) error, bool, error) {
	refuse := func(flag, value string) error {
		return fmt.Errorf("%s %s: scenario %s has a fabric and times of its own", flag, value, s.Name)
	}
	switch {
	case c.File != "":
		return nil, nil, false, refuse("-f", c.File)
	case c.For != 0:
		return nil, nil, false, refuse("--for", c.For.String())
	case len(c.Restarts) > 0:
		return nil, nil, false, refuse("--restart", c.Restarts[0])
	}
	s, err := s.Select(c.Variants)
	if err != nil {
		return nil, nil, false, fmt.Errorf("--variant: %w", err)
	}
	o := compare.Options{Scenario: s, Log: log}
	if t.live {
		live := compare.NewLive(t.cancel)
		defer live.Close()
		o.Show = live
	} else {
		plain := compare.NewPlain(t.text)
		defer plain.Close()
		o.Show = plain
	}
	report, err := compare.Play(ctx, o)
	if err != nil {
		return nil, nil, false, err
	}
	return report, report.Plot, report.Within, nil
}

// options turns flags into Options; an error names the flag, its value and what is allowed.
func (c Command) options() (Options, error) {
	o := Options{For: c.For}
	if o.For == 0 {
		o.For = DefaultFor
	}
	var err error
	if c.File == "" {
		o.Config, err = config.Reparse("built-in leaf-spine.yaml", examples.LeafSpine, nil)
	} else {
		o.Config, err = config.Load(config.Options{File: c.File})
	}
	if err != nil {
		return o, err
	}
	for _, s := range Scripts() {
		if s.Name == c.Scenario {
			o.Script = s
		}
	}
	if o.Script.Name == "" {
		return o, fmt.Errorf("--scenario %q: want one of %s", c.Scenario, strings.Join(Names(), ", "))
	}
	for _, text := range c.Restarts {
		name, at, ok := strings.Cut(text, "@")
		after, err := time.ParseDuration(at)
		if !ok || err != nil {
			return o, fmt.Errorf("--restart %q: want SWITCH@TIME, for example leaf1@12s", text)
		}
		o.Restarts = append(o.Restarts, Restart{Switch: name, At: after})
	}
	return o, nil
}

// checkPlot refuses a picture of no known format before the run takes its time.
func (c Command) checkPlot() error {
	switch filepath.Ext(c.Plot) {
	case ".svg", ".png", ".pdf":
		return nil
	case "":
		if c.Plot == "" {
			return nil
		}
	}
	return fmt.Errorf("--plot %q: want a name that ends in .svg, .png or .pdf", c.Plot)
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

func (c Command) writeJSON(r result, out io.Writer) error {
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
