// Package engine runs programs in BMv2's JSON format, as p4c emits it for v1model, with
// simple_switch's semantics. It knows no clock, no goroutine, no port: a caller hands in
// packets and the time, and receives packets through an Out.
//
// A Program is compiled once from JSON and immutable. An Instance is one running switch:
// the program's tables, counters, meters, registers, groups and sessions.
package engine

import (
	"errors"
	"log/slog"

	"github.com/headgate/headgate/units"
)

// Errors of the control methods, to be tested with errors.Is.
var (
	ErrNotFound  = errors.New("not found")
	ErrExists    = errors.New("already exists")
	ErrFull      = errors.New("full")
	ErrImmutable = errors.New("immutable")
	ErrInvalid   = errors.New("invalid")
)

// Out receives what a packet's way through Ingress or Egress produces. The engine calls
// it synchronously on the caller's goroutine; ownership of a Packet passes with the call.
type Out interface {
	// Enqueue takes a packet bound for p.EgressPort, queue p.Queue: a unicast, multicast
	// or cloned one. The traffic manager hands it to Egress later, or drops it with Free.
	Enqueue(p *Packet)
	// Transmit takes a frame leaving on port. The bytes are valid until it returns.
	Transmit(port uint32, frame []byte, now units.Time)
	// Again takes a resubmitted or recirculated packet, to be handed to Ingress later.
	Again(p *Packet)
	// Digest takes one learning message; the bytes are valid until it returns.
	// Fields are in declaration order, each padded to whole bytes, in big-endian order.
	Digest(name string, fields [][]byte)
}

// MatchKind is how one field of a table's key matches.
type MatchKind uint8

// The match kinds of v1model. Optional appears in BMv2 JSON as ternary.
const (
	Exact MatchKind = iota
	LPM
	Ternary
	Range
	Optional
	Selector
)

// KeyField describes one field of a table's key.
type KeyField struct {
	Name string
	Kind MatchKind
	Bits int
}

// Match is one field of an entry's key. Values are big-endian, at most the field's width;
// shorter ones are zero-padded on the left.
type Match struct {
	Value  []byte // exact, LPM, ternary; the low end of a range
	Mask   []byte // ternary; the high end of a range
	Prefix int    // LPM: number of leading bits that count
	Any    bool   // don't care (ternary, range, optional; LPM is Prefix 0)
	Range  bool   // value sets only: Value and Mask are the ends of a range
}

// ActionCall names an action and its arguments, in the order of the action's parameters.
type ActionCall struct {
	Name string
	Args [][]byte
}

// Target is what an entry, or a default entry, does: exactly one of the three for tables
// with an action profile, Call otherwise.
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

// Handle names an entry of a table for as long as it exists.
type Handle uint64

// Counter is a packet and byte count.
type Counter struct{ Packets, Bytes uint64 }

// MeterRate is one meter's configuration, in bytes or packets per second and bytes or
// packets, as the meter's kind says. The zero value marks everything green.
type MeterRate struct {
	CIR, CBurst, PIR, PBurst int64
	Configured               bool
}

// Replica is one copy of a multicast group or clone session.
type Replica struct {
	Port     uint32
	Instance uint16
}

// CloneSession is what a clone of one session becomes.
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
}

// ActionInfo describes an action.
type ActionInfo struct {
	Name   string
	Params []ParamInfo
}

// ParamInfo describes one parameter of an action.
type ParamInfo struct {
	Name string
	Bits int
}

// Options configure an Instance.
type Options struct {
	// DropPort is the port that means drop, 511 when zero.
	DropPort uint32
	// Queues is the number of priority queues of a port; packets for a queue beyond it
	// are dropped, as BMv2 does. 1 when zero.
	Queues int
	// Seed feeds random(); equal seeds give equal runs.
	Seed uint64
	// Log receives the program's log_msg and failed assertions; nil discards them.
	Log *slog.Logger
}
