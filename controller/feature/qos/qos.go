// Package qos is the feature that sorts packets into classes and queues, limits the queues
// and marks packets by RED.
package qos

import (
	"fmt"
	"slices"
	"strings"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/units"
)

// The capabilities.
var (
	classCapability = feature.Capability{
		Name: "qos.classes", Objects: pipeline.Objects{Tables: []string{ids.TableDSCPToClassName}},
		Instead: "every packet has class 0 and queue 0",
	}
	portCapability = feature.Capability{
		Name:     "qos.port_maps",
		Objects:  pipeline.Objects{Tables: []string{ids.TableClassByPortName}},
		FilledBy: "qos.port_maps",
		Instead:  "all ports have the classes of qos.classes",
	}
	limitCapability = feature.Capability{
		Name: "qos.queue_limit", Objects: pipeline.Objects{Tables: []string{ids.TableQueueLimitName}}, TrafficManager: "holds the limit",
		Instead: "queues have no limit but the switch's own",
	}
	markCapability = feature.Capability{
		Name: "qos.ecn", Objects: pipeline.Objects{Tables: []string{ids.TableECNREDName, ids.TableECNCurveName}}, FilledBy: "qos.ecn",
		Instead: "nothing is marked",
	}
	weightCapability = feature.Capability{
		Name:    "qos.weights",
		Externs: []uint32{externs.WeightsID},
		Without: func(t config.Target) string {
			switch t {
			case config.Embedded:
				return ""
			case config.BMv2:
				return "simple_switch serves queues by strict priority alone"
			}
			return "P4Runtime has no scheduler"
		},
		TrafficManager: "shares a port by DWRR",
		Instead:        "qos.weights must be empty",
	}
)

// New returns the feature.
func New(feature.Callbacks) *feature.Feature {
	return &feature.Feature{
		Name: "qos", Capabilities: []feature.Capability{classCapability, portCapability, limitCapability, markCapability, weightCapability},
		Section: config.Section{Key: "qos", Read: read, Check: check}, Desired: desired, Shape: shape, ShapedBy: shapedBy,
	}
}

func desired(env *feature.Env) ([]*p4v1.Entity, error) {
	var c feature.EntityList
	s := env.Switch
	q := FromConfig(env.Config)
	has := func(p feature.Capability) bool { return env.Provider(p) == pb.ByProgram }
	switch {
	case has(classCapability):
		classes(&c, env.Pipeline, q.Classes)
	case len(q.Classes) > 0:
		c.Add(nil, env.Refuse("qos.classes", fmt.Sprintf("a list of %d", len(q.Classes)), classCapability))
	}
	for i, m := range q.PortMaps {
		switch {
		case m.Switch != s.Name:
		case has(portCapability):
			c.Add(env.Pipeline.Entry(ids.TableClassByPortName).Exact("ingress_port", p4rtmsg.Uint(uint64(m.Port))).Exact("dscp", p4rtmsg.Uint(uint64(m.DSCP))).
				Action(ids.ActionSetClassName, feature.Arg("class", uint64(m.Class)), feature.Arg("queue", uint64(q.QueueOf(m.Class)))).Entity())
		default:
			c.Add(nil, env.Refuse(fmt.Sprintf("qos.port_maps[%d]", i), fmt.Sprintf("a map of DSCP %d", m.DSCP), portCapability))
		}
	}
	if has(limitCapability) {
		limits(&c, env.Pipeline, q, s)
	} else {
		c.Add(nil, refuseLimits(env))
	}
	switch {
	case has(markCapability):
		marks(env, q, &c)
	case len(q.ECN) > 0:
		c.Add(nil, env.Refuse("qos.ecn", fmt.Sprintf("a list of %d", len(q.ECN)), markCapability))
	}
	if w := q.ByQueue(); w != (externs.Weights{}) {
		switch env.Provider(weightCapability) {
		case pb.ByTarget:
			c.Add(w.Entity(), nil)
		case pb.ByNothing:
			c.Add(nil, env.Refuse("qos.weights", fmt.Sprintf("a list of %d", len(q.Weights)), weightCapability))
		}
	}
	return c.Result()
}

