package agent

import (
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// cnpReserved is the zero payload of a congestion notification.
var cnpReserved [packet.CNPReserved]byte

// notify is DCQCN's notification point (SIGCOMM 2015, §3.1): it answers a marked packet
// with a congestion notification unless the flow had one within CNPGap.
func (a *Agent) notify(now units.Time, p *peer, f *packet.Frame) {
	if a.cfg.CNPGap == 0 || now < p.cnpAt {
		return
	}
	if a.answers.len() >= maxAnswers {
		a.counts.Refused++
		return
	}
	p.cnpAt = now + a.cfg.CNPGap
	a.counts.CNPsSent++
	a.answers.push(answer{dst: f.Src, srcPort: f.SrcPort, dstPort: packet.RoCEv2Port, qp: f.BTH.DestQP, cnp: true})
}

// notification makes an answer a congestion notification, which has no shim.
func notification(f *packet.Frame) {
	f.BTH.Opcode, f.BTH.BECN, f.Payload = packet.CNP, true, cnpReserved[:]
}

// onCNP takes a congestion notification. A receiver names the flow by its queue pair. A
// switch that knows flows by their addresses alone sets none, or one that no flow of ours
// ever had: the notification is then for every flow of ours to its source. One for a flow
// that is over is late, and for nobody.
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
		for _, fl := range a.byQP {
			if fl.key.Dst == f.Src {
				found = true
				a.congested(fl, now)
			}
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
