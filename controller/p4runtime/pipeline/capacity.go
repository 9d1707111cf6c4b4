package pipeline

import (
	"fmt"
	"iter"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/units"
)

// Overflow says that an object of the program is too small for its entries.
type Overflow struct {
	Object string // full name of the table or action profile
	Text   string // the arithmetic, such as "17000 entries of table t, which holds 16384"
}

// Usage is the use of a program's tables and action profiles by entities.
type Usage []use

// use is a number of one kind of an object.
type use struct {
	kind usage
	id   uint32
	n    int64
}

type usage uint8

const (
	entries usage = iota // without the default one
	members
	groups
	weights // sum over the weights of all groups, P4Runtime's sum_of_weights
)

// UsageOf counts the entries, members and groups in entities.
func UsageOf(list iter.Seq[*p4v1.Entity]) Usage {
	var u Usage
	for e := range list {
		switch x := e.GetEntity().(type) {
		case *p4v1.Entity_TableEntry:
			if !x.TableEntry.GetIsDefaultAction() {
				u.add(use{entries, x.TableEntry.GetTableId(), 1})
			}
		case *p4v1.Entity_ActionProfileMember:
			u.add(use{members, x.ActionProfileMember.GetActionProfileId(), 1})
		case *p4v1.Entity_ActionProfileGroup:
			id := x.ActionProfileGroup.GetActionProfileId()
			u.add(use{groups, id, 1})
			for _, m := range x.ActionProfileGroup.GetMembers() {
				u.add(use{weights, id, int64(m.GetWeight())})
			}
		}
	}
	return u
}

func (u *Usage) add(x use) {
	for i := range *u {
		if y := &(*u)[i]; y.kind == x.kind && y.id == x.id {
			y.n += x.n
			return
		}
	}
	*u = append(*u, x)
}

func (u Usage) of(kind usage, id uint32) int64 {
	for _, x := range u {
		if x.kind == kind && x.id == id {
			return x.n
		}
	}
	return 0
}

// Uses returns the tables and action profiles that u takes entries or members of, with their sizes.
func (p *Pipeline) Uses(u Usage) []*pb.TableUse {
	var list []*pb.TableUse
	add := func(name string, n, size int64) {
		if n > 0 {
			list = append(list, &pb.TableUse{Name: name, Entries: uint64(n), Size: uint64(max(size, 0))})
		}
	}
	for _, t := range p.info.GetTables() {
		add(t.GetPreamble().GetName(), u.of(entries, t.GetPreamble().GetId()), t.GetSize())
	}
	for _, a := range p.info.GetActionProfiles() {
		add(a.GetPreamble().GetName(), u.of(members, a.GetPreamble().GetId()), a.GetSize())
	}
	return list
}

// Overflows returns the tables and action profiles that are too small by the sizes of P4Info. Learned
// tables have room of their own.
func (p *Pipeline) Overflows(u Usage) []Overflow {
	var list []Overflow
	for _, t := range p.info.GetTables() {
		name, n, size := t.GetPreamble().GetName(), u.of(entries, t.GetPreamble().GetId()), t.GetSize()
		if size > 0 && n > size {
			list = append(list, Overflow{name, fmt.Sprintf("%d entries of table %s, which holds %d", n, name, size)})
		}
	}
	for _, a := range p.info.GetActionProfiles() {
		id, name, size := a.GetPreamble().GetId(), a.GetPreamble().GetName(), a.GetSize()
		switch {
		case size <= 0:
		case u.of(weights, id) > size:
			list = append(list, Overflow{name, fmt.Sprintf("%s with %s together of action profile %s, which holds %d", units.Count(u.of(groups, id), "group"), units.Count(u.of(weights, id), "next hop"), name, size)})
		case u.of(members, id) > size:
			list = append(list, Overflow{name, fmt.Sprintf("%d members of action profile %s, which holds %d", u.of(members, id), name, size)})
		}
	}
	return list
}
