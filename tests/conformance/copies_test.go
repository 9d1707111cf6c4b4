package conformance

import (
	"slices"

	"github.com/google/go-cmp/cmp"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
)

// The fates of a frame in testdata/copy.p4.
const (
	toGroup   = 0
	cloneI2E  = 1
	cloneE2E  = 2
	sendsBack = 3
)

// Kinds of packets, v1model's standard_metadata.instance_type.
const (
	original     = 0
	ingressClone = 1
	egressClone  = 2
	replicated   = 5
)

func order(what, target byte) []byte { return []byte{what, 0, target, 0, 0, 0} }

// copied is a frame that egress saw.
type copied struct{ Port, Replica, Kind uint32 }

// copies sends a frame and checks the copies that leave, in any order, and that nothing else leaves.
func (r *rig) copies(port uint32, frame []byte, want ...copied) {
	r.Helper()
	r.send(port, frame)
	var got []copied
	for range want {
		f := r.next()
		got = append(got, copied{f.Port, uint32(f.Data[3])<<8 | uint32(f.Data[4]), uint32(f.Data[5])})
	}
	slices.SortFunc(got, func(a, b copied) int { return slices.Compare([]uint32{a.Port, a.Replica}, []uint32{b.Port, b.Replica}) })
	if diff := cmp.Diff(want, got); diff != "" {
		r.Errorf("copies of %x (-want +got):\n%s", frame, diff)
	}
	r.passes(port, order(sendsBack, 0), port, order(sendsBack, 0))
}

func replicas(all ...copied) (list []*p4v1.Replica) {
	for _, c := range all {
		list = append(list, &p4v1.Replica{EgressPort: c.Port, Instance: c.Replica})
	}
	return list
}

func testMulticast(r *rig) {
	r.load("copy")
	one, two, three := copied{1, 1, replicated}, copied{2, 2, replicated}, copied{3, 1, replicated}
	group := &p4v1.MulticastGroupEntry{MulticastGroupId: 10, Replicas: replicas(one, two)}
	r.write(insert(group))
	r.copies(1, order(toGroup, 10), one, two)
	r.refused(codes.AlreadyExists, insert(group))

	group.Replicas = replicas(one, two, three)
	r.write(modify(group))
	r.copies(1, order(toGroup, 10), one, two, three)

	group.Replicas = replicas(one, two)
	r.write(modify(group))
	r.copies(1, order(toGroup, 10), one, two)

	r.write(remove(&p4v1.MulticastGroupEntry{MulticastGroupId: 10}))
	r.copies(1, order(toGroup, 10))
	r.refused(codes.NotFound, modify(group))
}

func testCloneIngress(r *rig) { testClone(r, cloneI2E, ingressClone) }
func testCloneEgress(r *rig)  { testClone(r, cloneE2E, egressClone) }

// The original's path does not depend on its clones.
func testClone(r *rig, what byte, kind uint32) {
	r.load("copy")
	sent := copied{1, 0, original}
	two, three := copied{2, 1, kind}, copied{3, 2, kind}
	r.copies(1, order(what, 10), sent)
	session := &p4v1.CloneSessionEntry{SessionId: 10, Replicas: replicas(two)}
	r.write(insert(session))
	r.copies(1, order(what, 10), sent, two)

	session.Replicas = replicas(two, three)
	r.write(modify(session))
	r.copies(1, order(what, 10), sent, two, three)

	r.write(remove(&p4v1.CloneSessionEntry{SessionId: 10}))
	r.copies(1, order(what, 10), sent)
}
