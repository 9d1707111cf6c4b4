package compare

import (
	"sync"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/scenario/inproc"
	"github.com/headgate/headgate/units"
)

// Point is one sample of a variant. Time is at line rate, since the fabric was ready.
type Point struct {
	At        units.Time
	Delivered []units.Bytes // payload of each flow of the scenario, then of each burst, in order
	Queue     units.Bytes   // in the recorded queue
	Pauses    uint64        // PAUSE frames so far
}

// recorder takes down what happens to one variant's fabric. The loop's goroutine owns all
// but what is under mu.
type recorder struct {
	scenario *Scenario
	cfg      *config.Config
	fabric   *inproc.Fabric
	meters   meters
	pfc      packet.PFC
	frame    packet.Frame

	flows     map[agent.FlowKey]int // index into delivered
	pairs     map[[2][4]byte]*tally // by source and destination
	tallies   []*tally              // the same in the order of their first flows
	delivered []units.Bytes
	strays    uint64 // notifications of no flow of the scenario

	began units.Time // on the fabric's clock
	lag   units.Time // the most that a sample was late
	timer *clock.Timer

	mu     sync.Mutex
	points []Point
}

// tally is all flows from one host to another.
type tally struct {
	index int // as in Point.Delivered
	from  string
	cnps  uint64
}

func newRecorder(s *Scenario, cfg *config.Config) *recorder {
	n := len(s.Flows) + len(s.Bursts)
	return &recorder{
		scenario: s, cfg: cfg, flows: map[agent.FlowKey]int{}, pairs: map[[2][4]byte]*tally{},
		delivered: make([]units.Bytes, n),
	}
}

// attach makes r the recorder of a fabric that was built with its tap.
func (r *recorder) attach(f *inproc.Fabric) {
	r.fabric, r.meters = f, newMeters(f.Wires)
}

// tap sees every frame at the end of every wire.
func (r *recorder) tap(wire int, frame []byte, now units.Time) {
	if packet.IsMACControl(frame) {
		if r.pfc.Decode(frame) == nil {
			r.meters[wire].saw(&r.pfc, now)
		}
		return
	}
	if r.fabric.Wires[wire].To.Port != 0 || !isCNP(frame) {
		return // no host is there
	}
	if r.frame.Decode(frame) != nil {
		return
	}
	// A notification goes from the receiver, or from a switch in its name, to the sender.
	to, ok := r.pairs[[2][4]byte{r.frame.Dst.As4(), r.frame.Src.As4()}]
	if !ok {
		r.strays++
		return
	}
	to.cnps++
}

// isCNP reports whether an untagged IPv4 frame without options has a CNP's opcode.
func isCNP(frame []byte) bool {
	const opcode = 14 + 20 + 8
	return len(frame) > opcode && packet.Opcode(frame[opcode]) == packet.CNP
}

// deliver takes payload that a host received in order.
func (r *recorder) deliver(from agent.FlowKey, payload []byte) {
	if i, ok := r.flows[from]; ok {
		r.delivered[i] += units.Bytes(len(payload))
	}
}

// follow observes a flow of a host; index counts as in Point.Delivered.
func (r *recorder) follow(key agent.FlowKey, index int, from string) {
	r.flows[key] = index
	pair := [2][4]byte{key.Src.As4(), key.Dst.As4()}
	if r.pairs[pair] == nil {
		r.pairs[pair] = &tally{index: index, from: from}
		r.tallies = append(r.tallies, r.pairs[pair])
	}
}

// begin starts the samples: the first now, the others at whole intervals after it until the
// scenario ends.
func (r *recorder) begin() {
	r.began = r.fabric.Loop.Now()
	r.timer = r.fabric.Loop.NewTimer(r.sample)
	r.sample()
}

func (r *recorder) sample() {
	now := r.fabric.Loop.Now()
	p := Point{
		At: (now - r.began) / units.Time(r.cfg.Scale), Queue: r.queued(), Pauses: r.meters.frames(),
		Delivered: append([]units.Bytes(nil), r.delivered...),
	}
	late, _ := r.fabric.Loop.Lag()
	r.lag = max(r.lag, late)
	r.mu.Lock()
	r.points = append(r.points, p)
	r.mu.Unlock()
	if next := now + r.cfg.Scaled(r.scenario.Sample); next <= r.began+r.cfg.Scaled(r.scenario.End) {
		r.timer.Reset(next)
	}
}

// queued returns what is in the recorded queue.
func (r *recorder) queued() units.Bytes {
	b, _ := r.queue()
	return b
}

// queue returns what is in the recorded queue and the most that ever was.
func (r *recorder) queue() (now, peak units.Bytes) {
	for _, p := range r.fabric.Switch(r.scenario.Port.Node).PortStats() {
		if p.Port == r.scenario.Port.Port && r.scenario.Queue < len(p.Queues.Queues) {
			q := p.Queues.Queues[r.scenario.Queue]
			return q.Bytes, q.MaxBytes
		}
	}
	return 0, 0
}

// series returns a copy of the samples so far; from any goroutine.
func (r *recorder) series() []Point {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Point(nil), r.points...)
}
