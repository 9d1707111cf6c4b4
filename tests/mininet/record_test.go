package mininet

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/emulation"
	emulated "github.com/headgate/headgate/emulation/network"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// recorder keeps the reports that hosts and switches send to the controller.
type recorder struct {
	*player
	began time.Time

	mu       sync.Mutex
	flows    map[pair][]report
	queue    []report // of the recorded queue; only its bytes
	drops    map[port]drops
	queued   map[port]uint64 // at the last poll, in all queues
	departed map[port][]report
	streams  sync.WaitGroup
}

// pair is a flow's ends.
type pair struct{ src, dst string }

// drops is a counter of a switch that may restart.
type drops struct{ last, sum uint64 }

type port struct {
	sw     string
	number uint32
}

// report is the known state of a flow at a time.
type report struct {
	at         time.Time
	bytes      uint64
	weight     float64
	maxQD, rtt time.Duration
}

// record follows the controller's streams until ctx ends.
func record(ctx context.Context, p *player) *recorder {
	n := p.network
	r := &recorder{player: p, flows: map[pair][]report{}, drops: map[port]drops{}, queued: map[port]uint64{}, departed: map[port][]report{}}
	r.streams.Go(func() {
		follow(ctx, func() (grpc.ServerStreamingClient[pb.HostReport], error) {
			return n.reports.WatchFlows(ctx, &pb.WatchFlowsRequest{})
		}, r.takeFlows)
	})
	r.streams.Go(func() {
		follow(ctx, func() (grpc.ServerStreamingClient[pb.TelemetrySample], error) {
			return n.admin.StreamTelemetry(ctx, &pb.StreamTelemetryRequest{})
		}, r.takeSample)
	})
	return r
}

// follow reads a stream, and opens another if the controller ends it, until ctx ends.
func follow[M any](ctx context.Context, open func() (grpc.ServerStreamingClient[M], error), take func(*M)) {
	for ctx.Err() == nil {
		stream, err := open()
		for err == nil {
			var m *M
			if m, err = stream.Recv(); err == nil {
				take(m)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (r *recorder) takeFlows(m *pb.HostReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range m.GetFlows() {
		key := pair{f.GetFlow().GetSrcIpv4(), f.GetFlow().GetDstIpv4()}
		r.flows[key] = append(r.flows[key], report{m.GetTime().AsTime(), f.GetAckedBytes(), f.GetWeight(),
			f.GetMaxQd().AsDuration(), f.GetRtt().AsDuration()})
	}
}

func (r *recorder) takeSample(m *pb.TelemetrySample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, p := r.scenario, port{m.GetSwitch(), m.GetPort()}
	if p == (port{s.Port.Node, s.Port.Port}) && s.Queue < len(m.GetQueueBytes()) {
		r.queue = append(r.queue, report{at: m.GetTime().AsTime(), bytes: uint64(m.GetQueueBytes()[s.Queue])})
	}
	r.departed[p] = append(r.departed[p], report{at: m.GetTime().AsTime(), bytes: m.GetDepartureBytes()})
	r.queued[p] = 0
	for _, bytes := range m.GetQueueBytes() {
		r.queued[p] += uint64(bytes)
	}
	d, seen := r.drops[p]
	switch {
	case !seen:
	case m.GetDrops() >= d.last:
		d.sum += m.GetDrops() - d.last
	default: // the switch was restarted
		d.sum += m.GetDrops()
	}
	d.last = m.GetDrops()
	r.drops[p] = d
}

// at returns the known state at a time. Growing bytes are interpolated between two reports.
func at(list []report, when time.Time, grows bool) (now report) {
	for i, r := range list {
		if r.at.After(when) {
			if grows && i > 0 {
				part := float64(when.Sub(now.at)) / float64(r.at.Sub(now.at))
				now.bytes += uint64(part * float64(r.bytes-now.bytes))
			}
			break
		}
		now = r
	}
	return now
}

// series returns the samples of the play, and the largest value of the recorded queue.
func (r *recorder) series(end units.Time) (out emulation.Series, peak units.Bytes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	scale := units.Time(r.config.Scale)
	for t := units.Time(0); t <= end; t += r.scenario.Sample {
		when := r.began.Add((t * scale).Duration())
		p := emulation.Point{At: t, Queue: units.Bytes(at(r.queue, when, false).bytes)}
		for _, f := range r.scenario.Flows() {
			fp := emulation.FlowPoint{Running: running(r.scenario, f.Name, t)}
			for _, from := range f.From {
				list := r.flows[pair{r.network.hosts[from].IP.String(), r.network.hosts[f.To].IP.String()}]
				now := at(list, when, true)
				if edge, ok := r.alone(f); ok {
					// The bytes that left the port to the receiver are known earlier than those that the sender
					// knows to have arrived: BMv2 paces acknowledgements as if they were full packets.
					first := at(r.departed[edge], r.began, true)
					now.bytes = (at(r.departed[edge], when, true).bytes - first.bytes) * uint64(emulated.MSS) / frame(r.more.version)
				}
				fp.Weight, fp.Delivered = now.weight, fp.Delivered+units.Bytes(now.bytes)
				fp.MaxQD, fp.RTT = units.FromDuration(now.maxQD)/scale, units.FromDuration(now.rtt)/scale
			}
			p.Flows = append(p.Flows, fp)
		}
		out = append(out, p)
	}
	for _, q := range r.queue {
		peak = max(peak, units.Bytes(q.bytes))
	}
	return out, peak
}

// running reports whether a flow was begun and not stopped at a time.
func running(s *emulation.Scenario, flow string, at units.Time) (runs bool) {
	times := s.Times(0)
	for i, p := range s.Phases {
		for _, a := range p.Actions {
			switch {
			case times[i] > at:
			case a.Start != nil && a.Start.Name == flow:
				runs = true
			case a.Stop == flow:
				runs = false
			}
		}
	}
	return runs
}

// frame returns the length of a full RoCEv2 data packet over a version of IP in bytes, without maxQD's shim.
func frame(version int) uint64 {
	length := uint64(packet.DataOverhead-maxqd.Len) + uint64(emulated.MSS)
	if version == 6 {
		length += packet.IPv6Extra
	}
	return length
}

// alone returns the port to a flow's receiver if no other flow uses it.
func (r *recorder) alone(f *emulation.Flow) (port, bool) {
	if len(f.From) > 1 || r.scenario.Law == emulation.Soze {
		return port{}, false
	}
	for _, other := range r.scenario.Flows() {
		if other != f && other.To == f.To {
			return port{}, false
		}
	}
	for _, l := range r.config.Links {
		if l.B.Node == f.To {
			return port{l.A.Node, l.A.Port}, true
		}
	}
	return port{}, false
}

// empty reports whether all queues were empty at the last poll.
func (r *recorder) empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, bytes := range r.queued {
		if bytes > 0 {
			return false
		}
	}
	return true
}

// refused returns the number of packets that admission refused during the recording.
func (r *recorder) refused() (n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.drops {
		n += d.sum
	}
	return n
}
