package fabric

import (
	"fmt"

	"github.com/headgate/headgate/units"
)

// Check verifies that nothing was lost or made up: every packet that is alive is in a
// queue, on a link or taking effect as PFC, in as many as the pools handed out; and bytes of
// queues are the sum of their packets; and the accounts of every buffer agree. An error is a fault
// of the simulator.
func (s *Sim) Check() error {
	found, tele := make([]int, len(s.parts)), make([]int, len(s.parts))
	for i := range s.ports {
		p := &s.ports[i]
		at := s.at(int(p.node))
		see := func(k int32) {
			found[at.number]++
			if at.pool.wide && at.pool.extras[k].tele != 0 {
				tele[at.number]++
			}
		}
		count := func(head int32) (bytes units.Bytes) {
			for k := head; k != 0; k = at.pool.packets[k].next {
				see(k)
				bytes += units.Bytes(at.pool.packets[k].size)
			}
			return bytes
		}
		for j := range p.wire.n {
			see(p.wire.ring[(p.wire.head+j)&uint32(len(p.wire.ring)-1)].k)
		}
		count(p.ctrl.head)
		for c := range p.queues {
			if got := count(p.queues[c].head); got != p.queues[c].bytes {
				return fmt.Errorf("port %d class %d holds packets of %d B but counts %d B", i, c, int64(got), int64(p.queues[c].bytes))
			}
			if has := p.queues[c].head != 0; has != (p.active>>c&1 == 1) {
				return fmt.Errorf("port %d class %d: active is %v, packets are queued: %v", i, c, !has, has)
			}
		}
	}
	for i, p := range s.parts {
		if found[i]+p.obeying != p.pool.live {
			return fmt.Errorf("part %d: %d packets are in the fabric and %d PFC frames take effect, but %d are alive", i, found[i], p.obeying, p.pool.live)
		}
		if tele[i] != p.tele.live {
			return fmt.Errorf("part %d: %d packets carry telemetry, but %d records are alive", i, tele[i], p.tele.live)
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
