package reconcile

import (
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/headgate/headgate/controller/pipeline"
)

// drawOverlay makes a random overlay of entries of two kinds over what drawBase makes.
func drawOverlay(t *rapid.T, p *pipeline.Pipeline, name string) *State {
	s := &State{}
	for _, id := range rapid.SliceOfDistinct(rapid.Uint32Range(1, 6), rapid.ID).Draw(t, name) {
		add(t, s, member(t, p, id, uint64(rapid.IntRange(1, 3).Draw(t, "mac"))))
	}
	if rapid.Bool().Draw(t, name+" default") {
		e, err := p.Default("queue_limit").Action("set_queue_limit", pipeline.Arg{Name: "bytes", Value: pipeline.Uint(uint64(rapid.IntRange(1, 3).Draw(t, "bytes")))}).Entity()
		add(t, s, must(t, e, err))
	}
	if s.Len() == 0 && rapid.Bool().Draw(t, name+" nil") {
		return nil
	}
	return s
}

// Restack says what Diff says of the merged states, at the cost of the overlays only.
func TestRestackIsDiffOfMerged(t *testing.T) {
	p := load(t)
	rapid.Check(t, func(t *rapid.T) {
		base := drawState(t, p, 4)
		if base.Get(ids(kindDefault, p4info(p, "queue_limit"))) == nil {
			e, err := p.Default("queue_limit").Action("set_queue_limit", pipeline.Arg{Name: "bytes", Value: pipeline.Uint(9)}).Entity()
			add(t, base, must(t, e, err)) // a default that is ever set is always stated
		}
		before := base.Len()
		from, to := drawOverlay(t, p, "from"), drawOverlay(t, p, "to")
		want, got := Diff(Merge(base, from), Merge(base, to), nil), Restack(base, from, to)
		if len(want.Batches) != len(got.Batches) {
			t.Fatalf("batches %v, want %v", got.Batches, want.Batches)
		}
		for i, batch := range want.Batches {
			if !proto.Equal(&p4v1.WriteRequest{Updates: batch}, &p4v1.WriteRequest{Updates: got.Batches[i]}) {
				t.Fatalf("batch %v, want %v", got.Batches[i], batch)
			}
		}
		if base.Len() != before {
			t.Fatal("the base was changed")
		}
		// What a plan shows is the difference to base: the overlay is none.
		if d := Diff(Unstack(Merge(base, from), base, from), base, nil); d.Len() != 0 {
			t.Fatalf("the overlay is shown as a difference: %v", d)
		}
	})
}

func p4info(p *pipeline.Pipeline, table string) uint32 {
	e, err := p.Default(table).Action("set_queue_limit", pipeline.Arg{Name: "bytes", Value: pipeline.Uint(1)}).Entity()
	if err != nil {
		return 0
	}
	return e.GetTableEntry().GetTableId()
}

// Default entries, which turn features on and off, change after all entries are in and
// before any is deleted.
func TestDefaultsChangeBetween(t *testing.T) {
	p := load(t)
	limit := func(port, bytes uint64) *p4v1.Entity {
		e, err := p.Entry("queue_limit").Exact("egress_port", pipeline.Uint(port)).Exact("queue", pipeline.Uint(0)).
			Action("set_queue_limit", pipeline.Arg{Name: "bytes", Value: pipeline.Uint(bytes)}).Entity()
		return must(t, e, err)
	}
	normal := func(bytes uint64) *p4v1.Entity {
		e, err := p.Default("queue_limit").Action("set_queue_limit", pipeline.Arg{Name: "bytes", Value: pipeline.Uint(bytes)}).Entity()
		return must(t, e, err)
	}
	have, want := &State{}, &State{}
	for _, e := range []*p4v1.Entity{normal(1), limit(1, 1), limit(2, 1)} {
		add(t, have, e)
	}
	for _, e := range []*p4v1.Entity{normal(2), limit(2, 2), limit(3, 2)} {
		add(t, want, e)
	}
	plan := Diff(have, want, nil)
	if len(plan.Batches) != 3 || len(plan.Batches[0]) != 2 || len(plan.Batches[1]) != 1 || len(plan.Batches[2]) != 1 {
		t.Fatalf("plan = %v", plan)
	}
	if !plan.Batches[1][0].GetEntity().GetTableEntry().GetIsDefaultAction() || plan.Batches[2][0].GetType() != p4v1.Update_DELETE {
		t.Errorf("plan = %v", plan)
	}
}
