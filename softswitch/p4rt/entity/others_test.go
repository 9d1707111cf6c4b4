package entity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/softswitch/p4rt/internal/p4test"
	"github.com/headgate/headgate/softswitch/p4rt/schema"
	"github.com/headgate/headgate/units"
)

func at(i int64) *p4v1.Index { return &p4v1.Index{Index: i} }

func number(b ...byte) *p4v1.P4Data {
	return &p4v1.P4Data{Data: &p4v1.P4Data_Bitstring{Bitstring: b}}
}

func TestCounters(t *testing.T) {
	f := newFixture(t)
	id := p4test.ID("hits")
	c := &p4v1.CounterEntry{CounterId: id, Index: at(3), Data: &p4v1.CounterData{PacketCount: 5, ByteCount: 6}}
	f.must(t, p4rtmsg.Modify(c))
	f.wantRead(t, &p4v1.CounterEntry{CounterId: id, Index: at(3)}, c)
	f.must(t, p4rtmsg.Modify(&p4v1.CounterEntry{CounterId: id, Index: at(3)})) // no data: nothing changes
	f.wantRead(t, &p4v1.CounterEntry{CounterId: id, Index: at(3)}, c)
	f.must(t, p4rtmsg.Modify(&p4v1.CounterEntry{CounterId: id, Data: &p4v1.CounterData{PacketCount: 9}})) // all cells
	all := f.read(t, &p4v1.CounterEntry{})
	if len(all) != 16 || all[7].GetCounterEntry().Data.PacketCount != 9 || all[7].GetCounterEntry().Index.Index != 7 {
		t.Errorf("all counters: %v", all)
	}
	f.fails(t, codes.OutOfRange, p4rtmsg.Modify(edit(&p4v1.CounterEntry{CounterId: id}, func(c *p4v1.CounterEntry) { c.Index = at(16) })))
	f.fails(t, codes.InvalidArgument, p4rtmsg.Insert(c), p4rtmsg.Delete(c),
		p4rtmsg.Modify(&p4v1.CounterEntry{CounterId: id, Index: at(-1)}), p4rtmsg.Modify(&p4v1.CounterEntry{}), p4rtmsg.Modify(&p4v1.CounterEntry{CounterId: 5}),
		p4rtmsg.Modify(&p4v1.CounterEntry{CounterId: id, Data: &p4v1.CounterData{ByteCount: -1}}))
	f.readFails(t, codes.OutOfRange, &p4v1.CounterEntry{CounterId: id, Index: at(16)})
	f.readFails(t, codes.InvalidArgument, &p4v1.CounterEntry{Index: at(1)}, &p4v1.CounterEntry{CounterId: 5}, &p4v1.CounterEntry{CounterId: id, Index: at(-1)})
}

func TestMeters(t *testing.T) {
	f := newFixture(t)
	id := p4test.ID("rates")
	m := &p4v1.MeterEntry{MeterId: id, Index: at(3), Config: &p4v1.MeterConfig{Cir: 1, Cburst: 2, Pir: 3, Pburst: 4}}
	f.must(t, p4rtmsg.Modify(m))
	f.wantRead(t, &p4v1.MeterEntry{MeterId: id, Index: at(3)}, m)
	f.wantRead(t, &p4v1.MeterEntry{MeterId: id, Index: at(4)}, &p4v1.MeterEntry{MeterId: id, Index: at(4)})
	f.must(t, p4rtmsg.Modify(&p4v1.MeterEntry{MeterId: id}))
	f.wantRead(t, &p4v1.MeterEntry{MeterId: id, Index: at(3)}, &p4v1.MeterEntry{MeterId: id, Index: at(3)})
	if n := len(f.read(t, &p4v1.MeterEntry{})); n != 8 {
		t.Errorf("%d meters, want 8", n)
	}
	f.fails(t, codes.OutOfRange, p4rtmsg.Modify(&p4v1.MeterEntry{MeterId: id, Index: at(8)}))
	f.fails(t, codes.Unimplemented, p4rtmsg.Modify(&p4v1.MeterEntry{MeterId: id, CounterData: &p4v1.MeterCounterData{}}))
	f.fails(t, codes.InvalidArgument, p4rtmsg.Insert(m), p4rtmsg.Delete(m), p4rtmsg.Modify(&p4v1.MeterEntry{}), p4rtmsg.Modify(&p4v1.MeterEntry{MeterId: 5}),
		p4rtmsg.Modify(&p4v1.MeterEntry{MeterId: id, Index: at(1), Config: &p4v1.MeterConfig{Cburst: -1}}))
	f.readFails(t, codes.Unimplemented, &p4v1.MeterEntry{CounterData: &p4v1.MeterCounterData{}})
	f.readFails(t, codes.InvalidArgument, &p4v1.MeterEntry{Index: at(1)}, &p4v1.MeterEntry{MeterId: 5})
}

