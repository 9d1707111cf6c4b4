// Package channels hands out PrioPlus' virtual priorities: a priority is a channel of delay
// in one queue (Zhang et al., EuroSys 2025, §4.3.2), which the configuration's plan gives
// it. An application that has a priority allocated has it for itself; flows of all
// applications may use the others.
package channels

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/units"
)

// DefaultApplication pays for what names no application, as with weights.
const DefaultApplication = "default"

// Plan is how the fabric divides the delays of a queue. Times are the fabric's own.
type Plan struct {
	channel.Plan
	Priorities int     // there are priorities 1 to Priorities, larger is higher
	Flows      float64 // of Swift in a priority that Fluctuation is for; 0 when it was given
}

// Priority is a virtual priority.
type Priority struct {
	Number      int
	Application string // who has it; empty when nobody has
	Channel     channel.Channel
}

// Registry knows the plan and who has which priority. It is safe for concurrent use; its
// allocations live as long as it does.
type Registry struct {
	mu      sync.Mutex
	plan    *Plan // nil: the configuration has none
	taken   map[int]string
	changed chan struct{} // closed, and replaced, with every change
}

// New returns a registry without a plan.
func New() *Registry {
	return &Registry{taken: map[int]string{}, changed: make(chan struct{})}
}

// Configure replaces the plan; nil is none. Every channel is computed anew, and whoever
// waits on Changed is told. A plan without a priority that is allocated is refused.
func (r *Registry) Configure(p *Plan) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.check(p); err != nil {
		return err
	}
	same := r.plan == nil && p == nil || r.plan != nil && p != nil && *r.plan == *p
	if p != nil {
		copied := *p
		p = &copied
	}
	r.plan = p
	if !same {
		r.tell()
	}
	return nil
}

// Check says whether Configure would take a plan.
func (r *Registry) Check(p *Plan) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.check(p)
}

func (r *Registry) check(p *Plan) error {
	most := 0
	if p != nil {
		if err := p.Check(); err != nil {
			return err
		}
		if p.Priorities < 1 || p.Priorities > channel.MaxPriority {
			return fmt.Errorf("%d priorities: want 1 to %d", p.Priorities, channel.MaxPriority)
		}
		most = p.Priorities
	}
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(r.taken))) {
		if n > most {
			return fmt.Errorf("%d priorities: application %q has priority %d, release it first", most, r.taken[n], n)
		}
	}
	return nil
}

// tell wakes all who wait. The caller holds mu.
func (r *Registry) tell() {
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

// Allocate gives a priority to an application: the one it asks for, or with 0 the lowest
// that is free. What it has already is given again.
func (r *Registry) Allocate(application string, number int) (Priority, error) {
	application = cmp.Or(application, DefaultApplication)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.plan == nil {
		return Priority{}, ErrNoPlan
	}
	if number < 0 || number > r.plan.Priorities {
		return Priority{}, &RangeError{number, r.plan.Priorities}
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
	p, err := r.priority(number)
	if err != nil {
		return Priority{}, err
	}
	if r.taken[number] == "" {
		r.taken[number] = application
		r.tell()
	}
	p.Application = application
	return p, nil
}

// Release takes a priority from the application that has it.
func (r *Registry) Release(application string, number int) error {
	application = cmp.Or(application, DefaultApplication)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch owner := r.taken[number]; owner {
	case "":
		return fmt.Errorf("priority %d: %w", number, ErrFree)
	case application:
	default:
		return &TakenError{number, owner}
	}
	delete(r.taken, number)
	r.tell()
	return nil
}

// Channel returns the channel of a flow of an application that wants a priority, with the
// delay of an empty path that the plan assumes.
func (r *Registry) Channel(application string, number int) (c channel.Channel, base units.Time, err error) {
	application = cmp.Or(application, DefaultApplication)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.plan == nil:
		return c, 0, ErrNoPlan
	case number < 1 || number > r.plan.Priorities:
		return c, 0, &RangeError{number, r.plan.Priorities}
	case r.taken[number] != "" && r.taken[number] != application:
		return c, 0, &TakenError{number, r.taken[number]}
	}
	p, err := r.priority(number)
	return p.Channel, r.plan.Base, err
}

// priority returns a priority of the plan. The caller holds mu.
func (r *Registry) priority(number int) (Priority, error) {
	c, err := r.plan.Channel(number)
	return Priority{Number: number, Application: r.taken[number], Channel: c}, err
}

// List returns all priorities, lowest first, and a channel that is closed when that is no
// longer so. There are none without a plan.
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
