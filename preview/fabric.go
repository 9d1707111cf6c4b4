package preview

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/controller/allocation/priority"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/buffer"
	"github.com/headgate/headgate/controller/feature/pacc"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/controller/feature/routing"
	"github.com/headgate/headgate/controller/feature/soze"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/sim/experiment"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// translation is a configuration in the simulator's terms.
type translation struct {
	experiment.Fabric
	notes []string // parts of the fabric that the simulator cannot represent
}

// translate turns a configuration into a fabric of the simulator at line rate. It multiplies rates by scale and
// keeps the times and bytes of the configuration (package config). down names the links out of service. An error
// names the key that the simulator cannot represent.
func translate(variant string, applied *config.Config, down map[string]bool) (*translation, error) {
	c, err := atLineRate(applied)
	if err != nil {
		return nil, err
	}
	t := &translation{Fabric: experiment.Fabric{Variant: variant, Laws: laws(c, applied)}}
	g := graphOf(c, down)
	if err := g.Check(); err != nil {
		return nil, err
	}
	fc := &t.Config
	fc.Graph = g
	ack := qos.FromConfig(c).ClassOf(soze.FromConfig(c).AckDSCP).Class
	fc.AckClass = &ack
	fc.MaxQDUnit = max(soze.FromConfig(applied).Unit()/units.Time(applied.Scale), 1)
	if slices.ContainsFunc(c.Switches, func(s config.Switch) bool { return buffer.FromSwitch(&s).On() }) {
		fc.NewBuffer = func(i sim.SwitchInfo) (sim.Buffer, error) { return newBuffer(c, g, i) }
		fc.PFC.Quanta = buffer.FromSwitch(&c.Switches[0]).PauseQuanta
	}
	fc.PortOf = portOf(c, g)
	t.queues(c)
	if p := pacc.FromConfig(c); p.Enabled {
		fc.PACC = &sim.PACC{Class: classIn(c, p.Queue), Params: func(r units.Rate) cnpgen.Params {
			line, _ := p.Params(c, r)
			return line
		}}
	}
	if nics := len(c.Links) - switchLinks(c); nics > len(c.Hosts) {
		t.note("hosts have %d links: a host itself chooses among links of equal distance, so a flow may take another link than here", nics)
	}
	for _, s := range c.Switches {
		if s.Target.Chip() != "" {
			t.note("%s: the chip's hash chooses among several next hops, so a flow may take another one than here", s.Name)
		}
		for _, p := range s.Ports {
			if p.Rate > 0 {
				t.note("%s:%d has a rate of its own, which is taken for both directions of its link", s.Name, p.Number)
			}
		}
	}
	return t, nil
}

// switchLinks counts the links between switches.
func switchLinks(c *config.Config) (n int) {
	for _, l := range c.Links {
		if l.A.Port != 0 && l.B.Port != 0 {
			n++
		}
	}
	return n
}

func (t *translation) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// queues configures the switches' queues.
func (t *translation) queues(c *config.Config) {
	if list := qos.FromConfig(c).Weights; len(list) > 0 {
		strict := ^uint8(0)
		for _, w := range list {
			class := classIn(c, w.Queue)
			strict &^= 1 << class
			t.Config.Quantum[class] = units.Bytes(w.Weight) * frame
		}
		t.Config.Strict = &strict
	}
	for _, k := range qos.FromConfig(c).Classes {
		if k.Class != k.Queue {
			t.note("class %d is served by its number, not as queue %d", k.Class, k.Queue)
		}
	}
	limited := func(p config.Port) bool { return p.QueueLimit > 0 }
	if qos.FromConfig(c).QueueLimit < ids.Unlimited || slices.ContainsFunc(c.Switches, func(s config.Switch) bool { return slices.ContainsFunc(s.Ports, limited) }) {
		t.note("queue_limit is not simulated: queues are as deep as the switch's buffer, and without a policy without end")
	}
}

// portOf returns each port's ECN curves and the classes whose PAUSE the port ignores. Hosts obey the PAUSE of
// every class that is lossless at some switch, because the controller configures them so.
func portOf(c *config.Config, g *topo.Graph) func(node int, port uint32) sim.PortConfig {
	rates := map[config.Endpoint]units.Rate{}
	for _, l := range c.Links {
		rates[l.A], rates[l.B] = l.Rate, l.Rate
	}
	lossless := buffer.LosslessAnywhere(c)
	return func(node int, port uint32) (p sim.PortConfig) {
		if g.IsHost(node) {
			p.Ignores = ^lossless
			return p
		}
		s := &c.Switches[node-g.Hosts]
		if buffer.FromSwitch(s).On() {
			p.Ignores = ^buffer.LosslessAt(s, port)
		}
		for _, e := range qos.FromConfig(c).ECNAt(s.Name, port, rates[config.Endpoint{Node: s.Name, Port: port}]) {
			p.ECN[classIn(c, e.Queue)] = &sim.RED{KMin: e.KMin, KMax: e.KMax, PMax: e.PMax}
		}
		return p
	}
}