func TestRegisters(t *testing.T) {
	f := newFixture(t)
	last, deltas := p4test.ID("last"), p4test.ID("deltas")
	r := &p4v1.RegisterEntry{RegisterId: last, Index: at(2), Data: number(1, 2, 3)}
	f.must(t, p4rtmsg.Modify(r))
	f.wantRead(t, &p4v1.RegisterEntry{RegisterId: last, Index: at(2)}, r)
	s := &p4v1.RegisterEntry{RegisterId: deltas, Index: at(1), Data: number(0xfe)} // −2 of int<12>
	f.must(t, p4rtmsg.Modify(s))
	f.wantRead(t, &p4v1.RegisterEntry{RegisterId: deltas, Index: at(1)}, s)
	f.must(t, p4rtmsg.Modify(&p4v1.RegisterEntry{RegisterId: last, Data: number(7)}))
	all := f.read(t, &p4v1.RegisterEntry{})
	if len(all) != 12 || all[5].GetRegisterEntry().Data.GetBitstring()[0] != 7 {
		t.Errorf("all registers: %v", all)
	}
	f.fails(t, codes.OutOfRange, p4rtmsg.Modify(&p4v1.RegisterEntry{RegisterId: last, Index: at(8), Data: number(1)}),
		p4rtmsg.Modify(&p4v1.RegisterEntry{RegisterId: last, Index: at(1), Data: number(1, 0, 0, 0, 0, 0, 0)}))
	f.fails(t, codes.InvalidArgument, p4rtmsg.Insert(r), p4rtmsg.Delete(r), p4rtmsg.Modify(&p4v1.RegisterEntry{RegisterId: last}),
		p4rtmsg.Modify(&p4v1.RegisterEntry{}), p4rtmsg.Modify(&p4v1.RegisterEntry{RegisterId: last, Index: at(-1), Data: number(1)}),
		p4rtmsg.Modify(&p4v1.RegisterEntry{RegisterId: last, Data: &p4v1.P4Data{Data: &p4v1.P4Data_Bool{}}}))
	f.readFails(t, codes.InvalidArgument, &p4v1.RegisterEntry{Index: at(1)}, &p4v1.RegisterEntry{RegisterId: 5})
}

func TestValueSets(t *testing.T) {
	f := newFixture(t)
	id := p4test.ID("parse.ip_types")
	set := func(vs ...uint64) *p4v1.ValueSetEntry {
		e := &p4v1.ValueSetEntry{ValueSetId: id}
		for _, v := range vs {
			e.Members = append(e.Members, &p4v1.ValueSetMember{Match: []*p4v1.FieldMatch{p4rtmsg.Exact(1, v)}})
		}
		return e
	}
	f.wantRead(t, &p4v1.ValueSetEntry{}, set())
	f.must(t, p4rtmsg.Modify(set(0x22f3, 0x893b)))
	f.wantRead(t, set(), set(0x22f3, 0x893b))
	f.fails(t, codes.AlreadyExists, p4rtmsg.Modify(set(1, 1)))
	f.fails(t, codes.ResourceExhausted, p4rtmsg.Modify(set(1, 2, 3, 4, 5)))
	f.fails(t, codes.InvalidArgument, p4rtmsg.Insert(set(1)), p4rtmsg.Delete(set(1)), p4rtmsg.Modify(set(1<<16)), p4rtmsg.Modify(&p4v1.ValueSetEntry{}),
		p4rtmsg.Modify(&p4v1.ValueSetEntry{ValueSetId: id, Members: []*p4v1.ValueSetMember{nil}}))
	f.wantRead(t, set(), set(0x22f3, 0x893b))
	f.must(t, p4rtmsg.Modify(set()))
	f.wantRead(t, set(), set())
	f.readFails(t, codes.InvalidArgument, set(1), &p4v1.ValueSetEntry{ValueSetId: 5})
}

