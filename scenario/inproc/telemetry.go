package inproc

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

// Telemetry keeps each port's last sample, as the controller streams them. Its methods are
// safe for concurrent use.
type Telemetry struct {
	mu     sync.Mutex
	last   map[portID]*pb.TelemetrySample
	buried uint64 // drops that restarted switches had counted
}

type portID struct {
	sw   string
	port uint32
}

func newTelemetry() *Telemetry { return &Telemetry{last: map[portID]*pb.TelemetrySample{}} }

// follow reads the stream until ctx ends, and again when it breaks.
func (t *Telemetry) follow(ctx context.Context, api pb.FabricServiceClient) error {
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

func (t *Telemetry) take(s *pb.TelemetrySample) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := portID{s.Switch, s.Port}
	if old := t.last[id]; old != nil && s.Drops < old.Drops {
		t.buried += old.Drops
	}
	t.last[id] = s
}

// Drops returns the packets that the pipelines' admission refused so far.
func (t *Telemetry) Drops() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.buried
	for _, s := range t.last {
		n += s.Drops
	}
	return n
}

// Busiest returns the last sample of the switch's port with the most bytes queued.
func (t *Telemetry) Busiest(sw string) *pb.TelemetrySample {
	t.mu.Lock()
	defer t.mu.Unlock()
	var best *pb.TelemetrySample
	for id, s := range t.last {
		if id.sw != sw {
			continue
		}
		if best == nil || Queued(s) > Queued(best) || Queued(s) == Queued(best) && s.Port < best.Port {
			best = s
		}
	}
	return best
}

// Queued adds up the bytes in the queues of a sample's port.
func Queued(s *pb.TelemetrySample) uint64 {
	var n uint64
	for _, q := range s.QueueBytes {
		n += uint64(q)
	}
	return n
}
