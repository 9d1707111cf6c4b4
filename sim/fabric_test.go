package sim

import (
	"math"
	"math/bits"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/none"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

var line100 = topo.Line{Rate: 100 * units.Gbps, Delay: units.Microsecond}

func static(xoff, xon, limit units.Bytes) func(SwitchInfo) (Buffer, error) {
	return func(i SwitchInfo) (Buffer, error) { return NewStatic(len(i.Rates), 0x7F, xoff, xon, limit) }
}

func runAll(tb testing.TB, s *Sim, until units.Time) {
	tb.Helper()
	if err := s.RunFlows(until); err != nil {
		tb.Fatal(err)
	}
	if err := s.Check(); err != nil {
		tb.Fatal(err)
	}
}

// TestHeadroomToTheByte: a paused sender at line rate fills at most the headroom of DSH's Equation 1 above the threshold.
// With a limit of exactly the bytes that it filled nothing is dropped, and with one byte less a packet is. The sender's
// own egress adds nothing, because it is the wire.
func TestHeadroomToTheByte(t *testing.T) {
	const xoff = 100 * units.KB
	peak := func(limit units.Bytes) (drops uint64, most units.Bytes) {
		g := must[*topo.Graph](t)(topo.Star(3, line100))
		var b *recorder
		s := must[*Sim](t)(New(Config{Graph: g, NewBuffer: func(i SwitchInfo) (Buffer, error) {
			st, err := NewStatic(len(i.Rates), 0x7F, xoff, xoff-1, limit)
			b = &recorder{Static: st}
			return b, err
		}}))
		// Two senders fill one receiver's port at twice its rate, until both are paused.
		flows := []FlowSpec{
			{Src: 0, Dst: 2, Size: 2 * units.MB, Law: lineRate{}},
			{Src: 1, Dst: 2, Size: 2 * units.MB, Law: lineRate{}},
		}
		if err := s.AddFlows(flows); err != nil {
			t.Fatal(err)
		}
		runAll(t, s, units.Second)
		return s.Stats().Dropped, b.most
	}
	// 2(C·D + L_MTU) + 3840 B: the round trip of propagation, a packet for which the PAUSE waits, a packet that
	// the sender has begun, and the reaction time; plus the PAUSE itself.
	bound := xoff + 2*(12500+1054) + 3840 + 64
	drops, most := peak(units.MB)
	if drops != 0 || most > bound {
		t.Errorf("the queue reached %v, want at most %v; %d drops", most, bound, drops)
	}
	// The queue drains at half its rate meanwhile, so the occupancy stays below the bound; a headroom of the
	// reached occupancy must suffice.
	if drops, _ := peak(most); drops != 0 {
		t.Errorf("a limit of the %v that were used drops %d packets", most, drops)
	}
	if drops, _ := peak(most - 1); drops == 0 {
		t.Errorf("a byte less than the %v that were used drops nothing", most)
	}
}

// recorder keeps the largest occupancy of an ingress queue.
type recorder struct {
	*Static
	most units.Bytes
}

func (r *recorder) Arrive(now units.Time, port int, class uint8, n units.Bytes) (bool, []Signal) {
	ok, signals := r.Static.Arrive(now, port, class, n)
	r.most = max(r.most, r.used[port][class])
	return ok, signals
}

func TestIncastIsLossless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, err := topo.LeafSpine(3, 2, 4, line100, line100)
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(Config{Graph: g, Seed: rapid.Uint64().Draw(t, "seed"), NewBuffer: static(40*units.KB, 38*units.KB, 100*units.KB)})
		if err != nil {
			t.Fatal(err)
		}
		var flows []FlowSpec
		for range rapid.IntRange(1, 30).Draw(t, "flows") {
			f := FlowSpec{
				Src: rapid.IntRange(0, 11).Draw(t, "src"), Dst: rapid.IntRange(0, 2).Draw(t, "dst"),
				Size:  units.Bytes(rapid.IntRange(1, 200_000).Draw(t, "size")),
				Start: units.Time(rapid.IntRange(0, 20_000_000).Draw(t, "start")), Class: uint8(rapid.IntRange(0, 6).Draw(t, "class")), Law: lineRate{},
			}
			if f.Src != f.Dst {
				flows = append(flows, f)
			}
		}
		if err := s.AddFlows(flows); err != nil {
			t.Fatal(err)
		}
		if err := s.RunFlows(units.Second); err != nil {
			t.Fatal(err)
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		st := s.Stats()
		if st.Dropped != 0 || st.FlowsDone != uint64(len(flows)) || st.DataSent != st.DataDelivered {
			t.Fatalf("%d flows: %+v", len(flows), st)
		}
		var want, got units.Bytes
		for _, f := range flows {
			want += f.Size
		}
		if got = s.Delivered(0); got != want {
			t.Fatalf("delivered %v, want %v", got, want)
		}
		// Nothing remains after the last PFC frames and acknowledgements have arrived.
		if err := s.Run(units.Second); err != nil {
			t.Fatal(err)
		}
		if s.partitions[0].live != 0 || s.pausedClasses() != 0 {
			t.Fatalf("%d packets and %d pauses are left", s.partitions[0].live, s.pausedClasses())
		}
	})
}

