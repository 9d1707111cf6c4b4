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

// bucket is what an identity has left of its limits. The guard's mu guards it.
type bucket struct {
	*rate.Limiter
	running int
}

// maxBuckets bounds the identities that are remembered.
const maxBuckets = 10000

// key is what limits go by: the identity, or where somebody without one calls from.
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
func (g *Guard) bucket(c Caller, now time.Time) *bucket {
	key := c.key()
	b := g.buckets[key]
	if b != nil {
		return b
	}
	if len(g.buckets) >= maxBuckets {
		for k, old := range g.buckets { // those that have everything are as if they were new
			if old.running == 0 && old.TokensAt(now) >= float64(old.Burst()) {
				delete(g.buckets, k)
			}
		}
	}
	b = &bucket{Limiter: rate.NewLimiter(rate.Limit(g.policy.limits.Rate), g.policy.limits.Burst)}
	g.buckets[key] = b
	return b
}

// charge counts a call, or a message of a stream, and refuses one too many.
func (g *Guard) charge(c Caller, method string) error {
	now := time.Now()
	g.mu.Lock()
	ok := g.bucket(c, now).AllowN(now, 1)
	limits := g.policy.limits
	g.mu.Unlock()
	if ok {
		return nil
	}
	return g.refuse(c, method, codes.ResourceExhausted, fmt.Sprintf("%s calls more often than %g times a second: call later (limits.rate of the policy)", c.key(), limits.Rate))
}

// running is a call that is under way.
type running struct {
	caller Caller
	method string
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// begin counts a call that is under way, and refuses one too many.
func (g *Guard) begin(ctx context.Context, method string) (*running, error) {
	r := &running{caller: CallerOf(ctx), method: method}
	g.mu.Lock()
	b := g.bucket(r.caller, time.Now())
	most := g.policy.limits.Streams
	if b.running >= most {
		g.mu.Unlock()
		return nil, g.refuse(r.caller, method, codes.ResourceExhausted, fmt.Sprintf("%s has %s under way, which is the most: end some (limits.streams of the policy)", r.caller.key(), units.Count(most, "call")))
	}
	b.running++
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	g.streams[r] = struct{}{}
	g.mu.Unlock()
	return r, nil
}

func (g *Guard) end(r *running) {
	r.cancel(nil)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.streams, r)
	g.bucket(r.caller, time.Now()).running--
}