func TestReplication(t *testing.T) {
	f := newFixture(t)
	multicast := func(id uint32, ports ...uint32) *p4v1.MulticastGroupEntry {
		g := &p4v1.MulticastGroupEntry{MulticastGroupId: id}
		for i, p := range ports {
			g.Replicas = append(g.Replicas, &p4v1.Replica{EgressPort: p, Instance: uint32(i)})
		}
		return g
	}
	session := &p4v1.CloneSessionEntry{SessionId: 5, Replicas: []*p4v1.Replica{{EgressPort: 0xfffffffd}}, ClassOfService: 7, PacketLengthBytes: 128}
	g := multicast(1, 1, 2, 510)
	f.must(t, p4rtmsg.Insert(g), p4rtmsg.Insert(multicast(2)), p4rtmsg.Insert(session))
	f.wantRead(t, multicast(0), g, multicast(2))
	f.wantRead(t, multicast(1), g)
	f.wantRead(t, &p4v1.CloneSessionEntry{}, session)
	f.wantRead(t, &p4v1.CloneSessionEntry{SessionId: 5}, session)
	f.wantRead(t, &p4v1.PacketReplicationEngineEntry{}, g, multicast(2), session)
	f.must(t, p4rtmsg.Modify(multicast(1, 3)))
	f.wantRead(t, multicast(1), multicast(1, 3))

	f.fails(t, codes.AlreadyExists, p4rtmsg.Insert(g), p4rtmsg.Insert(session))
	f.fails(t, codes.NotFound, p4rtmsg.Modify(multicast(3)), p4rtmsg.Delete(multicast(3)), p4rtmsg.Delete(&p4v1.CloneSessionEntry{SessionId: 6}))
	twice := multicast(9, 1, 1)
	twice.Replicas[1].Instance = 0
	f.fails(t, codes.InvalidArgument,
		p4rtmsg.Insert(multicast(0, 1)), p4rtmsg.Insert(multicast(1<<16, 1)), p4rtmsg.Insert(multicast(9, 512)), p4rtmsg.Insert(multicast(9, dropPort)), p4rtmsg.Insert(twice),
		p4rtmsg.Insert(&p4v1.MulticastGroupEntry{MulticastGroupId: 9, Replicas: []*p4v1.Replica{{EgressPort: 1, Instance: 1 << 16}}}),
		p4rtmsg.Insert(&p4v1.CloneSessionEntry{}), p4rtmsg.Insert(&p4v1.CloneSessionEntry{SessionId: 1 << 15}),
		p4rtmsg.Insert(&p4v1.CloneSessionEntry{SessionId: 9, ClassOfService: 8}), p4rtmsg.Insert(&p4v1.CloneSessionEntry{SessionId: 9, PacketLengthBytes: -1}))
	f.readFails(t, codes.NotFound, multicast(9), &p4v1.CloneSessionEntry{SessionId: 9})
	f.must(t, p4rtmsg.Delete(multicast(1)), p4rtmsg.Delete(session))
	f.wantRead(t, &p4v1.PacketReplicationEngineEntry{}, multicast(2))

	// Replica.port is a byte string. The Go module's messages do not have it yet.
	r := &p4v1.Replica{}
	raw := protowire.AppendTag(nil, fieldReplicaPort, protowire.BytesType)
	r.ProtoReflect().SetUnknown(protowire.AppendBytes(raw, []byte{0, 3}))
	got, err := f.replicas("multicast group", 1, []*p4v1.Replica{r, nil})
	if err != nil || got[0].Port != 3 || got[1].Port != 0 {
		t.Errorf("replicas %v, %v", got, err)
	}
	r.ProtoReflect().SetUnknown(protowire.AppendBytes(raw, nil))
	if _, err := f.replicas("multicast group", 1, []*p4v1.Replica{r}); err == nil {
		t.Error("an empty port was taken")
	}
}

