package cnpgen

import (
	"errors"
	"net/netip"
	"slices"
)

// QueuePair is a queue pair of a source. The acknowledgements from its destination name it. Data
// packets name the destination's queue pair, so a switch that sees only data does not know it.
type QueuePair struct {
	FlowKey
	QP uint32 // 1 to packet.MaxQP
}

// QueuePairTable is the switch's table of known queue pairs, which it does not report any more.
type QueuePairTable interface {
	// QueuePairs appends those that are in the table.
	QueuePairs(dst []QueuePair) ([]QueuePair, error)
	// WriteQueuePairs adds queue pairs to the table and removes others. It is no error if one
	// to be added is there already, or one to be removed is not. When it returns ErrBusy it
	// has done nothing, and the loop calls it again.
	WriteQueuePairs(add, remove []QueuePair) error
}

// mostNotified bounds the number of frames that one notification is sent as.
const mostNotified = 16

// unknownQP is the queue pair of a notification to a source of which none is known.
var unknownQP = []uint32{0}

// queuePairs are the sources' queue pairs that a loop knows. PACC counts by pairs of addresses, so a
// notification is for all queue pairs from one address to the other. It is one frame for each,
// because a NIC slows down only the queue pair that a frame names.
type queuePairs struct {
	table QueuePairTable // nil: none can be learned
	most  int

	begun       bool // the table's contents have been read
	known       map[QueuePair]bool
	of          map[FlowKey][]uint32
	ofSource    map[netip.Addr]int // how many of known
	add, remove []QueuePair        // to be written
	scratch     []uint32
}

func newQueuePairs(t QueuePairTable, most int) queuePairs {
	return queuePairs{table: t, most: most, known: map[QueuePair]bool{}, of: map[FlowKey][]uint32{}, ofSource: map[netip.Addr]int{}}
}

// enter adds a queue pair. It returns false when the pair is known already or there is no room: in the table, or in the
// share of its source, which also bounds what a notification to it looks at. Those that are known leave by their age.
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
// first it adopts the queue pairs that an earlier loop wrote, because the switch does not report
// them.
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

// notified returns the queue pairs that a notification to a source is for, 0 when none is known. If
// there are more than mostNotified, it returns that many, and the next ones in the next call. The
// list is valid until the next call.
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
