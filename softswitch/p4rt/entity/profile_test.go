package entity

import (
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/softswitch/p4rt/internal/p4test"
)

func memberOf(profile string, id uint32, a *p4v1.Action) *p4v1.ActionProfileMember {
	return &p4v1.ActionProfileMember{ActionProfileId: p4test.ID(profile), MemberId: id, Action: a}
}

// groupOf returns a group with members given as pairs of id and weight.
func groupOf(id uint32, pairs ...int32) *p4v1.ActionProfileGroup {
	g := &p4v1.ActionProfileGroup{ActionProfileId: p4test.ID("ecmp"), GroupId: id}
	for i := 0; i < len(pairs); i += 2 {
		g.Members = append(g.Members, &p4v1.ActionProfileGroup_Member{MemberId: uint32(pairs[i]), Weight: pairs[i+1]})
	}
	return g
}

func route(dst uint64, a *p4v1.TableAction) *p4v1.TableEntry {
	return p4test.Entry("routes", 0, a, p4rtmsg.Exact(1, 0), p4rtmsg.LPM(2, dst, 32))
}

func toMember(id uint32) *p4v1.TableAction {
	return &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileMemberId{ActionProfileMemberId: id}}
}

func toGroup(id uint32) *p4v1.TableAction {
	return &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileGroupId{ActionProfileGroupId: id}}
}

func toSet(as ...*p4v1.ActionProfileAction) *p4v1.TableAction {
	return &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileActionSet{ActionProfileActionSet: &p4v1.ActionProfileActionSet{ActionProfileActions: as}}}
}

func hop(port uint64, weight int32) *p4v1.ActionProfileAction {
	return &p4v1.ActionProfileAction{Action: p4test.Action("next_hop", port, 1), Weight: weight}
}

func TestMembers(t *testing.T) {
	f := newFixture(t)
	one, two := memberOf("tunnels", 1, p4test.Action("forward", 1)), memberOf("tunnels", 2, p4test.Action("drop"))
	f.must(t, p4rtmsg.Insert(one), p4rtmsg.Insert(two), p4rtmsg.Insert(memberOf("ecmp", 1, p4test.Action("next_hop", 1, 2))))
	f.wantRead(t, memberOf("tunnels", 0, nil), one, two)
	f.wantRead(t, memberOf("tunnels", 2, nil), two)
	f.wantRead(t, &p4v1.ActionProfileMember{}, memberOf("ecmp", 1, p4test.Action("next_hop", 1, 2)), one, two)
	one.Action = p4test.Action("forward", 9)
	f.must(t, p4rtmsg.Modify(one))
	f.wantRead(t, memberOf("tunnels", 1, nil), one)

	f.fails(t, codes.AlreadyExists, p4rtmsg.Insert(one))
	f.fails(t, codes.NotFound, p4rtmsg.Modify(memberOf("tunnels", 9, p4test.Action("drop"))), p4rtmsg.Delete(memberOf("tunnels", 9, nil)))
	f.fails(t, codes.InvalidArgument,
		p4rtmsg.Insert(memberOf("tunnels", 0, p4test.Action("drop"))), p4rtmsg.Insert(memberOf("tunnels", 3, nil)),
		p4rtmsg.Modify(memberOf("tunnels", 1, nil)), p4rtmsg.Insert(memberOf("tunnels", 3, p4test.Action("mark", 1))),
		p4rtmsg.Insert(&p4v1.ActionProfileMember{ActionProfileId: 5, MemberId: 1}))
	f.fails(t, codes.PermissionDenied, p4rtmsg.Insert(memberOf("tunnels", 3, p4test.Action("NoAction"))))
	f.must(t, p4rtmsg.Insert(memberOf("tunnels", 3, p4test.Action("drop"))), p4rtmsg.Insert(memberOf("tunnels", 4, p4test.Action("drop"))))
	f.fails(t, codes.ResourceExhausted, p4rtmsg.Insert(memberOf("tunnels", 5, p4test.Action("drop"))))
	f.readFails(t, codes.NotFound, memberOf("tunnels", 5, nil))
	f.readFails(t, codes.InvalidArgument, &p4v1.ActionProfileMember{MemberId: 1}, &p4v1.ActionProfileMember{ActionProfileId: 5})

	// An indirect table takes members. A member that an entry points to cannot be deleted.
	e := p4test.Entry("tunnel", 0, toMember(1), p4rtmsg.Exact(1, 17))
	f.must(t, p4rtmsg.Insert(e))
	f.wantRead(t, &p4v1.TableEntry{TableId: p4test.ID("tunnel")}, e)
	f.fails(t, codes.FailedPrecondition, p4rtmsg.Delete(memberOf("tunnels", 1, nil)))
	f.must(t, p4rtmsg.Modify(p4test.Entry("tunnel", 0, toMember(2), p4rtmsg.Exact(1, 17))), p4rtmsg.Delete(memberOf("tunnels", 1, nil)))
	f.fails(t, codes.FailedPrecondition, p4rtmsg.Delete(memberOf("tunnels", 2, nil)))
	f.must(t, p4rtmsg.Delete(e), p4rtmsg.Delete(memberOf("tunnels", 2, nil)))
	other := func(a *p4v1.TableAction) *p4v1.Update {
		return p4rtmsg.Insert(p4test.Entry("tunnel", 0, a, p4rtmsg.Exact(1, 18)))
	}
	f.fails(t, codes.NotFound, other(toMember(77)))
	f.fails(t, codes.InvalidArgument, other(toGroup(1)), other(toSet(hop(1, 1))), other(p4test.Do("drop")))
}

