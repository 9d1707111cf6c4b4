package northbound

import (
	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/feature"
)

func sampleToProto(s feature.Sample) *pb.TelemetrySample {
	return &pb.TelemetrySample{
		Time: pb.Stamp(s.Time), Switch: clean(s.Switch), Port: s.Port, Peer: clean(s.Peer), QueueBytes: s.QueueBytes[:],
		QueueingDelay: pb.Duration(s.QueueingDelay), DepartureBytes: s.DepartureBytes, DeparturePackets: s.DeparturePackets, Drops: s.Drops,
	}
}

func keyFromProto(k *pb.FlowKey) (weights.Key, error) {
	return weights.NewKey(k.GetSrcIpv4(), k.GetDstIpv4(), k.GetSrcPort(), k.GetDstPort())
}

func keyToProto(k weights.Key) *pb.FlowKey {
	if k == (weights.Key{}) {
		return nil
	}
	return &pb.FlowKey{
		SrcIpv4: k.Src().Addr().String(), DstIpv4: k.Dst().Addr().String(), SrcPort: uint32(k.Src().Port()), DstPort: uint32(k.Dst().Port()),
	}
}

func flowToProto(f weights.Flow) *pb.FlowWeight {
	return &pb.FlowWeight{Flow: keyToProto(f.Key), Weight: f.Weight.Float(), Application: f.Application, Host: f.Host}
}

func budgetToProto(b weights.Budget) *pb.Budget {
	return &pb.Budget{Application: b.Application, Limit: b.Limit.Float(), Used: b.Used.Float()}
}

func entryToProto(e audit.Entry) *pb.AuditEntry {
	flow, _ := weights.ParseKey(e.Flow) // an entry about no flow has none
	return &pb.AuditEntry{
		Time: pb.Stamp(e.Time), Peer: clean(e.Peer), Application: clean(e.Application), Flow: keyToProto(flow),
		Previous: e.Previous, Value: e.Value, What: e.What, Refused: clean(e.Refused), Subject: clean(e.Subject),
		Identity: clean(e.Identity), Before: clean(e.Before), After: clean(e.After), Count: uint32(max(e.Count, 0)),
	}
}
