package softswitch

import (
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/port"
	"github.com/headgate/headgate/softswitch/tm"
)

// Stats are a switch's counters that belong to no port.
type Stats struct {
	Pipelines             uint64 // how many pipelines have been committed
	NoPipeline            uint64 // frames that came before the first pipeline, dropped
	UnknownPort           uint64 // frames to or from ports that do not exist, dropped
	Recirculated          uint64 // passes back to ingress, by resubmission or recirculation
	RecirculationsDropped uint64 // those dropped because too many were under way
	Unfinished            uint64 // rounds that ended before everything due was processed, see roundPackets
}

// PortStats are a port's counters.
type PortStats struct {
	Port              uint32
	Name              string // of the interface; empty for in-process ports
	Up                bool
	RxFrames, RxBytes uint64
	TxFrames, TxBytes uint64
	Drops             [engine.Drops]uint64 // packets of the port that the program dropped, by reason; those of egress at the port they were about to leave by
	TxLost            uint64               // frames that left while the port was down or had no cable
	Driver            port.Counters        // what a real port's driver lost
	PFC               PFCStats             // MAC control frames, when the switch obeys PFC
	Queues            tm.PortStats         // rate, depth, limits, tail drops and pauses
}
