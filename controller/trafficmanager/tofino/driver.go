// Package tofino configures the traffic manager of a Tofino chip: the buffer pools,
// priority groups, PFC and queues that no P4 program can reach. A Driver turns what
// package trafficmanager says into rows of BF Runtime tables, compares them with what a chip
// holds, and writes the differences.
//
// # What a policy becomes
//
// Per port, each of its lossless classes has a priority group (tm.ppg.cfg) and all other classes
// share the port's default group (tm.port.dpg); all groups are in one ingress application
// pool, the shared pool of package headroom.
//
//	ρ (private)          guaranteed_cells
//	α, T(t) (Eq. 2)      dynamic_baf, pool_max_cells 1
//	threshold (static)   pool_max_cells, dynamic_baf DISABLE
//	δ                    hysteresis_cells, at least 32
//	Φ per class          pfc_skid_max_cells, skid_limit_cells of the port for all of them
//	η, DSH's insurance   both of them, once per port
//	B_h, B_i             size of IG_SKID_POOL
//	shared pool          size of IG_APP_POOL_0: the buffer without guarantees and headroom
//	victim port (SPFC)   pool_max_cells of the whole pool, dynamic_baf DISABLE
//
// Egress queues of lossless classes do not drop (tail_drop_enable) and obey PFC (pfc_cos).
// MACs are told which PAUSE frames to send and to obey ($PORT).
//
// Bytes become cells of 80 B (Tofino 1) or 176 B (Tofino 2): guarantees and headroom are
// rounded up, limits down, hysteresis and headroom to the 8 cells that the chip counts in.
// Headroom is for frames of any size from 64 B on: each takes whole cells.
//
// # What the chip cannot do
//
// - α is 1/64 to 4; any other is an error. A group that is alone in the pool gets the part α/(1+α) of it, the value
// of dynamic_baf.
// - A hysteresis of less than 32 cells: dynamic sharing needs 32, so a smaller δ becomes 32 cells.
//   - All classes of a port that are not lossless are one group, with one threshold.
//   - Eq. 2 and the bounds of groups count cells, not bytes.
//
// # What is lost of DSH
//
// - PAUSE of the queue and of the port together. A port of the chip sends PFC or PAUSE. With one lossless class it
// sends PFC, and the insurance η is that class's headroom, as in the paper. With several it sends PAUSE for the
// port when the first of its groups passes T(t): only then is η per port enough. Classes of one port are then not
// isolated; DSH's saving of memory remains.
//   - Xpoff = Nq·T(t), and δp with it: the chip has no dynamic threshold of a port.
//   - τ, by which a queue pauses sooner when it grows fast (Algorithms 3 and 4): the chip
//     compares with T(t). DSHConfig's Window, Precision, Entries, Tick and NoSharedHeadroom, and
//     PortQueues, are without effect; NoInsurance is an error.
//
// # What is lost of SPFC
//
// A port is a victim or not for as long as Config.Victims says. The controller decides from counters, once in each
// spfc.period; package feature/buffer states the delay.
package tofino

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

// Options says which chip a Driver talks to.
type Options struct {
	Name    string            // name of the switch, for errors
	Address string            // address of its BF Runtime server, host:port; the device is its device 0
	Chip    string            // Tofino1 or Tofino2
	Dial    []grpc.DialOption // credentials; none means plain text
	Log     *slog.Logger      // nil for none
	Schema  []byte            // the program's bf-rt.json
	// Bridged is the length of the bridged metadata that the program puts before each frame in the buffer, at most
	// a cell.
	Bridged units.Bytes
}

// Program is the name of Headgate's program for Tofino.
const Program = "headgate_tna"

// Driver configures one chip. It connects when it is first used, and again whenever the server comes back. It is
// safe for concurrent use; calls run one at a time.
type Driver struct {
	opts    Options
	chip    *chip
	schema  *bfrt.Schema
	client  *bfrt.Client
	working chan struct{} // holds a token while a call runs
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

// filter returns the table of the program's filter with that name. The table's name may have a pipe's name as a
// prefix.
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
func (d *Driver) Plan(ctx context.Context, want *trafficmanager.Config) ([]*pb.Change, error) {
	var list []*pb.Change
	err := d.do(ctx, want, func(s *settings) error {
		diff, err := d.compare(ctx, s)
		for i := range diff {
			list = append(list, diff[i].change())
		}
		return err
	})
	return list, err
}

// Apply implements trafficmanager.Driver. It writes only differences, in an order that keeps enough headroom for
// lossless packets at every step. It stops at the first step that fails; the error names each row and field that
// was refused. In the end it reads everything back. If want and from differ only in victims, it compares only the
// priority groups; if these differ in any other field, it compares everything.
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
			err = fmt.Errorf("a written row reads back with another value: %s", list[0].change())
		}
		return err
	})
	return len(written), err
}

