package buffer

import (
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/headroom"
)

// base is the common part of the loops of a program and of a chip: ports and their last counters. Its
// loop owns its ports.
type base struct {
	callbacks feature.Callbacks
	latest    *feature.LastValue[*State]
	sw        feature.Switch
	buffer    Config
	memory    *memory
	pausers   *pausers
	env       *feature.Env
	mmu       headroom.Config
	ports     []*port
	by        map[uint32]*port // ports by number
	macs      bool             // it is a chip: only the MACs of the ports know of their pauses
}

// open gives the base its ports, which go on with the sums of the loop before.
func (b *base) open(h headroom.Config, numbers []uint32, ports []topology.Port) {
	b.mmu, b.by = h, map[uint32]*port{}
	b.memory.Lock()
	defer b.memory.Unlock()
	for i, at := range ports {
		p := newPort(numbers[i], at.Peer, h, i, b.buffer.PauseQuanta)
		s := b.memory.sums[p.Number]
		p.PausedTime, p.Turns, p.MostLate = s.paused, s.turns, s.mostLate
		b.ports = append(b.ports, p)
		b.by[p.Number] = p
	}
}

// numbers returns the numbers of the ports.
func (b *base) numbers() []uint32 {
	list := make([]uint32, len(b.ports))
	for i, p := range b.ports {
		list[i] = p.Number
	}
	return list
}

// counted hands the counters to their ports. One that ran backwards means that the switch
// was restarted: its ports begin anew, nothing else does.
func (b *base) counted(at time.Time, read map[uint32]totals) {
	b.memory.Lock()
	defer b.memory.Unlock()
	var back []string
	for _, p := range b.ports {
		now, ok := read[p.Number]
		if !ok {
			continue
		}
		last, known := b.memory.totals[p.Number]
		if !known {
			last = now
		}
		if now.below(last) {
			back = append(back, fmt.Sprintf("port %d had %d B departed and now has %d B", p.Number, last.departed, now.departed))
			p.restart()
			last = totals{drops: now.drops}
		}
		b.memory.totals[p.Number] = now
		if b.macs {
			p.heard(now, last)
		}
		if elapsed := p.count(at, now, last); b.macs && elapsed > 0 {
			p.judge(now, last, elapsed, b.mmu.SPFC.Period.Duration())
		}
	}
	if len(back) > 0 {
		b.callbacks.Event(view.Event{
			Time: at, Severity: view.Warning, Subject: b.sw.Name(), Kind: "buffer.restarted",
			Message: "counters ran backwards, so the switch was restarted: the states of its ports begin anew; " + strings.Join(back, ", "),
		})
	}
}

// show publishes the ports with the other values, and remembers their sums.
func (b *base) show(v *State) {
	b.memory.Lock()
	for _, p := range b.ports {
		v.Ports = append(v.Ports, p.PortState)
		b.memory.sums[p.Number] = sums{p.PausedTime, p.Turns, p.MostLate}
	}
	b.memory.Unlock()
	b.latest.Set(b.sw.Name(), v)
}
