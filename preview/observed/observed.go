// Package observed adds up the flow reports of the attached hosts: the bytes between each pair of
// hosts, the sizes of flows, and how many hosts begin to send to one host together. A preview of
// a change plays this traffic (package preview).
//
// Reports come about every half second. They do not show when within this interval a flow begins,
// flows that begin and end within one interval, or the last bytes of a flow.
package observed

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Window is the least time that traffic is kept; it is kept at most twice as long.
const Window = 10 * time.Minute

// Together is the time within which flows to one host count as one fan-in. It is the hosts' default
// interval between reports, because reports are not in step.
const Together = 500 * time.Millisecond

// maxPairs bounds the pairs of a window. Traffic of further pairs is left out.
const maxPairs = 65536

// Flow is one flow of a report.
type Flow struct {
	Src, Dst netip.AddrPort
	Acked    uint64 // payload bytes since it began
	Weight   float64
	Priority uint32 // virtual, 0 for none
	MaxQD    bool   // the flow's acknowledgements carry maxQD

	began time.Time // start of a burst
}

// Pair is the traffic from one host to another.
type Pair struct {
	Src, Dst netip.Addr
	Bytes    uint64 // payload that was acknowledged
	// Begun and Ended count flows. EndedBytes is the payload of all ended flows, Largest of the largest one.
	Begun, Ended, EndedBytes, Largest uint64
	// Running is the number of running flows. For bursts, RunningBytes is the number of bytes that the running
	// ones have sent so far, and RunningRate is their rate in bytes a second.
	Running      int
	RunningBytes uint64
	RunningRate  float64
	// The fields below describe the flow that was reported last.
	Weight   float64
	Priority uint32
	MaxQD    bool
}

// FanIn is the largest number of hosts that began to send to one host at about the same time.
type FanIn struct {
	Dst    netip.Addr
	Degree int
}

// Traffic is the traffic seen since a time.
type Traffic struct {
	Since  time.Time // zero before the first report
	Read   time.Time // when Counted was called last
	Pairs  []Pair    // ordered by source and destination
	FanIns []FanIn   // fan-ins of two hosts or more, by destination
}

type ends struct{ src, dst netip.Addr }

type key struct{ src, dst netip.AddrPort }

// period is the traffic seen within a window.
type period struct {
	since time.Time
	pairs map[ends]*Pair
	fans  map[netip.Addr]int
}

// Table keeps the traffic. It is safe for concurrent use; its zero value is ready.
type Table struct {
	// Together, if not 0, replaces the constant Together.
	Together time.Duration

	mu        sync.Mutex
	read      time.Time // when Counted was called last
	now, last period
	ended     map[Sizes]Completions
	counted   map[string]map[Sizes]Completions        // counts in each host's last report
	flows     map[string]map[key]Flow                 // flows in each host's last report
	began     map[netip.Addr]map[netip.Addr]time.Time // when the last flow began, by destination and source
}

// Report takes all running flows of a host. The first report of a host only says which flows run.
func (t *Table) Report(host string, at time.Time, flows []Flow) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report(host, at, flows)
}

// report does what Report does. The caller holds mu.
func (t *Table) report(host string, at time.Time, flows []Flow) {
	t.turn(at)
	before, known := t.flows[host]
	running := make(map[key]Flow, len(flows))
	for _, f := range flows {
		k := key{f.Src, f.Dst}
		running[k] = f
		p := t.pair(k)
		if p == nil {
			continue
		}
		p.Weight, p.Priority, p.MaxQD = f.Weight, f.Priority, p.MaxQD || f.MaxQD
		was, old := before[k]
		switch {
		case !known: // the flow's beginning is not known
		case old && f.Acked >= was.Acked:
			p.Bytes += f.Acked - was.Acked
		default:
			if old { // another flow uses the same ports now
				p.end(was)
			}
			p.Begun++
			p.Bytes += f.Acked
			t.begin(k, at)
		}
	}
	for k, f := range before {
		if _, still := running[k]; !still {
			if p := t.pair(k); p != nil {
				p.end(f)
			}
		}
	}
	t.flows[host] = running
}

