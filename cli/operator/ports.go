package operator

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/preview"
	"github.com/headgate/headgate/units"
)

// portWatch is for how long ports are watched: of their polls, every 100 ms by default, some ten.
const portWatch = time.Second

// portsOf gets the hosts' reports. If some of the configuration's hosts neither report nor were
// counted, it watches the ports for a second.
func portsOf(ctx context.Context, e *env, c *config.Config, seen *pb.GetTrafficResponse) (p preview.Ports, err error) {
	flows, err := e.host().ListFlows(ctx, &pb.ListFlowsRequest{})
	if err != nil {
		return p, err
	}
	if p.Hosts = flows.GetHosts(); len(p.Unseen(c, seen)) == 0 {
		return p, nil
	}
	ctx, cancel := context.WithTimeout(ctx, portWatch)
	defer cancel()
	stream, err := e.fabric().StreamTelemetry(ctx, &pb.StreamTelemetryRequest{})
	if err != nil {
		return p, err
	}
	type port struct {
		node   string
		number uint32
	}
	first := map[port]*pb.TelemetrySample{}
	p.Rates = map[string]units.Rate{}
	for {
		v, err := stream.Recv()
		switch {
		case status.Code(err) == codes.DeadlineExceeded, errors.Is(err, io.EOF):
			return p, nil
		case err != nil:
			return p, err
		}
		at := port{v.GetSwitch(), v.GetPort()}
		old := first[at]
		if old == nil || v.GetDepartureBytes() < old.GetDepartureBytes() { // the switch was restarted
			first[at] = v
		} else if took := v.GetTime().AsTime().Sub(old.GetTime().AsTime()); took > 0 && c.Host(v.GetPeer()) != nil {
			p.Rates[v.GetPeer()] = units.RateOf(units.Bytes(v.GetDepartureBytes()-old.GetDepartureBytes()), units.FromDuration(took))
		}
	}
}
