// Package priority hands out PrioPlus' virtual priorities: a priority is a range of delays in one queue, its
// channel (Zhang et al., EuroSys 2025, §4.3.2). The configuration's plan defines the channels. A priority that is
// allocated to an application is for its flows only; flows of all applications may use the others.
package priority

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/state/outcome"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/units"
)

// DefaultApplication is the application of requests that name none, as in package weights.
const DefaultApplication = "default"

// Priority is a virtual priority.
type Priority struct {
	Number      int
	Application string // who has it; empty when nobody has
	Channel     channel.Channel
}

// Keeper makes allocations durable.
type Keeper interface {
	// Priorities returns which application has which priority.
	Priorities() map[int]string
	// SavePriority stores the application that a priority is allocated to ("" for none) and the outcome of the
	// request (nil for none).
	SavePriority(priority int, application string, done *outcome.Done) error
}

// Registry holds the plan and the owner of each priority. It is safe for concurrent use. The lock write serialises
// changes, from their check to their commit; mu guards what readers see and is never held while the keeper works.
type Registry struct {
	// Pending has the changes in progress; nil if nobody waits for them. It is set before the first call.
	Pending *outcome.Pending

	keeper  Keeper // nil: allocations live as long as the registry
	write   sync.Mutex
	mu      sync.Mutex
	plan    *Plan // nil: the configuration has none
	taken   map[int]string
	changed chan struct{} // closed, and replaced, with every change
}

// New returns a registry without a plan, with the allocations that the keeper has; nil keeps
// none.
func New(k Keeper) *Registry {
	r := &Registry{keeper: k, taken: map[int]string{}, changed: make(chan struct{})}
	if k != nil {
		r.taken = k.Priorities()
	}
	return r
}

// Check implements controller.Participant: it refuses a plan that lacks an allocated priority.
func (r *Registry) Check(cfg *config.Config) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.check(PlanOf(cfg))
}

// Configure implements controller.Participant.
func (r *Registry) Configure(cfg *config.Config) (undo func(), err error) {
	r.write.Lock()
	defer r.write.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.plan
	if err := r.check(PlanOf(cfg)); err != nil {
		return nil, err
	}
	r.replace(PlanOf(cfg))
	return func() {
		r.write.Lock()
		defer r.write.Unlock()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.replace(before)
	}, nil
}

// Changes implements controller.Planner.
func (r *Registry) Changes(cfg *config.Config) []*pb.Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	return pb.Diff("channel", r.plan.texts(), PlanOf(cfg).texts())
}

// texts returns the channels for people, by priority; none of a nil Plan.
func (p *Plan) texts() map[string]string {
	list := map[string]string{}
	for n := 1; p != nil && n <= p.Priorities; n++ {
		if c, err := p.Channel(n); err == nil {
			list[fmt.Sprintf("priority %d", n)] = fmt.Sprintf("target %v, limit %v over a base of %v", c.Target, c.Limit, p.Base)
		}
	}
	return list
}

// replace sets the plan (nil for none) and notifies those who wait on Changed. The caller holds mu.
func (r *Registry) replace(p *Plan) {
	same := r.plan == nil && p == nil || r.plan != nil && p != nil && *r.plan == *p
	r.plan = p
	if !same {
		r.notify()
	}
}

// check returns why a plan contradicts the allocations, or nil. The plan itself was checked when the configuration
// was read. The caller holds mu.
func (r *Registry) check(p *Plan) error {
	most := 0
	if p != nil {
		most = p.Priorities
	}
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(r.taken))) {
		if n > most {
			return yamlnode.Fault{Field: "prioplus.priorities", Text: fmt.Sprintf("gives %d priorities: application %q has priority %d, release it first", most, r.taken[n], n)}
		}
	}
	return nil
}