// classes includes entries that equal the default, so that the operator sees all written entries.
func classes(c *feature.EntityList, p *pipeline.Pipeline, list []Class) {
	c.Add(p.Default(ids.TableDSCPToClassName).Action(ids.ActionSetClassName, feature.Arg("class", 0), feature.Arg("queue", 0)).Entity())
	for _, k := range list {
		c.Add(p.Entry(ids.TableDSCPToClassName).Exact("dscp", p4rtmsg.Uint(uint64(k.DSCP))).
			Action(ids.ActionSetClassName, feature.Arg("class", uint64(k.Class)), feature.Arg("queue", uint64(k.Queue))).Entity())
	}
}

// limits states the fabric's limit as the default, and entries for ports that differ.
func limits(c *feature.EntityList, p *pipeline.Pipeline, q Config, s *config.Switch) {
	c.Add(p.Default(ids.TableQueueLimitName).Action(ids.ActionSetQueueLimitName, feature.Arg("bytes", uint64(q.QueueLimit))).Entity())
	for _, port := range s.Ports {
		if port.QueueLimit == 0 || port.QueueLimit == q.QueueLimit {
			continue
		}
		for queue := range s.PriorityQueues {
			c.Add(p.Entry(ids.TableQueueLimitName).
				Exact("egress_port", p4rtmsg.Uint(uint64(port.Number))).Exact("queue", p4rtmsg.Uint(uint64(queue))).
				Action(ids.ActionSetQueueLimitName, feature.Arg("bytes", uint64(port.QueueLimit))).Entity())
		}
	}
}

// refuseLimits returns an error if the file has limits that nothing enforces.
func refuseLimits(env *feature.Env) error {
	if env.Provider(limitCapability) == pb.ByTrafficManager {
		return nil
	}
	if limit := FromConfig(env.Config).QueueLimit; limit != ids.Unlimited {
		return env.Refuse("qos.queue_limit", limit.String(), limitCapability)
	}
	for i, port := range env.Switch.Ports {
		if port.QueueLimit != 0 && port.QueueLimit != ids.Unlimited {
			return env.Refuse(fmt.Sprintf("%s.ports[%d].queue_limit", env.Config.Path(env.Switch), i), port.QueueLimit.String(), limitCapability)
		}
	}
	return nil
}

// shape is feature.Feature.Shape. The traffic manager must not drop before a program that holds the limits does.
func shape(env *feature.Env, c *trafficmanager.Config) error {
	s := env.Switch
	c.Weights = FromConfig(env.Config).ByQueue()
	for _, port := range c.Ports {
		limit := FromConfig(env.Config).QueueLimit
		if own := s.Port(port.Number).QueueLimit; own != 0 {
			limit = own
		}
		if limit == ids.Unlimited {
			continue
		}
		for queue := range s.PriorityQueues {
			c.QueueLimits = append(c.QueueLimits, trafficmanager.QueueLimit{Port: port.Number, Queue: queue, Bytes: limit})
		}
	}
	return nil
}

func shapedBy(_ *feature.Env, field string) string {
	if strings.HasPrefix(field, "queue_limits[") {
		return "qos.queue_limit"
	}
	return ""
}

// Config is the section qos: classes, queues and ECN marks of every switch.
type Config struct {
	// Classes maps DSCP to class and queue. A DSCP not listed has class 0 and queue 0.
	Classes []Class
	// PortMaps maps DSCPs of packets that arrive by some ports in another way; none by default.
	PortMaps []PortMap
	// QueueLimit is the most that a queue of a port may hold in bytes, 1 B … 4 GB;
	// default 4294967295 B, which is no limit.
	QueueLimit units.Bytes
	// ECN marks by RED in some queues; none by default.
	ECN []ECN
	// Weights has the queues that share a port by DWRR (deficit weighted round robin) in proportion to their
	// weights. All other queues are served first, the highest number first. None by default: all queues have strict
	// priority. Targets: embedded, and Tofino with bf_runtime.
	Weights []Weight
}

