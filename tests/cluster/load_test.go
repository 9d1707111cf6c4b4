package cluster

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// The keys that clients use: registers, locks, and a counter.
const (
	registers  = 4
	locks      = 3
	counterKey = "generation"
)

// The clients' timeouts: for an answer, for a read's answer, and for an outcome when they repeat a request.
const (
	tryWait  = 2 * time.Second
	readWait = 12 * time.Second
	patience = 40 * time.Second
)

// load is the clients of all members, and their history.
type load struct {
	c     *trio
	h     *History
	round int
	wg    sync.WaitGroup
	stop  chan struct{}

	asked, again, unknown, notMade, reads, lost atomic.Int64 // number of calls; lost counts reads without an answer
	values, clients                             atomic.Int64
}

// newLoad records the initial values and starts the clients.
func newLoad(t *testing.T, c *trio, round int) *load {
	t.Helper()
	l := &load{c: c, h: newHistory(), round: round, stop: make(chan struct{})}
	ctx := t.Context()
	at, generation, owners := l.first(t)
	l.h.Add(0, at, Op{Kind: Start, Key: counterKey, Value: generation}, Result{})
	for i, v := range owners {
		l.h.Add(0, at, Op{Kind: Start, Key: lockKey(i), Value: v}, Result{})
	}
	for i := range 4 {
		l.client(t, func(n int) { l.weigh(t, n, i%2 == 0) }, 15*time.Millisecond)
	}
	for range 2 {
		l.client(t, func(n int) { l.lock(t, n) }, 20*time.Millisecond)
	}
	for i := range 3 {
		l.client(t, func(n int) { l.apply(t, n, i != 0, i == 2) }, 200*time.Millisecond)
	}
	for _, n := range c.nodes {
		l.client(t, func(client int) { l.read(ctx, client, n) }, 10*time.Millisecond)
		for range 4 { // some wait longer than a member is frozen
			l.client(t, func(client int) { l.read(ctx, client, n) }, 300*time.Millisecond)
		}
	}
	return l
}

// first reads the initial values, once a member answers.
func (l *load) first(t *testing.T) (at, generation int64, owners []int64) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		at = l.h.Now()
		generation, err := l.history(t.Context(), l.c.leader())
		owners, err2 := l.owners(t.Context(), l.c.leader())
		if err == nil && err2 == nil && len(owners) == locks && generation > 0 {
			return at, generation, owners
		}
		if time.Now().After(end) {
			t.Fatal(err, err2)
		}
	}
}

// client makes a call again and again, with its number, until the load ends.
func (l *load) client(t *testing.T, call func(client int), pause time.Duration) {
	n := int(l.clients.Add(1))
	l.wg.Go(func() {
		for !t.Failed() {
			call(n)
			select {
			case <-l.stop:
				return
			case <-time.After(pause/2 + mathrand.N(pause)):
			}
		}
	})
}

func registerKey(round, i int) string { return fmt.Sprintf("weight-%d-%d", round, i) }
func lockKey(i int) string            { return fmt.Sprintf("priority-%d", i+1) }

func (l *load) port(i int) uint32 { return uint32(2000 + l.round*registers + i) }

// reason returns the reason in the error of a change.
func reason(err error) string {
	word, _ := pb.Reason(err)
	return word
}

// change requests a change at any member. A patient client repeats it with the same id until the outcome is known. done
// is false if the change was not made, and unknown if the outcome is. Otherwise err is the refusal, or nil.
func (l *load) change(t *testing.T, patient bool, call func(context.Context, *grpc.ClientConn) error) (done, unknown bool, err error) {
	id := rand.Text()
	for end := time.Now().Add(patience); ; {
		ctx, cancel := context.WithTimeout(t.Context(), tryWait)
		if patient {
			ctx = metadata.AppendToOutgoingContext(ctx, pb.RequestIDKey, id)
		}
		err := call(ctx, l.c.nodes[mathrand.N(members)].conn)
		cancel()
		l.asked.Add(1)
		switch c := status.Code(err); {
		case c == codes.OK, c == codes.FailedPrecondition, c == codes.NotFound:
			return true, false, err
		case reason(err) == "NOT_MADE":
			l.notMade.Add(1)
		case c == codes.Unavailable, c == codes.DeadlineExceeded, c == codes.Canceled:
			if strings.Contains(err.Error(), "nothing was changed") {
				t.Errorf("it says that nothing was changed, and does not say so: %v", err)
			}
			unknown = true
		default:
			t.Errorf("a change was refused: %v", err)
			return false, false, nil
		}
		if !patient || time.Now().After(end) || t.Context().Err() != nil {
			if unknown {
				l.unknown.Add(1)
			}
			return false, unknown, nil
		}
		l.again.Add(1)
		time.Sleep(50 * time.Millisecond)
	}
}

