package experiment

import (
	"fmt"
	"math/rand/v2"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/sim/workload"
	"github.com/headgate/headgate/units"
)

// Plan is one variant of an experiment, ready to run with any seed. Runs do not change it and may be parallel.
type Plan struct {
	Variant  string
	Config   sim.Config // without seed, groups and driver
	Graph    *topo.Graph
	Groups   []string
	sources  []source
	changes  []change
	Until    units.Time
	ToEnd    bool // stop once all flows have ended
	Interval units.Time
	Queues   []queueRef
	Gauges   []gaugeRef
	Measures []Measure
	ports    []portRef  // ports that gauges and measures name
	perFlow  bool       // keep each flow
	perLink  bool       // keep each link
	deadlock units.Time // how long a cycle must hold; 0 means that deadlocks are not looked for
}

// source makes flows. chain is the run's driver of flows that depend on others.
type source struct {
	make       func(rng *rand.Rand, chain *workload.Chain) ([]sim.FlowSpec, error)
	group      int
	persistent bool  // flows between the same hosts share a connection
	awaited    bool  // a later source waits for this one
	after      []int // groups of earlier sources that this one waits for
	pause      time  // pause after these groups
}

// queueRef is an egress queue to record.
type queueRef struct {
	name     string
	from, to int // nodes
	class    int
}

// portRef is the port by which a node sends to a neighbour.
type portRef struct{ from, to int }

const (
	maxBytes = 1000 * units.GB
	maxTime  = 1000 * units.Second
	maxRate  = 1600 * units.Gbps
)

func decodePlan(d *yamlnode.Doc) *Plan {
	p := &Plan{}
	d.Read(p.decode)
	return p
}

func (p *Plan) decode(root *yamlnode.Map) {
	for _, key := range []string{"name", "title", "paper", "variants", "axes", "figure", "seeds", "claims", "headlines", "causes", "plots", "notes", "full"} {
		root.Node(key) // a key of the file, not of the plan
	}
	root.Need("topology", "flows", "run")
	root.Sub("topology", func(m *yamlnode.Map) { p.Graph = decodeTopology(m) })
	p.Config.Graph = p.Graph
	p.decodeHosts(root)
	root.Sub("classes", func(m *yamlnode.Map) { decodeClasses(m, &p.Config) })
	root.Sub("pfc", func(m *yamlnode.Map) { decodePFC(m, &p.Config) })
	decodeECN(root, &p.Config)
	root.Sub("buffer", func(m *yamlnode.Map) {
		p.Config.NewBuffer = p.decodeBuffer(m)
		if err := p.tryBuffers(!m.Has("switches") && !m.Has("ports")); err != nil {
			m.Fault("", "%v", err)
		}
	})
	root.Sub("pacc", func(m *yamlnode.Map) { decodePACC(m, &p.Config) })
	p.decodeFlows(root, nil)
	root.Sub("run", p.decodeRun)
	p.decodeOutputs(root)
}

// decodeHosts reads the hosts' settings besides their flows.
func (p *Plan) decodeHosts(root *yamlnode.Map) {
	root.Sub("packet", func(m *yamlnode.Map) {
		p.Config.Payload = m.Bytes("payload", 0, 1, 9216)
		p.Config.Header = m.Bytes("header", 0, 1, 1024)
		p.Config.Ack = m.Bytes("ack", 0, 64, 1500)
		p.Config.RTO = m.Time("rto", 0, units.Microsecond, units.Second)
		p.Config.MaxQDUnit = m.Time("maxqd_unit", p.Config.MaxQDUnit, units.Picosecond, units.Millisecond)
	})
	p.Config.CNPGap = root.Time("cnp_gap", 0, 0, units.Millisecond)
	p.Config.CNPDelay = root.Time("cnp_delay", 0, 0, units.Millisecond)
	root.Sub("noise", func(m *yamlnode.Map) { decodeNoise(m, &p.Config) })
}

// decodeFlows reads laws, flows and events. own has the fabric's laws.
func (p *Plan) decodeFlows(root *yamlnode.Map, own map[string]lawOf) {
	laws := decodeLaws(root, own)
	if p.Graph != nil {
		fd := &flowDecoder{plan: p, laws: laws, root: root}
		fd.decode()
	} else {
		root.Node("flows")
		root.Node("events")
	}
}

func (p *Plan) decodeRun(m *yamlnode.Map) {
	m.Need("until")
	m.Computed("interval")
	p.Until = m.Time("until", 0, units.Nanosecond, maxTime)
	p.ToEnd = m.Bool("stop_when_done", false)
	p.Interval = m.Time("interval", p.Until/200, units.Nanosecond, maxTime)
	p.perFlow = m.Bool("flows", false)
	p.perLink = m.Bool("links", p.perLink)
	p.deadlock = m.Time("deadlock_hold", 0, 0, maxTime)
	if p.Interval > 0 && p.Until/p.Interval > 2_000_000 {
		m.Fault("interval", "is %v, which makes more than 2000000 samples within %v", p.Interval, p.Until)
	}
}

// decodeOutputs reads the records and measures of a run.
func (p *Plan) decodeOutputs(root *yamlnode.Map) {
	if p.Graph == nil {
		root.Node("queues")
		root.Node("gauges")
		root.Node("measures")
		return
	}
	root.Each("queues", func(m *yamlnode.Map) {
		m.Need("from", "to")
		m.Computed("name")
		port := p.linkEnds(m)
		q := queueRef{from: port.from, to: port.to, class: m.Int("class", 0, 0, sim.NumClasses-1)}
		q.name = m.Text("name", m.Text("from", "")+"→"+m.Text("to", ""))
		p.Queues = append(p.Queues, q)
	})
	root.Each("gauges", func(m *yamlnode.Map) { p.Gauges = append(p.Gauges, p.decodeGauge(m)) })
	root.Each("measures", func(m *yamlnode.Map) { p.Measures = append(p.Measures, p.decodeMeasure(m)) })
}

