package engine

import (
	"fmt"
	"slices"
)

// SetMulticastGroup creates or replaces a multicast group, which yields one copy per
// replica, in order. Group 0 means no multicast.
func (in *Instance) SetMulticastGroup(id uint16, r []Replica) error {
	if id == 0 {
		return fmt.Errorf("multicast group 0 stands for no multicast, allowed are 1 to 65535: %w", ErrInvalid)
	}
	r = slices.Clone(r)
	in.lock()
	in.groups[id] = r // packets in progress keep the old slice
	in.unlock()
	return nil
}

// DeleteMulticastGroup removes a group.
func (in *Instance) DeleteMulticastGroup(id uint16) error {
	return deleteID(in, "multicast group", in.groups, id)
}

func deleteID[V any](in *Instance, kind string, m map[uint16]V, id uint16) error {
	in.lock()
	defer in.unlock()
	if _, ok := m[id]; !ok {
		return fmt.Errorf("%s %d: %w", kind, id, ErrNotFound)
	}
	delete(m, id)
	return nil
}

// maxSession is the highest number of a clone session.
const maxSession = 1<<15 - 1

// SetCloneSession creates or replaces a clone session.
func (in *Instance) SetCloneSession(id uint16, s CloneSession) error {
	if id > maxSession {
		return fmt.Errorf("clone session %d, allowed are 0 to %d: %w", id, maxSession, ErrInvalid)
	}
	if s.Truncate < 0 {
		return fmt.Errorf("clone session %d truncates to %d bytes: %w", id, s.Truncate, ErrInvalid)
	}
	s.Replicas = slices.Clone(s.Replicas)
	in.lock()
	in.sessions[id] = &s
	in.unlock()
	return nil
}

// DeleteCloneSession removes a session.
func (in *Instance) DeleteCloneSession(id uint16) error {
	return deleteID(in, "clone session", in.sessions, id)
}
