package pacc

import (
	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/view"
)

// state is how the loop of a switch stands.
type state struct {
	cnpgen.LoopStats
	ports []cnpgen.PortStats
}

// Status implements feature.Monitor; there is nothing where the loop is the switch's own.
func (f *feat) Status(sw string, out *pb.FeatureStatus) {
	s, ok := f.latest.Get(sw)
	if !ok {
		return
	}
	out.Pacc = &pb.PACCStatus{Loop: &pb.PACCLoop{
		Ticks: s.Ticks, Late: s.Late, Missed: s.Missed, LatenessNs: view.Nanoseconds(s.Lateness.Duration()),
		MostLateNs: view.Nanoseconds(s.WorstLateness.Duration()), Unanswered: s.Unanswered, ReadErrors: s.ReadErrors,
		Cnps: s.CNPs, CnpErrors: s.CNPErrors, Flows: uint64(s.Flows), Learned: s.Learned, Aged: s.Aged, Evicted: s.Evicted,
		Refused: s.Refused, QueuePairs: uint64(s.QueuePairs),
	}}
	for _, p := range s.ports {
		out.Pacc.Ports = append(out.Pacc.Ports, &pb.PACCPort{
			Port: p.Port, QueueBytes: uint64(p.Queue), AverageBytes: uint64(p.QueueAvg), All: p.All, Granted: p.Stats.CNPs, Filtered: p.Filtered,
		})
	}
}

var _ feature.Monitor = (*feat)(nil)
