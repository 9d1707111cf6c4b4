package cnpgen

import (
	"container/list"
	"errors"
	"net/netip"
	"slices"
)

// writeMost bounds the flows of one write: on BMv2 a thousand updates, two for each flow,
// take some 40 ms, and the loop waits for them.
const writeMost = 256

// count is a flow's bytes and congested packets.
type count struct{ bytes, congested uint64 }

// flowState is a flow that is in the switch's table or will be written to it. It computes the differences of the
// flow's counters.
type flowState struct {
	flow    Flow
	share   [2]place  // the flow's places in the lists of its port and of its source
	now     count     // counters at the last reading
	base    count     // counters when its port was last computed; never above now in a reading
	listed  count     // counters in the tick that still waits to be computed
	last    FlowCount // the difference that its port was last computed with
	sent    uint64    // bytes sent between the last two readings
	hit     bool      // congested packets were counted between the last two readings
	since   uint64    // the period in which it was learned
	seen    uint64    // the last reading that contained it
	written bool
	gone    bool // left the table
	row     int  // index in the last reading
}

// learned is a loop's copy of the switch's flow table. The loop owns it.
type learned struct {
	most     int
	ports    int // number of watched ports
	watches  func(port uint32) bool
	flows    map[Flow]*flowState
	ofPort   map[uint32]*list.List     // *flowState of each port, longest without traffic first
	ofSource map[netip.Addr]*list.List // *flowState of each source address, longest without traffic first
	add      []Flow                    // to be written; a flow that is gone meanwhile is skipped
	remove   []Flow
	removing map[Flow]bool // the flows in remove
	fresh    []Flow        // written since the last reading
	before   []*flowState  // the previous reading; the order of readings hardly changes
	rows     []*flowState  // scratch
	churn    int           // flows evicted in period churned
	churned  uint64
}

func newLearned(most, ports int, watches func(uint32) bool) learned {
	return learned{
		most: most, ports: ports, watches: watches, flows: make(map[Flow]*flowState), removing: map[Flow]bool{},
		ofPort: map[uint32]*list.List{}, ofSource: map[netip.Addr]*list.List{},
	}
}

// Quotas prevent one port or one source address from filling the table. While several ports are watched, a port
// may have at most portShare times the free entries, as under the dynamic threshold of a shared buffer, but always
// at least its even part of the table. A source may have 1/sourceShare of the table, and at least sourceLeast
// entries.
const (
	portShare   = 4
	sourceShare = 16
	sourceLeast = 16
)

// place is the position of a flow in a list of flows.
type place struct {
	list *list.List
	at   *list.Element
}

func join[K comparable](groups map[K]*list.List, k K, s *flowState) place {
	l := groups[k]
	if l == nil {
		l = list.New()
		groups[k] = l
	}
	return place{l, l.PushBack(s)}
}

func leave[K comparable](groups map[K]*list.List, k K, p place) {
	if p.list.Remove(p.at); p.list.Len() == 0 {
		delete(groups, k)
	}
}

func length(l *list.List) int {
	if l == nil {
		return 0
	}
	return l.Len()
}

// put enters a flow at the end of its port's and its source's list, so that it is evicted last.
func (t *learned) put(f Flow, s *flowState) {
	s.flow, s.share = f, [2]place{join(t.ofPort, f.Port, s), join(t.ofSource, f.Src, s)}
	t.flows[f] = s
}

func (t *learned) drop(f Flow, s *flowState) {
	leave(t.ofPort, f.Port, s.share[0])
	leave(t.ofSource, f.Src, s.share[1])
	s.gone = true
	delete(t.flows, f)
}

// use moves a flow to the end of its port's and its source's list, so that it is evicted last.
func (s *flowState) use() {
	for _, p := range s.share {
		p.list.MoveToBack(p.at)
	}
}

// full returns the list of flows from which one must be removed before f can be learned. It returns false if there is room.
func (t *learned) full(f Flow) (of *list.List, full bool) {
	if l := t.ofSource[f.Src]; length(l) >= max(t.most/sourceShare, sourceLeast) {
		return l, true
	}
	l, free := t.ofPort[f.Port], t.most-len(t.flows)
	return l, free <= 0 || t.ports > 1 && length(l) >= max(t.most/t.ports, portShare*free)
}

// learn makes room for a flow and plans its entries. It ignores a flow whose old entries are still
// to be removed, because the switch reports it again after that.
func (t *learned) learn(f Flow, tick uint64, st *LoopStats) {
	if t.flows[f] != nil || t.removing[f] || !t.watches(f.Port) {
		return
	}
	if of, full := t.full(f); full && !t.evict(of, tick, st) {
		st.Refused++
		return
	}
	t.put(f, &flowState{since: tick})
	t.add = append(t.add, f)
}

// churnShare bounds the evictions in a period to 1/churnShare of the table. Otherwise many short
// flows would evict the long ones before these are seen to be congested.
const churnShare = 8

