package experiment

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/tests/race"
)

var update = flag.Bool("update", false, "rewrite golden files")

const small = `
name: small
title: A small incast
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 3, host: {rate: 100Gbps, delay: 1us}}
buffer: {policy: dsh, size: 2MB, alpha: 1/2, lossless: [0, 1, 2]}
ecn: [{classes: [0, 1], kmin: 10KB, kmax: 40KB, pmax: 0.2}]
cnp_gap: 50us
laws: {dcqcn: {kind: dcqcn}}
flows:
  - {kind: incast, group: burst, from: 0-3, to: h5, size: 64KB, class: 1}
  - {kind: poisson, group: background, sizes: hadoop, load: 0.3, stop: 200us, law: dcqcn}
  - {kind: ring, group: training, hosts: "0, 2, 4", size: 90KB, class: 2}
run: {until: 2ms, stop_when_done: true, interval: 20us}
queues: [{name: last, from: leaf1, to: h5, class: 1}]
measures:
  - {name: fct, what: fct, group: burst, stat: p99, paper: none}
  - {name: goodput, what: goodput, group: burst, from: 0us, to: 40us}
  - {name: queue, what: queue, queue: last, stat: max, from: 0us, to: 100us}
  - {name: drops, what: drops, paper: "0"}
variants:
  - {name: "10 us", set: {topology: {host: {delay: 10us}}}}
  - {name: plain, set: {}}
`

