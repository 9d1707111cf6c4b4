package buffer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/headroom"
)

// base is what the loops of a program and of a chip share: ports, what their counters were,
// and SPFC's state machines, which decide on victims. Its loop owns its ports.
type base struct {
	hub    feature.Hub
	sw     feature.Switch
	buffer config.Buffer
	memory *memory
	mmu    headroom.Config
	ports  []*port
	macs   bool // only the MACs of the ports know of their pauses

	victims []uint32 // as the switch was told
}

// open gives the base its ports, which go on with the sums of the loop before.
func (b *base) open(h headroom.Config, numbers []uint32, ports []topology.Port) {
	b.mmu = h
	b.memory.Lock()
	defer b.memory.Unlock()
	for i, at := range ports {
		p := newPort(numbers[i], at.Peer, h, i, b.buffer.PauseQuanta)
		s := b.memory.sums[p.Number]
		p.PausedTime, p.Turns, p.MostLate = s.paused, s.turns, s.mostLate
		b.ports = append(b.ports, p)
	}
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
		p.count(at, now, last, b.buffer.Victims(), b.mmu.SPFC.Period.Duration())
	}
	if len(back) > 0 {
		b.hub.Event(view.Event{
			Time: at, Severity: view.Warning, Subject: b.sw.Name(), Kind: "buffer.restarted",
			Message: "counters ran backwards, so the switch was restarted: the states of its ports begin anew; " + strings.Join(back, ", "),
		})
	}
}

// turned tells the switch which ports are victims', when that has changed.
func (b *base) turned(tell func(victims []uint32) error) error {
	var victims []uint32
	for _, p := range b.ports {
		if p.Victim {
			victims = append(victims, p.Number)
		}
	}
	if slices.Equal(victims, b.victims) {
		return nil
	}
	if err := tell(victims); err != nil {
		return err
	}
	b.victims = victims
	return nil
}

// show publishes the ports with what else is known, and remembers their sums.
func (b *base) show(v *view.Buffer) {
	b.memory.Lock()
	for _, p := range b.ports {
		v.Ports = append(v.Ports, p.PortBuffer)
		b.memory.sums[p.Number] = sums{p.PausedTime, p.Turns, p.MostLate}
	}
	b.memory.Unlock()
	b.hub.Buffer(b.sw.Name(), v)
}
