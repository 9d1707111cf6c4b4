package gnmi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
)

// sent returns the messages that a stream has got, as lines: TARGET PATH VALUE, TARGET -PATH, and sync.
func (s *stream) sent() []string {
	var lines []string
	for {
		select {
		case r := <-s.out:
			if r.GetSyncResponse() {
				lines = append(lines, "sync")
			}
			n := r.GetUpdate()
			for _, u := range n.GetUpdate() {
				path := pathText(u.GetPath().GetElem())
				lines = append(lines, fmt.Sprintf("%s %s %s", n.GetPrefix().GetTarget(), path[strings.LastIndex(path, "/")+1:], shown(u.GetVal())))
			}
			for _, p := range n.GetDelete() {
				path := pathText(p.GetElem())
				lines = append(lines, fmt.Sprintf("%s -%s", n.GetPrefix().GetTarget(), path[strings.LastIndex(path, "/")+1:]))
			}
		default:
			slices.Sort(lines)
			return lines
		}
	}
}

func shown(v *gpb.TypedValue) string {
	switch v := v.GetValue().(type) {
	case *gpb.TypedValue_StringVal:
		return v.StringVal
	case *gpb.TypedValue_UintVal:
		return fmt.Sprint(v.UintVal)
	case *gpb.TypedValue_BoolVal:
		return fmt.Sprint(v.BoolVal)
	}
	return fmt.Sprint(v)
}

const (
	operPath   = "interfaces/interface/state/oper-status"
	octetsPath = "interfaces/interface/state/counters/out-octets"
)

// list is a request to subscribe with PROTO.
func list(target string, mode gpb.SubscriptionList_Mode, subs ...*gpb.Subscription) *gpb.SubscribeRequest {
	return &gpb.SubscribeRequest{Request: &gpb.SubscribeRequest_Subscribe{Subscribe: &gpb.SubscriptionList{
		Prefix: &gpb.Path{Target: target}, Mode: mode, Encoding: gpb.Encoding_PROTO, Subscription: subs,
	}}}
}

func check(t *testing.T, when string, got []string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", when, got, want)
	}
}

// TestNotYet: a missing leaf is sent as soon as it exists.
func TestNotYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := fabric()
		ctx, cancel := context.WithCancel(t.Context())
		s := subscribe(ctx, source, list("leaf1", gpb.SubscriptionList_STREAM, &gpb.Subscription{Path: path("qos/buffer/state/threshold")}))
		synctest.Wait()
		check(t, "at once", s.sent(), "sync")
		source.mu.Lock()
		source.states[0].Values = append(source.states[0].Values, Value{Threshold, [2]string{}, uint64(7)})
		source.mu.Unlock()
		time.Sleep(scan + time.Millisecond)
		check(t, "it is there", s.sent(), "leaf1 threshold 7")
		ended(t, s, cancel)
	})
}

// TestOnce and the other streams run on a fake clock.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := subscribe(t.Context(), fabric(), list("*", gpb.SubscriptionList_ONCE, &gpb.Subscription{Path: path(operPath)}))
		if err := <-s.done; err != nil {
			t.Fatal(err)
		}
		check(t, "once", s.sent(), "leaf1 oper-status UP", "leaf1 oper-status DOWN", "spine1 oper-status UP", "sync")
	})
}

func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := fabric()
		s := subscribe(t.Context(), source, list("spine1", gpb.SubscriptionList_POLL, &gpb.Subscription{Path: path(octetsPath)}))
		synctest.Wait()
		check(t, "before a poll", s.sent())
		for i := range 2 {
			source.set(1, Value{OutOctets, [2]string{"1"}, uint64(31 + i)})
			s.in <- &gpb.SubscribeRequest{Request: &gpb.SubscribeRequest_Poll{Poll: &gpb.Poll{}}}
			synctest.Wait()
			check(t, "poll", s.sent(), fmt.Sprint("spine1 out-octets ", 31+i), "sync")
		}
		close(s.in)
		if err := <-s.done; err != nil {
			t.Errorf("the client ended it: %v", err)
		}
	})
}

func TestPollWantsPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		request := list("", gpb.SubscriptionList_POLL, &gpb.Subscription{Path: path(octetsPath)})
		s := subscribe(t.Context(), fabric(), request)
		s.in <- request
		if err := <-s.done; err == nil || !strings.Contains(err.Error(), "want poll") {
			t.Errorf("a second list: %v", err)
		}
	})
}

// ended waits for the end of a stream on the fake clock.
func ended(t *testing.T, s *stream, cancel context.CancelFunc) {
	t.Helper()
	cancel()
	if err := <-s.done; !errors.Is(err, context.Canceled) {
		t.Errorf("the stream ended with %v", err)
	}
}

func TestSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := fabric()
		ctx, cancel := context.WithCancel(t.Context())
		s := subscribe(ctx, source, list("spine1", gpb.SubscriptionList_STREAM,
			&gpb.Subscription{Path: path(octetsPath), Mode: gpb.SubscriptionMode_SAMPLE, SampleInterval: uint64(10 * time.Second)},
			&gpb.Subscription{Path: path(operPath), Mode: gpb.SubscriptionMode_SAMPLE, SampleInterval: uint64(4 * time.Second), SuppressRedundant: true, HeartbeatInterval: uint64(9 * time.Second)}))
		synctest.Wait()
		check(t, "at once", s.sent(), "spine1 out-octets 30", "spine1 oper-status UP", "sync")
		source.set(1, Value{OutOctets, [2]string{"1"}, uint64(31)})
		time.Sleep(9900 * time.Millisecond)
		check(t, "before the interval", s.sent())
		time.Sleep(200 * time.Millisecond)
		check(t, "at 10 s", s.sent(), "spine1 out-octets 31")
		time.Sleep(2 * time.Second)
		check(t, "the round after the heartbeat, at 12 s", s.sent(), "spine1 oper-status UP")
		time.Sleep(3 * time.Second)
		source.set(1, Value{OperStatus, [2]string{"1"}, Down})
		time.Sleep(2 * time.Second)
		check(t, "a change, at 16 s", s.sent(), "spine1 oper-status DOWN")
		time.Sleep(4 * time.Second)
		check(t, "the same, at 20 s", s.sent(), "spine1 out-octets 31")
		ended(t, s, cancel)
	})
}

// TestOnChange: if the source notifies, a change is sent at once, and two changes within the minimum interval are
// one. Otherwise a change is sent within a second.
func TestOnChange(t *testing.T) {
	for _, tells := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			source := fabric()
			wait := scan
			if tells {
				source.changed = make(chan struct{}, 1)
				wait = minInterval
			}
			set := func(oper string) {
				source.set(0, Value{OperStatus, [2]string{"2"}, oper})
				if tells {
					select {
					case source.changed <- struct{}{}:
					default:
					}
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			s := subscribe(ctx, source, list("leaf1", gpb.SubscriptionList_STREAM, &gpb.Subscription{Path: path(operPath), Mode: gpb.SubscriptionMode_ON_CHANGE}))
			synctest.Wait()
			check(t, "at once", s.sent(), "leaf1 oper-status UP", "leaf1 oper-status DOWN", "sync")
			time.Sleep(10 * time.Second)
			check(t, "nothing changes", s.sent())
			set(Up)
			time.Sleep(wait + time.Millisecond)
			check(t, "up", s.sent(), "leaf1 oper-status UP")
			set(Unknown)
			set(Down)
			time.Sleep(wait + time.Millisecond)
			check(t, "the last of two", s.sent(), "leaf1 oper-status DOWN")
			source.mu.Lock()
			source.states = source.states[1:]
			source.mu.Unlock()
			time.Sleep(scan + time.Millisecond)
			check(t, "the switch is gone", s.sent(), "leaf1 -oper-status", "leaf1 -oper-status")
			ended(t, s, cancel)
		})
	}
}

func TestUpdatesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := fabric()
		request := list("leaf1", gpb.SubscriptionList_STREAM, &gpb.Subscription{Path: path(octetsPath)})
		request.GetSubscribe().UpdatesOnly = true
		ctx, cancel := context.WithCancel(t.Context())
		s := subscribe(ctx, source, request)
		synctest.Wait()
		check(t, "at once", s.sent(), "sync")
		source.set(0, Value{OutOctets, [2]string{"1"}, uint64(11)})
		time.Sleep(scan + time.Millisecond)
		check(t, "a change", s.sent(), "leaf1 out-octets 11")
		ended(t, s, cancel)
	})
}

// TestStopping: a stream ends when the server stops, with the reason.
func TestStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reason := errors.New("stopping")
		running, stop := context.WithCancelCause(t.Context())
		defer stop(nil)
		for _, mode := range []gpb.SubscriptionList_Mode{gpb.SubscriptionList_STREAM, gpb.SubscriptionList_POLL} {
			ctx, cancel := context.WithCancel(t.Context())
			s := &stream{ctx: ctx, in: make(chan *gpb.SubscribeRequest, 1), out: make(chan *gpb.SubscribeResponse, 100)}
			s.in <- list("", mode, &gpb.Subscription{Path: path(octetsPath)})
			time.AfterFunc(time.Minute, func() { stop(reason) })
			if err := (&server{source: fabric(), running: running}).Subscribe(s); !errors.Is(err, reason) {
				t.Errorf("%v: %v", mode, err)
			}
			cancel()
		}
	})
}
