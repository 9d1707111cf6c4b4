package experiment

import (
	"cmp"
	"slices"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// xoff measures what a switch's ports hold when they send a PAUSE, and how fast ingress queues
// fill and drain from then on until the last packet that comes in spite of it (DSH, Figures 8 to
// 10). It implements sim.Follower.
type xoff struct {
	from, to time
	off      []*episode // of queues at XOFF
	rates    [2][]float64

	ports   []bool    // whose PAUSEs count
	before  []uint8   // what each port had paused
	amounts []float64 // that ports held at their PAUSEs, KB
	others  float64   // what other ports held at their PAUSEs, in sum
}

// episode is a queue at XOFF.
type episode struct {
	port         int
	class        uint8
	since, last  time // the PAUSE, and the last arrival since
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

// pause keeps what a port holds, in KB, when it sends a PAUSE (SPFC, Figure 14).
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

// pausedRatio is what ports held at their PAUSEs, in sum, over what the others held at theirs
// (SPFC, Figure 14b).
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

// xoffs makes a meter of numbers of queues at XOFF.
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
