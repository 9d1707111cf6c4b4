package sim

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/hosts/law/registry"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// anyLaw makes a law of the registry by its name.
type anyLaw struct{ *registry.Maker }

func (l anyLaw) Needs() Needs {
	n := l.Maker.Needs()
	return Needs{INT: n.INT, MaxQD: n.MaxQD, Delay: n.Delay}
}

type uniform struct{}

func (uniform) Draw(rng *rand.Rand) units.Time { return units.Time(rng.IntN(300_000)) }

// relay starts a flow in the opposite direction when a tagged flow ends.
type relay struct {
	left int
	err  error
}

func (r *relay) Done(s *Sim, f *FlowSpec) {
	if r.left--; r.left < 0 || r.err != nil {
		return
	}
	back := *f
	back.Src, back.Dst, back.Conn = f.Dst, f.Src, 0
	if back.Stop > 0 {
		back.Stop = s.Now() + 21*units.Microsecond
	}
	if r.left%3 == 0 {
		back.Start = s.Now() + 3*units.Microsecond
		r.err = s.AddFlows([]FlowSpec{back})
		return
	}
	r.err = s.Start(&back)
}

// scene is a run that uses everything that partitions exchange.
type scene struct {
	graph  *topo.Graph
	config Config
	flows  []FlowSpec
	fails  units.Time // a link fails for 20 µs; 0 for none
	ends   bool
}

// seen is the whole result of a run.
type seen struct {
	Now, Paused units.Time
	Stats       Stats
	Results     []Result
	Started     []units.Time
	Ports       []PortStats
	Groups      []units.Bytes
	Queue       Occupancy
	Deadlock    *Deadlock
	Samples     []Flow
}