// Weight is the weight of one queue.
type Weight struct {
	// Queue is the priority queue, 0 … 7, at most once. Required.
	Queue uint8
	// Weight is the queue's weight, 1 … 1000. Its share is Weight divided by the sum over all queues with packets
	// to send. Required.
	Weight uint16
}

// ByQueue returns the weights by queue, 0 for those that have none.
func (q Config) ByQueue() (w externs.Weights) {
	for _, e := range q.Weights {
		w[e.Queue] = e.Weight
	}
	return w
}

// Class maps one DSCP.
type Class struct {
	// DSCP is the IPv4 field of RFC 2474, 0 … 63, each at most once. Required.
	DSCP uint8
	// Class is the priority of IEEE 802.1Q that PFC would use, 0 … 7. Required.
	Class uint8
	// Queue is the priority queue, 0 (lowest) … 7, less than priority_queues of every switch; default the class. A
	// lossless class must use the queue of its own number. On the embedded switch it may use any queue that no
	// other lossless class uses.
	Queue uint8
}

// PortMap is the class of one DSCP at one port.
type PortMap struct {
	// Switch is the switch of the port. Required.
	Switch string
	// Port is the number of the ingress port, which has a link. Required.
	Port uint32
	// DSCP is the field of RFC 2474, 0 … 63, at most once for each port. Required.
	DSCP uint8
	// Class is the class of these packets, 0 or a class of qos.classes, 0 … 7. They use that class's queue. A
	// lossless DSCP becomes lossy at a port that maps it to a lossy class. A class with several queues is refused.
	// Required.
	Class uint8
}

// QueueOf returns the queue of a class with one.
func (q Config) QueueOf(class uint8) uint8 {
	if list := q.QueuesOf(class); len(list) > 0 {
		return list[0]
	}
	return 0
}

// FromConfig returns the section of a configuration.
func FromConfig(c *config.Config) Config { return config.SectionOf[Config](c, "qos") }

// ClassOf returns class and queue of a DSCP.
func (q Config) ClassOf(dscp uint8) Class {
	for _, k := range q.Classes {
		if k.DSCP == dscp {
			return k
		}
	}
	return Class{DSCP: dscp}
}

// ClassAt returns the class of a DSCP that comes in by a port.
func (q Config) ClassAt(sw string, port uint32, dscp uint8) uint8 {
	for _, m := range q.PortMaps {
		if m.Switch == sw && m.Port == port && m.DSCP == dscp {
			return m.Class
		}
	}
	return q.ClassOf(dscp).Class
}

// QueuesOf returns the queues of a class, each once.
func (q Config) QueuesOf(class uint8) (list []uint8) {
	for _, k := range q.Classes {
		if k.Class == class && !slices.Contains(list, k.Queue) {
			list = append(list, k.Queue)
		}
	}
	return list
}

func read(m *yamlnode.Map, _ *config.Config) any {
	return Config{
		Classes:    yamlnode.List(m, "classes", readClass),
		PortMaps:   yamlnode.List(m, "port_maps", readPortMap),
		QueueLimit: m.Bytes("queue_limit", ids.Unlimited, 1, ids.Unlimited),
		ECN:        yamlnode.List(m, "ecn", readECN),
		Weights:    yamlnode.List(m, "weights", readWeight),
	}
}

func readPortMap(m *yamlnode.Map) PortMap {
	m.Need("switch", "port", "dscp", "class")
	return PortMap{Switch: m.Text("switch", ""), Port: uint32(m.Int("port", 0, 1, 509)), DSCP: uint8(m.Int("dscp", 0, 0, 63)), Class: uint8(m.Int("class", 0, 0, 7))}
}

func readWeight(m *yamlnode.Map) Weight {
	m.Need("queue", "weight")
	return Weight{Queue: uint8(m.Int("queue", 0, 0, 7)), Weight: uint16(m.Int("weight", 0, 1, externs.MaxWeight))}
}