// frame is the quantum of a queue of weight 1: the largest standard Ethernet frame.
const frame = 1518 * units.Byte

// classIn returns the class that uses a queue, or the first of several.
func classIn(c *config.Config, queue uint8) uint8 {
	for _, k := range qos.FromConfig(c).Classes {
		if k.Queue == queue {
			return k.Class
		}
	}
	return 0 // class 0 has the DSCPs that no class lists
}

// atLineRate returns the fabric that a configuration represents at line rate. Sections are unchanged.
func atLineRate(c *config.Config) (*config.Config, error) {
	line := *c
	line.Scale = 1
	line.Links = slices.Clone(c.Links)
	for i := range line.Links {
		l := &line.Links[i]
		for _, end := range []config.Endpoint{l.A, l.B} {
			if s := c.Switch(end.Node); s != nil {
				l.Rate = min(l.Rate, cmp.Or(s.Port(end.Port).Rate, l.Rate))
			}
		}
		rate, ok := c.LineRate(l.Rate)
		if !ok {
			return nil, fmt.Errorf("link %s: %v times scale %d is beyond all numbers", l.Name, l.Rate, c.Scale)
		}
		l.Rate = rate
	}
	return &line, nil
}

// graphOf returns the graph of a configuration's hosts, switches and links, with their names.
func graphOf(c *config.Config, down map[string]bool) *topo.Graph {
	g := &topo.Graph{Hosts: len(c.Hosts), Switches: len(c.Switches)}
	at := map[string]int{}
	add := func(name string) {
		at[name] = len(g.Names)
		g.Names = append(g.Names, name)
	}
	for _, h := range c.Hosts {
		add(h.Name)
	}
	for _, s := range c.Switches {
		add(s.Name)
	}
	for _, l := range c.Links {
		g.Links = append(g.Links, topo.Link{
			A: at[l.A.Node], B: at[l.B.Node], PortA: l.A.Port, PortB: l.B.Port, Rate: l.Rate, Delay: l.Delay, Down: down[l.Name],
		})
	}
	g.ECMP = newECMP(c)
	return g
}

// newECMP returns the hash of each node, in the order of graphOf. Switches use the hash of real switches.
func newECMP(c *config.Config) *topo.ECMP {
	e := &topo.ECMP{RoCEPort: ids.UDPPortRoCE, MaxQDPort: soze.FromConfig(c).UDPPort}
	for _, h := range c.Hosts {
		e.Add(h.Addresses()[0], 0, 0)
	}
	for i := range c.Switches {
		s := &c.Switches[i]
		e.Add(netip.Addr{}, routing.SeedOf(s), routing.FromSwitch(s).Fields())
	}
	return e
}

// newBuffer makes the buffer of a switch. It uses the configuration that the controller computes for the switch,
// and puts the ports into the simulator's order. A switch without a policy has no buffer limit.
func newBuffer(c *config.Config, g *topo.Graph, i sim.SwitchInfo) (sim.Buffer, error) {
	h, numbers, ok := buffer.Headroom(c, c.Switch(i.Name))
	if !ok {
		return nil, nil
	}
	var ports []headroom.Port
	for _, l := range c.Links {
		for _, end := range []config.Endpoint{l.A, l.B} {
			if end.Node == i.Name {
				ports = append(ports, h.Ports[slices.Index(numbers, end.Port)])
			}
		}
	}
	h.Ports = ports
	return headroom.New(h)
}

// laws returns the hosts' laws at line rate, with the configuration's parameters: "soze", and "priority-1" and so
// on for PrioPlus' channels over Swift.
func laws(line, applied *config.Config) map[string]experiment.Law {
	s, scale := soze.FromConfig(applied), units.Rate(applied.Scale)
	list := map[string]experiment.Law{"soze": {Kind: "soze", Params: map[string]string{
		"p": s.P.String(), "k": s.K.String(), "alpha": (s.Alpha * scale).String(), "beta": (s.Beta * scale).String(),
		"m": strconv.FormatFloat(s.M, 'g', -1, 64),
	}}}
	plan := priority.PlanOf(line)
	if plan == nil {
		return list
	}
	for i := range min(plan.Priorities, mostPriorities) {
		ch, err := plan.Channel(i + 1)
		if err != nil {
			break
		}
		p := priority.FromConfig(line)
		params := map[string]string{"target": (ch.Target - plan.Base).String(), "limit": (ch.Limit - plan.Base).String()}
		if p.Fluctuation == 0 {
			params["under.increase"] = p.Increase.String()
			params["under.beta"] = strconv.FormatFloat(p.Beta, 'g', -1, 64)
			params["under.max_mdf"] = strconv.FormatFloat(p.MaxMDF, 'g', -1, 64)
		}
		list[fmt.Sprintf("priority-%d", i+1)] = experiment.Law{Kind: "prioplus-swift", Params: params}
	}
	return list
}

// mostPriorities bounds the number of priorities with a law.
const mostPriorities = 64
