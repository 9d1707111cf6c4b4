package workload

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// TestTPCH compares the file with the specification's own sums: eight tables, 22 queries, and some 1 GB at scale
// factor 1 (956 MB before indexes and rounding of row lengths).
func TestTPCH(t *testing.T) {
	q, err := TPCH()
	if err != nil {
		t.Fatal(err)
	}
	var total units.Bytes
	for _, t := range q.Tables {
		total += units.Bytes(t.Rows * t.Bytes)
	}
	if len(q.Tables) != 8 || len(q.Queries) != 22 || total < 950*units.MB || total > 1050*units.MB {
		t.Errorf("%d tables of %v, %d queries", len(q.Tables), total, len(q.Queries))
	}
	for i, tables := range q.Queries {
		name := fmt.Sprintf("q%d", i+1)
		for _, table := range tables {
			if q.Tables[table].Rows*q.Tables[table].Bytes == 0 {
				t.Errorf("%s is of table %q, which has no size", name, table)
			}
		}
		stages, err := q.DAG(name, 0.01)
		if err != nil {
			t.Fatal(err)
		}
		// n scans and n − 1 joins, each of which waits for two stages before it.
		if want := 2*len(tables) - 1; len(stages) != want {
			t.Errorf("%s has %d stages, want %d", name, len(stages), want)
		}
		for i, s := range stages {
			if join := strings.HasPrefix(s.Name, "join "); join != (len(s.After) == 2) || s.Bytes < 1 {
				t.Errorf("%s stage %d: %+v", name, i, s)
			}
		}
	}
	// By hand: customer 26.85 MB, orders 156 MB and lineitem 672 MB at scale factor 1.
	stages, err := q.DAG("q3", 1)
	if err != nil {
		t.Fatal(err)
	}
	want := []units.Bytes{26_850_000, 156_000_000, 672_136_080, 26_850_000, 26_850_000}
	for i, s := range stages {
		if s.Bytes != want[i] {
			t.Errorf("q3 stage %d (%s) ships %d B, want %d", i, s.Name, int64(s.Bytes), int64(want[i]))
		}
	}
	for _, bad := range []struct {
		name  string
		scale float64
	}{{"q23", 1}, {"q1", 0}, {"q1", -1}} {
		if _, err := q.DAG(bad.name, bad.scale); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

// TestStagesWait runs a diamond of four stages and compares each start with the ends of the stages that it waits
// for.
func TestStagesWait(t *testing.T) {
	line := topo.Line{Rate: 100 * units.Gbps, Delay: units.Microsecond}
	g, err := topo.Star(8, line)
	if err != nil {
		t.Fatal(err)
	}
	chain := NewChain()
	s, err := sim.New(sim.Config{Graph: g, Driver: chain, Groups: 4})
	if err != nil {
		t.Fatal(err)
	}
	stages := []Stage{
		{Name: "a", Bytes: 400 * units.KB}, {Name: "b", Bytes: 40 * units.KB, After: []int{0}},
		{Name: "c", Bytes: 900 * units.KB, After: []int{0}}, {Name: "d", Bytes: 100 * units.KB, After: []int{1, 2}, Compute: 7 * units.Microsecond},
	}
	hosts := []int{0, 1, 2, 3, 4, 5, 6, 7}
	p := &Pattern{FlowSpec: sim.FlowSpec{Weight: 1, Law: lineRate{}}}
	first, err := chain.DAG(p, sim.Stream(1, "job"), hosts, stages, 3, units.Microsecond)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AddFlows(first); err != nil {
		t.Fatal(err)
	}
	if err := s.RunFlows(units.Second); err != nil {
		t.Fatal(err)
	}
	if err := chain.Err(); err != nil || chain.Left() != 0 {
		t.Fatalf("error %v, %d stages left", err, chain.Left())
	}
	var start, end [4]units.Time // by stage; tags count from 1
	var bytes [4]units.Bytes
	senders, receivers := [4]map[int]bool{{}, {}, {}, {}}, [4]map[int]bool{{}, {}, {}, {}}
	for i, r := range s.Results() {
		st := r.Spec.Tag - 1
		senders[st][r.Spec.Src], receivers[st][r.Spec.Dst] = true, true
		if start[st] != 0 && start[st] != s.StartOf(i) {
			t.Errorf("flows of stage %d start at %v and %v", st, start[st], s.StartOf(i))
		}
		start[st] = s.StartOf(i)
		end[st] = max(end[st], s.StartOf(i)+r.FCT)
		bytes[st] += r.Spec.Size
	}
	want := [4]units.Time{units.Microsecond, end[0], end[0], max(end[1], end[2]) + 7*units.Microsecond}
	if start != want {
		t.Errorf("stages start at %v, want %v", start, want)
	}
	// Both inputs of d end on d's hosts, and a's output on the hosts of b, the first stage that waits for it.
	if !maps.Equal(receivers[1], senders[3]) || !maps.Equal(receivers[2], senders[3]) || !maps.Equal(receivers[0], senders[1]) {
		t.Errorf("senders %v, receivers %v: what a stage ships does not end where the next runs", senders, receivers)
	}
	for i, st := range stages {
		if bytes[i] > st.Bytes || bytes[i] < st.Bytes/3 {
			t.Errorf("stage %d ships %v of %v", i, bytes[i], st.Bytes)
		}
	}
	if _, err := chain.DAG(p, sim.Stream(1, "job"), hosts, []Stage{{Name: "a", Bytes: 1, After: []int{0}}}, 3, 0); err == nil {
		t.Error("a stage that waits for itself was taken")
	}
	if _, err := chain.DAG(p, sim.Stream(1, "job"), hosts, stages, 9, 0); err == nil {
		t.Error("more hosts per stage than there are were taken")
	}
}
