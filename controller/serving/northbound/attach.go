package northbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/priority"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/conduct"
	"github.com/headgate/headgate/preview/observed"
)

type hostService struct {
	pb.UnimplementedHostServiceServer
	backend    Backend
	weights    *weights.Registry
	priorities *priority.Registry
	hosts      *hostTable
	observed   observed.Table
	conduct    *conduct.Judge
	running    context.Context
}

func newHostService(o Options, running context.Context) *hostService {
	s := &hostService{backend: o.Backend, weights: o.Weights, priorities: o.Priorities, running: running, conduct: o.Conduct}
	s.hosts = newHostTable(o.Lease, o.Weights.Hosts(), func(host string) {
		if _, err := o.Weights.Report(weights.Caller{Peer: fmt.Sprintf("host %s, not attached for %v", host, o.Lease)}, host, nil); err != nil {
			o.Log.Error("the weights of a host that is gone remain", "host", host, "err", err)
		}
	})
	context.AfterFunc(running, s.hosts.close)
	return s
}

func (s *hostService) ListFlows(_ context.Context, r *pb.ListFlowsRequest) (*pb.ListFlowsResponse, error) {
	hosts, next, err := page(s.hosts.list(), r, (*pb.HostReport).GetHost)
	if err != nil {
		return nil, err
	}
	return &pb.ListFlowsResponse{Hosts: hosts, NextPageToken: next}, nil
}

