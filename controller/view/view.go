// Package view holds what the controller shows of itself, as plain values: the API layer
// translates them to protobuf, the command line and the live view print them.
package view

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// SwitchState is where a switch's session stands.
type SwitchState uint8

// The states of a switch, with the numbers of the API's.
const (
	Disconnected SwitchState = iota + 1
	Backup
	Reconciling
	Ready
	Degraded
)

// String returns the state's name.
func (s SwitchState) String() string {
	return [...]string{"unknown", "disconnected", "backup", "reconciling", "ready", "degraded"}[s]
}

// Switch is a switch's session, its port states and what its target can do.
type Switch struct {
	Name         string
	DeviceID     uint64
	Address      string
	State        SwitchState
	Err          string // why it is Disconnected or Degraded
	Since        time.Time
	Entries      int
	Reconciles   uint64
	Dropped      uint64 // messages of the switch that came faster than a loop took them
	Capabilities []Capability
	Ports        []Port
	Status       *pb.FeatureStatus // what the features know of it; nil where nobody has asked them

	ElectionID string     // that the session bid with last; "" before it has
	Program    uint64     // the cookie of the program that it should run
	Tables     []TableUse // what it should hold
}

// TableUse is how full a table or an action profile of a program should be.
type TableUse struct {
	Name    string
	Entries int64 // without the default entry; members of an action profile
	Size    int64 // what P4Info says that it holds; 0 when it says nothing
}

// Capability is one thing a target can or cannot do.
type Capability struct {
	Name      string
	Supported bool
	// By is what does it: ByProgram, ByTrafficManager or ByTarget; "" when nothing does.
	By     string
	Detail string
}

// What does what a target can do.
const (
	ByNothing        = ""
	ByProgram        = "program"         // the P4 program that it runs
	ByTrafficManager = "traffic manager" // set through BF Runtime
	ByTarget         = "target"          // the target itself, with any program
)

// Port is a configured port of a switch.
type Port struct {
	Number uint32
	Peer   string
	State  PortState
	Reason string // why it is PortDown
	// OutOfService says that an operator took the link out of service; State is PortDown then.
	OutOfService bool
}

// PortState is what is known of a port's link. P4Runtime has no port states: switches that serve gNMI
// tell, probes between switches do, and an operator who takes a link out of service.
type PortState uint8

// The states of a port, with the numbers of the API's.
const (
	PortUnknown PortState = iota // its switch says nothing, and nobody sends or receives probes
	PortUp
	PortDown
)

// ChangeKind is what a planned change does.
type ChangeKind uint8

// The kinds of change, with the numbers of the API's.
const (
	Insert ChangeKind = iota + 1
	Modify
	Delete
)

// Change is one planned change. Table, Key, Old and New are as in the API's Change.
type Change struct {
	Kind                 ChangeKind
	Table, Key, Old, New string
}

// String returns the change as one line for people.
func (c Change) String() string {
	text := c.Table
	if c.Key != "" {
		text += " " + c.Key
	}
	switch {
	case c.Kind == Modify:
		return text + ": " + cmp.Or(c.Old, "unknown") + " → " + c.New
	case c.Old+c.New != "":
		text += " → " + c.Old + c.New
	}
	return text
}

// Diff returns the changes that turn the values of one table, by key, into others, in the order of the keys.
func Diff(table string, from, to map[string]string) (list []Change) {
	keys := maps.Clone(to)
	maps.Copy(keys, from)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		before, was := from[key]
		after, is := to[key]
		c := Change{Kind: Modify, Table: table, Key: key, Old: before, New: after}
		switch {
		case !was:
			c.Kind = Insert
		case !is:
			c.Kind = Delete
		case before == after:
			continue
		}
		list = append(list, c)
	}
	return list
}

// Plan is what an apply would do to one switch.
type Plan struct {
	Switch      string // "" for what changes beside the switches
	Unreachable string // why the switch could not be read; the plan is then against an empty one
	Changes     []Change
	Notes       []string   // what an operator should know before
	Tables      []TableUse // what the switch would hold
}

// Result is what an apply did to one switch.
type Result struct {
	Switch                      string
	Inserted, Modified, Deleted int
	Err                         string
}

// Link is a link of the fabric with its state.
type Link struct {
	A, B    Endpoint
	RateBPS uint64
	Delay   time.Duration
	State   PortState
	Reason  string // why it is PortDown
}

// Endpoint is one end of a link; Port is 0 at a host.
type Endpoint struct {
	Node string
	Port uint32
}

// Host is an end host.
type Host struct {
	Name, MAC string
	Addresses []netip.Addr // IPv4 first
}

// HostParameter is something that all hosts of the fabric must agree on, for one of their laws, or for
// all where Law is "": a flag of `headgate host` without dashes, and its value in the fabric as it runs.
type HostParameter struct{ Law, Name, Value string }

// Fabric is the running configuration.
type Fabric struct {
	Name       string
	Generation uint64
	Config     string
	Scale      int64 // line rate over the fabric's rate; 0 without a configuration
	Switches   []Switch
	Hosts      []Host
	Links      []Link
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

// HostAlarm is something that a host of the fabric was found to do.
type HostAlarm struct {
	Host, Alarm string // Alarm is the kind of the event that tells of it, without "host." in front
}

// Severity grades an event.
type Severity uint8

// The severities, with the numbers of the API's.
const (
	Info Severity = iota + 1
	Warning
	Error
)

// Event is something that happened; Kind is a stable word such as "session.ready". Events
// about a port say which, those that end something say since when it lasted.
type Event struct {
	Time     time.Time
	Severity Severity
	Subject  string
	Kind     string
	Message  string
	Port     uint32 // 0 for none
	Class    *uint8 // of IEEE 802.1Q; nil for none
	Since    time.Time
}
