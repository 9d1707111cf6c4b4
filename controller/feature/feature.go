// Package feature defines a feature of the controller: it contributes entities to every switch and may
// run a loop beside each. Each feature is a package of its own and one line in package controller's
// list. Start at Feature.
package feature

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/pollreport"
	"github.com/headgate/headgate/preview/observed"
)

// Env is a feature's input for one switch. It and everything that it points to are immutable; a
// changed configuration makes a new one.
type Env struct {
	Config   *config.Config
	Graph    *topology.Graph
	Switch   *config.Switch     // one of Config
	Pipeline *pipeline.Pipeline // the pipeline that the switch's target runs
}

// Feature is one feature. Its functions may be called at any time from any goroutine. All but Name and Desired are
// optional: nil, or a zero Section, means that the feature does not need one. A function is pure and
// returns errors like Desired's, unless its comment says otherwise.
type Feature struct {
	// Name is a word, unique among the features.
	Name string
	// Capabilities are the capabilities that the feature uses. It is off at a switch whose pipeline lacks
	// them.
	Capabilities []Capability
	// Section is the feature's part of the configuration.
	Section config.Section
	// Desired returns the feature's entities on a switch. Two features must not return entities with one key. A
	// feature that ever returns the default entry of a table must always return it, since default entries cannot be
	// deleted. The error names what is impossible on this switch, as a yamlnode.Fault if a field of the configuration
	// asks for it. The switch then gets nothing new from any feature and is shown as degraded.
	Desired func(env *Env) ([]*p4v1.Entity, error)
	// Route returns the entities, besides Desired, that lead to the destination of a route with next hops. It depends
	// only on the pipeline, the kind of target, the destination and the next hops' ports: switches that have these in
	// common share the result. At most one feature has it.
	Route func(env *Env, r topology.Route) ([]*p4v1.Entity, error)
	// Attach is called when a switch has its desired state. It returns the feature's loop for the switch, nil for
	// none. When the session or the configuration changes, the loop is dropped without notice and Attach is called
	// again. It is not pure.
	Attach func(env *Env, sw Switch) Loop
	// Status fills in the feature's field of a switch's status, if it knows something: for
	// `headgate get status`, the API and the metrics. It is not pure.
	Status func(sw string, s *pb.FeatureStatus)
	// Counted returns the traffic between pairs of addresses that a switch has counted, in bursts; false if it
	// counts nothing. It is not pure.
	Counted func(sw string) (observed.Traffic, bool)
	// HostParameters returns the parameters that all hosts must share under a configuration, always in the
	// same order.
	HostParameters func(c *config.Config) []*pb.HostParameter
	// UDPPort returns the UDP port of maxQD's packets, a constant of the program, and the key that sets it.
	UDPPort func(c *config.Config) (port uint16, key string)
	// Probes returns entities to read from a switch, to learn abilities that neither program nor configuration shows.
	Probes func(s *config.Switch) []Probe
	// Shape adds to the desired state of a switch's traffic manager. It is called for switches that have one
	// (config.Switch.TrafficManager).
	Shape func(env *Env, c *trafficmanager.Config) error
	// ShapedBy returns the field of the configuration from which a field of Shape's result follows. field is named as
	// in a driver's *units.FieldError. The result is "" for a field that the feature does not set.
	ShapedBy func(env *Env, field string) string
	// Advise returns a line for each thing that an operator should know when planning a configuration,
	// besides the changes. running is the switch in the running configuration, nil if it is not in it.
	Advise func(env *Env, running *config.Switch) []string
	// Validate checks the fabric of a configuration with the given links out of service, and, if failures
	// is more than 0, with up to that many further failures, which may take a minute.
	Validate func(ctx context.Context, c *config.Config, g *topology.Graph, down map[string]bool, failures int) []Risk
}

// Probe is a capability that a switch has when it answers a read.
type Probe struct {
	Name    string // name of the capability
	Instead string // the remedy if the switch does not have it
	Request *p4v1.Entity
}

// Risk is a warning for the operator who plans a configuration.
type Risk struct {
	Text string
	// Refused is a yamlnode.Fault if the risk forbids applying the configuration, else nil.
	Refused error
}

// ProbeReason is the reason in the packet_in header of the frames that probe links. A switch's loops receive
// them before everything else.
const ProbeReason = 2

// Loop is a feature's work on one switch. Its methods are called by one goroutine at a
// time, and the loops of other features beside it. A loop must not keep goroutines.
type Loop interface {
	// Interval is how often Tick is called, 0 for never; it is called once.
	Interval() time.Duration
	// Tick does the work that is due. Meanwhile messages for the loop wait, up to a bound. An error is logged, and
	// the ticks go on, unless it is ErrDone.
	Tick(ctx context.Context, now time.Time) error
	// Receives returns the kinds of messages that Receive gets; it is called once.
	Receives() Kinds
	// Receive gets every message of these kinds from the switch, in no order. What m points to is valid until it
	// returns and must not be changed.
	Receive(now time.Time, m Message)
}

// ErrDone ends the ticks of a loop.
var ErrDone = errors.New("nothing more to do")