// linkEnds reads the ends of a link.
func (p *Plan) linkEnds(m *yamlnode.Map) portRef {
	m.Need("from", "to")
	ref := portRef{p.node(m, "from"), p.node(m, "to")}
	if _, ok := p.Graph.LinkBetween(ref.from, ref.to); !ok {
		m.Fault("", "no link joins %s and %s", p.Graph.Names[ref.from], p.Graph.Names[ref.to])
	}
	return ref
}

// portOf reads "port: {from: s0, to: h1}", with "class: 0" beside it, and returns the port's place in p.ports. −1
// means all ports, and all classes.
func (p *Plan) portOf(m *yamlnode.Map, need bool) (port, class int) {
	if need {
		m.Need("port")
	}
	port = -1
	m.Sub("port", func(m *yamlnode.Map) {
		port = len(p.ports)
		p.ports = append(p.ports, p.linkEnds(m))
	})
	if port < 0 {
		return -1, -1
	}
	return port, m.Int("class", -1, 0, sim.NumClasses-1)
}

// node reads the name of a node.
func (p *Plan) node(m *yamlnode.Map, key string) int {
	name := m.Text(key, "")
	n, ok := p.Graph.Find(name)
	if !ok && name != "" {
		m.Fault(key, "is %q, want a node such as %s or %s", name, p.Graph.Names[0], p.Graph.Names[len(p.Graph.Names)-1])
	}
	return n
}

func decodeClasses(m *yamlnode.Map, c *sim.Config) {
	ack := uint8(m.Int("ack", sim.NumClasses-1, 0, sim.NumClasses-1))
	c.AckClass = &ack
	if m.Has("strict") {
		var strict uint8
		for _, class := range m.Ints("strict", 0, sim.NumClasses-1) {
			strict |= 1 << class
		}
		c.Strict = &strict
	}
	q := m.Bytes("quantum", 1600, 64, units.MB)
	for i := range c.Quantum {
		c.Quantum[i] = q
	}
	own := m.Amounts("quanta", 64, units.MB)
	if len(own) > sim.NumClasses {
		m.Fault("quanta", "are %d, want at most one for each of %d classes", len(own), sim.NumClasses)
		return
	}
	copy(c.Quantum[:], own)
}

func decodePFC(m *yamlnode.Map, c *sim.Config) {
	c.PFC.Processing = m.Bytes("processing", 3840, 0, units.MB)
	// The longest response that the standard allows at a port's rate, or the one of DSH's Eq. 1.
	if m.OneOf("response", string(headroom.ByEq1), string(headroom.Standard), string(headroom.ByEq1)) == string(headroom.Standard) {
		c.PFC.Response = headroom.Response
		if m.Has("processing") {
			m.Fault("processing", "is given, and response is standard, want one of them: both say when a PAUSE takes effect")
		}
	}
	c.PFC.Quanta = uint16(m.Int("quanta", 65535, 1, 65535))
}

func decodeECN(root *yamlnode.Map, c *sim.Config) {
	root.Each("ecn", func(m *yamlnode.Map) {
		m.Need("classes", "kmin", "kmax", "pmax")
		r := &sim.RED{
			KMin: m.Bytes("kmin", 0, 0, maxBytes), KMax: m.Bytes("kmax", 1, 1, maxBytes),
			PMax: m.Float("pmax", 0, 0, 1), Scale: m.Bool("scale", false),
		}
		if r.KMax < r.KMin {
			m.Fault("kmax", "is %v, want at least kmin, %v", r.KMax, r.KMin)
		}
		for _, class := range m.Ints("classes", 0, sim.NumClasses-1) {
			c.ECN[class] = r
		}
	})
}

// decodeNoise reads "noise: {points: [{at: 0us, percent: 0}, …], factor: 1}".
func decodeNoise(m *yamlnode.Map, c *sim.Config) {
	m.Need("points")
	var at []units.Time
	var percent []float64
	m.Each("points", func(p *yamlnode.Map) {
		p.Need("at", "percent")
		at = append(at, p.Time("at", 0, 0, units.Second))
		percent = append(percent, p.Float("percent", 0, 0, 100))
	})
	factor := m.Float("factor", 1, 0, 1e6)
	switch d, err := workload.NewDelays(at, percent, factor); {
	case err != nil:
		m.Fault("points", "%v", err)
	case factor > 0:
		c.Noise = d
	}
}

// tryBuffers builds every switch's buffer once, so that faults are reported now. If alike is set it builds only
// one buffer for switches with equal links.
func (p *Plan) tryBuffers(alike bool) error {
	if p.Graph == nil || p.Config.NewBuffer == nil {
		return nil
	}
	tried, ports := map[string]bool{}, topo.NewPorts(p.Graph)
	for n := p.Graph.Hosts; n < p.Graph.Nodes(); n++ {
		info := sim.InfoOf(p.Graph, ports, n)
		key := info.Name
		if alike {
			key = fmt.Sprint(info.Rates, info.Delay)
		}
		if tried[key] {
			continue
		}
		tried[key] = true
		if _, err := p.Config.NewBuffer(info); err != nil {
			return fmt.Errorf("switch %s: %w", info.Name, err)
		}
	}
	return nil
}
