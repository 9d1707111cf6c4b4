package transport

import (
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/units"
)

// prober is what a sender knows of its probes: packets without payload that a law asks for
// to learn the path's delay while it sends no data (PrioPlus §4.2.1). They have numbers of
// their own and change nothing in the order of data. Only the answer to the latest counts.
type prober struct {
	number uint32 // of the latest probe, 24 bits
	out    bool   // it is waited for
	sent   units.Time
}

func (s *Sender) sendProbe(now units.Time) Segment {
	s.probe = prober{number: (s.probe.number + 1) & psnMask, out: true, sent: now}
	s.counts.Probes++
	if s.deadline == units.MaxTime {
		s.startTimeout(now)
	}
	s.cfg.Law.OnEvent(law.ProbeSent, now)
	return Segment{Index: uint64(s.probe.number), Probe: true}
}

// onProbeAnswer takes the answer to a probe; false when it is not the one waited for.
func (s *Sender) onProbeAnswer(fb *Feedback, now units.Time) bool {
	if !s.probe.out || fb.PSN != s.probe.number || now <= s.probe.sent {
		s.counts.Stale++
		return false
	}
	s.probe.out = false
	rtt := now - s.probe.sent + fb.Noise
	s.sample(rtt)
	s.stalled = false
	s.restartTimeout(now)
	s.counts.MaxQD = fb.MaxQD
	s.acknowledge(fb, now, rtt, 0)
	return true
}
