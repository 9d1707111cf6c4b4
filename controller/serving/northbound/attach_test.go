package northbound

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/weights"
)

// hostStream is a host's end of Attach with the last command that it got.
type hostStream struct {
	grpc.BidiStreamingClient[pb.HostReport, pb.HostCommand]
	last string
}

func attach(t *testing.T, r *rig, host string, flows ...*pb.FlowReport) *hostStream {
	t.Helper()
	s, err := r.host().Attach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := &hostStream{BidiStreamingClient: s}
	send(t, h, host, flows...)
	return h
}

func send(t *testing.T, s *hostStream, host string, flows ...*pb.FlowReport) {
	t.Helper()
	if err := s.Send(&pb.HostReport{Host: host, Flows: flows}); err != nil {
		t.Fatal(err)
	}
}

func reported(src string, port uint32, weight float64, app string) *pb.FlowReport {
	return &pb.FlowReport{Flow: flow(src, port), Weight: weight, Application: app, RateBps: 7}
}

// expect reads commands and skips repeated ones, because a weight may be both pushed and answered.
func expect(t *testing.T, s *hostStream, want ...string) {
	t.Helper()
	for _, w := range want {
		got := s.last
		for got == s.last {
			m, err := s.Recv()
			if err != nil {
				t.Fatalf("%v, want %q", err, w)
			}
			if m.GetParameters() != nil {
				continue
			}
			got = fmt.Sprintf("%d %v %s", m.GetWeight().GetFlow().GetSrcPort(), m.GetWeight().GetWeight(), m.GetRefused())
		}
		s.last = got
		if !strings.HasPrefix(got, w) {
			t.Fatalf("command %q, want %q", got, w)
		}
	}
}

func TestAttachRegistersAndPushes(t *testing.T) {
	r := start(t)
	key := func(src string, port uint32) weights.Key {
		k, err := keyFromProto(flow(src, port))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	set := func(src string, port uint32, w float64) {
		t.Helper()
		if _, err := r.weights.Set(weights.Caller{Peer: "operator"}, weights.Change{Key: key(src, port), Weight: w, Application: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.weights.SetBudget(weights.Caller{Peer: "operator"}, "a", 5); err != nil {
		t.Fatal(err)
	}
	set("10.0.0.1", 1, 2) // registered before the host attaches
	set("10.0.0.2", 9, 1) // another host's
	s := attach(t, r, "h1", reported("10.0.0.1", 1, 1, "a"), reported("10.0.0.1", 2, 1, "a"), reported("10.0.0.1", 3, 4, "a"))
	expect(t, s,
		"1 2 ", // the report's weight differs from the registered one
		`3 0 application "a" is over its budget: in use 4 - before 0 + asked 4 = 8 > limit 5`,
		"1 2 ", "2 1 ") // the state
	if f, ok := r.weights.Flow(key("10.0.0.1", 2)); !ok || f.Host != "h1" {
		t.Errorf("flow 2 = %+v, %v", f, ok)
	}
	// The same refusal is sent once; a live change is pushed. Flow 1 is answered after flow 3 was refused again.
	send(t, s, "h1", reported("10.0.0.1", 2, 1, "a"), reported("10.0.0.1", 3, 4, "a"), reported("10.0.0.1", 1, 1, "a"))
	expect(t, s, "1 2 ")
	set("10.0.0.2", 9, 0.5)
	set("10.0.0.1", 2, 1.5)
	expect(t, s, "2 1.5 ")

	list, err := r.host().ListFlows(t.Context(), &pb.ListFlowsRequest{})
	if err != nil || len(list.GetHosts()) != 1 || len(list.GetHosts()[0].GetFlows()) != 3 || list.GetHosts()[0].GetTime() == nil {
		t.Errorf("ListFlows = %v, %v", list, err)
	}
	audited := false
	for _, e := range r.audit.List("", 100) {
		audited = audited || e.Peer == "host h1 at bufconn" && e.Flow == key("10.0.0.1", 3).String() && e.Refused != ""
	}
	if !audited {
		t.Errorf("the audit log lacks the refusal: %+v", r.audit.List("", 100))
	}

	// A flow that ends frees its weight in the budget.
	send(t, s, "h1", reported("10.0.0.1", 3, 2.5, "a"))
	expect(t, s, "3 2.5 ")
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ends with %v", err)
	}
	if list, err := r.host().ListFlows(t.Context(), &pb.ListFlowsRequest{}); err != nil || len(list.GetHosts()) != 0 {
		t.Errorf("after the host left: %v, %v", list, err)
	}
	if f, ok := r.weights.Flow(key("10.0.0.1", 3)); !ok || f.Weight.Float() != 2.5 {
		t.Errorf("a host that leaves for a moment loses its weight: %+v", f)
	}
}

// TestNewAddress: a host that gets another address while it is attached attaches again, and then has flows from
// that address.
func TestNewAddress(t *testing.T) {
	r := start(t)
	s := attach(t, r, "h1", reported("10.0.0.7", 1, 1, ""))
	expect(t, s, `1 0 src_ipv4: "10.0.0.7" is not allowed: want an address of host h1, 10.0.0.1`)
	r.backend.mu.Lock()
	r.backend.ipv4 = "10.0.0.7"
	r.backend.mu.Unlock()
	send(t, s, "h1", reported("10.0.0.7", 1, 1, ""))
	if _, err := s.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("a report from the new address: %v", err)
	}
	s = attach(t, r, "h1", reported("10.0.0.7", 1, 0, ""), reported("10.0.0.7", 2, 1, ""))
	expect(t, s, `1 0 weight: 0 is not allowed`)
}

func TestAttachRefuses(t *testing.T) {
	r := start(t)
	s := attach(t, r, "h9")
	if _, err := s.Recv(); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), `host: "h9" is not allowed: want a host of the configuration: h1, h2`) {
		t.Errorf("unknown host: %v", err)
	}
	bad := []*pb.FlowReport{
		reported("10.0.0.1", 1, 1, ""),
		{Flow: &pb.FlowKey{SrcIpv4: "10.0.0.2", SrcPort: 2, DstIpv4: "x", DstPort: 1}, Weight: 1},
		{Weight: 1},
		reported("10.0.0.2", 3, 0, ""),
	}
	s = attach(t, r, "h2", bad...)
	expect(t, s,
		`1 0 src_ipv4: "10.0.0.1" is not allowed: want an address of host h2, 10.0.0.2`,
		`2 0 dst_ipv4: "x" is not allowed`, `0 0 src_ipv4: "" is not allowed`, `3 0 weight: 0 is not allowed`)
	before := len(r.audit.List("", 100))
	send(t, s, "h2", append(bad, reported("10.0.0.2", 4, 1, ""))...)
	expect(t, s, "4 1 ")
	if after := len(r.audit.List("", 100)); before != 1 || after != 2 {
		t.Errorf("%d audit entries, then %d", before, after)
	}
	send(t, s, "h1")
	if _, err := s.Recv(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("another host's report: %v", err)
	}
}

