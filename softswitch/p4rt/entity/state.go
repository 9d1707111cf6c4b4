// Package entity holds the entities that the control plane has written to one pipeline. It
// validates each update by P4Runtime's specification, stores it for reads, and applies it to the
// engine. Start reading at State.Apply, State.Read and kinds.
package entity

import (
	"errors"
	"maps"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/digest"
	"github.com/headgate/headgate/softswitch/p4rt/schema"
	"github.com/headgate/headgate/units"
)

// Options describe the switch that the entities live in.
type Options struct {
	// CPUPort is the port of packet-ins and packet-outs, which SDN_PORT_CPU denotes; 0 means that
	// there is none.
	CPUPort uint32
	// DropPort is the port that drops packets; replicas may not use it.
	DropPort uint32
	// Queues is the number of priority queues and bounds class_of_service. 0 means 1.
	Queues int
	// Watchdog is the switch's watchdog for received PFC; nil if it has none.
	Watchdog Watchdog
	// Lossless is the setting of the queues that a received PAUSE stops; nil if no controller may set it.
	Lossless Setting[externs.Lossless]
	// Weights is the setting of the queues' weights; nil if no controller may set it.
	Weights Setting[externs.Weights]
	// Obeyed is the setting of the classes whose PAUSEs a port obeys, for ports that differ from Lossless; nil if no
	// controller may set it.
	Obeyed Setting[externs.Obeyed]
	// Now is the switch's clock; nil means a clock that stands at 0.
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
	groups    map[uint32]*p4v1.MulticastGroupEntry
	sessions  map[uint32]*p4v1.CloneSessionEntry
	learning  map[uint32]*p4v1.DigestEntry
	down      map[uint32]bool        // ports that are down
	unwatched kept[externs.Settings] // watchdog settings of a switch without a watchdog; no effect

	// Scratch memory of Apply.
	key     schema.Key
	call    engine.ActionCall
	scratch []byte
}

