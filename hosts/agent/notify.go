package agent

import (
	"net/netip"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/dcqcn"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// cnpReserved is the zero payload of a congestion notification.
var cnpReserved [packet.CNPReserved]byte

// marked is DCQCN's notification point for a packet that arrived marked.
func (a *Agent) marked(now units.Time, at int32) {
	p := &a.peers.list[at]
	if a.cfg.CNPGap > 0 && p.notify == nil {
		p.notify = &dcqcn.NotificationPoint{}
	}
	if a.cfg.CNPGap > 0 && p.notify.Marked(now, a.cfg.CNPGap) {
		a.sendNotification(at)
	}
}

// notifyOwed sends the CNPs deferred by windows that have ended.
func (a *Agent) notifyOwed(now units.Time) {
	for len(a.windows) > 0 && a.windows[0].end <= now {
		at := a.windows[0].peer
		a.windows = a.windows[1:]
		if n := a.peers.list[at].notify; n != nil && n.Expired(now, a.cfg.CNPGap) { // nil: another flow has its place
			a.sendNotification(at)
		}
	}
}

func (a *Agent) sendNotification(at int32) {
	p := &a.peers.list[at]
	a.windows = append(a.windows, window{p.notify.End(), at})
	if a.answer(answer{dst: netip.AddrFrom16(p.key.src).Unmap(), srcPort: uint16(p.key.srcPort), dstPort: packet.RoCEv2Port, qp: p.key.qp, cnp: true}) {
		a.counts.CNPsSent++
	}
}

// window is the time in which a flow gets no other notification.
type window struct {
	end  units.Time
	peer int32 // index in Agent.peers
}

// notification makes an answer a congestion notification, which has no shim.
func notification(f *packet.Frame) {
	f.BTH.Opcode, f.BTH.BECN, f.Payload = packet.CNP, true, cnpReserved[:]
}

// onCNP takes a congestion notification. A receiver names the flow by its queue pair. A switch that only knows
// addresses sets no queue pair, or one that no flow of ours ever had: then the notification is for every flow of ours
// to its source. A notification for an ended flow is late and is ignored.
func (a *Agent) onCNP(now units.Time, f *packet.Frame) {
	if !f.BTH.BECN {
		a.counts.Unknown++
		return
	}
	found := false
	if a.used(f.BTH.DestQP) {
		if fl := a.flowOf(f); fl != nil {
			found = true
			a.congested(fl, now)
		}
	} else {
		for _, fl := range a.byDst[f.Src] {
			found = true
			a.congested(fl, now)
		}
	}
	if !found {
		a.counts.Unknown++
		return
	}
	a.counts.CNPs++
}

// used reports whether a flow of ours has or had a queue pair.
func (a *Agent) used(qp uint32) bool {
	return qp != 0 && (qp+packet.MaxQP-a.cfg.FirstQP)%packet.MaxQP < a.issued
}

func (a *Agent) congested(fl *flow, now units.Time) {
	fl.cnps++
	fl.s.OnEvent(law.CNP, now)
	a.schedule(fl, now)
}