func TestSecondAttachWins(t *testing.T) {
	r := start(t)
	first := attach(t, r, "h1", reported("10.0.0.1", 1, 1, ""))
	expect(t, first, "1 1 ")
	second := attach(t, r, "h1", reported("10.0.0.1", 1, 1, ""))
	expect(t, second, "1 1 ")
	if _, err := first.Recv(); status.Code(err) != codes.Aborted {
		t.Errorf("the first stream ends with %v", err)
	}
	if list, err := r.host().ListFlows(t.Context(), &pb.ListFlowsRequest{}); err != nil || len(list.GetHosts()) != 1 {
		t.Errorf("ListFlows = %v, %v", list, err)
	}
}

func TestWatchFlows(t *testing.T) {
	r := start(t)
	s := attach(t, r, "h1", reported("10.0.0.1", 1, 1, ""))
	expect(t, s, "1 1 ")
	watch, err := r.host().WatchFlows(t.Context(), &pb.WatchFlowsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	recv := func() *pb.HostReport {
		t.Helper()
		m, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if m := recv(); m.GetHost() != "h1" || len(m.GetFlows()) != 1 || m.GetFlows()[0].GetRateBps() != 7 {
		t.Errorf("state = %v", m)
	}
	send(t, s, "h1")
	if m := recv(); len(m.GetFlows()) != 0 || m.GetDetached() {
		t.Errorf("report = %v", m)
	}
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if m := recv(); !m.GetDetached() {
		t.Errorf("end = %v", m)
	}
}

// A host first gets the parameters that all hosts must share, and gets them again after a change.
func TestAttachGivesParameters(t *testing.T) {
	r := start(t)
	next := func(s *hostStream) *pb.HostParameters {
		t.Helper()
		for {
			m, err := s.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if m.GetParameters() != nil {
				return m.GetParameters()
			}
		}
	}
	s := attach(t, r, "h1")
	if m, err := s.Recv(); err != nil || m.GetParameters() == nil || len(m.GetParameters().GetParameters()) != 0 {
		t.Fatalf("the first command is %v, %v", m, err)
	}
	r.backend.mu.Lock()
	r.backend.parameters = []*pb.HostParameter{{Law: "l", Name: "p", Value: "6ms"}}
	r.backend.mu.Unlock()
	send(t, s, "h1")
	if got := next(s).GetParameters(); len(got) != 1 || got[0].GetLaw() != "l" || got[0].GetName() != "p" || got[0].GetValue() != "6ms" {
		t.Errorf("parameters %v", got)
	}
	// Unchanged parameters are not sent again: the next command is the weight.
	send(t, s, "h1", reported("10.0.0.1", 1, 1, ""))
	if m, err := s.Recv(); err != nil || m.GetWeight().GetFlow().GetSrcPort() != 1 {
		t.Errorf("command %v, %v", m, err)
	}
}