// evict removes the flow of a list that has sent nothing for longest. Among flows that last sent in the same
// period, those without congested packets go first. It removes nothing and returns false if that flow is younger
// than a period. Its cost does not grow with the table.
func (t *learned) evict(of *list.List, tick uint64, st *LoopStats) bool {
	if t.churned != tick {
		t.churned, t.churn = tick, 0
	}
	if length(of) == 0 || t.churn >= max(1, t.most/churnShare) {
		return false
	}
	s := of.Front().Value.(*flowState)
	if !s.written || s.since+1 >= tick || !t.forget(s.flow) {
		return false
	}
	t.churn++
	st.Evicted++
	return true
}

// forget forgets a flow and plans to remove its entries. It returns false for an unknown flow.
func (t *learned) forget(f Flow) bool {
	s := t.flows[f]
	if s == nil {
		return false
	}
	t.drop(f, s)
	if s.written {
		t.planRemoval(f)
	}
	return true
}

func (t *learned) planRemoval(f Flow) {
	if !t.removing[f] {
		t.removing[f] = true
		t.remove = append(t.remove, f)
	}
}

// read compares the switch's flow table with the flows that it should contain. It keeps a flow of an earlier loop if there is
// room, and removes one that lacks an entry or whose port is not watched.
func (t *learned) read(counts []Counters, tick, reading uint64) {
	t.rows = t.rows[:0]
	at := 0 // index at which the next flow is expected in the previous reading
	for i := range counts {
		c := &counts[i]
		s := t.find(c.Flow, &at)
		if s == nil {
			if t.removing[c.Flow] {
				continue
			}
			if c.Partial || !t.watches(c.Port) || len(t.flows) >= t.most {
				t.planRemoval(c.Flow)
				continue
			}
			// The time of the bytes counted so far is unknown, so they do not count.
			s = &flowState{since: tick, now: count{c.Bytes, c.Congested}, base: count{c.Bytes, c.Congested}}
			t.put(c.Flow, s)
		}
		s.written, s.seen = true, reading
		if c.Partial {
			t.forget(c.Flow)
			continue
		}
		s.sent, s.hit = c.Bytes-min(c.Bytes, s.now.bytes), c.Congested > s.now.congested
		s.now = count{c.Bytes, c.Congested}
		if s.now.bytes < s.base.bytes || s.now.congested < s.base.congested {
			s.base = s.now // the switch was restarted, or the entry was written anew
		}
		s.row = len(t.rows)
		t.rows = append(t.rows, s)
	}
	for _, congested := range [...]bool{false, true} {
		for _, s := range t.rows {
			if s.sent > 0 && s.hit == congested {
				s.use()
			}
		}
	}
	t.before, t.rows = t.rows, t.before
	// Flows whose entries should be in the table but are not may be learned again.
	for _, s := range t.rows {
		if !s.gone && s.seen != reading {
			t.drop(s.flow, s)
		}
	}
	for _, f := range t.fresh {
		if s := t.flows[f]; s != nil && s.seen != reading {
			t.drop(f, s)
		}
	}
	t.fresh = t.fresh[:0]
}

// sent clears a map and fills it with the bytes that each pair of addresses sent between the last two readings. Pairs that
// sent nothing are left out.
func (t *learned) sent(by map[FlowKey]uint64) map[FlowKey]uint64 {
	clear(by)
	for _, s := range t.before {
		if s.sent > 0 {
			by[s.flow.FlowKey] += s.sent
		}
	}
	return by
}

// find returns the state of a flow, nil when it is not in the table.
func (t *learned) find(f Flow, at *int) *flowState {
	if *at < len(t.before) {
		if s := t.before[*at]; s.flow == f && !s.gone {
			*at++
			return s
		}
	}
	s := t.flows[f]
	if s != nil {
		*at = s.row + 1
	}
	return s
}

// write makes some of the planned changes, at most writeMost additions and as many removals.
func (t *learned) write(sw Switch, st *LoopStats) error {
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
		t.add = slices.Delete(t.add, 0, n)
		return nil
	}
	refused, err := sw.Write(add, remove)
	if errors.Is(err, ErrBusy) {
		return nil
	}
	for _, f := range remove {
		delete(t.removing, f)
	}
	t.remove = slices.Delete(t.remove, 0, len(remove))
	t.add = slices.Delete(t.add, 0, n)
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
			t.drop(f, s)
		}
	}
	st.Flows = len(t.flows)
	return err
}

// Meter computes the differences of the counters of a flow table that a loop elsewhere keeps. Its owner calls it
// from one goroutine at a time.
type Meter struct {
	most      int
	begun     bool
	last, now map[Flow]uint64    // bytes at the reading before, and at this one
	sent      map[FlowKey]uint64 // scratch of Read
}

// NewMeter returns a meter for a table of at most most flows.
func NewMeter(most int) *Meter {
	return &Meter{most: most, last: map[Flow]uint64{}, now: map[Flow]uint64{}, sent: map[FlowKey]uint64{}}
}

