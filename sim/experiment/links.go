package experiment

import (
	"cmp"
	"slices"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// Link is one direction of a link over a whole run.
type Link struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Paused is the part of the run in which PFC stopped the sender, in percent; classes that are stopped at the
	// same time count once. Pauses is the number of PAUSE frames that stopped a class that was running.
	Paused float64 `json:"paused_percent"`
	Pauses uint32  `json:"pauses"`
	Load   float64 `json:"load_percent"` // percentage of the link's rate, frames with their headers
	// Headroom is the largest sampled amount of the receiver's headroom, insurance included, that packets of the
	// link held, in KB.
	Headroom float64 `json:"headroom_kb"`
	Drops    uint64  `json:"drops"` // packets of the link that the receiver's buffer dropped
}

// linkSamples is the number of samples of links and victims in a run.
const linkSamples = 2000

// shortQueue is the longest queue that does not count as a delay: four frames of 1500 B.
const shortQueue units.Bytes = 6000

// heldPart is the least part of its time for which a flow must be held up to count as a victim.
const heldPart = 0.05

// links follows all links of a run. A flow is held up as a victim while PFC stops a port of its path, and the next
// port on the path is neither stopped nor has a queue. The flows that caused the PAUSE then leave that switch by
// other ports (DSH and SPFC call this collateral damage and victims).
type links struct {
	every    time
	paused   [][sim.NumClasses]time // time for which each port's classes had been paused at the last sample
	stopped  []uint8                // classes that were stopped for more than half of the sample
	headroom []int64                // for each port, the largest amount that its receiver held
	held     map[int]time           // time for which each flow was held up
}

// followLinks makes a run sample its links.
func (r *run) followLinks() {
	n := r.sim.Ports()
	r.links = &links{
		every: max(r.plan.Until/linkSamples, 1), paused: make([][sim.NumClasses]time, n), stopped: make([]uint8, n),
		headroom: make([]int64, n), held: map[int]time{},
	}
	r.sim.At(r.links.every, r.sampleLinks)
}

func (r *run) sampleLinks(s *sim.Sim) error {
	l := r.links
	any := false
	for i := range l.paused {
		st := s.Port(i)
		l.stopped[i] = 0
		for c, t := range st.Paused {
			if 2*(t-l.paused[i][c]) > l.every {
				l.stopped[i] |= 1 << c
				any = true
			}
		}
		l.paused[i] = st.Paused
		node, local := s.Far(i)
		if m := r.memory(node); m != nil {
			l.headroom[i] = max(l.headroom[i], gaugeKinds["headroom"].level(m, s.Now(), local, -1))
		}
	}
	if any {
		s.Flows(func(f *sim.Flow) {
			if l.victim(s, f) {
				l.held[f.Result] += l.every
			}
		})
	}
	if next := s.Now() + l.every; next <= r.plan.Until {
		s.At(next, r.sampleLinks)
	}
	return nil
}

// memory returns the buffer of a switch, or nil for a host or a buffer without pools.
func (r *run) memory(node int) *headroom.MMU {
	if r.plan.Graph.IsHost(node) {
		return nil
	}
	m, err := r.sim.MMU(node)
	if err != nil {
		return nil
	}
	return m
}

// victim reports whether congestion caused by other flows holds up a flow.
func (l *links) victim(s *sim.Sim, f *sim.Flow) bool {
	for h := len(f.Path) - 2; h >= 0; h-- { // only the last stopped port on the path matters
		if l.stopped[f.Path[h]]>>f.Spec.Class&1 == 1 {
			return s.Queued(int(f.Path[h+1]), int(f.Spec.Class)) <= shortQueue
		}
	}
	return false
}

// victims counts the flows of a group, −1 for all, that were victims.
func (r *run) victims(group int) (n int) {
	for i, res := range r.sim.Results() {
		life := res.FCT
		if life == 0 {
			life = r.sim.Now() - r.sim.StartOf(i)
		}
		if held := r.links.held[i]; held > 0 && (group < 0 || res.Spec.Group == group) && float64(held) >= heldPart*float64(life) {
			n++
		}
	}
	return n
}

// stoppedFor returns, for each port, the time in which PFC stopped at least one class.
func (r *run) stoppedFor() []time {
	list := make([]time, r.sim.Ports())
	for i := range list {
		list[i] = r.sim.Port(i).Stopped
	}
	return list
}

// linkRecords returns the directions of all links in the order of the ports.
func (r *run) linkRecords() (out []Link) {
	now := r.sim.Now().Seconds()
	for i, t := range r.stoppedFor() {
		st := r.sim.Port(i)
		out = append(out, Link{
			From: st.Node, To: st.Peer, Paused: 100 * t.Seconds() / now, Pauses: st.Frames,
			Load: 100 * float64(st.TxBytes) * 8 / float64(r.sim.PortRate(i)) / now, Headroom: float64(r.links.headroom[i]) / 1e3, Drops: st.Dropped,
		})
	}
	return out
}