func TestDigestEntries(t *testing.T) {
	f := newFixture(t)
	d := &p4v1.DigestEntry{DigestId: p4test.ID("learn_t"), Config: &p4v1.DigestEntry_Config{MaxListSize: 3}}
	f.fails(t, codes.NotFound, p4rtmsg.Modify(d), p4rtmsg.Delete(d))
	f.readFails(t, codes.NotFound, d)
	f.must(t, p4rtmsg.Insert(d))
	f.fails(t, codes.AlreadyExists, p4rtmsg.Insert(d))
	f.wantRead(t, &p4v1.DigestEntry{}, d)
	f.wantRead(t, d, d)
	f.must(t, p4rtmsg.Modify(&p4v1.DigestEntry{DigestId: d.DigestId}), p4rtmsg.Delete(d))
	f.wantRead(t, &p4v1.DigestEntry{})
	f.fails(t, codes.InvalidArgument, p4rtmsg.Insert(&p4v1.DigestEntry{}), p4rtmsg.Insert(&p4v1.DigestEntry{DigestId: d.DigestId, Config: &p4v1.DigestEntry_Config{AckTimeoutNs: -1}}))
	f.readFails(t, codes.InvalidArgument, &p4v1.DigestEntry{DigestId: 5})
}

func TestIdleTimeouts(t *testing.T) {
	f := newFixture(t)
	e := edit(l2(1, 1), func(e *p4v1.TableEntry) { e.IdleTimeoutNs, e.Metadata = 2e9, []byte("m") })
	f.must(t, p4rtmsg.Insert(e), p4rtmsg.Insert(l2(2, 1)), p4rtmsg.Insert(edit(l2(3, 1), func(e *p4v1.TableEntry) { e.IdleTimeoutNs = 1 << 62 })))
	f.wantRead(t, l2(1, 0), e)
	notified := func(now units.Time) int {
		n := 0
		for _, x := range f.Idle(now) {
			n += len(x.TableEntry)
			want := edit(l2(1, 1), func(e *p4v1.TableEntry) { e.IdleTimeoutNs, e.Metadata, e.Action = 2e9, []byte("m"), nil })
			if diff := cmp.Diff(want, x.TableEntry[0], protocmp.Transform()); diff != "" {
				t.Errorf("notification (-want +got):\n%s", diff)
			}
		}
		return n
	}
	for _, c := range []struct {
		at   units.Time
		want int
	}{{1 * units.Second, 0}, {2 * units.Second, 1}, {3 * units.Second, 0}, {4 * units.Second, 1}} {
		if n := notified(c.at); n != c.want {
			t.Errorf("at %v s: %d notifications, want %d", c.at.Seconds(), n, c.want)
		}
	}
	f.clock = 5 * units.Second
	got := f.read(t, edit(l2(1, 0), func(e *p4v1.TableEntry) { e.TimeSinceLastHit, e.Action = &p4v1.TableEntry_IdleTimeout{}, nil }))
	if ns := got[0].GetTableEntry().TimeSinceLastHit.ElapsedNs; ns != 5e9 {
		t.Errorf("time since last hit %d ns", ns)
	}
}

// everything returns all entities of the state.
func (f *fixture) everything(t *testing.T) []*p4v1.Entity {
	t.Helper()
	var out []*p4v1.Entity
	for _, req := range []any{
		&p4v1.TableEntry{CounterData: &p4v1.CounterData{}, MeterConfig: &p4v1.MeterConfig{}}, &p4v1.TableEntry{IsDefaultAction: true},
		&p4v1.ActionProfileMember{}, &p4v1.ActionProfileGroup{}, &p4v1.CounterEntry{}, &p4v1.MeterEntry{}, &p4v1.RegisterEntry{},
		&p4v1.ValueSetEntry{}, &p4v1.DigestEntry{}, &p4v1.PacketReplicationEngineEntry{},
	} {
		out = append(out, f.read(t, req)...)
	}
	return out
}

