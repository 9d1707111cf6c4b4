package authz

import (
	"context"
	"fmt"
	"net"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"

	"github.com/headgate/headgate/units"
)

// bucket is the rest of an identity's limits. The guard's mu guards it.
type bucket struct {
	*rate.Limiter
	running int
}

// maxBuckets bounds the identities that are remembered.
const maxBuckets = 10000

// key is the key of limits: the identity, or the address of a caller without one.
func (c Caller) key() string {
	if c.Name != "" {
		return c.Name
	}
	host, _, err := net.SplitHostPort(c.Address)
	if err != nil {
		return "at " + c.Address
	}
	return "at " + host
}

// bucket returns a caller's. The caller holds mu.
func (a *Authorizer) bucket(c Caller, now time.Time) *bucket {
	key := c.key()
	b := a.buckets[key]
	if b != nil {
		return b
	}
	if len(a.buckets) >= maxBuckets {
		for k, old := range a.buckets { // those that have everything are as if they were new
			if old.running == 0 && old.TokensAt(now) >= float64(old.Burst()) {
				delete(a.buckets, k)
			}
		}
	}
	b = &bucket{Limiter: rate.NewLimiter(rate.Limit(a.policy.limits.Rate), a.policy.limits.Burst)}
	a.buckets[key] = b
	return b
}

// limit counts a call, or a message of a stream, and refuses one too many.
func (a *Authorizer) limit(c Caller, method string) error {
	now := time.Now()
	a.mu.Lock()
	ok := a.bucket(c, now).AllowN(now, 1)
	limits := a.policy.limits
	a.mu.Unlock()
	if ok {
		return nil
	}
	return a.refuse(c, method, codes.ResourceExhausted, fmt.Sprintf("%s calls more often than %g times a second: call later (limits.rate of the policy)", c.key(), limits.Rate))
}

// running is a call that is under way.
type running struct {
	caller Caller
	method string
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// begin counts a call that is under way, and refuses one too many.
func (a *Authorizer) begin(ctx context.Context, method string) (*running, error) {
	r := &running{caller: CallerOf(ctx), method: method}
	a.mu.Lock()
	b := a.bucket(r.caller, time.Now())
	most := a.policy.limits.Streams
	if b.running >= most {
		a.mu.Unlock()
		return nil, a.refuse(r.caller, method, codes.ResourceExhausted, fmt.Sprintf("%s has %s under way, which is the most: end some (limits.streams of the policy)", r.caller.key(), units.Count(most, "call")))
	}
	b.running++
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	a.streams[r] = struct{}{}
	a.mu.Unlock()
	return r, nil
}

func (a *Authorizer) end(r *running) {
	r.cancel(nil)
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.streams, r)
	a.bucket(r.caller, time.Now()).running--
}
