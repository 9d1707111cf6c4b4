package hpcc

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

const (
	star  = "4 1 3\n0\n0 1 100Gbps 0.001ms 0\n0 2 100Gbps 0.001ms 0.0\n3 0 25Gbps 1000ns 0.000000\n"
	flows = "2 \n2 1 3 100 200000000 2.000000125\n3 1 4 100 5000 2\nnot looked at\n"
)

func TestTopology(t *testing.T) {
	g, err := Topology(strings.NewReader(star + "1 2\n"))
	if err == nil {
		err = g.Check()
	}
	want := &topo.Graph{Hosts: 3, Switches: 1, Names: []string{"1", "2", "3", "0"}, Links: []topo.Link{
		{A: 3, B: 0, Rate: 100 * units.Gbps, Delay: units.Microsecond}, {A: 3, B: 1, Rate: 100 * units.Gbps, Delay: units.Microsecond},
		{A: 2, B: 3, Rate: 25 * units.Gbps, Delay: units.Microsecond},
	}}
	if diff := cmp.Diff(want, g); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestFlows(t *testing.T) {
	got, err := Flows(strings.NewReader(flows))
	want := []Flow{{2, 2, 1, 3, 200 * units.MB, 125 * units.Nanosecond}, {3, 3, 1, 4, 5 * units.KB, 0}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for head, want := range map[string]bool{flows: true, "\n 12\n": true, "start,src,dst,size\n": false, star: false, "": false, "-1\n": false} {
		if IsFlows([]byte(head)) != want {
			t.Errorf("%q: want %v", head, want)
		}
	}
}

func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "line 1: is the last one, want the number of nodes behind it",
		"2 1 1":               "line 1: has 2, want the number of nodes, 3 to 262144",
		"4 3 1":               "line 1: has 3, want the number of switches, 1 to 2",
		"4 x 1":               `line 1: has "x", want the number of switches`,
		"5 2 3\n0 0\n":        "line 2: names switch 0 twice",
		"4 1 3\n9\n":          "line 2: has 9, want the id of a switch, 0 to 3",
		"4 1 1\n0\n0 4":       "line 3: has 4, want the id of a node, 0 to 3",
		"4 1 1\n0\n0 1 1 1us": `line 3: has "1", want a rate such as 100Gbps`,
		"4 1 1\n0\n0 1 1Gbps": "line 3: is the last one, want a delay such as 1us behind it",
		star[:len(star)-9]:    "line 5: is the last one, want an error rate behind it",
		strings.Replace(star, "0.0\n", "0.01\n", 1): "line 4: has an error rate of 0.01, want 0",
	} {
		if _, err := Topology(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"0":                  "line 1: has 0, want the number of flows",
		"2\n1 2 3 100 9 2":   "line 2: is the last one, want the id of the source behind it",
		"1\n1 2 8 100 9 2":   "line 2: has 8, want a priority group, 0 to 7",
		"1\n1 2 3 100 0 2":   "line 2: has 0, want a size in bytes, 1 to",
		"1\n1 2 3 100 9 2us": `line 2: has "2us", want a start in seconds`,
	} {
		if _, err := Flows(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// FuzzTopology: a topology that was read has as many nodes and links as its header says, and can be checked.
func FuzzTopology(f *testing.F) {
	f.Add(star)
	f.Add("4 1 3\n0\n")
	f.Fuzz(func(t *testing.T, text string) {
		g, err := Topology(strings.NewReader(text))
		if err != nil {
			return
		}
		if len(g.Names) != g.Nodes() || len(g.Links) == 0 {
			t.Errorf("%d names of %d nodes, %d links", len(g.Names), g.Nodes(), len(g.Links))
		}
		_ = g.Check() //nolint:errcheck // only that it ends
	})
}

// FuzzFlows: flows that were read start at 0 or later and have sizes.
func FuzzFlows(f *testing.F) {
	f.Add(flows)
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Flows(strings.NewReader(text))
		if err != nil {
			return
		}
		first := units.MaxTime
		for _, fl := range list {
			if first = min(first, fl.Start); fl.Size < 1 || fl.Start < 0 {
				t.Errorf("%+v", fl)
			}
		}
		if first != 0 {
			t.Errorf("the first flow starts at %v", first)
		}
	})
}
