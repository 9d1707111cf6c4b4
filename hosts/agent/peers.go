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
)

type peerKey struct {
	src     netip.Addr
	srcPort uint16
	qp      uint32
}

// peer is one flow that this host receives.
type peer struct {
	key    peerKey
	r      transport.Receiver
	seen   units.Time
	notify dcqcn.NotificationPoint

	source       *list.List // of its address
	inAll, inOwn *list.Element
}

// peers are the flows that this host receives. The lists of all and of each address have the one that was silent for
// longest first, so that a frame costs the same however many there are.
type peers struct {
	by      map[peerKey]*peer
	all     list.List                 // of *peer
	sources map[netip.Addr]*list.List // likewise
}

func newPeers() peers { return peers{by: map[peerKey]*peer{}, sources: map[netip.Addr]*list.List{}} }

// heard returns the flow that a frame belongs to, which may be new. It returns nil when there is no room for it: too
// many flows, of all addresses or of this one, were heard within peerIdle.
func (p *peers) heard(now units.Time, key peerKey) *peer {
	if x := p.by[key]; x != nil {
		x.seen = now
		p.all.MoveToBack(x.inAll)
		x.source.MoveToBack(x.inOwn)
		return x
	}
	own := p.sources[key.src]
	switch {
	case own != nil && own.Len() >= maxPeersOfSource:
		if !p.forget(now, own.Front()) {
			return nil
		}
	case len(p.by) >= maxPeers:
		if !p.forget(now, p.all.Front()) {
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

// forget forgets a flow unless it is in use.
func (p *peers) forget(now units.Time, at *list.Element) bool {
	x := at.Value.(*peer)
	if now-x.seen <= peerIdle {
		return false
	}
	delete(p.by, x.key)
	p.all.Remove(x.inAll)
	if x.source.Remove(x.inOwn); x.source.Len() == 0 {
		delete(p.sources, x.key.src)
	}
	return true
}
