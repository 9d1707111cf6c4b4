package red

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/headgate/headgate/units"
)

// cells are the depths of a key of 16 bits.
var cells = DepthOf(16)

func TestEntries(t *testing.T) {
	for name, tc := range map[string]struct {
		config Config
		steps  int
		want   []Entry
	}{
		"two steps": {
			Config{Kmin: 640, Kmax: 1280, Pmax: 0.5}, 2,
			[]Entry{{10, 14, 8192}, {15, 19, 24576}, {20, 65535, Certain}},
		},
		"one cell a step at most": {
			Config{Kmin: 64, Kmax: 192, Pmax: 1}, 63,
			[]Entry{{1, 1, 16384}, {2, 2, 49152}, {3, 65535, Certain}},
		},
		"a threshold": {
			Config{Kmin: 6400, Kmax: 6400, Pmax: 0.1}, 16,
			[]Entry{{100, 65535, Certain}},
		},
		"always": {
			Config{}, 1,
			[]Entry{{0, 65535, Certain}},
		},
		"no ramp": {
			Config{Kmin: 0, Kmax: 6400, Pmax: 0}, 16,
			[]Entry{{100, 65535, Certain}},
		},
		"thresholds are rounded to cells": {
			Config{Kmin: 95, Kmax: 97, Pmax: 1}, 1,
			[]Entry{{1, 1, 32768}, {2, 65535, Certain}},
		},
		"the deepest": {
			Config{Kmin: cells.Most(), Kmax: cells.Most(), Pmax: 1}, 1,
			[]Entry{{65535, 65535, Certain}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Entries(tc.config, tc.steps, cells)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	for _, tc := range []struct {
		config Config
		steps  int
		want   string
	}{
		{Config{Kmin: -1, Kmax: 10, Pmax: 0.1}, 1, "kmin is -1 B: allowed is 0 to kmax, 10 B"},
		{Config{Kmin: 11, Kmax: 10, Pmax: 0.1}, 1, "kmin is 11 B: allowed is 0 to kmax, 10 B"},
		{Config{Kmax: -5, Pmax: 0.1}, 1, "kmax is -5 B: allowed is 0 to 4194240 B"},
		{Config{Kmax: 5 * units.MB, Pmax: 0.1}, 1, "kmax is 5000000 B: allowed is 0 to 4194240 B"},
		{Config{Kmax: 10, Pmax: 1.5}, 1, "pmax is 1.5: allowed is 0 to 1"},
		{Config{Kmax: 10, Pmax: -0.1}, 1, "pmax is -0.1: allowed is 0 to 1"},
		{Config{Kmax: 10, Pmax: math.NaN()}, 1, "pmax is NaN: allowed is 0 to 1"},
		{Config{Kmax: 10, Pmax: 1}, 0, "steps is 0: allowed is 1 to 63"},
		{Config{Kmax: 10, Pmax: 1}, 64, "steps is 64: allowed is 1 to 63"},
	} {
		_, err := Entries(tc.config, tc.steps, cells)
		var field *units.FieldError
		if !errors.As(err, &field) || err.Error() != tc.want {
			t.Errorf("%+v, %d steps: error %v, want %s", tc.config, tc.steps, err, tc.want)
		}
	}
}

// TestErrorBound walks depths of random curves and compares the table with the curve.
func TestErrorBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{Pmax: rapid.Float64Range(0, 1).Draw(t, "pmax")}
		d := rapid.SampledFrom([]Depth{cells, DepthOf(20), DepthOf(32)}).Draw(t, "depths")
		c.Kmax = units.Bytes(rapid.Int64Range(0, int64(d.Most())).Draw(t, "kmax"))
		c.Kmin = units.Bytes(rapid.Int64Range(0, int64(c.Kmax)).Draw(t, "kmin"))
		steps := rapid.IntRange(1, MaxSteps).Draw(t, "steps")
		entries, err := Entries(c, steps, d)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) > steps+1 {
			t.Fatalf("%d entries, want at most %d", len(entries), steps+1)
		}
		bound := c.maxError(steps, d)
		last := int64(-1)
		for _, e := range entries {
			if int64(e.Low) <= last || e.High < e.Low || e.P == 0 || e.P > Certain {
				t.Fatalf("entry %+v after depth %d", e, last)
			}
			last = int64(e.High)
		}
		if last != int64(d.Max) {
			t.Fatalf("entries end at %d", last)
		}
		check := func(depth units.Bytes) {
			got, want := lookup(entries, depth, d), c.probability(depth, d)
			if math.Abs(got-want) > bound+1e-12 {
				t.Fatalf("depth %d: probability %g, curve %g, bound %g", depth, got, want, bound)
			}
		}
		for _, e := range entries { // the error is largest at a step's ends
			low, high := d.Unit*units.Bytes(e.Low), d.Unit*units.Bytes(e.High)+d.Unit-1
			for _, depth := range []units.Bytes{low - 1, low, (low + high) / 2, high, high + 1} {
				check(max(0, depth))
			}
		}
		for range 200 {
			check(units.Bytes(rapid.Int64Range(0, int64(d.Most()+d.Unit)).Draw(t, "depth")))
		}
	})
}

// lookup does what the pipeline does: depth to units, saturating, to the entry's range.
func lookup(entries []Entry, depth units.Bytes, d Depth) float64 {
	at := uint32(min(depth/d.Unit, units.Bytes(d.Max)))
	for _, e := range entries {
		if e.Low <= at && at <= e.High {
			return float64(e.P) / Certain
		}
	}
	return 0
}

// The default number of steps keeps the error of DCQCN's curve at 40 Gb/s (Kmin 5 KB, Kmax
// 200 KB, Pmax 1 %) below a thirtieth of Pmax.
func TestDefaultSteps(t *testing.T) {
	c := Config{Kmin: 5 * units.KB, Kmax: 200 * units.KB, Pmax: 0.01}
	if e := c.maxError(DefaultSteps, cells); e > c.Pmax/31 {
		t.Errorf("the default's error is %g", e)
	}
}

// probability returns the curve at a queue depth, with the thresholds rounded to units.
func (c Config) probability(depth units.Bytes, d Depth) float64 {
	lo, hi := c.in(d)
	kmin, kmax := d.Unit*units.Bytes(lo), d.Unit*units.Bytes(hi)
	switch {
	case depth >= kmax:
		return 1
	case depth < kmin:
		return 0
	}
	return c.Pmax * float64(depth-kmin) / float64(kmax-kmin)
}

// maxError is the bound that the package comment states.
func (c Config) maxError(steps int, d Depth) float64 {
	kmin, kmax := c.in(d)
	if kmin == kmax {
		return 0
	}
	width := kmax - kmin
	return c.Pmax*float64(max(1, (width+int64(steps)-1)/int64(steps)))/float64(2*width) + 0.5/Certain
}

func BenchmarkEntries(b *testing.B) {
	c := Config{Kmin: 5 * units.KB, Kmax: 200 * units.KB, Pmax: 0.01}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Entries(c, DefaultSteps, cells); err != nil {
			b.Fatal(err)
		}
	}
}
