package northbound

import (
	"context"
	"net/netip"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/preview/observed"
)

// GetTraffic names hosts; what went to addresses that are no host's of the configuration is left out.
func (s *hostService) GetTraffic(context.Context, *pb.GetTrafficRequest) (*pb.GetTrafficResponse, error) {
	names := map[netip.Addr]string{}
	for _, h := range s.backend.Fabric().Hosts {
		for _, ip := range h.Addresses {
			names[ip] = h.Name
		}
	}
	t := s.observed.Traffic()
	r := &pb.GetTrafficResponse{Now: timestamppb.New(time.Now())}
	if !t.Since.IsZero() {
		r.Since = timestamppb.New(t.Since)
	}
	r.Pairs = pairsOf(t.Pairs, names)
	for _, f := range t.FanIns {
		if names[f.Dst] != "" {
			r.FanIns = append(r.FanIns, &pb.FanIn{Dst: names[f.Dst], Degree: uint32(f.Degree)})
		}
	}
	for _, c := range s.backend.Counted() {
		h := &pb.CountedHost{Host: c.Host, Switch: c.Switch, Pairs: pairsOf(c.Pairs, names), FanIn: uint32(c.FanIn)}
		if !c.Since.IsZero() {
			h.Since = timestamppb.New(c.Since)
		}
		r.Counted = append(r.Counted, h)
	}
	return r, nil
}

// pairsOf returns the pairs of hosts, by their names.
func pairsOf(list []observed.Pair, names map[netip.Addr]string) (out []*pb.TrafficPair) {
	for _, p := range list {
		if names[p.Src] == "" || names[p.Dst] == "" {
			continue
		}
		out = append(out, &pb.TrafficPair{
			Src: names[p.Src], Dst: names[p.Dst], Bytes: p.Bytes, Begun: p.Begun, Ended: p.Ended, EndedBytes: p.EndedBytes, LargestBytes: p.Largest,
			Running: uint32(p.Running), Weight: p.Weight, VirtualPriority: p.Priority, MaxQd: p.MaxQD,
			RunningBytes: p.RunningBytes, RunningBps: 8 * p.RunningRate,
		})
	}
	return out
}
