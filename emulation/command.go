package emulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"

	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/examples"
	"github.com/headgate/headgate/internal/jsonfile"
	"github.com/headgate/headgate/plotting"
)

// Command is `headgate run` with its flags.
type Command struct {
	File     string        // fabric file; empty for the built-in one
	Scenario string        // name of the scenario
	Variants []string      // all when empty
	For      time.Duration // duration of all phases together; DefaultFor when 0
	JSON     string        // file for the report; "-" for standard output, empty for none
	Plot     string        // file for the picture; empty for none
	Restarts []string      // SWITCH@TIME
	Plain    bool          // lines instead of the live view
	Check    bool          // a miss is an error
	Burst    string        // size of each host's flow in the scenario's burst; empty for the scenario's own
	Predict  bool          // also predict by the simulator
	Log      string        // file for logs; "-" for standard error, empty for none
}

// DefaultFor is the length of a scenario on the operator's fabric unless Command.For is set.
const DefaultFor = 40 * time.Second

// ErrMissed is returned with Check if the report is not Within.
var ErrMissed = errors.New("a check of the run failed: see the end of its table")

// ErrInvalid is the error of an invalid play; no flag hides it.
var ErrInvalid = errors.New("the run is invalid: see the top of its table")

// Run plays the scenario and writes its table to out.
func (c Command) Run(ctx context.Context, out *os.File) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	log, closeLog, err := c.logger()
	if err != nil {
		return err
	}
	defer closeLog()
	o.Log = log
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	text := io.Writer(out)
	if c.JSON == "-" {
		text = os.Stderr // standard output is reserved for the JSON
	}
	view := interface {
		Show(Event)
		Close()
	}(NewPlain(text))
	if !c.Plain && c.JSON != "-" && term.IsTerminal(out.Fd()) {
		view = NewLive(cancel)
	}
	o.Show = view.Show
	report, err := Play(ctx, o)
	view.Close()
	if err != nil && ctx.Err() != nil {
		return ctx.Err() // an error after the end of a run is of no interest
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(text)
	if err := report.WriteTable(text); err != nil {
		return err
	}
	if err := jsonfile.Write(c.JSON, out, report); err != nil {
		return err
	}
	if c.Plot != "" {
		if err := report.Plot(c.Plot); err != nil {
			return fmt.Errorf("--plot %s: %w", c.Plot, err)
		}
	}
	switch {
	case !report.Valid:
		return ErrInvalid
	case c.Check && !report.Within:
		return ErrMissed
	}
	return nil
}

// options turns flags into Options; an error names the flag, its value and what is allowed.
func (c Command) options() (o Options, err error) {
	if c.Plot != "" {
		if err := plotting.Check(c.Plot); err != nil {
			return o, fmt.Errorf("--plot: %w", err)
		}
	}
	s, err := Find(c.Scenario)
	if err != nil {
		return o, err
	}
	if o.Scenario, err = s.Select(c.Variants); err != nil {
		return o, err
	}
	if s.Fabric != nil {
		refuse := func(flag, value string) error {
			return fmt.Errorf("%s %s: scenario %s has a fabric and times of its own", flag, value, s.Name)
		}
		switch {
		case c.File != "":
			return o, refuse("-f", c.File)
		case c.For != 0:
			return o, refuse("--for", c.For.String())
		case len(c.Restarts) > 0:
			return o, refuse("--restart", c.Restarts[0])
		case c.Predict && s.Victim == "":
			return o, fmt.Errorf("--predict: scenario %s is not predicted: want one of %s", s.Name, predictable())
		}
		o.Predict = c.Predict
		return o, o.Scenario.setBurst(c.Burst)
	}
	if c.Burst != "" || c.Predict {
		return o, fmt.Errorf("--burst and --predict: scenario %s has neither: want one of %s", s.Name, predictable())
	}
	if o.For = c.For; o.For == 0 {
		o.For = DefaultFor
	}
	if c.File == "" {
		o.Config, err = config.Parse("built-in leaf-spine.yaml", examples.LeafSpine, nil, controller.Sections()...)
	} else {
		o.Config, err = config.Load(config.Options{File: c.File, Sections: controller.Sections()})
	}
	if err != nil {
		return o, err
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
