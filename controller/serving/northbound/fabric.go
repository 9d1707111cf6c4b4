package northbound

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/controller/serving/series"
	"github.com/headgate/headgate/controller/serving/tables"
	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/controller/state/outcome"
	"github.com/headgate/headgate/internal/version"
	"github.com/headgate/headgate/preview/observed"
	"github.com/headgate/headgate/units"
)

type fabricService struct {
	pb.UnimplementedFabricServiceServer
	Options
	fabric      func() *pb.GetFabricResponse
	leader      func(context.Context) (string, error) // name of the leading member; empty if there is none
	running     context.Context
	predictions observed.Predictions
	completions func() map[observed.Sizes]observed.Completions
	series      *series.Recorder
}

func (s *fabricService) GetFabric(ctx context.Context, _ *pb.GetFabricRequest) (*pb.GetFabricResponse, error) {
	leader, err := s.leader(ctx)
	if err != nil {
		return nil, status.Errorf(codes.Unavailable, "etcd does not say who leads: %v", err)
	}
	out := s.fabric()
	pb.Clean(out)
	out.Member, out.Build, out.Time = leader, version.String(), timestamppb.Now()
	return out, nil
}

func (s *fabricService) ListSwitches(_ context.Context, r *pb.ListSwitchesRequest) (*pb.ListSwitchesResponse, error) {
	out := &pb.ListSwitchesResponse{}
	for _, sw := range s.Backend.Switches() {
		if r.GetName() != "" && r.GetName() != sw.GetName() {
			continue
		}
		sw.Status = tables.FromStatus(sw.GetFeatures())
		pb.Clean(sw)
		sw.Events = s.Events.Recent(int(min(r.GetRecent(), events.DefaultBuffer)), func(e *pb.Event) bool { return e.GetSubject() == sw.GetName() })
		out.Switches = append(out.Switches, sw)
	}
	if r.GetName() != "" && len(out.Switches) == 0 {
		return nil, refused(codes.NotFound, pb.ReasonNodeNotFound, fmt.Errorf("there is no switch %q", clean(r.GetName())), nil)
	}
	return out, nil
}

// GetPredictions returns predictions beside measurements.
func (s *fabricService) GetPredictions(context.Context, *pb.GetPredictionsRequest) (*pb.GetPredictionsResponse, error) {
	return &pb.GetPredictionsResponse{Changes: s.predictions.List(s.Backend.Fabric().Generation, s.counters())}, nil
}

// counters reads the counters of switches and hosts.
func (s *fabricService) counters() observed.Counters {
	return observed.ReadCounters(time.Now(), s.Backend.Switches(), s.completions())
}

// maxFailures bounds the number of links that a plan assumes to fail together: there are too many triples.
const maxFailures = 2

func (s *fabricService) PlanConfig(ctx context.Context, r *pb.PlanConfigRequest) (*pb.PlanConfigResponse, error) {
	file := fileName(r.GetFile())
	if n := r.GetFailures(); n > maxFailures {
		return nil, invalid("failures", "%d is not allowed: want 0 to %d", n, maxFailures)
	}
	plan, err := s.Backend.Plan(ctx, file, []byte(r.GetConfig()), int(r.GetFailures()))
	if err != nil {
		return nil, configStatus(file, err)
	}
	return plan, nil
}

func (s *fabricService) ApplyConfig(ctx context.Context, r *pb.ApplyConfigRequest) (*pb.ApplyConfigResponse, error) {
	file := fileName(r.GetFile())
	if r.GetAllowLockout() {
		ctx = authz.AllowLockout(ctx)
	}
	note, err := noteOf(ctx, r)
	if err != nil {
		return nil, err
	}
	if field, text := observed.CheckPredictions(r.GetPredictedTraffic(), r.GetPredictions()); field != "" {
		return nil, invalid(field, "%s", text)
	}
	ctx = history.WithNote(ctx, note)
	before := s.Backend.Fabric()
	generation, results, err := s.Backend.Apply(ctx, file, []byte(r.GetConfig()))
	record(ctx, s.Audit, audit.Entry{
		What: audit.Apply, Subject: clean(file), Previous: float64(before.Generation), Value: float64(generation),
		Before: audit.Digest(before.Config), After: audit.Digest(r.GetConfig()),
	}, err)
	if err != nil {
		return nil, configStatus(file, err)
	}
	if !outcome.RequestFromContext(ctx).Again(nil) {
		now := s.Backend.Fabric()
		s.predictions.Applied(generation, clean(r.GetPredictedTraffic()), r.GetPredictions(), s.counters(), observed.Fabric{Links: len(now.Links), Scale: now.Scale})
	}
	return &pb.ApplyConfigResponse{Generation: generation, Switches: results}, nil
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
			return nil, invalid(n.field, `"" is not allowed: want the name of a switch or host`)
		}
	}
	before := s.Backend.Fabric()
	err := s.Backend.SetLink(ctx, a, b, r.GetUp())
	e := audit.Entry{What: audit.LinkDown, Subject: clean(a + " " + b), Before: stateOf(before.Links, a, b), After: "out of service"}
	if r.GetUp() {
		e.What, e.After = audit.LinkUp, "in service"
	}
	record(ctx, s.Audit, e, err)
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.SetLinkResponse{}, nil
}

