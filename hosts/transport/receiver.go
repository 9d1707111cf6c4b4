package transport

// Reply is a receiver's answer to a data packet.
type Reply uint8

// The replies.
const (
	Silent Reply = iota // nothing: a NAK for this gap is already on its way
	Ack                 // everything up to and including the reply's PSN has arrived
	Nak                 // PSN sequence error: the packet with the reply's PSN is missing
)

// Receiver is the receiving side of one flow: it takes packets in order and drops all
// others. The zero value expects packet 0. The goroutine that feeds it owns it.
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
		// The ACK of this packet was lost or is still in flight, so repeat the acknowledgement.
		return false, Ack, PSN(r.next - 1)
	}
}

// Next returns the number of the expected packet, which equals the number of packets delivered.
func (r *Receiver) Next() uint64 { return r.next }

// MSN returns the message sequence number for the AETH: messages completed, 24 bits.
func (r *Receiver) MSN() uint32 { return r.msn }

// PSNBits is the width of a packet sequence number on the wire.
const PSNBits = 24

const (
	psnMask = 1<<PSNBits - 1
	psnHalf = 1 << (PSNBits - 1)
)

// PSN returns the packet sequence number that packet i of a flow carries.
func PSN(i uint64) uint32 { return uint32(i & psnMask) }

// Unwrap returns the packet number nearest to near whose PSN is psn. It is right as long
// as fewer than 2^23 packets are outstanding, InfiniBand's own limit (§9.7.2), and never
// goes below zero: ok is false for a number before the flow's first packet.
func Unwrap(near uint64, psn uint32) (i uint64, ok bool) {
	forward := (psn - uint32(near)) & psnMask
	if forward < psnHalf {
		return near + uint64(forward), true
	}
	back := uint64(psnMask + 1 - forward)
	if back > near {
		return 0, false
	}
	return near - back, true
}