func TestGroups(t *testing.T) {
	f := newFixture(t)
	for i := range uint32(3) {
		f.must(t, p4rtmsg.Insert(memberOf("ecmp", i+1, p4test.Action("next_hop", uint64(i), 1))))
	}
	g := edit(groupOf(7, 1, 2, 2, 3), func(g *p4v1.ActionProfileGroup) { g.MaxSize = 10 })
	f.must(t, p4rtmsg.Insert(g), p4rtmsg.Insert(groupOf(8)), p4rtmsg.Insert(route(1, toGroup(7))), p4rtmsg.Insert(route(2, toMember(3))))
	f.wantRead(t, &p4v1.ActionProfileGroup{}, g, groupOf(8))
	f.wantRead(t, &p4v1.ActionProfileGroup{ActionProfileId: p4test.ID("ecmp"), GroupId: 8}, groupOf(8))
	f.wantRead(t, &p4v1.TableEntry{TableId: p4test.ID("routes")}, route(1, toGroup(7)), route(2, toMember(3)))

	f.fails(t, codes.AlreadyExists, p4rtmsg.Insert(g))
	f.fails(t, codes.NotFound, p4rtmsg.Modify(groupOf(9)), p4rtmsg.Delete(groupOf(9)), p4rtmsg.Insert(groupOf(9, 55, 1)), p4rtmsg.Insert(route(3, toGroup(9))), p4rtmsg.Insert(route(3, toMember(9))))
	f.fails(t, codes.FailedPrecondition, p4rtmsg.Delete(groupOf(7)), p4rtmsg.Delete(memberOf("ecmp", 1, nil)), p4rtmsg.Delete(memberOf("ecmp", 3, nil)))
	f.fails(t, codes.InvalidArgument,
		p4rtmsg.Insert(groupOf(0)), p4rtmsg.Insert(groupOf(9, 1, 0)), p4rtmsg.Insert(groupOf(9, 1, -1)), p4rtmsg.Insert(groupOf(9, 1, 1, 1, 1)),
		p4rtmsg.Insert(&p4v1.ActionProfileGroup{ActionProfileId: p4test.ID("tunnels"), GroupId: 1}),
		p4rtmsg.Insert(&p4v1.ActionProfileGroup{GroupId: 1}),
		p4rtmsg.Insert(edit(groupOf(9), func(g *p4v1.ActionProfileGroup) { g.MaxSize = -1 })),
		p4rtmsg.Modify(groupOf(7, 1, 1)),           // max_size differs from that at insertion
		p4rtmsg.Insert(route(9, toSet(hop(1, 1))))) // one-shots and members do not mix
	f.fails(t, codes.ResourceExhausted, p4rtmsg.Insert(groupOf(9, 1, 60)), p4rtmsg.Insert(edit(groupOf(9, 1, 5), func(g *p4v1.ActionProfileGroup) { g.MaxSize = 4 })))
	f.readFails(t, codes.NotFound, groupOf(9))
	f.readFails(t, codes.InvalidArgument, &p4v1.ActionProfileGroup{GroupId: 1})

	// Replacing a group frees its old weights: 5 of 64 are used, so 64 would fit.
	f.must(t, p4rtmsg.Modify(edit(groupOf(7, 3, 10), func(g *p4v1.ActionProfileGroup) { g.MaxSize = 10 })), p4rtmsg.Delete(memberOf("ecmp", 1, nil)))
	f.must(t, p4rtmsg.Delete(route(1, nil)), p4rtmsg.Delete(groupOf(7)), p4rtmsg.Modify(groupOf(8, 2, 64)))
}

