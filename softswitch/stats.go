package softswitch

import (
	"iter"

	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/port"
	"github.com/headgate/headgate/softswitch/tm"
)

// Stats holds the counters of a switch that belong to no port.
type Stats struct {
	Pipelines             uint64 // how many pipelines have been committed
	NoPipeline            uint64 // frames dropped because no pipeline was committed yet
	UnknownPort           uint64 // frames to or from ports that do not exist, dropped
	Recirculated          uint64 // passes back to ingress, by resubmission or recirculation
	RecirculationsDropped uint64 // resubmitted or recirculated packets dropped at recirculationLimit
	Unfinished            uint64 // rounds that ended before all due events were processed, see roundPackets
}

// PortStats holds the counters of a port.
type PortStats struct {
	Port              uint32
	Name              string // interface name; empty for in-process ports
	Up                bool
	RxFrames, RxBytes uint64
	TxFrames, TxBytes uint64
	Drops             [engine.Drops]uint64 // dropped by the program, by reason; egress counts at the port that the packet was about to leave by
	TxLost            uint64               // dropped because the port was down or had no cable
	Driver            port.Counters        // losses in the driver of a real port
	PFC               PFCStats             // received MAC control frames, if the switch obeys PFC
	Queues            tm.PortStats         // rate, depth, limits, tail drops and pauses
}

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
		_ = yield("rx-overrun", p.Driver.RxOverruns) && yield("rx-truncated", p.Driver.RxTruncated) &&
			yield("queue-full", p.Queues.Dropped().Packets) && yield("port-down", p.TxLost) &&
			yield("pfc-storm", storms) && yield("tx-error", p.Driver.TxErrors)
	}
}

// Lost yields the number of frames dropped for each reason that belongs to no port.
func (s *Stats) Lost() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		_ = yield("no-pipeline", s.NoPipeline) && yield("unknown-port", s.UnknownPort) && yield("recirculation-limit", s.RecirculationsDropped)
	}
}
