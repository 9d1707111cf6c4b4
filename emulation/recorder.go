package emulation

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/emulation/network"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// Point is one sample of a play. All times and rates are the scenario's own.
type Point struct {
	At     units.Time
	Flows  []FlowPoint // one for each flow and burst, in the order in which the scenario names them
	Queue  units.Bytes // bytes in the recorded queue
	Pauses uint64      // PAUSE frames so far
}

// FlowPoint is one sample of a flow, or of all flows of a burst together. Delays are the latest that the sender of
// a single flow measured.
type FlowPoint struct {
	Running    bool
	Weight     float64     // the weight in force, set by scenario or operator
	Delivered  units.Bytes // payload that was received in order
	MaxQD, RTT units.Time
}

// track is a flow of the scenario, or a burst. The loop's goroutine owns it.
type track struct {
	*Flow
	sent      []sent // flows that hosts have started
	begun     units.Time
	running   bool
	delivered units.Bytes
	stopped   []agent.FlowReport // last reports of flows that their hosts no longer report
}

// sent is a flow that a host has started.
type sent struct {
	host *agent.Host
	key  agent.FlowKey
}

// reports returns the hosts' reports of a track's flows.
func (t *track) reports() []agent.FlowReport {
	out := slices.Clone(t.stopped)
	asked := map[*agent.Host]bool{}
	for _, s := range t.sent {
		if asked[s.host] {
			continue
		}
		asked[s.host] = true
		for _, r := range s.host.Report() {
			if slices.Contains(t.sent, sent{s.host, r.Key}) {
				out = append(out, r)
			}
		}
	}
	return out
}

// recorder records one play on a fabric. The loop's goroutine owns all fields but those under mu.
type recorder struct {
	scenario *Scenario
	fabric   *network.Fabric
	scale    units.Time // factor by which the fabric's times exceed the scenario's
	every    units.Time // between samples
	end      units.Time

	tracks []*track
	flows  map[agent.FlowKey]*track
	paths  [][][]int // by phase and track: the wires on which packets were seen in the second half
	meters Meters
	trace  tracer
	pfc    packet.PFC // scratch

	began units.Time // begin of the play on the fabric's clock
	lag   units.Time // the largest lateness of a sample
	timer *clock.Timer

	mu     sync.Mutex
	points []Point
}

func newRecorder(s *Scenario, scale int64, total units.Time) *recorder {
	r := &recorder{scenario: s, scale: units.Time(scale), every: s.Sample, end: total, flows: map[agent.FlowKey]*track{}, trace: tracer{}}
	if r.every == 0 { // short enough to resolve a phase
		r.every = min(max(total/400, 10*units.Millisecond), 100*units.Millisecond)
	}
	for _, f := range s.Flows() {
		r.tracks = append(r.tracks, &track{Flow: f})
	}
	return r
}

// attach makes r the recorder of a fabric that was built with its tap.
func (r *recorder) attach(f *network.Fabric) { r.fabric, r.meters = f, NewMeters(f.Wires) }

// tap gets every frame that reaches the end of a wire.
func (r *recorder) tap(wire int, frame []byte, now units.Time) {
	if !packet.IsMACControl(frame) {
		r.trace.saw(wire, frame)
	} else if r.pfc.Decode(frame) == nil {
		r.meters[wire].Saw(&r.pfc, now)
	}
}

// deliver takes payload that a host received in order.
func (r *recorder) deliver(from agent.FlowKey, payload []byte) {
	if t := r.flows[from]; t != nil {
		t.delivered += units.Bytes(len(payload))
	}
}

// track returns the track with a name.
func (r *recorder) track(name string) *track {
	return r.tracks[slices.IndexFunc(r.tracks, func(t *track) bool { return t.Name == name })]
}

// follow observes a flow that a host has begun.
func (r *recorder) follow(t *track, h *agent.Host, key agent.FlowKey) {
	r.flows[key] = t
	if len(t.sent) == 0 {
		t.begun, t.running = r.now(), true
	}
	t.sent = append(t.sent, sent{h, key})
}

// at converts a time of the scenario to the fabric's clock. now converts the fabric's present time back.
func (r *recorder) at(t units.Time) units.Time { return r.began + t*r.scale }
func (r *recorder) now() units.Time            { return (r.fabric.Loop.Now() - r.began) / r.scale }

// begin starts the samples: the first now, the others at whole intervals after it until the
// scenario ends.
func (r *recorder) begin() {
	r.began = r.fabric.Loop.Now()
	r.timer = r.fabric.Loop.NewTimer(r.sample)
	r.sample()
}

