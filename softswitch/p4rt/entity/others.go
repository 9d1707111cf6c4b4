package entity

import (
	"maps"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/internal/pfcwd"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/schema"
)

// Ranges of the packet replication engine, the same as BMv2's.
const (
	maxGroup    = 1<<16 - 1 // multicast_group_id
	maxSession  = 1<<15 - 1 // session_id
	maxInstance = 1<<16 - 1
	maxPort     = 1<<9 - 1 // standard_metadata.egress_port is 9 bits wide
)

// sdnPortCPU is the value of SDN_PORT_CPU in messages, unsigned.
const sdnPortCPU = 0xfffffffd

func (s *State) writePRE(op p4v1.Update_Type, in *p4v1.PacketReplicationEngineEntry) error {
	switch e := in.GetType().(type) {
	case *p4v1.PacketReplicationEngineEntry_MulticastGroupEntry:
		g := e.MulticastGroupEntry
		return writeReplicas(s, op, "multicast group", "multicast_group_id", g.GetMulticastGroupId(), maxGroup, s.groups, g, s.inst.SetMulticastGroup, s.inst.DeleteMulticastGroup)
	case *p4v1.PacketReplicationEngineEntry_CloneSessionEntry:
		c := e.CloneSessionEntry
		id := c.GetSessionId()
		switch {
		case op == p4v1.Update_DELETE:
		case c.GetClassOfService() >= uint32(s.opts.Queues):
			return invalid("clone session %d: class_of_service is %d, allowed are 0 to %d, since ports have %d queues (--priority-queues)", id, c.GetClassOfService(), s.opts.Queues-1, s.opts.Queues)
		case c.GetPacketLengthBytes() < 0:
			return invalid("clone session %d: packet_length_bytes is %d, it must not be negative", id, c.GetPacketLengthBytes())
		}
		set := func(id uint16, rs []engine.Replica) error {
			return s.inst.SetCloneSession(id, engine.CloneSession{Replicas: rs, Truncate: int(c.PacketLengthBytes), QueueHint: uint8(c.ClassOfService)})
		}
		return writeReplicas(s, op, "clone session", "session_id", id, maxSession, s.sessions, c, set, s.inst.DeleteCloneSession)
	}
	return invalid("packet_replication_engine_entry is unset")
}

// writeReplicas inserts, modifies or deletes a multicast group or a clone session with an id of 1 to
// most. set and remove change the engine.
func writeReplicas[E interface {
	proto.Message
	GetReplicas() []*p4v1.Replica
}](s *State, op p4v1.Update_Type, kind, field string, id, most uint32, all map[uint32]E, in E, set func(uint16, []engine.Replica) error, remove func(uint16) error) error {
	if id == 0 || id > most {
		return invalid("%s is %d, allowed are 1 to %d", field, id, most)
	}
	_, ok := all[id]
	if err := present(op, ok, kind, id); err != nil {
		return err
	}
	if op == p4v1.Update_DELETE {
		err := remove(uint16(id))
		if err == nil {
			delete(all, id)
		}
		return err
	}
	rs, err := s.replicas(kind, id, in.GetReplicas())
	if err != nil {
		return err
	}
	if err := set(uint16(id), rs); err != nil {
		return err
	}
	all[id] = proto.CloneOf(in)
	return nil
}

func (s *State) replicas(kind string, id uint32, in []*p4v1.Replica) ([]engine.Replica, error) {
	out := make([]engine.Replica, 0, len(in))
	seen := make(map[engine.Replica]bool, len(in))
	for i, r := range in {
		port := uint64(r.GetEgressPort())
		if b, ok := replicaPort(r); ok {
			var fits bool
			if port, fits = bytestring.Uint(b); !fits || len(b) == 0 {
				return nil, invalid("%s %d: replicas[%d].port is %#x, allowed are ports 0 to %d", kind, id, i, b, maxPort)
			}
		}
		if port == sdnPortCPU && s.opts.CPUPort != 0 {
			port = uint64(s.opts.CPUPort)
		}
		e := engine.Replica{Port: uint32(port), Instance: uint16(r.GetInstance())}
		switch {
		case port > maxPort || s.opts.DropPort != 0 && port == uint64(s.opts.DropPort):
			return nil, invalid("%s %d: replicas[%d].egress_port is %d, allowed are ports 0 to %d but the drop port, %d", kind, id, i, port, maxPort, s.opts.DropPort)
		case r.GetInstance() > maxInstance:
			return nil, invalid("%s %d: replicas[%d].instance is %d, allowed are 0 to %d", kind, id, i, r.GetInstance(), maxInstance)
		case seen[e]:
			return nil, invalid("%s %d: replicas[%d] repeats port %d and instance %d", kind, id, i, e.Port, e.Instance)
		}
		seen[e] = true
		out = append(out, e)
	}
	return out, nil
}

