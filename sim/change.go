package sim

import (
	"fmt"
	"slices"

	"github.com/headgate/headgate/hosts/law"
)

// SetWeight changes the weight of all running flows of a group. A flow whose law has no weight is an
// error.
func (s *Sim) SetWeight(group int, weight float64) error {
	return s.change(group, func(f *flow) error {
		l, ok := f.tx.Law().(law.Weighted)
		if !ok {
			return fmt.Errorf("weight of group %d: the law of its flows has none", group)
		}
		if err := l.SetWeight(weight); err != nil {
			return fmt.Errorf("weight of group %d: %w", group, err)
		}
		f.weight = weight
		return nil
	})
}

// change calls fn for the running flows of a group and schedules them again.
func (s *Sim) change(group int, fn func(f *flow) error) error {
	for i := range s.flows {
		f := &s.flows[i]
		if f.tx == nil || f.spec.Group != group {
			continue
		}
		if err := fn(f); err != nil {
			return err
		}
		p := s.at(int(f.src))
		p.armTimer(int32(i))
		p.scheduleFlow(int32(i))
	}
	return nil
}

// SetLaw replaces the law of all running flows of a group, for example by a law of another priority. The new law
// starts as it does for a new flow. Packets in flight stay in flight.
func (s *Sim) SetLaw(group int, maker LawMaker) error {
	return s.change(group, func(f *flow) error {
		info := s.flowInfo(f)
		info.Weight, info.Deadline = f.weight, f.spec.deadline(f.ideal)
		l, err := maker.NewLaw(info)
		if err != nil {
			return fmt.Errorf("law of group %d: %w", group, err)
		}
		if n, ok := maker.(interface{ Needs() Needs }); ok {
			f.needs = n.Needs()
			s.require(f.needs)
		}
		f.tx.SetLaw(l, s.now)
		return nil
	})
}

// SetClass sets the class of the packets that running flows of a group send from now on.
func (s *Sim) SetClass(group int, class uint8) {
	for i := range s.flows {
		if f := &s.flows[i]; f.tx != nil && f.spec.Group == group {
			f.class = class
		}
	}
}

// SetLink fails a link, or repairs it. Packets on a failed link or queued for it are lost. Flows
// whose path, or whose acknowledgements' path, crosses the link get other paths. It is an error
// if a flow has no path left.
//
// Pauses outlive the failure: a switch still needs its peer to stop, and the peer's pause timers
// run on (IEEE 802.1Q clause 36.2 ties them to time alone). PFC frames may have been lost, so
// each switch at a repaired link first sends the state of every class.
func (s *Sim) SetLink(link int, down bool) error {
	if link < 0 || link >= len(s.graph.Links) {
		return fmt.Errorf("link %d: want 0 to %d", link, len(s.graph.Links)-1)
	}
	s.router.SetDown(link, down)
	for i := range s.ports {
		if s.layout.Link[i] != link {
			continue
		}
		p := &s.ports[i]
		p.down = down
		at := s.at(int(p.node))
		if down {
			at.flushPort(int32(i))
			continue
		}
		if n := &s.nodes[p.node]; n.buffer != nil {
			at.resendPFC(int32(i))
		}
		at.schedulePort(int32(i))
	}
	clear(s.cnpRoutes)
	for i := range s.flows {
		if s.flows[i].tx == nil {
			continue
		}
		// ECMP depends on the number of next hops, so other flows change their paths too.
		if down || s.graph.ECMP != nil {
			if err := s.reroute(int32(i), link); err != nil {
				return err
			}
		}
		s.routeCNPs(&s.flows[i])
	}
	s.shareSlices()
	return nil
}

// flushPort drops the queued packets of a port whose link has failed. Packets on the wire are dropped when
// they arrive.
func (s *partition) flushPort(i int32) {
	p := &s.ports[i]
	if p.ctrl {
		p.ctrl = false
		s.lose(&s.pauses[i].frame, &s.stats.LostOnLinks)
	}
	for c := range uint8(NumClasses) {
		for p.active>>c&1 == 1 {
			e := s.dequeue(p, c)
			s.lose(e, &s.stats.LostOnLinks)
			if !p.isHost {
				s.release(p, e.in(), c, bytesOf(e.size()))
			}
		}
	}
}

// reroute gives a flow new paths if its path crosses the link, or in any case if the graph has an ECMP.
func (s *Sim) reroute(i int32, link int) error {
	f := &s.flows[i]
	hash := s.hashOf(f.spec, i)
	if s.graph.ECMP == nil {
		if !s.crosses(f.route, f.hops, link) && !s.crosses(f.back, f.hops, link) {
			return nil
		}
		hash = splitmix(s.flowHash(f.spec, i))
	}
	route, back, hops, err := s.newRoutes(int(f.src), int(f.dst), f.spec, hash)
	if err != nil {
		return err
	}
	// Packets in flight still use the old paths, so their entries in routes stay.
	nic := s.nicOf(f)
	f.route, f.back, f.hops = route, back, hops
	if f.listed && nic != s.nicOf(f) {
		at := s.at(int(f.src))
		at.unlist(i, nic)
		at.scheduleFlow(i)
	}
	return nil
}

func (s *Sim) crosses(at, hops int32, link int) bool {
	return slices.ContainsFunc(s.routes[at:at+hops], func(port int32) bool { return s.layout.Link[port] == link })
}
