package sim

// store holds the packets of a partition's links and queues, as linked lists.
type store struct {
	slots []slot // slot 0 stands for none
	free  int32  // the first free slot
	left  int32  // of the packet taken last: free once another is taken
}

type slot struct {
	packet
	next int32 // in its list, or of the free slots; 0 for none
}

func newStore() store { return store{slots: make([]slot, 1, 1024)} }

// list is a first-in first-out list of packets in a store.
type list struct {
	head, tail int32 // slots of the first and the last, 0 for none
}

// push puts a copy of a packet at the end of a list and returns it, for changes: changing the original first would
// stall the copy.
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

// pop takes the first packet, which stays where it is until the next pop; the list must not be empty.
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
