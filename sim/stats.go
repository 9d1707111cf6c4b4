package sim

import (
	"fmt"
	"reflect"

	"github.com/headgate/headgate/units"
)

// Stats are a run's counters.
type Stats struct {
	Events        uint64
	PacketHops    uint64 // frames that crossed a link and arrived, without PFC frames
	DataSent      uint64 // data packets, retransmissions included
	DataDelivered uint64 // data packets that arrived in order
	Probes        uint64
	Dropped       uint64 // packets that buffers dropped
	Drops         [NumClasses]uint64
	// AnswersDropped is how many of Dropped were ACKs, NAKs, CNPs or answers to probes.
	AnswersDropped uint64
	LostOnLinks    uint64 // packets lost on links that failed
	Marks          uint64 // ECN
	CNPs, Naks     uint64
	PausesSent     uint64 // PFC frames that a buffer asked for, without refreshes
	PortPauses     uint64 // frames of PausesSent that stop all classes of a port (DSH)
	ResumesSent    uint64
	Refreshes      uint64
	FlowsStarted   uint64
	FlowsDone      uint64
}

// Stats returns the counts so far.
func (s *Sim) Stats() Stats {
	sum := s.partitions[0].stats
	for _, p := range s.partitions[1:] {
		sum.add(&p.stats)
	}
	return sum
}

func (s *Stats) add(o *Stats) {
	sum, more := reflect.ValueOf(s).Elem(), reflect.ValueOf(o).Elem()
	for i := range sum.NumField() {
		if f := sum.Field(i); f.CanUint() {
			f.SetUint(f.Uint() + more.Field(i).Uint())
		}
	}
	for c := range s.Drops {
		s.Drops[c] += o.Drops[c]
	}
}

// Results returns the result of each flow, in the order of their starts. Running flows have an FCT of
// 0. The Sim owns the slice.
func (s *Sim) Results() []Result { return s.results }

// StartOf returns when the flow of Results()[i] started.
func (s *Sim) StartOf(i int) units.Time { return s.started[i] }

// Delivered returns the payload that the flows of a group have delivered in order.
func (s *Sim) Delivered(group int) (sum units.Bytes) {
	for _, p := range s.partitions {
		sum += p.groups[group]
	}
	return sum
}

// Flow is a flow that runs.
type Flow struct {
	Result int // index in Results
	Spec   *FlowSpec
	Weight float64 // its present weight
	Acked  units.Bytes
	SRTT   units.Time // smoothed round trip, 0 before the first sample
	// Path and Back are the egress ports of its data and of its acknowledgements; valid until the
	// Sim runs on.
	Path, Back []int32
}

// Flows calls fn for each flow that runs.
func (s *Sim) Flows(fn func(*Flow)) {
	for i := range s.flows {
		if f := &s.flows[i]; f.tx != nil {
			st := f.tx.Stats()
			fn(&Flow{
				Result: i - 1, Spec: f.spec, Weight: f.weight, Acked: st.Acked, SRTT: st.SRTT,
				Path: s.routes[f.route : f.route+f.hops], Back: s.routes[f.back : f.back+f.hops],
			})
		}
	}
}

// PeakPackets returns the peak number of packets in flight, summed over the partitions' own peaks.
func (s *Sim) PeakPackets() (n int) {
	for _, p := range s.partitions {
		n += p.peak
	}
	return n
}

// PortStats are the counters of a port's egress.
type PortStats struct {
	Node, Peer string
	TxBytes    uint64
	Pauses     [NumClasses]uint32     // PAUSE frames that stopped a class
	Frames     uint32                 // PAUSE frames that stopped any class that ran
	PortPauses uint32                 // frames of Frames that stopped all classes
	Paused     [NumClasses]units.Time // time that a class was stopped
	Stopped    units.Time             // time that at least one class was stopped
	Dropped    uint64                 // sent packets that the buffer at the other end of the link dropped
}

// Ports returns the number of ports; those of a node are consecutive.
func (s *Sim) Ports() int { return len(s.ports) }

