// Package entity holds the entities that the control plane has written to one pipeline. It
// validates each update by P4Runtime's specification, stores it for reads, and applies it to the
// engine. Each kind of entity has a file. Start reading at State.Apply and State.Read.
package entity

import (
	"errors"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/pfcwd"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/digest"
	"github.com/headgate/headgate/softswitch/p4rt/schema"
	"github.com/headgate/headgate/units"
)

// Options describe the switch that the entities live in.
type Options struct {
	// CPUPort is the port that SDN_PORT_CPU denotes; 0 means that there is none.
	CPUPort uint32
	// DropPort is the port that drops packets; replicas may not use it.
	DropPort uint32
	// Queues is the number of priority queues and bounds class_of_service. 0 means 1.
	Queues int
	// Ports are the existing ports, which watch_port may name; empty allows every number.
	Ports []uint32
	// Watchdog is the switch's watchdog for received PFC; nil if it has none.
	Watchdog Watchdog
	// Lossless is the setting of the queues that received PFC stops; nil if no controller may set
	// it.
	Lossless Setting[pfcwd.Lossless]
	// Now is the switch's clock.
	Now func() units.Time
}

// State is the state of one pipeline. The caller owns it and serialises calls: several Reads may
// run together, but nothing may run beside an Apply. Messages that it stores or returns are never
// changed.
type State struct {
	schema  *schema.Schema
	inst    *engine.Instance
	opts    Options
	digests *digest.Collector

	tables    map[uint32]*table
	profiles  map[uint32]*profile
	valueSets map[uint32][]*p4v1.ValueSetMember
	groups    ordered[uint32, *p4v1.MulticastGroupEntry]
	sessions  ordered[uint32, *p4v1.CloneSessionEntry]
	learning  map[uint32]*p4v1.DigestEntry
	down      map[uint32]bool // ports that are down

	// Scratch memory of Apply.
	key     schema.Key
	call    engine.ActionCall
	scratch []byte
}

// New returns the state of a pipeline to which nothing has been written. The instance must be fresh.
func New(s *schema.Schema, in *engine.Instance, d *digest.Collector, o Options) (*State, error) {
	if o.Queues == 0 {
		o.Queues = 1
	}
	st := &State{
		schema: s, inst: in, opts: o, digests: d,
		tables: map[uint32]*table{}, profiles: map[uint32]*profile{},
		valueSets: map[uint32][]*p4v1.ValueSetMember{},
		learning:  map[uint32]*p4v1.DigestEntry{}, down: map[uint32]bool{},
	}
	for _, p := range s.Profiles.List {
		st.profiles[p.ID] = newProfile(p)
	}
	for _, t := range s.Tables.List {
		tb, err := st.newTable(t)
		if err != nil {
			return nil, err
		}
		st.tables[t.ID] = tb
	}
	return st, nil
}

// Schema returns the schema of the pipeline.
func (s *State) Schema() *schema.Schema { return s.schema }

