package conformance

import (
	"encoding/binary"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/headgate/headgate/tests/dataplane/target"
)

// flow is a frame of testdata/spread.p4.
func flow(class byte, entropy uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{class}, entropy)
}

const class = 0xab

// way is the port by which a flow leaves.
func (r *rig) way(entropy uint32) uint32 {
	r.Helper()
	r.send(8, flow(class, entropy))
	return r.next().Port
}

// A member whose port is down is not used; its flows return when the port is up again.
func testWatchPort(r *rig) {
	p := r.load("spread")
	set := &p4v1.ActionProfileActionSet{}
	for port := uint64(1); port <= 2; port++ {
		set.ActionProfileActions = append(set.ActionProfileActions, &p4v1.ActionProfileAction{
			Action: p.action("send", port), Weight: 1, WatchKind: &p4v1.ActionProfileAction_WatchPort{WatchPort: number(port)}})
	}
	r.write(insert(p.entry("classes", exact(class), 0, &p4v1.TableAction{
		Type: &p4v1.TableAction_ActionProfileActionSet{ActionProfileActionSet: set}})))
	r.watches()
}

// The same holds for members of a group.
func testWatchPortOfGroup(r *rig) {
	p := r.load("spread")
	group := &p4v1.ActionProfileGroup{ActionProfileId: p.profile("ways"), GroupId: 1}
	for port := uint64(1); port <= 2; port++ {
		r.write(insert(&p4v1.ActionProfileMember{ActionProfileId: group.ActionProfileId, MemberId: uint32(port), Action: p.action("send", port)}))
		group.Members = append(group.Members, &p4v1.ActionProfileGroup_Member{
			MemberId: uint32(port), Weight: 1, WatchKind: &p4v1.ActionProfileGroup_Member_WatchPort{WatchPort: number(port)}})
	}
	r.write(insert(group), insert(p.entry("classes", exact(class), 0, toWay(group.GroupId))))
	r.watches()
}

func toWay(group uint32) *p4v1.TableAction {
	return &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileGroupId{ActionProfileGroupId: group}}
}

// watches pulls the cable of a flow's port, one of ports 1 and 2.
func (r *rig) watches() {
	r.Helper()
	const entropy = 0x01020304
	first := r.way(entropy)
	if again := r.way(entropy); again != first {
		r.Errorf("a flow leaves by port %d and then by port %d", first, again)
	}
	other := 3 - first
	// There is no signal that the switch has noticed; until then a frame to the port may be lost.
	leavesBy := func(port uint32) func() bool {
		return func() bool {
			r.send(8, flow(class, entropy))
			f, ok := r.Receive(port, 100*time.Millisecond)
			return ok && f.Port == port
		}
	}
	r.setUp(first, false)
	r.eventually("the flow leaves by the other port", leavesBy(other))
	for { // earlier frames
		if _, more := r.Receive(target.Any, r.settle); !more {
			break
		}
	}
	r.setUp(first, true)
	r.eventually("the flow leaves by its port again", leavesBy(first))
}

// A group that is deleted and made again with fewer members has only those. See
// https://github.com/p4lang/behavioral-model/issues/893.
func testDeleteGroupWithMembers(r *rig) {
	p := r.load("spread")
	profile := p.profile("ways")
	member := func(id uint32) *p4v1.ActionProfileMember {
		return &p4v1.ActionProfileMember{ActionProfileId: profile, MemberId: id, Action: p.action("send", uint64(id))}
	}
	group := func(members ...uint32) *p4v1.ActionProfileGroup {
		g := &p4v1.ActionProfileGroup{ActionProfileId: profile, GroupId: 1}
		for _, id := range members {
			g.Members = append(g.Members, &p4v1.ActionProfileGroup_Member{MemberId: id, Weight: 1})
		}
		return g
	}
	entry := p.entry("classes", exact(class), 0, toWay(1))
	r.write(insert(member(1)), insert(member(2)))
	r.write(insert(group(1, 2)))
	r.write(insert(entry))
	seen := map[uint32]bool{}
	for entropy := range uint32(32) {
		seen[r.way(entropy)] = true
	}
	if !seen[1] || !seen[2] || len(seen) != 2 {
		r.Errorf("32 flows leave by ports %v, want 1 and 2", seen)
	}
	r.write(remove(p.entry("classes", exact(class), 0, nil)))
	r.write(remove(group()))
	r.write(remove(&p4v1.ActionProfileMember{ActionProfileId: profile, MemberId: 1}))
	r.write(remove(&p4v1.ActionProfileMember{ActionProfileId: profile, MemberId: 2}))

	r.write(insert(member(1)))
	r.write(insert(group(1)))
	r.write(insert(entry))
	for entropy := range uint32(32) {
		if port := r.way(entropy); port != 1 {
			r.Errorf("a flow leaves by port %d, want 1", port)
		}
	}
	r.refused(codes.NotFound, remove(&p4v1.ActionProfileMember{ActionProfileId: profile, MemberId: 2}))
}
