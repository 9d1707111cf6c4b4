package experiment

import (
	"fmt"
	"math/rand/v2"

	"github.com/headgate/headgate/fabric"
	"github.com/headgate/headgate/fabric/topo"
	"github.com/headgate/headgate/fabric/workload"
	"github.com/headgate/headgate/fabric/yamlnode"
	"github.com/headgate/headgate/units"
)

// Plan is one variant of an experiment, ready to run with any seed. It is not changed by
// runs, which may be parallel.
type Plan struct {
	Variant  string
	Config   fabric.Config // without seed, groups and driver
	Graph    *topo.Graph
	Groups   []string
	sources  []source
	changes  []change
	Until    units.Time
	ToEnd    bool // stop once all flows have ended
	Interval units.Time
	Queues   []queueRef
	Measures []Measure
	deadlock units.Time // how long a cycle must hold; 0 does not look
}

// source makes flows. chain is the run's driver of flows that depend on others.
type source struct {
	make func(rng *rand.Rand, chain *workload.Chain) ([]fabric.FlowSpec, error)
}

// queueRef is an egress queue to record.
type queueRef struct {
	name     string
	from, to int // nodes
	class    int
}

const (
	maxBytes = 1000 * units.GB
	maxTime  = 1000 * units.Second
	maxRate  = 1600 * units.Gbps
)

func decodePlan(d *yamlnode.Doc) *Plan {
	root := d.Root()
	p := &Plan{}
	root.Text("name", "")
	root.Text("title", "")
	root.Text("paper", "")
	root.Node("variants")
	root.Need("topology", "flows", "run")
	if m := root.Sub("topology"); m != nil {
		p.Graph = decodeTopology(m)
	}
	p.Config.Graph = p.Graph
	if m := root.Sub("packet"); m != nil {
		p.Config.Payload = m.Bytes("payload", 0, 1, 9216)
		p.Config.Header = m.Bytes("header", 0, 1, 1024)
		p.Config.Ack = m.Bytes("ack", 0, 64, 1500)
		p.Config.RTO = m.Time("rto", 0, units.Microsecond, units.Second)
		m.Done()
	}
	decodeClasses(root.Sub("classes"), &p.Config)
	decodePFC(root.Sub("pfc"), &p.Config)
	decodeECN(root, &p.Config)
	if m := root.Sub("buffer"); m != nil {
		p.Config.NewBuffer = decodeBuffer(m, p.Config.Payload)
		p.tryBuffer(m)
	}
	decodePACC(root.Sub("pacc"), &p.Config)
	p.Config.CNPGap = root.Time("cnp_gap", 0, 0, units.Millisecond)
	decodeNoise(root.Sub("noise"), &p.Config)
	laws := decodeLaws(root)
	if p.Graph != nil {
		fd := &flowDecoder{plan: p, laws: laws, root: root}
		fd.decode()
	} else {
		root.Node("flows")
		root.Node("events")
	}
	p.decodeRun(root)
	root.Done()
	return p
}

