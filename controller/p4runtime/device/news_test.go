package device

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/reconcile"
	"github.com/headgate/headgate/tests/switchtest"
)

// TestChangesBeforeComparisons: a link event's changes are written while a periodic comparison of the switch
// waits for its turn or reads the switch. The comparison is postponed, but not for ever.
func TestChangesBeforeComparisons(t *testing.T) {
	for _, queued := range []bool{true, false} {
		env := testenv.New(t, "../../..", nil)
		env.Config.Controller.ResyncInterval = time.Millisecond
		semaphore := NewReadSemaphore(1)
		semaphore.periodic <- struct{}{}
		var hang atomic.Bool          // reads do not end
		var reads, ended atomic.Int64 // number of reads begun or cancelled
		released := make(chan struct{})
		fake := switchtest.New(t, 1)
		fake.Start(grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			if strings.HasSuffix(info.FullMethod, "/Read") && hang.Load() {
				reads.Add(1)
				select {
				case <-ss.Context().Done():
					ended.Add(1)
					return ss.Context().Err()
				case <-released:
				}
			}
			return next(srv, ss)
		}))
		d := New(Options{
			Switch: config.Switch{Name: "s1", DeviceID: 1, Address: fake.Address(), PriorityQueues: 8}, ElectionID: 1, Pipeline: env.Pipeline,
			Reads: semaphore, RetryMin: time.Hour, RetryMax: time.Hour, Log: slog.New(slog.DiscardHandler),
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); d.Run(ctx) }()
		t.Cleanup(func() { cancel(); <-done })
		sessions := uint32(0)
		want := func() {
			state := &reconcile.State{}
			for i := range sessions {
				if err := state.Add(pipeline.CloneSession(i+1, 1)); err != nil {
					t.Fatal(err)
				}
			}
			sessions++
			d.SetDesired(Desired{Env: env, State: state})
		}
		want()
		if r := d.Wait(ctx); r.Error != "" {
			t.Fatalf("queued %v: %+v", queued, r)
		}
		hang.Store(true)
		if !queued {
			<-semaphore.periodic
		}
		for i := range int64(mostPutOff) {
			if !queued {
				eventually(t, "a comparison", func() bool { return reads.Load() == i+1 })
			}
			want()
			eventually(t, "the change", func() bool { return d.Stats().Updates == uint64(i)+1 })
			if r := d.Wait(ctx); r.Error != "" || r.Inserted != 1 || d.Status().State != pb.SwitchStatus_STATE_READY || d.Stats().Reads != 1 {
				t.Errorf("queued %v, change %d: %+v, %+v", queued, i, r, d.Status())
			}
		}
		if queued {
			continue
		}
		eventually(t, "one comparison more", func() bool { return reads.Load() == mostPutOff+1 })
		want()
		hang.Store(false)
		close(released)
		if r := d.Wait(ctx); r.Error != "" || d.Stats().Reads < 2 || ended.Load() != mostPutOff {
			t.Errorf("%d comparisons were given up, want %d, and the next one finished: %+v, %+v", ended.Load(), mostPutOff, r, d.Stats())
		}
	}
}
