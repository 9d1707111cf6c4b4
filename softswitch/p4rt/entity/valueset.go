package entity

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/schema"
)

func (s *State) writeValueSet(op p4v1.Update_Type, in *p4v1.ValueSetEntry) error {
	if err := onlyModify(op, "value set"); err != nil {
		return err
	}
	v, err := s.schema.ValueSets.Find(in.GetValueSetId())
	if err != nil {
		return err
	}
	if int64(len(in.Members)) > v.Size {
		return exhausted("value set %q: it gets %d members, its size is %d", v.Name, len(in.Members), v.Size)
	}
	seen := map[encoded]bool{}
	var members [][]engine.Match
	var list []*p4v1.ValueSetMember
	for i, m := range in.Members {
		var k schema.Key
		if err := v.Member(&k, m.GetMatch()); err != nil {
			return err
		}
		match := encoded(k.Encoded)
		if seen[match] {
			return exists("value set %q: members[%d] is there twice", v.Name, i)
		}
		seen[match] = true
		members = append(members, k.Engine)
		list = append(list, &p4v1.ValueSetMember{Match: match.decode().Match})
	}
	if err := s.inst.SetValueSet(v.Name, members); err != nil {
		return err
	}
	s.valueSets[v.ID] = list
	return nil
}

func (s *State) readValueSets(req *p4v1.ValueSetEntry, emit func(Found)) error {
	if len(req.GetMembers()) > 0 {
		return invalid("members is set in a read of value sets")
	}
	list, err := s.schema.ValueSets.Select(req.GetValueSetId())
	for _, v := range list {
		emit(found(&p4v1.ValueSetEntry{ValueSetId: v.ID, Members: s.valueSets[v.ID]}))
	}
	return err
}
