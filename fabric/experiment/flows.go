package experiment

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/headgate/headgate/fabric"
	"github.com/headgate/headgate/fabric/workload"
	"github.com/headgate/headgate/fabric/yamlnode"
	"github.com/headgate/headgate/units"
)

// flowDecoder reads the flows of a plan and what changes during the run.
type flowDecoder struct {
	plan *Plan
	laws map[string]fabric.LawMaker
	root *yamlnode.Map
}

// change is something that happens at a time of the run.
type change struct {
	at time
	do func(*fabric.Sim) error
}

// time is short for what most keys here hold.
type time = units.Time

func (d *flowDecoder) decode() {
	d.root.Each("flows", d.source)
	if len(d.plan.Groups) == 0 {
		d.root.Fault("flows", "is empty, want at least one entry")
	}
	d.root.Each("events", d.event)
}

// group returns the number of a group, which is new or not.
func (d *flowDecoder) group(m *yamlnode.Map) int {
	name := m.Text("group", "flows")
	for i, g := range d.plan.Groups {
		if g == name {
			return i
		}
	}
	d.plan.Groups = append(d.plan.Groups, name)
	return len(d.plan.Groups) - 1
}

func (d *flowDecoder) hosts(m *yamlnode.Map, key, def string) []int {
	hosts, err := hostSet(d.plan.Graph, m.Text(key, def))
	if err != nil {
		m.Fault(key, "%v", err)
	}
	return hosts
}

func (d *flowDecoder) host(m *yamlnode.Map, key string) int {
	hosts := d.hosts(m, key, "0")
	if len(hosts) != 1 {
		m.Fault(key, "is %d hosts, want one", len(hosts))
		return 0
	}
	return hosts[0]
}

func (d *flowDecoder) pattern(m *yamlnode.Map) workload.Pattern {
	p := workload.Pattern{
		Class: uint8(m.Int("class", 0, 0, fabric.NumClasses-1)), Weight: m.Float("weight", 1, 1e-9, 1e9), Group: d.group(m),
	}
	for _, c := range m.Ints("classes", 0, fabric.NumClasses-1) {
		p.Pick = append(p.Pick, uint8(c))
	}
	name := m.Text("law", "none")
	p.Law = d.laws[name]
	if p.Law == nil {
		var names []string
		for n := range d.laws {
			names = append(names, n)
		}
		m.Fault("law", "is %q, want one of those under laws: %s", name, strings.Join(sorted(names), ", "))
	}
	return p
}

func (d *flowDecoder) add(make func(rng *rand.Rand, chain *workload.Chain) ([]fabric.FlowSpec, error)) {
	d.plan.sources = append(d.plan.sources, source{make})
}

func (d *flowDecoder) source(m *yamlnode.Map) {
	m.Need("kind")
	pat := d.pattern(m)
	start := m.Time("start", 0, 0, maxTime)
	kind := m.OneOf("kind", "", "flow", "shift", "permutation", "incast", "poisson", "coflows", "ring", "tpch")
	switch kind {
	case "flow":
		d.single(m, pat, start)
	case "shift", "permutation":
		d.permutation(m, pat, start, kind == "shift")
	case "incast":
		d.incast(m, pat, start)
	case "poisson":
		d.poisson(m, pat, start)
	case "coflows":
		d.coflows(m, pat, start)
	case "tpch":
		d.tpch(m, pat, start)
	case "ring":
		m.Need("size")
		hosts := d.hosts(m, "hosts", "all")
		size, rounds := m.Bytes("size", 1, 1, maxBytes), m.Int("rounds", 1, 1, 10_000)
		d.add(func(rng *rand.Rand, chain *workload.Chain) ([]fabric.FlowSpec, error) {
			return chain.Ring(&pat, rng, hosts, size, rounds, start)
		})
	}
	m.Done()
}

// single reads flows between two hosts: count of them, every so often.
func (d *flowDecoder) single(m *yamlnode.Map, pat workload.Pattern, start time) {
	m.Need("from", "to")
	from, to := d.host(m, "from"), d.host(m, "to")
	size, stop := m.Bytes("size", 0, 0, maxBytes), m.Time("stop", 0, 0, maxTime)
	count, every := m.Int("count", 1, 1, 1_000_000), m.Time("every", 0, 0, maxTime)
	switch {
	case from == to:
		m.Fault("to", "is the sender itself")
	case size == 0 && stop == 0:
		m.Fault("", "has no end: want a size, a stop or both")
	case stop != 0 && stop <= start:
		m.Fault("stop", "is %v, want later than the start, %v", stop, start)
	}
	f := fabric.FlowSpec{
		Src: from, Dst: to, Size: size, Stop: stop, Class: pat.Class, Group: pat.Group, Weight: pat.Weight, Law: pat.Law,
	}
	d.add(func(*rand.Rand, *workload.Chain) ([]fabric.FlowSpec, error) {
		flows := make([]fabric.FlowSpec, count)
		for i := range flows {
			flows[i] = f
			flows[i].Start = start + time(i)*every
		}
		return flows, nil
	})
}

// incast reads flows of many hosts to one, with a size, a stop or both.
func (d *flowDecoder) incast(m *yamlnode.Map, pat workload.Pattern, start time) {
	m.Need("to")
	from, to := d.hosts(m, "from", "all"), d.host(m, "to")
	from = without(from, to)
	size, count := m.Bytes("size", 0, 1, maxBytes), m.Int("count", 1, 1, 100_000)
	stop := m.Time("stop", 0, 0, maxTime)
	switch {
	case size == 0 && stop == 0:
		m.Fault("", "has no end: want a size, a stop or both")
	case stop != 0 && stop <= start:
		m.Fault("stop", "is %v, want later than the start, %v", stop, start)
	}
	d.add(func(rng *rand.Rand, _ *workload.Chain) ([]fabric.FlowSpec, error) {
		flows, err := pat.Incast(rng, from, to, count, size, start)
		for i := range flows {
			flows[i].Stop = stop
		}
		return flows, err
	})
}

