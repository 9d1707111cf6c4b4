package agent

import (
	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

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
	at := a.peers.heard(now, f.Src, f.SrcPort, f.BTH.DestQP)
	if at < 0 {
		a.counts.Refused++
		return
	}
	p := &a.peers.list[at]
	deliver, reply, psn := p.r.OnData(f.BTH.PSN, f.BTH.Opcode.EndsMessage())
	a.counts.DataReceived++
	if f.ECN == packet.CE {
		a.marked(now, at)
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
