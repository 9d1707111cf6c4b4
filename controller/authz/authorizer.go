package authz

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/internal/confine"
	"github.com/headgate/headgate/units"
)

// Options of an Authorizer.
type Options struct {
	// Loopback is the role of callers without credentials on a connection without TLS; empty means no role. If it
	// is set, the server must listen on loopback only.
	Loopback Role
	// Files reads the policy and the files that it names.
	Files confine.Dirs
	// Audit records each call that is refused, and each change of the policy.
	Audit *audit.Log
}

// Authorizer is safe for concurrent use.
type Authorizer struct {
	Options

	mu      sync.Mutex
	policy  *policy
	buckets map[string]*bucket
	streams map[*running]struct{}
}

// New returns an authorizer that admits only the owner, and callers on loopback with the role Options.Loopback.
func New(o Options) *Authorizer {
	if o.Audit == nil {
		o.Audit = audit.New(audit.Options{})
	}
	return &Authorizer{Options: o, policy: closed(), buckets: map[string]*bucket{}, streams: map[*running]struct{}{}}
}

// Caller is the identity that makes a call, and the applications and hosts that the call may name.
type Caller struct {
	Identity
	Address string // address of the other end of the connection
	// Applications are the applications that the call may name, nil for all.
	Applications []string
	hosts        []string // hosts as which the caller may attach, nil for all
}

type callerKey struct{}

// CallerFromContext returns the caller of a call that the authorizer admitted.
func CallerFromContext(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// Tap implements tap.ServerInHandle: it admits or refuses a call before its message is read. It runs under the lock
// of the connection, so a check that needs the network (an OpenID Connect token) is left to the interceptors.
func (a *Authorizer) Tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	id, address, secure := identify(ctx, info.Header)
	if bearer, ok := bearerOf(info.Header); ok {
		if !secure {
			return nil, a.refuse(Caller{Identity: id, Address: address}, info.FullMethodName, codes.Unauthenticated, "a token is a secret: want TLS or the Unix socket")
		}
		a.mu.Lock()
		p := a.policy
		a.mu.Unlock()
		if id, ok = p.static(bearer); !ok && p.oidc != nil {
			return ctx, a.limit(Caller{Address: address}, info.FullMethodName) // authenticate does the rest
		}
		if !ok {
			return nil, a.refuse(Caller{Address: address}, info.FullMethodName, codes.Unauthenticated, "the token is not known")
		}
	}
	return a.admit(ctx, Caller{Identity: id, Address: address}, info.FullMethodName)
}

func bearerOf(md metadata.MD) (string, bool) {
	list := md.Get("authorization")
	if len(list) == 0 {
		return "", false
	}
	scheme, word, _ := strings.Cut(list[0], " ")
	if !strings.EqualFold(scheme, "bearer") {
		return "", true // a token is never empty
	}
	return strings.TrimSpace(word), true
}

// admit decides about a call whose caller is authenticated.
func (a *Authorizer) admit(ctx context.Context, c Caller, method string) (context.Context, error) {
	if err := a.limit(c, method); err != nil {
		return nil, err
	}
	conf, err := a.decide(c, method)
	if err != nil {
		return nil, err
	}
	c.Applications, c.hosts = conf.applications, conf.hosts
	return context.WithValue(ctx, callerKey{}, c), nil
}

// decide asks the policy.
func (a *Authorizer) decide(c Caller, method string) (confined, error) {
	a.mu.Lock()
	r := a.policy.rights(c.Identity)
	a.mu.Unlock()
	if c.Name == loopback && a.Loopback != "" {
		r.roles = append(r.roles, a.Loopback)
	}
	conf, ok := r.allow(method)
	switch {
	case ok:
		return conf, nil
	case !Known(method):
		return conf, a.refuse(c, method, codes.Unimplemented, "no such method")
	case c.Name == "":
		return conf, a.refuse(c, method, codes.Unauthenticated, "want a client certificate or a token")
	case len(r.roles) == 0:
		return conf, a.refuse(c, method, codes.PermissionDenied, fmt.Sprintf("%v has no role: see controller.policy", c.Identity))
	}
	return conf, a.refuse(c, method, codes.PermissionDenied, fmt.Sprintf("%v has the role %s, which may not call this; %s may", c.Identity, names(r.roles), names(append(methods[method].roles, Admin))))
}

func names(roles []Role) string {
	var list []string
	for _, r := range roles {
		list = append(list, string(r))
	}
	return strings.Join(list, ", ")
}

// refuse returns the status of a refusal.
func (a *Authorizer) refuse(c Caller, method string, code codes.Code, why string) error {
	if !Known(method) {
		method = "unknown" // a stranger chooses the name, so it does not go into the log
	}
	a.Audit.Record(audit.Entry{What: audit.Denied, Identity: strings.ToValidUTF8(c.Name, "?"), Peer: c.Address, Subject: method}, errors.New(why))
	refusal := status.New(code, strings.ToValidUTF8(why, "?"))
	if reason, has := reasons[code]; has {
		refusal, _ = refusal.WithDetails(&errdetails.ErrorInfo{Domain: pb.ReasonDomain, Reason: reason}) // this fails for code OK only
	}
	return refusal.Err()
}

