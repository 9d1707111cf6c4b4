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
	Pipeline *pipeline.Pipeline // that the target of the switch runs
}

// Feature is one feature. Its functions may be called at any time from any goroutine. All but Name and
// Desired are optional: nil, or a zero Section, means that the feature does not need one. Unless they say otherwise they
// are pure, with errors as Desired's.
type Feature struct {
	// Name is a word, unique among the features.
	Name string
	// Capabilities are the capabilities that the feature uses. It is off at a switch whose pipeline lacks
	// them.
	Capabilities []Capability
	// Section is the feature's part of the configuration.
	Section config.Section
	// Desired returns the entities that the feature wants on a switch. Two features must not want entities with
	// one key. A feature that ever states the default entry of a table states it always, since default
	// entries cannot be deleted. The error names what is impossible on this switch, in a yamlnode.Fault where a
	// field of the configuration asks for it; the switch then gets nothing new from any
	// feature and is shown as degraded.
	Desired func(env *Env) ([]*p4v1.Entity, error)
	// Route returns what leads to the destination of a route with next hops, beside Desired. It depends
	// on the pipeline, the kind of target, the destination and the next hops' ports alone: switches that
	// have these in common share what it returns. At most one feature has it.
	Route func(env *Env, r topology.Route) ([]*p4v1.Entity, error)
	// Attach is called when a switch holds what it should. It returns the feature's loop
	// there, nil for none. The loop is dropped without a word when the session or the
	// configuration changes, and another is asked for. It is not pure.
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

// Probe is a capability that a switch has when it answers a read.
type Probe struct {
	Name    string // of the capability
	Instead string // the remedy if the switch does not have it
	Request *p4v1.Entity
}

// Risk is a warning for the operator who plans a configuration.
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
	// the ticks go on, unless it is ErrDone.
	Tick(ctx context.Context, now time.Time) error
	// Receives is which messages Receive is given; it is asked once.
	Receives() Kinds
	// Receive is given every such message of the switch, in no order. What m points to is valid until it
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

// Sample is what telemetry publishes of a poll's report: of one egress port, once in each
// controller.poll_interval.
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
	// LinkSeen says that a packet came to the switch at over a link, by its name, just now.
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

// Send hands a switch a packet for a port, which leaves by a queue and has a mode of ids.PacketOut….
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
	Err      error // the first one, and all faults behind it
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

// Capability is an ability of a feature with its needs. It is either part of the
// program that a switch runs, or a matter of the switch's traffic manager.
type Capability struct {
	// Name is a word with the feature's in front, unique, such as "qos.queue_limit".
	Name string
	// Objects of the program that it takes, all of them.
	Objects pipeline.Objects
	// FilledBy is the field of the configuration that the objects' entries follow from, such as
	// hosts, for when there are more than an object holds; "" when the switch is to blame.
	FilledBy string
	// SetUp says that they are of no use until the traffic manager's server has set them
	// up, which P4Runtime cannot do.
	SetUp bool
	// Externs are entries that it takes of the target itself, whatever its program: externs that
	// no P4Info declares, by id. They are read back with the rest.
	Externs []uint32
	// Without says why a kind of target has no such externs, "" for one that does; nil without
	// Externs.
	Without func(config.Target) string
	// Queues is the least number of priority queues of a port; 0 for any.
	Queues int
	// TrafficManager says what a traffic manager does where the program cannot, as in "the traffic manager
	// …"; "" for nothing.
	TrafficManager string
	// Instead says what happens if neither can.
	Instead string
}

// EmbeddedOnly returns a Capability.Without of PFC that of all targets only the embedded switch obeys; chip says why a Tofino
// has no such externs.
func EmbeddedOnly(chip string) func(config.Target) string {
	why := map[config.Target]string{config.Embedded: "", config.BMv2: "simple_switch ignores the PAUSE frames that it receives", config.Tofino1: chip, config.Tofino2: chip}
	return func(t config.Target) string { return why[t] }
}

// On returns the capability as it is on a switch that runs a pipeline.
func (c Capability) On(pipe *pipeline.Pipeline, s *config.Switch) *pb.Capability {
	by, lacking := c.By(pipe, s)
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

// By returns what does it on a switch that runs a pipeline, and why the program does not; "" where it
// does. It looks at the pipeline's objects and at the switch's configuration, at the kind of target for
// Externs only.
func (c Capability) By(pipe *pipeline.Pipeline, s *config.Switch) (by, lacking string) {
	switch missing := pipe.Lacks(c.Objects); {
	case c.Without != nil:
		if lacking = c.Without(s.Target); lacking == "" {
			return pb.ByTarget, ""
		}
	case len(missing) > 0:
		lacking = fmt.Sprintf("the program for %s has no %s", s.Target.Architecture(), strings.Join(missing, ", no "))
	case s.PriorityQueues < c.Queues:
		lacking = fmt.Sprintf("it takes %d priority queues, the switch is configured with %d", c.Queues, s.PriorityQueues)
	case c.SetUp && s.BFRuntime == "":
		return pb.ByNothing, "it has to be set up by BF Runtime"
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

// In reports whether a program has all objects of the capability.
func (c Capability) In(pipe *pipeline.Pipeline) bool { return len(pipe.Lacks(c.Objects)) == 0 }

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
	_, lacking := c.By(e.Pipeline, s)
	text := fmt.Sprintf("is %s, which the switch %q cannot do: %s", value, s.Name, lacking)
	if c.TrafficManager != "" && s.Target.Chip() != "" {
		text += fmt.Sprintf("; set %s.bf_runtime so that the traffic manager %s", e.Config.Path(s), c.TrafficManager)
	}
	return yamlnode.Fault{Field: field, Text: text}
}

// By returns the part of the switch that provides a capability.
func (e *Env) By(c Capability) string {
	by, _ := c.By(e.Pipeline, e.Switch)
	return by
}
