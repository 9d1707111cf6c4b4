package experiment

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/sim/workload"
	"github.com/headgate/headgate/units"
)

// flowDecoder reads the flows of a plan and the changes during the run.
type flowDecoder struct {
	plan *Plan
	laws map[string]lawOf
	uses []use
	root *yamlnode.Map

	now   source // the source that is being read
	split string // its by_size.split
}

// change is an event at a time of the run.
type change struct {
	at time
	do func(*sim.Sim) error
}

// time reads a time key.
type time = units.Time

func (d *flowDecoder) decode() {
	d.root.Each("flows", d.source)
	if len(d.plan.Groups) == 0 {
		d.root.Fault("flows", "is empty, want at least one entry")
	}
	d.root.Each("events", d.event)
	d.tryLaws()
}

// group returns the number of a group, and adds the group if it is new.
func (d *flowDecoder) group(name string) int {
	if i := slices.Index(d.plan.Groups, name); i >= 0 {
		return i
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

// pattern reads the common keys of flows; def has the defaults.
func (d *flowDecoder) pattern(m *yamlnode.Map, def workload.Pattern, group string) workload.Pattern {
	p := def
	p.Class = uint8(m.Int("class", int(def.Class), 0, sim.NumClasses-1))
	p.Weight = m.Float("weight", def.Weight, 1e-9, 1e9)
	p.Group = d.group(m.Text("group", group))
	p.Precedence = uint8(m.Int("precedence", int(def.Precedence), 0, sim.NumPrecedences-1))
	p.Paced = m.Bool("paced", def.Paced)
	p.Deadline = m.Time("deadline", def.Deadline, 1, maxTime)
	p.DeadlineFactor = m.Float("deadline_factor", def.DeadlineFactor, 1e-3, 1e6)
	if m.Has("deadline") && m.Has("deadline_factor") {
		m.Fault("deadline_factor", "is given beside deadline, want one of them")
	}
	for _, c := range m.Ints("classes", 0, sim.NumClasses-1) {
		p.Pick = append(p.Pick, uint8(c))
	}
	if m.Has("law") || def.Law == nil {
		p.Law = d.law(m)
	}
	return p
}

// law reads the name of a law.
func (d *flowDecoder) law(m *yamlnode.Map) lawOf {
	name := m.Text("law", "none")
	l, ok := d.laws[name]
	if !ok {
		m.Fault("law", "is %q, want one of those under laws: %s", name, strings.Join(slices.Sorted(maps.Keys(d.laws)), ", "))
	}
	return l
}

// bySize reads "by_size: {bounds: [10KB, 1MB], ranks: [{law: p3}, {law: p2}, {law: p1}]}": settings of flows by
// their size, or of coflows by theirs. If split replaces bounds, the flows are divided evenly among the ranks.
func (d *flowDecoder) bySize(m *yamlnode.Map, p *workload.Pattern) (split string) {
	m.Sub("by_size", func(m *yamlnode.Map) {
		m.Need("ranks")
		def := *p
		m.Each("ranks", func(m *yamlnode.Map) {
			m.Computed("class", "weight", "group", "precedence", "paced", "law")
			p.Ranks = append(p.Ranks, d.pattern(m, def, d.plan.Groups[def.Group]))
		})
		if split = m.OneOf("split", "", "flows", "bytes"); split == "" {
			m.Need("bounds")
		}
		p.Bounds = m.Amounts("bounds", 1, maxBytes)
		switch {
		case split != "" && len(p.Bounds) > 0:
			m.Fault("bounds", "are given beside split, want one of them")
		case split == "" && len(p.Bounds) != max(len(p.Ranks)-1, 0):
			m.Fault("bounds", "are %d, want one less than the %d ranks", len(p.Bounds), len(p.Ranks))
		case !slices.IsSorted(p.Bounds):
			m.Fault("bounds", "fall, want them in rising order")
		}
	})
	return split
}

// between records the laws of a pattern's flows and the hosts that they run between, for tryLaws.
func (d *flowDecoder) between(m *yamlnode.Map, p *workload.Pattern, from, to []int) {
	patterns := p.Ranks
	if len(patterns) == 0 {
		patterns = []workload.Pattern{*p}
	}
	for _, q := range patterns {
		if l, ok := q.Law.(lawOf); ok && l.Maker != nil {
			d.uses = append(d.uses, use{m, l, from, to})
		}
	}
}

func (d *flowDecoder) add(make func(rng *rand.Rand, chain *workload.Chain) ([]sim.FlowSpec, error)) {
	d.now.make = make
	d.plan.sources = append(d.plan.sources, d.now)
}

func (d *flowDecoder) source(m *yamlnode.Map) {
	m.Need("kind")
	pat := d.pattern(m, workload.Pattern{FlowSpec: sim.FlowSpec{Weight: 1}}, "flows")
	d.split = d.bySize(m, &pat)
	d.now = source{group: pat.Group, persistent: m.Bool("persistent", false)}
	d.after(m)
	start := m.Time("start", 0, 0, maxTime)
	kind := m.OneOf("kind", "", "flow", "shift", "permutation", "incast", "poisson", "coflows", "ring", "tpch", "dag", "trace")
	if d.split != "" && kind != "poisson" && kind != "coflows" {
		m.Fault("by_size.split", "wants sizes that are drawn, of poisson or coflows; want bounds here")
	}
	switch kind {
	case "":
		m.AllowUnknown()
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
	case "dag":
		d.dag(m, pat, start)
	case "trace":
		d.trace(m, pat, start)
	case "ring":
		m.Need("size")
		hosts := d.hosts(m, "hosts", "all")
		size, rounds := m.Bytes("size", 1, 1, maxBytes), m.Int("rounds", 1, 1, 10_000)
		compute := m.Time("compute", 0, 0, maxTime)
		d.add(func(rng *rand.Rand, chain *workload.Chain) ([]sim.FlowSpec, error) {
			return chain.Ring(&pat, rng, hosts, size, rounds, compute, start)
		})
		d.between(m, &pat, hosts, hosts)
	}
}

// after reads the groups that a source waits for, and its computing time after they have ended.
func (d *flowDecoder) after(m *yamlnode.Map) {
	for i, name := range m.Texts("after") {
		g := slices.Index(d.plan.Groups, name)
		found := false
		for j := range d.plan.sources {
			if s := &d.plan.sources[j]; s.group == g {
				s.awaited, found = true, true
			}
		}
		if !found {
			m.Fault(fmt.Sprintf("after[%d]", i), "is %q, want the group of an entry above", name)
		}
		d.now.after = append(d.now.after, g)
	}
	if d.now.pause = m.Time("pause", 0, 0, maxTime); d.now.pause > 0 && len(d.now.after) == 0 {
		m.Fault("pause", "is %v, but the flows wait for nothing: want after, or start", d.now.pause)
	}
}

// single reads flows between two hosts: their number and their interval.
func (d *flowDecoder) single(m *yamlnode.Map, pat workload.Pattern, start time) {
	m.Need("from", "to")
	from, to := d.host(m, "from"), d.host(m, "to")
	size, stop := m.Bytes("size", 0, 0, maxBytes), m.Time("stop", 0, 0, maxTime)
	count, every := m.Int("count", 1, 1, 1_000_000), m.Time("every", 0, 0, maxTime)
	pat.SrcPort = uint16(m.Int("src_port", 0, 1, 65535))
	if from == to {
		m.Fault("to", "is the sender itself")
	} else {
		checkEnd(m, size, start, stop)
	}
	d.between(m, &pat, []int{from}, []int{to})
	d.add(func(rng *rand.Rand, _ *workload.Chain) ([]sim.FlowSpec, error) {
		flows := make([]sim.FlowSpec, count)
		for i := range flows {
			flows[i] = pat.Flow(rng, from, to, size, start+time(i)*every)
			flows[i].Stop = stop
		}
		return flows, nil
	})
}

// checkEnd reports a fault unless flows end: by a size, by a stop later than the start, or by both.
func checkEnd(m *yamlnode.Map, size units.Bytes, start, stop time) {
	switch {
	case size == 0 && stop == 0:
		m.Fault("", "has no end: want a size, a stop or both")
	case stop != 0 && stop <= start:
		m.Fault("stop", "is %v, want later than the start, %v", stop, start)
	}
}

// incast reads flows of many hosts to one, with a size, a stop or both.
func (d *flowDecoder) incast(m *yamlnode.Map, pat workload.Pattern, start time) {
	m.Need("to")
	from, to := d.hosts(m, "from", "all"), d.host(m, "to")
	from = slices.DeleteFunc(from, func(h int) bool { return h == to })
	size, count := m.Bytes("size", 0, 1, maxBytes), m.Int("count", 1, 1, 100_000)
	stop := m.Time("stop", 0, 0, maxTime)
	checkEnd(m, size, start, stop)
	d.between(m, &pat, from, []int{to})
	d.add(func(rng *rand.Rand, _ *workload.Chain) ([]sim.FlowSpec, error) {
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
	d.between(m, &pat, hosts, hosts)
	if !shift {
		d.add(func(rng *rand.Rand, _ *workload.Chain) ([]sim.FlowSpec, error) {
			return pat.Permutation(rng, hosts, size, start)
		})
		return
	}
	m.Computed("by")
	by := m.Int("by", len(hosts)/2, 1, maxHosts)
	if by >= len(hosts) {
		m.Fault("by", "is %d, want less than the number of hosts, %d", by, len(hosts))
	}
	d.add(func(rng *rand.Rand, _ *workload.Chain) ([]sim.FlowSpec, error) {
		return pat.Shift(rng, hosts, by, size, start)
	})
}

// beside returns the path of a file in the folder of the experiment.
func beside(m *yamlnode.Map, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(m.File()), name)
}

// splitBy sets the bounds that divide flows evenly among the ranks by their sizes: by number, or by bytes. flows is
// the number of flows of a coflow, or 1.
func (d *flowDecoder) splitBy(p *workload.Pattern, s *workload.Sizes, flows int) {
	if d.split == "" || len(p.Ranks) == 0 {
		return
	}
	p.Bounds = s.Split(len(p.Ranks), d.split == "bytes")
	for i := range p.Bounds {
		p.Bounds[i] *= units.Bytes(flows)
	}
}

// sizes reads a distribution: the name of a built-in one, the name of a file beside the experiment (with an
// ending), or a single size.
func (d *flowDecoder) sizes(m *yamlnode.Map) *workload.Sizes {
	name := m.Text("sizes", "")
	size := m.Bytes("size", 0, 1, maxBytes)
	between := yamlnode.Scalar(m, "between", everySize, "a range such as 0-100KB, 100KB-1MB or 1MB-", parseSizes)
	switch {
	case size > 0 && between != everySize:
		m.Fault("between", "is given beside size, want sizes, or size alone")
		return workload.Constant(1)
	case (name == "") == (size == 0):
		m.Fault("", "want either sizes or size")
		return workload.Constant(1)
	case size > 0:
		return workload.Constant(size)
	}
	var s *workload.Sizes
	var err error
	if filepath.Ext(name) != "" {
		var f *os.File
		if f, err = os.Open(beside(m, name)); err == nil {
			if s, err = workload.ReadSizes(f); err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			f.Close()
		}
	} else {
		s, err = workload.Named(name)
	}
	if err != nil {
		m.Fault("sizes", "%v", err)
		return workload.Constant(1)
	}
	if between == everySize {
		return s
	}
	if s = s.Between(between.low, between.high); s == nil {
		m.Fault("between", "has none of the sizes of %s", name)
		return workload.Constant(1)
	}
	return s
}

func (d *flowDecoder) poisson(m *yamlnode.Map, pat workload.Pattern, start time) {
	m.Need("load", "stop")
	g := d.plan.Graph
	a := workload.Arrivals{
		From: d.hosts(m, "from", "all"), To: d.hosts(m, "to", "all"), Sizes: d.sizes(m),
		Load:  m.Float("load", 0.5, 1e-6, 1),
		Start: start, End: m.Time("stop", start+1, 1, maxTime), FanIn: m.Int("fan_in", 1, 1, 100_000), AtOnce: m.Int("count", 1, 1, 100_000),
	}
	a.FanInMax = m.Int("fan_in_max", a.FanIn, a.FanIn, 100_000)
	if a.End <= start {
		m.Fault("stop", "is %v, want later than the start, %v", a.End, start)
	}
	a.Rate, a.Factor = d.wire(a.From)
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
	d.splitBy(&pat, a.Sizes, 1)
	d.between(m, &pat, a.From, a.To)
	d.add(func(rng *rand.Rand, _ *workload.Chain) ([]sim.FlowSpec, error) { return pat.Poisson(rng, a) })
}

func (d *flowDecoder) coflows(m *yamlnode.Map, pat workload.Pattern, start time) {
	m.Need("mappers", "reducers", "stop")
	s := workload.Shuffles{
		Hosts: d.hosts(m, "hosts", "all"), Sizes: d.sizes(m), Mappers: counts(m, "mappers"), Reducers: counts(m, "reducers"),
		Whole: m.OneOf("size_of", "flow", "flow", "coflow") == "coflow",
		Gap:   m.Time("every", units.Second, 1, maxTime), Start: start, End: m.Time("stop", start+1, 1, maxTime),
	}
	m.Computed("load")
	if m.Has("load") == m.Has("every") {
		m.Fault("", "want either load or every, the mean time between coflows")
	}
	if m.Has("load") {
		rate, factor := d.wire(s.Hosts)
		s.Gap = s.GapOf(m.Float("load", 0.5, 1e-6, 1), rate, factor)
	}
	flows := s.Flows()
	if s.Whole {
		flows = 1
	} else if d.split != "" && flows == 0 {
		m.Fault("by_size.split", "parts sizes of flows, and coflows have other numbers of them: want size_of: coflow, or bounds")
	}
	d.splitBy(&pat, s.Sizes, flows)
	d.between(m, &pat, s.Hosts, s.Hosts)
	d.add(func(rng *rand.Rand, _ *workload.Chain) ([]sim.FlowSpec, error) { return pat.Coflows(rng, s) })
}

// wire returns the line rate of the first host of hosts, and the bytes on the wire per byte of payload.
func (d *flowDecoder) wire(hosts []int) (rate units.Rate, factor float64) {
	payload, header := cmp.Or(d.plan.Config.Payload, 1000), cmp.Or(d.plan.Config.Header, 54)
	for _, l := range d.plan.Graph.Links {
		if len(hosts) > 0 && (l.A == hosts[0] || l.B == hosts[0]) {
			rate = l.Rate
		}
	}
	return rate, float64(payload+header) / float64(payload)
}

// counts reads a number, or a list of numbers that are equally likely.
func counts(m *yamlnode.Map, key string) []int {
	if m.IsList(key) {
		if list := m.Ints(key, 1, 1<<16); len(list) > 0 {
			return list
		}
	}
	return []int{m.Int(key, 1, 1, 1<<16)}
}

// event reads a change: of a setting of the flows of a group that run at that time, or of a link that fails or is
// repaired.
func (d *flowDecoder) event(m *yamlnode.Map) {
	m.Need("at")
	at := m.Time("at", 0, 0, maxTime)
	add := func(do func(*sim.Sim) error) { d.plan.changes = append(d.plan.changes, change{at, do}) }
	switch {
	case m.Has("weight") || m.Has("law") || m.Has("class"):
		m.Need("group")
		group := d.plan.groupNamed(m)
		if m.Has("law") {
			law := d.law(m)
			add(func(s *sim.Sim) error { return s.SetLaw(group, law) })
		}
		if m.Has("weight") {
			w := m.Float("weight", 1, 1e-9, 1e9)
			add(func(s *sim.Sim) error { return s.SetWeight(group, w) })
		}
		if m.Has("class") {
			class := uint8(m.Int("class", 0, 0, sim.NumClasses-1))
			add(func(s *sim.Sim) error { s.SetClass(group, class); return nil })
		}
	default:
		m.Need("a", "b", "link")
		a, b := d.plan.node(m, "a"), d.plan.node(m, "b")
		down := m.OneOf("link", "down", "down", "up") == "down"
		l, ok := d.plan.Graph.LinkBetween(a, b)
		if !ok {
			m.Fault("", "no link joins %s and %s", d.plan.Graph.Names[a], d.plan.Graph.Names[b])
		}
		add(func(s *sim.Sim) error { return s.SetLink(l, down) })
	}
}
