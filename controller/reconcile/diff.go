package reconcile

import (
	"sort"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"
)

// Plan is what turns one state into another: batches to be written one after the other.
// The updates of one batch depend on nothing in the same batch.
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
	for _, b := range p.Batches {
		for _, u := range b {
			switch u.GetType() {
			case p4v1.Update_INSERT:
				inserts++
			case p4v1.Update_MODIFY:
				modifies++
			case p4v1.Update_DELETE:
				deletes++
			}
		}
	}
	return inserts, modifies, deletes
}

// The phases, each a batch. What others refer to comes first when it is put in and last
// when it is taken out, and new entries come before old ones go, so that traffic that has
// a way before and after also has one in between. Default entries are often the switch
// that turns a feature on or off: they change when all entries that a feature then needs
// are in, and before those go that it needed until then.
const (
	phaseMakeRoom    = iota // table entries, where a table is too full to wait
	phaseLeaves             // digests, clone sessions, multicast groups, members
	phaseGroups             // groups, which refer to members
	phaseEntries            // entries, which refer to all of these
	phaseDefaults           // default entries
	phaseDropEntries        // and the way back
	phaseDropGroups
	phaseDropLeaves
	phases
)

// Sizes tells how many entries the table with an id holds; 0 is no limit.
type Sizes func(tableID uint32) int

// Diff returns the plan from have to want. Both are in the form of pipeline.Normalize.
// Default entries that want does not mention stay as they are, since they cannot be
// deleted: a feature that ever sets one always states it. Where a key is in both and the
// entities differ, the plan modifies. sizes may be nil.
func Diff(have, want *State, sizes Sizes) Plan {
	var batches [phases][]*p4v1.Update
	add := func(phase int, kind p4v1.Update_Type, e *p4v1.Entity) {
		batches[phase] = append(batches[phase], &p4v1.Update{Type: kind, Entity: e})
	}
	growth := map[uint32]int{} // table → entries once the inserts are done
	for _, k := range want.keys() {
		e := want.entities[k]
		old, exists := have.entities[k]
		switch {
		case !exists && k.kind() == kindDefault:
			add(phaseDefaults, p4v1.Update_MODIFY, e)
		case !exists:
			add(insertPhase(k), p4v1.Update_INSERT, e)
			if k.kind() == kindEntry {
				growth[e.GetTableEntry().GetTableId()]++
			}
		case !proto.Equal(old, e):
			add(insertPhase(k), p4v1.Update_MODIFY, e)
		}
	}
	obsolete := obsoleteKeys(have, want)
	if sizes != nil && len(growth) > 0 {
		for k, e := range have.entities {
			if id := e.GetTableEntry().GetTableId(); k.kind() == kindEntry && growth[id] > 0 {
				growth[id]++
			}
		}
	}
	for _, k := range obsolete {
		e := have.entities[k]
		phase := deletePhase(k)
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

func obsoleteKeys(have, want *State) []Key {
	var keys []Key
	for k := range have.entities {
		if _, wanted := want.entities[k]; !wanted && k.kind() != kindDefault {
			keys = append(keys, k)
		}
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i] < keys[j] })
	return keys
}

func insertPhase(k Key) int {
	switch k.kind() {
	case kindEntry:
		return phaseEntries
	case kindDefault:
		return phaseDefaults
	case kindGroup:
		return phaseGroups
	}
	return phaseLeaves
}

func deletePhase(k Key) int {
	switch k.kind() {
	case kindEntry:
		return phaseDropEntries
	case kindGroup:
		return phaseDropGroups
	}
	return phaseDropLeaves
}

// bare returns what is needed to delete an entity. The specification has a delete look at
// the key only; PI agrees, but why send the rest.
func bare(e *p4v1.Entity) *p4v1.Entity {
	switch x := e.GetEntity().(type) {
	case *p4v1.Entity_TableEntry:
		t := x.TableEntry
		return &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{
			TableId: t.GetTableId(), Match: t.GetMatch(), Priority: t.GetPriority(),
		}}}
	case *p4v1.Entity_ActionProfileMember:
		m := x.ActionProfileMember
		return &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileMember{ActionProfileMember: &p4v1.ActionProfileMember{
			ActionProfileId: m.GetActionProfileId(), MemberId: m.GetMemberId(),
		}}}
	case *p4v1.Entity_ActionProfileGroup:
		g := x.ActionProfileGroup
		return &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileGroup{ActionProfileGroup: &p4v1.ActionProfileGroup{
			ActionProfileId: g.GetActionProfileId(), GroupId: g.GetGroupId(),
		}}}
	}
	return e
}
