package northbound

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/priority"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/units"
)

// plan is the paper's plan over a base of 12 µs, with three priorities.
func plan(t *testing.T, noise units.Time) *config.Config {
	t.Helper()
	c, err := config.Parse("f.yaml", fmt.Appendf(nil, `
name: f
switches: [{name: s1, device_id: 1, address: "127.0.0.1:9559"}]
hosts: [{name: h1, ipv4: 10.0.0.1}]
links: [{a: "s1:1", b: h1, rate: 100Gbps}]
prioplus: {base_rtt: 12us, fluctuation: %v, noise: %v, priorities: 3}
`, channel.Paper(12*units.Microsecond).Fluctuation, noise), nil, priority.Section())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func configure(t *testing.T, r *rig, cfg *config.Config) {
	t.Helper()
	if _, err := r.priorities.Configure(cfg); err != nil {
		t.Fatal(err)
	}
}

const paperNoise = 800 * units.Nanosecond

func TestAllocatePriority(t *testing.T) {
	r := start(t)
	allocate := func(app string, n uint32) (*pb.Channel, error) {
		a, err := r.channel().AllocatePriority(t.Context(), &pb.AllocatePriorityRequest{Application: app, Priority: n})
		return a.GetChannel(), err
	}
	release := func(app string, n uint32) error {
		_, err := r.channel().ReleasePriority(t.Context(), &pb.ReleasePriorityRequest{Application: app, Priority: n})
		return err
	}
	if _, err := allocate("web", 1); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "section prioplus") {
		t.Errorf("without a plan: %v", err)
	}
	if l, err := r.channel().ListPriorities(t.Context(), &pb.ListPrioritiesRequest{}); err != nil || l.Plan != nil || len(l.Channels) != 0 {
		t.Errorf("without a plan: %v, %v", l, err)
	}
	configure(t, r, plan(t, paperNoise))
	c, err := allocate("web", 0)
	if err != nil || c.Priority != 1 || c.Application != "web" || c.Target.AsDuration() != 16000 || c.Limit.AsDuration() != 18400 || c.Base.AsDuration() != 12000 {
		t.Errorf("the lowest: %v, %v", c, err)
	}
	for _, tt := range []struct {
		name string
		err  error
		code codes.Code
		want string
	}{
		{"another's", second(allocate("batch", 1)), codes.FailedPrecondition, `priority 1 belongs to application "web"`},
		{"none such", second(allocate("batch", 4)), codes.InvalidArgument, "priority 4 is not allowed: want 1 to 3"},
		{"far beyond", second(allocate("batch", 1<<31)), codes.InvalidArgument, "want 1 to 65536"},
		{"release of none", release("web", 0), codes.InvalidArgument, "priority 0 is not allowed"},
		{"release of a free one", release("web", 3), codes.NotFound, "priority 3: is not allocated"},
		{"release of another's", release("batch", 1), codes.FailedPrecondition, `application "web"`},
	} {
		if status.Code(tt.err) != tt.code || !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("%s: %v, want %v with %q", tt.name, tt.err, tt.code, tt.want)
		}
	}
	for range 2 {
		if _, err := allocate("batch", 0); err != nil {
			t.Error(err)
		}
	}
	if _, err := allocate("batch", 0); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("none left: %v", err)
	}
	if err := release("web", 1); err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestWatchPriorities(t *testing.T) {
	r := start(t)
	configure(t, r, plan(t, paperNoise))
	stream, err := r.channel().WatchPriorities(t.Context(), &pb.WatchPrioritiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	next := func() *pb.ListPrioritiesResponse {
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if m := next(); m.Plan.GetNoise().AsDuration() != 800 || m.Plan.GetFluctuation().AsDuration() != 3200 || m.Plan.GetFlows() != 0 || len(m.Channels) != 3 || m.Channels[2].Target.AsDuration() != 24000 {
		t.Errorf("now: %v", m)
	}
	if _, err := r.priorities.Allocate(nil, "web", 2); err != nil {
		t.Fatal(err)
	}
	if m := next(); m.Channels[1].GetApplication() != "web" {
		t.Errorf("after an allocation: %v", m)
	}
	configure(t, r, plan(t, 2*units.Microsecond))
	if m := next(); m.Plan.GetNoise().AsDuration() != 2000 || m.Channels[2].Target.AsDuration() != 27600 || m.Channels[1].GetApplication() != "web" {
		t.Errorf("after more noise: %v", m)
	}
	r.stop()
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the end: %v", err)
	}
}

// A host's flow gets the channel of its virtual priority, a new channel as soon as the plan
// changes, and none that another application owns.
func TestAttachGivesChannels(t *testing.T) {
	r := start(t)
	configure(t, r, plan(t, paperNoise))
	if _, err := r.priorities.Allocate(nil, "web", 3); err != nil {
		t.Fatal(err)
	}
	wants := func(port, priority uint32, has *pb.Channel) *pb.FlowReport {
		f := reported("10.0.0.1", port, 1, "batch")
		f.VirtualPriority, f.Channel = priority, has
		return f
	}
	s := attach(t, r, "h1", wants(1, 2, nil), wants(2, 3, nil), wants(3, 0, nil), wants(4, 1<<30, nil))
	next := func() *pb.FlowChannel {
		t.Helper()
		for {
			m, err := s.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if c := m.GetChannel(); c != nil {
				return c
			}
		}
	}
	given := next()
	if given.Flow.SrcPort != 1 || given.Channel.GetTarget().AsDuration() != 20000 || given.Channel.GetLimit().AsDuration() != 22400 || given.Refused != "" {
		t.Errorf("priority 2: %v", given)
	}
	if c := next(); c.Flow.SrcPort != 2 || c.Channel != nil || !strings.Contains(c.Refused, `belongs to application "web"`) {
		t.Errorf("another's priority: %v", c)
	}
	if c := next(); c.Flow.SrcPort != 4 || !strings.Contains(c.Refused, "want 1 to 3") {
		t.Errorf("no such priority: %v", c)
	}
	// After that nothing is sent until the plan changes; refusals are not repeated.
	send(t, s, "h1", wants(1, 2, given.Channel), wants(2, 3, nil), wants(4, 1<<30, nil))
	configure(t, r, plan(t, 2*units.Microsecond))
	if c := next(); c.Flow.SrcPort != 1 || c.Channel.GetTarget().AsDuration() != 22400 {
		t.Errorf("after more noise: %v", c)
	}
	if err := r.priorities.Release(nil, "web", 3); err != nil {
		t.Fatal(err)
	}
	for {
		if c := next(); c.Flow.SrcPort == 2 {
			if c.Channel.GetTarget().AsDuration() != 27600 {
				t.Errorf("after the release: %v", c)
			}
			break
		}
	}
}
