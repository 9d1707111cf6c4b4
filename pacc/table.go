package pacc

import (
	"cmp"
	"errors"
	"slices"
)

// writeMost bounds the flows of one write: on BMv2 a thousand updates, two for each flow,
// take some 40 ms, and the loop waits for them.
const writeMost = 256

// flowState is a flow that is in the switch's table, or about to be.
type flowState struct {
	bytes, congested uint64 // counters at the last reading
	dBytes, dCong    uint64 // what they rose by in the last period
	since            uint64 // the tick in which it was learned
	seen             uint64 // the last tick that read it
	written          bool
	gone             bool // left the table
	row              int  // in the last reading
}

// row is a flow of a reading.
type row struct {
	Flow
	state *flowState
}

// table is what a loop knows of the switch's flow table. The loop owns it.
type table struct {
	most    int
	watches func(port uint32) bool
	flows   map[Flow]*flowState
	add     []Flow // to be written; a flow that is gone meanwhile is skipped
	remove  []Flow
	leaving map[Flow]bool // those of remove
	fresh   []Flow        // written since the last reading
	before  []row         // the reading before, in its order, which hardly changes
	rows    []row         // scratch
	churn   int           // flows evicted in tick churned
	churned uint64        // a tick
	rank    []Flow        // scratch
}

func newTable(most int, watches func(uint32) bool) table {
	return table{most: most, watches: watches, flows: make(map[Flow]*flowState), leaving: map[Flow]bool{}}
}

// learn makes room for a flow and plans its entries. One whose old entries are still to go
// comes up again once they have.
func (t *table) learn(f Flow, tick uint64, st *Stats) {
	if t.flows[f] != nil || t.leaving[f] || !t.watches(f.Port) {
		return
	}
	if len(t.flows) >= t.most && !t.evict(tick, st) {
		st.Refused++
		return
	}
	t.flows[f] = &flowState{since: tick}
	t.add = append(t.add, f)
}

// churnShare of the table may be evicted in a period: a storm of short flows must not take
// the long ones' places before they are seen to be congested.
const churnShare = 8

// evict takes the least congested flow out, the one that sends least among equals. A flow
// that has not been in the table for a whole period is not judged yet.
func (t *table) evict(tick uint64, st *Stats) bool {
	if t.churned != tick {
		t.churned, t.churn, t.rank = tick, 0, t.candidates(tick)
	}
	for t.churn < max(1, t.most/churnShare) && len(t.rank) > 0 {
		f := t.rank[0]
		t.rank = t.rank[1:]
		if t.forget(f) {
			t.churn++
			st.Evicted++
			return true
		}
	}
	return false
}

// candidates returns those that may be evicted in this tick, the first first.
func (t *table) candidates(tick uint64) []Flow {
	list := t.rank[:0]
	for f, s := range t.flows {
		if s.written && s.since+1 < tick {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b Flow) int {
		x, y := t.flows[a], t.flows[b]
		return cmp.Or(cmp.Compare(x.dCong, y.dCong), cmp.Compare(x.dBytes, y.dBytes),
			a.Src.Compare(b.Src), a.Dst.Compare(b.Dst), cmp.Compare(a.Port, b.Port))
	})
	return list[:min(len(list), max(1, t.most/churnShare))]
}

// forget plans that a flow leaves; false when it is not there.
func (t *table) forget(f Flow) bool {
	s := t.flows[f]
	if s == nil {
		return false
	}
	delete(t.flows, f)
	s.gone = true
	if s.written {
		t.drop(f)
	}
	return true
}

// drop plans that the entries of a flow leave.
func (t *table) drop(f Flow) {
	if !t.leaving[f] {
		t.leaving[f] = true
		t.remove = append(t.remove, f)
	}
}

// read compares what the switch holds with what it should hold. Flows that another loop
// has left there are kept when there is room; those that are not whole, or of ports that
// are not watched any more, leave.
func (t *table) read(counts []Count, tick uint64) {
	t.rows = t.rows[:0]
	at := 0 // where in the reading before the next flow is expected
	for i := range counts {
		c := &counts[i]
		s := t.find(c.Flow, &at)
		if s == nil {
			if t.leaving[c.Flow] {
				continue
			}
			if c.Partial || !t.watches(c.Port) || len(t.flows) >= t.most {
				t.drop(c.Flow)
				continue
			}
			s = &flowState{since: tick, bytes: c.Bytes, congested: c.Congested}
			t.flows[c.Flow] = s
		}
		s.written, s.seen = true, tick
		if c.Partial {
			t.forget(c.Flow)
			continue
		}
		s.dBytes, s.dCong = rise(s.bytes, c.Bytes), rise(s.congested, c.Congested)
		s.bytes, s.congested = c.Bytes, c.Congested
		s.row = len(t.rows)
		t.rows = append(t.rows, row{c.Flow, s})
	}
	t.before, t.rows = t.rows, t.before
	// Those whose entries were to be there and are not may be learned again.
	for _, r := range t.rows {
		if !r.state.gone && r.state.seen != tick {
			t.lose(r.Flow, r.state)
		}
	}
	for _, f := range t.fresh {
		if s := t.flows[f]; s != nil && s.seen != tick {
			t.lose(f, s)
		}
	}
	t.fresh = t.fresh[:0]
}

// find returns the state of a flow, nil when it is not in the table.
func (t *table) find(f Flow, at *int) *flowState {
	if *at < len(t.before) {
		if r := &t.before[*at]; r.Flow == f && !r.state.gone {
			*at++
			return r.state
		}
	}
	s := t.flows[f]
	if s != nil {
		*at = s.row + 1
	}
	return s
}

// lose forgets a flow that the switch does not have.
func (t *table) lose(f Flow, s *flowState) {
	s.gone = true
	delete(t.flows, f)
}

// rise is how far a counter went, 0 for one that began again.
func rise(from, to uint64) uint64 {
	if to < from {
		return 0
	}
	return to - from
}

// write carries out what is planned, a bounded piece at a time.
func (t *table) write(sw Switch, st *Stats) error {
	st.Flows = len(t.flows)
	remove := t.remove[:min(len(t.remove), writeMost)]
	var add []Flow
	n := 0
	for ; n < len(t.add) && len(add) < writeMost; n++ {
		if s := t.flows[t.add[n]]; s != nil && !s.written {
			add = append(add, t.add[n])
		}
	}
	if len(add) == 0 && len(remove) == 0 {
		t.add = t.add[:copy(t.add, t.add[n:])]
		return nil
	}
	refused, err := sw.Write(add, remove)
	if errors.Is(err, ErrBusy) {
		return nil
	}
	for _, f := range remove {
		delete(t.leaving, f)
	}
	t.remove = t.remove[:copy(t.remove, t.remove[len(remove):])]
	t.add = t.add[:copy(t.add, t.add[n:])]
	for _, f := range add {
		if s := t.flows[f]; s != nil {
			s.written = true
			t.fresh = append(t.fresh, f)
		}
	}
	st.Learned += uint64(len(add) - len(refused))
	st.Refused += uint64(len(refused))
	for _, f := range refused {
		if s := t.flows[f]; s != nil {
			t.lose(f, s)
		}
	}
	st.Flows = len(t.flows)
	return err
}
