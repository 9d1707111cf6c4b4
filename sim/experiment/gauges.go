package experiment

import (
	"maps"
	"math/bits"
	"slices"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/units"
)

// gaugeRef is a value to record over time. It is a level of switches' buffers, which is recorded exactly, or a
// value that is sampled at run.interval.
type gaugeRef struct {
	name  string
	kind  *gaugeKind
	nodes []int // switches
	port  int   // index in Plan.ports, −1 for whole switches
	class int   // −1 for all
	group int
	while bool // only while headroom is in use
	peaks bool // local maxima
}

// gaugeKind is a kind of gauge. Exactly one of level, growth and now is set.
type gaugeKind struct {
	unit  string
	scale float64 // number of units of level in one unit
	at    gaugeAt
	// level reads the buffer of a switch, of one of its ingress ports or of one class. port and class are −1 for
	// all.
	level func(m *headroom.MMU, now time, port, class int) int64
	// growth reads a counter of a port. The gauge is the counter's growth in a sample, times factor, per second.
	growth func(s *sim.Sim, port int) float64
	factor float64
	// now reads a value of a group; 0 means that there is none.
	now func(s *sim.Sim, group int) float64
}

// gaugeAt names the kinds of places that a gauge can have.
type gaugeAt uint8

const (
	atSwitch gaugeAt = 1 << iota
	atPort
	atQueue // a port and a class
	atGroup
)

var gaugeKinds = map[string]*gaugeKind{
	"buffer":    {unit: "KB", scale: 1e3, at: atSwitch | atPort | atQueue, level: pool(headroom.Usage.Total)},
	"private":   {unit: "KB", scale: 1e3, at: atSwitch | atPort | atQueue, level: pool(func(u headroom.Usage) units.Bytes { return u.Private })},
	"shared":    {unit: "KB", scale: 1e3, at: atSwitch | atPort | atQueue, level: pool(func(u headroom.Usage) units.Bytes { return u.Shared })},
	"headroom":  {unit: "KB", scale: 1e3, at: atSwitch | atPort | atQueue, level: pool(inHeadroom)},
	"insurance": {unit: "KB", scale: 1e3, at: atSwitch | atPort, level: pool(func(u headroom.Usage) units.Bytes { return u.Insurance })},
	"threshold": {unit: "KB", scale: 1e3, at: atSwitch, level: func(m *headroom.MMU, _ time, _, _ int) int64 { return int64(m.Threshold()) }},
	"limit": {unit: "KB", scale: 1e3, at: atQueue, level: func(m *headroom.MMU, now time, port, class int) int64 {
		return int64(m.Limit(now, port, uint8(class)))
	}},
	"tau": {unit: "KB", scale: 1e3, at: atQueue, level: func(m *headroom.MMU, _ time, port, class int) int64 {
		return int64(m.Tau(port, uint8(class)))
	}},
	"victims": {scale: 1, at: atSwitch | atPort, level: func(m *headroom.MMU, now time, port, _ int) int64 {
		return overPorts(m, port, func(p int) int64 { return oneIf(m.Victim(now, p)) })
	}},
	"xoff_queues": {scale: 1, at: atSwitch | atPort | atQueue, level: func(m *headroom.MMU, _ time, port, class int) int64 {
		if port < 0 {
			st := m.Stats()
			return int64(st.QueuePauses - st.QueueResumes)
		}
		off := m.Off(port)
		if class >= 0 {
			off &= 1 << class
		}
		return int64(bits.OnesCount8(off))
	}},
	"xoff_ports": {scale: 1, at: atSwitch | atPort, level: func(m *headroom.MMU, _ time, port, _ int) int64 {
		if port < 0 {
			st := m.Stats()
			return int64(st.PortPauses - st.PortResumes)
		}
		return oneIf(m.PortPaused(port))
	}},
	"throughput": {unit: "Gb/s", at: atPort, factor: 8e-9, growth: func(s *sim.Sim, port int) float64 { return float64(s.Port(port).TxBytes) }},
	"paused":     {unit: "%", at: atPort, factor: 100, growth: func(s *sim.Sim, port int) float64 { return s.Port(port).Stopped.Seconds() }},
	"rtt": {unit: "µs", at: atGroup, now: func(s *sim.Sim, group int) float64 {
		sum, n := 0.0, 0
		s.Flows(func(f *sim.Flow) {
			if f.Spec.Group == group && f.SRTT > 0 {
				sum, n = sum+f.SRTT.Micros(), n+1
			}
		})
		return sum / max(float64(n), 1)
	}},
}

func inHeadroom(u headroom.Usage) units.Bytes { return u.Headroom + u.Insurance }

