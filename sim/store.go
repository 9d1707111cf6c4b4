package sim

// store holds the packets of a partition's links and queues. Each list of packets is a chain of blocks, which are
// allocated and freed as it grows and shrinks. So the packets of a list are contiguous, and a block that is
// allocated is one that was freed a moment ago and is in the cache.
type store struct {
	slots []packet // the first of each block names the next one; block 0 stands for none
	free  int32    // the first slot of the first free block
	left  int32    // of the block that is free once another is left
}

// block is the number of slots of a block, a power of two: three cache lines of 64 B.
const (
	block   = 8
	inBlock = block - 1
)

func newStore() store { return store{slots: make([]packet, block, 256*block)} }

// list is a first-in first-out list of packets in a store.
type list struct {
	head, tail int32 // slots of the first and the last, 0 for none
}

// push puts a copy of a packet at the end of a list and returns it, for changes: changing the original first would
// stall the copy.
func (s *store) push(l *list, e *packet) *packet {
	i := l.tail + 1
	if i&inBlock < 2 { // behind a block's end, or the first of all
		i = s.extend(l)
	}
	l.tail = i
	to := &s.slots[i]
	*to = *e
	return to
}

// extend gives a list another block and returns its first slot for a packet.
func (s *store) extend(l *list) int32 {
	b := s.free
	if b != 0 {
		s.free = s.slots[b].extra
	} else {
		b = int32(len(s.slots))
		s.slots = append(s.slots, make([]packet, block)...)
	}
	if l.tail == 0 {
		l.head = b + 1
	} else {
		s.slots[l.tail&^inBlock].extra = b
	}
	return b + 1
}

// pop takes the first packet, which stays where it is until the next pop; the list must not be empty.
func (s *store) pop(l *list) *packet {
	i := l.head
	e := &s.slots[i]
	l.head++
	if i == l.tail || l.head&inBlock == 0 {
		s.shrink(l, i)
	}
	return e
}

// shrink returns the block of slot i, which was its last slot in use.
func (s *store) shrink(l *list, i int32) {
	b := i &^ inBlock
	if i == l.tail {
		*l = list{}
	} else {
		l.head = s.slots[b].extra + 1
	}
	if s.left != 0 {
		s.slots[s.left].extra = s.free
		s.free = s.left
	}
	s.left = b
}

// each calls fn for each packet of a list from the first on, until it returns false.
func (s *store) each(l list, fn func(*packet) bool) {
	for i := l.head; i != 0; i++ {
		if i&inBlock == 0 {
			i = s.slots[i-block].extra + 1
		}
		if !fn(&s.slots[i]) || i == l.tail {
			return
		}
	}
}
