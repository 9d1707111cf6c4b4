package sim

import (
	"fmt"

	"github.com/headgate/headgate/units"
)

// Check verifies the simulator's accounts. Every live packet is in a queue, on a link or taking effect
// as PFC, and none is lost or added. The bytes of each queue are the sum of its packets. The accounts
// of every buffer agree. An error is a fault of the simulator.
func (s *Sim) Check() error {
	found, tele := make([]int, len(s.partitions)), make([]int, len(s.partitions))
	see := func(at *partition, e *packet) {
		found[at.number]++
		if e.extra != 0 && at.extras.all[e.extra].tele != 0 {
			tele[at.number]++
		}
	}
	for i := range s.ports {
		p := &s.ports[i]
		at := s.at(int(p.node))
		at.store.each(p.wire, func(e *packet) bool { see(at, e); return true })
		if p.ctrl {
			found[at.number]++
		}
		for c := range p.queues {
			var got units.Bytes
			for precedence := range p.precedences() {
				at.store.each(*p.rank(uint8(c), precedence), func(e *packet) bool {
					see(at, e)
					got += units.Bytes(e.size())
					return true
				})
			}
			if got != p.queues[c].bytes {
				return fmt.Errorf("port %d class %d holds packets of %d B but counts %d B", i, c, int64(got), int64(p.queues[c].bytes))
			}
			if has := got != 0; has != (p.active>>c&1 == 1) {
				return fmt.Errorf("port %d class %d: active is %v, packets are queued: %v", i, c, !has, has)
			}
		}
	}
	for i, p := range s.partitions {
		p.events.fifos.each(func(e *packet) { see(p, e) })
		if found[i]+p.pendingPFC != p.live {
			return fmt.Errorf("partition %d: %d packets are in the fabric and %d PFC frames take effect, but %d are alive", i, found[i], p.pendingPFC, p.live)
		}
		if tele[i] != p.tele.live() {
			return fmt.Errorf("partition %d: %d packets carry telemetry, but %d records are alive", i, tele[i], p.tele.live())
		}
	}
	for i := range s.nodes {
		if m, err := s.MMU(i); err == nil {
			if err := m.Audit(); err != nil {
				return fmt.Errorf("buffer of %s: %w", s.graph.Names[i], err)
			}
		}
	}
	return nil
}
