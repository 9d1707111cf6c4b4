package softswitch

import (
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
