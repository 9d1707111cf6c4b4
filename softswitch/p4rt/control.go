package p4rt

import (
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/entity"
)

// TryControl gives what runs to an agent in the switch's own process, which needs no
// session: entities, which it may change, and the engine. It never waits: it returns false
// at once when there is no pipeline with P4Info or a client is reading or writing. What use
// is given must not be kept but for the engine, which stays the same as long as the
// pipeline runs.
func (s *Server) TryControl(use func(*entity.State, *engine.Instance)) bool {
	if !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	l := s.running.Load()
	if l == nil || l.state == nil {
		return false
	}
	use(l.state, l.Instance)
	return true
}
