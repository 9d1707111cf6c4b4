package maxmin_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/internal/maxmin"
)

const tolerance = 1e-9

func TestSolve(t *testing.T) {
	type flows = []maxmin.Flow
	tests := []struct {
		name     string
		capacity []float64
		flows    flows
		want     []float64
	}{
		{"no flows", []float64{1}, nil, []float64{}},
		{"one flow", []float64{100}, flows{{Weight: 3, Path: []int{0}}}, []float64{100}},
		{"by weight", []float64{70}, flows{{Weight: 1, Path: []int{0}}, {Weight: 2, Path: []int{0}}, {Weight: 4, Path: []int{0}}}, []float64{10, 20, 40}},
		{"fractions", []float64{100}, flows{{Weight: 0.005, Path: []int{0}}, {Weight: 0.015, Path: []int{0}}}, []float64{25, 75}},
		{"a limit is given to the others", []float64{90}, flows{{Weight: 1, Path: []int{0}, Limit: 10}, {Weight: 1, Path: []int{0}}, {Weight: 1, Path: []int{0}}}, []float64{10, 40, 40}},
		{"a link that is down", []float64{0, 10}, flows{{Weight: 1, Path: []int{0, 1}}, {Weight: 1, Path: []int{1}}}, []float64{0, 10}},
		{"parking lot", []float64{10, 10}, flows{{Weight: 1, Path: []int{0, 1}}, {Weight: 1, Path: []int{0}}, {Weight: 2, Path: []int{1}}}, []float64{10. / 3, 20. / 3, 20. / 3}},
		// Söze Fig. 17: flow 1 on S1, 2 to 4 on both, two more on S2.
		{"Söze Fig. 17, weight 1", []float64{100, 100}, fig17(1), []float64{40, 20, 20, 20, 20, 20}},
		{"Söze Fig. 17, weight 2", []float64{100, 100}, fig17(2), []float64{40, 20, 20, 20, 20, 20}},
		{"Söze Fig. 17, weight 5", []float64{100, 100}, fig17(5), []float64{62.5, 12.5, 12.5, 12.5, 31.25, 31.25}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := maxmin.Solve(tt.capacity, tt.flows)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(got.Rate, tt.want, func(a, b float64) bool { return math.Abs(a-b) <= tolerance*100 }) {
				t.Errorf("rates %v, want %v", got.Rate, tt.want)
			}
		})
	}
}

func fig17(w float64) []maxmin.Flow {
	both, s2 := []int{0, 1}, []int{1}
	return []maxmin.Flow{
		{Weight: w, Path: []int{0}},
		{Weight: 1, Path: both}, {Weight: 1, Path: both}, {Weight: 1, Path: both},
		{Weight: 1, Path: s2}, {Weight: 1, Path: s2},
	}
}

func TestRefusals(t *testing.T) {
	link := []float64{1}
	for _, tt := range []struct {
		capacity []float64
		flow     maxmin.Flow
		want     string
	}{
		{[]float64{-1}, maxmin.Flow{Weight: 1, Path: []int{0}}, "capacity -1"},
		{[]float64{math.NaN()}, maxmin.Flow{Weight: 1, Path: []int{0}}, "capacity NaN"},
		{link, maxmin.Flow{Path: []int{0}}, "weight 0"},
		{link, maxmin.Flow{Weight: math.Inf(1), Path: []int{0}}, "weight +Inf"},
		{link, maxmin.Flow{Weight: 1}, "nothing bounds"},
		{link, maxmin.Flow{Weight: 1, Path: []int{1}}, "link 1: want 0 to 0"},
		{link, maxmin.Flow{Weight: 1, Path: []int{0, 0}}, "twice"},
		{link, maxmin.Flow{Weight: 1, Path: []int{0}, Limit: math.NaN()}, "limit NaN"},
	} {
		_, err := maxmin.Solve(tt.capacity, []maxmin.Flow{tt.flow})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v over %v: error %v, want one with %q", tt.flow, tt.capacity, err, tt.want)
		}
	}
}

