package preview

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/buffer"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/units"
)

func parse(t testing.TB, name, text string) *config.Config {
	t.Helper()
	c, err := config.Parse(name, []byte(text), nil, controller.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fan is DSH's Figure 14(a) with fewer hosts, at 1/1000 of line rate: h0 and h1 share a link that h2 to h9 do not
// use.
func fan(policy string) string {
	var b strings.Builder
	b.WriteString("name: fan\nscale: 1000\nswitches:\n  - {name: left, device_id: 1, address: \"127.0.0.1:1\"}\n  - {name: right, device_id: 2, address: \"127.0.0.1:2\"}\nhosts:\n")
	hosts := []string{"h0", "h1", "r0", "r1", "h2", "h3", "h4", "h5", "h6", "h7", "h8", "h9"}
	for i, h := range hosts {
		fmt.Fprintf(&b, "  - {name: %s, ipv4: 10.0.0.%d}\n", h, i+1)
	}
	// The link between the switches is in the middle of the list, so that ports and links have different orders.
	b.WriteString("links:\n  - {a: \"left:9\", b: h0, rate: 100Mbps, delay: 2us}\n  - {a: \"left:2\", b: \"right:30\", rate: 100Mbps, delay: 2us}\n  - {a: \"left:1\", b: h1, rate: 50Mbps, delay: 1us}\n")
	for i, h := range hosts[2:] {
		fmt.Fprintf(&b, "  - {a: \"right:%d\", b: %s, rate: 100Mbps, delay: 2us}\n", 20-i, h)
	}
	b.WriteString("qos: {classes: [{dscp: 8, class: 1}, {dscp: 16, class: 2}, {dscp: 24, class: 3}, {dscp: 32, class: 4}, {dscp: 48, class: 6}]}\n" + policy)
	return b.String()
}

const (
	sih = "buffer: {policy: sih, size: 4MB, private: 3KB, headroom: 60KB, lossless: [0, 1, 2, 3, 4], alpha: 1/16}\n"
	dsh = "buffer: {policy: dsh, size: 4MB, private: 3KB, headroom: 60KB, lossless: [0, 1, 2, 3, 4], alpha: 1/16}\n"
)

// fanIn is DSH's Figure 14(b): F0 takes no part in the congestion that h2 to h9 cause at r1.
const fanIn = `
flows:
  - {kind: flow, group: F0, from: h0, to: r0, class: 3, law: half, stop: 250us}
  - {kind: flow, group: F1, from: h1, to: r1, class: 3, law: half, stop: 250us}
  - {kind: incast, group: burst, from: "h2,h3,h4,h5,h6,h7,h8,h9", to: r1, size: 40KB, start: 50us, class: 3}
laws: {half: {kind: none, rate: 46Gbps}}
run: {until: 250us}
`

// TestBuffersAreTheControllers: each switch in the simulator has the memory settings that the controller writes
// to the switch, port by port, although rates and times are at line rate.
func TestBuffersAreTheControllers(t *testing.T) {
	files, err := filepath.Glob("../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	texts := map[string]string{"fan": fan(sih), "fan with dsh": fan(dsh), "fan with spfc": fan("buffer: {policy: spfc, size: 2MB, lossless: [3]}\n")}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		texts[f] = string(text)
	}
	for name, text := range texts {
		c := parse(t, name, text)
		tr, err := translate(after, c, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s, err := sim.New(withGroups(tr.Config))
		if err != nil {
			t.Fatal(name, err)
		}
		for i := range c.Switches {
			sw := &c.Switches[i]
			want, numbers, on := buffer.Headroom(c, sw)
			node, _ := tr.Config.Graph.Find(sw.Name)
			m, err := s.MMU(node)
			if (err == nil) != on {
				t.Errorf("%s: %s: %v, want a buffer: %v", name, sw.Name, err, on)
			}
			if !on || err != nil {
				continue
			}
			ours, err := headroom.New(want)
			if err != nil {
				t.Fatal(err)
			}
			got, exp := m.Config(), ours.Config()
			if m.Threshold() != ours.Threshold() || got.Policy != exp.Policy || got.Buffer != exp.Buffer || got.Lossless != exp.Lossless || !got.LocalResume ||
				got.SPFC.Period*units.Time(c.Scale) != exp.SPFC.Period || got.DSH.Window*units.Time(c.Scale) != exp.DSH.Window {
				t.Errorf("%s: %s: %+v, want %+v", name, sw.Name, got, exp)
			}
			for _, l := range c.Links {
				end, other := l.A, l.B
				if end.Node != sw.Name {
					end, other = other, end
				}
				if end.Node != sw.Name {
					continue
				}
				peer, _ := tr.Config.Graph.Find(other.Node)
				port, err := s.PortOf(peer, node)
				if err != nil {
					t.Fatal(err)
				}
				_, local := s.Far(port)
				w := exp.Ports[slices.Index(numbers, end.Port)]
				if g := got.Ports[local]; g.Rate != w.Rate*units.Rate(c.Scale) || g.Delay*units.Time(c.Scale) != w.Delay || g.Headroom != w.Headroom {
					t.Errorf("%s: %s: %+v, want %+v at line rate", name, end, g, w)
				}
			}
		}
	}
}

func withGroups(c sim.Config) sim.Config {
	c.Groups = 1
	return c
}

// TestPreview: the effect of DSH on a victim is predicted, and every run gives the same.
func TestPreview(t *testing.T) {
	o := Options{Before: parse(t, "a", fan(sih)), After: parse(t, "b", fan(dsh)), Traffic: Traffic{File: "t.yaml", Text: []byte(fanIn)}, Seed: 1, Seeds: 2}
	p, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	first, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if second, _ := json.Marshal(again); string(second) != string(first) {
		t.Errorf("two previews differ:\n%s\n%s", first, second)
	}
	get := func(name string) (before, after float64) {
		i := slices.IndexFunc(p.Measures, func(m Measure) bool { return m.Name == name })
		return *p.Measures[i].Before.Mean, *p.Measures[i].After.Mean
	}
	if b, a := get("stopped"); b <= a {
		t.Errorf("stopped for %v µs, then %v, want less under DSH", b, a)
	}
	if b, a := get("victim_flows"); b != 1 || a != 0 {
		t.Errorf("%v victims, then %v, want 1 and 0", b, a)
	}
	if b, a := get("lossless_drops"); b != 0 || a != 0 {
		t.Errorf("%v lossless drops, then %v", b, a)
	}
	for _, l := range p.Links {
		if paused := l.From == "left" && l.To == "right"; paused && *l.Before.Paused.Mean == 0 {
			t.Errorf("%s→%s was not paused under SIH", l.From, l.To)
		}
	}
	for _, g := range p.Groups {
		if g.Name == "F0" && (*g.Before.Victims.Mean != 1 || *g.Before.Goodput.Mean >= *g.After.Goodput.Mean) {
			t.Errorf("F0: %+v, then %+v", g.Before, g.After)
		}
	}
}

func TestTrafficFaults(t *testing.T) {
	c := parse(t, "a", fan(sih))
	for _, tc := range []struct{ text, want string }{
		{"flows: [{kind: flow, from: h0, to: nobody, stop: 1us}]\nrun: {until: 1ms}", `t.yaml:1: flows[0].to: `},
		{"flows: [{kind: flow, from: h0, to: r0, stop: 1us}]\nrun: {until: 1ms}\nbuffer: {}", `buffer: unknown key, want one of cnp_delay, cnp_gap, events, flows, laws, noise, packet, run`},
		{"flows: [{kind: flow, from: h0, to: r0, stop: 1us, law: hope}]\nrun: {until: 1ms}", `law: is "hope", want one of`},
		{"run: {until: 1ms}", "flows: is missing"},
	} {
		_, err := Run(context.Background(), Options{After: c, Traffic: Traffic{File: "t.yaml", Text: []byte(tc.text)}, Seeds: 1})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v, want %q", tc.text, err, tc.want)
		}
	}
	bad := *c
	bad.Scale = 1 << 40
	if _, err := Run(context.Background(), Options{After: &bad, Seeds: 1}); err == nil || !strings.Contains(err.Error(), "beyond all numbers") {
		t.Errorf("%v", err)
	}
}

// TestTrace: a trace of flows is played as traffic, with times at line rate.
func TestTrace(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tr, err := ReadTraffic(write("flows.csv", "start,src,dst,size,class\n0us,h2,r1,100KB,3\n20us,h3,r1,5KB,3\n"), "dcqcn-vendor")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Run(context.Background(), Options{After: parse(t, "a", fan(sih)), Traffic: tr, Seed: 1, Seeds: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range p.Measures {
		if m.Before != nil || m.Name == "unfinished" && *m.After.Mean != 0 || m.Name == "fct_to_10KB" && m.After.Mean == nil {
			t.Errorf("%+v", m)
		}
	}
	for name, want := range map[string]string{
		write("a.csv", "src,dst\n"):               "no column start",
		write("b.csv", "start,src\nsoon,h1\n"):    `line 2: start: is "soon"`,
		write("c.txt", ""):                        `has the ending ".txt", want .yaml, .yml, or .csv`,
		filepath.Join(dir, "nothing.yaml"):        "no such file",
		write("d.csv", ""):                        "no line of column names",
		write("e.csv", "start,src,dst\n1s,1\n2"):  "wrong number of fields",
		write("f.csv", "start,src,dst\n2s,h1,h2"): "want a time up to 1s",
	} {
		if _, err := ReadTraffic(name, "none"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
