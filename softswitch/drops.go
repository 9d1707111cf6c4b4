package softswitch

import (
	"iter"

	"github.com/headgate/headgate/softswitch/engine"
)

// Lost yields the number of frames dropped at the port for each reason, zeros included. Frames
// dropped for "egress", "queue-full", "port-down", "pfc-storm" and "tx-error" were about to leave
// by the port. The others had arrived on it.
func (p *PortStats) Lost() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		storms := uint64(0)
		for _, n := range p.PFC.StormDropped {
			storms += n
		}
		for why := range engine.Drops {
			if !yield(why.String(), p.Drops[why]) {
				return
			}
		}
		for _, l := range []struct {
			why     string
			packets uint64
		}{
			{"rx-overrun", p.Driver.RxOverruns},
			{"rx-truncated", p.Driver.RxTruncated},
			{"queue-full", p.Queues.Dropped().Packets},
			{"port-down", p.TxLost},
			{"pfc-storm", storms},
			{"tx-error", p.Driver.TxErrors},
		} {
			if !yield(l.why, l.packets) {
				return
			}
		}
	}
}

// Lost yields the number of frames dropped for each reason that belongs to no port.
func (s *Stats) Lost() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		_ = yield("no-pipeline", s.NoPipeline) && yield("unknown-port", s.UnknownPort) && yield("recirculation-limit", s.RecirculationsDropped)
	}
}
