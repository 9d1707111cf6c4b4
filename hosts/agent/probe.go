package agent

import (
	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// Probes (PrioPlus §4.2.1) are RoCEv2 frames without payload: BTH, with the shim where the
// flow has one, and ICRC, of the data's DSCP and path, so that they queue where data does.
// DestQP is the flow's and PSN the probe's own number, which has nothing to do with data's.
// The answer goes back as an acknowledgement does, at its DSCP, with the probe's DestQP and
// PSN, BECN if the probe was marked, and the shim's echo; it has no AETH. The receiver
// keeps nothing of either. The opcodes are among those that the specification leaves to
// manufacturers (volume 1, §9.2.1, table 38: 0xC0 to 0xFF).
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

// onProbeAnswer takes the answer to a probe of ours.
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

// probeFrame makes the flow's frame a probe.
func (f *flow) probeFrame(number uint64) {
	f.frame.BTH.PSN, f.frame.BTH.Opcode = transport.PSN(number), probeOpcode
	f.frame.Shim, f.frame.Payload = maxqd.Shim{}, nil
}
