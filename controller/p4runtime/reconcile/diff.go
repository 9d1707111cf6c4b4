package reconcile

import (
	"bytes"
	"cmp"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/headgate/headgate/internal/p4rtmsg"
)

// Plan is the batches of updates that turn one state into another. They are written one after the
// other. The updates of a batch do not depend on each other.
type Plan struct {
	Batches [][]*p4v1.Update
}

// Len returns the number of updates.
func (p Plan) Len() int {
	n := 0
	for _, b := range p.Batches {
		n += len(b)
	}
	return n
}

// Count returns how many updates there are of each type.
func (p Plan) Count() (inserts, modifies, deletes int) {
	n := map[p4v1.Update_Type]int{}
	for _, u := range slices.Concat(p.Batches...) {
		n[u.GetType()]++
	}
	return n[p4v1.Update_INSERT], n[p4v1.Update_MODIFY], n[p4v1.Update_DELETE]
}

// The phases, each a batch. An entity is inserted before those that refer to it, and deleted after
// them. New entries are inserted before old ones are deleted, so that traffic with a route before and after also
// has one in between. Default entries often turn a feature on or off. So they change after the insertion of the
// entries that the feature needs when it is on, and before the deletion of entries that it no longer needs.
const (
	phaseMakeRoom    = iota // deletions of table entries that must precede inserts, for want of room
	phaseLeaves             // digests, clone sessions, multicast groups, members, which refer to no entity
	phaseGroups             // groups, which refer to members
	phaseEntries            // entries, which refer to all of these
	phaseDefaults           // default entries
	phaseDropEntries        // deletions, in the opposite order
	phaseDropGroups
	phaseDropLeaves
	phases
)

// Sizes returns the number of entries that the table with an id has room for; 0 is no limit.
type Sizes func(tableID uint32) int

// Diff returns the plan from have to want. Both are in the form of pipeline.Normalize. When a key is
// in both and the entities differ, the plan modifies the entity. Default entries cannot be deleted,
// so those that want does not mention stay unchanged: a feature that ever sets one must always
// mention it. sizes may be nil.
func Diff(have, want *State, sizes Sizes) Plan {
	var batches [phases][]*p4v1.Update
	add := func(phase int, kind p4v1.Update_Type, e *p4v1.Entity) {
		batches[phase] = append(batches[phase], &p4v1.Update{Type: kind, Entity: e})
	}
	growth := map[uint32]int{} // table id → number of entries after the inserts
	old, fresh := have.without(want), want.without(have)
	for _, k := range differing(old, fresh) {
		e, kind := fresh[k], p4v1.Update_MODIFY
		if _, exists := old[k]; !exists && k.kind() != kindDefault {
			kind = p4v1.Update_INSERT
			if k.kind() == kindEntry {
				growth[e.GetTableEntry().GetTableId()]++
			}
		}
		add(cmp.Or(insertPhases[k.kind()], phaseLeaves), kind, e)
	}
	if sizes != nil && len(growth) > 0 {
		for k, e := range have.without(&State{}) {
			if id := e.GetTableEntry().GetTableId(); k.kind() == kindEntry && growth[id] > 0 {
				growth[id]++
			}
		}
	}
	for _, k := range obsolete(old, fresh) {
		e := old[k]
		phase := cmp.Or(deletePhases[k.kind()], phaseDropLeaves)
		if k.kind() == kindEntry && sizes != nil {
			id := e.GetTableEntry().GetTableId()
			if most := sizes(id); most > 0 && growth[id] > most {
				phase = phaseMakeRoom
			}
		}
		add(phase, p4v1.Update_DELETE, bare(e))
	}
	var plan Plan
	for _, b := range batches {
		if len(b) > 0 {
			plan.Batches = append(plan.Batches, b)
		}
	}
	return plan
}

// differing returns the keys of want, sorted, whose entities are missing in have or differ there.
// States that were made from one another share entities, so it compares pointers first.
func differing(have, want map[Key]*p4v1.Entity) []Key {
	var keys []Key
	for k, e := range want {
		if old, exists := have[k]; !exists || old != e && !equal(old, e) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

func obsolete(have, want map[Key]*p4v1.Entity) []Key {
	var keys []Key
	for k := range have {
		if _, wanted := want[k]; !wanted && k.kind() != kindDefault {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// insertPhases and deletePhases are the phases of kinds that are not leaves.
var (
	insertPhases = map[byte]int{kindEntry: phaseEntries, kindDefault: phaseDefaults, kindGroup: phaseGroups}
	deletePhases = map[byte]int{kindEntry: phaseDropEntries, kindGroup: phaseDropGroups}
)

// bare returns the fields of an entity that a delete needs. By the specification, and in PI, a
// delete uses only the key.
func bare(e *p4v1.Entity) *p4v1.Entity {
	switch x := e.GetEntity().(type) {
	case *p4v1.Entity_TableEntry:
		t := x.TableEntry
		return p4rtmsg.Entity(&p4v1.TableEntry{TableId: t.GetTableId(), Match: t.GetMatch(), Priority: t.GetPriority()})
	case *p4v1.Entity_ActionProfileMember:
		m := x.ActionProfileMember
		return p4rtmsg.Entity(&p4v1.ActionProfileMember{ActionProfileId: m.GetActionProfileId(), MemberId: m.GetMemberId()})
	case *p4v1.Entity_ActionProfileGroup:
		g := x.ActionProfileGroup
		return p4rtmsg.Entity(&p4v1.ActionProfileGroup{ActionProfileId: g.GetActionProfileId(), GroupId: g.GetGroupId()})
	}
	return e
}

// equal is proto.Equal for entities in the form of pipeline.Normalize that have the same key. The key contains the
// whole match. Most entities of a switch are entries that lead to a group or a member, and groups. These are compared
// without reflection, which would take most of the time of a comparison.
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

// leads reports whether an entry has nothing besides its key but the non-zero id of a group or a member.
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

// known reports whether the specification defines all fields of a message.
func known(m interface{ ProtoReflect() protoreflect.Message }) bool {
	return len(m.ProtoReflect().GetUnknown()) == 0
}
