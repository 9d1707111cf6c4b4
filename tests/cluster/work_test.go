package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// flows is the number of flows of each worker.
const flows = 20

// callWait is the time after which a worker asks another member.
const callWait = 3 * time.Second

// work continuously changes weights and configurations at all members, and records the acknowledged changes.
type work struct {
	c      *trio
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	weights map[uint32]*value // by source port
	applied map[string]bool   // notes of the acknowledged configurations
	last    time.Time         // time of the last acknowledgement
	longest time.Duration     // between two acknowledgements
	acks    int
}

// value is the known state of a weight.
type value struct {
	acked float64
	maybe map[float64]bool // requested since then
}

func newWork(c *trio) *work {
	w := &work{c: c, weights: map[uint32]*value{}, applied: map[string]bool{}, last: time.Now()}
	ctx, cancel := context.WithCancel(c.t.Context())
	w.cancel = cancel
	for worker := range 2 {
		w.wg.Go(func() { w.weigh(ctx, worker) })
	}
	w.wg.Go(func() { w.apply(ctx) })
	return w
}

// stop ends the work, and returns the longest time without an acknowledgement.
func (w *work) stop() time.Duration {
	w.cancel()
	w.wg.Wait()
	return w.longest
}

// ack records an acknowledged change.
func (w *work) ack(then func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.longest = max(w.longest, now.Sub(w.last))
	w.last = now
	w.acks++
	then()
}

// count returns the number of acknowledged changes.
func (w *work) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acks
}

// try calls a member, and the next ones if it fails.
func (w *work) try(ctx context.Context, first int, call func(context.Context, *grpc.ClientConn) error) {
	for i := first; ctx.Err() == nil; i++ {
		one, cancel := context.WithTimeout(ctx, callWait)
		err := call(one, w.c.nodes[i%members].conn)
		cancel()
		switch status.Code(err) {
		case codes.OK:
			return
		case codes.InvalidArgument, codes.PermissionDenied, codes.FailedPrecondition, codes.Unimplemented:
			w.c.t.Errorf("a change was refused: %v", err)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (w *work) weigh(ctx context.Context, worker int) {
	for n := 1; ctx.Err() == nil; n++ {
		port, weight := uint32(1000*(worker+1)+n%flows), float64(n)
		w.mu.Lock()
		v := w.weights[port]
		if v == nil {
			v = &value{maybe: map[float64]bool{}}
			w.weights[port] = v
		}
		v.maybe[weight] = true
		w.mu.Unlock()
		w.try(ctx, worker, func(ctx context.Context, conn *grpc.ClientConn) error {
			_, err := pb.NewWeightServiceClient(conn).SetWeight(ctx, &pb.SetWeightRequest{
				Flow: &pb.FlowKey{SrcIpv4: "10.0.1.1", DstIpv4: "10.0.2.1", SrcPort: port, DstPort: 50151}, Weight: weight, Application: "web",
			})
			if err == nil {
				w.ack(func() { v.acked = weight; clear(v.maybe) })
			}
			return err
		})
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (w *work) apply(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		note := fmt.Sprintf("%d of %p", n, w)
		w.try(ctx, n, func(ctx context.Context, conn *grpc.ClientConn) error {
			_, err := pb.NewFabricServiceClient(conn).ApplyConfig(ctx, &pb.ApplyConfigRequest{Config: fmt.Sprintf(w.c.yaml, 100+n%2), File: "fabric.yaml", Why: note})
			if err == nil {
				w.ack(func() { w.applied[note] = true })
			}
			return err
		})
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// await waits until n more changes are acknowledged.
func (w *work) await(t *testing.T, more int) {
	t.Helper()
	want := w.count() + more
	for end := time.Now().Add(time.Minute); w.count() < want; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d changes were acknowledged, and no more within a minute", w.count())
		}
	}
}

// verify checks that the acknowledged changes are there. The work must have been stopped.
func (w *work) verify() error {
	var errs []error
	have := map[uint32]float64{}
	notes := map[string]bool{}
	w.try(w.c.t.Context(), 0, func(ctx context.Context, conn *grpc.ClientConn) error {
		list, err := pb.NewWeightServiceClient(conn).ListWeights(ctx, &pb.ListWeightsRequest{})
		if err != nil {
			return err
		}
		for _, f := range list.GetFlows() {
			have[f.GetFlow().GetSrcPort()] = f.GetWeight()
		}
		history, err := pb.NewFabricServiceClient(conn).ListHistory(ctx, &pb.ListHistoryRequest{})
		for i, c := range history.GetConfigs() {
			if notes[c.GetWhy()] = true; i > 0 && c.GetGeneration() != history.GetConfigs()[i-1].GetGeneration()+1 {
				errs = append(errs, fmt.Errorf("generation %d comes after %d", c.GetGeneration(), history.GetConfigs()[i-1].GetGeneration()))
			}
		}
		return err
	})
	for port, v := range w.weights {
		if v.acked != 0 && have[port] != v.acked && !v.maybe[have[port]] {
			errs = append(errs, fmt.Errorf("the weight of flow %d is %v, acknowledged was %v, and %v may be", port, have[port], v.acked, v.maybe))
		}
	}
	for note := range w.applied {
		if !notes[note] {
			errs = append(errs, fmt.Errorf("the configuration %q was acknowledged and is not in the history", note))
		}
	}
	return errors.Join(errs...)
}
