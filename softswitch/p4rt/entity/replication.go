package entity

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/softswitch/engine"
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
