package reconcile

import (
	"bytes"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// equal is proto.Equal for entities in the form of pipeline.Normalize that have one key, which is all of
// a match. Nearly all that a switch holds are entries that lead to a group or a member, and groups: these
// are compared without reflection, which takes most of the time of a comparison otherwise.
func equal(a, b *p4v1.Entity) bool {
	if known(a) && known(b) {
		if x, y := a.GetTableEntry(), b.GetTableEntry(); leads(x) && leads(y) {
			return x.GetAction().GetActionProfileGroupId() == y.GetAction().GetActionProfileGroupId() &&
				x.GetAction().GetActionProfileMemberId() == y.GetAction().GetActionProfileMemberId()
		}
		if x, y := a.GetActionProfileGroup(), b.GetActionProfileGroup(); x != nil && y != nil && known(x) && known(y) && x.MaxSize == y.MaxSize {
			return slices.EqualFunc(x.Members, y.Members, sameMember)
		}
	}
	return proto.Equal(a, b)
}

// leads reports whether all of an entry beside its key is the id of a group or a member, which is not 0.
func leads(t *p4v1.TableEntry) bool {
	//lint:ignore SA1019 deprecated, but part of the message
	if t == nil || t.ControllerMetadata != 0 || t.MeterConfig != nil || t.CounterData != nil || t.MeterCounterData != nil ||
		t.IdleTimeoutNs != 0 || t.TimeSinceLastHit != nil || len(t.Metadata) > 0 || t.IsDefaultAction || !known(t) || !known(t.GetAction()) {
		return false
	}
	return t.GetAction().GetActionProfileGroupId() != 0 || t.GetAction().GetActionProfileMemberId() != 0
}

func sameMember(x, y *p4v1.ActionProfileGroup_Member) bool {
	p, hasPort := x.WatchKind.(*p4v1.ActionProfileGroup_Member_WatchPort)
	q, alsoPort := y.WatchKind.(*p4v1.ActionProfileGroup_Member_WatchPort)
	if !hasPort || !alsoPort || !known(x) || !known(y) {
		return proto.Equal(x, y)
	}
	return x.MemberId == y.MemberId && x.Weight == y.Weight && bytes.Equal(p.WatchPort, q.WatchPort)
}

// known reports whether a message has no fields but those of the specification.
func known(m interface{ ProtoReflect() protoreflect.Message }) bool {
	return len(m.ProtoReflect().GetUnknown()) == 0
}
