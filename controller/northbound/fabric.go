package northbound

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/events"
	"github.com/headgate/headgate/controller/view"
)

type fabricService struct {
	pb.UnimplementedFabricServiceServer
	Options
	running context.Context
}

func (s *fabricService) GetFabric(context.Context, *pb.GetFabricRequest) (*pb.GetFabricResponse, error) {
	return fabricToProto(s.Backend.Fabric()), nil
}

func (s *fabricService) ListSwitches(context.Context, *pb.ListSwitchesRequest) (*pb.ListSwitchesResponse, error) {
	r := &pb.ListSwitchesResponse{}
	for _, sw := range s.Backend.Switches() {
		r.Switches = append(r.Switches, switchToProto(sw))
	}
	return r, nil
}

func (s *fabricService) PlanConfig(ctx context.Context, r *pb.PlanConfigRequest) (*pb.PlanConfigResponse, error) {
	file := fileName(r.GetFile())
	plans, err := s.Backend.Plan(ctx, file, []byte(r.GetConfig()))
	if err != nil {
		return nil, configStatus(file, err)
	}
	out := &pb.PlanConfigResponse{}
	for _, p := range plans {
		out.Switches = append(out.Switches, planToProto(p))
	}
	return out, nil
}

func (s *fabricService) ApplyConfig(ctx context.Context, r *pb.ApplyConfigRequest) (*pb.ApplyConfigResponse, error) {
	file := fileName(r.GetFile())
	generation, results, err := s.Backend.Apply(ctx, file, []byte(r.GetConfig()))
	if err != nil {
		return nil, configStatus(file, err)
	}
	out := &pb.ApplyConfigResponse{Generation: generation}
	for _, p := range results {
		out.Switches = append(out.Switches, &pb.SwitchResult{
			Name: clean(p.Switch), Inserted: uint32(p.Inserted), Modified: uint32(p.Modified), Deleted: uint32(p.Deleted), Error: clean(p.Err),
		})
	}
	return out, nil
}

func fileName(name string) string {
	if name == "" {
		return "configuration"
	}
	return name
}

func (s *fabricService) SetLink(ctx context.Context, r *pb.SetLinkRequest) (*pb.SetLinkResponse, error) {
	a, b := r.GetA(), r.GetB()
	for _, n := range []struct{ field, name string }{{"a", a}, {"b", b}} {
		if n.name == "" {
			text := `"" is not allowed: want the name of a switch or host`
			return nil, violations(n.field+": "+text, violation(n.field, text))
		}
	}
	var peers []string
	for _, l := range s.Backend.Fabric().Links {
		switch {
		case isEnd(l.A, a) && isEnd(l.B, b), isEnd(l.A, b) && isEnd(l.B, a):
			if err := s.Backend.SetLink(ctx, a, b, r.GetUp()); err != nil {
				return nil, toStatus(err)
			}
			return &pb.SetLinkResponse{}, nil
		case isEnd(l.A, a):
			peers = append(peers, l.B.Node)
		case isEnd(l.B, a):
			peers = append(peers, l.A.Node)
		}
	}
	if len(peers) == 0 {
		return nil, status.Errorf(codes.NotFound, "no link joins %q and %q: the fabric has no link at %q", a, b, a)
	}
	slices.Sort(peers)
	return nil, status.Errorf(codes.NotFound, "no link joins %q and %q: %q has links to %s", a, b, a, strings.Join(slices.Compact(peers), ", "))
}

// isEnd says whether a name is that of an end of a link: a node, or a port of it as leaf1:3.
func isEnd(e view.Endpoint, name string) bool {
	return e.Node == name || e.Port != 0 && fmt.Sprintf("%s:%d", e.Node, e.Port) == name
}

func (s *fabricService) WatchEvents(r *pb.WatchEventsRequest, stream grpc.ServerStreamingServer[pb.Event]) error {
	ctx, cancel := until(stream.Context(), s.running)
	defer cancel()
	sub := s.Events.Subscribe(events.Options[view.Event]{Recent: int(min(r.GetRecent(), events.DefaultBuffer))})
	defer sub.Close()
	if err := stream.SendHeader(nil); err != nil { // tells the client that it misses nothing from here on
		return err
	}
	for {
		list, dropped, err := sub.Next(ctx)
		if err != nil {
			return streamEnd(ctx, err)
		}
		if dropped > 0 {
			err := stream.Send(&pb.Event{
				Time: timestamppb.New(time.Now()), Severity: pb.Event_SEVERITY_WARNING, Subject: "api", Kind: "stream.dropped",
				Message: fmt.Sprintf("this client reads too slowly and missed %d events", dropped),
			})
			if err != nil {
				return err
			}
		}
		for _, e := range list {
			if err := stream.Send(eventToProto(e)); err != nil {
				return err
			}
		}
	}
}

func (s *fabricService) StreamTelemetry(r *pb.StreamTelemetryRequest, stream grpc.ServerStreamingServer[pb.TelemetrySample]) error {
	if err := s.checkSwitches(r.GetSwitches()); err != nil {
		return err
	}
	ctx, cancel := until(stream.Context(), s.running)
	defer cancel()
	o := events.Options[view.Sample]{}
	if names := r.GetSwitches(); len(names) > 0 {
		wanted := make(map[string]bool, len(names))
		for _, n := range names {
			wanted[n] = true
		}
		o.Match = func(v view.Sample) bool { return wanted[v.Switch] }
	}
	sub := s.Samples.Subscribe(o)
	defer sub.Close()
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	for {
		list, dropped, err := sub.Next(ctx)
		if err != nil {
			return streamEnd(ctx, err)
		}
		for i, v := range list {
			m := sampleToProto(v)
			if i == 0 {
				m.Missed = dropped
			}
			if err := stream.Send(m); err != nil {
				return err
			}
		}
	}
}

// checkSwitches refuses names that would wait for ever.
func (s *fabricService) checkSwitches(names []string) error {
	if len(names) == 0 {
		return nil
	}
	var known []string
	for _, sw := range s.Backend.Switches() {
		known = append(known, sw.Name)
	}
	for i, n := range names {
		if !slices.Contains(known, n) {
			field := fmt.Sprintf("switches[%d]", i)
			text := fmt.Sprintf("%q is not allowed: want one of %s", n, strings.Join(known, ", "))
			return violations(field+": "+text, violation(field, text))
		}
	}
	return nil
}