// batch returns updates of every kind. Each succeeds after those before it.
func batch() []*p4v1.Update {
	deflt := edit(p4test.Entry("l2", 0, p4test.Do("flood", 7)), func(e *p4v1.TableEntry) { e.IsDefaultAction = true })
	counted := edit(acl(5, p4rtmsg.Ternary(1, 1, 1)), func(e *p4v1.TableEntry) {
		e.CounterData, e.MeterConfig = &p4v1.CounterData{PacketCount: 1}, &p4v1.MeterConfig{Pir: 1}
	})
	return []*p4v1.Update{
		p4rtmsg.Insert(l2(1, 1)), p4rtmsg.Modify(l2(1, 2)), p4rtmsg.Insert(l2(2, 1)), p4rtmsg.Delete(l2(2, 1)), p4rtmsg.Modify(deflt),
		p4rtmsg.Insert(counted), p4rtmsg.Modify(acl(5, p4rtmsg.Ternary(1, 1, 1))), p4rtmsg.Insert(acl(6, p4rtmsg.Ternary(1, 1, 1))), p4rtmsg.Delete(acl(6, p4rtmsg.Ternary(1, 1, 1))),
		p4rtmsg.Insert(memberOf("tunnels", 1, p4test.Action("drop"))), p4rtmsg.Modify(memberOf("tunnels", 1, p4test.Action("forward", 1))),
		p4rtmsg.Insert(p4test.Entry("tunnel", 0, toMember(1), p4rtmsg.Exact(1, 17))),
		p4rtmsg.Insert(route(1, toSet(hop(1, 1)))), p4rtmsg.Modify(route(1, toSet(hop(2, 2), hop(3, 1)))), p4rtmsg.Insert(route(2, toSet(hop(1, 1)))), p4rtmsg.Delete(route(2, nil)),
		p4rtmsg.Modify(&p4v1.CounterEntry{CounterId: p4test.ID("hits"), Data: &p4v1.CounterData{PacketCount: 4}}),
		p4rtmsg.Modify(&p4v1.MeterEntry{MeterId: p4test.ID("rates"), Index: at(1), Config: &p4v1.MeterConfig{Cir: 1, Pir: 2}}),
		p4rtmsg.Modify(&p4v1.RegisterEntry{RegisterId: p4test.ID("deltas"), Index: at(1), Data: number(0xff)}),
		p4rtmsg.Modify(&p4v1.ValueSetEntry{ValueSetId: p4test.ID("parse.ip_types"), Members: []*p4v1.ValueSetMember{{Match: []*p4v1.FieldMatch{p4rtmsg.Exact(1, 3)}}}}),
		p4rtmsg.Insert(&p4v1.MulticastGroupEntry{MulticastGroupId: 3, Replicas: []*p4v1.Replica{{EgressPort: 1}}}),
		p4rtmsg.Modify(&p4v1.MulticastGroupEntry{MulticastGroupId: 3}),
		p4rtmsg.Insert(&p4v1.CloneSessionEntry{SessionId: 3, Replicas: []*p4v1.Replica{{EgressPort: 1}}}),
		p4rtmsg.Insert(&p4v1.CloneSessionEntry{SessionId: 4}), p4rtmsg.Delete(&p4v1.CloneSessionEntry{SessionId: 4}),
		p4rtmsg.Insert(&p4v1.DigestEntry{DigestId: p4test.ID("learn_t"), Config: &p4v1.DigestEntry_Config{MaxListSize: 1}}),
		p4rtmsg.Modify(&p4v1.DigestEntry{DigestId: p4test.ID("learn_t"), Config: &p4v1.DigestEntry_Config{MaxListSize: 2}}),
		p4rtmsg.Modify(edit(p4test.Entry("fixed", 2, nil, p4rtmsg.Exact(2, 2)), func(e *p4v1.TableEntry) { e.Metadata = []byte("m") })),
	}
}

var byText = protocmp.SortRepeated(func(a, b *p4v1.Entity) bool { return a.String() < b.String() })

// Undoing each update of the batch in reverse order restores the state.
func TestInverse(t *testing.T) {
	f := newFixture(t)
	var states [][]*p4v1.Entity
	var undo [][]*p4v1.Update
	for _, u := range batch() {
		states = append(states, f.everything(t))
		undo = append(undo, f.Inverse(u))
		f.must(t, u)
	}
	for i := len(undo) - 1; i >= 0; i-- {
		f.must(t, undo[i]...)
		if diff := cmp.Diff(states[i], f.everything(t), protocmp.Transform(), byText); diff != "" {
			t.Fatalf("after taking back update %d (-want +got):\n%s", i, diff)
		}
	}
}