func (p *Plan) decodeRun(root *yamlnode.Map) {
	m := root.Sub("run")
	if m == nil {
		return
	}
	m.Need("until")
	p.Until = m.Time("until", 0, units.Nanosecond, maxTime)
	p.ToEnd = m.Bool("stop_when_done", false)
	p.Interval = m.Time("interval", p.Until/200, units.Nanosecond, maxTime)
	p.deadlock = m.Time("deadlock_hold", 0, 0, maxTime)
	if p.Interval > 0 && p.Until/p.Interval > 2_000_000 {
		m.Fault("interval", "is %v, which makes more than 2000000 samples within %v", p.Interval, p.Until)
	}
	m.Done()
	if p.Graph == nil {
		root.Node("queues")
		root.Node("measures")
		return
	}
	root.Each("queues", func(m *yamlnode.Map) {
		m.Need("from", "to")
		q := queueRef{from: p.node(m, "from"), to: p.node(m, "to"), class: m.Int("class", 0, 0, fabric.NumClasses-1)}
		q.name = m.Text("name", m.Text("from", "")+"→"+m.Text("to", ""))
		if _, ok := p.Graph.LinkBetween(q.from, q.to); !ok {
			m.Fault("", "no link joins %s and %s", p.Graph.Names[q.from], p.Graph.Names[q.to])
		}
		m.Done()
		p.Queues = append(p.Queues, q)
	})
	root.Each("measures", func(m *yamlnode.Map) { p.Measures = append(p.Measures, p.decodeMeasure(m)) })
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

func decodeClasses(m *yamlnode.Map, c *fabric.Config) {
	if m == nil {
		return
	}
	ack := uint8(m.Int("ack", fabric.NumClasses-1, 0, fabric.NumClasses-1))
	c.AckClass = &ack
	if m.Has("strict") {
		var strict uint8
		for _, class := range m.Ints("strict", 0, fabric.NumClasses-1) {
			strict |= 1 << class
		}
		c.Strict = &strict
	}
	q := m.Bytes("quantum", 1600, 64, units.MB)
	for i := range c.Quantum {
		c.Quantum[i] = q
	}
	m.Done()
}

func decodePFC(m *yamlnode.Map, c *fabric.Config) {
	if m == nil {
		return
	}
	c.PFC.Processing = m.Bytes("processing", 3840, 0, units.MB)
	c.PFC.Quanta = uint16(m.Int("quanta", 65535, 1, 65535))
	m.Done()
}

func decodeECN(root *yamlnode.Map, c *fabric.Config) {
	root.Each("ecn", func(m *yamlnode.Map) {
		m.Need("classes", "kmin", "kmax", "pmax")
		r := &fabric.RED{
			KMin: m.Bytes("kmin", 0, 0, maxBytes), KMax: m.Bytes("kmax", 1, 1, maxBytes),
			PMax: m.Float("pmax", 0, 0, 1), Scale: m.Bool("scale", false),
		}
		if r.KMax < r.KMin {
			m.Fault("kmax", "is %v, want at least kmin, %v", r.KMax, r.KMin)
		}
		for _, class := range m.Ints("classes", 0, fabric.NumClasses-1) {
			c.ECN[class] = r
		}
		m.Done()
	})
}

// decodeNoise reads "noise: {points: [{at: 0us, percent: 0}, …], factor: 1}".
func decodeNoise(m *yamlnode.Map, c *fabric.Config) {
	if m == nil {
		return
	}
	m.Need("points")
	var at []units.Time
	var percent []float64
	m.Each("points", func(p *yamlnode.Map) {
		p.Need("at", "percent")
		at = append(at, p.Time("at", 0, 0, units.Second))
		percent = append(percent, p.Float("percent", 0, 0, 100))
		p.Done()
	})
	d, err := workload.NewDelays(at, percent, m.Float("factor", 1, 0, 1e6))
	if err != nil {
		m.Fault("points", "%v", err)
	} else {
		c.Noise = d
	}
	m.Done()
}

// tryBuffer builds every switch's buffer once, to say now what is wrong with it.
func (p *Plan) tryBuffer(m *yamlnode.Map) {
	if p.Graph == nil || p.Config.NewBuffer == nil {
		return
	}
	tried := map[string]bool{}
	for n := p.Graph.Hosts; n < p.Graph.Nodes(); n++ {
		info := fabric.SwitchInfo{Node: n, Name: p.Graph.Names[n]}
		for _, l := range p.Graph.Links {
			if l.A == n || l.B == n {
				info.Rates, info.Delay = append(info.Rates, l.Rate), append(info.Delay, l.Delay)
			}
		}
		if key := fmt.Sprint(info.Rates, info.Delay); !tried[key] {
			tried[key] = true
			if _, err := p.Config.NewBuffer(info); err != nil {
				m.Fault("", "switch %s: %v", info.Name, err)
				return
			}
		}
	}
}
