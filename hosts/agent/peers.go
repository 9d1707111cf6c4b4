package agent

import (
	"hash/maphash"
	"net/netip"

	"github.com/headgate/headgate/hosts/law/dcqcn"
	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/units"
)

// Bounds of this host's memory of senders.
const (
	maxPeers = 1 << 16
	// maxPeersOfSource bounds the flows of one address, so that one host alone does not fill the table.
	maxPeersOfSource = maxPeers / 4
	maxAnswers       = 1 << 16
	// peerIdle is the silence after which a received flow may be forgotten to make room for another; its sender then
	// restarts it.
	peerIdle = 10 * units.Second
	// lookAt is how many flows are checked for an idle one when there is no room.
	lookAt = 8
)

// peerKey has no pointer and no gap, so that it is hashed in one piece.
type peerKey struct {
	src         [16]byte
	srcPort, qp uint32
}

// peer is one flow that this host receives: 64 bytes, a line of the cache.
type peer struct {
	key          peerKey
	seen         units.Time
	r            transport.Receiver
	notify       *dcqcn.NotificationPoint // nil before the first packet that was marked
	before, next int32                    // flows of its address, in a ring
}

// origin is an address with flows.
type origin struct{ flows, first int32 }

// slot is a place of the hash table: the hash of a flow, and its place in the list from 1 on, 0 for none.
type slot struct {
	hash uint32
	at   int32
}

// peers are the flows that this host receives. A frame of a known flow touches a line of slots and one of list: each
// costs a fetch from memory where the flows are more than the cache holds.
type peers struct {
	seed    maphash.Seed
	slots   []slot // open addressing, at most half full, a power of two
	list    []peer
	hand    int32 // place in list of the flow to look at next for one that is idle
	sources map[[16]byte]*origin
}

func newPeers() peers {
	return peers{seed: maphash.MakeSeed(), slots: make([]slot, 16), sources: map[[16]byte]*origin{}}
}

// find returns the slot of a flow. If the flow is unknown, it returns the empty slot at which the search ended.
func (p *peers) find(key *peerKey) (at int, hash uint32) {
	hash = uint32(maphash.Comparable(p.seed, *key))
	for at = int(hash) & (len(p.slots) - 1); ; at = (at + 1) & (len(p.slots) - 1) {
		if s := p.slots[at]; s.at == 0 || s.hash == hash && p.list[s.at-1].key == *key {
			return at, hash
		}
	}
}

// heard returns the index of the frame's flow, and adds the flow if it is new. It returns -1 if there is no room, in
// all or for this address, and no flow was found that had been idle for peerIdle.
func (p *peers) heard(now units.Time, src netip.Addr, srcPort uint16, qp uint32) int32 {
	key := peerKey{src.As16(), uint32(srcPort), qp}
	at, hash := p.find(&key)
	if i := p.slots[at].at - 1; i >= 0 {
		p.list[i].seen = now
		return i
	}
	own, i := p.sources[key.src], int32(len(p.list))
	switch {
	case own != nil && own.flows >= maxPeersOfSource:
		i = p.idle(now, own)
	case i >= maxPeers:
		i = p.idle(now, nil)
	default:
		p.list = append(p.list, peer{})
		p.grow()
	}
	if i < 0 {
		return i
	}
	if own = p.sources[key.src]; own == nil { // its last flow may just have been forgotten
		own = &origin{first: i}
		p.sources[key.src] = own
	}
	x := &p.list[i]
	*x = peer{key: key, seen: now, before: i, next: i}
	if own.flows++; own.flows > 1 { // last of the ring
		x.next, x.before = own.first, p.list[own.first].before
		p.list[x.next].before, p.list[x.before].next = i, i
	}
	at, _ = p.find(&key)
	p.slots[at] = slot{hash, i + 1}
	return i
}

// idle finds an idle flow, forgets it and returns its index. The flow must be of address of, or may be any if of is
// nil. Each call checks only the next lookAt flows, and returns -1 if none of these is idle.
func (p *peers) idle(now units.Time, of *origin) int32 {
	for range lookAt {
		i := p.hand
		if of != nil {
			i = of.first
			of.first = p.list[i].next
		} else {
			p.hand = (p.hand + 1) % maxPeers
		}
		if now-p.list[i].seen > peerIdle {
			p.forget(i)
			return i
		}
	}
	return -1
}

func (p *peers) forget(i int32) {
	x := &p.list[i]
	own := p.sources[x.key.src]
	p.list[x.before].next, p.list[x.next].before = x.next, x.before
	if own.first == i {
		own.first = x.next
	}
	if own.flows--; own.flows == 0 {
		delete(p.sources, x.key.src)
	}
	mask := len(p.slots) - 1
	at, _ := p.find(&x.key)
	for next := (at + 1) & mask; p.slots[next].at != 0; next = (next + 1) & mask {
		if (next-int(p.slots[next].hash))&mask >= (next-at)&mask { // a search for it passes the empty slot
			p.slots[at] = p.slots[next]
			at = next
		}
	}
	p.slots[at] = slot{}
}

// grow makes room for the flows of list.
func (p *peers) grow() {
	if 2*len(p.list) <= len(p.slots) {
		return
	}
	old := p.slots
	p.slots = make([]slot, 2*len(old))
	for _, s := range old {
		if s.at == 0 {
			continue
		}
		at := int(s.hash) & (len(p.slots) - 1)
		for p.slots[at].at != 0 {
			at = (at + 1) & (len(p.slots) - 1)
		}
		p.slots[at] = s
	}
}
