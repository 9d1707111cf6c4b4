package device

import (
	"runtime"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/reconcile"
	"github.com/headgate/headgate/tests/switchtest"
)

// TestCostOfAChange: a change needs memory in proportion to the change, not to the switch's entries. A
// link event changes one group on each of a thousand switches with ten thousand entries.
func TestCostOfAChange(t *testing.T) {
	env := testenv.New(t, "../../..", nil)
	items := func(list []*p4v1.Entity) []*reconcile.Item {
		items, err := reconcile.NewItems(list)
		if err != nil {
			t.Fatal(err)
		}
		return items
	}
	// change returns a function that changes a switch with n entries and returns the bytes allocated meanwhile.
	change := func(entries int) func(session uint32) uint64 {
		large := items(routes(t, env.Pipeline, entries, 1).Entities())
		d := run(t, env, switchtest.New(t, 1))
		return func(session uint32) uint64 {
			all := append(make([]*reconcile.Item, 0, len(large)+1), large...) // of 8 bytes an entry, which its maker takes
			s := reconcile.NewState(append(all, items([]*p4v1.Entity{pipeline.CloneSession(session, 1)})...))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			d.SetDesired(Desired{Env: env, State: s})
			if r := d.Wait(t.Context()); r.Error != "" {
				t.Fatal(r.Error)
			}
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
	}
	const few, many, each = 10, 10000, 5 // bytes an entry, where sorting them takes 160
	changeFew, changeMany := change(few), change(many)
	// The least of several rounds. The loops of both devices, the test's switches and emptied pools allocate too, and
	// more so on a busy machine, where a change takes longer.
	a, b := changeFew(1), changeMany(1)
	for i := range uint32(100) {
		a, b = min(a, changeFew(2+i)), min(b, changeMany(2+i))
	}
	if b > a+each*many {
		t.Errorf("a change takes %d bytes where the switch holds %d entries, and %d where it holds %d", a, few, b, many)
	}
}
