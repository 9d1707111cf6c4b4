package engine

import (
	"slices"

	"github.com/headgate/headgate/softswitch/engine/match"
)

const (
	// largeTable is the number of entries from which on packets look ahead into a table. Smaller tables
	// stay in the cache of a core.
	largeTable = 1 << 14
	// AheadPackets is the largest number of packets that Ahead takes.
	AheadPackets = 16
)

// grown makes packets look ahead into a table that has become large, if the parser already yields its
// key, which then consists of headers' fields. The caller holds the locks of control methods.
func (in *Instance) grown(t *table) {
	late := func(m keyMove) bool { return m.src < in.prog.layout.Meta }
	if t.entries.Len() == largeTable && !slices.Contains(in.large, t) && !slices.ContainsFunc(t.spec.moves, late) {
		in.large = append(in.large, t)
	}
}

// LooksAhead reports whether Ahead makes lookups faster. Ask between BeginIngress and End.
func (t *Worker) LooksAhead() bool {
	return len(t.in.large) > 0 && !t.in.observed && !t.in.prog.serial && len(t.in.vsets) == 0
}

// Ahead parses packets that the worker has received, and looks each up in the large tables. It ignores
// the results. Its purpose is that the processor waits for the memory of all packets at once, and not for
// each packet when Ingress looks it up. Call it between BeginIngress and End.
func (t *Worker) Ahead(packets []*Packet) {
	for _, p := range packets {
		p.Parse(Ingress)
		p.parsed = true
	}
	var found [AheadPackets]*match.Entry
	for _, x := range t.in.large {
		for i, p := range packets {
			found[i] = x.look.Find(x.packed(p), &p.found)
		}
		for _, e := range found[:len(packets)] {
			if e != nil {
				e := e.Owner.(*entry)
				t.read += uint64(e.step.pc) + e.few[0]
			}
		}
	}
}
