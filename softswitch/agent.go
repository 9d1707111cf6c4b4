package softswitch

import (
	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/entity"
	"github.com/headgate/headgate/softswitch/pacc"
	"github.com/headgate/headgate/units"
)

// agentHost is the switch as PACC's agent sees it. Only the goroutine that runs the switch uses
// it, without holding the switch's lock.
type agentHost struct{ s *Switch }

var _ pacc.Host = agentHost{}

// TryControl implements pacc.Host. The CPU port's number is part of the program. If the switch has
// another CPU port, the agent could not inject notifications, so it sleeps.
func (h agentHost) TryControl(use func(*entity.State, *engine.Instance)) bool {
	return h.s.cpu == ids.CPUPort && h.s.server.TryControl(use)
}

// Inject implements pacc.Host.
func (h agentHost) Inject(frame []byte, now units.Time) {
	h.s.mu.Lock()
	h.s.dataplane.receive(h.s.cpu, frame, now)
	h.s.mu.Unlock()
}

// learning passes each digest first to the agent and then to control.
type learning struct {
	control
	agent *pacc.Agent
}

// Digest implements control.
func (l learning) Digest(name string, fields [][]byte) {
	l.agent.Digest(name, fields)
	l.control.Digest(name, fields)
}

// PACC returns the counters of the switch's PACC loop. It returns false while no loop runs. The
// loop starts when a controller writes settings to the table of watched queues.
func (s *Switch) PACC() (cnpgen.LoopStats, []cnpgen.PortStats, bool) { return s.agent.Stats() }