// assign gives a priority to an application; "" frees it. The caller holds write, but not mu.
func (r *Registry) assign(number int, application string, done *outcome.Done) error {
	defer r.Pending.Begin()()
	if r.keeper != nil {
		if err := r.keeper.SavePriority(number, application, done); err != nil {
			return outcome.FromStore(err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if application == "" {
		delete(r.taken, number)
	} else {
		r.taken[number] = application
	}
	r.notify()
	return nil
}

// notify wakes all who wait. The caller holds mu.
func (r *Registry) notify() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// Plan returns the plan; false when there is none.
func (r *Registry) Plan() (Plan, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.plan == nil {
		return Plan{}, false
	}
	return *r.plan, true
}

// Allocate gives a priority to an application: number, or with 0 the lowest free one. A priority that the application
// already has is returned again. by is the request, nil for one without an id.
func (r *Registry) Allocate(by *outcome.Request, application string, number int) (Priority, error) {
	application = cmp.Or(application, DefaultApplication)
	r.write.Lock()
	defer r.write.Unlock()
	if by.Again(&number) {
		c, _, err := r.channel(number)
		return Priority{number, application, c}, err
	}
	p, err := r.choose(application, number)
	if err != nil {
		return Priority{}, err
	}
	if p.Application == "" {
		if err := r.assign(p.Number, application, by.DoneWith(p.Number)); err != nil {
			return Priority{}, err
		}
	}
	p.Application = application
	return p, nil
}

// choose returns the priority that an application may have: its own, or nobody's.
func (r *Registry) choose(application string, number int) (Priority, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.within(number, 0); err != nil {
		return Priority{}, err
	}
	if number == 0 {
		for number = 1; r.taken[number] != ""; number++ {
			if number == r.plan.Priorities {
				return Priority{}, ErrFull
			}
		}
	}
	if owner := r.taken[number]; owner != "" && owner != application {
		return Priority{}, &TakenError{number, owner}
	}
	return r.priority(number)
}

// within returns an error if there is no plan, or if number is below low or above the plan's priorities. The caller
// holds mu.
func (r *Registry) within(number, low int) error {
	if r.plan == nil {
		return ErrNoPlan
	}
	if number < low || number > r.plan.Priorities {
		return &RangeError{number, r.plan.Priorities}
	}
	return nil
}

// Release takes a priority from the application that has it. by is as for Allocate.
func (r *Registry) Release(by *outcome.Request, application string, number int) error {
	application = cmp.Or(application, DefaultApplication)
	r.write.Lock()
	defer r.write.Unlock()
	if by.Again(nil) {
		return nil
	}
	switch owner := r.owner(number); owner {
	case "":
		return fmt.Errorf("priority %d: %w", number, ErrFree)
	case application:
	default:
		return &TakenError{number, owner}
	}
	return r.assign(number, "", by.DoneWith(nil))
}

func (r *Registry) owner(number int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken[number]
}

// Channel returns the channel for flows of an application with a priority, and the delay of an empty path that the
// plan assumes.
func (r *Registry) Channel(application string, number int) (c channel.Channel, base units.Time, err error) {
	if owner := r.owner(number); owner != "" && owner != cmp.Or(application, DefaultApplication) {
		return c, 0, &TakenError{number, owner}
	}
	return r.channel(number)
}

// channel is Channel for any application.
func (r *Registry) channel(number int) (c channel.Channel, base units.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.within(number, 1); err != nil {
		return c, 0, err
	}
	p, err := r.priority(number)
	return p.Channel, r.plan.Base, err
}

// priority returns a priority of the plan. The caller holds mu.
func (r *Registry) priority(number int) (Priority, error) {
	c, err := r.plan.Channel(number)
	return Priority{Number: number, Application: r.taken[number], Channel: c}, err
}

// List returns all priorities, lowest first, and a channel that is closed when they change. Without a plan the list
// is empty.
func (r *Registry) List() ([]Priority, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.plan == nil {
		return nil, r.changed
	}
	out := make([]Priority, 0, r.plan.Priorities)
	for n := 1; n <= r.plan.Priorities; n++ {
		if p, err := r.priority(n); err == nil {
			out = append(out, p)
		}
	}
	return out, r.changed
}

// Changed returns a channel that is closed with the next change.
func (r *Registry) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// Errors of a Registry, to be tested with errors.Is; RangeError and TakenError with errors.As.
var (
	ErrNoPlan = errors.New("the configuration has no section prioplus: want one to have virtual priorities")
	ErrFull   = errors.New("every virtual priority is allocated: release one, or raise prioplus.priorities")
	ErrFree   = errors.New("is not allocated")
)

// RangeError is a priority outside the range.
type RangeError struct{ Number, Priorities int }

// Error implements error.
func (e *RangeError) Error() string {
	return fmt.Sprintf("priority %d is not allowed: want 1 to %d (prioplus.priorities)", e.Number, e.Priorities)
}

// TakenError is a priority that another application has.
type TakenError struct {
	Number int
	Owner  string
}

// Error implements error.
func (e *TakenError) Error() string {
	return fmt.Sprintf("priority %d belongs to application %q: want another, or have it released", e.Number, e.Owner)
}
