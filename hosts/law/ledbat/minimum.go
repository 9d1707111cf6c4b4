package ledbat

import "github.com/headgate/headgate/units"

// maxKept bounds the delays and intervals that are kept.
const maxKept = 16

// minimum is the least of the last few values, at most maxKept.
type minimum struct {
	kept [maxKept]units.Time
	n    int // values kept
	next int // where the next goes
}

// add keeps v as the latest of at most size values.
func (m *minimum) add(v units.Time, size int) {
	m.kept[m.next] = v
	m.next = (m.next + 1) % size
	m.n = min(m.n+1, size)
}

// lower makes the latest value no larger than v; there must be one.
func (m *minimum) lower(v units.Time, size int) {
	last := (m.next + size - 1) % size
	m.kept[last] = min(m.kept[last], v)
}

// get returns the least value kept; there must be one.
func (m *minimum) get() units.Time {
	least := m.kept[0]
	for _, v := range m.kept[1:m.n] {
		least = min(least, v)
	}
	return least
}