// Gone forgets the flows and counts of a detached host.
func (t *Table) Gone(host string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.flows, host)
	delete(t.counted, host)
}

func (p *Pair) end(f Flow) {
	p.Ended++
	p.EndedBytes += f.Acked
	p.Largest = max(p.Largest, f.Acked)
}

// turn begins a new window when the old one is over. The caller holds mu.
func (t *Table) turn(at time.Time) {
	if t.flows == nil {
		t.flows, t.began = map[string]map[key]Flow{}, map[netip.Addr]map[netip.Addr]time.Time{}
	}
	if t.now.pairs == nil || at.Sub(t.now.since) >= Window {
		t.last = t.now
		t.now = period{since: at, pairs: map[ends]*Pair{}, fans: map[netip.Addr]int{}}
		for dst := range t.began { // hosts name destinations as they like
			t.forget(dst, at)
		}
	}
}

// pair returns the pair of a flow, nil when there is no room for one more.
func (t *Table) pair(k key) *Pair {
	e := ends{k.src.Addr(), k.dst.Addr()}
	p := t.now.pairs[e]
	if p == nil && len(t.now.pairs) < maxPairs {
		p = &Pair{Src: e.src, Dst: e.dst}
		t.now.pairs[e] = p
	}
	return p
}

// begin notes that a flow began.
func (t *Table) begin(k key, at time.Time) {
	from := t.began[k.dst.Addr()]
	if from == nil {
		from = map[netip.Addr]time.Time{}
		t.began[k.dst.Addr()] = from
	}
	from[k.src.Addr()] = at
	t.forget(k.dst.Addr(), at)
	t.now.fans[k.dst.Addr()] = max(t.now.fans[k.dst.Addr()], len(from))
}

// forget drops the starts of flows to a host that are too old to belong to the same fan-in as a new one.
func (t *Table) forget(dst netip.Addr, at time.Time) {
	from := t.began[dst]
	maps.DeleteFunc(from, func(_ netip.Addr, began time.Time) bool { return at.Sub(began) > cmp.Or(t.Together, Together) })
	if len(from) == 0 {
		delete(t.began, dst)
	}
}

// Traffic returns the traffic seen within the last one or two windows.
func (t *Table) Traffic() Traffic {
	t.mu.Lock()
	defer t.mu.Unlock()
	pairs, fans := map[ends]Pair{}, map[netip.Addr]int{}
	out := Traffic{Since: t.now.since, Read: t.read}
	if t.last.pairs != nil {
		out.Since = t.last.since
	}
	for _, p := range []period{t.last, t.now} {
		for e, one := range p.pairs {
			sum := pairs[e]
			one := *one
			one.Bytes, one.Begun, one.Ended, one.EndedBytes = one.Bytes+sum.Bytes, one.Begun+sum.Begun, one.Ended+sum.Ended, one.EndedBytes+sum.EndedBytes
			one.Largest = max(one.Largest, sum.Largest)
			pairs[e] = one
		}
		for dst, n := range p.fans {
			fans[dst] = max(fans[dst], n)
		}
	}
	for _, flows := range t.flows {
		for k, f := range flows {
			e := ends{k.src.Addr(), k.dst.Addr()}
			if p, ok := pairs[e]; ok {
				p.Running++
				if took := t.read.Sub(f.began).Seconds(); !f.began.IsZero() && took > 0 {
					p.RunningBytes += f.Acked
					p.RunningRate += float64(f.Acked) / took
				}
				pairs[e] = p
			}
		}
	}
	out.Pairs = slices.SortedFunc(maps.Values(pairs), func(a, b Pair) int { return cmp.Or(a.Src.Compare(b.Src), a.Dst.Compare(b.Dst)) })
	for _, dst := range slices.SortedFunc(maps.Keys(fans), netip.Addr.Compare) {
		if fans[dst] > 1 {
			out.FanIns = append(out.FanIns, FanIn{dst, fans[dst]})
		}
	}
	return out
}