func readClass(m *yamlnode.Map) Class {
	m.Need("dscp", "class")
	m.Computed("queue")
	class := m.Int("class", 0, 0, 7)
	return Class{DSCP: uint8(m.Int("dscp", 0, 0, 63)), Class: uint8(class), Queue: uint8(m.Int("queue", class, 0, 7))}
}

// check is config.Section.Check: it compares the section with the queues of the switches.
func check(c *config.Config, d *yamlnode.Doc) {
	fewest := c.Switches[0]
	for _, s := range c.Switches {
		if s.PriorityQueues < fewest.PriorityQueues {
			fewest = s
		}
	}
	queue := func(path string, q uint8) {
		if most := fewest.PriorityQueues; int(q) >= most {
			d.Fault(path, "is %d, but the switch %q has %d priority queues, want 0 to %d", q, fewest.Name, most, most-1)
		}
	}
	dscps, curves := yamlnode.Unique[uint8]{}, yamlnode.Unique[ECN]{}
	for i, k := range FromConfig(c).Classes {
		path := fmt.Sprintf("qos.classes[%d]", i)
		dscps.Use(d, k.DSCP, path+".dscp", fmt.Sprint(k.DSCP))
		queue(path+".queue", k.Queue)
	}
	mapped := yamlnode.Unique[PortMap]{}
	for i, m := range FromConfig(c).PortMaps {
		path := fmt.Sprintf("qos.port_maps[%d]", i)
		checkPlace(c, d, path, m.Switch, m.Port, 0)
		mapped.Use(d, PortMap{Switch: m.Switch, Port: m.Port, DSCP: m.DSCP}, path+".dscp", fmt.Sprint(m.DSCP))
		switch queues := FromConfig(c).QueuesOf(m.Class); {
		case len(queues) == 0 && m.Class != 0:
			d.Fault(path+".class", "is %d, want 0 or a class of qos.classes, in whose queue these packets are", m.Class)
		case len(queues) > 1:
			d.Fault(path+".class", "is %d, which qos.classes has in the queues %v: want a class with one queue", m.Class, queues)
		}
	}
	weighted := yamlnode.Unique[uint8]{}
	for i, w := range FromConfig(c).Weights {
		path := fmt.Sprintf("qos.weights[%d].queue", i)
		weighted.Use(d, w.Queue, path, fmt.Sprint(w.Queue))
		queue(path, w.Queue)
	}
	for i, e := range FromConfig(c).ECN {
		path := fmt.Sprintf("qos.ecn[%d]", i)
		curves.Use(d, ECN{Queue: e.Queue, Switch: e.Switch, Port: e.Port, Rate: e.Rate}, path+".queue", fmt.Sprint(e.Queue))
		queue(path+".queue", e.Queue)
		if e.KMin > e.KMax {
			d.Fault(path+".kmin", "is %v, want at most kmax, which is %v", e.KMin, e.KMax)
		}
		checkPlace(c, d, path, e.Switch, e.Port, e.Rate)
	}
}

// checkPlace checks that some port has the given switch, number and line rate; "" and 0 match any.
func checkPlace(c *config.Config, d *yamlnode.Doc, path, sw string, port uint32, rate units.Rate) {
	switch {
	case sw != "" && c.Switch(sw) == nil:
		d.Fault(path+".switch", "is %q, want the name of a switch", sw)
		return
	case sw == "" && port != 0:
		d.Fault(path+".port", "is %d, want a switch as well: ports have numbers at their switch", port)
		return
	}
	for _, l := range c.Links {
		line, _ := c.LineRate(l.Rate)
		for _, end := range []config.Endpoint{l.A, l.B} {
			if end.Port != 0 && (sw == "" || sw == end.Node) && (port == 0 || port == end.Port) && (rate == 0 || rate == line) {
				return
			}
		}
	}
	switch {
	case rate != 0:
		d.Fault(path+".rate", "is %v, want the rate of a link times scale %d: no port has this line rate here", rate, c.Scale)
	case port != 0:
		d.Fault(path+".port", "is %d, want a port of %s that has a link", port, sw)
	}
}
