package gnmi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/clients"
)

// Intervals of streams.
const (
	minInterval = 100 * time.Millisecond // shortest that a client may ask for
	maxInterval = 24 * time.Hour
	scan        = time.Second // between two searches for changes that the source does not report; also the default
)

// Bounds of a stream.
const (
	maxSelected = 4096    // leaves that its paths select
	maxUpdates  = 100     // updates in a message, which then has some 12 KB: gRPC's buffers have 16
	maxRate     = 100_000 // values that it samples a second: a switch of 64 ports has 10 000
)

// Subscribe implements gNMI.
func (s *server) Subscribe(stream gpb.GNMI_SubscribeServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	list := first.GetSubscribe()
	if list == nil {
		return status.Error(codes.InvalidArgument, "subscribe: want a list of subscriptions in the first message")
	}
	f, err := s.follow(stream.Context(), list)
	if err != nil {
		return err
	}
	defer f.close()
	f.send = stream.Send
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.running, func() { cancel(context.Cause(s.running)) })()
	switch list.GetMode() {
	case gpb.SubscriptionList_ONCE:
		return f.once()
	case gpb.SubscriptionList_POLL:
		return f.poll(ctx, stream)
	}
	return f.stream(ctx)
}

// follower is the state of one call of Subscribe.
type follower struct {
	*server
	list  *gpb.SubscriptionList
	subs  []*subscription
	wants Wants
	key   string    // key of the snapshots that it shares with other calls
	told  time.Time // when the source reported a change that was not sent yet
	bytes int64     // bytes that it took from the budget
	send  func(*gpb.SubscribeResponse) error
}

// subscription is one path of a call.
type subscription struct {
	query
	sample, suppress    bool
	interval, heartbeat time.Duration // heartbeat is 0 for none
	due, beat           time.Time
	last                *snapshot // the last sent snapshot; nil for none
}

// place is a leaf of a target.
type place struct {
	target string
	leaf   *Leaf
	of     [2]string
}

// follow checks a list of subscriptions.
func (s *server) follow(ctx context.Context, list *gpb.SubscriptionList) (*follower, error) {
	var paths []*gpb.Path
	for _, sub := range list.GetSubscription() {
		paths = append(paths, sub.GetPath())
	}
	if len(paths) == 0 {
		return nil, status.Error(codes.InvalidArgument, "subscribe.subscription: none: want at least one")
	}
	queries, err := s.check(ctx, "subscribe.subscription", list.GetPrefix(), paths, list.GetEncoding(), list.GetUseModels())
	if err != nil {
		return nil, err
	}
	if _, ok := gpb.SubscriptionList_Mode_name[int32(list.GetMode())]; !ok {
		return nil, status.Errorf(codes.InvalidArgument, "subscribe.mode: %d: want STREAM, ONCE or POLL", list.GetMode())
	}
	f := &follower{server: s, list: list, wants: wants(queries...)}
	selected := 0
	for _, q := range queries {
		for _, l := range q {
			selected += len(l)
		}
	}
	if selected > maxSelected {
		return nil, status.Errorf(codes.InvalidArgument, "subscribe.subscription: the paths select %d leaves: want at most %d: leave out paths that others contain", selected, maxSelected)
	}
	f.key = list.GetPrefix().GetTarget() + "\x00"
	for _, l := range Leaves {
		if f.wants[l] {
			f.key += "1"
		} else {
			f.key += "0"
		}
	}
	for i, sub := range list.GetSubscription() {
		one := &subscription{query: queries[i], sample: sub.GetMode() == gpb.SubscriptionMode_SAMPLE, suppress: sub.GetSuppressRedundant()}
		field := fmt.Sprintf("subscribe.subscription[%d].", i)
		if _, ok := gpb.SubscriptionMode_name[int32(sub.GetMode())]; !ok {
			return nil, status.Errorf(codes.InvalidArgument, "%smode: %d: want TARGET_DEFINED, ON_CHANGE or SAMPLE", field, sub.GetMode())
		}
		if one.interval, err = interval(field+"sample_interval", sub.GetSampleInterval()); err != nil {
			return nil, err
		}
		if one.heartbeat, err = interval(field+"heartbeat_interval", sub.GetHeartbeatInterval()); err != nil {
			return nil, err
		}
		if !one.sample || one.interval == 0 {
			one.interval = scan
		}
		f.subs = append(f.subs, one)
	}
	if _, err = s.states(list.GetPrefix().GetTarget(), nil); err != nil {
		return nil, err
	}
	if f.bytes = int64(selected * selectionBytes); !s.clients().Take(f.bytes, 1) {
		return nil, clients.Full("subscribe")
	}
	return f, nil
}

