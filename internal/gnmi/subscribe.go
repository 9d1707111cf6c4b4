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
)

// Intervals of streams.
const (
	minInterval = 100 * time.Millisecond // that a client may ask for
	maxInterval = 24 * time.Hour
	scan        = time.Second // between two looks for changes that nothing tells of, and the default
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
	f, err := s.follow(list)
	if err != nil {
		return err
	}
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

// follower is a call of Subscribe.
type follower struct {
	*server
	list *gpb.SubscriptionList
	subs []*subscription
	send func(*gpb.SubscribeResponse) error
}

// subscription is one path of a call.
type subscription struct {
	query
	sample, suppress    bool
	interval, heartbeat time.Duration // heartbeat is 0 for none
	due, beat           time.Time
	last                map[place]any // what was sent
}

// place is a leaf of a target.
type place struct {
	target string
	leaf   *Leaf
	of     [2]string
}

// follow checks a list of subscriptions.
func (s *server) follow(list *gpb.SubscriptionList) (*follower, error) {
	var paths []*gpb.Path
	for _, sub := range list.GetSubscription() {
		paths = append(paths, sub.GetPath())
	}
	if len(paths) == 0 {
		return nil, status.Error(codes.InvalidArgument, "subscribe.subscription: none: want at least one")
	}
	queries, err := s.check("subscribe.subscription", list.GetPrefix(), paths, list.GetEncoding(), list.GetUseModels())
	if err != nil {
		return nil, err
	}
	if _, ok := gpb.SubscriptionList_Mode_name[int32(list.GetMode())]; !ok {
		return nil, status.Errorf(codes.InvalidArgument, "subscribe.mode: %d: want STREAM, ONCE or POLL", list.GetMode())
	}
	f := &follower{server: s, list: list}
	for i, sub := range list.GetSubscription() {
		one := &subscription{query: queries[i], sample: sub.GetMode() == gpb.SubscriptionMode_SAMPLE, suppress: sub.GetSuppressRedundant(), last: map[place]any{}}
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
	_, err = s.states(list.GetPrefix().GetTarget(), nil)
	return f, err
}

// interval checks one of a request, in ns; 0 is none.
func interval(field string, ns uint64) (time.Duration, error) {
	if ns != 0 && (ns < uint64(minInterval) || ns > uint64(maxInterval)) {
		return 0, status.Errorf(codes.InvalidArgument, "%s: %d ns: want 0, or %v to %v", field, ns, minInterval, maxInterval)
	}
	return time.Duration(ns), nil
}

// once sends everything, and that this was it.
func (f *follower) once() error {
	for _, sub := range f.subs {
		clear(sub.last)
		sub.due, sub.beat = time.Time{}, time.Time{}
	}
	if err := f.round(time.Now(), false, f.list.GetUpdatesOnly()); err != nil {
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

// stream sends what is due, until ctx ends.
func (f *follower) stream(ctx context.Context) error {
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
			told = true
			f.hasten(time.Now())
		case <-timer.C:
			told = false
			if err := f.round(time.Now(), true, false); err != nil {
				return err
			}
		}
	}
}

// hasten makes the subscriptions to changes due, no more often than the least interval.
func (f *follower) hasten(now time.Time) {
	for _, sub := range f.subs {
		if soon := sub.due.Add(minInterval - sub.interval); !sub.sample && soon.Before(sub.due) {
			if sub.due = soon; soon.Before(now) {
				sub.due = now
			}
		}
	}
}

// round sends what is due. With gone, also that something is not there any more; silent only notes what
// would be sent.
func (f *follower) round(now time.Time, gone, silent bool) error {
	var due []*subscription
	var ask []query
	for _, sub := range f.subs {
		if !sub.due.After(now) {
			due, ask = append(due, sub), append(ask, sub.query)
		}
	}
	if len(due) == 0 {
		return nil
	}
	states, _ := f.states(f.list.GetPrefix().GetTarget(), wants(ask...)) // a target may have left since
	for _, sub := range due {
		for _, n := range sub.notifications(states, now, f.list, gone) {
			if silent {
				continue
			}
			if err := f.send(&gpb.SubscribeResponse{Response: &gpb.SubscribeResponse_Update{Update: n}}); err != nil {
				return err
			}
		}
		sub.due = now.Add(sub.interval)
	}
	return nil
}

// notifications returns what a subscription has to send, and notes it as sent.
func (s *subscription) notifications(states []State, now time.Time, list *gpb.SubscriptionList, gone bool) []*gpb.Notification {
	every := s.sample && !s.suppress
	if s.heartbeat > 0 && !now.Before(s.beat) {
		every, s.beat = true, now.Add(s.heartbeat)
	}
	var out []*gpb.Notification
	last := s.last
	s.last = make(map[place]any, len(last))
	for _, state := range states {
		n := notification(list.GetPrefix(), state.Target)
		for _, v := range state.Values {
			if _, ok := s.selects(v); !ok {
				continue
			}
			at := place{state.Target, v.Leaf, v.Of}
			before, known := last[at]
			delete(last, at)
			s.last[at] = v.Is
			if every || !known || before != v.Is {
				n.Update = append(n.Update, v.update(list.GetEncoding()))
			}
		}
		if len(n.Update) > 0 {
			out = append(out, n)
		}
	}
	if gone {
		out = append(out, s.deletes(last, list)...)
	}
	return out
}

// deletes says that what was sent before is not there any more.
func (s *subscription) deletes(left map[place]any, list *gpb.SubscriptionList) []*gpb.Notification {
	by := map[string]*gpb.Notification{}
	var out []*gpb.Notification
	for at := range left {
		n := by[at.target]
		if n == nil {
			n = notification(list.GetPrefix(), at.target)
			by[at.target] = n
			out = append(out, n)
		}
		n.Delete = append(n.Delete, Value{Leaf: at.leaf, Of: at.of}.path(len(at.leaf.elems)))
	}
	return out
}