func parseSmall(t *testing.T) *File {
	t.Helper()
	f, err := Parse("small.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func runBatch(t *testing.T, b Batch) *Report {
	t.Helper()
	b.File, b.Seed = parseSmall(t), 1
	b.Shards = max(b.Shards, 1)
	r, err := b.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestBuiltinsParse(t *testing.T) {
	race.SkipSequential(t)
	for _, name := range Builtin() {
		if _, err := Open(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReportsAgreeWhateverTheCores(t *testing.T) {
	one, two := runBatch(t, Batch{Seeds: 3, Jobs: 1}), runBatch(t, Batch{Seeds: 3, Jobs: 4})
	if len(one.Outcomes) != 6 {
		t.Fatalf("%d outcomes, want 6", len(one.Outcomes))
	}
	a, errA := json.Marshal(one.Outcomes)
	b, errB := json.Marshal(two.Outcomes)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("outcomes differ with the number of jobs: %v %v", errA, errB)
	}
	o := one.Outcomes[0]
	for _, g := range o.Groups {
		if g.Done != g.Flows || g.Flows == 0 {
			t.Errorf("group %+v has not ended", g)
		}
	}
	if n := o.Groups[2].Flows; n != 3*2*2 { // the ring's 2(n − 1) steps with n flows each
		t.Errorf("the ring had %d flows, want 12", n)
	}
}

func TestShardsMergeToTheWhole(t *testing.T) {
	dir := t.TempDir()
	whole := runBatch(t, Batch{Seeds: 2})
	for i := range 3 {
		if _, err := runBatch(t, Batch{Seeds: 2, Shard: i, Shards: 3}).WriteDir(dir); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Merge(filepath.Join(dir, "small"))
	if err != nil {
		t.Fatal(err)
	}
	got.Performance, whole.Performance = Performance{}, Performance{}
	a, errA := json.Marshal(got)
	b, errB := json.Marshal(whole)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if d := cmp.Diff(string(b), string(a)); d != "" {
		t.Error(d)
	}
	if err := os.Remove(filepath.Join(dir, "small", "shard-1-of-3.json")); err != nil {
		t.Fatal(err)
	}
	if got, err = Merge(filepath.Join(dir, "small")); err != nil || !got.Interrupted {
		t.Errorf("a missing shard goes unnoticed: %v", err)
	}
	if _, err := Merge(t.TempDir()); err == nil {
		t.Error("nothing was merged")
	}
}

func TestFilesAreWritten(t *testing.T) {
	dir := t.TempDir()
	files, err := runBatch(t, Batch{Seeds: 1}).WriteDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"report.json", "table.txt", "measures.csv", "groups.csv", "series-plain-seed1.csv", "goodput-plain.png", "goodput-10_us.svg", "queues-plain.svg", "fct-plain.png"} {
		st, err := os.Stat(filepath.Join(dir, "small", want))
		if err != nil || st.Size() < 50 {
			t.Errorf("%s: %v; there are %v", want, err, files)
		}
	}
}

func TestInterruptedRunsAreMarked(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	b := Batch{File: parseSmall(t), Seed: 1, Seeds: 4, Shards: 1, Jobs: 1, Watch: func(p Progress) {
		if p.Part > 0.1 {
			cancel()
		}
	}}
	r, err := b.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || len(r.Outcomes) == 0 || len(r.Outcomes) == 8 {
		t.Fatalf("interrupted %v with %d outcomes", r.Interrupted, len(r.Outcomes))
	}
	var table strings.Builder
	if err := r.WriteTable(&table); err != nil || !strings.Contains(table.String(), "INTERRUPTED") {
		t.Errorf("the table does not say so: %v\n%s", err, table.String())
	}
}

// TestDeadlocksAreCounted: over several seeds, the table shows the number of runs with a deadlock.
func TestDeadlocksAreCounted(t *testing.T) {
	for _, c := range []struct {
		since []float64
		want  string
	}{
		{[]float64{math.NaN()}, "–"},
		{[]float64{5}, "5"},
		{[]float64{math.NaN(), math.NaN()}, "– in 0 of 2"},
		{[]float64{2, math.NaN(), 4}, "3 ± 12.706 (2…4) in 2 of 3"},
		{[]float64{2, math.NaN()}, "2 in 1 of 2"},
		{[]float64{2, 4}, "3 ± 12.706 (2…4)"},
	} {
		r := Report{}
		for _, v := range c.since {
			r.Outcomes = append(r.Outcomes, &Outcome{Measures: []Value{{Name: "deadlock", Value: v, Unit: "µs"}}})
		}
		var table strings.Builder
		if err := r.WriteTable(&table); err != nil || !strings.Contains(table.String(), "  deadlock  "+c.want+"  ") {
			t.Errorf("%v: want %q, there is %v\n%s", c.since, c.want, err, table.String())
		}
	}
}

// TestBadFiles compares the errors of files with golden texts; run with -update to rewrite them.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Parse(filepath.Base(file), text)
		var faults *yamlnode.Error
		if !errors.As(err, &faults) {
			t.Errorf("%s: error %v, want faults", file, err)
			continue
		}
		golden := strings.TrimSuffix(file, ".yaml") + ".txt"
		if *update {
			if err := os.WriteFile(golden, []byte(err.Error()+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, errRead := os.ReadFile(golden)
		if errRead != nil || string(want) != err.Error()+"\n" {
			t.Errorf("%s: %v\n%s", file, errRead, cmp.Diff(string(want), err.Error()+"\n"))
		}
	}
}

// FuzzParse reads files from which some bytes were cut, and into which others were put. The input is the edits,
// not the text: the go command takes up to a minute to shorten each new input, in the square of its length, and
// files have a thousand bytes. An edit is a position (two bytes), the number of bytes to cut, the number to
// insert, and the inserted bytes.
func FuzzParse(f *testing.F) {
	texts := []string{"", small}
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	for i := range texts {
		f.Add(uint8(i), []byte{})
		f.Add(uint8(i), []byte("\x00\x20\x01\x02: "))
	}
	f.Fuzz(func(_ *testing.T, file uint8, edits []byte) {
		text := texts[int(file)%len(texts)]
		for len(edits) > 4 {
			at, cut := int(edits[0])<<8|int(edits[1]), int(edits[2])
			put := edits[4:][:min(int(edits[3]), len(edits)-4)]
			at %= len(text) + 1
			text = text[:at] + string(put) + text[min(at+cut, len(text)):]
			edits = edits[4+len(put):]
		}
		Parse("fuzz.yaml", []byte(text)) //nolint:errcheck // any error will do, a panic will not
	})
}

// The check compares laws with their flows' paths, and files beside the experiment exist.
func TestLawsOfThePath(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sizes.cdf"), []byte("1000 0\n2000 100\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	_, err := Parse(filepath.Join(dir, "x.yaml"), []byte(`
topology: {kind: star, hosts: 4, host: {rate: 10Gbps, delay: 500ns}}
laws:
  near: {kind: swift, target: 8us}
  small: {kind: swift, max_window: 100KB}
  zero: {kind: dcqcn-vendor, keep_target: false, cut_interval: 0s}
flows:
  - {kind: shift, size: 1MB, law: near}
  - {kind: shift, size: 1MB, law: small}
  - {kind: shift, size: 1MB, law: zero}
  - {kind: poisson, sizes: sizes.cdf, load: 0.1, stop: 1ms}
run: {until: 1ms}
`))
	if err != nil {
		t.Error(err)
	}
}
