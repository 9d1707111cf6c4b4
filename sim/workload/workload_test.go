package workload

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/units"
)

func TestNamedSizes(t *testing.T) {
	// The mean of the web-search distribution, by hand: HPCC and others quote 1.7 MB.
	want := map[string]float64{"websearch": 1_711_250}
	for _, name := range Names() {
		d, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		rng := sim.Stream(1, name)
		sum, n := 0.0, 200_000
		for range n {
			sum += math.Min(float64(d.Draw(rng)), 1e8)
		}
		if name != "datamining" && math.Abs(sum/float64(n)-d.Mean())/d.Mean() > 0.05 {
			t.Errorf("%s: drawn mean %.0f, want %.0f", name, sum/float64(n), d.Mean())
		}
		if w := want[name]; w != 0 && math.Abs(d.Mean()-w) > 1 {
			t.Errorf("%s: mean %.2f, want %.2f", name, d.Mean(), w)
		}
	}
	if _, err := Named("nonsense"); err == nil || !strings.Contains(err.Error(), "websearch") {
		t.Errorf("error %v, want one that lists the names", err)
	}
}

func TestReadSizesRefuses(t *testing.T) {
	for _, bad := range []string{"", "0 0", "0 0\n5 50", "0 0\n5 50\n4 100", "0 10\n4 100", "0 0\n5 60\n6 50\n7 100", "a b\n", "0 0 0\n", "-1 0\n5 100", "NaN 0\n5 100"} {
		if _, err := ReadSizes(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func FuzzReadSizes(f *testing.F) {
	f.Add("0 0\n100 50\n1000 100\n")
	f.Add("# comment\n1 0\n1 100")
	rng := sim.Stream(1, "fuzz")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ReadSizes(strings.NewReader(text))
		if err != nil {
			return
		}
		if v := d.Draw(rng); v < 1 || float64(v) > d.size[len(d.size)-1]+1 {
			t.Fatalf("drew %d of %q", v, text)
		}
	})
}

func TestPermutationHasNoFixedPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 40).Draw(t, "hosts")
		hosts := make([]int, n)
		for i := range hosts {
			hosts[i] = i
		}
		p := &Pattern{FlowSpec: sim.FlowSpec{Law: lineRate{}}}
		flows, err := p.Permutation(sim.Stream(rapid.Uint64().Draw(t, "seed"), "x"), hosts, 1000, 0)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[int]bool{}
		for i, f := range flows {
			if f.Src != i || f.Dst == i || seen[f.Dst] {
				t.Fatalf("flows %+v", flows)
			}
			seen[f.Dst] = true
		}
	})
}

func TestPoissonOffersItsLoad(t *testing.T) {
	hosts := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}
	for _, fanIn := range []int{1, 16} {
		p := &Pattern{FlowSpec: sim.FlowSpec{Law: lineRate{}}, Pick: []uint8{1, 2, 3}}
		a := Arrivals{From: hosts, To: hosts, Sizes: Constant(64 * units.KB), Load: 0.5, Rate: 100 * units.Gbps, Factor: 1.054, End: 20 * units.Millisecond, FanIn: fanIn}
		flows, err := p.Poisson(sim.Stream(3, "x"), a)
		if err != nil {
			t.Fatal(err)
		}
		var sum units.Bytes
		for i, f := range flows {
			sum += f.Size
			if f.Src == f.Dst || f.Class < 1 || f.Class > 3 || i > 0 && f.Start < flows[i-1].Start {
				t.Fatalf("flow %d: %+v", i, f)
			}
		}
		load := float64(sum) * 1.054 / float64((100 * units.Gbps).BytesIn(a.End)) / 20
		if math.Abs(load-0.5) > 0.03 {
			t.Errorf("fan-in %d: load %.3f, want 0.5", fanIn, load)
		}
		if fanIn > 1 && (len(flows)%16 != 0 || flows[0].Start != flows[15].Start || flows[0].Dst != flows[15].Dst || flows[0].Src == flows[1].Src) {
			t.Errorf("no fan-in: %+v", flows[:16])
		}
	}
	bad := Arrivals{From: hosts, To: hosts, Sizes: Constant(1), Load: 1.5, Rate: 1, Factor: 1, End: 1}
	if _, err := (&Pattern{}).Poisson(sim.Stream(1, "x"), bad); err == nil {
		t.Error("a load above capacity was taken")
	}
}

