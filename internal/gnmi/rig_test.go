package gnmi

import (
	"context"
	"io"
	"slices"
	"sync"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
)

// fake is a source whose state the tests set.
type fake struct {
	mu      sync.Mutex
	states  []State
	changed chan struct{} // nil: no notifications
}

func (f *fake) State(target string, wants Wants) []State {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []State
	for _, s := range f.states {
		if target == "" || s.Target == target {
			values := slices.DeleteFunc(slices.Clone(s.Values), func(v Value) bool { return !wants[v.Leaf] })
			list = append(list, State{s.Target, values})
		}
	}
	return list
}

func (f *fake) Changed(context.Context) <-chan struct{} { return f.changed }

// set changes a value of a target.
func (f *fake) set(target int, v Value) {
	f.mu.Lock()
	defer f.mu.Unlock()
	values := f.states[target].Values
	values[slices.IndexFunc(values, func(o Value) bool { return o.Leaf == v.Leaf && o.Of == v.Of })] = v
}

// port returns the values of a port.
func port(n string, oper string, octets uint64) []Value {
	return []Value{
		{OperStatus, [2]string{n}, oper}, {OutOctets, [2]string{n}, octets}, {QueueLen, [2]string{n, "7"}, uint64(0)}, {Victim, [2]string{n}, false},
		{ClassHeadroom, [2]string{n, "3"}, uint64(1500)},
	}
}

func fabric() *fake {
	return &fake{states: []State{
		{"leaf1", slices.Concat(port("1", Up, 10), port("2", Down, 20))},
		{"spine1", slices.Concat(port("1", Up, 30), []Value{{PoolUsed, [2]string{"headroom"}, uint64(9)}, {Threshold, [2]string{}, uint64(5)}})},
	}}
}

// stream is the server's end of a call of Subscribe.
type stream struct {
	grpc.ServerStream
	ctx  context.Context
	in   chan *gpb.SubscribeRequest
	out  chan *gpb.SubscribeResponse
	done chan error
}

// subscribe calls Subscribe. The call ends when ctx does, which tests wait for.
func subscribe(ctx context.Context, source Source, first *gpb.SubscribeRequest) *stream {
	s := &stream{ctx: ctx, in: make(chan *gpb.SubscribeRequest, 1), out: make(chan *gpb.SubscribeResponse, 100), done: make(chan error, 1)}
	s.in <- first
	go func() {
		s.done <- (&server{source: source, running: context.Background()}).Subscribe(s)
	}()
	return s
}

func (s *stream) Context() context.Context { return s.ctx }

func (s *stream) Send(r *gpb.SubscribeResponse) error {
	s.out <- r
	return nil
}

func (s *stream) Recv() (*gpb.SubscribeRequest, error) {
	select {
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	case r, ok := <-s.in:
		if !ok {
			return nil, io.EOF
		}
		return r, nil
	}
}
