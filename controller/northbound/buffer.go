package northbound

import (
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/view"
)

func bufferToProto(b *view.Buffer) *pb.BufferStatus {
	if b == nil {
		return nil
	}
	out := &pb.BufferStatus{
		Policy: clean(b.Policy), Time: stamp(b.Time), Size: poolsToProto(b.Size), Used: poolsToProto(b.Used), Peak: poolsToProto(b.Peak),
		ThresholdBytes: b.Threshold,
	}
	for _, p := range b.Ports {
		out.Ports = append(out.Ports, portBufferToProto(p))
	}
	for _, a := range b.Alarms {
		alarm := &pb.Alarm{Kind: clean(a.Kind), Port: a.Port, Since: stamp(a.Since), Text: clean(a.Text)}
		if a.Class >= 0 {
			class := uint32(a.Class)
			alarm.Class = &class
		}
		out.Alarms = append(out.Alarms, alarm)
	}
	return out
}

func poolsToProto(p view.Pools) *pb.BufferPools {
	return &pb.BufferPools{PrivateBytes: p.Private, SharedBytes: p.Shared, HeadroomBytes: p.Headroom, InsuranceBytes: p.Insurance}
}

func portBufferToProto(p view.PortBuffer) *pb.PortBufferStatus {
	return &pb.PortBufferStatus{
		Port: p.Number, Peer: clean(p.Peer), Victim: p.Victim, VictimTurns: p.Turns,
		PausedClasses: uint32(p.Paused), PortPaused: p.PortPaused, PausedNs: durations(p.PausedTime),
		PauseFrames: p.Pauses, ResumeFrames: p.Resumes, RefreshFrames: p.Refreshes,
		RefreshLateNs: nanoseconds(p.Late), RefreshMostLateNs: nanoseconds(p.MostLate),
		PrivateBytes: p.Private[:], SharedBytes: p.Shared[:], HeadroomBytes: p.Headroom[:], InsuredBytes: p.Insured,
		DepartedBytes: p.Departed, LosslessDrops: p.LosslessDrops[:],
	}
}

func durations(list [8]time.Duration) []uint64 {
	out := make([]uint64, len(list))
	for i, d := range list {
		out[i] = nanoseconds(d)
	}
	return out
}