// TestLossRecovers: buffers drop packets, and go-back-N repairs the loss.
func TestLossRecovers(t *testing.T) {
	g := must[*topo.Graph](t)(topo.Star(5, line100))
	s := must[*Sim](t)(New(Config{Graph: g, NewBuffer: func(i SwitchInfo) (Buffer, error) {
		return NewStatic(len(i.Rates), 0, 30*units.KB, 29*units.KB, 30*units.KB)
	}}))
	var flows []FlowSpec
	for i := range 4 {
		flows = append(flows, FlowSpec{Src: i, Dst: 4, Size: 300 * units.KB, Law: window(20 * units.KB)})
	}
	flows[0].Law = lineRate{}
	if err := s.AddFlows(flows); err != nil {
		t.Fatal(err)
	}
	runAll(t, s, units.Second)
	if st := s.Stats(); st.Dropped == 0 || st.FlowsDone != 4 || s.Delivered(0) != 1200*units.KB {
		t.Errorf("%+v, delivered %v", st, s.Delivered(0))
	}
}

type window units.Bytes

func (w window) NewLaw(f FlowInfo) (law.Law, error) { return none.New(f.Rate, units.Bytes(w)) }

func TestTwoRunsAgree(t *testing.T) {
	run := func(seed uint64) ([]Result, Stats) {
		g := must[*topo.Graph](t)(topo.FatTree(4, line100, line100, line100))
		c := Config{Graph: g, Seed: seed, NewBuffer: static(60*units.KB, 58*units.KB, 200*units.KB), CNPGap: 50 * units.Microsecond}
		c.ECN[0] = &RED{KMin: 10 * units.KB, KMax: 40 * units.KB, PMax: 0.2}
		s := must[*Sim](t)(New(c))
		rng := Stream(seed, "flows")
		var flows []FlowSpec
		for range 200 {
			src := rng.IntN(16)
			flows = append(flows, FlowSpec{Src: src, Dst: (src + 1 + rng.IntN(15)) % 16, Size: units.Bytes(1 + rng.IntN(100_000)), Start: units.Time(rng.IntN(1e8)), Law: lineRate{}})
		}
		if err := s.AddFlows(flows); err != nil {
			t.Fatal(err)
		}
		runAll(t, s, units.Second)
		for i := range s.results {
			s.results[i].Spec = nil
		}
		return s.Results(), s.Stats()
	}
	r1, s1 := run(5)
	r2, s2 := run(5)
	if !reflect.DeepEqual(r1, r2) || s1 != s2 {
		t.Error("two runs of one seed differ")
	}
	if s1.Marks == 0 || s1.CNPs == 0 || s1.PausesSent == 0 {
		t.Errorf("the run shows too little: %+v", s1)
	}
	if r3, _ := run(6); reflect.DeepEqual(r1, r3) {
		t.Error("runs of two seeds agree")
	}
}

