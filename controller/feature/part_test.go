package feature_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
)

// TestOn: what does a part follows from the program, the queues and the traffic manager.
func TestOn(t *testing.T) {
	env := testenv.New(t, "../..", nil)
	v1model, chip := env.Pipeline, testenv.Tofino(t, "tofino2")
	limit := feature.Part{Objects: pipeline.Objects{Tables: []string{ids.TableQueueLimitName}}, Queues: 8, TrafficManager: "holds it"}
	class := feature.Part{Objects: pipeline.Objects{Tables: []string{ids.TableDSCPToClassName}}, Queues: 8}
	filter := feature.Part{Objects: pipeline.Objects{Filters: []string{"egress.maxqd.delay_filter"}}, SetUp: true, TrafficManager: "sets it up"}
	several := feature.Part{Objects: pipeline.Objects{
		Tables: []string{ids.TableECNREDName, "no.table"}, Counters: []string{"no.counter"}, Profiles: []string{"no.profile"},
		DirectCounters: []string{ids.DirectCounterFlowCounterName, "no.direct"}, Digests: []string{"no_digest"}, Headers: []string{"no_header"},
	}}
	tests := []struct {
		name    string
		part    feature.Part
		pipe    *pipeline.Pipeline
		queues  int
		runtime string
		want    feature.Means
		lacking string
	}{
		{"program", limit, v1model, 8, "", feature.ByProgram, ""},
		{"queues", limit, v1model, 7, "", feature.ByNothing, "it takes 8 priority queues, the switch is configured with 7"},
		{"no table", limit, chip, 8, "", feature.ByNothing, "the program for tofino2 has no table ingress.admission.queue_limit"},
		{"manager", limit, chip, 8, "x:1", feature.ByTrafficManager, "the program for tofino2 has no table ingress.admission.queue_limit"},
		{"program before manager", class, chip, 8, "x:1", feature.ByProgram, ""},
		{"no manager for it", class, chip, 7, "x:1", feature.ByNothing, "it takes 8 priority queues, the switch is configured with 7"},
		{"filter", filter, chip, 8, "x:1", feature.ByTrafficManager, ""},
		{"filter alone", filter, chip, 8, "", feature.ByNothing, "it has to be set up by BF Runtime"},
		{"no filter", filter, v1model, 8, "", feature.ByNothing, "the program for tofino2 has no low-pass filter egress.maxqd.delay_filter"},
		{"all kinds", several, v1model, 8, "", feature.ByNothing,
			"the program for tofino2 has no table no.table, no action profile no.profile, no counter no.counter, no direct counter no.direct, no digest no_digest, no controller header no_header"},
	}
	for _, tt := range tests {
		s := &config.Switch{Name: "s", Target: config.Tofino2, PriorityQueues: tt.queues, BFRuntime: tt.runtime}
		if got := tt.part.On(tt.pipe, s); got.Means != tt.want || got.Lacking != tt.lacking {
			t.Errorf("%s: %+v, want %v and %q", tt.name, got, tt.want, tt.lacking)
		}
	}
}

// TestCollect keeps the first error, and of those behind it what was refused.
func TestCollect(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	refused := yamlnode.Fault{Field: "a.b", Text: "is 1"}
	var c feature.Collect
	for _, err := range []error{nil, first, second, refused} {
		c.Add(nil, err)
	}
	_, err := c.Result()
	if !errors.Is(err, first) || errors.Is(err, second) || !errors.Is(err, refused) || !strings.Contains(err.Error(), "a.b: is 1") {
		t.Errorf("error %v", err)
	}
}