// Kinds is a set of kinds of messages.
type Kinds uint8

// The kinds of messages, the most urgent first: frames with ProbeReason, answers to polls, entries that have timed
// out, and digests with all other packets.
const (
	Probes Kinds = 1 << iota
	Reports
	Idles
	Others
)

// Message is something that a switch sent unasked; exactly one field is set.
type Message struct {
	Report *Report
	Packet *pipeline.PacketIn // a packet-in other than a poll report
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

// Packets sends a loop's packets. Its methods never wait.
type Packets interface {
	// PacketOut hands a packet to the switch.
	PacketOut(p *p4v1.PacketOut) error
	// Poll asks ports for their registers, except ports that any loop has asked within quiet before now,
	// the time of the tick. Every loop receives every Report.
	Poll(now time.Time, quiet time.Duration, ports ...uint32) error
}

// Entities reads and writes entities of the switch.
type Entities interface {
	// Read reads entities, all in one request; unset ids are wildcards.
	Read(ctx context.Context, requests ...*p4v1.Entity) ([]*p4v1.Entity, error)
	// Write writes entries of tables that the program marks @learned; Desired never returns such entries. Updates
	// that the switch refused come back in a *session.WriteError.
	Write(ctx context.Context, updates []*p4v1.Update) error
}

// TrafficManager is a loop's additional access to a switch with a traffic manager
// (config.Switch.TrafficManager): such a Switch is a TrafficManager too.
type TrafficManager interface {
	// Pauses reads the pause counters of some ports' MACs. It returns at the end of ctx at the latest.
	Pauses(ctx context.Context, ports []uint32) (map[uint32]trafficmanager.PauseCounters, error)
	// Victims sets the ports to which the traffic manager gives the whole shared pool, besides the state from Shape.
	// It replaces the ports of the last call. It never waits; the write follows at once, and is repeated if the
	// traffic manager refuses it. The victims end with the loop. Only one feature may use it.
	Victims(ports []uint32) error
}

// Sample is telemetry's extract of a poll report: one per egress port and controller.poll_interval.
type Sample struct {
	Time             time.Time
	Switch           string
	Port             uint32
	Peer             string
	QueueBytes       [8]uint32
	QueueingDelay    time.Duration
	DepartureBytes   uint64
	DeparturePackets uint64
	Drops            uint64
}

// Callbacks are the controller's services for features. Their methods never wait.
type Callbacks interface {
	// Sample publishes the report of a poll.
	Sample(s Sample)
	// LinkSeen reports that a packet has just arrived at the switch named at over the link of this name.
	LinkSeen(link, at string)
	// Event publishes something that happened.
	Event(e *pb.Event)
}

// Constructor makes a feature.
type Constructor func(callbacks Callbacks) *Feature

// Every is a Loop that works by ticks alone.
type Every struct {
	Period time.Duration
	Do     func(ctx context.Context, now time.Time) error
}

// Interval implements Loop.
func (e Every) Interval() time.Duration { return e.Period }

// Tick implements Loop.
func (e Every) Tick(ctx context.Context, now time.Time) error { return e.Do(ctx, now) }

// Receives implements Loop.
func (Every) Receives() Kinds { return 0 }

// Receive implements Loop.
func (Every) Receive(time.Time, Message) {}

// Send makes a switch send a packet out of a port, by a queue, with a mode of ids.PacketOut….
func Send(pipe *pipeline.Pipeline, sw Packets, payload []byte, port uint32, queue, mode uint64) error {
	out, err := pipe.PacketOut(payload, Arg("egress_port", uint64(port)), Arg("queue", queue), Arg("mode", mode))
	if err != nil {
		return err
	}
	return sw.PacketOut(out)
}

// Arg returns a number as a parameter of an action.
func Arg(name string, v uint64) pipeline.Arg {
	return pipeline.Arg{Name: name, Value: p4rtmsg.Uint(v)}
}

// EntityList collects the results of builders: e.Add(p.Entry(…).Entity()).
type EntityList struct {
	Entities []*p4v1.Entity
	Err      error // the first error, joined with all later faults
}

// Add adds the entity of a builder; nil adds nothing.
func (c *EntityList) Add(e *p4v1.Entity, err error) {
	switch {
	case err != nil && c.Err == nil:
		c.Err = err
	case err != nil && errors.As(err, new(yamlnode.Fault)):
		c.Err = errors.Join(c.Err, err)
	case err != nil:
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

// LastValue keeps the last value that a feature published of each switch. It is safe for concurrent use; a
// value must not be changed once it is in.
type LastValue[T any] struct{ by sync.Map }

// Set replaces the state of a switch.
func (l *LastValue[T]) Set(sw string, v T) { l.by.Store(sw, v) }

// Get returns the state of a switch; false if it is unknown.
func (l *LastValue[T]) Get(sw string) (T, bool) {
	known, _ := l.by.Load(sw)
	v, ok := known.(T)
	return v, ok
}

// Forget forgets a switch.
func (l *LastValue[T]) Forget(sw string) { l.by.Delete(sw) }

// Capability is an ability that a feature needs, with its requirements. Either the program of a switch or the
// switch's traffic manager provides it.
type Capability struct {
	// Name is unique and begins with the feature's name, such as "qos.queue_limit".
	Name string
	// Objects are the objects of the program that the capability needs, all of them.
	Objects pipeline.Objects
	// FilledBy is the field of the configuration, such as hosts, from which the objects' entries follow. It is named
	// when an object is too small; "" blames the switch.
	FilledBy string
	// SetUp is set if the objects are useless until the traffic manager's server has set them up, which P4Runtime
	// cannot do.
	SetUp bool
	// Externs are the ids of externs of the target itself, whatever its program: no P4Info declares them. They are
	// read back with the other entities.
	Externs []uint32
	// Without returns why a kind of target lacks these externs, "" if it has them; nil without Externs.
	Without func(config.Target) string
	// Queues is the least number of priority queues of a port; 0 for any.
	Queues int
	// TrafficManager completes the sentence "the traffic manager …": it says what the traffic manager does if the
	// program lacks the ability; "" if it does nothing.
	TrafficManager string
	// Chip is why a chip's program lacks the objects; "" for no more than that it does.
	Chip string
	// Instead says what happens if neither the program nor the traffic manager has the ability.
	Instead string
}

// EmbeddedOnly returns a Capability.Without for abilities of received PFC, which only the embedded switch has; chip
// is the reason why a Tofino lacks them.
func EmbeddedOnly(chip string) func(config.Target) string {
	why := map[config.Target]string{config.Embedded: "", config.BMv2: "simple_switch ignores the PAUSE frames that it receives", config.Tofino1: chip, config.Tofino2: chip}
	return func(t config.Target) string { return why[t] }
}

// Status returns the state of the capability on a switch that runs a pipeline.
func (c Capability) Status(pipe *pipeline.Pipeline, s *config.Switch) *pb.Capability {
	by, lacking := c.Provider(pipe, s)
	v := &pb.Capability{Name: c.Name, Supported: by != pb.ByNothing, By: by}
	switch by {
	case pb.ByTrafficManager:
		v.Detail = "the traffic manager " + c.TrafficManager
	case pb.ByNothing:
		v.Detail = lacking
		if c.TrafficManager != "" && s.Target.Chip() != "" {
			v.Detail += ", bf_runtime is not set"
		}
		v.Detail += "; " + c.Instead
	}
	return v
}

// Provider returns the part of a switch that provides the capability with a pipeline, and why the program does not, "" if
// it does. It looks at the pipeline's objects and the switch's configuration; at the kind of target only for Externs.
func (c Capability) Provider(pipe *pipeline.Pipeline, s *config.Switch) (by, lacking string) {
	switch missing := pipe.Lacks(c.Objects); {
	case c.Without != nil:
		if lacking = c.Without(s.Target); lacking == "" {
			return pb.ByTarget, ""
		}
	case len(missing) > 0:
		lacking = fmt.Sprintf("the program for %s has no %s", s.Target.Architecture(), strings.Join(missing, ", no "))
		if c.Chip != "" && s.Target.Chip() != "" {
			lacking += ": " + c.Chip
		}
	case s.PriorityQueues < c.Queues:
		lacking = fmt.Sprintf("it takes %d priority queues, the switch is configured with %d", c.Queues, s.PriorityQueues)
	case c.SetUp && s.BFRuntime == "":
		return pb.ByNothing, "it must be configured through BF Runtime"
	case c.SetUp:
		return pb.ByTrafficManager, ""
	default:
		return pb.ByProgram, ""
	}
	if c.TrafficManager != "" && s.BFRuntime != "" {
		return pb.ByTrafficManager, lacking
	}
	return pb.ByNothing, lacking
}

// InProgram reports whether a program has all objects of the capability.
func (c Capability) InProgram(pipe *pipeline.Pipeline) bool { return len(pipe.Lacks(c.Objects)) == 0 }

// Externs returns the externs that features take of a switch's target.
func Externs(features []*Feature, s *config.Switch) []uint32 {
	var list []uint32
	for _, f := range features {
		for _, c := range f.Capabilities {
			if c.Without != nil && c.Without(s.Target) == "" {
				list = append(list, c.Externs...)
			}
		}
	}
	return list
}

// Refuse returns the yamlnode.Fault for a field whose value asks a switch for a capability that it
// does not have.
func (e *Env) Refuse(field, value string, c Capability) error {
	s := e.Switch
	_, lacking := c.Provider(e.Pipeline, s)
	text := fmt.Sprintf("is %s, which the switch %q cannot do: %s", value, s.Name, lacking)
	if c.TrafficManager != "" && s.Target.Chip() != "" {
		text += fmt.Sprintf("; set %s.bf_runtime so that the traffic manager %s", e.Config.Path(s), c.TrafficManager)
	}
	return yamlnode.Fault{Field: field, Text: text}
}

// Provider returns the part of the switch that provides a capability.
func (e *Env) Provider(c Capability) string {
	by, _ := c.Provider(e.Pipeline, e.Switch)
	return by
}