// note adds a change to the history, unless it was not made.
func (l *load) note(client int, began int64, o Op, value int64, done, unknown bool, refused error) {
	if done || unknown {
		l.h.Add(client, began, o, Result{Unknown: unknown, Refused: refused != nil, Value: value})
	}
}

func (l *load) weigh(t *testing.T, client int, patient bool) {
	i := mathrand.N(registers)
	o := Op{Kind: Swap, Key: registerKey(l.round, i), Value: l.values.Add(1)}
	began, before := l.h.Now(), int64(0)
	done, unknown, err := l.change(t, patient, func(ctx context.Context, conn *grpc.ClientConn) error {
		r, err := pb.NewWeightServiceClient(conn).SetWeight(ctx, &pb.SetWeightRequest{
			Flow: &pb.FlowKey{SrcIpv4: "10.0.1.1", DstIpv4: "10.0.2.1", SrcPort: l.port(i), DstPort: 50151}, Weight: float64(o.Value), Application: "web",
		})
		before = int64(r.GetPrevious())
		return err
	})
	l.note(client, began, o, before, done, unknown, err)
}

func (l *load) lock(t *testing.T, client int) {
	i, application := mathrand.N(locks), 1+mathrand.Int64N(3)
	name := fmt.Sprintf("a%d", application)
	o := Op{Kind: Take, Key: lockKey(i), Value: application}
	if mathrand.N(2) == 0 {
		o.Kind = Release
	}
	began := l.h.Now()
	done, unknown, err := l.change(t, true, func(ctx context.Context, conn *grpc.ClientConn) (err error) {
		priorities := pb.NewPriorityServiceClient(conn)
		if o.Kind == Take {
			_, err = priorities.AllocatePriority(ctx, &pb.AllocatePriorityRequest{Application: name, Priority: uint32(i + 1)})
		} else {
			_, err = priorities.ReleasePriority(ctx, &pb.ReleasePriorityRequest{Application: name, Priority: uint32(i + 1)})
		}
		return err
	})
	l.note(client, began, o, application, done, unknown, err)
}

// apply increments the generation. With compare, it requires the generation that it has read.
func (l *load) apply(t *testing.T, client int, patient, compare bool) {
	o := Op{Kind: Add, Key: counterKey, Value: l.values.Add(1)}
	request := &pb.ApplyConfigRequest{Config: fmt.Sprintf(l.c.yaml, 100+o.Value%2), File: "fabric.yaml", Why: l.why(o)}
	if compare {
		is, err := l.history(t.Context(), l.c.nodes[mathrand.N(members)])
		if err != nil {
			return
		}
		expect := uint64(is)
		o.Kind, o.Expect, request.ExpectGeneration = AddIf, is, &expect
	}
	began, generation := l.h.Now(), int64(0)
	done, unknown, err := l.change(t, patient, func(ctx context.Context, conn *grpc.ClientConn) error {
		r, err := pb.NewFabricServiceClient(conn).ApplyConfig(ctx, request)
		generation = int64(r.GetGeneration())
		return err
	})
	l.note(client, began, o, generation, done, unknown, err)
}

func (l *load) why(o Op) string { return fmt.Sprintf("%d of round %d", o.Value, l.round) }

// history returns the generation in force.
func (l *load) history(ctx context.Context, n *node) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	r, err := pb.NewFabricServiceClient(n.conn).ListHistory(ctx, &pb.ListHistoryRequest{})
	if err != nil || len(r.GetConfigs()) == 0 {
		return 0, err
	}
	return int64(r.GetConfigs()[len(r.GetConfigs())-1].GetGeneration()), nil
}

