package agent

import (
	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// Receive takes a frame from the link and keeps no reference to it. Frames that are
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
	// A receiver that asks for bytes that it acknowledged long ago has forgotten the flow, unless this is a late NAK.
	// The next timeout decides.
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

// Probes (PrioPlus §4.2.1) are RoCEv2 frames without payload: BTH, the shim if the flow's data have one, and ICRC. They
// have the DSCP and the path of the data, so they wait in the same queues. DestQP is the flow's. PSN is the probe's
// number, which is independent of the data's PSNs. The answer has the DSCP of an acknowledgement, but no AETH. It has
// the probe's DestQP and PSN, BECN if the probe was marked, and the echo of the shim. The receiver keeps no state of
// probes. The opcodes are in the range for manufacturers (volume 1, §9.2.1, table 38: 0xC0 to 0xFF).
const (
	probeOpcode       packet.Opcode = 0xC0
	probeAnswerOpcode packet.Opcode = 0xC1
)

// onProbe queues the answer to a probe, in front of data as acknowledgements are.
func (a *Agent) onProbe(f *packet.Frame) {
	a.counts.ProbesReceived++
	a.answer(answer{
		dst: f.Src, srcPort: f.SrcPort, dstPort: f.DstPort, qp: f.BTH.DestQP, psn: f.BTH.PSN,
		qd: f.Shim.MaxQD, ce: f.ECN == packet.CE, probe: true,
	})
}

func (a *Agent) onProbeAnswer(now units.Time, f *packet.Frame) {
	fl := a.flowOf(f)
	if fl == nil || f.SrcPort != fl.key.SrcPort {
		a.counts.Unknown++
		return
	}
	a.feedback = transport.Feedback{PSN: f.BTH.PSN, Probe: true, CE: f.BTH.BECN, MaxQD: a.cfg.Unit.Decode(f.Shim.MaxQD)}
	fl.s.OnFeedback(&a.feedback, now)
	a.schedule(fl, now)
}

func (f *flow) probeFrame(number uint64) {
	f.frame.BTH.PSN, f.frame.BTH.Opcode = transport.PSN(number), probeOpcode
	f.frame.Shim, f.frame.Payload = maxqd.Shim{}, nil
}

// PFCStats count what priority-based flow control did to a host.
type PFCStats struct {
	Frames  uint64                           // PFC frames obeyed
	Ignored uint64                           // MAC control frames that were malformed, no PFC, or of lossy classes alone
	Classes [packet.PFCClasses]packet.Pauses // pauses of each class
}

// classes returns the class of every DSCP. A DSCP that the configuration does not name has the class of its class
// selector (RFC 2474 §4.2.2.1): AF3x and CS3 are class 3, and CS6 is class 6.
func (c *Config) classes() (all [64]uint8) {
	for dscp := range all {
		class, ok := c.Classes[uint8(dscp)]
		if !ok {
			class = uint8(dscp >> 3)
		}
		all[dscp] = class
	}
	return all
}

// onMACControl obeys a PFC frame (IEEE Std 802.1Qbb): a lossless class that the frame
// enables sends nothing for its quanta of 512 bit times at the link's rate, or resumes if they are 0. A frame that is
// being sent is not interrupted.
func (a *Agent) onMACControl(now units.Time, frame []byte) {
	st := &a.counts.PFC
	var p packet.PFC
	if p.Decode(frame) != nil || p.Enabled != 0 && p.Enabled&^uint8(a.cfg.Lossy) == 0 {
		st.Ignored++
		return
	}
	st.Frames++
	a.pause(now, p.Enabled&^uint8(a.cfg.Lossy), p.Quanta)
}

// pause stops classes for their quanta; with 0 they go on.
func (a *Agent) pause(now units.Time, classes uint8, quanta [packet.PFCClasses]uint16) {
	st := &a.counts.PFC.Classes
	for class, q := range quanta {
		if classes>>class&1 != 0 {
			st[class].Set(now, now+a.cfg.Rate.PauseTime(q))
		}
	}
	for _, f := range a.byQP {
		if classes>>f.class&1 != 0 {
			f.s.Pause(now, st[f.class].Until)
			a.schedule(f, now)
		}
	}
}

// Ignore sets the classes whose PAUSE has no effect (Config.Lossy), and ends their pauses.
func (a *Agent) Ignore(now units.Time, classes units.Classes) {
	a.cfg.Lossy = classes
	var over uint8
	for class, p := range a.counts.PFC.Classes {
		if classes>>class&1 != 0 && p.Until > now {
			over |= 1 << class
		}
	}
	if over != 0 {
		a.pause(now, over, [packet.PFCClasses]uint16{})
	}
}

// answersFrom returns when answers may go out, as far as PFC is concerned.
func (a *Agent) answersFrom() units.Time { return a.counts.PFC.Classes[a.ackClass].Until }
