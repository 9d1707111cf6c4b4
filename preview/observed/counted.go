package observed

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/headgate/headgate/cnpgen"
)

// Counted takes the bytes that each pair of addresses has sent since the previous call, by the counters of one
// switch. The switch has a Table of its own. A flow of the Table is then a burst: the bytes that a pair sends in
// consecutive calls. Two bursts count as one if no whole interval between two calls separates them.
func (t *Table) Counted(at time.Time, sent map[cnpgen.FlowKey]uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.read.IsZero() { // the time in which these bytes were sent is not known
		t.turn(at)
		t.read = at
		return
	}
	const counters = ""
	before, flows := t.flows[counters], make([]Flow, 0, len(sent))
	for pair, n := range sent {
		k := key{netip.AddrPortFrom(pair.Src, 0), netip.AddrPortFrom(pair.Dst, 0)}
		f, goesOn := before[k]
		if !goesOn {
			f = Flow{Src: k.src, Dst: k.dst, began: t.read}
		}
		f.Acked += n
		flows = append(flows, f)
	}
	t.read = at
	t.report(counters, at, flows)
}

// Source holds the counters of a host's first-hop switch.
type Source struct {
	Host, Switch string
	Since        time.Time
	Pairs        []Pair // pairs with the host as source
	FanIn        int    // the most hosts that began to send to it together; 0 or 1 for none
}

// Source returns the part of a switch's traffic that concerns one host.
func (t Traffic) Source(host string, addresses []netip.Addr, sw string) Source {
	s := Source{Host: host, Switch: sw, Since: t.Since}
	for _, address := range addresses {
		i, _ := slices.BinarySearchFunc(t.Pairs, address, func(p Pair, a netip.Addr) int { return p.Src.Compare(a) })
		for ; i < len(t.Pairs) && t.Pairs[i].Src == address; i++ {
			s.Pairs = append(s.Pairs, t.Pairs[i])
		}
		if i := slices.IndexFunc(t.FanIns, func(f FanIn) bool { return f.Dst == address }); i >= 0 {
			s.FanIn += t.FanIns[i].Degree
		}
	}
	return s
}

// maxSizes bounds the number of ranges of sizes. Flows of further ranges are left out.
const maxSizes = 16

// maxSlowdown bounds a host's sum of slowdowns, so that no report makes the total infinite.
const maxSlowdown = 1e18

// Sizes is a range of payloads: at least From bytes and less than Below; 0 means no bound.
type Sizes struct{ From, Below uint64 }

// Completions counts flows that have ended.
type Completions struct {
	Flows    uint64
	FCT      uint64  // sum of completion times, ns modulo 2^64
	Slowdown float64 // sum of flow completion times, each divided by that of the flow alone
}

// Since returns the difference to before.
func (c Completions) Since(before Completions) Completions {
	return Completions{Flows: c.Flows - before.Flows, FCT: c.FCT - before.FCT, Slowdown: c.Slowdown - before.Slowdown}
}

// Plus returns the sum of both.
func (c Completions) Plus(o Completions) Completions {
	return Completions{Flows: c.Flows + o.Flows, FCT: c.FCT + o.FCT, Slowdown: c.Slowdown + o.Slowdown}
}

// Completed takes a host's counts since its start. The first counts of a host only serve as reference. If a count
// has fewer flows than before, the host has restarted, and its counts start from 0. Counts whose slowdown is
// negative, too large or not a number are left out.
func (t *Table) Completed(host string, counts map[Sizes]Completions) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended == nil {
		t.ended, t.counted = map[Sizes]Completions{}, map[string]map[Sizes]Completions{}
	}
	before, known := t.counted[host]
	kept := map[Sizes]Completions{}
	for s, c := range counts {
		sum, old := t.ended[s]
		if !old && len(t.ended) >= maxSizes || !(c.Slowdown >= 0 && c.Slowdown <= maxSlowdown) {
			continue
		}
		kept[s] = c
		was := before[s]
		if c.Flows < was.Flows {
			was = Completions{}
		}
		if d := c.Since(was); known && d.Slowdown >= 0 {
			sum = sum.Plus(d)
		}
		t.ended[s] = sum
	}
	t.counted[host] = kept
}

// Completions returns the counts of all hosts since their first reports.
func (t *Table) Completions() map[Sizes]Completions {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.ended)
}