// A dump that is applied to a fresh pipeline gives the same state.
func TestDump(t *testing.T) {
	f := newFixture(t)
	f.must(t, batch()...)
	f.must(t, p4rtmsg.Insert(memberOf("tunnels", 2, p4test.Action("drop"))))
	us, err := f.Dump()
	if err != nil {
		t.Fatal(err)
	}
	g := newFixture(t)
	g.must(t, us...)
	if diff := cmp.Diff(f.everything(t), g.everything(t), protocmp.Transform(), byText); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDefaultEntryResources: the default entry has a direct counter and meter like any other entry
// (P4Runtime 9.1). Both kinds of update write them, an update can be undone, and a dump includes
// them.
func TestDefaultEntryResources(t *testing.T) {
	f := newFixture(t)
	var acl *schema.Table
	for _, spec := range f.schema.Tables.List {
		if spec.CounterID != 0 && spec.MeterID != 0 && spec.ConstDefault == 0 {
			acl = spec
		}
	}
	key := &p4v1.TableEntry{TableId: acl.ID, IsDefaultAction: true}
	counter := func(n int64) *p4v1.DirectCounterEntry {
		return &p4v1.DirectCounterEntry{TableEntry: key, Data: &p4v1.CounterData{PacketCount: n}}
	}
	meter := func(n int64) *p4v1.DirectMeterEntry {
		return &p4v1.DirectMeterEntry{TableEntry: key, Config: &p4v1.MeterConfig{Cir: n, Cburst: n, Pir: n, Pburst: n}}
	}
	f.must(t, p4rtmsg.Modify(counter(100)), p4rtmsg.Modify(meter(1)))
	f.wantRead(t, &p4v1.DirectCounterEntry{TableEntry: key}, counter(100))
	f.wantRead(t, &p4v1.DirectMeterEntry{TableEntry: key}, meter(1))

	entry := &p4v1.TableEntry{TableId: acl.ID, IsDefaultAction: true, CounterData: &p4v1.CounterData{PacketCount: 7}, MeterConfig: meter(2).Config}
	undo := f.Inverse(p4rtmsg.Modify(entry))
	f.must(t, p4rtmsg.Modify(entry))
	f.wantRead(t, &p4v1.DirectCounterEntry{TableEntry: key}, counter(7))
	f.wantRead(t, &p4v1.DirectMeterEntry{TableEntry: key}, meter(2))
	f.must(t, undo...)
	f.wantRead(t, &p4v1.DirectCounterEntry{TableEntry: key}, counter(100))
	f.wantRead(t, &p4v1.DirectMeterEntry{TableEntry: key}, meter(1))

	dump, err := f.Dump()
	if err != nil {
		t.Fatal(err)
	}
	other := newFixture(t)
	other.must(t, dump...)
	other.wantRead(t, &p4v1.DirectCounterEntry{TableEntry: key}, counter(100))
	other.wantRead(t, &p4v1.DirectMeterEntry{TableEntry: key}, meter(1))

	keyed := &p4v1.TableEntry{TableId: acl.ID, IsDefaultAction: true, Priority: 3}
	f.fails(t, codes.InvalidArgument, p4rtmsg.Modify(&p4v1.DirectCounterEntry{TableEntry: keyed, Data: &p4v1.CounterData{}}))
}

// TestIdleInPieces: if very many entries of a table time out at once, several notifications name
// them, each entry once.
func TestIdleInPieces(t *testing.T) {
	f := newFixture(t)
	for mac := range uint64(idleMost + 10) {
		f.must(t, p4rtmsg.Insert(edit(l2(mac+1, 1), func(e *p4v1.TableEntry) { e.IdleTimeoutNs = 1e9 })))
	}
	for i, want := range []int{idleMost, 10, 0} {
		n := 0
		for _, x := range f.Idle(units.Second) {
			n += len(x.TableEntry)
		}
		if n != want {
			t.Errorf("piece %d has %d entries, want %d", i, n, want)
		}
	}
}
