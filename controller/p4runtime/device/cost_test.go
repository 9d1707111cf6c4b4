package device

import (
	"math"
	"runtime"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/reconcile"
	"github.com/headgate/headgate/tests/switchtest"
)

// TestCostOfAChange: a change takes memory for what it changes, and not for what the switch holds: a link
// event changes a group on each of a thousand switches of ten thousand entries.
func TestCostOfAChange(t *testing.T) {
	env := testenv.New(t, "../../..", nil)
	cost := func(entries int) uint64 {
		items := func(list []*p4v1.Entity) []*reconcile.Item {
			items, err := reconcile.NewItems(list)
			if err != nil {
				t.Fatal(err)
			}
			return items
		}
		large := items(routes(t, env.Pipeline, entries, 1).Entities())
		d := run(t, env, switchtest.New(t, 1))
		state := func(session uint32) *reconcile.State { // of 8 bytes an entry, which its maker takes
			all := append(make([]*reconcile.Item, 0, len(large)+1), large...)
			return reconcile.NewState(append(all, items([]*p4v1.Entity{pipeline.CloneSession(session, 1)})...))
		}
		reach := func(s *reconcile.State) {
			d.SetDesired(Desired{Env: env, State: s})
			if r := d.Wait(t.Context()); r.Err != "" {
				t.Fatal(r.Err)
			}
		}
		reach(state(1))
		least := uint64(math.MaxUint64) // of several: the switch of the test, and pools that were emptied, take some now and then
		for i := range uint32(100) {
			s := state(2 + i)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			reach(s)
			runtime.ReadMemStats(&after)
			least = min(least, after.TotalAlloc-before.TotalAlloc)
		}
		return least
	}
	const few, many, each = 10, 10000, 5 // bytes an entry, where sorting them takes 160
	if a, b := cost(few), cost(many); b > a+each*many {
		t.Errorf("a change takes %d bytes where the switch holds %d entries, and %d where it holds %d", a, few, b, many)
	}
}
