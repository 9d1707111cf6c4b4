package p4rt

import (
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/entity"
)

// TryControl calls use with the running pipeline's entities, which use may change, and its engine.
// It serves an agent in the switch's own process, which has no session. It never waits: it returns
// false at once if there is no pipeline with P4Info, or if a client is reading or writing. use may
// keep the engine, which stays the same while the pipeline runs, but not the entities.
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
