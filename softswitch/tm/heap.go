package tm

import "github.com/headgate/headgate/units"

// place puts a port where its next departure belongs in the heap, or takes it out when it
// has nothing to send. A port that is sending waits for Done.
func (m *Manager) place(p *port) {
	if p.sending >= 0 {
		return
	}
	at := p.next()
	if at == units.MaxTime {
		m.remove(p)
		return
	}
	p.departure = at
	if p.index < 0 {
		p.index = len(m.heap)
		m.heap = append(m.heap, p)
	}
	if len(m.heap) == 1 {
		return
	}
	m.down(p.index)
	m.up(p.index)
}

// remove takes a port out of the heap, if it is there.
func (m *Manager) remove(p *port) {
	i := p.index
	if i < 0 {
		return
	}
	last := len(m.heap) - 1
	m.swap(i, last)
	m.heap[last] = nil
	m.heap = m.heap[:last]
	p.index = -1
	if i < last {
		m.down(i)
		m.up(i)
	}
}

// before orders ports by departure; ties go to the port that was added first, so that
// runs are repeatable.
func (m *Manager) before(i, j int) bool {
	a, b := m.heap[i], m.heap[j]
	return a.departure < b.departure || a.departure == b.departure && a.order < b.order
}

func (m *Manager) swap(i, j int) {
	h := m.heap
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (m *Manager) up(i int) {
	for i > 0 && m.before(i, (i-1)/2) {
		m.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (m *Manager) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(m.heap) {
			return
		}
		if c+1 < len(m.heap) && m.before(c+1, c) {
			c++
		}
		if !m.before(c, i) {
			return
		}
		m.swap(i, c)
		i = c
	}
}
