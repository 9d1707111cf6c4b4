// Package view holds what the controller shows of itself, as plain values: the API layer
// translates them to protobuf, the command line and the live view print them.
package view

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/units"
)

// SwitchState is where a switch's session stands.
type SwitchState = pb.SwitchStatus_State

// The states of a switch; see SwitchStatus in headgate.proto.
const (
	Disconnected = pb.SwitchStatus_STATE_DISCONNECTED
	Backup       = pb.SwitchStatus_STATE_BACKUP
	Reconciling  = pb.SwitchStatus_STATE_RECONCILING
	Ready        = pb.SwitchStatus_STATE_READY
	Degraded     = pb.SwitchStatus_STATE_DEGRADED
)

// StateName returns a switch's or a port's state for people and metrics, such as "ready".
func StateName(s fmt.Stringer) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "STATE_"))
}

// Switch is a switch's session, its port states and its target's capabilities.
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
	Capabilities []*pb.Capability
	Ports        []Port
	Status       *pb.FeatureStatus // the features' status; nil if it was not asked for

	ElectionID string         // that the session bid with last; "" before it has
	Program    uint64         // the cookie of the program that it should run
	Tables     []*pb.TableUse // its wanted entries by table
}

// What does what a target can do: Capability.By.
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
type PortState = pb.PortStatus_State

// The states of a port.
const (
	PortUnknown = pb.PortStatus_STATE_UNKNOWN // its switch says nothing, and nobody sends or receives probes
	PortUp      = pb.PortStatus_STATE_UP
	PortDown    = pb.PortStatus_STATE_DOWN
)

// ChangeKind is the kind of a planned change.
type ChangeKind = pb.Change_Kind

// The kinds of change.
const (
	Insert = pb.Change_KIND_INSERT
	Modify = pb.Change_KIND_MODIFY
	Delete = pb.Change_KIND_DELETE
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

// Plan holds the changes that an apply would make on one switch.
type Plan struct {
	Switch      string // "" for changes beside the switches
	Unreachable string // why the switch could not be read; the plan is then against an empty one
	Changes     []Change
	Notes       []string       // warnings for the operator
	Tables      []*pb.TableUse // the switch's entries by table after the apply
}

// Result is an apply's outcome on one switch.
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
type Severity = pb.Event_Severity

// The severities.
const (
	Info    = pb.Event_SEVERITY_INFO
	Warning = pb.Event_SEVERITY_WARNING
	Error   = pb.Event_SEVERITY_ERROR
)

// Event is something that happened; Kind is a stable word such as "session.ready". Events
// about a port say which, those that end something say since when it lasted.
type Event struct {
	Number   uint64 // from 1, in the order of publication; 0 if it is not published
	Time     time.Time
	Severity Severity
	Subject  string
	Kind     string
	Message  string
	Port     uint32 // 0 for none
	Class    *uint8 // of IEEE 802.1Q; nil for none
	Since    time.Time
}

// Table describes one table of pb.FeatureStatus, as status.proto declares it. It is never changed.
type Table struct {
	Feature string
	Name    string   // a word, unique within the feature
	Keys    []string // columns that identify a row, such as "port"; labels of the metrics
	Columns []Column

	feature, table protoreflect.FieldDescriptor
	keys           []protoreflect.FieldDescriptor
}

// Column is one value of each row.
type Column struct {
	*pb.Shown
	field protoreflect.FieldDescriptor
}

// Tables are all that features show, in the order of status.proto. They are never changed.
var Tables = tables()

func tables() (list []*Table) {
	for feature := range fields((&pb.FeatureStatus{}).ProtoReflect().Descriptor()) {
		for table := range fields(feature.Message()) {
			t := &Table{Feature: string(feature.Name()), Name: shown(table).GetTable(), feature: feature, table: table}
			if t.Name == "" {
				t.Name = string(table.Name())
			}
			for f := range fields(table.Message()) {
				if s := shown(f); s.GetKey() {
					t.Keys, t.keys = append(t.Keys, string(f.Name())), append(t.keys, f)
				} else if s.GetHead() != "" {
					t.Columns = append(t.Columns, Column{s, f})
				}
			}
			list = append(list, t)
		}
	}
	return list
}

func fields(m protoreflect.MessageDescriptor) iter.Seq[protoreflect.FieldDescriptor] {
	return func(yield func(protoreflect.FieldDescriptor) bool) {
		for i := range m.Fields().Len() {
			if !yield(m.Fields().Get(i)) {
				return
			}
		}
	}
}

func shown(f protoreflect.FieldDescriptor) *pb.Shown {
	return proto.GetExtension(f.Options(), pb.E_Shown).(*pb.Shown)
}

// Row has one key for each of the table's and one value for each column.
type Row struct {
	Keys []string
	// Values are of the types string, bool, uint64, float64, units.Bytes, time.Duration
	// and time.Time; nil is unknown.
	Values []any
}

// Rows returns the rows that a status has of the table.
func (t *Table) Rows(s *pb.FeatureStatus) []Row {
	if s == nil || !s.ProtoReflect().Has(t.feature) {
		return nil
	}
	of := s.ProtoReflect().Get(t.feature).Message()
	if !of.Has(t.table) {
		return nil
	}
	if !t.table.IsList() {
		return []Row{t.row(of.Get(t.table).Message())}
	}
	list := of.Get(t.table).List()
	rows := make([]Row, list.Len())
	for i := range rows {
		rows[i] = t.row(list.Get(i).Message())
	}
	return rows
}

func (t *Table) row(m protoreflect.Message) Row {
	r := Row{Keys: make([]string, len(t.keys)), Values: make([]any, len(t.Columns))}
	for i, f := range t.keys {
		switch v := value(m, f).(type) {
		case nil:
		case string:
			r.Keys[i] = v
		case uint64:
			r.Keys[i] = strconv.FormatUint(v, 10)
		}
	}
	for i, c := range t.Columns {
		r.Values[i] = value(m, c.field)
	}
	return r
}

// value returns a field as a Row has it. Its name tells the unit of an integer.
func value(m protoreflect.Message, f protoreflect.FieldDescriptor) any {
	if f.HasPresence() && !m.Has(f) {
		return nil
	}
	v := m.Get(f)
	switch f.Kind() {
	case protoreflect.MessageKind:
		if d, ok := v.Message().Interface().(*durationpb.Duration); ok {
			return d.AsDuration()
		}
		return v.Message().Interface().(*timestamppb.Timestamp).AsTime()
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		if strings.HasSuffix(string(f.Name()), "_bytes") {
			return units.Bytes(v.Uint())
		}
		return v.Uint()
	}
	return v.Interface()
}

// Text returns a value for people, with its unit; "" for an unknown value.
func Text(v any, now time.Time) string {
	switch v := v.(type) {
	case nil:
		return ""
	case bool:
		return map[bool]string{true: "yes", false: "no"}[v]
	case time.Duration:
		return units.FromDuration(v).String()
	case time.Time:
		return max(0, now.Sub(v)).Truncate(time.Second).String() + " ago"
	}
	return fmt.Sprint(v)
}

// Number returns a value as a metric has it, in base units; false for a text and for what
// is unknown.
func Number(v any) (float64, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	case units.Bytes:
		return float64(v), true
	case time.Duration:
		return v.Seconds(), true
	case time.Time:
		return float64(v.UnixMilli()) / 1000, true
	}
	return 0, false
}

// Stamp returns a time as the API has it; nil for the zero time, which is not known.
func Stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// Duration returns a duration as the API has it, 0 for a negative one.
func Duration(d time.Duration) *durationpb.Duration { return durationpb.New(max(d, 0)) }
