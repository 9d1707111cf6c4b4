package northbound

import (
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/internal/gnmi"
	"github.com/headgate/headgate/units"
)

// TestShown: each leaf is a column of a feature's table, whose rows have the keys of its path.
func TestShown(t *testing.T) {
	core, err := controller.New(controller.Options{})
	if err != nil {
		t.Fatal(err)
	}
	left := len(shown)
	for _, table := range core.Tables() {
		for _, c := range table.Columns {
			leaf := shown[c.Metric]
			if leaf == nil {
				continue
			}
			left--
			for _, kind := range leaf.Keys() {
				if !slices.Contains(table.Keys, kind) {
					t.Errorf("%s has no key %s for its leaf", c.Metric, kind)
				}
			}
		}
	}
	if left != 0 {
		t.Errorf("%d leaves are of metrics that no feature has", left)
	}
}

// TestOpenConfig: ports and tables become values, and what is unknown none.
func TestOpenConfig(t *testing.T) {
	table := &view.Table{Keys: []string{"port", "peer", "queue"}, Columns: []view.Column{
		{Head: "POLICY"}, {Metric: "port_queue_bytes"}, {Metric: "pfc_victim"}, {Metric: "pfc_paused_seconds"}, {Metric: "pfc_pause_frames"},
	}}
	wants := gnmi.Wants{gnmi.Victim: true, gnmi.OperStatus: true, gnmi.QueueLen: true}
	list := valuesOf(view.Status{Table: &view.Table{Keys: table.Keys[:2], Columns: table.Columns[2:3]}, Rows: []view.Row{{Keys: []string{"4", "h1"}, Values: []any{true}}, {Keys: []string{"5", "h2"}, Values: []any{nil}}}}, wants)
	if want := []gnmi.Value{{Leaf: gnmi.Victim, Of: [2]string{"4"}, Is: true}}; !slices.Equal(list, want) {
		t.Errorf("%v, want %v", list, want)
	}
	for _, v := range []struct{ is, want any }{
		{3, uint64(3)}, {2 * units.KB, uint64(2000)}, {-units.KB, uint64(0)}, {time.Millisecond, uint64(1e6)}, {uint64(7), uint64(7)}, {true, true}, {nil, nil},
	} {
		if got := leafValue(v.is); got != v.want {
			t.Errorf("%v is %v, want %v", v.is, got, v.want)
		}
	}
	o := openConfig{Options{Backend: &backend{}, Events: events.NewBus[view.Event](0)}}
	for target, want := range map[string]int{"": 1, "s1": 1, "s9": 0} {
		if got := o.State(target, nil); len(got) != want || want == 1 && len(got[0].Values) > 0 {
			t.Errorf("%q: %v", target, got)
		}
	}
	oper := map[string]any{}
	for _, v := range o.State("s1", wants)[0].Values {
		switch v.Leaf {
		case gnmi.OperStatus:
			oper[v.Of[0]] = v.Is
		case gnmi.QueueLen:
			oper["queue "+v.Of[1]] = v.Is
		default:
			t.Errorf("%v was not asked for", v)
		}
	}
	if oper["queue 7"] != uint64(9) {
		t.Errorf("queues %v", oper)
	}
	if oper["1"] != gnmi.Up || oper["2"] != gnmi.Down || oper["3"] != gnmi.Unknown {
		t.Errorf("ports %v", oper)
	}
	changed := o.Changed(t.Context())
	o.Events.Publish(view.Event{Kind: "link.down"})
	<-changed
}
