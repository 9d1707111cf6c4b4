package pipeline

import (
	"fmt"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// Overflow says that an object of the program is too small for what shall stand in it.
type Overflow struct {
	Object string // full name of the table or action profile
	Text   string // the arithmetic, such as "17000 entries of table t, which holds 16384"
}

// Overflows counts what entities take of the program's tables and action profiles, as the sizes
// of P4Info bound them: entries without the default one, members, and the weights of all groups
// together (P4Runtime's sum_of_weights). Learned tables have room of their own.
func (p *Pipeline) Overflows(entities []*p4v1.Entity) []Overflow {
	entries, members, groups, weights := map[uint32]int64{}, map[uint32]int64{}, map[uint32]int64{}, map[uint32]int64{}
	for _, e := range entities {
		switch x := e.GetEntity().(type) {
		case *p4v1.Entity_TableEntry:
			if !x.TableEntry.GetIsDefaultAction() {
				entries[x.TableEntry.GetTableId()]++
			}
		case *p4v1.Entity_ActionProfileMember:
			members[x.ActionProfileMember.GetActionProfileId()]++
		case *p4v1.Entity_ActionProfileGroup:
			id := x.ActionProfileGroup.GetActionProfileId()
			groups[id]++
			for _, m := range x.ActionProfileGroup.GetMembers() {
				weights[id] += int64(m.GetWeight())
			}
		}
	}
	var list []Overflow
	for _, t := range p.info.GetTables() {
		name, n, size := t.GetPreamble().GetName(), entries[t.GetPreamble().GetId()], t.GetSize()
		if size > 0 && n > size {
			list = append(list, Overflow{name, fmt.Sprintf("%d entries of table %s, which holds %d", n, name, size)})
		}
	}
	for _, a := range p.info.GetActionProfiles() {
		id, name, size := a.GetPreamble().GetId(), a.GetPreamble().GetName(), a.GetSize()
		switch {
		case size <= 0:
		case weights[id] > size:
			list = append(list, Overflow{name, fmt.Sprintf("%d groups with %d next hops together of action profile %s, which holds %d", groups[id], weights[id], name, size)})
		case members[id] > size:
			list = append(list, Overflow{name, fmt.Sprintf("%d members of action profile %s, which holds %d", members[id], name, size)})
		}
	}
	return list
}
