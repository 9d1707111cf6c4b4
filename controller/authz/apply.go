package authz

import (
	"context"
	"fmt"
	"slices"
	"strings"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/yamlnode"
)

// applyMethod is the method whose loss locks a caller out.
const applyMethod = "/headgate.v1.FabricService/ApplyConfig"

// Check implements controller.Participant.
func (a *Authorizer) Check(cfg *config.Config) error {
	_, err := load(cfg, a.Files)
	return err
}

// Configure implements controller.Participant: it puts the configuration's policy into force.
func (a *Authorizer) Configure(cfg *config.Config) (undo func(), err error) {
	p, err := load(cfg, a.Files)
	if err != nil {
		return nil, err
	}
	before := a.change(p)
	record := func(from, to *policy) {
		if !slices.Equal(from.lines, to.lines) {
			a.Audit.Record(audit.Entry{
				What: audit.Policy, Peer: "configuration " + cfg.File, Subject: cfg.Controller.Policy,
				Before: short(from.lines), After: short(to.lines),
			}, nil)
		}
	}
	record(before, p)
	return func() { a.change(before); record(p, before) }, nil
}

// short writes a policy for a line of the audit log.
func short(lines []string) string {
	const most = 4096
	text := strings.Join(lines, "; ")
	if len(text) > most {
		return audit.Digest(text)
	}
	return text
}

// Changes implements controller.Planner.
func (a *Authorizer) Changes(cfg *config.Config) []*pb.Change {
	p, err := load(cfg, a.Files)
	if err != nil {
		return nil // Check has said so
	}
	a.mu.Lock()
	now := a.policy.lines
	a.mu.Unlock()
	lines := func(p []string) map[string]string {
		by := map[string]string{}
		for _, l := range p {
			by[l] = ""
		}
		return by
	}
	return pb.Diff("policy", lines(now), lines(p.lines))
}

type lockoutKey struct{}

// AllowLockout returns a context in which the caller may apply a policy that grants it less.
func AllowLockout(ctx context.Context) context.Context {
	return context.WithValue(ctx, lockoutKey{}, true)
}

// CheckCaller returns why the caller of ctx may not apply a configuration, as a yamlnode.Fault, or nil. Operators
// must not change the policy, and nobody may lock themselves out by mistake. If ctx belongs to no call, it returns
// nil.
func (a *Authorizer) CheckCaller(ctx context.Context, cfg *config.Config) error {
	c, called := ctx.Value(callerKey{}).(Caller)
	if !called || c.Owner {
		return nil
	}
	next, err := load(cfg, a.Files)
	if err != nil {
		return nil // Check says so
	}
	a.mu.Lock()
	now := a.policy
	a.mu.Unlock()
	fault := func(text string) error {
		return yamlnode.Fault{Field: "controller.policy", Text: fmt.Sprintf("is %q, "+text, cfg.Controller.Policy)}
	}
	roles := now.rights(c.Identity).roles
	if c.Name == loopback {
		roles = append(roles, a.Loopback)
	}
	if !slices.Contains(roles, Admin) && !slices.Equal(now.lines, next.lines) {
		return fault(fmt.Sprintf("which changes the policy: that needs the role admin, %v has %s", c.Identity, names(roles)))
	}
	if c.Name == loopback || ctx.Value(lockoutKey{}) != nil {
		return nil
	}
	if _, ok := next.rights(c.Identity).allow(applyMethod); !ok {
		return fault(fmt.Sprintf("under which %v could apply nothing any more: grant it a role, or give --allow-lockout", c.Identity))
	}
	return nil
}
