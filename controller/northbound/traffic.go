package northbound

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// GetTraffic names hosts; what went to addresses that are no host's of the configuration is left out.
func (s *hostService) GetTraffic(context.Context, *pb.GetTrafficRequest) (*pb.GetTrafficResponse, error) {
	names := map[netip.Addr]string{}
	for _, h := range s.backend.Fabric().Hosts {
		text, _, _ := strings.Cut(h.IPv4, "/")
		if a, err := netip.ParseAddr(text); err == nil {
			names[a] = h.Name
		}
	}
	t := s.observed.Traffic()
	r := &pb.GetTrafficResponse{Now: timestamppb.New(time.Now())}
	if !t.Since.IsZero() {
		r.Since = timestamppb.New(t.Since)
	}
	for _, p := range t.Pairs {
		if names[p.Src] == "" || names[p.Dst] == "" {
			continue
		}
		r.Pairs = append(r.Pairs, &pb.TrafficPair{
			Src: names[p.Src], Dst: names[p.Dst], Bytes: p.Bytes, Begun: p.Begun, Ended: p.Ended, EndedBytes: p.EndedBytes, LargestBytes: p.Largest,
			Running: uint32(p.Running), Weight: p.Weight, VirtualPriority: p.Priority, MaxQd: p.MaxQD,
		})
	}
	for _, f := range t.FanIns {
		if names[f.Dst] != "" {
			r.FanIns = append(r.FanIns, &pb.FanIn{Dst: names[f.Dst], Degree: uint32(f.Degree)})
		}
	}
	return r, nil
}
