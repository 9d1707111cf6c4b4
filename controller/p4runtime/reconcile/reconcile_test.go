package reconcile

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src"
)

func load(t interface{ Fatal(...any) }) *pipeline.Pipeline {
	p, err := pipeline.Load(p4src.P4Info, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

type fataler interface{ Fatal(...any) }

func must(t fataler, e *p4v1.Entity, err error) *p4v1.Entity {
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func member(t fataler, p *pipeline.Pipeline, id uint32, mac uint64) *p4v1.Entity {
	e, err := p.Member("ecmp", id, "set_next_hop", pipeline.Arg{Name: "port", Value: p4rtmsg.Uint(uint64(id))},
		pipeline.Arg{Name: "src_mac", Value: p4rtmsg.Uint(2)}, pipeline.Arg{Name: "dst_mac", Value: p4rtmsg.Uint(mac)})
	return must(t, e, err)
}

func add(t fataler, s *State, e *p4v1.Entity) {
	if err := s.Add(e); err != nil {
		t.Fatal(err)
	}
}

// drawState makes a random state without dangling references.
func drawState(t *rapid.T, p *pipeline.Pipeline, size int) *State {
	s := &State{}
	var members, groups []uint32
	for id := uint32(1); id <= 4; id++ {
		if rapid.Bool().Draw(t, "member") {
			members = append(members, id)
			add(t, s, member(t, p, id, uint64(rapid.IntRange(1, 2).Draw(t, "mac"))))
		}
	}
	for id := uint32(1); id <= 3 && len(members) > 0; id++ {
		if rapid.Bool().Draw(t, "group") {
			groups = append(groups, id)
			set := rapid.SliceOfNDistinct(rapid.SampledFrom(members), 1, -1, rapid.ID).Draw(t, "members")
			e, err := p.Group("ecmp", id, set)
			add(t, s, must(t, e, err))
		}
	}
	for _, host := range rapid.SliceOfNDistinct(rapid.IntRange(1, 12), 0, size, rapid.ID).Draw(t, "routes") {
		b := p.Entry("ipv4_lpm").LPM("dst_addr", p4rtmsg.Uint(uint64(0x0a000000+host)), 32)
		switch {
		case len(groups) > 0 && rapid.Bool().Draw(t, "to a group"):
			b.Group(rapid.SampledFrom(groups).Draw(t, "to"))
		case len(members) > 0:
			b.Member(rapid.SampledFrom(members).Draw(t, "to"))
		default:
			continue
		}
		e, err := b.Entity()
		add(t, s, must(t, e, err))
	}
	if rapid.Bool().Draw(t, "default") {
		e, err := p.Default("maxqd_scale").Action("set_scale", pipeline.Arg{Name: "shift", Value: p4rtmsg.Uint(uint64(rapid.IntRange(0, 2).Draw(t, "shift")))}).Entity()
		add(t, s, must(t, e, err))
	}
	if rapid.Bool().Draw(t, "clone") {
		add(t, s, pipeline.CloneSession(510, uint32(rapid.IntRange(1, 2).Draw(t, "port"))))
	}
	if rapid.Bool().Draw(t, "multicast") {
		add(t, s, pipeline.Multicast(1, 1, 2))
	}
	return s
}

// device is a switch that follows the specification and checks every step.
type device struct {
	t     *rapid.T
	state map[Key]*p4v1.Entity
	size  int
}

func (d *device) write(u *p4v1.Update) {
	k, err := KeyOf(u.GetEntity())
	if err != nil {
		d.t.Fatal(err)
	}
	_, exists := d.state[k]
	switch u.GetType() {
	case p4v1.Update_INSERT:
		if exists || k.kind() == kindDefault {
			d.t.Fatalf("insert of what is there: %v", u)
		}
		d.state[k] = u.GetEntity()
	case p4v1.Update_MODIFY:
		if !exists && k.kind() != kindDefault {
			d.t.Fatalf("modify of what is not there: %v", u)
		}
		d.state[k] = u.GetEntity()
	case p4v1.Update_DELETE:
		if !exists || k.kind() == kindDefault {
			d.t.Fatalf("delete of what is not there: %v", u)
		}
		delete(d.state, k)
	}
	d.check(u)
}

// check looks for dangling references and overfull tables.
func (d *device) check(u *p4v1.Update) {
	entries := 0
	for k, e := range d.state {
		switch k.kind() {
		case kindGroup:
			for _, m := range e.GetActionProfileGroup().GetMembers() {
				d.exists(ids(kindMember, e.GetActionProfileGroup().GetActionProfileId(), m.GetMemberId()), u)
			}
		case kindEntry:
			entries++
			const profile = 0x11020001
			switch a := e.GetTableEntry().GetAction().GetType().(type) {
			case *p4v1.TableAction_ActionProfileGroupId:
				d.exists(ids(kindGroup, profile, a.ActionProfileGroupId), u)
			case *p4v1.TableAction_ActionProfileMemberId:
				d.exists(ids(kindMember, profile, a.ActionProfileMemberId), u)
			}
		}
	}
	if entries > d.size {
		d.t.Fatalf("%d entries in a table for %d after %v", entries, d.size, u)
	}
}

func (d *device) exists(k Key, u *p4v1.Update) {
	if _, ok := d.state[k]; !ok {
		d.t.Fatalf("something refers to what is not there after %v", u)
	}
}

func TestPlanLeadsFromHaveToWant(t *testing.T) {
	p := load(t)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 8).Draw(t, "size")
		have, want := drawState(t, p, size), drawState(t, p, size)
		plan := Diff(have, want, func(uint32) int { return size })
		d := &device{t: t, state: map[Key]*p4v1.Entity{}, size: size}
		for k, e := range have.entities {
			d.state[k] = e
		}
		for _, batch := range plan.Batches {
			for _, u := range rapid.Permutation(batch).Draw(t, "order") {
				d.write(u)
			}
		}
		for k, e := range want.entities {
			if !proto.Equal(d.state[k], e) {
				t.Fatalf("want %v, got %v", e, d.state[k])
			}
		}
		for k := range d.state {
			if want.entities[k] == nil && k.kind() != kindDefault {
				t.Fatalf("left behind: %v", d.state[k])
			}
		}
		if again := Diff(&State{entities: d.state}, want, nil); again.Len() != 0 {
			t.Fatalf("not idempotent: %v", again)
		}
		if i, m, del := plan.Count(); i+m+del != plan.Len() {
			t.Fatalf("counts %d, %d, %d of %d", i, m, del, plan.Len())
		}
		if plan.Len() > have.Len()+want.Len() {
			t.Fatalf("%d updates", plan.Len())
		}
	})
}