func (s *State) readPRE(req *p4v1.PacketReplicationEngineEntry, emit func(Found)) error {
	groups := func(id uint32) bool {
		return each(s.groups, id, func(g *p4v1.MulticastGroupEntry) { emit(found(g)) })
	}
	sessions := func(id uint32) bool {
		return each(s.sessions, id, func(c *p4v1.CloneSessionEntry) { emit(found(c)) })
	}
	switch e := req.GetType().(type) {
	case *p4v1.PacketReplicationEngineEntry_MulticastGroupEntry:
		if id := e.MulticastGroupEntry.GetMulticastGroupId(); !groups(id) {
			return notFound("there is no multicast group %d", id)
		}
	case *p4v1.PacketReplicationEngineEntry_CloneSessionEntry:
		if id := e.CloneSessionEntry.GetSessionId(); !sessions(id) {
			return notFound("there is no clone session %d", id)
		}
	default: // an unset type selects everything, as in other servers
		groups(0)
		sessions(0)
	}
	return nil
}

func (s *State) writeDigest(op p4v1.Update_Type, in *p4v1.DigestEntry) error {
	d, err := s.schema.Digests.Find(in.GetDigestId())
	if err != nil {
		return err
	}
	if err := present(op, s.learning[d.ID] != nil, "digest entry", d.ID); err != nil {
		return err
	}
	if op == p4v1.Update_DELETE {
		delete(s.learning, d.ID)
		s.digests.Configure(d.ID, nil)
		return nil
	}
	if c := in.Config; c.GetMaxTimeoutNs() < 0 || c.GetMaxListSize() < 0 || c.GetAckTimeoutNs() < 0 {
		return invalid("digest %q: max_timeout_ns is %d, max_list_size %d, ack_timeout_ns %d; none may be negative", d.Name, c.GetMaxTimeoutNs(), c.GetMaxListSize(), c.GetAckTimeoutNs())
	}
	e := proto.CloneOf(in)
	s.learning[d.ID] = e
	c := e.Config
	if c == nil {
		c = &p4v1.DigestEntry_Config{}
	}
	s.digests.Configure(d.ID, c)
	return nil
}

func (s *State) readDigests(req *p4v1.DigestEntry, emit func(Found)) error {
	list, err := s.schema.Digests.Select(req.GetDigestId())
	for _, d := range list {
		if e := s.learning[d.ID]; e != nil {
			emit(found(e))
		} else if req.GetDigestId() != 0 {
			return notFound("digest %q is not enabled", d.Name)
		}
	}
	return err
}

func (s *State) writeValueSet(op p4v1.Update_Type, in *p4v1.ValueSetEntry) error {
	if err := onlyModify(op, "value set"); err != nil {
		return err
	}
	v, err := s.schema.ValueSets.Find(in.GetValueSetId())
	if err != nil {
		return err
	}
	if int64(len(in.Members)) > v.Size {
		return exhausted("value set %q: it gets %d members, its size is %d", v.Name, len(in.Members), v.Size)
	}
	seen := map[encoded]bool{}
	var members [][]engine.Match
	var list []*p4v1.ValueSetMember
	for i, m := range in.Members {
		var k schema.Key
		if err := v.Member(&k, m.GetMatch()); err != nil {
			return err
		}
		match := encoded(k.Encoded)
		if seen[match] {
			return exists("value set %q: members[%d] is there twice", v.Name, i)
		}
		seen[match] = true
		members = append(members, k.Engine)
		list = append(list, &p4v1.ValueSetMember{Match: match.decode().Match})
	}
	if err := s.inst.SetValueSet(v.Name, members); err != nil {
		return err
	}
	s.valueSets[v.ID] = list
	return nil
}

func (s *State) readValueSets(req *p4v1.ValueSetEntry, emit func(Found)) error {
	if len(req.GetMembers()) > 0 {
		return invalid("members is set in a read of value sets")
	}
	list, err := s.schema.ValueSets.Select(req.GetValueSetId())
	for _, v := range list {
		emit(found(&p4v1.ValueSetEntry{ValueSetId: v.ID, Members: s.valueSets[v.ID]}))
	}
	return err
}

// Setting is a value that the switch starts with and that a controller may replace. It belongs to
// the switch and not to the pipeline, so it survives a change of the pipeline.
type Setting[T any] interface {
	// Settings returns the value that Set set last. It returns false while the switch's initial
	// value is in force.
	Settings() (T, bool)
	// Set replaces the whole value; nil restores the initial value.
	Set(*T)
}

// kept is a Setting that nothing obeys.
type kept[T any] struct{ set *T }

func (k *kept[T]) Settings() (v T, set bool) {
	if k.set != nil {
		v = *k.set
	}
	return v, k.set != nil
}

func (k *kept[T]) Set(v *T) { k.set = v }