func (sc *scene) run(t *rapid.T, cores int, parallel bool) (*seen, Work) {
	c := sc.config
	c.Cores = cores
	r := &relay{left: 12}
	c.Driver = r
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if s.windows.enough = math.MaxUint64; parallel {
		s.windows.enough = 0
	}
	if err := s.AddFlows(sc.flows); err != nil {
		t.Fatal(err)
	}
	const end = 150 * units.Microsecond
	port := s.layout.Peer[0] // the port to host 0
	o := s.Observe(port, 0, 0, end)
	var v seen
	for at := 20 * units.Microsecond; at < end; at += 20 * units.Microsecond {
		s.At(at, func(s *Sim) error {
			s.Flows(func(f *Flow) { f.Path = append([]int32(nil), f.Path...); v.Samples = append(v.Samples, *f) })
			return s.Check()
		})
	}
	if sc.fails > 0 {
		last := len(sc.graph.Links) - 1 // between switches, and not the only one
		s.At(sc.fails, func(s *Sim) error { return s.SetLink(last, true) })
		s.At(sc.fails+20*units.Microsecond, func(s *Sim) error { return s.SetLink(last, false) })
	}
	if err := s.WatchDeadlock(10*units.Microsecond, 20*units.Microsecond); err != nil {
		t.Fatal(err)
	}
	run := s.Run
	if sc.ends {
		run = s.RunFlows
	}
	for _, until := range []units.Time{end / 3, end} {
		if err := run(until); err != nil {
			t.Fatal(err)
		}
	}
	if r.err != nil {
		t.Fatal(r.err)
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	o.Until(s.Now())
	v.Now, v.Paused, v.Stats, v.Results, v.Started = s.Now(), s.PauseTime(), s.Stats(), s.Results(), s.started
	v.Queue, v.Deadlock = *o, s.FirstDeadlock()
	for i := range s.Ports() {
		v.Ports = append(v.Ports, s.Port(i))
	}
	for g := range c.Groups {
		v.Groups = append(v.Groups, s.Delivered(g))
	}
	return &v, s.Work()
}

func drawScene(t *rapid.T) *scene {
	line := func(name string) topo.Line {
		return topo.Line{
			Rate:   rapid.SampledFrom([]units.Rate{25 * units.Gbps, 100 * units.Gbps}).Draw(t, name+" rate"),
			Delay:  rapid.SampledFrom([]units.Time{100, 600, 1000}).Draw(t, name+" delay") * units.Nanosecond,
			Jitter: rapid.SampledFrom([]units.Time{0, 0, 80}).Draw(t, name+" jitter") * units.Nanosecond,
			Spread: rapid.SampledFrom([]units.Time{0, 0, 200}).Draw(t, name+" spread") * units.Nanosecond,
		}
	}
	host, up := line("host"), line("up")
	var g *topo.Graph
	var err error
	if rapid.Bool().Draw(t, "fat-tree") {
		g, err = topo.FatTree(4, host, up, up)
	} else {
		g, err = topo.LeafSpine(4, 3, 4, host, up)
	}
	if err != nil {
		t.Fatal(err)
	}
	sc := &scene{graph: g, config: Config{Graph: g, Seed: rapid.Uint64().Draw(t, "seed"), Groups: 2}, ends: rapid.Bool().Draw(t, "to the end")}
	c := &sc.config
	policy := rapid.SampledFrom([]headroom.Kind{"", headroom.SIH, headroom.DT, headroom.DSH, headroom.SPFC, headroom.DSHSPFC}).Draw(t, "policy")
	if policy != "" {
		c.NewBuffer = func(i SwitchInfo) (Buffer, error) {
			h := headroom.Config{Policy: policy, Buffer: 2400 * units.KB, Lossless: 0x03, Private: 3 * units.KB, Headroom: 45 * units.KB, Alpha: -4}
			for p := range i.Rates {
				h.Ports = append(h.Ports, headroom.Port{Rate: i.Rates[p], Delay: i.Delay[p]})
			}
			return headroom.New(h)
		}
	}
	if rapid.Bool().Draw(t, "ecn") {
		c.ECN[0] = &RED{KMin: 5 * units.KB, KMax: 100 * units.KB, PMax: 0.2, Scale: true}
		c.CNPGap = 4 * units.Microsecond
	}
	if rapid.Bool().Draw(t, "pacc") {
		c.PACC = &PACC{Params: paperParams}
	}
	if rapid.Bool().Draw(t, "noise") {
		c.Noise = uniform{}
	}
	if rapid.Bool().Draw(t, "a link fails") {
		sc.fails = rapid.SampledFrom([]units.Time{30, 61}).Draw(t, "when") * units.Microsecond
	}
	precedence := uint8(rapid.IntRange(0, 2).Draw(t, "precedences"))
	for i := range rapid.IntRange(1, 40).Draw(t, "flows") {
		kind := rapid.SampledFrom([]string{"none", "dcqcn", "dcqcn-vendor", "timely", "hpcc", "swift", "soze", "powertcp"}).Draw(t, "law")
		made, err := registry.Find(kind).Maker(nil)
		if err != nil {
			t.Fatal(err)
		}
		f := FlowSpec{
			Src: rapid.IntRange(0, 15).Draw(t, "src"), Dst: rapid.IntRange(0, 15).Draw(t, "dst") / 3,
			Size: units.Bytes(rapid.IntRange(1, 120_000).Draw(t, "size")), Class: uint8(rapid.IntRange(0, 1).Draw(t, "class")),
			Start: units.Time(rapid.IntRange(0, 20).Draw(t, "start")) * 2 * units.Microsecond, Group: i % 2, Law: anyLaw{made},
			Precedence: uint8(i) % (precedence + 1), Tag: rapid.IntRange(0, 1).Draw(t, "tag"),
		}
		if rapid.IntRange(0, 4).Draw(t, "endless") == 0 {
			f.Size, f.Stop = 0, f.Start+50*units.Microsecond
		}
		if f.Src == f.Dst {
			continue
		}
		sc.flows = append(sc.flows, f)
		if f.Size > 0 && rapid.IntRange(0, 3).Draw(t, "connection") == 0 {
			sc.flows[len(sc.flows)-1].Conn = i + 1
			for range 3 {
				f.Start += 3 * units.Microsecond
				f.Conn = i + 1
				sc.flows = append(sc.flows, f)
			}
		}
	}
	return sc
}

// TestCoresAgree compares runs on several cores with the run on one, bit by bit: with every buffer policy, marks,
// CNPs of hosts and switches, telemetry, jitter, noise, precedences, connections, flows that wait for others, and
// links that fail.
func TestCoresAgree(t *testing.T) {
	n, apart, serial := 0, uint64(0), uint64(0)
	rapid.Check(t, func(t *rapid.T) {
		sc := drawScene(t)
		want, _ := sc.run(t, 1, false)
		n++
		for _, cores := range []int{2, 5} {
			got, work := sc.run(t, cores, n%8 == cores) // barriers are slow on a busy machine
			apart, serial = apart+work.Windows-work.Serial, serial+work.Serial
			if !reflect.DeepEqual(got, want) {
				a, b := reflect.ValueOf(*got), reflect.ValueOf(*want)
				for i := range a.NumField() {
					if !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
						t.Errorf("%s on %d cores and on one:\n%+v\n%+v", a.Type().Field(i).Name, cores, a.Field(i), b.Field(i))
					}
				}
				t.FailNow()
			}
		}
	})
	if apart == 0 || serial == 0 {
		t.Errorf("%d windows part by part and %d in order: the test wants both", apart, serial)
	}
}