// owners returns, for each lock, the number of the application that holds it, 0 for none.
func (l *load) owners(ctx context.Context, n *node) ([]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	r, err := pb.NewPriorityServiceClient(n.conn).ListPriorities(ctx, &pb.ListPrioritiesRequest{})
	if err != nil {
		return nil, err
	}
	if len(r.GetChannels()) != locks {
		return nil, nil // no configuration is in force yet
	}
	out := make([]int64, locks)
	for i := range out {
		_, _ = fmt.Sscanf(r.GetChannels()[i].GetApplication(), "a%d", &out[i])
	}
	return out, nil
}

// weights returns the registers, from a list or from the beginning of a stream.
func (l *load) weights(ctx context.Context, n *node, stream bool) ([]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	out := make([]int64, registers)
	put := func(f *pb.FlowWeight) {
		if i := int(f.GetFlow().GetSrcPort()) - int(l.port(0)); i >= 0 && i < registers {
			out[i] = int64(f.GetWeight())
		}
	}
	service := pb.NewWeightServiceClient(n.conn)
	if !stream {
		r, err := service.ListWeights(ctx, &pb.ListWeightsRequest{Application: "web"})
		for _, f := range r.GetFlows() {
			put(f)
		}
		return out, err
	}
	updates, err := service.WatchWeights(ctx, &pb.WatchWeightsRequest{Application: "web"})
	for err == nil {
		var u *pb.WeightUpdate
		if u, err = updates.Recv(); err == nil && u.GetFlow() != nil {
			put(u.GetFlow())
		}
		if err == nil && u.GetSynced() {
			return out, nil
		}
	}
	return nil, err
}

// read reads a key at a member.
func (l *load) read(ctx context.Context, client int, n *node) {
	began := l.h.Now()
	var values []int64
	var err error
	key := lockKey
	switch mathrand.N(8) {
	case 0:
		values, err = l.owners(ctx, n)
	case 1, 2:
		values = make([]int64, 1)
		values[0], err = l.history(ctx, n)
		key = func(int) string { return counterKey }
	case 3:
		asking, cancel := context.WithTimeout(ctx, readWait)
		r, e := pb.NewFabricServiceClient(n.conn).GetFabric(asking, &pb.GetFabricRequest{})
		cancel()
		values, err = []int64{int64(r.GetGeneration())}, e
		key = func(int) string { return counterKey }
	default:
		values, err = l.weights(ctx, n, mathrand.N(4) == 0)
		key = func(i int) string { return registerKey(l.round, i) }
	}
	if err != nil {
		l.lost.Add(1)
		return
	}
	l.reads.Add(1)
	for i, v := range values {
		l.h.Add(client, began, Op{Kind: Read, Key: key(i)}, Result{Value: v})
	}
}

// end stops the clients, reads everything at every member, and returns the impossible results.
func (l *load) end(t *testing.T, folder string) []string {
	t.Helper()
	close(l.stop)
	l.wg.Wait()
	for _, n := range l.c.nodes {
		l.final(t, n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := pb.NewFabricServiceClient(l.c.nodes[0].conn).ListHistory(ctx, &pb.ListHistoryRequest{})
	if err != nil {
		t.Fatal(err)
	}
	applied := map[string]int64{}
	for _, c := range r.GetConfigs() {
		applied[c.GetWhy()] = int64(c.GetGeneration())
	}
	l.h.Settle(counterKey, func(o Op) (Result, bool) {
		generation, done := applied[l.why(o)]
		return Result{Value: generation}, done
	})
	return l.h.Check(time.Minute, folder)
}

// final reads everything at a member, once it answers.
func (l *load) final(t *testing.T, n *node) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		began := l.h.Now()
		list, err := l.weights(t.Context(), n, false)
		owners, err2 := l.owners(t.Context(), n)
		generation, err3 := l.history(t.Context(), n)
		if err == nil && err2 == nil && err3 == nil {
			for i, v := range list {
				l.h.Add(0, began, Op{Kind: Read, Key: registerKey(l.round, i)}, Result{Value: v})
			}
			for i, v := range owners {
				l.h.Add(0, began, Op{Kind: Read, Key: lockKey(i)}, Result{Value: v})
			}
			l.h.Add(0, began, Op{Kind: Read, Key: counterKey}, Result{Value: generation})
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not answer: %v, %v, %v", n.name, err, err2, err3)
		}
	}
}
