package scenario

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// telemetry keeps each port's last sample, as the controller streams them.
type telemetry struct {
	mu     sync.Mutex
	last   map[portID]*pb.TelemetrySample
	buried uint64 // drops that restarted switches had counted
}

type portID struct {
	sw   string
	port uint32
}

func newTelemetry() *telemetry { return &telemetry{last: map[portID]*pb.TelemetrySample{}} }

// follow reads the stream until ctx ends, and again when it breaks.
func (t *telemetry) follow(ctx context.Context, api pb.FabricServiceClient) error {
	for ctx.Err() == nil {
		stream, err := api.StreamTelemetry(ctx, &pb.StreamTelemetryRequest{}, grpc.WaitForReady(true))
		for err == nil {
			var s *pb.TelemetrySample
			if s, err = stream.Recv(); err == nil {
				t.take(s)
			}
		}
		if code := status.Code(err); code != codes.Unavailable && code != codes.Canceled && !errors.Is(err, io.EOF) && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

func (t *telemetry) take(s *pb.TelemetrySample) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := portID{s.Switch, s.Port}
	if old := t.last[id]; old != nil && s.Drops < old.Drops {
		t.buried += old.Drops
	}
	t.last[id] = s
}

// drops returns the packets that the pipelines' admission refused so far.
func (t *telemetry) drops() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.buried
	for _, s := range t.last {
		n += s.Drops
	}
	return n
}
