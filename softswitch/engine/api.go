// Package engine runs programs in BMv2's JSON format. An Architecture, which package arch links in,
// adds metadata, primitives and the way of a packet. The engine has no clock, goroutines or ports:
// a caller passes in packets and the time, and receives packets through an Out.
//
// A Program is compiled once from JSON and is immutable. An Instance is one running switch: the
// program's tables, counters, meters, registers, groups and sessions.
//
// Start reading at Load and New, and then at Worker.Ingress and Worker.Egress, which take a packet
// through the program.
package engine

import (
	"errors"
	"log/slog"

	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine/match"
	"github.com/headgate/headgate/softswitch/stages"
)

// Errors of the control methods; test for them with errors.Is.
var (
	ErrNotFound  = errors.New("not found")
	ErrExists    = errors.New("already exists")
	ErrFull      = errors.New("full")
	ErrImmutable = errors.New("immutable")
	ErrInvalid   = match.ErrInvalid
)

// Out receives the packets, frames and digests that Ingress and Egress produce. The engine calls
// it synchronously, on the caller's goroutine. The callee owns the Packet that it is passed.
type Out interface {
	// Enqueue receives a unicast, multicast or cloned packet for p.EgressPort and p.Queue.
	// The traffic manager later passes it to Egress, or drops it with Free.
	Enqueue(p *Packet)
	// Transmit receives a frame that leaves on port. The bytes are valid until it returns.
	Transmit(port uint32, frame []byte)
	// Recirculate receives a resubmitted or recirculated packet, which must be passed to Ingress
	// later.
	Recirculate(p *Packet)
	// Digest receives one learning message. The bytes are valid until it returns.
	// Fields are in declaration order, each padded to whole bytes, in big-endian order.
	Digest(name string, fields [][]byte)
	// Dropped reports that a packet ended in the engine. port is the port that the packet arrived on, or in Egress
	// the port that it was about to leave by.
	Dropped(port uint32, why Drop)
}

// The key of a table and the keys of its entries. Package match documents them.
type (
	MatchKind = match.Kind
	KeyField  = match.Field
	Match     = match.Value
)

// The match kinds.
const (
	Exact    = match.Exact
	LPM      = match.LPM
	Ternary  = match.Ternary
	Range    = match.Range
	Optional = match.Optional
	Selector = match.Selector
)

// ActionCall names an action and its arguments, in the order of the action's parameters.
type ActionCall struct {
	Name string
	Args [][]byte
}

// Target is the effect of an entry or a default entry. In a table with an action profile exactly one of the three
// fields is set. In all other tables Call is set.
type Target struct {
	Call   *ActionCall
	Member *MemberID
	Group  *GroupID
}

// MemberID and GroupID are chosen by the control plane.
type (
	MemberID uint32
	GroupID  uint32
)

// Handle names an entry of a table for as long as the entry exists. Its upper half counts the
// insertions.
type Handle uint64

// DefaultEntry names a table's default entry in methods that read or write a direct counter or
// meter.
const DefaultEntry = ^Handle(0)

// Slot returns a small number that is unique among the table's entries while this entry exists.
func (h Handle) Slot() int { return int(uint32(h)) }

// Counter is a packet and byte count.
type Counter struct{ Packets, Bytes uint64 }

// MeterRate is the configuration of one meter. Rates are in bytes or packets per second, and burst
// sizes in bytes or packets, depending on the kind of meter. The zero value marks everything green.
type MeterRate struct {
	CIR, CBurst, PIR, PBurst int64
	Configured               bool
}

// Replica is one copy of a multicast group or clone session.
type Replica struct {
	Port     uint32
	Instance uint16
}

// CloneSession says where the clones of one session go, and how long they are.
type CloneSession struct {
	Replicas  []Replica
	Truncate  int // bytes kept; 0 keeps all
	QueueHint uint8
}

// TableInfo describes a table.
type TableInfo struct {
	Name         string
	Key          []KeyField
	Actions      []string
	Size         int
	Profile      string // action profile or selector, "" for direct tables
	HasCounters  bool
	HasMeters    bool
	IdleTimeout  bool
	ConstEntries bool
	ConstDefault bool
	Default      *ActionCall // nil if the program names none
	Entries      []ConstEntry
}

// ObjectName returns the table's name.
func (t TableInfo) ObjectName() string { return t.Name }

// ConstEntry is an entry that the program declares. The higher priority wins. Bits of the key
// that do not count are 0.
type ConstEntry struct {
	Key      []Match
	Priority int
	Action   ActionCall
}

// ActionInfo describes an action.
type ActionInfo struct {
	Name   string
	Params []ParamInfo
}

// ObjectName returns the action's name.
func (a ActionInfo) ObjectName() string { return a.Name }

// ParamInfo describes one parameter of an action.
type ParamInfo = bmv2json.Param

// LearnInfo describes a learn list, the fields of a digest.
type LearnInfo struct {
	ID   int
	Name string
	Bits []int // widths of the fields; 0 of a variable field
}

// ObjectName returns the learn list's name.
func (l LearnInfo) ObjectName() string { return l.Name }

// Options configure an Instance.
type Options struct {
	// DropPort is the port that means drop in v1model, 511 when zero.
	DropPort uint32
	// CPUPort is the port of packet I/O, PSA_PORT_CPU in PSA's programs; 0 means none.
	CPUPort uint32
	// LearnNames has the names of digests by the numbers of learn lists, in place of the program's.
	LearnNames map[int]string
	// Queues is the number of priority queues of a port; 1 when zero. Packets for a queue beyond
	// it are dropped, as in BMv2.
	Queues int
	// Seed feeds random(); equal seeds give equal runs.
	Seed uint64
	// Log receives the program's log_msg and failed assertions; nil discards them.
	Log *slog.Logger
	// Tracer logs the path of packets and Times adds up the time of each stage; nil for none.
	Tracer *Tracer
	Times  *stages.Times
}