var reasons = map[codes.Code]string{
	codes.Unauthenticated: pb.ReasonNotAuthenticated, codes.PermissionDenied: pb.ReasonNotPermitted, codes.ResourceExhausted: pb.ReasonLimitReached,
}

// authenticate checks the token of a call that Tap left undecided.
func (a *Authorizer) authenticate(ctx context.Context, method string) (context.Context, error) {
	if _, in := ctx.Value(callerKey{}).(Caller); in {
		return ctx, nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	_, address, secure := identify(ctx, md)
	bearer, ok := bearerOf(md)
	a.mu.Lock()
	p := a.policy
	a.mu.Unlock()
	if !ok || !secure || p.oidc == nil {
		return nil, a.refuse(Caller{Address: address}, method, codes.Unauthenticated, "want a client certificate or a token")
	}
	within, cancel := context.WithTimeout(ctx, issuerWait)
	defer cancel()
	id, _, err := p.oidc.verify(within, bearer)
	if err != nil {
		return nil, a.refuse(Caller{Address: address}, method, codes.Unauthenticated, "the token is refused: "+err.Error())
	}
	return a.admit(ctx, Caller{Identity: id, Address: address}, method)
}

// Unary is the interceptor of unary calls.
func (a *Authorizer) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	ctx, err := a.authenticate(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	call, err := a.begin(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	defer a.end(call)
	if err := a.checkScope(CallerFromContext(ctx), info.FullMethod, req); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

// Stream is the interceptor of streams. A stream ends when the policy no longer allows it or changes its limits.
func (a *Authorizer) Stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	ctx, err := a.authenticate(ss.Context(), info.FullMethod)
	if err != nil {
		return err
	}
	call, err := a.begin(ctx, info.FullMethod)
	if err != nil {
		return err
	}
	defer a.end(call)
	err = next(srv, &checkedStream{ServerStream: ss, authz: a, ctx: call.ctx, method: info.FullMethod})
	if cause := context.Cause(call.ctx); err != nil && cause != nil && status.Code(cause) != codes.Unknown {
		return cause // the policy ended the call, so the handler's own error does not matter
	}
	return err
}

// checkedStream is a stream whose messages are checked too. Each message after the first counts as a call.
type checkedStream struct {
	grpc.ServerStream
	authz  *Authorizer
	ctx    context.Context
	method string
	more   bool // the first message was received
}

// Context implements grpc.ServerStream.
func (s *checkedStream) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream.
func (s *checkedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if s.more {
		if err := s.authz.limit(CallerFromContext(s.ctx), s.method); err != nil {
			return err
		}
	}
	s.more = true
	return s.authz.checkScope(CallerFromContext(s.ctx), s.method, m)
}

// change puts another policy in force. It ends the streams that the policy forbids or confines differently.
func (a *Authorizer) change(p *policy) (before *policy) {
	a.mu.Lock()
	before, a.policy = a.policy, p
	clear(a.buckets) // the new policy may have other limits; calls under way still count
	var list []*running
	for r := range a.streams {
		list = append(list, r)
		a.bucket(r.caller, time.Now()).running++
	}
	a.mu.Unlock()
	for _, r := range list {
		conf, err := a.decide(r.caller, r.method)
		if err == nil && !conf.equal(confined{r.caller.Applications, r.caller.hosts}) {
			err = status.Error(codes.Unavailable, "the policy has changed: call again")
		}
		if err != nil {
			r.cancel(err)
		}
	}
	return before
}

// bucket is the unused part of an identity's limits. The Authorizer's mu guards it.
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

// bucket returns the bucket of caller c. mu must be held.
func (a *Authorizer) bucket(c Caller, now time.Time) *bucket {
	key := c.key()
	b := a.buckets[key]
	if b != nil {
		return b
	}
	if len(a.buckets) >= maxBuckets {
		for k, old := range a.buckets { // a full bucket is the same as a new one
			if old.running == 0 && old.TokensAt(now) >= float64(old.Burst()) {
				delete(a.buckets, k)
			}
		}
	}
	b = &bucket{Limiter: rate.NewLimiter(rate.Limit(a.policy.limits.Rate), a.policy.limits.Burst)}
	a.buckets[key] = b
	return b
}

// limit counts a call, or a message of a stream, and refuses it if it exceeds the rate.
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

// running is a call in progress.
type running struct {
	caller Caller
	method string
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// begin counts a running call, and refuses it if the caller has too many.
func (a *Authorizer) begin(ctx context.Context, method string) (*running, error) {
	r := &running{caller: CallerFromContext(ctx), method: method}
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
