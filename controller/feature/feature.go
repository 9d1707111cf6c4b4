// Package feature defines a feature of the controller: it contributes entities to every switch and may
// run a loop beside each. Each feature is a package of its own and one line in package controller's
// list. Start at Feature.
package feature

import (
	"context"
	"errors"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/pollreport"
)

// Env is a feature's input for one switch. It and everything that it points to are immutable; a
// changed configuration makes a new one.
type Env struct {
	Config   *config.Config
	Graph    *topology.Graph
	Switch   *config.Switch     // one of Config
	Pipeline *pipeline.Pipeline // that the target of the switch runs
}

// Feature is one feature. Its methods may be called at any time from any goroutine.
type Feature interface {
	// Name is a word, unique among the features.
	Name() string
	// Describe returns what the feature declares of itself, always the same.
	Describe() Description
	// Desired returns what the feature wants on a switch. It is a pure function of its
	// arguments. Two features must not want entities with one key. A feature that ever
	// states the default entry of a table states it always, since default entries cannot
	// be deleted. The error names what is impossible on this switch, in a yamlnode.Fault where a
	// field of the configuration asks for it; the switch then gets nothing new from any
	// feature and is shown as degraded.
	Desired(env *Env) ([]*p4v1.Entity, error)
	// Attach is called when a switch holds what it should. It returns the feature's loop
	// there, nil for none. The loop is dropped without a word when the session or the
	// configuration changes, and another is asked for.
	Attach(env *Env, sw Switch) Loop
}

// Description is a feature's declaration. Its functions are pure and optional: nil means that the
// feature does not need one. Errors are like those of Desired.
type Description struct {
	// Capabilities are the capabilities that the feature uses. It is off at a switch whose pipeline lacks
	// them.
	Capabilities []Capability
	// Section is the feature's part of the configuration; the zero Section for none.
	Section config.Section
	// HostParameters returns the parameters that all hosts must share under a configuration, always in the
	// same order.
	HostParameters func(c *config.Config) []view.HostParameter
	// UDPPort returns the UDP port of maxQD's packets, a constant of the program, and the key that sets it.
	UDPPort func(c *config.Config) (port uint16, key string)
	// Probes returns entities to read from a switch to learn what neither program nor configuration tells.
	Probes func(s *config.Switch) []Probe
	// Shape adds to what the traffic manager of a switch should do. It is called for switches
	// that have one (config.Switch.TrafficManager).
	Shape func(env *Env, c *trafficmanager.Config) error
	// ShapedBy returns the field of the configuration that a field of Shape's result follows from, which
	// is named as a driver's *units.FieldError does; "" for one that the feature does not set.
	ShapedBy func(env *Env, field string) string
	// Advise returns a line for each thing that an operator should know when planning a configuration,
	// besides the changes. running is the switch in the running configuration, nil if it is not in it.
	Advise func(env *Env, running *config.Switch) []string
	// Validate checks the fabric of a configuration with the given links out of service, and, if failures
	// is more than 0, with up to that many further failures, which may take a minute.
	Validate func(ctx context.Context, c *config.Config, g *topology.Graph, down map[string]bool, failures int) []Risk
}

// Router is the feature that wants something for the routes of a switch, beside Desired. There is at
// most one.
type Router interface {
	// Route returns what leads to the destination of a route with next hops. It is a pure function,
	// with errors as Desired's, of the pipeline, the kind of target, the destination and the next
	// hops' ports alone: switches that have these in common share what it returns.
	Route(env *Env, r topology.Route) ([]*p4v1.Entity, error)
}

// Probe is a capability that a switch has when it answers a read.
type Probe struct {
	Name    string // of the capability
	Instead string // what to do where the switch does not have it
	Request *p4v1.Entity
}

// Risk is something that whoever plans a configuration should know.
type Risk struct {
	Text string
	// Refused is a yamlnode.Fault where the configuration must not be applied for it, else nil.
	Refused error
}

// ProbeReason is the reason in the packet_in header of the frames that probe links. A switch's loops receive
// them before everything else.
const ProbeReason = 2

// Loop is a feature's work on one switch. Its methods are called by one goroutine at a
// time, and the loops of other features beside it. A loop must not keep goroutines.
type Loop interface {
	// Interval is how often Tick is called, 0 for never; it is asked once.
	Interval() time.Duration
	// Tick does what is due. Meanwhile messages for the loop wait, up to a bound. An error is logged, and
	// the ticks go on.
	Tick(ctx context.Context, now time.Time) error
	// Receive is given every message of the switch, as all loops are, in no order. What m
	// points to is valid until it returns and must not be changed.
	Receive(now time.Time, m Message)
}

// Message is something that a switch sent unasked; exactly one field is set.
type Message struct {
	Report *Report
	Packet *pipeline.PacketIn // that is no report
	Digest *p4v1.DigestList
	Idle   *p4v1.IdleTimeoutNotification
}

// Report is the answer to a poll of a port, whichever loop asked.
type Report struct {
	pollreport.Report
	Asked time.Time // when the poll was sent
}

// Switch is a loop's access to its switch.
type Switch interface {
	Name() string
	Packets
	Entities
}

// Packets are those that a loop may send. Both never wait.
type Packets interface {
	// PacketOut hands a packet to the switch.
	PacketOut(p *p4v1.PacketOut) error
	// Poll asks ports for their registers, except ports that any loop has asked within quiet before now,
	// the time of the tick. Every loop receives every Report.
	Poll(now time.Time, quiet time.Duration, ports ...uint32) error
}

// Entities are those of the switch.
type Entities interface {
	// Read reads entities, all in one request; unset ids are wildcards.
	Read(ctx context.Context, requests ...*p4v1.Entity) ([]*p4v1.Entity, error)
	// Write writes entries of tables that the program marks @learned, which no Desired has.
	// Updates that the switch refused come back in a *session.WriteError.
	Write(ctx context.Context, updates []*p4v1.Update) error
}

// TrafficManager is a loop's additional access to a switch with a traffic manager
// (config.Switch.TrafficManager): such a Switch is a TrafficManager too.
type TrafficManager interface {
	// Pauses reads what the MACs of some ports have counted of their pauses. It returns at
	// the end of ctx at the latest.
	Pauses(ctx context.Context, ports []uint32) (map[uint32]trafficmanager.PauseCounters, error)
	// Victims says which ports the traffic manager should give the whole shared pool as long
	// as the loop lives, beside all that it should hold by Shape. It replaces what the loop
	// said before. It never waits; the write follows at once, and is repeated where the
	// traffic manager refuses it. With the loop its victims end. Only one feature may use it.
	Victims(ports []uint32) error
}

// Callbacks are the controller's services for features. Their methods never wait.
type Callbacks interface {
	// Sample publishes what a poll brought back.
	Sample(s view.Sample)
	// LinkSeen says that a packet came to the switch at over a link, by its name, just now.
	LinkSeen(link, at string)
	// Event publishes something that happened.
	Event(e view.Event)
}

// Constructor makes a feature.
type Constructor func(callbacks Callbacks) Feature

// EntityList collects the results of builders: e.Add(p.Entry(…).Entity()).
type EntityList struct {
	Entities []*p4v1.Entity
	Err      error // the first one, and all faults behind it
}

// Add adds the entity of a builder; nil adds nothing.
func (c *EntityList) Add(e *p4v1.Entity, err error) {
	switch {
	case err != nil:
		var refused yamlnode.Fault
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

// Result returns the entities, or the first error.
func (c *EntityList) Result() ([]*p4v1.Entity, error) {
	if c.Err != nil {
		return nil, c.Err
	}
	return c.Entities, nil
}
