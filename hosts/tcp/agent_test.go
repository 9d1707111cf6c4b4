//go:build linux

package tcp

import (
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/tcp/kernel"
	"github.com/headgate/headgate/units"
)

// table replaces the kernel: its connections, and the orders that they got.
type table struct {
	flows []kernel.Flow
	told  map[kernel.Key]kernel.Order
}

func (t *table) Flows() ([]kernel.Flow, error) { return t.flows, nil }

func (t *table) Tell(k kernel.Key, o kernel.Order) error {
	t.told[k] = o
	return nil
}

func key(port uint16) (kernel.Key, agent.FlowKey) {
	src, dst := netip.MustParseAddr("10.0.1.1"), netip.MustParseAddr("10.0.2.1")
	return kernel.Key{Src: netip.AddrPortFrom(src, port), Dst: netip.AddrPortFrom(dst, 80)}, agent.FlowKey{Src: src, Dst: dst, SrcPort: port, DstPort: 80}
}

// TestAgentReportsWhatSends: a connection is reported as a flow after its first 64 KB, until it has been quiet
// for long enough.
func TestAgentReportsWhatSends(t *testing.T) {
	k, _ := key(1)
	tab := &table{told: map[kernel.Key]kernel.Order{}}
	a := Agent{kernel: tab, classes: []Class{{App: "web", Weight: 2}}}
	for _, step := range []struct {
		at    units.Time
		acked units.Bytes
		flows int
	}{
		{0, 10 * units.KB, 0},
		{units.Second, 64 * units.KB, 1},
		{11 * units.Second, 64 * units.KB, 1},
		{12 * units.Second, 64 * units.KB, 0},
		{13 * units.Second, 65 * units.KB, 1},
	} {
		tab.flows = []kernel.Flow{{Key: k, Weight: 2, Acked: step.acked}}
		if err := a.look(step.at); err != nil {
			t.Fatal(err)
		}
		list := a.Report()
		if len(list) != step.flows {
			t.Fatalf("at %v with %v acknowledged: %d flows, want %d", step.at, step.acked, len(list), step.flows)
		}
		if len(list) > 0 && (list[0].App != "web" || list[0].Weight != 2 || list[0].Acked != step.acked) {
			t.Errorf("report %+v", list[0])
		}
	}
}

// TestAgentObeys: orders accumulate, reach the kernel once each, and fail for unknown connections.
func TestAgentObeys(t *testing.T) {
	k, flow := key(1)
	tab := &table{flows: []kernel.Flow{{Key: k, Weight: 1}}, told: map[kernel.Key]kernel.Order{}}
	a := Agent{kernel: tab}
	if err := a.look(0); err != nil {
		t.Fatal(err)
	}
	v := &a
	for _, err := range []error{v.SetWeight(0, flow, 4), v.Hold(0, flow, true)} {
		if err != nil {
			t.Error(err)
		}
	}
	if got, want := tab.told[k], (kernel.Order{Weight: 4, Held: true}); got != want {
		t.Errorf("told %+v, want %+v", got, want)
	}
	delete(tab.told, k)
	if err := v.Hold(0, flow, true); err != nil || len(tab.told) != 0 {
		t.Errorf("the same again: %v, told %v, want nothing", err, tab.told)
	}
	if err := v.SetWeight(0, flow, math.Inf(1)); err == nil {
		t.Error("an infinite weight was taken")
	}
	if _, other := key(2); !errors.Is(v.Hold(0, other, true), agent.ErrNoFlow) {
		t.Error("a connection that is not there was held")
	}
	tab.flows[0].Started = 1 // another connection with the same ports
	if err := a.look(0); err != nil || a.flows[flow].order.Held {
		t.Errorf("a new connection has the old one's order: %v", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(o *Options) error
		want string
	}{
		{"no rate", func(o *Options) error { o.Rate = 0; return nil }, "--rate 0bps"},
		{"beta", func(o *Options) error { o.Soze.Beta = units.Gbps; return nil }, "--beta"},
		{"weight", func(o *Options) error { o.Default.Weight = -1; return nil }, "--weight: weight -1"},
		{"controller", func(o *Options) error { o.Controller = "x"; return nil }, `--name ""`},
		{"netns", func(o *Options) error { o.Netns = "x"; return nil }, `--name ""`},
		{"mark", func(o *Options) error { return o.addMark("0") }, `mark "0"`},
		{"mark's weight", func(o *Options) error { return o.addMark("1,weight=x") }, `weight "x"`},
		{"priority without base", func(o *Options) error { o.Default.Priority = 2; return nil }, "--base-rtt 0s"},
		{"mark's priority", func(o *Options) error { return o.addMark("1,priority=0") }, `priority "0"`},
		{"mark's key", func(o *Options) error { return o.addMark("1,colour=x") }, `key "colour"`},
		{"cgroup", func(o *Options) error { return o.addCgroup("/proc") }, `"/proc": want a folder of a cgroup v2`},
	} {
		o := NewOptions()
		o.Rate = units.Gbps
		err := errors.Join(c.set(o), o.Check())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
	o := NewOptions()
	o.Rate, o.Default.App = units.Gbps, "all"
	if err := errors.Join(o.addMark("7,weight=4,app=web"), o.addMark("0x8"), o.Check()); err != nil {
		t.Fatal(err)
	}
	o.places = append(o.places, place{cgroup: "/cg", Class: Class{Weight: 2}})
	classes, groups, marks, err := o.resolve()
	if err != nil || len(classes) != 4 || len(groups) != 1 || groups[0].Class != 3 || marks[7] != 1 || classes[1].App != "web" || classes[2].Weight != 1 || classes[3].App != "all" {
		t.Errorf("classes %+v, cgroups %+v, %v", classes, groups, err)
	}
}
