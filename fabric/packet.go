package fabric

import "github.com/headgate/headgate/units"

// kind says what a packet is; it fits in three bits.
type kind uint8

const (
	kindData kind = iota
	kindAck
	kindNak
	kindCNP
	kindProbe
	kindProbeAck
	kindPFC
	kindLastAck // an ACK, of all of its flow
)

// Flags of a packet.
const (
	flagLast = 1 << iota // ends its message
	flagCE               // ECN congestion experienced; an ACK echoes it
	flagPair             // of a CNP: for all flows from the same source to the same destination
)

// packet is one frame in the fabric: what every hop looks at, two to a cache line. Index 0
// of the pool stands for none.
type packet struct {
	next  int32 // the packet behind this one in a queue or in the free list
	flow  int32
	route int32      // index in Sim.routes of the port it leaves the next node by
	in    int32      // port by which it came into the present switch
	at    units.Time // in a queue: since when
	psn   uint32     // packet sequence number; of a PFC frame: quanta and what it pauses
	size  uint16     // of the frame
	class uint8      // of a PFC frame: the mask of classes
	bits  uint8      // kind in the lower four bits, flags above
}

const kindBits = 4

func (p *packet) kind() kind          { return kind(p.bits & (1<<kindBits - 1)) }
func (p *packet) has(flag uint8) bool { return p.bits>>kindBits&flag != 0 }
func (p *packet) set(flag uint8)      { p.bits |= flag << kindBits }

// turn makes the packet another kind and keeps its flags.
func (p *packet) turn(k kind) { p.bits = p.bits>>kindBits<<kindBits | uint8(k) }

// extra is what a packet carries only for laws that need it. An acknowledgement carries
// its data packet's back.
type extra struct {
	sent  units.Time // when the data packet left its host
	delay units.Time // how long it took to its receiver
	maxQD units.Time // largest queueing delay of its hops so far
	tele  int32      // telemetry record, 0 for none
}

// pool owns all packets of a Sim. It has no pointers, so the garbage collector does not
// look into it. Pointers into it are invalid after get.
type pool struct {
	packets []packet
	extras  []extra // by packet; empty until a law needs them
	wide    bool    // extras are kept
	free    int32
	live    int
}

func newPool() pool { return pool{packets: make([]packet, 1, 1<<12)} }

// widen keeps extras from now on; packets that are there have none.
func (p *pool) widen() {
	if !p.wide {
		p.wide = true
		p.extras = make([]extra, len(p.packets), cap(p.packets))
	}
}

// get returns a packet with all fields zero.
func (p *pool) get() int32 {
	p.live++
	if i := p.free; i != 0 {
		p.free = p.packets[i].next
		p.packets[i] = packet{}
		if p.wide {
			p.extras[i] = extra{}
		}
		return i
	}
	p.packets = append(p.packets, packet{})
	if p.wide {
		p.extras = append(p.extras, extra{})
	}
	return int32(len(p.packets) - 1)
}

func (p *pool) put(i int32) {
	p.live--
	p.packets[i].next = p.free
	p.free = i
}

// peak returns the largest number of packets alive at once.
func (p *pool) peak() int { return len(p.packets) - 1 }

// fifo is a queue of packets linked through their next fields.
type fifo struct {
	head, tail int32
}

func (f *fifo) push(packets []packet, i int32) {
	packets[i].next = 0
	if f.head == 0 {
		f.head = i
	} else {
		packets[f.tail].next = i
	}
	f.tail = i
}

// pop takes the first packet; the queue must not be empty.
func (f *fifo) pop(packets []packet) int32 {
	i := f.head
	f.head = packets[i].next
	return i
}