// stateOf describes the state of the first link between two ends.
func stateOf(links []*pb.Link, a, b string) string {
	is := func(e *pb.Endpoint, name string) bool {
		return name == e.GetNode() || name == fmt.Sprintf("%s:%d", e.GetNode(), e.GetPort())
	}
	for _, l := range links {
		if is(l.A, a) && is(l.B, b) || is(l.A, b) && is(l.B, a) {
			return pb.Word(l.GetState())
		}
	}
	return ""
}

// sendEach sends each value that next returns until the stream or the server ends.
func sendEach[T any](stream grpc.ServerStream, running context.Context, next func(context.Context) (T, error), send func(T) error) error {
	ctx, cancel := until(stream.Context(), running)
	defer cancel()
	for {
		v, err := next(ctx)
		if err != nil {
			return streamEnd(ctx, err)
		}
		if err := send(v); err != nil {
			return err
		}
	}
}

// published holds the values that a bus has published since the last time, and how many earlier ones a slow client
// has missed.
type published[T any] struct {
	list   []T
	missed uint64
}

// follow sends the earlier values and then, by sendEach, the values of a subscription. It closes the subscription.
func follow[T any](stream grpc.ServerStream, running context.Context, before []T, sub *events.Subscription[T], send func(published[T]) error) error {
	defer sub.Close()
	if err := stream.SendHeader(nil); err != nil { // the client misses nothing after it has received the header
		return err
	}
	if err := send(published[T]{list: before}); err != nil {
		return err
	}
	return sendEach(stream, running, func(ctx context.Context) (p published[T], err error) {
		p.list, p.missed, err = sub.Next(ctx)
		return p, err
	}, send)
}

