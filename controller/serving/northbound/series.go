package northbound

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/serving/series"
)

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

// flows returns the running flows that the attached hosts reported last and that have a key.
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