func TestModifyInsteadOfReplace(t *testing.T) {
	p := load(t)
	have, want := &State{}, &State{}
	add(t, have, member(t, p, 1, 1))
	add(t, want, member(t, p, 1, 2))
	plan := Diff(have, want, nil)
	if i, m, d := plan.Count(); i != 0 || m != 1 || d != 0 {
		t.Errorf("%d inserts, %d modifies, %d deletes, want one modify", i, m, d)
	}
}

func TestDuplicate(t *testing.T) {
	p := load(t)
	s := &State{}
	add(t, s, member(t, p, 1, 1))
	if err := s.Add(member(t, p, 1, 2)); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("error = %v", err)
	}
	if err := s.Add(&p4v1.Entity{}); err == nil {
		t.Error("an empty entity is fine")
	}
}

// TestKeysDiffer checks that no two entries have the same encoded key.
func TestKeysDiffer(t *testing.T) {
	entry := func(priority int32, matches ...*p4v1.FieldMatch) *p4v1.Entity {
		return p4rtmsg.Entity(&p4v1.TableEntry{TableId: 7, Priority: priority, Match: matches})
	}
	exact := func(id uint32, v ...byte) *p4v1.FieldMatch {
		return &p4v1.FieldMatch{FieldId: id, FieldMatchType: &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: v}}}
	}
	ternary := func(v, mask []byte) *p4v1.FieldMatch {
		return &p4v1.FieldMatch{FieldId: 1, FieldMatchType: &p4v1.FieldMatch_Ternary_{Ternary: &p4v1.FieldMatch_Ternary{Value: v, Mask: mask}}}
	}
	lpm := func(n int32, v ...byte) *p4v1.FieldMatch {
		return &p4v1.FieldMatch{FieldId: 1, FieldMatchType: &p4v1.FieldMatch_Lpm{Lpm: &p4v1.FieldMatch_LPM{Value: v, PrefixLen: n}}}
	}
	rng := func(low, high []byte) *p4v1.FieldMatch {
		return &p4v1.FieldMatch{FieldId: 1, FieldMatchType: &p4v1.FieldMatch_Range_{Range: &p4v1.FieldMatch_Range{Low: low, High: high}}}
	}
	optional := &p4v1.FieldMatch{FieldId: 1, FieldMatchType: &p4v1.FieldMatch_Optional_{Optional: &p4v1.FieldMatch_Optional{Value: []byte{1}}}}
	list := []*p4v1.Entity{
		entry(0), entry(1), entry(0, exact(1, 1)), entry(0, exact(2, 1)), entry(0, exact(1, 1, 2)), entry(0, exact(1, 1), exact(2, 2)),
		entry(0, exact(1, 1, 0, 0, 0, 2, 'e', 1, 2)), entry(0, lpm(8, 1)), entry(0, lpm(9, 1)), entry(0, optional),
		entry(1, ternary([]byte{1}, []byte{1, 1})), entry(1, ternary([]byte{1, 1}, []byte{1})), entry(1, rng([]byte{1}, []byte{1, 1})),
		{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{TableId: 7, IsDefaultAction: true}}},
	}
	seen := map[Key]int{}
	for i, e := range list {
		k, err := KeyOf(e)
		if err != nil {
			t.Fatal(err)
		}
		if j, twice := seen[k]; twice {
			t.Errorf("entries %d and %d have one key", i, j)
		}
		seen[k] = i
	}
}