// overMemories joins a number of all switches' buffers with pools. It returns 0 if there are none.
func (r *run) overMemories(of func(headroom.Stats) float64, join func(a, b float64) float64) (v float64) {
	for n := range r.plan.Graph.Nodes() {
		if m := r.memory(n); m != nil {
			v = join(v, of(m.Stats()))
		}
	}
	return v
}

// xoff measures the bytes that a switch's ports hold when they send a PAUSE. It also measures how fast ingress
// queues fill and drain between the PAUSE and the last packet that still arrives (DSH, Figures 8 to 10). It
// implements sim.Follower.
type xoff struct {
	from, to time
	off      []*episode // the queues that are at XOFF
	rates    [2][]float64

	ports   []bool    // set for ports whose PAUSEs count
	before  []uint8   // the classes that each port had paused
	amounts []float64 // bytes that these ports held at their PAUSEs, KB
	others  float64   // sum of what the other ports held at their PAUSEs, KB
}

// episode is a period in which a queue is at XOFF.
type episode struct {
	port         int
	class        uint8
	since, last  time // time of the PAUSE, and of the last arrival after it
	in, out      units.Bytes
	outUntilLast units.Bytes
}

// Packet implements sim.Follower.
func (x *xoff) Packet(m *headroom.MMU, now time, port int, class uint8, n units.Bytes, arrived bool) {
	x.pause(m, now, port, arrived)
	x.off = slices.DeleteFunc(x.off, func(e *episode) bool {
		if m.Off(e.port)>>e.class&1 == 1 {
			return false
		}
		x.end(e)
		return true
	})
	i := slices.IndexFunc(x.off, func(e *episode) bool { return e.port == port && e.class == class })
	switch {
	case i < 0:
		if m.Off(port)>>class&1 == 1 {
			x.off = append(x.off, &episode{port: port, class: class, since: now})
		}
	case arrived:
		e := x.off[i]
		e.in, e.last, e.outUntilLast = e.in+n, now, e.out
	default:
		x.off[i].out += n
	}
}

// pause records the bytes that a port holds when it sends a PAUSE, in KB (SPFC, Figure 14).
func (x *xoff) pause(m *headroom.MMU, now time, port int, arrived bool) {
	for p, was := range x.before {
		x.before[p] = m.Paused(p)
		if p != port || !arrived || x.before[p]&^was == 0 || now < x.from || now >= x.to {
			continue
		}
		held := float64(gaugeKinds["buffer"].level(m, now, p, -1)) / 1e3
		if x.ports[p] {
			x.amounts = append(x.amounts, held)
		} else {
			x.others += held
		}
	}
}

// pausedRatio returns the bytes that the measure's ports held at their PAUSEs, divided by the bytes that the other
// ports held at theirs (SPFC, Figure 14b).
func pausedRatio(r *run, me *Measure) (reading, error) {
	of, err := r.followXoff(me)
	return one(func() float64 {
		held, others := 0.0, 0.0
		for _, x := range of {
			for _, h := range x.amounts {
				held += h
			}
			others += x.others
		}
		return held / others
	}), err
}

func (x *xoff) end(e *episode) {
	if e.last > e.since && x.from <= e.since && e.since < x.to {
		seconds := (e.last - e.since).Seconds()
		x.rates[0] = append(x.rates[0], float64(e.in)*8/seconds/1e9)
		x.rates[1] = append(x.rates[1], float64(e.outUntilLast)*8/seconds/1e9)
	}
}

// xoffs makes a meter of numbers that an xoff measures.
func xoffs(unit string, k keys, numbers func(*xoff) []float64) *meter {
	return &meter{unit, needSwitch | keySpan | k, func(r *run, me *Measure) (reading, error) {
		of, err := r.followXoff(me)
		return spreadOf(me, func() (all []float64) {
			for _, x := range of {
				all = append(all, numbers(x)...)
			}
			return all
		}), err
	}}
}

// followXoff follows the switches of a measure.
func (r *run) followXoff(me *Measure) (out []*xoff, err error) {
	for _, n := range me.nodes {
		info := sim.InfoOf(r.plan.Graph, topo.NewPorts(r.plan.Graph), n)
		x := &xoff{from: me.from, to: me.to, before: make([]uint8, len(info.Peers)), ports: make([]bool, len(info.Peers))}
		for port, peer := range info.Peers {
			x.ports[port] = me.hosts == nil || slices.Contains(me.hosts, peer)
		}
		out, err = append(out, x), cmp.Or(err, r.sim.Follow(n, x))
	}
	return out, err
}