// PortOf returns the port by which a node sends to a neighbour.
func (s *Sim) PortOf(node, neighbour int) (int, error) {
	for i := s.layout.First[node]; i < s.layout.First[node+1]; i++ {
		if s.layout.Node[s.layout.Peer[i]] == neighbour {
			return i, nil
		}
	}
	return 0, fmt.Errorf("no link joins %s and %s", s.graph.Names[node], s.graph.Names[neighbour])
}

// Port returns the counters of a port.
func (s *Sim) Port(i int) PortStats {
	p := &s.ports[i]
	st := PortStats{
		Node: s.graph.Names[p.node], Peer: s.graph.Names[s.ports[p.peer].node],
		TxBytes: p.txBytes, Pauses: s.pauses[i].count, Frames: s.pauses[i].frames, PortPauses: s.pauses[i].whole, Stopped: s.stoppedFor(int32(i)), Dropped: s.ports[p.peer].dropped,
	}
	for c := range st.Paused {
		st.Paused[c] = s.pausedFor(int32(i), c)
	}
	return st
}

// Far returns the node that a port sends to, and the number of the receiving port there.
func (s *Sim) Far(port int) (node, local int) {
	p := &s.ports[s.ports[port].peer]
	return int(p.node), int(p.local)
}

// PayloadPart returns the fraction of a full data frame that is payload.
func (s *Sim) PayloadPart() float64 { return float64(s.mss) / float64(s.mtu) }

// AckPart returns the bytes of acknowledgements per byte of payload, with full packets.
func (s *Sim) AckPart() float64 { return float64(s.ackSize) / float64(s.mss) }

// PortRate returns the rate of a port's link.
func (s *Sim) PortRate(port int) units.Rate { return s.ports[port].rate }

// Queued returns the bytes queued at a port in one class.
func (s *Sim) Queued(port, class int) units.Bytes { return s.ports[port].queues[class].bytes }

// PauseTime returns the total time for which PFC stopped classes of ports.
func (s *Sim) PauseTime() (t units.Time) {
	for i := range s.ports {
		for c := range NumClasses {
			t += s.pausedFor(int32(i), c)
		}
	}
	return t
}

// Check verifies the simulator's accounts. Every live packet is in a queue, on a link or taking effect
// as PFC, and none is lost or added. The bytes of each queue are the sum of its packets. The accounts
// of every buffer agree. An error is a fault of the simulator.
func (s *Sim) Check() error {
	found, tele := make([]int, len(s.partitions)), make([]int, len(s.partitions))
	see := func(at *partition, e *packet) {
		found[at.number]++
		if e.extra != 0 && at.extras.all[e.extra].tele != 0 {
			tele[at.number]++
		}
	}
	for i := range s.ports {
		p := &s.ports[i]
		at := s.at(int(p.node))
		at.store.each(p.wire, func(e *packet) bool { see(at, e); return true })
		if p.ctrl {
			found[at.number]++
		}
		for c := range p.queues {
			var got units.Bytes
			for precedence := range p.precedences() {
				at.store.each(*p.rank(uint8(c), precedence), func(e *packet) bool {
					see(at, e)
					got += units.Bytes(e.size())
					return true
				})
			}
			if got != p.queues[c].bytes {
				return fmt.Errorf("port %d class %d holds packets of %d B but counts %d B", i, c, int64(got), int64(p.queues[c].bytes))
			}
			if has := got != 0; has != (p.active>>c&1 == 1) {
				return fmt.Errorf("port %d class %d: active is %v, packets are queued: %v", i, c, !has, has)
			}
		}
	}
	for i, p := range s.partitions {
		p.events.fifos.each(func(e *packet) { see(p, e) })
		if found[i]+p.pendingPFC != p.live {
			return fmt.Errorf("partition %d: %d packets are in the fabric and %d PFC frames take effect, but %d are alive", i, found[i], p.pendingPFC, p.live)
		}
		if tele[i] != p.tele.live() {
			return fmt.Errorf("partition %d: %d packets carry telemetry, but %d records are alive", i, tele[i], p.tele.live())
		}
	}
	for i := range s.nodes {
		if m, err := s.MMU(i); err == nil {
			if err := m.Audit(); err != nil {
				return fmt.Errorf("buffer of %s: %w", s.graph.Names[i], err)
			}
		}
	}
	return nil
}