// groups is compare for priority groups only.
func (d *Driver) groups(ctx context.Context, want *settings) ([]diff, error) {
	groups, err := d.allGroups(ctx, want)
	if err != nil {
		return nil, err
	}
	o := &observed{groups: groups}
	o.pairs = o.assign(want)
	return o.diffs(want), nil
}

// carry writes the differences.
func (d *Driver) carry(ctx context.Context, list []diff, written map[string]bool) error {
	for _, s := range order(list) {
		if err := d.step(ctx, s, written); err != nil {
			return fmt.Errorf("%s: %w", s.phase, err)
		}
	}
	return nil
}

// do calls run when no other call is running. It adds the switch's name to errors.
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

const (
	tableGroupCounter = "tm.counter.ppg"
	skidUsage         = "skid_pool_usage_cells"
)

// How long a port may take to empty its headroom, and how often drain checks that.
const (
	drainTime  = time.Second
	drainEvery = 10 * time.Millisecond
)

// drain waits until the headroom of the ports is empty. It can then shrink without dropping a packet.
func (d *Driver) drain(ctx context.Context, ports []uint32) error {
	s := &settings{ports: slices.Compact(sortPorts(slices.Clone(ports)))}
	groups, err := d.allGroups(ctx, s)
	if err != nil {
		return err
	}
	var ask []bfrt.Row
	for _, g := range groups {
		if port := portOf(g); port <= 1<<31 && slices.Contains(s.ports, uint32(port)) {
			ask = append(ask, bfrt.Row{Table: tableGroupCounter, Pipe: g.Pipe, Key: bfrt.Fields{{Name: "ppg_counter_id", Value: g.Data.Get("ppg_counter_id")}}})
		}
	}
	for end := time.Now().Add(drainTime); ; {
		have, err := d.client.Read(ctx, ask...)
		if err != nil {
			return err
		}
		full := slices.IndexFunc(have, func(r bfrt.Row) bool { return r.Data.Uint(skidUsage) > 0 })
		if full < 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s: %s is %v after %v: it must be 0 before headroom shrinks", have[full].Name(), skidUsage, have[full].Data.Get(skidUsage), drainTime)
		}
		select {
		case <-time.After(drainEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

const tablePauses = "$PORT_STAT"

// Names of fields of tablePauses.
const (
	portFrames = "$FramesTransmittedPause"
	pfcFrames  = "$FramesTransmittedPriPause"
)

func pauseTime(class int) string { return fmt.Sprintf("$TransmitPri%dPause1USCount", class) }

// Pauses reads the pause counters of some ports in one request. It reads them from the MACs, because the driver's
// copy may be older than a period of SPFC. It does not wait for other calls.
func (d *Driver) Pauses(ctx context.Context, ports []uint32) (map[uint32]trafficmanager.PauseCounters, error) {
	fields := bfrt.Fields{{Name: portFrames}, {Name: pfcFrames}}
	for c := range headroom.Classes {
		fields = append(fields, bfrt.Named{Name: pauseTime(c)})
	}
	ask := make([]bfrt.Row, len(ports))
	for i, p := range ports {
		ask[i] = bfrt.Row{Table: tablePauses, Pipe: bfrt.AllPipes, Key: bfrt.Fields{number("$DEV_PORT", uint64(p))}, Data: fields, Fresh: true}
	}
	rows, err := d.client.Read(ctx, ask...)
	if err != nil {
		return nil, fmt.Errorf("switch %s: pauses of ports: %w", d.opts.Name, err)
	}
	read := make(map[uint32]trafficmanager.PauseCounters, len(rows))
	for _, r := range rows {
		p := trafficmanager.PauseCounters{Frames: r.Data.Uint(pfcFrames), PortFrames: r.Data.Uint(portFrames)}
		for c := range p.Time {
			p.Time[c] = time.Duration(r.Data.Uint(pauseTime(c))) * time.Microsecond
		}
		read[uint32(r.Key.Uint("$DEV_PORT"))] = p
	}
	for _, p := range ports {
		if _, known := read[p]; !known {
			return nil, fmt.Errorf("switch %s: pauses of ports: %s: no counters arrived for port %d", d.opts.Name, tablePauses, p)
		}
	}
	return read, nil
}
