package agent

import (
	"net/netip"

	"github.com/headgate/headgate/hosts/law/dcqcn"
	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// Bounds of what senders can make this host remember.
const (
	maxPeers   = 1 << 16
	maxAnswers = 1 << 16
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
}

// Receive takes a frame from the link; the agent keeps nothing of it. Frames that are
// malformed, for another host or of no flow are counted and dropped.
func (a *Agent) Receive(now units.Time, frame []byte) {
	if packet.IsMACControl(frame) {
		a.onMACControl(now, frame)
		return
	}
	f := &a.in
	f.ShimPort = a.cfg.ShimPort
	if err := f.Decode(frame); err != nil {
		a.counts.Malformed++
		return
	}
	if f.Dst != a.cfg.IP {
		a.counts.NotOurs++
		return
	}
	shim := f.HasShim()
	switch {
	case f.BTH.Opcode.IsSend() && !f.Shim.Echo:
		a.onData(now, f)
	case f.BTH.Opcode == packet.Acknowledge && f.Shim.Echo == shim:
		a.onAck(now, f)
	case f.BTH.Opcode == packet.CNP && !f.Shim.Echo:
		a.onCNP(now, f)
	case f.BTH.Opcode == probeOpcode && !f.Shim.Echo:
		a.onProbe(f)
	case f.BTH.Opcode == probeAnswerOpcode && f.Shim.Echo == shim:
		a.onProbeAnswer(now, f)
	default:
		a.counts.Malformed++
	}
}

func (a *Agent) onData(now units.Time, f *packet.Frame) {
	key := peerKey{f.Src, f.SrcPort, f.BTH.DestQP}
	p := a.peers[key]
	if p == nil {
		if len(a.peers) >= maxPeers && !a.forgetIdle(now) {
			a.counts.Refused++
			return
		}
		p = &peer{key: key}
		a.peers[key] = p
	}
	p.seen = now
	deliver, reply, psn := p.r.OnData(f.BTH.PSN, f.BTH.Opcode.EndsMessage())
	a.counts.DataReceived++
	if f.ECN == packet.CE {
		a.marked(now, p)
	}
	if deliver {
		a.counts.BytesDelivered += units.Bytes(len(f.Payload))
		if a.cfg.Deliver != nil {
			a.cfg.Deliver(FlowKey{Src: f.Src, Dst: f.Dst, SrcPort: f.SrcPort, DstPort: f.DstPort}, f.Payload)
		}
	}
	if reply == transport.Silent {
		return
	}
	a.answer(answer{
		dst: f.Src, srcPort: f.SrcPort, dstPort: f.DstPort, qp: f.BTH.DestQP, psn: psn, msn: p.r.MSN(),
		qd: f.Shim.MaxQD, nak: reply == transport.Nak, ce: f.ECN == packet.CE,
	})
}

func (a *Agent) onAck(now units.Time, f *packet.Frame) {
	fl := a.flowOf(f)
	if fl == nil || f.SrcPort != fl.key.SrcPort {
		a.counts.Unknown++
		return
	}
	nak := f.AETH.Syndrome == packet.NAKSequence
	if !nak && !f.AETH.Syndrome.IsACK() {
		a.counts.Malformed++
		return
	}
	a.counts.AcksReceived++
	a.feedback = transport.Feedback{PSN: f.BTH.PSN, Nak: nak, CE: f.BTH.BECN, MaxQD: a.cfg.Unit.Decode(f.Shim.MaxQD)}
	// A receiver that asks for what it acknowledged long ago has forgotten the flow, unless
	// this is a late NAK: a timeout decides.
	sensible := fl.s.OnFeedback(&a.feedback, now)
	fl.forgotten = !sensible && (nak || fl.forgotten)
	if fl.s.Done() {
		a.finish(fl, now)
		a.complete(fl)
		return
	}
	a.schedule(fl, now)
}

// flowOf returns the flow of ours that a frame from its receiver is about.
func (a *Agent) flowOf(f *packet.Frame) *flow {
	fl := a.byQP[f.BTH.DestQP]
	if fl == nil || fl.key.Dst != f.Src {
		return nil
	}
	return fl
}

// forgetIdle makes room among the flows received; false when all are in use.
func (a *Agent) forgetIdle(now units.Time) bool {
	for k, p := range a.peers {
		if now-p.seen > peerIdle {
			delete(a.peers, k)
		}
	}
	return len(a.peers) < maxPeers
}
