// Package network is a fabric in this process: embedded switches, hosts and links on one
// loop, from a fabric file. The switches are empty until a controller finds them over
// P4Runtime.
package network

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/softswitch"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/units"
)

// Options of a fabric.
type Options struct {
	// Host, if set, changes a host's configuration before the host is made, for example its law and its classes.
	// It gets the default configuration of this package.
	Host func(c *agent.Config)
	// Tap, if set, sees every frame whose last bit has reached the end of a wire, before the receiver
	// takes it. The bytes are valid until Tap returns. The loop calls it.
	Tap func(wire int, frame []byte, now units.Time)
	Log *slog.Logger // slog.Default when nil
}

// Fabric is a configuration's switches, hosts and links in this process, on one loop. The
// loop's goroutine owns everything but the P4Runtime servers.
type Fabric struct {
	Loop  *clock.Loop
	Hosts map[string]*agent.Host
	// Wires are the directions of the links: link i of the configuration is wire 2i, from
	// its end A to its end B, and wire 2i+1.
	Wires []Wire

	cfg      *config.Config
	opts     Options
	switches map[string]*node
	nics     map[string]*nic // NICs by the name of their host
	links    []*softswitch.Link
	buried   Losses // losses of switches that have been replaced
}

// Wire is one direction of a link.
type Wire struct {
	From, To config.Endpoint
	Rate     units.Rate // line rate at the sending end
}

// node is a switch and the sockets of its ports. The sockets stay when the switch is replaced.
type node struct {
	conf  config.Switch
	sw    *softswitch.Switch
	ports map[uint32]*socket
}

// Build makes the fabric of a configuration, on a new loop.
func Build(cfg *config.Config, o Options) (*Fabric, error) {
	f := &Fabric{Loop: clock.NewLoop(), Hosts: map[string]*agent.Host{}, cfg: cfg, opts: o, switches: map[string]*node{}, nics: map[string]*nic{}}
	for _, s := range cfg.Switches {
		n := &node{conf: s, ports: map[uint32]*socket{}}
		if err := f.power(n); err != nil {
			return nil, err
		}
		f.switches[s.Name] = n
	}
	for _, l := range cfg.Links {
		if err := f.cable(l); err != nil {
			return nil, fmt.Errorf("link %s: %w", l.Name, err)
		}
	}
	return f, nil
}

// Switch returns the switch with a name, or nil if there is none. After a Restart it is a new one.
func (f *Fabric) Switch(name string) *softswitch.Switch {
	if n := f.switches[name]; n != nil {
		return n.sw
	}
	return nil
}

// power replaces a node's switch by a new, empty one.
func (f *Fabric) power(n *node) error {
	sw, err := softswitch.NewOnLoop(f.Loop, softswitch.Config{
		Name: n.conf.Name, DeviceID: n.conf.DeviceID, CPUPort: n.conf.CPUPort, Log: f.opts.Log,
		// The pipeline's admission limits a queue. The traffic manager's limit only protects the memory from a
		// fault.
		Traffic: tm.Config{Queues: n.conf.PriorityQueues, Limit: tm.Limit{Bytes: 64 * units.MB}},
		PFC:     softswitch.PFC{Enabled: true},
	})
	if err != nil {
		return err
	}
	n.sw = sw
	for number, s := range n.ports {
		port, err := sw.AddPort(number, s.rate)
		if err != nil {
			return err
		}
		s.plug(port)
	}
	return nil
}

// cable lays one link.
func (f *Fabric) cable(l config.Link) error {
	var ends [2]softswitch.Endpoint
	for i, e := range []config.Endpoint{l.A, l.B} {
		s := &socket{rate: l.Rate, tap: f.opts.Tap, wire: len(f.Wires) + 1 - i}
		if n, ok := f.switches[e.Node]; ok {
			if r := n.conf.Port(e.Port).Rate; r > 0 {
				s.rate = r
			}
			port, err := n.sw.AddPort(e.Port, s.rate)
			if err != nil {
				return err
			}
			n.ports[e.Port] = s
			s.plug(port)
		} else if err := f.host(e.Node, l, s); err != nil {
			return err
		}
		ends[i] = s
	}
	f.Wires = append(f.Wires,
		Wire{From: l.A, To: l.B, Rate: ends[0].(*socket).rate},
		Wire{From: l.B, To: l.A, Rate: ends[1].(*socket).rate})
	link, err := softswitch.Connect(f.Loop, f.cfg.Scaled(l.Delay), ends[0], ends[1])
	if err != nil {
		return err
	}
	f.links = append(f.links, link)
	return nil
}

// socket is the end of a cable. It keeps the cable when its port is replaced, and shows each arriving frame to the
// tap.
type socket struct {
	softswitch.Endpoint
	out  softswitch.Sender
	rate units.Rate // line rate of the port plugged in
	up   bool
	tap  func(wire int, frame []byte, now units.Time)
	wire int // the wire that ends here
}

// plug connects a port to the socket, in place of the previous one.
func (s *socket) plug(e softswitch.Endpoint) {
	s.Endpoint = e
	if s.out != nil {
		e.Attach(s.out)
		e.SetUp(s.up)
	}
}

func (s *socket) Attach(out softswitch.Sender) { s.out = out; s.Endpoint.Attach(out) }
func (s *socket) SetUp(up bool)                { s.up = up; s.Endpoint.SetUp(up) }
func (s *socket) Receive(frame []byte, now units.Time) {
	if s.tap != nil {
		s.tap(s.wire, frame, now)
	}
	s.Endpoint.Receive(frame, now)
}

// Serve starts every switch's P4Runtime server at its configured address.
func (f *Fabric) Serve() error {
	for _, n := range f.switches {
		if _, err := n.sw.ServeGRPC(n.conf.Address, nil); err != nil {
			return fmt.Errorf("switch %s: %w", n.conf.Name, err)
		}
	}
	return nil
}

// Close ends every switch.
func (f *Fabric) Close() {
	for _, n := range f.switches {
		n.sw.Close()
	}
}

// Restart switches a switch's power off for a while. The switch loses its P4Runtime server, program, entries and
// queued packets, and comes back empty.
func (f *Fabric) Restart(ctx context.Context, name string, away time.Duration) error {
	n := f.switches[name]
	old := n.sw
	dropped, err := pipelineLosses(ctx, n.conf)
	if err != nil {
		return fmt.Errorf("drop counters of switch %s: %w", name, err)
	}
	if err := f.Loop.Do(ctx, func() {
		f.buried.add(dropped)
		f.buried.add(switchLosses(n))
		for _, s := range n.ports {
			s.plug(&unplugged{lost: &f.buried.Switches})
		}
	}); err != nil {
		return err
	}
	old.Close()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(away):
	}
	var failed error
	if err := f.Loop.Do(ctx, func() { failed = f.power(n) }); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	_, err = n.sw.ServeGRPC(n.conf.Address, nil)
	return err
}

// unplugged is the end of a cable while its switch has no power.
type unplugged struct {
	lost *uint64
}

func (u *unplugged) Attach(softswitch.Sender)   {}
func (u *unplugged) SetUp(bool)                 {}
func (u *unplugged) Receive([]byte, units.Time) { *u.lost++ }