func TestOneShots(t *testing.T) {
	f := newFixture(t)
	watched := hop(1, 2)
	watched.WatchKind = &p4v1.ActionProfileAction_WatchPort{WatchPort: []byte{2}}
	e := route(1, toSet(watched, hop(2, 1), hop(2, 1)))
	f.must(t, p4rtmsg.Insert(e))
	f.wantRead(t, &p4v1.TableEntry{TableId: p4test.ID("routes")}, e)
	f.wantRead(t, &p4v1.ActionProfileMember{}) // a one-shot's members are not visible
	f.wantRead(t, &p4v1.ActionProfileGroup{})
	f.fails(t, codes.InvalidArgument,
		p4rtmsg.Insert(memberOf("ecmp", 1, p4test.Action("next_hop", 1, 1))), p4rtmsg.Insert(groupOf(1)),
		p4rtmsg.Insert(route(2, toSet(hop(1, 0)))), p4rtmsg.Insert(route(2, toSet(&p4v1.ActionProfileAction{Weight: 1}))),
		p4rtmsg.Insert(route(2, toSet(nil))),
		p4rtmsg.Insert(route(2, toSet(&p4v1.ActionProfileAction{Weight: 1, Action: p4test.Action("mark", 1)}))),
		p4rtmsg.Insert(route(2, toSet(&p4v1.ActionProfileAction{Weight: 1, Action: p4test.Action("drop"), WatchKind: &p4v1.ActionProfileAction_WatchPort{WatchPort: []byte{1, 0, 0, 0, 0}}}))),
		p4rtmsg.Insert(route(2, toSet(hop(1, 1<<17)))))
	f.fails(t, codes.ResourceExhausted, p4rtmsg.Insert(route(2, toSet(hop(1, 61)))))
	f.must(t, p4rtmsg.Insert(route(2, toSet(hop(1, 60)))), p4rtmsg.Delete(route(2, nil)))

	// A replacement may use the old one-shot's room. After a failed update the old one-shot stays.
	f.must(t, p4rtmsg.Modify(route(1, toSet(hop(3, 64)))))
	f.fails(t, codes.ResourceExhausted, p4rtmsg.Modify(route(1, toSet(hop(3, 65)))), p4rtmsg.Insert(route(2, toSet(hop(1, 1)))))
	f.wantRead(t, &p4v1.TableEntry{TableId: p4test.ID("routes")}, route(1, toSet(hop(3, 64))))
	f.must(t, p4rtmsg.Delete(route(1, nil)))
	p := f.profiles[p4test.ID("ecmp")]
	if len(p.shots) != 0 || p.weights != 0 {
		t.Errorf("%d one-shots and %d weights are left", len(p.shots), p.weights)
	}
	f.must(t, p4rtmsg.Insert(memberOf("ecmp", 1, p4test.Action("next_hop", 1, 1))))
}

func TestWatchPorts(t *testing.T) {
	f := newFixture(t)
	g := groupOf(1, 1, 2, 2, 1)
	g.Members[0].WatchKind = &p4v1.ActionProfileGroup_Member_WatchPort{WatchPort: []byte{0, 2}}
	g.Members[1].WatchKind = &p4v1.ActionProfileGroup_Member_Watch{Watch: 3} //lint:ignore SA1019 older clients use it
	f.must(t, p4rtmsg.Insert(memberOf("ecmp", 1, p4test.Action("next_hop", 1, 1))), p4rtmsg.Insert(memberOf("ecmp", 2, p4test.Action("next_hop", 2, 1))), p4rtmsg.Insert(g))
	f.wantRead(t, &p4v1.ActionProfileGroup{}, g)
	live := func() int { return len(f.liveMembers(g)) }
	if live() != 3 {
		t.Errorf("%d members live, want 3", live())
	}
	for _, c := range []struct {
		port uint32
		up   bool
		want int
	}{{2, false, 1}, {2, false, 1}, {3, false, 0}, {2, true, 2}, {3, true, 3}, {1, false, 3}} {
		if err := f.SetPort(c.port, c.up); err != nil || live() != c.want {
			t.Errorf("port %d up %v: %d members live, want %d (%v)", c.port, c.up, live(), c.want, err)
		}
	}
	bad := groupOf(2, 1, 1)
	bad.Members[0].WatchKind = &p4v1.ActionProfileGroup_Member_WatchPort{WatchPort: []byte{1, 0, 0, 0, 0}}
	f.fails(t, codes.InvalidArgument, p4rtmsg.Insert(bad))
	bad.Members[0].WatchKind = &p4v1.ActionProfileGroup_Member_Watch{Watch: -1} //lint:ignore SA1019 older clients use it
	f.fails(t, codes.InvalidArgument, p4rtmsg.Insert(bad))
}