func instance(t *rapid.T, links, flows int) ([]float64, []maxmin.Flow) {
	capacity := rapid.SliceOfN(rapid.Float64Range(0.1, 100), 1, links).Draw(t, "capacity")
	f := make([]maxmin.Flow, rapid.IntRange(1, flows).Draw(t, "flows"))
	for i := range f {
		all := make([]int, len(capacity))
		for l := range all {
			all[l] = l
		}
		path := rapid.Permutation(all).Draw(t, "path")
		f[i] = maxmin.Flow{
			Weight: rapid.Float64Range(0.01, 10).Draw(t, "weight"),
			Path:   path[:rapid.IntRange(1, len(path)).Draw(t, "hops")],
		}
		if rapid.Bool().Draw(t, "limited") {
			f[i].Limit = rapid.Float64Range(0.01, 100).Draw(t, "limit")
		}
	}
	return capacity, f
}

// An allocation is weighted max-min fair exactly when it is feasible and each flow is at
// its limit or has a saturated link on which no flow has a larger rate per weight (Söze,
// Appendix E.2).
func TestEachFlowHasABottleneck(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity, flows := instance(t, 8, 20)
		got, err := maxmin.Solve(capacity, flows)
		if err != nil {
			t.Fatal(err)
		}
		used := make([]float64, len(capacity))
		top := make([]float64, len(capacity)) // largest rate per weight on each link
		for i, f := range flows {
			for _, l := range f.Path {
				used[l] += got.Rate[i]
				top[l] = max(top[l], got.Rate[i]/f.Weight)
			}
		}
		for l := range capacity {
			if used[l] > capacity[l]*(1+tolerance) {
				t.Fatalf("link %d carries %v of %v", l, used[l], capacity[l])
			}
		}
		for i, f := range flows {
			b := got.Bottleneck[i]
			if b == maxmin.None {
				if got.Rate[i] != f.Limit {
					t.Fatalf("flow %d has %v and is said to be at its limit, %v", i, got.Rate[i], f.Limit)
				}
				continue
			}
			if !slices.Contains(f.Path, b) || used[b] < capacity[b]*(1-tolerance) || got.Rate[i]/f.Weight < top[b]*(1-tolerance) {
				t.Fatalf("flow %d: link %d with %v of %v used is not its bottleneck", i, b, used[b], capacity[b])
			}
			if f.Limit > 0 && got.Rate[i] > f.Limit*(1+tolerance) {
				t.Fatalf("flow %d has %v, above its limit %v", i, got.Rate[i], f.Limit)
			}
		}
	})
}

// fill raises every flow in small steps by weight until a link or limit stops it: slow, but as simple as the
// definition.
func fill(capacity []float64, flows []maxmin.Flow, steps int) []float64 {
	rate := make([]float64, len(flows))
	stopped := make([]bool, len(flows))
	left := slices.Clone(capacity)
	delta := 0.0
	for _, f := range flows {
		delta = max(delta, slices.Max(capacity)/f.Weight)
	}
	delta /= float64(steps)
	for range steps {
		for i, f := range flows {
			if stopped[i] {
				continue
			}
			step := delta * f.Weight
			for _, l := range f.Path {
				stopped[i] = stopped[i] || left[l] < step
			}
			stopped[i] = stopped[i] || (f.Limit > 0 && rate[i]+step > f.Limit)
			if stopped[i] {
				continue
			}
			rate[i] += step
			for _, l := range f.Path {
				left[l] -= step
			}
		}
	}
	return rate
}

func TestAgainstFillingStepByStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity, flows := instance(t, 3, 4)
		for i := range flows { // equal magnitudes, so that the step is small for all
			flows[i].Weight = 0.5 + math.Mod(flows[i].Weight, 1.5)
		}
		got, err := maxmin.Solve(capacity, flows)
		if err != nil {
			t.Fatal(err)
		}
		const steps = 20000
		want := fill(capacity, flows, steps)
		// Each flow may stop one step early on each link, and other flows get the rest.
		slack := slices.Max(capacity) / steps * 4 * 40
		for i := range want {
			if math.Abs(got.Rate[i]-want[i]) > slack {
				t.Fatalf("flow %d: %v, filling step by step gives %v", i, got.Rate[i], want[i])
			}
		}
	})
}

func BenchmarkSolve(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run("flows="+strconv.Itoa(n), func(b *testing.B) {
			capacity := make([]float64, 64)
			for l := range capacity {
				capacity[l] = 100
			}
			flows := make([]maxmin.Flow, n)
			for i := range flows {
				flows[i] = maxmin.Flow{Weight: 1 + float64(i%7), Path: []int{i * 31 % 32, 32 + i*17%32}}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := maxmin.Solve(capacity, flows); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
