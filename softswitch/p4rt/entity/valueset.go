package entity

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/schema"
)

func (s *State) writeValueSet(op p4v1.Update_Type, in *p4v1.ValueSetEntry) error {
	if err := onlyModify(op, "value set"); err != nil {
		return err
	}
	v, err := byID("value set", s.schema.ValueSets.ID, in.GetValueSetId())
	if err != nil {
		return err
	}
	if int64(len(in.Members)) > v.Size {
		return exhausted("value set %q: it gets %d members, its size is %d", v.Name, len(in.Members), v.Size)
	}
	seen := map[encoded]bool{}
	var members [][]engine.Match
	var wire []*p4v1.ValueSetMember
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
		wire = append(wire, &p4v1.ValueSetMember{Match: match.decode().Match})
	}
	if err := s.inst.SetValueSet(v.Name, members); err != nil {
		return fromEngine(err)
	}
	s.valueSets[v.ID] = wire
	return nil
}

func (s *State) readValueSets(req *p4v1.ValueSetEntry, emit func(*p4v1.Entity)) error {
	if len(req.GetMembers()) > 0 {
		return invalid("members is set in a read of value sets")
	}
	list, err := selected("value set", s.schema.ValueSets.List, s.schema.ValueSets.ID, req.GetValueSetId())
	if err != nil {
		return err
	}
	for _, v := range list {
		emit(p4msg.Of(&p4v1.ValueSetEntry{
			ValueSetId: v.ID, Members: s.valueSets[v.ID],
		}))
	}
	return nil
}
