package northbound

import (
	"maps"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/internal/gnmi"
)

// TestFeatureLeaves: features fill each leaf with its path's keys; an unknown leaf has no value.
func TestFeatureLeaves(t *testing.T) {
	all := &pb.FeatureStatus{}
	if err := protojson.Unmarshal([]byte(`{"buffer": {"switch": {"threshold_bytes": 1}, "pools": [{"pool": "shared"}], "ports": [{"port": 1}],
			"classes": [{"port": 1, "class": 3, "paused": true, "paused_time": "0.000000005s", "lossless_drops": 6}]},
			"pfcwatchdog": {"classes": [{"port": 1, "class": 3}]}, "telemetry": {"ports": [{"port": 1}], "queues": [{"port": 1, "queue": 2}]}}`), all); err != nil {
		t.Fatal(err)
	}
	wants := gnmi.Wants{}
	for _, leaf := range gnmi.Leaves {
		wants[leaf] = true
	}
	v, seen, keys := values{wants: wants}, map[*gnmi.Leaf]bool{}, map[[2]string]int{}
	v.addFeatures(all)
	for _, value := range v.list {
		seen[value.Leaf] = true
		keys[value.Of]++
		switch value.Is.(type) {
		case uint64, bool:
		default:
			t.Errorf("%v is a %T", value, value.Is)
		}
	}
	if want := map[[2]string]int{{}: 1, {"1"}: 10, {"1", "2"}: 1, {"1", "3"}: 9, {"shared"}: 3}; len(seen) != 24 || len(v.list) != 24 || !maps.Equal(keys, want) {
		t.Errorf("%d values of %d leaves, want 24 of each; keys %v, want %v", len(v.list), len(seen), keys, want)
	}
	v.list = nil
	v.addFeatures(&pb.FeatureStatus{Buffer: &pb.BufferStatus{Switch: &pb.BufferSwitch{Policy: "off"}, Classes: []*pb.BufferClass{{Port: 1, Class: 5}}}})
	if len(v.list) != 3 {
		t.Errorf("a class that is not lossless has the values %v", v.list)
	}
}

// TestOpenConfig: ports and status are converted to the expected values.
func TestOpenConfig(t *testing.T) {
	wants := gnmi.Wants{gnmi.Victim: true, gnmi.OperStatus: true, gnmi.QueueLen: true}
	o := openConfig{Options{Backend: &backend{}, Events: events.NewBus[*pb.Event](0)}}
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
	o.Events.Publish(&pb.Event{Kind: "link.down"})
	<-changed
}