func (r *recorder) sample() {
	queued, _ := r.queue()
	p := Point{At: r.now(), Queue: queued, Pauses: r.meters.frames(), Flows: make([]FlowPoint, len(r.tracks))}
	for i, t := range r.tracks {
		p.Flows[i] = FlowPoint{Running: t.running, Weight: t.Weight, Delivered: t.delivered}
		if t.Size > 0 || !t.running {
			continue
		}
		for _, rep := range t.reports() {
			p.Flows[i].MaxQD, p.Flows[i].RTT = rep.MaxQD/r.scale, rep.SRTT/r.scale
			if r.scenario.Law == Soze {
				p.Flows[i].Weight = rep.Weight
			}
		}
	}
	late, _ := r.fabric.Loop.Lag()
	r.lag = max(r.lag, late)
	r.mu.Lock()
	r.points = append(r.points, p)
	r.mu.Unlock()
	if next := p.At + r.every; next <= r.end {
		r.timer.Reset(r.at(next))
	}
}

// retrace forgets the paths of flows and traces them anew.
func (r *recorder) retrace() {
	for _, t := range r.tracks {
		if t.Size == 0 && t.running {
			r.trace.start(t.sent[0].key)
		}
	}
}

// phase records the paths at the end of a phase.
func (r *recorder) phase() {
	paths := make([][]int, len(r.tracks))
	for i, t := range r.tracks {
		if t.running {
			paths[i] = r.trace.path(t.sent[0].key)
		}
	}
	r.paths = append(r.paths, paths)
}

// queue returns the recorded queue's length and its maximum.
func (r *recorder) queue() (now, peak units.Bytes) {
	sw := r.fabric.Switch(r.scenario.Port.Node)
	if sw == nil {
		return 0, 0
	}
	for _, p := range sw.PortStats() {
		if p.Port == r.scenario.Port.Port && r.scenario.Queue < len(p.Queues.Queues) {
			q := p.Queues.Queues[r.scenario.Queue]
			return q.Bytes, q.MaxBytes
		}
	}
	return 0, 0
}

// series returns a copy of the samples so far. Any goroutine may call it.
func (r *recorder) series() Series {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.points)
}

// PauseMeter counts the PFC frames that reach the end of one wire. From these frames alone it computes for how
// long they stop the sender there. The loop's goroutine owns it.
type PauseMeter struct {
	rate units.Rate // rate of the paused port; its bit times define the quanta

	until  [packet.PFCClasses]units.Time // 0 or past: not paused
	paused packet.Pauses                 // the times in which at least one class was paused

	// A PAUSE frame is a refresh if all classes that it pauses are paused already.
	pauses, refreshes, resumes uint64
}

// Saw takes a PFC frame.
func (m *PauseMeter) Saw(p *packet.PFC, now units.Time) {
	var pauses, fresh bool
	for c := range m.until {
		if p.Enabled>>c&1 == 0 {
			continue
		}
		if p.Quanta[c] == 0 {
			m.until[c] = 0
			continue
		}
		pauses = true
		fresh = fresh || m.until[c] <= now
		m.until[c] = now + m.rate.PauseTime(p.Quanta[c])
	}
	m.paused.Set(now, slices.Max(m.until[:]))
	switch {
	case fresh:
		m.pauses++
	case pauses:
		m.refreshes++
	default:
		m.resumes++
	}
}

// Meters is one meter for each wire.
type Meters []PauseMeter

// NewMeters returns meters for wires. A PAUSE that arrives by a wire stops the wire in the opposite direction.
func NewMeters(wires []network.Wire) Meters {
	m := make(Meters, len(wires))
	for i := range wires {
		m[i].rate = wires[i^1].Rate
	}
	return m
}

// frames returns the PAUSE frames of all wires so far, without refreshes.
func (m Meters) frames() (n uint64) {
	for i := range m {
		n += m[i].pauses
	}
	return n
}

// tracer records, in order, the wires on which each traced flow's packets are seen. So a run knows a flow's path from
// its packets, not from the controller's intention. The loop's goroutine owns it.
type tracer map[traceKey]*[]int

// traceKey identifies the sending end of a flow.
type traceKey struct {
	src  [4]byte
	port uint16
}

// Offsets in an untagged Ethernet frame with an IPv4 header without options.
const (
	offEtherType = 12
	offProtocol  = 23
	offSrcAddr   = 26
	offSrcPort   = 34
	traceBytes   = 36
)

func keyOf(k agent.FlowKey) traceKey { return traceKey{k.Src.As4(), k.SrcPort} }

// start forgets the recorded path of a flow and traces the flow from now on.
func (t tracer) start(k agent.FlowKey) { t[keyOf(k)] = new([]int) }

// path returns the wires on which the flow's packets were seen since start.
func (t tracer) path(k agent.FlowKey) []int {
	if p := t[keyOf(k)]; p != nil {
		return *p
	}
	return nil
}

// saw takes a frame at the end of a wire.
func (t tracer) saw(wire int, frame []byte) {
	if len(t) == 0 || len(frame) < traceBytes || binary.BigEndian.Uint16(frame[offEtherType:]) != 0x0800 || frame[offProtocol] != 17 {
		return
	}
	key := traceKey{[4]byte(frame[offSrcAddr:]), binary.BigEndian.Uint16(frame[offSrcPort:])}
	if p := t[key]; p != nil && !slices.Contains(*p, wire) {
		*p = append(*p, wire)
	}
}
