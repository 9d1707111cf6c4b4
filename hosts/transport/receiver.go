package transport

// Reply is what a receiver answers to a data packet.
type Reply uint8

// The replies.
const (
	Silent Reply = iota // nothing: a NAK for this gap is already on its way
	Ack                 // everything up to and including the reply's PSN has arrived
	Nak                 // PSN sequence error: the packet with the reply's PSN is missing
)

// Receiver is the receiving side of one flow: it takes packets in order and drops all
// others. The zero value expects packet 0. It is owned by whoever feeds it.
type Receiver struct {
	next uint64 // packet expected
	gap  bool   // a NAK for next has been sent
	msn  uint32
}

// OnData takes a data packet; last says that it ends a message. deliver is whether its
// payload is the next of the flow; the reply, with its PSN, goes back to the sender.
func (r *Receiver) OnData(psn uint32, last bool) (deliver bool, reply Reply, replyPSN uint32) {
	i, ok := Unwrap(r.next, psn)
	switch {
	case ok && i == r.next:
		r.next++
		r.gap = false
		if last {
			r.msn = (r.msn + 1) & psnMask
		}
		return true, Ack, psn
	case ok && i > r.next:
		if r.gap {
			return false, Silent, 0
		}
		// One NAK per gap, as §9.7.5.2.8 asks: a burst behind a lost packet must not
		// restart the sender once for each of its packets.
		r.gap = true
		return false, Nak, PSN(r.next)
	default:
		if r.next == 0 {
			return false, Silent, 0
		}
		// The ACK of this packet was lost or is still on its way; say how far we are.
		return false, Ack, PSN(r.next - 1)
	}
}

// Next returns the number of the packet expected, which is how many were delivered.
func (r *Receiver) Next() uint64 { return r.next }

// MSN returns the message sequence number for the AETH: messages completed, 24 bits.
func (r *Receiver) MSN() uint32 { return r.msn }