func oneIf(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// overPorts returns the level of one port, or the sum over all ports.
func overPorts(m *headroom.MMU, port int, of func(port int) int64) (sum int64) {
	if port >= 0 {
		return of(port)
	}
	for p := range m.Config().Ports {
		sum += of(p)
	}
	return sum
}

// pool returns a level that reads the bytes of a switch, a port or a queue in a pool. DSH's insurance headroom
// belongs to the port.
func pool(of func(headroom.Usage) units.Bytes) func(*headroom.MMU, time, int, int) int64 {
	return func(m *headroom.MMU, _ time, port, class int) int64 {
		if port < 0 {
			return int64(of(m.Usage()))
		}
		if class >= 0 {
			return int64(of(m.Queue(port, uint8(class))))
		}
		var u headroom.Usage
		for c := range uint8(headroom.Classes) {
			q := m.Queue(port, c)
			u.Private, u.Shared, u.Headroom = u.Private+q.Private, u.Shared+q.Shared, u.Headroom+q.Headroom
		}
		u.Insurance = m.Insured(port)
		u.Shared -= u.Insurance
		return int64(of(u))
	}
}

func (p *Plan) decodeGauge(m *yamlnode.Map) gaugeRef {
	m.Need("name", "what")
	g := gaugeRef{name: m.Text("name", ""), port: -1, class: -1}
	what := m.OneOf("what", "", slices.Sorted(maps.Keys(gaugeKinds))...)
	if g.kind = gaugeKinds[what]; g.kind == nil {
		m.AllowUnknown()
		return g
	}
	if g.kind.at == atGroup {
		m.Need("group")
		g.group = max(p.groupNamed(m), 0)
		return g
	}
	if m.Has("port") || g.kind.at&atSwitch == 0 {
		g.port, g.class = p.portOf(m, true)
		if g.class >= 0 && g.kind.at&atQueue == 0 {
			m.Fault("class", "is given, but %s is of whole ports", what)
		}
		if g.class < 0 && g.kind.at == atQueue {
			m.Need("class")
			g.class = 0
		}
		if g.port >= 0 {
			g.nodes = []int{p.ports[g.port].to}
		}
	} else {
		g.nodes = p.switches(m)
	}
	if g.kind.level == nil {
		return g
	}
	g.while = m.OneOf("while", "always", "always", "headroom") == "headroom"
	g.peaks = m.Bool("peaks", false)
	if p.needPools(m); g.port >= 0 && p.Graph.IsHost(p.ports[g.port].to) {
		m.Fault("port", "leads to host %s, want the port of a switch: what comes in from its peer", p.Graph.Names[p.ports[g.port].to])
	}
	return g
}

// switches reads "switch", which names one or all.
func (p *Plan) switches(m *yamlnode.Map) (nodes []int) {
	m.Need("switch")
	name := m.Text("switch", "")
	for n := p.Graph.Hosts; n < p.Graph.Nodes(); n++ {
		if name == "all" || name == p.Graph.Names[n] {
			nodes = append(nodes, n)
		}
	}
	if len(nodes) == 0 && name != "" {
		m.Fault("switch", "is %q, want all or a switch such as %s", name, p.Graph.Names[len(p.Graph.Names)-1])
	}
	return nodes
}

// needPools reports a fault unless the switches have buffers with pools.
func (p *Plan) needPools(m *yamlnode.Map) {
	if p.Config.NewBuffer == nil {
		m.Fault("what", "is of a buffer's pools, want a buffer.policy that is not %s", unlimited)
	}
}

// label returns a gauge's name with its unit.
func (g *gaugeRef) label() string {
	if g.kind.unit == "" {
		return g.name
	}
	return g.name + " (" + g.kind.unit + ")"
}

// levelOf returns the level that a gauge reads in a run.
func (r *run) levelOf(g *gaugeRef) sim.Level {
	used, local := gaugeKinds["headroom"].level, -1 // number of the ingress port at its switch; −1 for whole switches
	if g.port >= 0 {
		_, local = r.sim.Far(r.portAt[g.port])
	}
	return func(m *headroom.MMU, now time) int64 {
		if g.while && used(m, now, local, -1) == 0 {
			return sim.Unknown
		}
		return g.kind.level(m, now, local, g.class)
	}
}

// follow returns the reading of a measure of a gauge. It records levels exactly, and takes all other gauges from
// the samples.
func (r *run) follow(me *Measure) (reading, error) {
	g := &r.plan.Gauges[me.gauge]
	if g.kind.level == nil {
		return spreadOf(me, func() []float64 { return r.sampled(me) }), nil
	}
	var seen []*sim.Occupancy
	for _, n := range g.nodes {
		o, err := r.sim.Gauge(n, r.levelOf(g), me.from, me.to, g.peaks)
		if err != nil {
			return nil, err
		}
		seen = append(seen, o)
	}
	return r.levels(me, seen...), nil
}

// sampler returns a function that reads a gauge for the series. It adds up the values of several switches.
func (r *run) sampler(g *gaugeRef) (func() float64, error) {
	switch k := g.kind; {
	case k.growth != nil:
		last := 0.0
		return func() float64 {
			v := k.growth(r.sim, r.portAt[g.port])
			grown := v - last
			last = v
			return grown * k.factor / r.plan.Interval.Seconds()
		}, nil
	case k.now != nil:
		return func() float64 { return k.now(r.sim, g.group) }, nil
	}
	var memories []*headroom.MMU
	for _, n := range g.nodes {
		m, err := r.sim.MMU(n)
		if err != nil {
			return nil, err
		}
		memories = append(memories, m)
	}
	level := r.levelOf(g)
	return func() float64 {
		sum := 0.0
		for _, m := range memories {
			if v := level(m, r.sim.Now()); v != sim.Unknown {
				sum += float64(v)
			}
		}
		return sum / g.kind.scale
	}, nil
}

// sampled returns the samples of a gauge within a measure's time. For a group's gauge it leaves out samples
// without a value.
func (r *run) sampled(me *Measure) (out []float64) {
	for i, t := range r.out.Series.Time {
		v := r.out.Series.Gauge[me.gauge][i]
		if t > me.from.Micros() && t <= me.to.Micros() && (v > 0 || r.plan.Gauges[me.gauge].kind.now == nil) {
			out = append(out, v)
		}
	}
	return out
}