// close gives back the call's part of the budget.
func (f *follower) close() {
	f.clients().Release(f.bytes)
	for _, sub := range f.subs {
		f.release(sub.last)
	}
}

// interval checks an interval of a request, in ns, and returns it. 0 means that the client sets none.
func interval(field string, ns uint64) (time.Duration, error) {
	if ns != 0 && (ns < uint64(minInterval) || ns > uint64(maxInterval)) {
		return 0, status.Errorf(codes.InvalidArgument, "%s: %d ns: want 0, or %v to %v", field, ns, minInterval, maxInterval)
	}
	return time.Duration(ns), nil
}

// once sends everything, and then a sync response.
func (f *follower) once() error {
	now := time.Now()
	for _, sub := range f.subs {
		f.release(sub.last)
		sub.last, sub.due, sub.beat = nil, time.Time{}, time.Time{}
	}
	if f.list.GetMode() != gpb.SubscriptionList_STREAM {
		f.told = now // so that no earlier snapshot of another stream is used
	}
	if err := f.round(now, false, f.list.GetUpdatesOnly()); err != nil {
		return err
	}
	return f.send(&gpb.SubscribeResponse{Response: &gpb.SubscribeResponse_SyncResponse{SyncResponse: true}})
}

// poll sends everything as often as the client asks. Whether ctx or the client ends it, the receiver
// ends with the call.
func (f *follower) poll(ctx context.Context, stream gpb.GNMI_SubscribeServer) error {
	asked := make(chan error)
	go func() {
		for {
			r, err := stream.Recv()
			if err == nil && r.GetPoll() == nil {
				err = status.Error(codes.InvalidArgument, "request: want poll after the list of subscriptions of mode POLL")
			}
			select {
			case asked <- err:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-asked:
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := f.once(); err != nil {
				return err
			}
		}
	}
}

// stream sends due updates until ctx ends.
func (f *follower) stream(ctx context.Context) error {
	if err := f.checkRate(); err != nil {
		return err
	}
	changed := f.source.Changed(ctx)
	if err := f.once(); err != nil {
		return err
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for told := false; ; {
		next := f.subs[0].due
		for _, sub := range f.subs {
			if sub.due.Before(next) {
				next = sub.due
			}
		}
		timer.Reset(time.Until(next))
		listen := changed
		if told {
			listen = nil // until the round that is due
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-listen:
			told, f.told = true, time.Now()
			f.hasten(f.told)
		case <-timer.C:
			told = false
			if err := f.round(time.Now(), true, false); err != nil {
				return err
			}
		}
	}
}

// hasten makes the subscriptions to changes due earlier, but at most once per minInterval.
func (f *follower) hasten(now time.Time) {
	for _, sub := range f.subs {
		if soon := sub.due.Add(minInterval - sub.interval); !sub.sample && soon.Before(sub.due) {
			if sub.due = soon; soon.Before(now) {
				sub.due = now
			}
		}
	}
}

// round sends what is due. With gone it also sends that values do not exist any more. With silent it sends
// nothing and only records what it would have sent.
func (f *follower) round(now time.Time, gone, silent bool) error {
	after := now.Add(-share)
	if f.told.After(after) {
		after = f.told
	}
	var state *snapshot // snapshot for all due subscriptions
	for _, sub := range f.subs {
		if sub.due.After(now) {
			continue
		}
		if state == nil {
			var err error
			if state, err = f.snapshot(f.key, f.list.GetPrefix().GetTarget(), f.wants, after); err != nil {
				return err
			}
			defer f.release(state)
		}
		if !silent {
			if err := f.notify(sub, state, now, gone); err != nil {
				return err
			}
		}
		f.release(sub.last)
		sub.last, sub.due = f.keep(state), now.Add(sub.interval)
	}
	return nil
}

// notify sends the due updates of a subscription, in messages of at most maxUpdates. It makes each message
// after it has sent the one before.
func (f *follower) notify(s *subscription, state *snapshot, now time.Time, gone bool) error {
	every := s.sample && !s.suppress
	if s.heartbeat > 0 && !now.Before(s.beat) {
		every, s.beat = true, now.Add(s.heartbeat)
	}
	n := &gpb.Notification{}
	flush := func(target string, least int) error {
		if len(n.Update)+len(n.Delete) < least {
			return nil
		}
		full := notification(f.list.GetPrefix(), target)
		full.Update, full.Delete = n.Update, n.Delete
		n = &gpb.Notification{}
		return f.send(&gpb.SubscribeResponse{Response: &gpb.SubscribeResponse_Update{Update: full}})
	}
	each := func(states []State, add func(target string, v Value)) error {
		for _, target := range states {
			for _, v := range target.Values {
				if _, ok := s.selects(v); ok {
					add(target.Target, v)
				}
				if err := flush(target.Target, maxUpdates); err != nil {
					return err
				}
			}
			if err := flush(target.Target, 1); err != nil {
				return err
			}
		}
		return nil
	}
	err := each(state.states, func(target string, v Value) {
		if before, known := s.last.value(target, v); every || !known || before != v.Is {
			n.Update = append(n.Update, v.update(f.list.GetEncoding()))
		}
	})
	if err != nil || !gone || s.last == nil {
		return err
	}
	return each(s.last.states, func(target string, v Value) {
		if _, there := state.value(target, v); !there {
			n.Delete = append(n.Delete, v.path(len(v.Leaf.elems)))
		}
	})
}

// checkRate returns an error for a stream that asks for more values a second than maxRate allows.
func (f *follower) checkRate() error {
	state, err := f.snapshot(f.key, f.list.GetPrefix().GetTarget(), f.wants, time.Now().Add(-share))
	if err != nil {
		return err
	}
	defer f.release(state)
	rate := 0.0
	for _, s := range f.subs {
		if s.sample {
			rate += float64(s.count(state.states)) / s.interval.Seconds()
		}
	}
	if rate > maxRate {
		return status.Errorf(codes.ResourceExhausted, "subscribe.subscription: the samples are %.0f values a second: want at most %d: longer intervals, or fewer paths", rate, maxRate)
	}
	return nil
}

// Costs of requests, from the budget that all clients of the process share.
const (
	valueBytes     = 256 // a value of a snapshot
	updateBytes    = 1024
	selectionBytes = 128 // a leaf that a path selects
)

// share is the greatest age of a snapshot that one stream of samples takes from another.
const share = minInterval / 2

// snapshot is a state at a time. Streams share it, and nobody changes it. It takes room in the budget until the last
// one has released it.
type snapshot struct {
	key    string
	at     time.Time // no later than any of its values
	states []State
	values map[place]any
	bytes  int64
	refs   int // guarded by server.mu
}

// snapshot returns the state of a list's target, taken later than after. Streams with the same key share it.
func (s *server) snapshot(key, target string, w Wants, after time.Time) (*snapshot, error) {
	s.mu.Lock() // one at a time: waiting calls can share the result
	defer s.mu.Unlock()
	if have := s.recent[key]; have != nil && have.at.After(after) {
		have.refs++
		return have, nil
	}
	n := &snapshot{key: key, at: time.Now(), refs: 1}
	n.states, _ = s.states(target, w) // the target may have disappeared meanwhile
	for _, state := range n.states {
		n.bytes += valueBytes * int64(len(state.Values))
	}
	if !s.clients().Take(n.bytes, 2) {
		return nil, clients.Full("subscribe")
	}
	n.values = make(map[place]any, n.bytes/valueBytes)
	for _, state := range n.states {
		for _, v := range state.Values {
			n.values[place{state.Target, v.Leaf, v.Of}] = v.Is
		}
	}
	if s.recent == nil {
		s.recent = map[string]*snapshot{}
	}
	s.recent[key] = n
	return n, nil
}

// release ends a use of a snapshot; nil is none.
func (s *server) release(n *snapshot) {
	if n == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.refs--; n.refs > 0 {
		return
	}
	s.clients().Release(n.bytes)
	if s.recent[n.key] == n {
		delete(s.recent, n.key)
	}
}

// keep adds a use of a snapshot and returns it.
func (s *server) keep(n *snapshot) *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.refs++
	return n
}

// value returns a leaf of a target in the snapshot; false if it has none.
func (n *snapshot) value(target string, v Value) (is any, ok bool) {
	if n == nil {
		return nil, false
	}
	is, ok = n.values[place{target, v.Leaf, v.Of}]
	return is, ok
}
