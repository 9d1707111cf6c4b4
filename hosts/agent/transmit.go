package agent

import (
	"net/netip"

	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// transmit hands out frames while the link is free at now.
func (a *Agent) transmit(now units.Time) {
	for a.nicFree <= now {
		switch {
		case a.answers.Len() > 0 && a.answersFrom() <= now:
			a.sendAnswer()
		case a.ready.Len() > 0:
			if !a.sendData(now) {
				continue
			}
		default:
			return
		}
		// An idle link starts now. A link that a late call kept waiting catches up.
		a.nicFree = max(a.nicFree, now-a.cfg.MaxLate) + a.cfg.Rate.TxTime(units.Bytes(len(a.buf)))
	}
}

// sendData sends one packet of the ready flow whose turn it is. It returns false if that flow has to
// wait after all.
func (a *Agent) sendData(now units.Time) bool {
	f := a.ready.First()
	if f.s.Ready(now) > now {
		a.schedule(f, now)
		return false
	}
	seg := f.s.Send(now)
	if seg.Probe {
		f.probeFrame(seg.Index)
		a.counts.ProbesSent++
	} else {
		a.dataFrame(f, &seg)
		a.counts.DataSent++
	}
	a.buf = f.frame.Append(a.buf[:0])
	a.counts.BytesSent += units.Bytes(len(a.buf))
	a.virtual = f.tag
	f.tag += float64(len(a.buf)) / f.weight
	a.ready.Fix(f.readyAt)
	a.schedule(f, now)
	a.send(a.buf)
	return true
}

func (a *Agent) dataFrame(f *flow, seg *transport.Segment) {
	f.frame.BTH.PSN = transport.PSN(seg.Index)
	f.frame.BTH.Opcode = packet.SendMiddle
	if seg.Last {
		f.frame.BTH.Opcode = packet.SendLast
		if seg.Index == 0 {
			f.frame.BTH.Opcode = packet.SendOnly
		}
	}
	f.frame.Shim = maxqd.Shim{}
	f.frame.Payload = a.payload[:seg.Len]
	if a.cfg.Fill != nil {
		a.cfg.Fill(f.key, uint64(f.base.Acked)+seg.Offset, f.frame.Payload)
	}
}

// answer is an acknowledgement that waits for the link.
type answer struct {
	dst              netip.Addr
	srcPort, dstPort uint16
	qp, psn, msn     uint32
	qd               uint16
	nak, ce          bool
	probe            bool // answers a probe
	cnp              bool // a congestion notification instead of an acknowledgement
}

// answer queues an answer. It returns false if too many wait.
func (a *Agent) answer(w answer) bool {
	if a.answers.Len() >= maxAnswers {
		a.counts.Refused++
		return false
	}
	*a.answers.Push() = w
	return true
}

// flowLabel returns the IPv6 flow label, 0 over IPv4. A switch may choose the path by the flow label instead of the
// source port (RFC 6437).
func (a *Agent) flowLabel(srcPort uint16) uint32 {
	if a.cfg.IP.Is4() {
		return 0
	}
	return uint32(srcPort)
}

func (a *Agent) sendAnswer() {
	w := a.answers.Pop()
	f := &a.in // not in use while sending
	*f = packet.Frame{
		DstMAC: a.cfg.Gateway, SrcMAC: a.cfg.MAC, Src: a.cfg.IP, Dst: w.dst,
		DSCP: a.cfg.AckDSCP, ECN: packet.NotECT, TTL: ttl, FlowLabel: a.flowLabel(w.srcPort), SrcPort: w.srcPort, DstPort: w.dstPort, ShimPort: a.cfg.ShimPort,
		Shim: maxqd.Shim{Echo: true, MaxQD: w.qd},
		BTH:  packet.BTH{Opcode: packet.Acknowledge, PKey: packet.DefaultPKey, DestQP: w.qp, PSN: w.psn, BECN: w.ce},
		AETH: packet.AETH{Syndrome: packet.ACK, MSN: w.msn},
	}
	if w.probe {
		f.BTH.Opcode = probeAnswerOpcode
	}
	if w.cnp {
		notification(f)
	}
	if w.nak {
		f.AETH.Syndrome = packet.NAKSequence
	}
	a.buf = f.Append(a.buf[:0])
	a.counts.AcksSent++
	a.counts.BytesSent += units.Bytes(len(a.buf))
	a.send(a.buf)
}
