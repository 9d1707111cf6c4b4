package engine

// Drop is the reason for which a packet ended in the engine.
type Drop uint8

// The reasons. A packet of which only clones, resubmitted or recirculated copies go on is not a
// drop.
const (
	DropIngress   Drop = iota // the program dropped it at the end of ingress
	DropEgress                // the program dropped it at the end of egress
	DropAssertion             // an assert or assume failed
	DropQueue                 // the program chose a queue that the port does not have
	DropGroup                 // the multicast group, or the clone session, has no replica
	Drops
)

func (d Drop) String() string {
	return [...]string{"ingress", "egress", "assertion", "no-queue", "no-replica"}[d]
}

// Drop reports to out that a packet ended, and ends it. port is the one that the packet arrived
// on, or in egress the one that it was about to leave by.
func (t *Worker) Drop(p *Packet, port uint32, why Drop, out Out) {
	out.Dropped(port, why)
	t.put(p)
}
