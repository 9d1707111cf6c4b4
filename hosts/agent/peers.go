package agent

import (
	"container/list"
	"net/netip"

	"github.com/headgate/headgate/hosts/law/dcqcn"
	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/units"
)

// Bounds of what senders can make this host remember.
const (
	maxPeers = 1 << 16
	// maxPeersOfSource bounds the flows of one address, so that one host alone does not fill the table.
	maxPeersOfSource = maxPeers / 4
	maxAnswers       = 1 << 16
	// peerIdle is after which silence a flow that is received may be forgotten when there
	// is no room for another; its sender then starts it anew.
	peerIdle = 10 * units.Second
	// lookAt is how many flows are looked at for one that is idle when there is no room.
	lookAt = 8
)

// peerKey has no pointer and no gap, so that it is hashed in one piece.
type peerKey struct {
	src         [16]byte
	srcPort, qp uint32
}

// peer is one flow that this host receives.
type peer struct {
	seen   units.Time
	r      transport.Receiver
	notify dcqcn.NotificationPoint

	key          peerKey
	source       *list.List // of its address
	inAll, inOwn *list.Element
}

// peers are the flows that this host receives, in lists of all and of each address. A frame of a known flow notes the
// time alone and moves the flow in no list, as each list would cost it several lines of memory that no cache has. A flow
// at the front of a list goes to the back when a place is looked for and it turns out to be in use.
type peers struct {
	by      map[peerKey]*peer
	all     list.List               // of *peer
	sources map[[16]byte]*list.List // likewise
}

func newPeers() peers { return peers{by: map[peerKey]*peer{}, sources: map[[16]byte]*list.List{}} }

// heard returns the flow that a frame belongs to, which may be new. It returns nil when there is no room for it: of all
// flows, or of those of this address, none was found that was not heard within peerIdle.
func (p *peers) heard(now units.Time, src netip.Addr, srcPort uint16, qp uint32) *peer {
	key := peerKey{src.As16(), uint32(srcPort), qp}
	if x := p.by[key]; x != nil {
		x.seen = now
		return x
	}
	own := p.sources[key.src]
	switch {
	case own != nil && own.Len() >= maxPeersOfSource:
		if !p.forget(now, own) {
			return nil
		}
	case len(p.by) >= maxPeers:
		if !p.forget(now, &p.all) {
			return nil
		}
	}
	if own = p.sources[key.src]; own == nil { // its last flow may just have been forgotten
		own = list.New()
		p.sources[key.src] = own
	}
	x := &peer{key: key, seen: now, source: own}
	x.inAll, x.inOwn = p.all.PushBack(x), own.PushBack(x)
	p.by[key] = x
	return x
}

// forget forgets a flow of a list that is idle, and reports whether it found one. It looks at the next few each time.
func (p *peers) forget(now units.Time, in *list.List) bool {
	for range lookAt {
		at := in.Front()
		x := at.Value.(*peer)
		if now-x.seen <= peerIdle {
			in.MoveToBack(at)
			continue
		}
		delete(p.by, x.key)
		p.all.Remove(x.inAll)
		if x.source.Remove(x.inOwn); x.source.Len() == 0 {
			delete(p.sources, x.key.src)
		}
		return true
	}
	return false
}
