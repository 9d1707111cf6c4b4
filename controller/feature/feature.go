// Package feature defines what a feature of the controller is: something that contributes
// entities to every switch, and may do more while a switch is there. Each feature is a
// package of its own and one line in package controller's list.
package feature

import (
	"context"
	"errors"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/controller/view"
)

// Env is what features work from on one switch. It and all it points to are immutable; a
// change of the configuration, or of the state of links and switches, makes a new one.
type Env struct {
	Config   *config.Config
	Graph    *topology.Graph
	Routes   map[string][]topology.Route // by switch
	Pipeline *pipeline.Pipeline          // that the target of the switch runs
}

// Feature is one feature. Its methods may be called at any time from any goroutine.
type Feature interface {
	// Name is a word, unique among the features.
	Name() string
	// Parts returns what the feature can do and what each part takes, always the same. What
	// the pipeline of a switch lacks is not used there.
	Parts() []Part
	// Desired returns what the feature wants on a switch. It is a pure function of its
	// arguments. Two features must not want entities with one key. A feature that ever
	// states the default entry of a table states it always, since default entries cannot
	// be deleted. The error names what is impossible on this switch, in a *Refused where a
	// field of the configuration asks for it; the switch then gets nothing new from any
	// feature and is shown as degraded.
	Desired(env *Env, sw string) ([]*p4v1.Entity, error)
	// Attach is called when a switch holds what it should. It returns the feature's loop
	// there, nil for none. The loop is dropped without a word when the session or the
	// configuration changes, and another is asked for; a change of routes alone is no
	// reason.
	Attach(env *Env, sw Switch) Loop
}

// Shaper is a feature that has a say in what a traffic manager does.
type Shaper interface {
	// Shape adds to what the traffic manager of a switch should do. It is asked for switches
	// that have one (config.Switch.BFRuntime), and is a pure function of its arguments but
	// for c. The error is as Desired's.
	Shape(env *Env, sw string, c *trafficmanager.Config) error
}

// Loop is a feature's work on one switch. Its methods are called by one goroutine at a
// time. A loop must not keep goroutines.
type Loop interface {
	// Interval is how often Tick is called, 0 for never; it is asked once.
	Interval() time.Duration
	// Tick does what is due. It must return soon. An error is logged, and the ticks go on.
	Tick(ctx context.Context, now time.Time) error
	// Receive is offered every message of the switch and reports whether it was meant for
	// this feature. What m points to is valid until it returns.
	Receive(now time.Time, m Message) bool
}

// Message is something that a switch sent by itself; exactly one field is set.
type Message struct {
	Packet *pipeline.PacketIn
	Digest *p4v1.DigestList
	Idle   *p4v1.IdleTimeoutNotification
}

// Switch is what a loop may do to its switch.
type Switch interface {
	Name() string
	// PacketOut hands a packet to the switch; it never waits.
	PacketOut(p *p4v1.PacketOut) error
	// Read reads entities, all in one request; unset ids are wildcards.
	Read(ctx context.Context, requests ...*p4v1.Entity) ([]*p4v1.Entity, error)
	// Overlay says what the switch should hold as long as the loop lives: each entity in the
	// place of what the loop's feature wants under the same key by Desired, the rest beside
	// it. It replaces what the loop said before. It never waits; the write follows at once,
	// and is repeated like any other where the switch refuses or loses it. With the loop its
	// overlay ends, and Desired alone holds again. The entities must not be changed
	// afterwards.
	Overlay(entities []*p4v1.Entity) error
	// Write writes entries of tables that the program marks @learned, which no Desired and
	// no Overlay has. Updates that the switch refused come back in a *session.WriteError.
	Write(ctx context.Context, updates []*p4v1.Update) error
}

// Managed is what a loop may do beside Switch where the switch has a traffic manager
// (config.Switch.BFRuntime): such a Switch is a Managed, too.
type Managed interface {
	// Pauses reads what the MACs of some ports have counted of their pauses. It returns at
	// the end of ctx at the latest.
	Pauses(ctx context.Context, ports []uint32) (map[uint32]trafficmanager.PauseCounters, error)
	// Victims says which ports the traffic manager should give the whole shared pool as long
	// as the loop lives, beside all that it should hold by Shape. It replaces what the loop
	// said before, and is to the traffic manager what Overlay is to the switch; only one
	// feature may use it.
	Victims(ports []uint32) error
}

// Hub is what the controller does for features. Its methods never wait.
type Hub interface {
	// Sample publishes what a poll brought back.
	Sample(s view.Sample)
	// LinkSeen says that a packet came to the switch at over a link, by its name, just now.
	LinkSeen(link, at string)
	// Event publishes something that happened.
	Event(e view.Event)
	// PACC says how the loop of a switch stands.
	PACC(p view.PACC)
	// Buffer replaces what is shown of a switch's buffer; it must not be changed afterwards.
	Buffer(sw string, b *view.Buffer)
}

// Constructor makes a feature.
type Constructor func(hub Hub) Feature

// Collect joins entities and errors of builders: e.Add(p.Entry(…).Entity()).
type Collect struct {
	Entities []*p4v1.Entity
	Err      error // the first one, and all *Refused behind it
}

// Add takes what a builder returns; nil is nothing.
func (c *Collect) Add(e *p4v1.Entity, err error) {
	switch {
	case err != nil:
		var refused *Refused
		switch {
		case c.Err == nil:
			c.Err = err
		case errors.As(err, &refused):
			c.Err = errors.Join(c.Err, err)
		}
	case e != nil:
		c.Entities = append(c.Entities, e)
	}
}

// Result returns the entities, or what was wrong.
func (c *Collect) Result() ([]*p4v1.Entity, error) {
	if c.Err != nil {
		return nil, c.Err
	}
	return c.Entities, nil
}