// Watchdog is the switch's watchdog for received PFC.
type Watchdog interface {
	Setting[pfcwd.Settings]
	// Storms returns the classes of ports that are or were in a storm.
	Storms() []pfcwd.Storm
}

var errExtern = status.Error(codes.Unimplemented,
	"extern_entry: this switch has no externs beyond v1model's but the lossless classes, those that ports obey, the weights of queues and the PFC watchdog, and the watchdog with --pfc only")

func (s *State) writeExtern(op p4v1.Update_Type, in *p4v1.ExternEntry) error {
	switch id := in.GetExternId(); {
	case in.GetExternTypeId() != pfcwd.ExternType:
		return errExtern
	case id == pfcwd.LosslessID && s.opts.Lossless != nil:
		return writeSetting(op, in, s.opts.Lossless, func(e *p4v1.ExternEntry) (pfcwd.Lossless, error) {
			return pfcwd.ReadLossless(e, s.opts.Queues)
		})
	case id == pfcwd.WeightsID && s.opts.Weights != nil:
		return writeSetting(op, in, s.opts.Weights, func(e *p4v1.ExternEntry) (pfcwd.Weights, error) {
			return pfcwd.ReadWeights(e, s.opts.Queues)
		})
	case id == pfcwd.ObeyedID && s.opts.Obeyed != nil:
		return writeSetting(op, in, s.opts.Obeyed, pfcwd.ReadObeyed)
	case s.opts.Watchdog == nil && id == pfcwd.SettingsID:
		if v, err := pfcwd.ReadSettings(in); op != p4v1.Update_DELETE && (err != nil || !v.Default) {
			return errExtern
		}
		return writeSetting(op, in, &s.unwatched, pfcwd.ReadSettings)
	case s.opts.Watchdog == nil:
		return errExtern
	case id == pfcwd.StormsID:
		return denied("extern_entry 0x%08x: storms can only be read", id)
	case id == pfcwd.SettingsID:
		return writeSetting[pfcwd.Settings](op, in, s.opts.Watchdog, pfcwd.ReadSettings)
	default:
		return notFound("extern_entry 0x%08x: want 0x%08x, or 0x%08x to 0x%08x", id, uint32(pfcwd.SettingsID), uint32(pfcwd.LosslessID), uint32(pfcwd.ObeyedID))
	}
}

func writeSetting[T any](op p4v1.Update_Type, in *p4v1.ExternEntry, to Setting[T], read func(*p4v1.ExternEntry) (T, error)) error {
	_, set := to.Settings()
	if err := present(op, set, "extern entry", in.GetExternId()); err != nil {
		return err
	}
	if op == p4v1.Update_DELETE {
		to.Set(nil)
		return nil
	}
	v, err := read(in)
	if err != nil {
		return invalid("extern_entry 0x%08x: %v", in.GetExternId(), err)
	}
	to.Set(&v)
	return nil
}

func (s *State) readExterns(req *p4v1.ExternEntry, emit func(Found)) error {
	has, kind, id := map[uint32][]*p4v1.Entity{}, req.GetExternTypeId(), req.GetExternId()
	if w := s.opts.Watchdog; w != nil {
		readSetting(has, pfcwd.SettingsID, w)
		has[pfcwd.StormsID] = []*p4v1.Entity{pfcwd.StormsEntity(w.Storms())}
	} else {
		readSetting(has, pfcwd.SettingsID, &s.unwatched)
	}
	if l := s.opts.Lossless; l != nil {
		readSetting(has, pfcwd.LosslessID, l)
	}
	if w := s.opts.Weights; w != nil {
		readSetting(has, pfcwd.WeightsID, w)
	}
	if o := s.opts.Obeyed; o != nil {
		readSetting(has, pfcwd.ObeyedID, o)
	}
	_, known := has[id]
	switch {
	case len(has) == 0 && kind == 0 && len(s.schema.Info.GetExterns()) == 0:
		return nil // a read of all externs finds none
	case kind != 0 && kind != pfcwd.ExternType, len(has) == 0, id != 0 && !known && s.opts.Watchdog == nil:
		return errExtern
	case id != 0 && !known:
		return notFound("extern_entry 0x%08x: want 0x%08x to 0x%08x", id, uint32(pfcwd.SettingsID), uint32(pfcwd.ObeyedID))
	}
	for _, at := range slices.Sorted(maps.Keys(has)) {
		if id == 0 || id == at {
			for _, e := range has[at] {
				emit(found(e))
			}
		}
	}
	return nil
}

// readSetting adds the entity of a setting that a controller has set, or none, to those of an id.
func readSetting[T interface{ Entity() *p4v1.Entity }](has map[uint32][]*p4v1.Entity, id uint32, from Setting[T]) {
	has[id] = nil
	if v, set := from.Settings(); set {
		has[id] = []*p4v1.Entity{v.Entity()}
	}
}
