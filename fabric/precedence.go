package fabric

// NumPrecedences is how many precedences flows of a class can have.
const NumPrecedences = 16

// tails are the last packets of each precedence in each queue of a port, 0 for none, or the last
// flows in the lists of a host.
type tails [NumClasses][NumPrecedences]int32

// rank makes queues and hosts serve flows by precedence from now on.
func (s *Sim) rank() {
	if s.ranked {
		return
	}
	s.ranked = true
	for i := range s.ports { // what waits has precedence 0
		p := &s.ports[i]
		p.tails = &tails{}
		for c := range p.queues {
			if p.queues[c].head != 0 {
				p.tails[c][0] = p.queues[c].tail
			}
		}
	}
	s.nicTails = make([]tails, len(s.nics))
	for h := range s.nics {
		for c := range s.nics[h].ready {
			if q := &s.nics[h].ready[c]; q.head != 0 {
				s.nicTails[h][c][0] = q.tail
			}
		}
	}
}

// after returns behind what an entry of a precedence belongs, 0 for the head, and makes the
// entry the last of its precedence.
func (t *tails) after(class, precedence uint8, entry int32) (before int32) {
	for p := precedence; p < NumPrecedences && before == 0; p++ {
		before = t[class][p]
	}
	t[class][precedence] = entry
	return before
}

// left records that an entry has left the head.
func (t *tails) left(class, precedence uint8, entry int32) {
	if t[class][precedence] == entry {
		t[class][precedence] = 0
	}
}

func (s *part) precedence(k int32) uint8 { return s.flows[s.pool.packets[k].flow].precedence }

// insert puts a packet into a queue behind those of its precedence.
func (s *part) insert(p *port, class uint8, k int32) {
	q, packets := &p.queues[class], s.pool.packets
	next := &q.head
	if before := p.tails.after(class, s.precedence(k), k); before != 0 {
		next = &packets[before].next
	}
	packets[k].next, *next = *next, k
	if packets[k].next == 0 {
		q.tail = k
	}
	p.active |= 1 << class
}

// listRanked puts a flow into its host's list behind those of its precedence.
func (s *part) listRanked(i int32) {
	f := &s.flows[i]
	q := &s.nics[f.src].ready[f.class]
	next := &q.head
	if before := s.nicTails[f.src].after(f.class, f.precedence, i); before != 0 {
		next = &s.flows[before].next
	}
	f.next, *next = *next, i
	if f.next == 0 {
		q.tail = i
	}
	s.ports[s.nicPort(f.src)].ready |= 1 << f.class
}
