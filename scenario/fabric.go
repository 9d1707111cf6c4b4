package scenario

import (
	"fmt"
	"log/slog"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/softswitch"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/units"
)

// Fabric is a configuration's switches, hosts and links in this process, on one loop. The
// switches are empty until a controller finds them. The loop's goroutine owns everything
// but the P4Runtime servers.
type Fabric struct {
	Loop     *clock.Loop
	Hosts    map[string]*agent.Host
	cfg      *config.Config
	log      *slog.Logger
	switches map[string]*node
	links    []*softswitch.Link
	wires    []wire // both directions of links[i] are wires[2i], a to b, and wires[2i+1]
	tracer   tracer
	buried   Losses // what switches lost that have been replaced
}

// node is a switch and its ports' cable ends, which stay when the switch is replaced.
type node struct {
	conf  config.Switch
	sw    *softswitch.Switch
	ports map[uint32]*socket
}

// wire is one direction of a link.
type wire struct {
	name string // the sending end: "leaf1:3", or a host's name
	rate units.Rate
}

// Build makes the fabric of a configuration on a new loop.
func Build(cfg *config.Config, log *slog.Logger) (*Fabric, error) {
	f := &Fabric{
		Loop: clock.NewLoop(), Hosts: map[string]*agent.Host{}, cfg: cfg, log: log,
		switches: map[string]*node{}, tracer: tracer{},
	}
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

// power gives a node a new, empty switch.
func (f *Fabric) power(n *node) error {
	sw, err := softswitch.NewOnLoop(f.Loop, softswitch.Config{
		Name: n.conf.Name, DeviceID: n.conf.DeviceID, CPUPort: n.conf.CPUPort, Log: f.log,
		// Admission in the pipeline is what limits a queue; the traffic manager only keeps a
		// fault from eating all memory.
		Traffic: tm.Config{Queues: n.conf.PriorityQueues, Limit: tm.Limit{Bytes: 64 * units.MB}},
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
		peer := []config.Endpoint{l.B, l.A}[i]
		s := &socket{rate: l.Rate, tracer: f.tracer, wire: len(f.wires) + 1 - i}
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
		} else if err := f.host(e.Node, peer, l, s); err != nil {
			return err
		}
		ends[i] = s
	}
	for i, e := range []config.Endpoint{l.A, l.B} {
		name := e.Node
		if e.Port != 0 {
			name = fmt.Sprintf("%s:%d", e.Node, e.Port)
		}
		f.wires = append(f.wires, wire{name: name, rate: ends[i].(*socket).rate})
	}
	link, err := softswitch.Connect(f.Loop, f.cfg.Scaled(l.Delay), ends[0], ends[1])
	if err != nil {
		return err
	}
	f.links = append(f.links, link)
	return nil
}

// host makes the host at the end of a link.
func (f *Fabric) host(name string, peer config.Endpoint, l config.Link, s *socket) error {
	h := f.cfg.Host(name)
	unit, err := maxqd.NewUnit(f.cfg.Soze.Unit())
	if err != nil {
		return err
	}
	nic := &nic{rate: l.Rate}
	c := agent.Config{
		Name: name, MAC: h.MAC, Gateway: packet.MAC(gateway), IP: h.IPv4, Rate: l.Rate, Unit: unit,
		NewLaw: agent.Soze(soze.Params{
			P: f.cfg.Scaled(f.cfg.Soze.P), K: f.cfg.Scaled(f.cfg.Soze.K),
			Alpha: f.cfg.Soze.Alpha, Beta: f.cfg.Soze.Beta, M: f.cfg.Soze.M,
			MaxRate: l.Rate, MSS: mss,
		}),
		MSS:      mss,
		DataDSCP: f.cfg.Soze.DSCP, AckDSCP: f.cfg.Soze.AckDSCP,
	}
	nic.host, err = agent.NewHost(f.Loop, c, nic.send)
	if err != nil {
		return err
	}
	f.Hosts[name] = nic.host
	s.plug(nic)
	return nil
}

// mss is the payload of a full packet, as in the paper's simulations (Söze §5).
const mss = 1000 * units.Byte

// gateway is the destination MAC of a host's frames. Switches route by IPv4 alone.
var gateway = [6]byte{0x02, 0, 0, 0, 0, 0xfe}

// nic is a host's end of its link.
type nic struct {
	host *agent.Host
	rate units.Rate
	out  softswitch.Sender
}

func (n *nic) Attach(out softswitch.Sender)       { n.out = out }
func (n *nic) SetUp(bool)                         {}
func (n *nic) Receive(frame []byte, _ units.Time) { n.host.Receive(frame) }

// send takes a frame as its transmission begins; its last bit leaves a frame's time later.
func (n *nic) send(frame []byte, now units.Time) {
	n.out.Send(frame, now+n.rate.TxTime(units.Bytes(len(frame))))
}

// socket is a cable's end: it remembers the cable, so that what is plugged into it can be
// replaced, and traces what arrives.
type socket struct {
	softswitch.Endpoint
	out    softswitch.Sender
	rate   units.Rate // of the port plugged in
	up     bool
	tracer tracer
	wire   int // that ends here
}

// plug puts a port into the socket, in place of the one before.
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
	s.tracer.saw(frame, s.wire)
	s.Endpoint.Receive(frame, now)
}
