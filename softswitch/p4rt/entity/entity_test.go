package entity

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/digest"
	"github.com/headgate/headgate/softswitch/p4rt/internal/p4test"
	"github.com/headgate/headgate/softswitch/p4rt/schema"
	"github.com/headgate/headgate/units"
)

const cpuPort, dropPort = 510, 511

// fixture is a State of the test program, with a clock that does not move.
type fixture struct {
	*State
	clock units.Time
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	sch, err := schema.Parse(p4test.Info())
	if err != nil {
		t.Fatal(err)
	}
	prog := p4test.Program()
	if err := sch.Bind(prog); err != nil {
		t.Fatal(err)
	}
	f := &fixture{}
	f.State, err = New(sch, engine.New(prog, engine.Options{}), digest.New(sch, 1), Options{
		CPUPort: cpuPort, DropPort: dropPort, Queues: 8,
		Now: func() units.Time { return f.clock },
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) read(t testing.TB, m any) []*p4v1.Entity {
	t.Helper()
	var out []*p4v1.Entity
	if err := f.Read(p4rtmsg.Entity(m), func(x Found) { out = append(out, x.Message()) }); err != nil {
		t.Fatalf("read %v: %v", m, err)
	}
	return out
}

// wantRead checks the results of a read, in any order.
func (f *fixture) wantRead(t testing.TB, req any, want ...any) {
	t.Helper()
	var list []*p4v1.Entity
	for _, w := range want {
		list = append(list, p4rtmsg.Entity(w))
	}
	diff := cmp.Diff(list, f.read(t, req), protocmp.Transform(), protocmp.SortRepeated(func(a, b *p4v1.Entity) bool { return a.String() < b.String() }))
	if diff != "" {
		t.Errorf("read %v (-want +got):\n%s", req, diff)
	}
}

func (f *fixture) must(t testing.TB, us ...*p4v1.Update) {
	t.Helper()
	for _, u := range us {
		if err := f.Apply(u); err != nil {
			t.Fatalf("%v: %v", u, err)
		}
	}
}

func (f *fixture) fails(t testing.TB, want codes.Code, us ...*p4v1.Update) {
	t.Helper()
	for _, u := range us {
		if err := f.Apply(u); status.Code(err) != want {
			t.Errorf("%v: %v, want code %v", u, err, want)
		}
	}
}

func (f *fixture) readFails(t testing.TB, want codes.Code, reqs ...any) {
	t.Helper()
	for _, r := range reqs {
		if err := f.Read(p4rtmsg.Entity(r), func(Found) {}); status.Code(err) != want {
			t.Errorf("read %v: %v, want code %v", r, err, want)
		}
	}
}

func edit[T any](m *T, f func(*T)) *T { f(m); return m }

func l2(dst uint64, port uint64) *p4v1.TableEntry {
	return p4test.Entry("l2", 0, p4test.Do("forward", port), p4rtmsg.Exact(1, dst))
}

func acl(priority int32, match ...*p4v1.FieldMatch) *p4v1.TableEntry {
	return p4test.Entry("acl", priority, p4test.Do("acl_set", 1), match...)
}

func TestUpdatesOfNothing(t *testing.T) {
	f := newFixture(t)
	f.fails(t, codes.InvalidArgument, nil, &p4v1.Update{}, &p4v1.Update{Type: p4v1.Update_INSERT},
		&p4v1.Update{Type: 9, Entity: p4rtmsg.Entity(l2(1, 1))},
		&p4v1.Update{Entity: p4rtmsg.Entity(l2(1, 1))})
	// Entities whose message is unset.
	for _, e := range []*p4v1.Entity{
		{Entity: &p4v1.Entity_TableEntry{}}, {Entity: &p4v1.Entity_ActionProfileMember{}}, {Entity: &p4v1.Entity_ActionProfileGroup{}},
		{Entity: &p4v1.Entity_MeterEntry{}}, {Entity: &p4v1.Entity_DirectMeterEntry{}}, {Entity: &p4v1.Entity_CounterEntry{}},
		{Entity: &p4v1.Entity_DirectCounterEntry{}}, {Entity: &p4v1.Entity_PacketReplicationEngineEntry{}},
		{Entity: &p4v1.Entity_ValueSetEntry{}}, {Entity: &p4v1.Entity_RegisterEntry{}}, {Entity: &p4v1.Entity_DigestEntry{}},
	} {
		f.fails(t, codes.InvalidArgument, p4rtmsg.Modify(e), p4rtmsg.Insert(e), p4rtmsg.Delete(e))
		if err := f.Read(e, func(Found) {}); err != nil {
			t.Errorf("wildcard read of %T: %v", e.Entity, err)
		}
	}
	f.fails(t, codes.Unimplemented, p4rtmsg.Insert(&p4v1.ExternEntry{ExternTypeId: 0x81}))
	f.readFails(t, codes.Unimplemented, &p4v1.ExternEntry{ExternTypeId: 0x82})
	f.wantRead(t, &p4v1.ExternEntry{})
	f.readFails(t, codes.InvalidArgument, &p4v1.Entity{})
}

// dog is a watchdog that records its settings.
type dog struct{ set *externs.Settings }

func (d *dog) Settings() (s externs.Settings, set bool) {
	if d.set != nil {
		s = *d.set
	}
	return s, d.set != nil
}

func (d *dog) Set(s *externs.Settings) { d.set = s }

func (*dog) Storms() []externs.Storm {
	return []externs.Storm{{Port: 2, Class: 3, On: true, Count: 4, Dropped: 5}}
}

// The watchdog for received PFC is an extern that is in no P4Info.
func TestWatchdog(t *testing.T) {
	d := &dog{}
	f := newFixture(t)
	f.opts.Watchdog = d
	settings := func(detection units.Time, a externs.Action) *p4v1.ExternEntry {
		return externs.Settings{Detection: detection, Action: a}.Entity().GetExternEntry()
	}
	one, two := settings(units.Second, externs.Drop), settings(2*units.Second, externs.Alert)
	storms := externs.StormsEntity(d.Storms()).GetExternEntry()
	f.fails(t, codes.NotFound, p4rtmsg.Modify(one), p4rtmsg.Delete(one), p4rtmsg.Insert(&p4v1.ExternEntry{ExternTypeId: 0x81, ExternId: 7}))
	f.fails(t, codes.PermissionDenied, p4rtmsg.Insert(storms))
	f.fails(t, codes.Unimplemented, p4rtmsg.Insert(&p4v1.ExternEntry{ExternTypeId: 0x82}))
	f.fails(t, codes.InvalidArgument, p4rtmsg.Insert(settings(-units.Second, "")), p4rtmsg.Insert(settings(units.Second, "stop")), p4rtmsg.Insert(externs.Settings{Share: 2}.Entity().GetExternEntry()), p4rtmsg.Insert(&p4v1.ExternEntry{ExternTypeId: 0x81, ExternId: externs.SettingsID}))
	request := &p4v1.ExternEntry{ExternTypeId: 0x81, ExternId: externs.SettingsID}
	f.wantRead(t, request)
	f.must(t, p4rtmsg.Insert(one))
	f.fails(t, codes.AlreadyExists, p4rtmsg.Insert(one))
	complete := externs.Settings{Detection: units.Second, Share: externs.DefaultShare, Restoration: units.Second, Action: externs.Drop}
	if *d.set != complete {
		t.Errorf("settings %v, want %v", *d.set, complete)
	}
	f.wantRead(t, request, complete.Entity().GetExternEntry())
	f.wantRead(t, &p4v1.ExternEntry{}, complete.Entity().GetExternEntry(), storms)
	back := f.Inverse(p4rtmsg.Modify(two))
	f.must(t, p4rtmsg.Modify(two))
	f.must(t, back...)
	if *d.set != complete {
		t.Errorf("settings %v after they were taken back, want %v", *d.set, complete)
	}
	f.must(t, p4rtmsg.Delete(one))
	if d.set != nil {
		t.Errorf("settings %v after they were deleted", *d.set)
	}
	got, err := externs.ReadStorms(storms)
	if err != nil || !slices.Equal(got, d.Storms()) {
		t.Errorf("storms %v, %v", got, err)
	}
}

// The weights of queues are such an extern, too, and so are the classes that single ports obey.
func TestWeights(t *testing.T) {
	w, o := &kept[externs.Weights]{}, &kept[externs.Obeyed]{}
	f := newFixture(t)
	f.opts.Weights, f.opts.Obeyed, f.opts.Queues = w, o, 8
	one, two := externs.Weights{3, 1}.Entity().GetExternEntry(), externs.Weights{7: 9}.Entity().GetExternEntry()
	f.fails(t, codes.InvalidArgument, p4rtmsg.Insert(externs.Weights{8: 1}.Entity().GetExternEntry()))
	f.must(t, p4rtmsg.Insert(one))
	f.wantRead(t, &p4v1.ExternEntry{}, one)
	f.must(t, p4rtmsg.Modify(two))
	f.wantRead(t, &p4v1.ExternEntry{ExternTypeId: 0x81, ExternId: externs.WeightsID}, two)
	f.must(t, p4rtmsg.Delete(two))
	ports := externs.Obeyed{2: 1 << 3}.Entity().GetExternEntry()
	f.fails(t, codes.InvalidArgument, p4rtmsg.Insert(&p4v1.ExternEntry{ExternTypeId: 0x81, ExternId: externs.ObeyedID}))
	f.must(t, p4rtmsg.Insert(ports))
	f.wantRead(t, &p4v1.ExternEntry{ExternTypeId: 0x81, ExternId: externs.ObeyedID}, ports)
	if w.set != nil {
		t.Errorf("weights %v after they were deleted", *w.set)
	}
}

// A switch without PFC accepts the watchdog's settings only if they are the defaults that the controller did not
// ask for, and refuses others.
func TestUnwatched(t *testing.T) {
	f := newFixture(t)
	set := externs.Settings{Detection: units.Second, Share: 0.5, Restoration: units.Second, Action: externs.Alert}
	asked := set.Entity().GetExternEntry()
	set.Default = true
	entry, request := set.Entity().GetExternEntry(), &p4v1.ExternEntry{ExternTypeId: 0x81, ExternId: externs.SettingsID}
	f.fails(t, codes.Unimplemented, p4rtmsg.Insert(asked))
	f.wantRead(t, request)
	f.must(t, p4rtmsg.Insert(entry))
	f.wantRead(t, request, entry)
	f.fails(t, codes.Unimplemented, p4rtmsg.Modify(asked))
	f.readFails(t, codes.Unimplemented, &p4v1.ExternEntry{ExternTypeId: 0x81, ExternId: externs.StormsID})
	f.must(t, p4rtmsg.Delete(entry))
	f.wantRead(t, request)
}

// The lossless classes are an extern that is in no P4Info. They exist without a watchdog, too.
func TestLosslessClasses(t *testing.T) {
	c := &kept[externs.Lossless]{}
	f := newFixture(t)
	f.opts.Lossless, f.opts.Queues = c, 8
	one, two := externs.Lossless{3: 1 << 3}.Entity().GetExternEntry(), externs.Lossless{4: 1 << 5}.Entity().GetExternEntry()
	request := &p4v1.ExternEntry{ExternTypeId: 0x81, ExternId: externs.LosslessID}
	f.wantRead(t, request)
	f.fails(t, codes.NotFound, p4rtmsg.Modify(one), p4rtmsg.Delete(one))
	f.fails(t, codes.InvalidArgument, p4rtmsg.Insert(request), p4rtmsg.Insert(externs.Lossless{3: 1 << 8}.Entity().GetExternEntry()))
	f.fails(t, codes.Unimplemented, p4rtmsg.Insert(externs.Settings{Detection: units.Second}.Entity().GetExternEntry()))
	f.readFails(t, codes.Unimplemented, &p4v1.ExternEntry{ExternTypeId: 0x81, ExternId: externs.StormsID})
	f.must(t, p4rtmsg.Insert(one))
	f.fails(t, codes.AlreadyExists, p4rtmsg.Insert(one))
	f.wantRead(t, request, one)
	f.wantRead(t, &p4v1.ExternEntry{}, one)
	back := f.Inverse(p4rtmsg.Modify(two))
	f.must(t, p4rtmsg.Modify(two))
	f.wantRead(t, request, two)
	f.must(t, back...)
	f.wantRead(t, request, one)
	f.must(t, p4rtmsg.Delete(one))
	if c.set != nil {
		t.Errorf("classes %v after they were deleted", *c.set)
	}
}

func TestTableEntries(t *testing.T) {
	f := newFixture(t)
	a := l2(0x0a, 1)
	f.must(t, p4rtmsg.Insert(a))
	f.fails(t, codes.AlreadyExists, p4rtmsg.Insert(l2(0x0a, 2)))
	f.wantRead(t, &p4v1.TableEntry{TableId: p4test.ID("l2")}, a)

	// A value with leading zeros is the same key. Reads return the canonical value.
	padded := l2(0x0a, 2)
	padded.Match[0].GetExact().Value = []byte{0, 0, 0x0a}
	padded.Action.GetAction().Params[0].Value = []byte{0, 2}
	padded.Metadata = []byte("m")
	f.must(t, p4rtmsg.Modify(padded))
	b := edit(l2(0x0a, 2), func(e *p4v1.TableEntry) { e.Metadata = []byte("m") })
	f.wantRead(t, &p4v1.TableEntry{TableId: p4test.ID("l2")}, b)

	// MODIFY without an action keeps the action.
	f.must(t, p4rtmsg.Modify(edit(l2(0x0a, 0), func(e *p4v1.TableEntry) { e.Action = nil })))
	f.wantRead(t, &p4v1.TableEntry{TableId: p4test.ID("l2")}, l2(0x0a, 2))

	f.fails(t, codes.NotFound, p4rtmsg.Modify(l2(0x0b, 1)), p4rtmsg.Delete(l2(0x0b, 1)))
	f.fails(t, codes.InvalidArgument,
		p4rtmsg.Insert(edit(l2(1, 1), func(e *p4v1.TableEntry) { e.TableId = 0 })),
		p4rtmsg.Insert(edit(l2(1, 1), func(e *p4v1.TableEntry) { e.TableId = 0x02ffffff })),
		p4rtmsg.Insert(edit(l2(1, 1), func(e *p4v1.TableEntry) { e.Action = nil })),
		p4rtmsg.Insert(edit(l2(1, 1), func(e *p4v1.TableEntry) { e.Action = &p4v1.TableAction{} })),
		p4rtmsg.Insert(edit(l2(1, 1), func(e *p4v1.TableEntry) { e.Priority = 1 })),
		p4rtmsg.Insert(edit(l2(1, 1), func(e *p4v1.TableEntry) { e.CounterData = &p4v1.CounterData{} })),
		p4rtmsg.Insert(edit(l2(1, 1), func(e *p4v1.TableEntry) { e.MeterConfig = &p4v1.MeterConfig{} })),
		p4rtmsg.Insert(edit(l2(1, 1), func(e *p4v1.TableEntry) { e.MeterCounterData = &p4v1.MeterCounterData{} })),
		p4rtmsg.Insert(edit(l2(1, 1), func(e *p4v1.TableEntry) { e.IdleTimeoutNs = -1 })),
		p4rtmsg.Insert(edit(l2(1, 1), func(e *p4v1.TableEntry) { e.TimeSinceLastHit = &p4v1.TableEntry_IdleTimeout{} })),
		p4rtmsg.Insert(edit(l2(1, 1), setConst)),
		p4rtmsg.Insert(edit(l2(1, 1), func(e *p4v1.TableEntry) { e.Action = p4test.Do("mark", 1) })),
		p4rtmsg.Insert(edit(l2(1, 1), func(e *p4v1.TableEntry) {
			e.Action = &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileMemberId{ActionProfileMemberId: 1}}
		})),
		p4rtmsg.Insert(p4test.Entry("smac", 0, p4test.Do("mark", 1))),
		p4rtmsg.Insert(edit(p4test.Entry("smac", 0, p4test.Do("mark", 1), p4rtmsg.Exact(1, 1)), func(e *p4v1.TableEntry) { e.IdleTimeoutNs = 1 })),
		p4rtmsg.Insert(p4test.Entry("once", 0, p4test.Do("to_port", 1))),
		p4rtmsg.Insert(acl(0)), p4rtmsg.Insert(acl(-1)),
	)
	f.fails(t, codes.PermissionDenied, p4rtmsg.Insert(p4test.Entry("smac", 0, p4test.Do("learn"), p4rtmsg.Exact(1, 1))))
	f.fails(t, codes.Unimplemented, p4rtmsg.Insert(edit(acl(1), func(e *p4v1.TableEntry) { e.MeterCounterData = &p4v1.MeterCounterData{} })))

	// DELETE ignores everything but the key.
	f.must(t, p4rtmsg.Delete(edit(l2(0x0a, 0), func(e *p4v1.TableEntry) { e.Action, e.IdleTimeoutNs = p4test.Do("mark", 1), -5 })))
	f.wantRead(t, &p4v1.TableEntry{TableId: p4test.ID("l2")})
}

func TestTableIsFull(t *testing.T) {
	f := newFixture(t)
	for i := range uint64(64) {
		f.must(t, p4rtmsg.Insert(p4test.Entry("smac", 0, p4test.Do("mark", 1), p4rtmsg.Exact(1, i))))
	}
	f.fails(t, codes.ResourceExhausted, p4rtmsg.Insert(p4test.Entry("smac", 0, p4test.Do("mark", 1), p4rtmsg.Exact(1, 64))))
	f.must(t, p4rtmsg.Delete(p4test.Entry("smac", 0, nil, p4rtmsg.Exact(1, 7))))
	f.must(t, p4rtmsg.Insert(p4test.Entry("smac", 0, p4test.Do("mark", 1), p4rtmsg.Exact(1, 64))))
}

func TestTableReads(t *testing.T) {
	f := newFixture(t)
	ether, ttl, dst, src := p4rtmsg.Ternary(1, 0x0800, 0xffff), p4rtmsg.Range(2, 1, 5), p4rtmsg.Optional(3, 9), p4rtmsg.LPM(4, 0x0a000000, 8)
	one, two := acl(10, ether, ttl), acl(20, ether, ttl)
	three := edit(acl(10, dst, src), func(e *p4v1.TableEntry) { e.Action, e.Metadata = p4test.Do("NoAction"), []byte("x") })
	four := edit(acl(30), func(e *p4v1.TableEntry) { e.ControllerMetadata = 77 }) //lint:ignore SA1019 it must be kept
	f.must(t, p4rtmsg.Insert(one), p4rtmsg.Insert(two), p4rtmsg.Insert(three), p4rtmsg.Insert(four), p4rtmsg.Insert(l2(1, 1)))
	id := p4test.ID("acl")
	f.wantRead(t, &p4v1.TableEntry{TableId: id}, one, two, three, four)
	f.wantRead(t, &p4v1.TableEntry{TableId: id, Priority: 10}, one, three)
	f.wantRead(t, &p4v1.TableEntry{TableId: id, Match: one.Match}, one, two)
	f.wantRead(t, &p4v1.TableEntry{TableId: id, Match: one.Match[:1]}) // a read by key does not return entries that match more
	f.wantRead(t, &p4v1.TableEntry{TableId: id, Match: one.Match, Priority: 20}, two)
	f.wantRead(t, &p4v1.TableEntry{TableId: id, Match: one.Match, Priority: 21})
	f.wantRead(t, &p4v1.TableEntry{TableId: id, Action: p4test.Do("NoAction")}, three)
	f.wantRead(t, &p4v1.TableEntry{TableId: id, Metadata: []byte("x")}, three)
	f.wantRead(t, &p4v1.TableEntry{TableId: id, Metadata: []byte("y")})
	f.wantRead(t, &p4v1.TableEntry{TableId: id, ControllerMetadata: 77}, four) //lint:ignore SA1019 it must be kept
	f.wantRead(t, &p4v1.TableEntry{TableId: id, Match: one.Match, Priority: 20, Metadata: []byte("x")})
	f.readFails(t, codes.InvalidArgument,
		&p4v1.TableEntry{Priority: 1}, &p4v1.TableEntry{Match: one.Match}, &p4v1.TableEntry{TableId: 5},
		&p4v1.TableEntry{TableId: id, Action: p4test.Do("forward", 1)},
		&p4v1.TableEntry{TableId: id, Match: []*p4v1.FieldMatch{p4rtmsg.Exact(1, 1)}},
		&p4v1.TableEntry{TableId: id, TimeSinceLastHit: &p4v1.TableEntry_IdleTimeout{}},
		&p4v1.TableEntry{TableId: id, IsDefaultAction: true, Priority: 1},
		&p4v1.TableEntry{TableId: p4test.ID("routes"), Action: p4test.Do("drop")})
	f.readFails(t, codes.Unimplemented, &p4v1.TableEntry{TableId: id, MeterCounterData: &p4v1.MeterCounterData{}})

	// All tables, with the program's own entries.
	if got := len(f.read(t, &p4v1.TableEntry{})); got != 5+3 {
		t.Errorf("%d entries in all tables, want 8", got)
	}
	if got := len(f.read(t, &p4v1.TableEntry{IsDefaultAction: true})); got != 8 {
		t.Errorf("%d default entries, want one per table, 8", got)
	}
}

func TestConstTables(t *testing.T) {
	f := newFixture(t)
	fixed := func(prio int32, a *p4v1.TableAction, m ...*p4v1.FieldMatch) *p4v1.TableEntry {
		return p4test.Entry("fixed", prio, a, m...)
	}
	got := f.read(t, &p4v1.TableEntry{TableId: p4test.ID("fixed")})
	if len(got) != 3 || got[0].GetTableEntry().Priority != 3 || got[2].GetTableEntry().Priority != 1 {
		t.Fatalf("const entries %v", got)
	}
	for _, e := range got {
		if !isConst(e.GetTableEntry()) {
			t.Errorf("%v is not is_const", e)
		}
	}
	f.wantRead(t, fixed(2, nil, p4rtmsg.Exact(2, 2)), edit(fixed(2, p4test.Do("drop"), p4rtmsg.Exact(2, 2)), setConst))
	f.fails(t, codes.PermissionDenied,
		p4rtmsg.Insert(fixed(1, p4test.Do("drop"), p4rtmsg.Exact(2, 9))),
		p4rtmsg.Delete(fixed(2, nil, p4rtmsg.Exact(2, 2))),
		p4rtmsg.Modify(fixed(2, p4test.Do("drop"), p4rtmsg.Exact(2, 2))))
	f.fails(t, codes.NotFound, p4rtmsg.Modify(fixed(7, nil, p4rtmsg.Exact(2, 2))))
	f.must(t, p4rtmsg.Modify(fixed(2, nil, p4rtmsg.Exact(2, 2))))
	// Its default entry is not const.
	f.must(t, p4rtmsg.Modify(edit(fixed(0, p4test.Do("drop")), func(e *p4v1.TableEntry) { e.IsDefaultAction = true })))
}

func TestDefaultEntries(t *testing.T) {
	f := newFixture(t)
	deflt := func(table string, a *p4v1.TableAction) *p4v1.TableEntry {
		return edit(p4test.Entry(table, 0, a), func(e *p4v1.TableEntry) { e.IsDefaultAction = true })
	}
	f.wantRead(t, deflt("l2", nil), deflt("l2", p4test.Do("drop")))
	mine := edit(deflt("l2", p4test.Do("flood", 7)), func(e *p4v1.TableEntry) { e.Metadata = []byte("m") })
	f.must(t, p4rtmsg.Modify(mine))
	f.wantRead(t, deflt("l2", nil), mine)
	f.must(t, p4rtmsg.Modify(deflt("l2", nil)))
	f.wantRead(t, deflt("l2", nil), deflt("l2", p4test.Do("drop")))
	f.wantRead(t, deflt("port_vrf", nil), edit(deflt("port_vrf", p4test.Do("NoAction")), setConst))
	f.must(t, p4rtmsg.Modify(deflt("once", p4test.Do("to_port", 7))), p4rtmsg.Modify(deflt("smac", p4test.Do("learn"))))
	f.fails(t, codes.PermissionDenied,
		p4rtmsg.Modify(deflt("port_vrf", p4test.Do("set_vrf", 1))), p4rtmsg.Modify(deflt("smac", p4test.Do("mark", 1))))
	f.fails(t, codes.InvalidArgument,
		p4rtmsg.Insert(deflt("l2", p4test.Do("drop"))), p4rtmsg.Delete(deflt("l2", p4test.Do("drop"))),
		p4rtmsg.Modify(edit(deflt("l2", p4test.Do("drop")), func(e *p4v1.TableEntry) { e.Priority = 1 })),
		p4rtmsg.Modify(edit(deflt("l2", p4test.Do("drop")), func(e *p4v1.TableEntry) { e.IdleTimeoutNs = 1 })),
		p4rtmsg.Modify(edit(deflt("l2", p4test.Do("drop")), func(e *p4v1.TableEntry) { e.Match = l2(1, 1).Match })),
		p4rtmsg.Modify(deflt("l2", &p4v1.TableAction{})),
		p4rtmsg.Modify(deflt("l2", p4test.Do("mark", 1))),
		p4rtmsg.Modify(deflt("routes", p4test.Do("drop"))))
}

func TestDirectResources(t *testing.T) {
	f := newFixture(t)
	e := acl(5, p4rtmsg.Ternary(1, 1, 1))
	e.CounterData = &p4v1.CounterData{PacketCount: 3, ByteCount: 400}
	e.MeterConfig = &p4v1.MeterConfig{Cir: 1, Cburst: 2, Pir: 3, Pburst: 4}
	f.must(t, p4rtmsg.Insert(e))
	key := acl(5, p4rtmsg.Ternary(1, 1, 1))
	f.wantRead(t, &p4v1.TableEntry{TableId: p4test.ID("acl")}, key)
	f.wantRead(t, &p4v1.TableEntry{TableId: p4test.ID("acl"), CounterData: &p4v1.CounterData{}, MeterConfig: &p4v1.MeterConfig{}}, e)

	bare := edit(acl(5, p4rtmsg.Ternary(1, 1, 1)), func(e *p4v1.TableEntry) { e.Action = nil })
	count := func(p, b int64) *p4v1.DirectCounterEntry {
		return &p4v1.DirectCounterEntry{TableEntry: bare, Data: &p4v1.CounterData{PacketCount: p, ByteCount: b}}
	}
	f.must(t, p4rtmsg.Modify(count(8, 9)))
	f.wantRead(t, &p4v1.DirectCounterEntry{TableEntry: bare}, count(8, 9))
	f.wantRead(t, &p4v1.DirectCounterEntry{TableEntry: &p4v1.TableEntry{TableId: p4test.ID("acl")}}, count(8, 9))
	f.wantRead(t, &p4v1.DirectCounterEntry{}, count(8, 9))
	f.must(t, p4rtmsg.Modify(&p4v1.DirectCounterEntry{TableEntry: bare})) // no data: nothing changes
	f.wantRead(t, &p4v1.DirectCounterEntry{}, count(8, 9))

	meter := &p4v1.DirectMeterEntry{TableEntry: bare, Config: &p4v1.MeterConfig{Cir: 5, Cburst: 6, Pir: 7, Pburst: 8}}
	f.must(t, p4rtmsg.Modify(meter))
	f.wantRead(t, &p4v1.DirectMeterEntry{}, meter)
	f.must(t, p4rtmsg.Modify(&p4v1.DirectMeterEntry{TableEntry: bare}))
	f.wantRead(t, &p4v1.DirectMeterEntry{TableEntry: bare}, &p4v1.DirectMeterEntry{TableEntry: bare})

	// MODIFY of the entry resets the meter and leaves the counter.
	f.must(t, p4rtmsg.Modify(meter), p4rtmsg.Modify(key))
	f.wantRead(t, &p4v1.DirectMeterEntry{}, &p4v1.DirectMeterEntry{TableEntry: bare})
	f.wantRead(t, &p4v1.DirectCounterEntry{}, count(8, 9))

	missing := acl(6, p4rtmsg.Ternary(1, 1, 1))
	f.fails(t, codes.NotFound, p4rtmsg.Modify(&p4v1.DirectCounterEntry{TableEntry: missing}), p4rtmsg.Modify(&p4v1.DirectMeterEntry{TableEntry: missing}))
	f.readFails(t, codes.NotFound, &p4v1.DirectCounterEntry{TableEntry: missing}, &p4v1.DirectMeterEntry{TableEntry: missing})
	f.fails(t, codes.InvalidArgument,
		p4rtmsg.Insert(count(1, 1)), p4rtmsg.Delete(count(1, 1)), p4rtmsg.Modify(&p4v1.DirectCounterEntry{}), p4rtmsg.Modify(count(-1, 0)),
		p4rtmsg.Insert(meter), p4rtmsg.Delete(meter), p4rtmsg.Modify(&p4v1.DirectMeterEntry{}),
		p4rtmsg.Modify(&p4v1.DirectMeterEntry{TableEntry: bare, Config: &p4v1.MeterConfig{Cir: -1}}),
		p4rtmsg.Modify(&p4v1.DirectMeterEntry{TableEntry: bare, Config: &p4v1.MeterConfig{Cir: 2, Pir: 1}}))
	f.must(t, p4rtmsg.Insert(l2(1, 1)))
	f.fails(t, codes.InvalidArgument, p4rtmsg.Modify(&p4v1.DirectCounterEntry{TableEntry: l2(1, 1)}), p4rtmsg.Modify(&p4v1.DirectMeterEntry{TableEntry: l2(1, 1)}))
	f.readFails(t, codes.InvalidArgument, &p4v1.DirectCounterEntry{TableEntry: l2(1, 1)}, &p4v1.DirectCounterEntry{TableEntry: &p4v1.TableEntry{Priority: 1}})
	f.fails(t, codes.Unimplemented, p4rtmsg.Modify(&p4v1.DirectMeterEntry{TableEntry: bare, CounterData: &p4v1.MeterCounterData{}}))
	f.readFails(t, codes.Unimplemented, &p4v1.DirectMeterEntry{CounterData: &p4v1.MeterCounterData{}})
}