// Read takes the counters of all flows and returns the bytes that each pair of addresses has sent since the last
// Read. The first Read returns none, and the map is valid until the next. All bytes of a new flow count. A counter
// that fell counts as no bytes, because the switch restarted or the entry was written anew.
func (m *Meter) Read(counts []Counters) map[FlowKey]uint64 {
	clear(m.now)
	clear(m.sent)
	for _, c := range counts {
		if c.Partial || len(m.now) >= m.most {
			continue
		}
		m.now[c.Flow] = c.Bytes
		if n := c.Bytes - min(c.Bytes, m.last[c.Flow]); n > 0 && m.begun {
			m.sent[c.FlowKey] += n
		}
	}
	m.last, m.now, m.begun = m.now, m.last, true
	return m.sent
}

// QueuePair is a queue pair of a source. The acknowledgements from its destination name it. Data
// packets name the destination's queue pair, so a switch that sees only data does not know it.
type QueuePair struct {
	FlowKey
	QP uint32 // 1 to packet.MaxQP
}

// QueuePairTable is the switch's table of known queue pairs, which it does not report any more.
type QueuePairTable interface {
	// QueuePairs appends the queue pairs in the table to dst.
	QueuePairs(dst []QueuePair) ([]QueuePair, error)
	// WriteQueuePairs adds queue pairs to the table and removes others. It is no error to add a pair that is in
	// the table, or to remove one that is not. When WriteQueuePairs returns ErrBusy it has done nothing, and the
	// loop calls it again.
	WriteQueuePairs(add, remove []QueuePair) error
}

// mostNotified bounds the frames of one notification.
const mostNotified = 16

// unknownQP is the queue pair in a notification to a source without known queue pairs.
var unknownQP = []uint32{0}

// queuePairs are the sources' queue pairs that a loop knows. A notification is one frame for each queue pair between two
// addresses, because a NIC slows down only the queue pair that a frame names.
type queuePairs struct {
	table QueuePairTable // nil: none can be learned
	most  int

	begun       bool // the table's contents have been read
	known       map[QueuePair]bool
	of          map[FlowKey][]uint32
	ofSource    map[netip.Addr]int // number of known queue pairs per source
	add, remove []QueuePair        // to be written
	scratch     []uint32
}

func newQueuePairs(t QueuePairTable, most int) queuePairs {
	return queuePairs{table: t, most: most, known: map[QueuePair]bool{}, of: map[FlowKey][]uint32{}, ofSource: map[netip.Addr]int{}}
}

// enter adds a queue pair. It returns false if the pair is known, or if the table or the source's share of it is full. The
// share also bounds the work of a notification. Known queue pairs leave by age.
func (q *queuePairs) enter(p QueuePair) bool {
	if q.table == nil || p.QP == 0 || q.known[p] || len(q.known) >= q.most || q.ofSource[p.Src] >= max(q.most/sourceShare, sourceLeast) {
		return false
	}
	q.known[p] = true
	q.ofSource[p.Src]++
	q.of[p.FlowKey] = append(q.of[p.FlowKey], p.QP)
	return true
}

// learn plans an entry for a queue pair. With the entry the switch does not report the pair again.
func (q *queuePairs) learn(p QueuePair) {
	if q.enter(p) {
		q.add = append(q.add, p)
	}
}

// forget plans to remove the entry of a queue pair.
func (q *queuePairs) forget(p QueuePair) {
	if !q.known[p] {
		return
	}
	delete(q.known, p)
	if q.ofSource[p.Src]--; q.ofSource[p.Src] == 0 {
		delete(q.ofSource, p.Src)
	}
	q.remove = append(q.remove, p)
	list := slices.DeleteFunc(q.of[p.FlowKey], func(qp uint32) bool { return qp == p.QP })
	if q.of[p.FlowKey] = list; len(list) == 0 {
		delete(q.of, p.FlowKey)
	}
}

// write makes some of the planned changes, at most writeMost additions and as many removals. At
// first it adopts the queue pairs of an earlier loop, which the switch does not report.
func (q *queuePairs) write() error {
	if q.table == nil {
		return nil
	}
	if !q.begun {
		left, err := q.table.QueuePairs(nil)
		if err != nil {
			return err
		}
		q.begun = true
		for _, p := range left {
			if !q.enter(p) && !q.known[p] {
				q.remove = append(q.remove, p)
			}
		}
	}
	remove, add := q.remove[:min(len(q.remove), writeMost)], q.add[:min(len(q.add), writeMost)]
	if len(add)+len(remove) == 0 {
		return nil
	}
	err := q.table.WriteQueuePairs(add, remove)
	if errors.Is(err, ErrBusy) {
		return nil
	}
	q.remove = slices.Delete(q.remove, 0, len(remove))
	q.add = slices.Delete(q.add, 0, len(add))
	return err
}

// notified returns the queue pairs to name in a notification to a source, at most mostNotified. The next call
// returns the next ones. If no queue pair of the source is known it returns 0. The list is valid until the next
// call.
func (q *queuePairs) notified(k FlowKey) []uint32 {
	list := q.of[k]
	switch {
	case len(list) == 0:
		return unknownQP
	case len(list) <= mostNotified:
		return list
	}
	q.scratch = append(q.scratch[:0], list[:mostNotified]...)
	copy(list[copy(list, list[mostNotified:]):], q.scratch)
	return q.scratch
}
