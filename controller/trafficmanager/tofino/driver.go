package tofino

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"google.golang.org/grpc"

	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/units"
)

// Options says which chip a Driver talks to.
type Options struct {
	Name    string            // of the switch, for errors
	Address string            // of its BF Runtime server, host:port; the device is its device 0
	Chip    string            // Tofino1 or Tofino2
	Dial    []grpc.DialOption // credentials; none means plain text
	Log     *slog.Logger      // nil for none
	Schema  []byte            // the program's bf-rt.json
	// Bridged is what the program puts before each frame for its way through the buffer, at
	// most a cell.
	Bridged units.Bytes
}

// Program is the name of Headgate's program for Tofino.
const Program = "headgate_tna"

// Driver configures one chip. It connects when it is first used, and again whenever the
// server comes back. It is safe for use by several goroutines; one call works at a time.
type Driver struct {
	opts    Options
	chip    *chip
	schema  *bfrt.Schema
	client  *bfrt.Client
	working chan struct{} // has a token while a call works
}

var _ trafficmanager.Driver = (*Driver)(nil)

// New returns a Driver.
func New(o Options) (*Driver, error) {
	ch, err := chipOf(o.Chip)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	schema, err := bfrt.Load(o.Chip, o.Schema)
	if err != nil {
		return nil, fmt.Errorf("switch %s: traffic manager: %w", o.Name, err)
	}
	client := bfrt.New(bfrt.Options{Address: o.Address, Program: Program, Schema: schema, Dial: o.Dial})
	return &Driver{opts: o, chip: ch, schema: schema, client: client, working: make(chan struct{}, 1)}, nil
}

// filter returns the table of a filter of the program, whose name may have that of a pipe
// before it.
func (d *Driver) filter(name string) (string, error) {
	for _, t := range d.schema.Tables() {
		if t.Name == name || strings.HasSuffix(t.Name, "."+name) {
			return t.Name, nil
		}
	}
	return "", wrong("schema", "of program "+Program, "one with the filter "+name)
}

// Close implements trafficmanager.Driver.
func (d *Driver) Close() error { return d.client.Close() }

// Check implements trafficmanager.Driver.
func (d *Driver) Check(want *trafficmanager.Config) error {
	_, err := shape(d.chip, d.opts.Bridged, *want)
	return err
}

// Plan implements trafficmanager.Driver.
func (d *Driver) Plan(ctx context.Context, want *trafficmanager.Config) ([]view.Change, error) {
	var list []view.Change
	err := d.do(ctx, want, func(s *settings) error {
		diff, err := d.compare(ctx, s)
		for i := range diff {
			list = append(list, diff[i].change())
		}
		return err
	})
	return list, err
}

// Apply implements trafficmanager.Driver. It writes only what differs, in an order in which
// lossless packets always have the headroom that they may need, and stops at the first step
// that fails: the error names each row and field that was refused. In the end everything is
// read back. Where want differs from what is held in nothing but victims, only priority
// groups are compared, and everything if others of their fields are not as they should be.
func (d *Driver) Apply(ctx context.Context, from, want *trafficmanager.Config) (int, error) {
	written := map[string]bool{}
	err := d.do(ctx, want, func(s *settings) error {
		compare := d.compare
		quick := from != nil && from.OnlyVictims(want)
		if quick {
			compare = d.groups
		}
		list, err := compare(ctx, s)
		if err == nil && quick && slices.ContainsFunc(list, func(x diff) bool { return !x.victim() }) {
			compare = d.compare
			list, err = compare(ctx, s)
		}
		if err != nil || len(list) == 0 {
			return err
		}
		if err := d.carry(ctx, list, written); err != nil {
			return err
		}
		if list, err = compare(ctx, s); err == nil && len(list) > 0 {
			err = fmt.Errorf("what was written reads back otherwise: %s", list[0].change())
		}
		return err
	})
	return len(written), err
}

// groups is compare for nothing but priority groups.
func (d *Driver) groups(ctx context.Context, want *settings) ([]diff, error) {
	groups, err := d.allGroups(ctx, want)
	if err != nil {
		return nil, err
	}
	o := &observed{groups: groups}
	o.pairs = o.assign(want)
	return o.diffs(want), nil
}

// carry writes what differs.
func (d *Driver) carry(ctx context.Context, list []diff, written map[string]bool) error {
	for _, s := range order(list) {
		if err := d.step(ctx, s, written); err != nil {
			return fmt.Errorf("%s: %w", s.phase, err)
		}
	}
	return nil
}

// do runs alone, after other calls have ended, and names the switch in errors.
func (d *Driver) do(ctx context.Context, want *trafficmanager.Config, run func(*settings) error) error {
	s, err := shape(d.chip, d.opts.Bridged, *want)
	if err != nil {
		return fmt.Errorf("switch %s: traffic manager: %w", d.opts.Name, err)
	}
	select {
	case d.working <- struct{}{}:
		defer func() { <-d.working }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := run(s); err != nil {
		return fmt.Errorf("switch %s: traffic manager: %w", d.opts.Name, err)
	}
	return nil
}

// step writes the changes of one step.
func (d *Driver) step(ctx context.Context, s batch, written map[string]bool) error {
	if len(s.drain) > 0 {
		if err := d.drain(ctx, s.drain); err != nil {
			return err
		}
	}
	err := d.client.Write(ctx, s.changes)
	var refused bfrt.WriteError
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	bad := map[string]bool{}
	for _, r := range refused {
		bad[r.Change.Row.Name()] = true
	}
	for _, c := range s.changes {
		if name := c.Row.Name(); !bad[name] {
			written[name] = true
			d.opts.Log.Debug("traffic manager", "switch", d.opts.Name, "change", c.String())
		}
	}
	return err
}