func (d *flowDecoder) permutation(m *yamlnode.Map, pat workload.Pattern, start time, shift bool) {
	m.Need("size")
	hosts := d.hosts(m, "hosts", "all")
	size := m.Bytes("size", 1, 1, maxBytes)
	if !shift {
		d.add(func(rng *rand.Rand, _ *workload.Chain) ([]fabric.FlowSpec, error) {
			return pat.Permutation(rng, hosts, size, start)
		})
		return
	}
	by := m.Int("by", len(hosts)/2, 1, max(len(hosts)-1, 1))
	d.add(func(rng *rand.Rand, _ *workload.Chain) ([]fabric.FlowSpec, error) {
		return pat.Shift(rng, hosts, by, size, start)
	})
}

// sizes reads a distribution by name, from a file, or a single size.
func (d *flowDecoder) sizes(m *yamlnode.Map) *workload.Sizes {
	name := m.Text("sizes", "")
	size := m.Bytes("size", 0, 1, maxBytes)
	switch {
	case (name == "") == (size == 0):
		m.Fault("", "want either sizes or size")
		return workload.Constant(1)
	case size > 0:
		return workload.Constant(size)
	}
	var s *workload.Sizes
	var err error
	if filepath.Ext(name) == ".cdf" {
		var f *os.File
		if f, err = os.Open(name); err == nil {
			s, err = workload.ReadSizes(f)
			f.Close()
		}
	} else {
		s, err = workload.Named(name)
	}
	if err != nil {
		m.Fault("sizes", "%v", err)
		return workload.Constant(1)
	}
	return s
}

func (d *flowDecoder) poisson(m *yamlnode.Map, pat workload.Pattern, start time) {
	m.Need("load", "stop")
	g := d.plan.Graph
	payload, header := d.plan.Config.Payload, d.plan.Config.Header
	if payload == 0 {
		payload = 1000
	}
	if header == 0 {
		header = 54
	}
	a := workload.Arrivals{
		From: d.hosts(m, "from", "all"), To: d.hosts(m, "to", "all"), Sizes: d.sizes(m),
		Load: m.Float("load", 0.5, 1e-6, 1), Factor: float64(payload+header) / float64(payload),
		Start: start, End: m.Time("stop", start+1, 1, maxTime), FanIn: m.Int("fan_in", 1, 1, 100_000),
	}
	if a.End <= start {
		m.Fault("stop", "is %v, want later than the start, %v", a.End, start)
	}
	if len(a.From) > 0 {
		for _, l := range g.Links {
			if l.A == a.From[0] || l.B == a.From[0] {
				a.Rate = l.Rate
			}
		}
	}
	if m.Bool("other_rack", false) {
		rack := make([]int, g.Hosts)
		for _, l := range g.Links {
			if g.IsHost(l.A) {
				rack[l.A] = l.B
			} else if g.IsHost(l.B) {
				rack[l.B] = l.A
			}
		}
		a.Apart = func(src, dst int) bool { return rack[src] != rack[dst] }
	}
	d.add(func(rng *rand.Rand, _ *workload.Chain) ([]fabric.FlowSpec, error) { return pat.Poisson(rng, a) })
}

func (d *flowDecoder) coflows(m *yamlnode.Map, pat workload.Pattern, start time) {
	m.Need("mappers", "reducers", "every", "stop")
	hosts, sizes := d.hosts(m, "hosts", "all"), d.sizes(m)
	mappers, reducers := m.Int("mappers", 1, 1, 1<<16), m.Int("reducers", 1, 1, 1<<16)
	every, stop := m.Time("every", units.Second, 1, maxTime), m.Time("stop", start+1, 1, maxTime)
	d.add(func(rng *rand.Rand, _ *workload.Chain) ([]fabric.FlowSpec, error) {
		flows, _, err := pat.Coflows(rng, hosts, mappers, reducers, sizes, every, start, stop)
		return flows, err
	})
}

func without(hosts []int, h int) []int {
	var out []int
	for _, x := range hosts {
		if x != h {
			out = append(out, x)
		}
	}
	return out
}

// event reads a change: a group's weight, or a link that fails or is repaired.
func (d *flowDecoder) event(m *yamlnode.Map) {
	m.Need("at")
	at := m.Time("at", 0, 0, maxTime)
	switch {
	case m.Has("weight"):
		m.Need("group")
		name, w := m.Text("group", ""), m.Float("weight", 1, 1e-9, 1e9)
		group := -1
		for i, g := range d.plan.Groups {
			if g == name {
				group = i
			}
		}
		if group < 0 {
			m.Fault("group", "is %q, want one of %s", name, strings.Join(d.plan.Groups, ", "))
		}
		d.plan.changes = append(d.plan.changes, change{at, func(s *fabric.Sim) error { return s.SetWeight(group, w) }})
	default:
		m.Need("a", "b", "link")
		a, b := d.plan.node(m, "a"), d.plan.node(m, "b")
		down := m.OneOf("link", "down", "down", "up") == "down"
		l, ok := d.plan.Graph.LinkBetween(a, b)
		if !ok {
			m.Fault("", "no link joins %s and %s", d.plan.Graph.Names[a], d.plan.Graph.Names[b])
		}
		d.plan.changes = append(d.plan.changes, change{at, func(s *fabric.Sim) error { return s.SetLink(l, down) }})
	}
	m.Done()
}
