package trafficmanager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"google.golang.org/grpc"

	"github.com/headgate/headgate/controller/bfrt"
	"github.com/headgate/headgate/controller/view"
)

// Options says which chip a Driver talks to.
type Options struct {
	Name     string // of the switch, for errors
	Address  string // of its BF Runtime server, host:port
	DeviceID uint32
	Chip     string            // Tofino1 or Tofino2
	Dial     []grpc.DialOption // credentials; none means plain text
	Log      *slog.Logger      // nil for none
	// Program is the name of the program on the chip, DefaultProgram by default, and Schema
	// its bf-rt.json. Without a schema no filter of the program is written.
	Program string
	Schema  []byte
}

// DefaultProgram is the name of Headgate's program for Tofino.
const DefaultProgram = "headgate_tna"

// Driver configures one chip. It is safe for use by several goroutines; calls take turns.
type Driver struct {
	opts   Options
	client *bfrt.Client
	filter string // full name of the program's filter; "" without a schema

	turn chan struct{} // held by the call whose turn it is
	once sync.Once
}

// New returns a Driver. It connects when it is first used, and again whenever the server
// comes back.
func New(o Options) (*Driver, error) {
	if _, err := chipOf(o.Chip); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Program == "" {
		o.Program = DefaultProgram
	}
	schema, filter, err := schemas(o)
	if err != nil {
		return nil, fmt.Errorf("switch %s: traffic manager: %w", o.Name, err)
	}
	client, err := bfrt.New(bfrt.Options{Address: o.Address, Device: o.DeviceID, Program: o.Program, Schema: schema, Dial: o.Dial})
	if err != nil {
		return nil, fmt.Errorf("switch %s: traffic manager: %w", o.Name, err)
	}
	return &Driver{opts: o, client: client, filter: filter, turn: make(chan struct{}, 1)}, nil
}

// schemas returns the tables of the chip and the program, and the name of maxQD's filter.
func schemas(o Options) (*bfrt.Schema, string, error) {
	fixed, err := bfrt.Fixed(o.Chip)
	if err != nil || o.Schema == nil {
		return fixed, "", err
	}
	program, err := bfrt.Program(o.Schema)
	if err != nil {
		return nil, "", err
	}
	filter := ""
	for _, t := range program.Tables() {
		if isFilter(t.Name) {
			filter = t.Name
		}
	}
	if filter == "" {
		return nil, "", wrong("schema", "of program "+o.Program, "one with the filter "+MaxQDFilter)
	}
	all, err := bfrt.Merge(fixed, program)
	return all, filter, err
}

// Close ends the connection.
func (d *Driver) Close() (err error) {
	d.once.Do(func() { err = d.client.Close() })
	return err
}

// Plan says what Apply would write, and writes nothing.
func (d *Driver) Plan(ctx context.Context, want *Settings) ([]view.Change, error) {
	var list []view.Change
	err := d.do(ctx, want, func() error {
		diff, err := d.compare(ctx, want)
		for i := range diff {
			list = append(list, diff[i].change())
		}
		return err
	})
	return list, err
}

// Apply makes the chip hold want and returns how many rows it wrote. It writes only what
// differs, in an order in which lossless packets always have the headroom that they may
// need, and stops at the first step that fails: the error names each row and field that
// was refused, and the next Apply goes on from there. In the end everything is read back.
func (d *Driver) Apply(ctx context.Context, want *Settings) (int, error) {
	return d.Change(ctx, nil, want)
}

// Change is Apply for a chip that was made to hold from, nil when that is not known. Where
// want differs from it in nothing but victims (WithVictims), it is quick: only priority
// groups are compared, and everything if others of their fields are not as they should be.
func (d *Driver) Change(ctx context.Context, from, want *Settings) (int, error) {
	written := map[string]bool{}
	err := d.do(ctx, want, func() error {
		compare := d.compare
		diff, quick, err := d.victims(ctx, from, want)
		if quick {
			compare = d.groups
		} else if err == nil {
			diff, err = d.compare(ctx, want)
		}
		if err == nil && len(diff) > 0 {
			err = d.carry(ctx, diff, written)
			if err == nil {
				diff, err = compare(ctx, want)
			}
			if err == nil && len(diff) > 0 {
				err = fmt.Errorf("what was written reads back otherwise: %s", diff[0].change().Text)
			}
		}
		return err
	})
	return len(written), err
}

// victims returns what differs when nothing but victims can: quick is false where more may.
func (d *Driver) victims(ctx context.Context, from, want *Settings) (list []diff, quick bool, err error) {
	if from == nil || from.root != want.root {
		return nil, false, nil
	}
	if list, err = d.groups(ctx, want); err != nil {
		return nil, false, err
	}
	for _, x := range list {
		if !x.exist || x.remove || x.again {
			return nil, false, nil
		}
		for _, f := range x.fields {
			if f.name != "pool_max_cells" && f.name != "dynamic_baf" {
				return nil, false, nil
			}
		}
	}
	return list, true, nil
}

// groups is compare for nothing but priority groups.
func (d *Driver) groups(ctx context.Context, want *Settings) ([]diff, error) {
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

// do takes its turn and names the switch in errors.
func (d *Driver) do(ctx context.Context, want *Settings, run func() error) error {
	if want == nil {
		return nil
	}
	if want.chip.name != d.opts.Chip {
		return fmt.Errorf("switch %s: traffic manager: %w", d.opts.Name, wrong("chip", want.chip.name, d.opts.Chip))
	}
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := run(); err != nil {
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
