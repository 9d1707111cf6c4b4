package cnpgen

// Meter takes the differences of the counters of a flow table that a loop elsewhere keeps. Its owner calls it from one
// goroutine at a time.
type Meter struct {
	table   learned
	reading uint64
	bytes   map[FlowKey]uint64 // scratch of Read
}

// NewMeter returns a meter for a table of at most so many flows.
func NewMeter(most int) *Meter {
	return &Meter{table: newLearned(most, func(uint32) bool { return true }), bytes: map[FlowKey]uint64{}}
}

// Read takes the counters of all flows. It returns what pairs of addresses have sent since the reading before, nothing for the
// first one; the map is good until the next. A flow that is new has sent all that it is counted with, and one
// whose counters went back, in a switch that was restarted or an entry that was written anew, nothing.
func (m *Meter) Read(counts []Counters) map[FlowKey]uint64 {
	m.reading++
	for _, c := range counts {
		if m.reading > 1 && m.table.flows[c.Flow] == nil && len(m.table.flows) < m.table.most {
			m.table.flows[c.Flow] = &flowState{}
		}
	}
	m.table.read(counts, 0, m.reading)
	m.table.remove = m.table.remove[:0] // the table is another's
	clear(m.table.removing)
	return m.table.sent(m.bytes)
}