// New returns the state of a pipeline to which nothing has been written. The instance must be fresh.
func New(s *schema.Schema, in *engine.Instance, d *digest.Collector, o Options) (*State, error) {
	o.Queues = max(1, o.Queues)
	if o.Now == nil {
		o.Now = func() units.Time { return 0 }
	}
	st := &State{
		schema: s, inst: in, opts: o, digests: d,
		tables: map[uint32]*table{}, profiles: map[uint32]*profile{},
		valueSets: map[uint32][]*p4v1.ValueSetMember{},
		groups:    map[uint32]*p4v1.MulticastGroupEntry{}, sessions: map[uint32]*p4v1.CloneSessionEntry{},
		learning: map[uint32]*p4v1.DigestEntry{}, down: map[uint32]bool{},
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

type kind struct {
	is     func(*p4v1.Entity) bool
	object func(*p4v1.Entity) uint32
	write  func(*State, p4v1.Update_Type, *p4v1.Entity) error
	read   func(*State, *p4v1.Entity, func(Found)) error
}

// kinds has the most frequent kind first.
var kinds = [...]kind{
	of[*p4v1.Entity_TableEntry]((*p4v1.Entity).GetTableEntry, (*p4v1.TableEntry).GetTableId, (*State).writeTable, (*State).readTable),
	of[*p4v1.Entity_ActionProfileMember]((*p4v1.Entity).GetActionProfileMember, (*p4v1.ActionProfileMember).GetActionProfileId, (*State).writeMember, (*State).readMembers),
	of[*p4v1.Entity_ActionProfileGroup]((*p4v1.Entity).GetActionProfileGroup, (*p4v1.ActionProfileGroup).GetActionProfileId, (*State).writeGroup, (*State).readGroups),
	of[*p4v1.Entity_CounterEntry]((*p4v1.Entity).GetCounterEntry, (*p4v1.CounterEntry).GetCounterId, (*State).writeCounter, (*State).readCounters),
	of[*p4v1.Entity_DirectCounterEntry]((*p4v1.Entity).GetDirectCounterEntry, tableOf[*p4v1.DirectCounterEntry], (*State).writeDirectCounter, (*State).readDirectCounters),
	of[*p4v1.Entity_MeterEntry]((*p4v1.Entity).GetMeterEntry, (*p4v1.MeterEntry).GetMeterId, (*State).writeMeter, (*State).readMeters),
	of[*p4v1.Entity_DirectMeterEntry]((*p4v1.Entity).GetDirectMeterEntry, tableOf[*p4v1.DirectMeterEntry], (*State).writeDirectMeter, (*State).readDirectMeters),
	of[*p4v1.Entity_RegisterEntry]((*p4v1.Entity).GetRegisterEntry, (*p4v1.RegisterEntry).GetRegisterId, (*State).writeRegister, (*State).readRegisters),
	of[*p4v1.Entity_PacketReplicationEngineEntry]((*p4v1.Entity).GetPacketReplicationEngineEntry, func(*p4v1.PacketReplicationEngineEntry) uint32 { return 0 }, (*State).writePRE, (*State).readPRE),
	of[*p4v1.Entity_ValueSetEntry]((*p4v1.Entity).GetValueSetEntry, (*p4v1.ValueSetEntry).GetValueSetId, (*State).writeValueSet, (*State).readValueSets),
	of[*p4v1.Entity_DigestEntry]((*p4v1.Entity).GetDigestEntry, (*p4v1.DigestEntry).GetDigestId, (*State).writeDigest, (*State).readDigests),
	of[*p4v1.Entity_ExternEntry]((*p4v1.Entity).GetExternEntry, (*p4v1.ExternEntry).GetExternId, (*State).writeExtern, (*State).readExterns),
}

// of returns the kind of the entities that the oneof holds as type W, with a message of type E.
func of[W, E any](get func(*p4v1.Entity) E, object func(E) uint32, write func(*State, p4v1.Update_Type, E) error, read func(*State, E, func(Found)) error) kind {
	return kind{
		is:     func(e *p4v1.Entity) bool { _, ok := any(e.GetEntity()).(W); return ok },
		object: func(e *p4v1.Entity) uint32 { return object(get(e)) },
		write:  func(s *State, op p4v1.Update_Type, e *p4v1.Entity) error { return write(s, op, get(e)) },
		read:   func(s *State, e *p4v1.Entity, emit func(Found)) error { return read(s, get(e), emit) },
	}
}

func tableOf[E interface{ GetTableEntry() *p4v1.TableEntry }](e E) uint32 {
	return e.GetTableEntry().GetTableId()
}

func kindOf(e *p4v1.Entity) *kind {
	if _, ok := e.GetEntity().(*p4v1.Entity_TableEntry); ok { // the same test as kinds[0].is, but much faster
		return &kinds[0]
	}
	for i := range kinds {
		if kinds[i].is(e) {
			return &kinds[i]
		}
	}
	return nil
}

// ObjectOf returns the id of the P4Info object that an entity belongs to; 0 for entities
// of the packet replication engine and for reads of all objects.
func ObjectOf(e *p4v1.Entity) uint32 {
	if k := kindOf(e); k != nil {
		return k.object(e)
	}
	return 0
}

// Apply applies one update. The error is a gRPC status. After an error the state is unchanged.
func (s *State) Apply(u *p4v1.Update) error {
	e, k := u.GetEntity(), kindOf(u.GetEntity())
	switch {
	case u.GetType() < p4v1.Update_INSERT || u.GetType() > p4v1.Update_DELETE:
		return invalid("update type is %v, allowed are INSERT, MODIFY and DELETE", u.GetType())
	case k == nil:
		return invalid("entity is unset")
	case s.schema.Absent(k.object(e)) != "":
		return status.Errorf(codes.FailedPrecondition, "%s is in the P4Info, but not in the program: %s", s.schema.Describe(k.object(e)), s.schema.Absent(k.object(e)))
	}
	return statusOf(k.write(s, u.Type, e))
}

// Read calls emit for every entity that req selects. It finds nothing for an object that is absent
// from the program. The error is a gRPC status.
func (s *State) Read(req *p4v1.Entity, emit func(Found)) error {
	k := kindOf(req)
	switch {
	case k == nil:
		return invalid("entity is unset")
	case s.schema.Absent(k.object(req)) != "":
		return nil
	}
	return statusOf(k.read(s, req, emit))
}

// each calls f for the value of key k, or for all values in the order of their keys if k is 0. It
// returns false if there is no such key.
func each[V any](m map[uint32]V, k uint32, f func(V)) bool {
	if k == 0 {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			f(m[k])
		}
		return true
	}
	v, ok := m[k]
	if ok {
		f(v)
	}
	return ok
}

// present checks that an entity exists, or does not exist, as the type of update requires.
func present(op p4v1.Update_Type, ok bool, kind string, id uint32) error {
	if op == p4v1.Update_INSERT && ok {
		return exists("%s %d exists", kind, id)
	}
	if op != p4v1.Update_INSERT && !ok {
		return notFound("there is no %s %d", kind, id)
	}
	return nil
}

// onlyModify refuses INSERT and DELETE of entities that always exist.
func onlyModify(op p4v1.Update_Type, kind string) error {
	if op != p4v1.Update_MODIFY {
		return invalid("update type is %v, a %s allows MODIFY", op, kind)
	}
	return nil
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

// statusOf converts an error of the engine to a gRPC status. Other errors are statuses already.
func statusOf(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := err.(interface{ GRPCStatus() *status.Status }); ok {
		return err
	}
	code := codes.Internal
	switch {
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
