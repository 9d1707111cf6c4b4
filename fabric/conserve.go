package fabric

import (
	"fmt"

	"github.com/headgate/headgate/units"
)

// Check verifies that nothing was lost or made up: every packet that is alive is in a
// queue, on a link or taking effect as PFC, in as many as the pool handed out; bytes of
// queues are the sum of their packets; and every data packet that was sent has been
// delivered, dropped or is still there; and the accounts of every buffer agree. An error is a fault
// of the simulator.
func (s *Sim) Check() error {
	found, tele := 0, 0
	inNet := make([]int32, len(s.flows))
	see := func(k int32) {
		pk := &s.pool.packets[k]
		found++
		if s.pool.wide && s.pool.extras[k].tele != 0 {
			tele++
		}
		if pk.flow >= 0 {
			inNet[pk.flow]++
		}
	}
	count := func(head int32) (bytes units.Bytes) {
		for k := head; k != 0; k = s.pool.packets[k].next {
			see(k)
			bytes += units.Bytes(s.pool.packets[k].size)
		}
		return bytes
	}
	for i := range s.ports {
		p := &s.ports[i]
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
	if found+s.obeying != s.pool.live {
		return fmt.Errorf("%d packets are in the fabric and %d PFC frames take effect, but %d are alive", found, s.obeying, s.pool.live)
	}
	if tele != s.tele.live {
		return fmt.Errorf("%d packets carry telemetry, but %d records are alive", tele, s.tele.live)
	}
	for i := range s.nodes {
		if m, err := s.MMU(i); err == nil {
			if err := m.Audit(); err != nil {
				return fmt.Errorf("buffer of %s: %w", s.graph.Names[i], err)
			}
		}
	}
	for i := range s.flows {
		if inNet[i] != s.flows[i].inNet {
			return fmt.Errorf("flow slot %d has %d packets in the fabric but counts %d", i, inNet[i], s.flows[i].inNet)
		}
	}
	return nil
}
