package gnmi

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/clients"
)

// large is a source with one switch of n ports with 8 queues each. It counts its calls.
type large struct {
	ports int
	asked atomic.Int64
}

func (l *large) State(target string, wants Wants) []State {
	asked := uint64(l.asked.Add(1))
	s := State{Target: target}
	for p := range l.ports {
		port := strconv.Itoa(p + 1)
		for q := range 8 {
			queue := strconv.Itoa(q)
			for _, leaf := range []*Leaf{QueueLen, MaxQueueLen, TransmitPkts, TransmitOctets, DroppedPkts, DroppedOctets, QueuePauses} {
				if wants[leaf] {
					s.Values = append(s.Values, Value{leaf, [2]string{port, queue}, asked})
				}
			}
		}
	}
	return []State{s}
}

func (*large) Changed(context.Context) <-chan struct{} { return nil }

// samples is a request with n subscriptions to everything, at an interval.
func samples(paths int, every time.Duration) *gpb.SubscribeRequest {
	subs := make([]*gpb.Subscription, paths)
	for i := range subs {
		subs[i] = &gpb.Subscription{Path: path("..."), Mode: gpb.SubscriptionMode_SAMPLE, SampleInterval: uint64(every)}
	}
	return list("s", gpb.SubscriptionList_STREAM, subs...)
}

// TestUnreadStreams: unread streams share one copy of the state, and none has a map of its own.
func TestUnreadStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const streams, paths = 50, 20
		source := &large{ports: 64}
		s := &server{source: source, running: t.Context(), budget: clients.New(64 << 20)}
		ctx, cancel := context.WithCancel(t.Context())
		heap := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := heap()
		done := make(chan error)
		for range streams {
			unread := &stream{ctx: ctx, in: make(chan *gpb.SubscribeRequest, 1), out: make(chan *gpb.SubscribeResponse)}
			unread.in <- samples(paths, 10*time.Second)
			go func() {
				call := unreadStream{unread}
				done <- s.Subscribe(call)
			}()
		}
		synctest.Wait()
		if grown, used := heap()-before, s.budget.Stats().Bytes; grown > 32<<20 || used == 0 || source.asked.Load() > 2*streams+10 {
			t.Errorf("%d MiB more, %d bytes of the budget, the source was asked %d times", grown>>20, used, source.asked.Load())
		}
		cancel()
		for range streams {
			<-done
		}
		if used := s.budget.Stats().Bytes; used != 0 {
			t.Errorf("%d bytes are left of the budget", used)
		}
	})
}

// unreadStream blocks at the first message, as gRPC does when a client does not read.
type unreadStream struct{ *stream }

func (s unreadStream) Send(*gpb.SubscribeResponse) error {
	<-s.ctx.Done()
	return s.ctx.Err()
}

// TestSharedSamples: streams that want the same data at the same time read the source once.
func TestSharedSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const streams = 20
		source := &large{ports: 1}
		s := &server{source: source, running: t.Context(), budget: clients.New(64 << 20)}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		for range streams {
			time.Sleep(time.Millisecond)
			one := &stream{ctx: ctx, in: make(chan *gpb.SubscribeRequest, 1), out: make(chan *gpb.SubscribeResponse, 10_000)}
			one.in <- samples(1, time.Second)
			go func() { done <- s.Subscribe(one) }()
		}
		synctest.Wait()
		asked := source.asked.Load()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if asked = source.asked.Load() - asked; asked < 10 || asked > 20 {
			t.Errorf("the source was asked %d times in 10 rounds of %d streams", asked, streams)
		}
		cancel()
		for range streams {
			<-done
		}
	})
}

// TestMessages: a message fits into gRPC's buffers of 16 KiB. For one above 32 KiB, gRPC takes a buffer of 1 MiB.
func TestMessages(t *testing.T) {
	for _, e := range encodings {
		s := &server{source: &large{ports: 64}, budget: clients.New(64 << 20)}
		r := list("a-switch-with-a-name-of-some-length", gpb.SubscriptionList_ONCE, &gpb.Subscription{})
		r.GetSubscribe().Encoding = e
		f, err := s.follow(t.Context(), r.GetSubscribe())
		if err != nil {
			t.Fatal(err)
		}
		values := 0
		f.send = func(r *gpb.SubscribeResponse) error {
			values += len(r.GetUpdate().GetUpdate())
			if n := proto.Size(r); n > 16<<10 {
				t.Errorf("%v: a message of %d bytes", e, n)
			}
			return nil
		}
		if err := f.once(); err != nil || values < 64*8*7 {
			t.Errorf("%v: %d values, %v", e, values, err)
		}
		f.close()
	}
}

// TestBounds: the limits of a request.
func TestBounds(t *testing.T) {
	subscribe := func(ports int, limit int64, r *gpb.SubscribeRequest) error {
		s := &server{source: &large{ports: ports}, budget: clients.New(limit)}
		f, err := s.follow(t.Context(), r.GetSubscribe())
		if err == nil {
			f.send = func(*gpb.SubscribeResponse) error { return nil }
			if err = f.checkRate(); err == nil {
				err = f.once()
			}
			f.close()
		}
		if used := s.budget.Stats().Bytes; used != 0 {
			t.Errorf("%d bytes of the budget are left", used)
		}
		return err
	}
	get := func(ports int, limit int64, paths int) error {
		r := &gpb.GetRequest{}
		for range paths {
			r.Path = append(r.Path, path("..."))
		}
		s := &server{source: &large{ports: ports}, budget: clients.New(limit)}
		_, err := s.Get(t.Context(), r)
		return err
	}
	for i, c := range []struct {
		err  error
		want codes.Code
	}{
		{subscribe(64, 64<<20, samples(1, time.Second)), codes.OK},
		{subscribe(64, 64<<20, samples(1, minInterval)), codes.OK},
		{subscribe(64, 64<<20, samples(4, minInterval)), codes.ResourceExhausted},
		{subscribe(64, 64<<20, samples(128, time.Second)), codes.InvalidArgument},
		{subscribe(64, 1<<20, samples(1, time.Second)), codes.ResourceExhausted},
		{subscribe(64, 1<<10, samples(1, time.Second)), codes.ResourceExhausted},
		{get(64, 64<<20, 1), codes.OK},
		{get(64, 64<<20, 20), codes.ResourceExhausted},
		{get(64, 1<<20, 1), codes.ResourceExhausted},
	} {
		if status.Code(c.err) != c.want {
			t.Error(fmt.Errorf("%d: %w, want %v", i, c.err, c.want))
		}
	}
}
