package engine

// Drop is why a packet ended in the engine.
type Drop uint8

// The reasons. Of a packet that was cloned, resubmitted or recirculated, only the copies go on, which is no drop.
const (
	DropIngress   Drop = iota // egress_spec was the drop port at the end of ingress
	DropEgress                // the same at the end of egress
	DropAssertion             // an assert or assume failed
	DropQueue                 // the priority names a queue that the port does not have
	DropGroup                 // the multicast group, or the clone session, has no replica
	Drops
)

func (d Drop) String() string {
	return [...]string{"ingress", "egress", "assertion", "no-queue", "no-replica"}[d]
}

// end ends a packet that came in on a port, or that was about to leave by it.
func (t *Worker) end(p *Packet, port uint32, why Drop, out Out) {
	out.Dropped(port, why)
	t.put(p)
}