func (s *hostService) WatchFlows(_ *pb.WatchFlowsRequest, stream grpc.ServerStreamingServer[pb.HostReport]) error {
	list, sub := s.hosts.follow()
	return follow(stream, s.running, list, sub, func(p published[*pb.HostReport]) error {
		for _, r := range p.list { // each report replaces the previous one, so missed reports need no mark
			if err := stream.Send(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// Attach runs one host's stream. One goroutine receives and another waits for weights. This goroutine does
// everything else, so the host's state needs no lock.
func (s *hostService) Attach(stream grpc.BidiStreamingServer[pb.HostReport, pb.HostCommand]) error {
	base, cancel := until(stream.Context(), s.running)
	defer cancel()
	ctx, cancelCause := context.WithCancelCause(base)
	defer cancelCause(nil)

	reports, received := pump(ctx, stream.Recv)
	var first *pb.HostReport
	select {
	case first = <-reports:
	case err := <-received:
		return attachEnd(err)
	case <-ctx.Done():
		return streamEnd(ctx, ctx.Err())
	}
	a := &attached{service: s, stream: stream, host: first.GetHost()}
	by := callerOf(ctx)
	a.by = weights.Caller{Identity: by.Identity, Applications: by.Applications, Peer: fmt.Sprintf("host %s at %s", clean(a.host), by.Peer)}
	if err := a.findAddress(); err != nil {
		return err
	}
	me := &attachment{cancel: cancelCause}
	if err := s.hosts.attach(ctx, a.host, me); err != nil {
		return streamEnd(ctx, err)
	}
	defer s.detach(a.host, me)
	if err := a.handleReport(me, first); err != nil {
		return err
	}

	own := a.addresses
	watcher := s.weights.Watch(func(f weights.Flow) bool { return slices.Contains(own, f.Key.Src().Addr()) }, 0)
	defer watcher.Close()
	batches, _ := pump(ctx, func() (weights.Batch, error) { return watcher.Next(ctx) })
	for {
		var err error
		select {
		case <-ctx.Done():
			return streamEnd(ctx, ctx.Err())
		case err := <-received:
			return attachEnd(err)
		case r := <-reports:
			err = a.handleReport(me, r)
		case b := <-batches:
			err = a.push(b)
		case <-a.changed:
			err = a.sendChannels()
		}
		if err != nil {
			return err
		}
	}
}

// detach takes a stream's host out of the tables, unless a newer stream has replaced this one.
func (s *hostService) detach(host string, me *attachment) {
	if s.hosts.detach(host, me) {
		s.observed.Gone(host)
		s.judge(host, nil)
	}
}

// judge passes a host's report to the judge of conduct, if there is one.
func (s *hostService) judge(host string, flows []conduct.Flow) {
	if s.conduct != nil {
		s.conduct.Reported(host, time.Now(), flows)
	}
}

// attachEnd makes the end of a stream that the host closed a success.
func attachEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return toStatus(err)
}

// pump calls next in a goroutine and passes the values on, until next fails or ctx ends. The second channel then gets the error.
func pump[T any](ctx context.Context, next func() (T, error)) (<-chan T, <-chan error) {
	values, ended := make(chan T), make(chan error, 1)
	go func() {
		for {
			v, err := next()
			if err != nil {
				ended <- err
				return
			}
			select {
			case values <- v:
			case <-ctx.Done():
				return
			}
		}
	}()
	return values, ended
}

// attached is the state of one Attach stream. Only the stream's handler uses it.
type attached struct {
	service   *hostService
	stream    grpc.BidiStreamingServer[pb.HostReport, pb.HostCommand]
	host      string
	by        weights.Caller
	addresses []netip.Addr      // addresses of the host
	refusals  map[string]string // refusals sent, by flow; replaced with every report

	parameters []*pb.HostParameter // parameters that the host has received
	greeted    bool                // the host has received parameters, even if there are none

	flows   []*pb.FlowReport  // flows of the last report that start at the host
	changed <-chan struct{}   // closed when the flows' channels may have changed
	refused map[string]string // refusals of channels sent, by flow
}

// findAddress looks the host up in the configuration.
func (a *attached) findAddress() error {
	var known []string
	for _, h := range a.service.backend.Fabric().Hosts {
		known = append(known, h.Name)
		if h.Name != a.host {
			continue
		}
		a.addresses = h.Addresses()
		return nil
	}
	return invalid("host", "%q is not allowed: want a host of the configuration: %s", a.host, strings.Join(known, ", "))
}

// handleReport registers the flows of a report. It answers with refusals (once per reason) and with weights that
// the host does not apply yet.
func (a *attached) handleReport(me *attachment, r *pb.HostReport) error {
	r.Time, r.Detached = timestamppb.New(time.Now()), false
	if r.GetHost() != a.host && r.GetHost() != "" {
		return invalid("host", "%q is not allowed: this stream is that of host %q", r.GetHost(), a.host)
	}
	r.Host = a.host
	a.service.hosts.report(a.host, me, r)
	if err := a.sendParameters(); err != nil {
		return err
	}

	changes := make([]weights.Change, 0, len(r.GetFlows()))
	reports := make([]*pb.FlowReport, 0, len(r.GetFlows()))
	seen := make([]observed.Flow, 0, len(r.GetFlows()))
	flows := make([]conduct.Flow, 0, len(r.GetFlows()))
	refusals, looked := map[string]string{}, false // looked is set once the host's address was looked up again
	for _, f := range r.GetFlows() {
		k, err := a.key(f.GetFlow())
		if err != nil {
			if own := a.addresses; !looked && a.findAddress() == nil && !slices.Equal(own, a.addresses) {
				return status.Errorf(codes.Unavailable, "the addresses of host %s have changed: attach again", a.host)
			}
			looked = true
			name := keyText(f.GetFlow())
			if a.refusals[name] == "" {
				a.service.weights.Refuse(audit.Entry{
					Identity: a.by.Identity, Peer: a.by.Peer, Application: f.GetApplication(), Flow: k.String(), Value: f.GetWeight(), What: audit.Weight,
				}, err)
			}
			if err := a.refuse(refusals, name, f, err); err != nil {
				return err
			}
			continue
		}
		changes = append(changes, weights.Change{Key: k, Weight: f.GetWeight(), Application: f.GetApplication()})
		reports = append(reports, f)
		seen = append(seen, observed.Flow{
			Src: k.Src(), Dst: k.Dst(), Acked: f.GetAckedBytes(), Weight: f.GetWeight(), Priority: f.GetVirtualPriority(), MaxQD: f.GetMaxQd().AsDuration() > 0,
		})
		flows = append(flows, conduct.Flow{
			Src: k.Src(), Dst: k.Dst(), Law: f.GetLaw(), Acked: f.GetAckedBytes(), Weight: f.GetWeight(),
			MaxQD: max(f.GetMaxQd().AsDuration(), 0), RTT: max(f.GetRtt().AsDuration(), 0),
		})
	}
	a.service.observed.Report(a.host, r.GetTime().AsTime(), seen)
	a.service.judge(a.host, flows)
	ended := map[observed.Sizes]observed.Completions{}
	for _, c := range r.GetCompletions() {
		ended[observed.Sizes{From: c.GetFromBytes(), Below: c.GetBelowBytes()}] = observed.Completions{Flows: c.GetFlows(), FCT: pb.Nanoseconds(c.GetFct()), Slowdown: c.GetSlowdown()}
	}
	a.service.observed.Completed(a.host, ended)
	answers, err := a.service.weights.Report(a.by, a.host, changes)
	if err != nil {
		return toStatus(err)
	}
	for i, answer := range answers {
		if answer.Refused != nil {
			if err := a.refuse(refusals, keyText(reports[i].GetFlow()), reports[i], answer.Refused); err != nil {
				return err
			}
			continue
		}
		if w, err := weights.FromFloat(reports[i].GetWeight()); err == nil && w == answer.Flow.Weight {
			continue
		}
		if err := a.stream.Send(&pb.HostCommand{Weight: flowToProto(answer.Flow)}); err != nil {
			return err
		}
	}
	a.refusals, a.flows = refusals, reports
	return a.sendChannels()
}

// sendParameters sends the parameters that all hosts share, first and after each change.
func (a *attached) sendParameters() error {
	now := a.service.backend.HostParameters()
	if a.greeted && slices.EqualFunc(a.parameters, now, func(p, q *pb.HostParameter) bool { return proto.Equal(p, q) }) {
		return nil
	}
	a.parameters, a.greeted = now, true
	return a.stream.Send(&pb.HostCommand{Parameters: &pb.HostParameters{Parameters: now}})
}

// keyText returns the text of a flow as the host sent it, even if it is invalid.
func keyText(k *pb.FlowKey) string {
	return fmt.Sprintf("%s:%d,%s:%d", k.GetSrcIpv4(), k.GetSrcPort(), k.GetDstIpv4(), k.GetDstPort())
}

// key reads a reported flow and refuses one that starts at another host.
func (a *attached) key(p *pb.FlowKey) (weights.Key, error) {
	k, err := keyFromProto(p)
	if err != nil || slices.Contains(a.addresses, k.Src().Addr()) {
		return k, err
	}
	return k, &weights.InvalidError{
		Field: "src_ipv4", Value: fmt.Sprintf("%q", p.GetSrcIpv4()), Allowed: fmt.Sprintf("an address of host %s, %s", a.host, strings.Trim(fmt.Sprint(a.addresses), "[]")),
	}
}

func (a *attached) refuse(refusals map[string]string, name string, f *pb.FlowReport, reason error) error {
	text := clean(reason.Error())
	refusals[name] = text
	if a.refusals[name] == text {
		return nil
	}
	return a.stream.Send(&pb.HostCommand{
		Weight:  &pb.FlowWeight{Flow: f.GetFlow(), Application: f.GetApplication()},
		Refused: text,
	})
}

// push sends the weights of a batch. A deleted flow is not sent. If the host still has the flow, it reports it, and
// the flow is registered again.
func (a *attached) push(b weights.Batch) error {
	for _, u := range b.Updates {
		if u.Budget != nil || u.Deleted {
			continue
		}
		if err := a.stream.Send(&pb.HostCommand{Weight: flowToProto(u.Flow)}); err != nil {
			return err
		}
	}
	return nil
}