// Apply applies one update. The error is a gRPC status. After an error the state is unchanged.
func (s *State) Apply(u *p4v1.Update) error {
	switch u.GetType() {
	case p4v1.Update_INSERT, p4v1.Update_MODIFY, p4v1.Update_DELETE:
	default:
		return invalid("update type is %v, allowed are INSERT, MODIFY and DELETE", u.GetType())
	}
	if id := ObjectOf(u.GetEntity()); s.schema.Absent(id) {
		return status.Errorf(codes.FailedPrecondition, "%s is in the P4Info, but not in the program: the compiler left it out", s.schema.Describe(id))
	}
	switch e := u.GetEntity().GetEntity().(type) {
	case *p4v1.Entity_TableEntry:
		return s.writeTable(u.Type, e.TableEntry)
	case *p4v1.Entity_ActionProfileMember:
		return s.writeMember(u.Type, e.ActionProfileMember)
	case *p4v1.Entity_ActionProfileGroup:
		return s.writeGroup(u.Type, e.ActionProfileGroup)
	case *p4v1.Entity_MeterEntry:
		return s.writeMeter(u.Type, e.MeterEntry)
	case *p4v1.Entity_DirectMeterEntry:
		return s.writeDirectMeter(u.Type, e.DirectMeterEntry)
	case *p4v1.Entity_CounterEntry:
		return s.writeCounter(u.Type, e.CounterEntry)
	case *p4v1.Entity_DirectCounterEntry:
		return s.writeDirectCounter(u.Type, e.DirectCounterEntry)
	case *p4v1.Entity_PacketReplicationEngineEntry:
		return s.writePRE(u.Type, e.PacketReplicationEngineEntry)
	case *p4v1.Entity_ValueSetEntry:
		return s.writeValueSet(u.Type, e.ValueSetEntry)
	case *p4v1.Entity_RegisterEntry:
		return s.writeRegister(u.Type, e.RegisterEntry)
	case *p4v1.Entity_DigestEntry:
		return s.writeDigest(u.Type, e.DigestEntry)
	case *p4v1.Entity_ExternEntry:
		return s.writeExtern(u.Type, e.ExternEntry)
	}
	return invalid("entity is unset")
}

// Read calls emit for every entity that req selects. It finds nothing for an object that is absent
// from the program. The error is a gRPC status.
func (s *State) Read(req *p4v1.Entity, emit func(Found)) error {
	if s.schema.Absent(ObjectOf(req)) {
		return nil
	}
	message := func(e *p4v1.Entity) { emit(Found{message: e}) }
	switch e := req.GetEntity().(type) {
	case *p4v1.Entity_TableEntry:
		return s.readTable(e.TableEntry, emit)
	case *p4v1.Entity_ActionProfileMember:
		return s.readMembers(e.ActionProfileMember, message)
	case *p4v1.Entity_ActionProfileGroup:
		return s.readGroups(e.ActionProfileGroup, message)
	case *p4v1.Entity_MeterEntry:
		return s.readMeters(e.MeterEntry, message)
	case *p4v1.Entity_DirectMeterEntry:
		return s.readDirectMeters(e.DirectMeterEntry, message)
	case *p4v1.Entity_CounterEntry:
		return s.readCounters(e.CounterEntry, message)
	case *p4v1.Entity_DirectCounterEntry:
		return s.readDirectCounters(e.DirectCounterEntry, message)
	case *p4v1.Entity_PacketReplicationEngineEntry:
		return s.readPRE(e.PacketReplicationEngineEntry, message)
	case *p4v1.Entity_ValueSetEntry:
		return s.readValueSets(e.ValueSetEntry, message)
	case *p4v1.Entity_RegisterEntry:
		return s.readRegisters(e.RegisterEntry, message)
	case *p4v1.Entity_DigestEntry:
		return s.readDigests(e.DigestEntry, message)
	case *p4v1.Entity_ExternEntry:
		return s.readExterns(e.ExternEntry, message)
	}
	return invalid("entity is unset")
}

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

func notFound(format string, args ...any) error {
	return status.Errorf(codes.NotFound, format, args...)
}

func exists(format string, args ...any) error {
	return status.Errorf(codes.AlreadyExists, format, args...)
}

func denied(format string, args ...any) error {
	return status.Errorf(codes.PermissionDenied, format, args...)
}

func exhausted(format string, args ...any) error {
	return status.Errorf(codes.ResourceExhausted, format, args...)
}

// fromEngine converts an error of the engine to a gRPC status.
func fromEngine(err error) error {
	code := codes.Internal
	switch {
	case err == nil:
		return nil
	case errors.Is(err, engine.ErrNotFound):
		code = codes.NotFound
	case errors.Is(err, engine.ErrExists):
		code = codes.AlreadyExists
	case errors.Is(err, engine.ErrFull):
		code = codes.ResourceExhausted
	case errors.Is(err, engine.ErrImmutable):
		code = codes.PermissionDenied
	case errors.Is(err, engine.ErrInvalid):
		code = codes.InvalidArgument
	}
	return status.Error(code, err.Error())
}
