package cnpgen

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/headgate/headgate/units"
)

// pairTable is a switch's table of queue pairs.
type pairTable struct {
	rows   map[QueuePair]bool
	fail   error
	writes int
}

func (t *pairTable) QueuePairs(dst []QueuePair) ([]QueuePair, error) {
	return slices.AppendSeq(dst, maps.Keys(t.rows)), t.fail
}

func (t *pairTable) WriteQueuePairs(add, remove []QueuePair) error {
	t.writes++
	if t.fail != nil {
		return t.fail
	}
	for _, p := range remove {
		delete(t.rows, p)
	}
	for _, p := range add {
		t.rows[p] = true
	}
	return nil
}

// A notification goes to every queue pair that acknowledgements have named for the pair of
// addresses, or to queue pair 0 if they named none.
func TestNotificationsGoToQueuePairs(t *testing.T) {
	f := newFake(t, 100)
	table := &pairTable{rows: map[QueuePair]bool{}}
	f.loop.pairs.table = table
	a := flow(1, 1)
	traffic := map[Flow]sender{a: {100_000, 60}}
	f.run(t, period)
	f.send(traffic) // learned
	f.run(t, 2*period)
	f.queues[1] = 125*units.KB + 100*units.KB // 5 CNPs a period
	at := 2 * period
	periodOf := func() map[uint32]int {
		t.Helper()
		f.qps = nil
		f.send(traffic)
		at += period
		f.run(t, at)
		count := map[uint32]int{}
		for _, qp := range f.qps {
			count[qp]++
		}
		return count
	}
	periodOf() // the queue's growth adds CNPs
	if got := periodOf(); len(got) != 1 || got[0] != 5 {
		t.Fatalf("CNPs by queue pair %v, want 5 to queue pair 0", got)
	}
	pair := func(qp uint32) QueuePair { return QueuePair{a.FlowKey, qp} }
	f.loop.LearnedQueuePairs(pair(7), pair(8), pair(7), pair(0), QueuePair{flow(1, 9).FlowKey, 7})
	if !f.loop.Pending() {
		t.Error("nothing is to be written")
	}
	if got := periodOf(); got[7] != 5 || got[8] != 5 || len(got) != 2 {
		t.Errorf("CNPs by queue pair %v, want 5 each to 7 and 8", got)
	}
	if st := f.loop.Stats(); st.QueuePairs != 3 || len(table.rows) != 3 || table.writes != 1 {
		t.Errorf("%d queue pairs, in the switch %v by %d writes, want 3 by one", st.QueuePairs, table.rows, table.writes)
	}
	f.loop.AgedQueuePairs(pair(7), pair(99))
	if got := periodOf(); got[8] != 5 || len(got) != 1 || table.rows[pair(7)] || len(table.rows) != 2 {
		t.Errorf("CNPs by queue pair %v with %v in the switch, want 5 to 8", got, table.rows)
	}
}

// If there are more queue pairs than frames of a notification, they are notified in turn.
func TestManyQueuePairsTakeTurns(t *testing.T) {
	q := newQueuePairs(&pairTable{rows: map[QueuePair]bool{}}, 1000)
	key := flow(1, 1).FlowKey
	for qp := range uint32(40) {
		q.learn(QueuePair{key, qp + 1})
	}
	count := map[uint32]int{}
	for range 5 {
		for _, qp := range q.notified(key) {
			count[qp]++
		}
	}
	for qp := range uint32(40) {
		if count[qp+1] != 2 {
			t.Fatalf("after 80 frames to 40 queue pairs: %v, want 2 each", count)
		}
	}
}

// The loop takes over an earlier loop's entries in the switch, as far as there is room. A failing
// switch is asked again.
func TestQueuePairsAreTakenOver(t *testing.T) {
	key := flow(1, 1).FlowKey
	table := &pairTable{rows: map[QueuePair]bool{{key, 3}: true, {key, 4}: true}, fail: errors.New("down")}
	q := newQueuePairs(table, 1)
	if err := q.write(); err == nil {
		t.Fatal("no error of a table that cannot be read")
	}
	table.fail = nil
	if err := q.write(); err != nil || len(q.known) != 1 || len(table.rows) != 1 {
		t.Fatalf("known %v, in the switch %v, %v; want one", q.known, table.rows, err)
	}
	q.learn(QueuePair{key, 5})
	if len(q.known) != 1 {
		t.Errorf("known %v, want no more than there is room for", q.known)
	}
	for p := range table.rows {
		q.forget(p)
	}
	table.fail = ErrBusy
	if err := q.write(); err != nil || len(q.remove) != 1 {
		t.Errorf("busy: %v, %d to remove, want to ask again", err, len(q.remove))
	}
	table.fail = nil
	if err := q.write(); err != nil || len(table.rows) != 0 || len(q.of) != 0 {
		t.Errorf("%v, in the switch %v, known %v", err, table.rows, q.of)
	}
}

// TestQueuePairsOfOneSource: an address with very many queue pairs leaves room for other addresses.
func TestQueuePairsOfOneSource(t *testing.T) {
	const most = 1600
	q := newQueuePairs(&pairTable{rows: map[QueuePair]bool{}}, most)
	of := func(n byte, qp int) QueuePair { return QueuePair{flow(1, n).FlowKey, uint32(qp)} }
	for qp := range most {
		q.learn(of(1, qp+1))
	}
	if q.learn(of(2, 1)); len(q.known) != most/sourceShare+1 || !q.known[of(2, 1)] {
		t.Errorf("%d queue pairs are known, want %d and one of another source", len(q.known), most/sourceShare)
	}
	q.forget(of(1, 1))
	if q.learn(of(1, most)); !q.known[of(1, most)] {
		t.Error("a queue pair finds no room where one has left")
	}
	for p := range q.known {
		q.forget(p)
	}
	if len(q.of)+len(q.ofSource) != 0 {
		t.Errorf("%d and %d are left", len(q.of), len(q.ofSource))
	}
}
