package observed

import (
	"net/netip"
	"slices"
	"time"

	"github.com/headgate/headgate/cnpgen"
)

// Counted takes what pairs of addresses have sent since the call before, by the counters of a switch, in a Table of this switch alone. A flow of
// the Table is then a burst: what a pair sends in calls in a row. Bursts closer together than two calls are one, one with
// a pause as long as the time between two calls is two.
func (t *Table) Counted(at time.Time, sent map[cnpgen.FlowKey]uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.read.IsZero() { // how long it took to send this much is not known
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

// Source is what the switch that a host hangs on has counted of it.
type Source struct {
	Host, Switch string
	Since        time.Time
	Pairs        []Pair // that the host is the source of
	FanIn        int    // the most hosts that began to send to it together; 0 or 1 for none
}

// Source returns what concerns one host, of a switch's Table.
func (t Traffic) Source(host string, address netip.Addr, sw string) Source {
	s := Source{Host: host, Switch: sw, Since: t.Since}
	i, _ := slices.BinarySearchFunc(t.Pairs, address, func(p Pair, a netip.Addr) int { return p.Src.Compare(a) })
	for ; i < len(t.Pairs) && t.Pairs[i].Src == address; i++ {
		s.Pairs = append(s.Pairs, t.Pairs[i])
	}
	if i := slices.IndexFunc(t.FanIns, func(f FanIn) bool { return f.Dst == address }); i >= 0 {
		s.FanIn = t.FanIns[i].Degree
	}
	return s
}