// partial is a reader that answers some kinds of entities with an error, as targets do.
type partial struct {
	err  map[string]error // by type of the request
	list map[string][]*p4v1.Entity
}

func (r partial) Read(_ context.Context, requests ...*p4v1.Entity) ([]*p4v1.Entity, error) {
	q := requests[0]
	kind := fmt.Sprintf("%T", q.GetEntity())
	if q.GetTableEntry().GetIsDefaultAction() {
		kind = "default"
	}
	return r.list[kind], r.err[kind]
}

func TestRead(t *testing.T) {
	p := load(t)
	list := map[string][]*p4v1.Entity{fmt.Sprintf("%T", &p4v1.Entity_ActionProfileMember{}): {member(t, p, 1, 1)}}
	preKind := fmt.Sprintf("%T", &p4v1.Entity_PacketReplicationEngineEntry{})
	have, unreadable, err := Read(context.Background(), partial{
		list: list, err: map[string]error{preKind: status.Error(codes.Unimplemented, "no")},
	}, p)
	if err != nil || have.Len() != 1 || len(unreadable) != 2 {
		t.Errorf("Read = %d entities, %v, %v", have.Len(), unreadable, err)
	}
	_, _, err = Read(context.Background(), partial{err: map[string]error{"default": status.Error(codes.Unavailable, "gone")}}, p)
	if err == nil || codeOf(err) != codes.Unavailable {
		t.Errorf("error = %v", err)
	}
}

// routes returns a state with n routes over 64 groups of 4 members.
func routes(b fataler, p *pipeline.Pipeline, n int, mac uint64) *State {
	s := &State{}
	for id := uint32(1); id <= 64; id++ {
		add(b, s, member(b, p, id, mac))
		e, err := p.Group("ecmp", id, []uint32{id, id%64 + 1, (id+1)%64 + 1, (id+2)%64 + 1})
		add(b, s, must(b, e, err))
	}
	var addr [4]byte
	for i := range n {
		binary.BigEndian.PutUint32(addr[:], 0x0a000000+uint32(i))
		e, err := p.Entry("ipv4_lpm").LPM("dst_addr", addr[:], 32).Group(uint32(i%64) + 1).Entity()
		add(b, s, must(b, e, err))
	}
	return s
}

func BenchmarkDiff(b *testing.B) {
	p := load(b)
	for _, n := range []int{100, 1000, 10000} {
		want := routes(b, p, n, 1)
		for _, c := range []struct {
			name string
			have *State
		}{{"equal", routes(b, p, n, 1)}, {"empty", &State{}}, {"members", routes(b, p, n, 2)}} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					Diff(c.have, want, p.TableSize)
				}
			})
		}
	}
}

func BenchmarkDesired(b *testing.B) {
	p := load(b)
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				routes(b, p, n, 1)
			}
		})
	}
}

// reading answers every request with the same entities.
type reading []*p4v1.Entity

func (r reading) Read(_ context.Context, requests ...*p4v1.Entity) ([]*p4v1.Entity, error) {
	if requests[0].GetTableEntry() == nil || requests[0].GetTableEntry().GetIsDefaultAction() {
		return nil, nil
	}
	return r, nil
}

// Entries that a loop has learned are neither corrected nor deleted.
func TestReadLeavesLearnedTablesAlone(t *testing.T) {
	p := load(t)
	e, err := p.Entry("pacc.flow").Exact("src_addr", p4rtmsg.Uint(1)).Exact("dst_addr", p4rtmsg.Uint(2)).
		Exact("egress_port", p4rtmsg.Uint(3)).Action("count_flow").Entity()
	learned := must(t, e, err)
	e, err = p.Entry("watched_queue").Exact("egress_port", p4rtmsg.Uint(3)).Exact("queue", p4rtmsg.Uint(0)).
		Action("watch", pipeline.Arg{Name: "threshold", Value: p4rtmsg.Uint(9)}).Entity()
	wanted := must(t, e, err)
	have, unreadable, err := Read(context.Background(), reading{learned, wanted}, p)
	if err != nil || len(unreadable) != 0 || have.Len() != 1 || have.Entities()[0].GetTableEntry().GetTableId() != wanted.GetTableEntry().GetTableId() {
		t.Errorf("read %v, %v, %v, want the watched queue alone", have, unreadable, err)
	}
}

// Default entries switch features on and off. They change after all entries are inserted and before
// any is deleted.
func TestDefaultsChangeBetween(t *testing.T) {
	p := load(t)
	limit := func(port, bytes uint64) *p4v1.Entity {
		e, err := p.Entry("queue_limit").Exact("egress_port", p4rtmsg.Uint(port)).Exact("queue", p4rtmsg.Uint(0)).
			Action("set_queue_limit", pipeline.Arg{Name: "bytes", Value: p4rtmsg.Uint(bytes)}).Entity()
		return must(t, e, err)
	}
	normal := func(bytes uint64) *p4v1.Entity {
		e, err := p.Default("queue_limit").Action("set_queue_limit", pipeline.Arg{Name: "bytes", Value: p4rtmsg.Uint(bytes)}).Entity()
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
