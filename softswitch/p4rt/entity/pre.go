package entity

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/canon"
)

// Ranges of the packet replication engine, those of BMv2.
const (
	maxGroup    = 1<<16 - 1 // multicast_group_id
	maxSession  = 1<<15 - 1 // session_id
	maxInstance = 1<<16 - 1
	maxPort     = 1<<9 - 1 // standard_metadata.egress_port is 9 bits wide
)

func (s *State) writePRE(op p4v1.Update_Type, in *p4v1.PacketReplicationEngineEntry) error {
	switch e := in.GetType().(type) {
	case *p4v1.PacketReplicationEngineEntry_MulticastGroupEntry:
		return s.writeMulticast(op, e.MulticastGroupEntry)
	case *p4v1.PacketReplicationEngineEntry_CloneSessionEntry:
		return s.writeClone(op, e.CloneSessionEntry)
	}
	return invalid("packet_replication_engine_entry is unset")
}

func (s *State) writeMulticast(op p4v1.Update_Type, in *p4v1.MulticastGroupEntry) error {
	id := in.GetMulticastGroupId()
	if id == 0 || id > maxGroup {
		return invalid("multicast_group_id is %d, allowed are 1 to %d", id, maxGroup)
	}
	_, ok := s.groups.get(id)
	if err := present(op, ok, "multicast group", id); err != nil {
		return err
	}
	if op == p4v1.Update_DELETE {
		if err := s.inst.DeleteMulticastGroup(uint16(id)); err != nil {
			return fromEngine(err)
		}
		s.groups.remove(id)
		return nil
	}
	rs, err := s.replicas("multicast group", id, in.Replicas)
	if err != nil {
		return err
	}
	if err := s.inst.SetMulticastGroup(uint16(id), rs); err != nil {
		return fromEngine(err)
	}
	s.groups.set(id, cloneOf(in))
	return nil
}

func (s *State) writeClone(op p4v1.Update_Type, in *p4v1.CloneSessionEntry) error {
	id := in.GetSessionId()
	if id == 0 || id > maxSession {
		return invalid("session_id is %d, allowed are 1 to %d", id, maxSession)
	}
	_, ok := s.sessions.get(id)
	if err := present(op, ok, "clone session", id); err != nil {
		return err
	}
	if op == p4v1.Update_DELETE {
		if err := s.inst.DeleteCloneSession(uint16(id)); err != nil {
			return fromEngine(err)
		}
		s.sessions.remove(id)
		return nil
	}
	rs, err := s.replicas("clone session", id, in.Replicas)
	if err != nil {
		return err
	}
	if in.ClassOfService >= uint32(s.opts.Queues) {
		return invalid("clone session %d: class_of_service is %d, allowed are 0 to %d", id, in.ClassOfService, s.opts.Queues-1)
	}
	if in.PacketLengthBytes < 0 {
		return invalid("clone session %d: packet_length_bytes is %d, it must not be negative", id, in.PacketLengthBytes)
	}
	err = s.inst.SetCloneSession(uint16(id), engine.CloneSession{
		Replicas: rs, Truncate: int(in.PacketLengthBytes), QueueHint: uint8(in.ClassOfService),
	})
	if err != nil {
		return fromEngine(err)
	}
	s.sessions.set(id, cloneOf(in))
	return nil
}

// present checks that an entity is there, or not there, as the update needs it.
func present(op p4v1.Update_Type, ok bool, kind string, id uint32) error {
	if op == p4v1.Update_INSERT && ok {
		return exists("%s %d exists", kind, id)
	}
	if op != p4v1.Update_INSERT && !ok {
		return notFound("there is no %s %d", kind, id)
	}
	return nil
}

// replicas validates the copies that a group or session makes.
func (s *State) replicas(kind string, id uint32, in []*p4v1.Replica) ([]engine.Replica, error) {
	out := make([]engine.Replica, 0, len(in))
	seen := make(map[engine.Replica]bool, len(in))
	for i, r := range in {
		port := uint64(r.GetEgressPort())
		if r != nil {
			if b, ok := replicaPort(r); ok {
				var fits bool
				if port, fits = canon.Uint(b); !fits || len(b) == 0 {
					return nil, invalid("%s %d: replicas[%d].port is %#x, allowed are ports 0 to %d", kind, id, i, b, maxPort)
				}
			}
		}
		if port == sdnPortCPU && s.opts.CPUPort != 0 {
			port = uint64(s.opts.CPUPort)
		}
		switch {
		case port > maxPort || s.opts.DropPort != 0 && port == uint64(s.opts.DropPort):
			return nil, invalid("%s %d: replicas[%d].egress_port is %d, allowed are ports 0 to %d but the drop port, %d", kind, id, i, port, maxPort, s.opts.DropPort)
		case r.GetInstance() > maxInstance:
			return nil, invalid("%s %d: replicas[%d].instance is %d, allowed are 0 to %d", kind, id, i, r.GetInstance(), maxInstance)
		}
		e := engine.Replica{Port: uint32(port), Instance: uint16(r.GetInstance())}
		if seen[e] {
			return nil, invalid("%s %d: replicas[%d] repeats port %d and instance %d", kind, id, i, e.Port, e.Instance)
		}
		seen[e] = true
		out = append(out, e)
	}
	return out, nil
}

// sdnPortCPU is SDN_PORT_CPU as the unsigned number it is on the wire.
const sdnPortCPU = 0xfffffffd

func (s *State) readPRE(req *p4v1.PacketReplicationEngineEntry, emit func(*p4v1.Entity)) error {
	out := func(e *p4v1.PacketReplicationEngineEntry) {
		emit(&p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: e}})
	}
	group := func(_ uint32, g *p4v1.MulticastGroupEntry) {
		out(&p4v1.PacketReplicationEngineEntry{Type: &p4v1.PacketReplicationEngineEntry_MulticastGroupEntry{MulticastGroupEntry: g}})
	}
	session := func(_ uint32, c *p4v1.CloneSessionEntry) {
		out(&p4v1.PacketReplicationEngineEntry{Type: &p4v1.PacketReplicationEngineEntry_CloneSessionEntry{CloneSessionEntry: c}})
	}
	switch e := req.GetType().(type) {
	case *p4v1.PacketReplicationEngineEntry_MulticastGroupEntry:
		id := e.MulticastGroupEntry.GetMulticastGroupId()
		if id == 0 {
			s.groups.each(group)
			return nil
		}
		g, ok := s.groups.get(id)
		if !ok {
			return notFound("there is no multicast group %d", id)
		}
		group(id, g)
	case *p4v1.PacketReplicationEngineEntry_CloneSessionEntry:
		id := e.CloneSessionEntry.GetSessionId()
		if id == 0 {
			s.sessions.each(session)
			return nil
		}
		c, ok := s.sessions.get(id)
		if !ok {
			return notFound("there is no clone session %d", id)
		}
		session(id, c)
	default: // all of it, as other servers read an unset type
		s.groups.each(group)
		s.sessions.each(session)
	}
	return nil
}
