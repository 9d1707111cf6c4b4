package sim

// store holds the packets of a partition's links and queues, as linked lists.
type store struct {
	slots []slot // slot 0 means none
	free  int32  // the first free slot
	left  int32  // slot of the packet taken last; it becomes free when another is taken
}

type slot struct {
	packet
	next int32 // next slot in its list, or next free slot; 0 for none
}

func newStore() store { return store{slots: make([]slot, 1, 1024)} }

// list is a first-in first-out list of packets in a store.
type list struct {
	head, tail int32 // slots of the first and the last, 0 for none
}

// push appends a copy of a packet to a list and returns the copy. Callers change the copy, not the original,
// because changing the original first would stall the copying.
func (s *store) push(l *list, e *packet) *packet {
	i := s.free
	if i == 0 {
		i = int32(len(s.slots))
		s.slots = append(s.slots, slot{})
	}
	to := &s.slots[i]
	s.free = to.next
	to.packet, to.next = *e, 0
	if l.tail == 0 {
		l.head = i
	} else {
		s.slots[l.tail].next = i
	}
	l.tail = i
	return &to.packet
}

// pop takes the first packet of a list, which must not be empty. The packet stays in place until the next pop.
func (s *store) pop(l *list) *packet {
	i := l.head
	e := &s.slots[i]
	if l.head = e.next; l.head == 0 {
		l.tail = 0
	}
	if s.left != 0 {
		s.slots[s.left].next, s.free = s.free, s.left
	}
	s.left = i
	return &e.packet
}

// each calls fn for each packet of a list from the first on, until it returns false.
func (s *store) each(l list, fn func(*packet) bool) {
	for i := l.head; i != 0 && fn(&s.slots[i].packet); i = s.slots[i].next {
	}
}