func (s *fabricService) WatchEvents(r *pb.WatchEventsRequest, stream grpc.ServerStreamingServer[pb.Event]) error {
	o := events.Options[*pb.Event]{Recent: int(min(r.GetRecent(), events.DefaultBuffer))}
	dropped := func(format string, args ...any) *pb.Event {
		return &pb.Event{Time: timestamppb.Now(), Severity: pb.Event_SEVERITY_WARNING, Subject: "api", Kind: "stream.dropped", Message: fmt.Sprintf(format, args...)}
	}
	var before []*pb.Event
	if after := r.GetAfter(); after != "" {
		n, ours, err := s.Events.Number(after)
		if err != nil {
			return invalid("after", "%q is not allowed: want the cursor of an event", clean(after))
		}
		o.Recent, o.After = events.DefaultBuffer, n
		if !ours {
			o.After = 0
			before = append(before, dropped("the cursor %s belongs to another controller or another start: the events after it are not known", clean(after)))
		}
	}
	return follow(stream, s.running, before, s.Events.Subscribe(o), func(p published[*pb.Event]) error {
		if p.missed > 0 {
			p.list = slices.Insert(p.list, 0, dropped("this client missed %s", units.Count(p.missed, "event")))
		}
		for _, e := range p.list {
			if err := stream.Send(e); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *fabricService) StreamTelemetry(r *pb.StreamTelemetryRequest, stream grpc.ServerStreamingServer[pb.TelemetrySample]) error {
	if err := s.checkSwitches(r.GetSwitches()); err != nil {
		return err
	}
	o := events.Options[feature.Sample]{}
	if names := r.GetSwitches(); len(names) > 0 {
		o.Match = func(v feature.Sample) bool { return slices.Contains(names, v.Switch) }
	}
	return follow(stream, s.running, nil, s.Samples.Subscribe(o), func(p published[feature.Sample]) error {
		for i, v := range p.list {
			m := sampleToProto(v)
			if i == 0 {
				m.Missed = p.missed
			}
			if err := stream.Send(m); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkSwitches refuses unknown names, for which a call would wait for ever.
func (s *fabricService) checkSwitches(names []string) error {
	if len(names) == 0 {
		return nil
	}
	var known []string
	for _, sw := range s.Backend.Switches() {
		known = append(known, sw.GetName())
	}
	for i, n := range names {
		if !slices.Contains(known, n) {
			field := fmt.Sprintf("switches[%d]", i)
			return invalid(field, "%q is not allowed: want one of %s", n, strings.Join(known, ", "))
		}
	}
	return nil
}

// noteOf reads the note of a request to apply a configuration.
func noteOf(ctx context.Context, r *pb.ApplyConfigRequest) (history.Note, error) {
	n := history.Note{By: authz.CallerFromContext(ctx).Name, Why: r.GetWhy(), Expect: r.ExpectGeneration, Confirm: r.GetConfirm().AsDuration()}
	if len(n.Why) > history.MaxWhy || strings.ContainsFunc(n.Why, unicode.IsControl) {
		return n, invalid("why", "%d bytes are not allowed: want one line of at most %d", len(n.Why), history.MaxWhy)
	}
	if n.Confirm != 0 && (n.Confirm < history.MinConfirm || n.Confirm > history.MaxConfirm) {
		return n, invalid("confirm", "%v is not allowed: want %v to %v, or 0", n.Confirm, history.MinConfirm, history.MaxConfirm)
	}
	return n, nil
}

func (s *fabricService) ConfirmConfig(ctx context.Context, r *pb.ConfirmConfigRequest) (*pb.ConfirmConfigResponse, error) {
	e, err := s.History.Confirm(ctx, r.GetGeneration())
	record(ctx, s.Audit, audit.Entry{What: audit.Confirm, Subject: clean(e.File), Value: float64(e.Generation)}, err)
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.ConfirmConfigResponse{Generation: e.Generation}, nil
}

func (s *fabricService) ListHistory(_ context.Context, r *pb.ListHistoryRequest) (*pb.ListHistoryResponse, error) {
	out := &pb.ListHistoryResponse{}
	list := s.History.List()
	for i, e := range list {
		if n := r.GetGeneration(); n != 0 && n != e.Generation {
			continue
		}
		c := &pb.AppliedConfig{
			Generation: e.Generation, File: clean(e.File), Applied: timestamppb.New(e.Applied), By: clean(e.By), Why: clean(e.Why),
		}
		if r.GetGeneration() != 0 {
			c.Config = clean(e.YAML)
		}
		if e.Confirm != 0 && i == len(list)-1 {
			c.ConfirmUntil = timestamppb.New(e.Applied.Add(e.Confirm))
		}
		out.Configs = append(out.Configs, c)
	}
	if r.GetGeneration() != 0 && len(out.Configs) == 0 {
		err := errors.New("the history holds none")
		if len(list) > 0 {
			err = fmt.Errorf("the history begins with generation %d and ends with %d", list[0].Generation, list[len(list)-1].Generation)
		}
		return nil, refused(codes.NotFound, pb.ReasonGenerationNotFound, fmt.Errorf("generation %d: %w", r.GetGeneration(), err), nil)
	}
	return out, nil
}

// maxLaw bounds the name of a law that a host reports, in bytes.
const maxLaw = 32

func (s *fabricService) GetSeries(_ context.Context, r *pb.GetSeriesRequest) (*pb.GetSeriesResponse, error) {
	q := series.Query{Node: r.GetNode(), Port: r.GetPort(), Busiest: int(r.GetBusiest())}
	if r.GetFlow() != nil {
		var err error
		if q.Flow, err = keyFromProto(r.GetFlow()); err != nil {
			return nil, toStatus(err)
		}
	}
	if r.GetAfter() != nil {
		q.After = r.GetAfter().AsTime()
	}
	out, known := s.series.Get(q)
	if !known {
		return nil, refused(codes.NotFound, pb.ReasonNodeNotFound, fmt.Errorf("node: there is no switch or host %q", clean(r.GetNode())), nil)
	}
	return out, nil
}

// flows returns the flows that have a key in the attached hosts' last reports.
func (s *hostService) flows() (list []series.Flow) {
	for _, r := range s.hosts.list() {
		for _, f := range r.GetFlows() {
			k, err := keyFromProto(f.GetFlow())
			if err != nil {
				continue
			}
			list = append(list, series.Flow{
				Host: r.GetHost(), Law: clean(f.GetLaw()[:min(len(f.GetLaw()), maxLaw)]), Key: k, Weight: f.GetWeight(), Acked: f.GetAckedBytes(), RateBPS: f.GetRateBps(), Reported: r.GetTime().AsTime(),
			})
		}
	}
	return list
}
