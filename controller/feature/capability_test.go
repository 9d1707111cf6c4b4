package feature_test

import (
	"errors"
	"strings"
	"testing"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
)

// TestBy: the program, the queues and the traffic manager determine which of them provides a
// capability.
func TestBy(t *testing.T) {
	env := testenv.New(t, "../..", nil)
	v1model, chip := env.Pipeline, testenv.Tofino(t, "tofino2")
	limit := feature.Capability{Objects: pipeline.Objects{Tables: []string{ids.TableQueueLimitName}}, Queues: 8, TrafficManager: "holds it"}
	class := feature.Capability{Objects: pipeline.Objects{Tables: []string{ids.TableDSCPToClassName}}, Queues: 8}
	filter := feature.Capability{Objects: pipeline.Objects{Filters: []string{"egress.maxqd.delay_filter"}}, SetUp: true, TrafficManager: "sets it up"}
	several := feature.Capability{Objects: pipeline.Objects{
		Tables: []string{ids.TableECNREDName, "no.table"}, Counters: []string{"no.counter"}, Profiles: []string{"no.profile"},
		DirectCounters: []string{ids.DirectCounterFlowCounterName, "no.direct"}, Digests: []string{"no_digest"}, Headers: []string{"no_header"},
	}}
	tests := []struct {
		name    string
		part    feature.Capability
		pipe    *pipeline.Pipeline
		queues  int
		runtime string
		want    string
		lacking string
	}{
		{"program", limit, v1model, 8, "", pb.ByProgram, ""},
		{"queues", limit, v1model, 7, "", pb.ByNothing, "it takes 8 priority queues, the switch is configured with 7"},
		{"no table", limit, chip, 8, "", pb.ByNothing, "the program for tofino2 has no table ingress.admission.queue_limit"},
		{"manager", limit, chip, 8, "x:1", pb.ByTrafficManager, "the program for tofino2 has no table ingress.admission.queue_limit"},
		{"program before manager", class, chip, 8, "x:1", pb.ByProgram, ""},
		{"no manager for it", class, chip, 7, "x:1", pb.ByNothing, "it takes 8 priority queues, the switch is configured with 7"},
		{"filter", filter, chip, 8, "x:1", pb.ByTrafficManager, ""},
		{"filter alone", filter, chip, 8, "", pb.ByNothing, "it must be configured through BF Runtime"},
		{"no filter", filter, v1model, 8, "", pb.ByNothing, "the program for tofino2 has no low-pass filter egress.maxqd.delay_filter"},
		{"all kinds", several, v1model, 8, "", pb.ByNothing,
			"the program for tofino2 has no table no.table, no action profile no.profile, no counter no.counter, no direct counter no.direct, no digest no_digest, no controller header no_header"},
	}
	for _, tt := range tests {
		s := &config.Switch{Name: "s", Target: config.Tofino2, PriorityQueues: tt.queues, BFRuntime: tt.runtime}
		if by, lacking := tt.part.Provider(tt.pipe, s); by != tt.want || lacking != tt.lacking {
			t.Errorf("%s: %q, %q, want %q and %q", tt.name, by, lacking, tt.want, tt.lacking)
		}
	}
}

// TestEntityList keeps the first error, and remembers which later entities were refused.
func TestEntityList(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	refused := yamlnode.Fault{Field: "a.b", Text: "is 1"}
	var c feature.EntityList
	for _, err := range []error{nil, first, second, refused} {
		c.Add(nil, err)
	}
	_, err := c.Result()
	if !errors.Is(err, first) || errors.Is(err, second) || !errors.Is(err, refused) || !strings.Contains(err.Error(), "a.b: is 1") {
		t.Errorf("error %v", err)
	}
}