// TestShares compares strict priority and DWRR with their shares.
func TestShares(t *testing.T) {
	shareSlices := func(strict uint8, quantum [NumClasses]units.Bytes) (shares [3]float64) {
		g := must[*topo.Graph](t)(topo.Star(4, line100))
		s := must[*Sim](t)(New(Config{Graph: g, Strict: &strict, Quantum: quantum, Groups: 3}))
		for i := range 3 {
			f := FlowSpec{Src: i, Dst: 3, Stop: units.Millisecond, Class: uint8(i), Group: i, Law: lineRate{}}
			if err := s.AddFlows([]FlowSpec{f}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Run(units.Millisecond); err != nil {
			t.Fatal(err)
		}
		for i := range shares {
			shares[i] = float64(s.Delivered(i)) / float64((100 * units.Gbps).BytesIn(units.Millisecond)) * 1.054
		}
		return shares
	}
	near := func(got, want float64) bool { return math.Abs(got-want) < 0.02 }
	if s := shareSlices(0xFF, [NumClasses]units.Bytes{}); !near(s[2], 1) || !near(s[0]+s[1], 0) {
		t.Errorf("strict priority gives shares %v, want all to class 2", s)
	}
	if s := shareSlices(0x80, [NumClasses]units.Bytes{1600, 3200, 4800}); !near(s[0], 1./6) || !near(s[1], 2./6) || !near(s[2], 3./6) {
		t.Errorf("DWRR 1:2:3 gives shares %v", s)
	}
}

// TestLinkFailure fails and repairs a spine's link under two flows. They move to the other spine, go-back-N
// repairs the loss, and pauses on the failed link do not stay.
func TestLinkFailure(t *testing.T) {
	g := must[*topo.Graph](t)(topo.LeafSpine(2, 2, 2, line100, line100))
	s := must[*Sim](t)(New(Config{Graph: g, NewBuffer: static(60*units.KB, 58*units.KB, 200*units.KB)}))
	flows := []FlowSpec{
		{Src: 0, Dst: 2, Size: 2 * units.MB, Law: lineRate{}},
		{Src: 1, Dst: 2, Size: 2 * units.MB, Law: lineRate{}},
	}
	if err := s.AddFlows(flows); err != nil {
		t.Fatal(err)
	}
	for i, l := range g.Links {
		if !g.IsHost(l.A) && g.Names[l.B] == "spine0" {
			s.At(50*units.Microsecond, func(s *Sim) error { return s.SetLink(i, true) })
			s.At(3*units.Millisecond, func(s *Sim) error { return s.SetLink(i, false) })
		}
	}
	runAll(t, s, units.Second)
	if st := s.Stats(); st.FlowsDone != 2 || st.Dropped != 0 {
		t.Errorf("%+v", st)
	}
	// A host whose link is down has no path.
	bad := must[*Sim](t)(New(Config{Graph: g}))
	if err := bad.AddFlows(flows); err != nil {
		t.Fatal(err)
	}
	bad.At(units.Microsecond, func(s *Sim) error { return s.SetLink(2, true) })
	if err := bad.RunFlows(units.Second); err == nil {
		t.Error("a flow to a host that was cut off goes on")
	}
}

// TestDeadlock closes the cycle of DSH's Figure 16 and SPFC's Figure 17: four switches in a ring, each with flows
// over two hops.
func TestDeadlock(t *testing.T) {
	g := &topo.Graph{Hosts: 4, Switches: 4, Names: []string{"h0", "h1", "h2", "h3", "s0", "s1", "s2", "s3"}}
	for i := range 4 {
		g.Links = append(g.Links, topo.Link{A: i, B: 4 + i, Rate: 100 * units.Gbps, Delay: units.Microsecond})
	}
	// A ring in one direction only. A detour would have the same length, so a longer return path prevents ECMP
	// from using it.
	for i := range 4 {
		g.Links = append(g.Links, topo.Link{A: 4 + i, B: 4 + (i+1)%4, Rate: 100 * units.Gbps, Delay: units.Microsecond})
	}
	found := 0
	for seed := range uint64(10) {
		s := must[*Sim](t)(New(Config{Graph: g, Seed: seed, NewBuffer: static(50*units.KB, 48*units.KB, 200*units.KB)}))
		var flows []FlowSpec
		for i := range 4 {
			for range 2 {
				flows = append(flows, FlowSpec{Src: i, Dst: (i + 2) % 4, Size: 2 * units.MB, Law: lineRate{}})
			}
		}
		if err := s.AddFlows(flows); err != nil {
			t.Fatal(err)
		}
		if err := s.WatchDeadlock(50*units.Microsecond, 400*units.Microsecond); err != nil {
			t.Fatal(err)
		}
		runAll(t, s, 8*units.Millisecond)
		d := s.FirstDeadlock()
		if stuck := s.Stats().FlowsDone < 8; stuck != (d != nil) {
			t.Errorf("seed %d: %d flows ended, deadlock %+v", seed, s.Stats().FlowsDone, d)
		}
		if d != nil {
			found++
			if len(d.Ports) != 4 {
				t.Errorf("seed %d: a cycle of %d ports, want the ring's 4", seed, len(d.Ports))
			}
		}
	}
	if found == 0 || found == 10 {
		t.Errorf("%d of 10 seeds ended in deadlock; the test wants both outcomes", found)
	}
}

func TestBadConfig(t *testing.T) {
	g := must[*topo.Graph](t)(topo.Star(2, line100))
	seven, nine := uint8(7), uint8(9)
	for name, c := range map[string]Config{
		"no topology":   {},
		"payload":       {Graph: g, Payload: 20_000},
		"class of ACKs": {Graph: g, AckClass: &nine},
		"ecn":           {Graph: g, AckClass: &seven, ECN: [NumClasses]*RED{{KMin: 5, KMax: 4}}},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	s := must[*Sim](t)(New(Config{Graph: g}))
	for _, f := range []FlowSpec{{Src: 0, Dst: 0, Law: lineRate{}}, {Src: 0, Dst: 5, Law: lineRate{}}, {Src: 0, Dst: 1}, {Src: 0, Dst: 1, Class: 8, Law: lineRate{}}} {
		if err := s.AddFlows([]FlowSpec{f}); err == nil {
			t.Errorf("flow %+v was taken", f)
		}
	}
}

// pausedClasses returns the number of paused classes over all ports.
func (s *Sim) pausedClasses() (n int) {
	for i := range s.ports {
		n += bits.OnesCount8(s.ports[i].paused)
	}
	return n
}