// TestSplit: for sizes uniform up to 100 KB, half of the flows are below 50 KB, and half of the bytes are in
// flows below 100 KB/√2. TestBetween: the parts of a distribution together have its mean, and each draws only its
// own sizes.
func TestBetween(t *testing.T) {
	bounds := []units.Bytes{0, 25_000, 30_000, 3_750_000, 1 << 40}
	rng := sim.Stream(1, "between")
	for _, name := range Names() {
		whole, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		mean := 0.0
		for i, low := range bounds[:len(bounds)-1] {
			part := whole.Between(low, bounds[i+1])
			if part == nil {
				continue
			}
			mean += part.Mean() * (whole.upTo(float64(bounds[i+1])) - whole.upTo(float64(low)))
			for range 1000 {
				if size := part.Draw(rng); size < max(low, 1) || size > bounds[i+1] {
					t.Fatalf("%s: %v, want %v to %v", name, size, low, bounds[i+1])
				}
			}
		}
		if math.Abs(mean/whole.Mean()-1) > 1e-9 {
			t.Errorf("%s: mean %g of the parts, %g of the whole", name, mean, whole.Mean())
		}
	}
	for _, none := range [][2]units.Bytes{{5, 5}, {1001, 2000}, {1, 999}} {
		if Constant(1000).Between(none[0], none[1]) != nil {
			t.Errorf("%v has some", none)
		}
	}
}

func TestSplit(t *testing.T) {
	even, err := ReadSizes(strings.NewReader("0 0\n50000 50\n100000 100"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		sizes *Sizes
		n     int
		bytes bool
		want  []units.Bytes
	}{
		{even, 2, false, []units.Bytes{50_000}}, {even, 2, true, []units.Bytes{70_711}},
		{even, 4, false, []units.Bytes{25_000, 50_000, 75_000}}, {even, 4, true, []units.Bytes{50_000, 70_711, 86_603}},
		{even, 1, true, []units.Bytes{}}, {Constant(1000), 2, true, []units.Bytes{1000}},
	} {
		if d := cmp.Diff(c.want, c.sizes.Split(c.n, c.bytes)); d != "" {
			t.Error(d)
		}
	}
}

// TestWeigh: a stage's weight is the remaining work of the job on the longest path.
func TestWeigh(t *testing.T) {
	stages := []Stage{{Name: "a", Bytes: 4}, {Name: "b", Bytes: 1}, {Name: "c", Bytes: 6, After: []int{0}}, {Name: "d", Bytes: 2, After: []int{1, 2}}}
	for _, c := range []struct {
		bytes bool
		want  []float64
	}{{false, []float64{3, 2, 2, 1}}, {true, []float64{6, 1.5, 4, 1}}} {
		if err := Weigh(stages, c.bytes); err != nil {
			t.Fatal(err)
		}
		for i, w := range c.want {
			if stages[i].Weight != w {
				t.Errorf("bytes %v: stage %s weighs %v, want %v", c.bytes, stages[i].Name, stages[i].Weight, w)
			}
		}
	}
	// Of two paths the longer one counts, in any order.
	fork := []Stage{{Name: "a"}, {Name: "b", After: []int{0}}, {Name: "c", After: []int{0}}, {Name: "d", After: []int{2}}}
	if err := Weigh(fork, false); err != nil || fork[0].Weight != 3 {
		t.Errorf("error %v, weight %v, want 3", err, fork[0].Weight)
	}
	if err := Weigh([]Stage{{After: []int{0}}}, false); err == nil {
		t.Error("a stage that waits for itself was taken")
	}
}

// TestFanIns: fan-in sizes lie between two bounds, the requested number arrives at once, flows beyond the number
// of senders reuse senders, and the load stays the same.
func TestFanIns(t *testing.T) {
	hosts := []int{0, 1, 2, 3, 4, 5, 6, 7}
	p := &Pattern{FlowSpec: sim.FlowSpec{Law: lineRate{}}}
	a := Arrivals{
		From: hosts, To: hosts, Sizes: Constant(10 * units.KB), Load: 0.5, Rate: 100 * units.Gbps, Factor: 1,
		End: 20 * units.Millisecond, FanIn: 1, FanInMax: 15, AtOnce: 2,
	}
	flows, err := p.Poisson(sim.Stream(4, "x"), a)
	if err != nil {
		t.Fatal(err)
	}
	jobs := map[int][]sim.FlowSpec{}
	for _, f := range flows {
		jobs[f.Job] = append(jobs[f.Job], f)
	}
	sizes := map[int]int{}
	for id := 1; id <= len(jobs); id++ {
		job := jobs[id]
		sizes[len(job)]++
		if id%2 == 0 && job[0].Start != jobs[id-1][0].Start {
			t.Fatalf("fan-ins %d and %d start at %v and %v", id-1, id, jobs[id-1][0].Start, job[0].Start)
		}
		per := map[int]int{}
		for _, f := range job {
			per[f.Src]++
			if f.Dst != job[0].Dst || f.Src == f.Dst {
				t.Fatalf("fan-in %d: %+v", id, job)
			}
		}
		for src, n := range per {
			if n > (len(job)+6)/7 {
				t.Fatalf("host %d sends %d of %d flows to %d", src, n, len(job), job[0].Dst)
			}
		}
	}
	if len(sizes) != 15 || sizes[0] != 0 || sizes[16] != 0 {
		t.Errorf("fan-ins by size %v, want 1 to 15", sizes)
	}
	if load := float64(len(flows)) * 10e3 / float64((100 * units.Gbps).BytesIn(a.End)) / 8; math.Abs(load-0.5) > 0.03 {
		t.Errorf("load %.3f, want 0.5", load)
	}
}
