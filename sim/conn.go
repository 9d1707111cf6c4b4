package sim

import (
	"fmt"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/units"
)

// conn is a connection whose messages are sent one after another; see FlowSpec.Conn. The Sim owns it.
type conn struct {
	src, dst int
	hash     uint64
	busy     bool
	law      law.Law // nil before the first message
	seq      uint64  // bytes of its messages so far
	waiting  []int32 // flows
}

// queueMessage reports whether a flow has to wait for its connection.
func (s *partition) queueMessage(i int32) (waits bool) {
	c := s.conns[s.flows[i].spec.Conn]
	switch {
	case c == nil:
		return false
	case c.busy:
		c.waiting = append(c.waiting, i)
		s.waiting++
		return true
	}
	c.busy = true
	return false
}

// checkConn returns an error if a message belongs to a connection between other hosts or has no size.
func (s *Sim) checkConn(f *FlowSpec) error {
	if f.Conn > 0 && (f.Size == 0 || f.Stop > 0) {
		return fmt.Errorf("flow on connection %d: want a size and no stop", f.Conn)
	}
	if c := s.conns[f.Conn]; c != nil && (c.src != f.Src || c.dst != f.Dst) {
		return fmt.Errorf("flow from %s to %s on connection %d, which joins %s and %s",
			s.graph.Names[f.Src], s.graph.Names[f.Dst], f.Conn, s.graph.Names[c.src], s.graph.Names[c.dst])
	}
	return nil
}

// hashOf returns the number that stands for the five-tuple of flow i. The first flow of a connection
// opens it.
func (s *Sim) hashOf(spec *FlowSpec, i int32) uint64 {
	if spec.Conn == 0 {
		return s.flowHash(spec, i)
	}
	c := s.conns[spec.Conn]
	if c == nil {
		c = &conn{src: spec.Src, dst: spec.Dst, hash: s.flowHash(spec, i)}
		if s.conns == nil {
			s.conns = map[int]*conn{}
		}
		s.conns[spec.Conn] = c
	}
	return c.hash
}

// nextMessage keeps the law of an ended message and starts the next message on the same path.
func (s *partition) nextMessage(f *flow, law law.Law) error {
	c := s.conns[f.spec.Conn]
	c.law, c.busy = law, false
	c.seq += uint64(f.spec.Size)
	if len(c.waiting) == 0 {
		return nil
	}
	i := c.waiting[0]
	c.waiting = c.waiting[1:]
	s.waiting--
	c.busy = true
	next := &s.flows[i]
	next.route, next.back, next.hops = f.route, f.back, f.hops
	return s.begin(i)
}

// catchUp fires the timers of a connection's law that were due while it had nothing to send, because a
// NIC's timers run on.
func (c *conn) catchUp(now units.Time) {
	for {
		at := c.law.Timer()
		if at > now {
			return
		}
		c.law.OnEvent(law.Tick, at)
		if c.law.Timer() <= at {
			return // it wants no later one
		}
	}
}
