package pipeline

import (
	"bytes"
	"fmt"
	"slices"
	"sort"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/canon"
)

// Normalize brings an entity, in place, into the one form that builders give it: canonical
// byte strings, sorted lists, no match that means "anything", and nothing that only a
// switch knows (counters, times). Entities that a switch returns are compared
// in this form. The error names what is not of this pipeline.
func (p *Pipeline) Normalize(e *p4v1.Entity) error {
	switch x := e.GetEntity().(type) {
	case *p4v1.Entity_TableEntry:
		return p.normalizeEntry(x.TableEntry)
	case *p4v1.Entity_ActionProfileMember:
		_, err := p.profiles.id(x.ActionProfileMember.GetActionProfileId())
		normalizeAction(x.ActionProfileMember.GetAction())
		return err
	case *p4v1.Entity_ActionProfileGroup:
		return p.normalizeGroup(x.ActionProfileGroup)
	case *p4v1.Entity_PacketReplicationEngineEntry:
		r := x.PacketReplicationEngineEntry.GetMulticastGroupEntry().GetReplicas()
		if c := x.PacketReplicationEngineEntry.GetCloneSessionEntry(); c != nil {
			r = c.GetReplicas()
		}
		sort.Slice(r, func(i, j int) bool {
			return r[i].EgressPort < r[j].EgressPort || r[i].EgressPort == r[j].EgressPort && r[i].Instance < r[j].Instance
		})
		return nil
	case *p4v1.Entity_DigestEntry:
		_, err := p.digests.id(x.DigestEntry.GetDigestId())
		return err
	case *p4v1.Entity_ExternEntry:
		return nil // whose contents are the target's
	}
	return fmt.Errorf("entities of kind %T are not reconciled", e.GetEntity())
}

func (p *Pipeline) normalizeEntry(e *p4v1.TableEntry) error {
	t, err := p.tables.id(e.GetTableId())
	if err != nil {
		return err
	}
	//lint:ignore SA1019 deprecated, but PI returns it
	e.ControllerMetadata = 0
	e.MeterConfig, e.CounterData = nil, nil
	e.MeterCounterData, e.TimeSinceLastHit = nil, nil
	kept := e.Match[:0]
	for _, m := range e.Match {
		if !normalizeMatch(m, width(t, m.GetFieldId())) {
			kept = append(kept, m)
		}
	}
	e.Match = kept
	sortMatches(e.Match)
	normalizeAction(e.GetAction().GetAction())
	for _, a := range e.GetAction().GetActionProfileActionSet().GetActionProfileActions() {
		normalizeAction(a.GetAction())
	}
	return nil
}

func width(t *p4configv1.Table, field uint32) int32 {
	for _, f := range t.GetMatchFields() {
		if f.GetId() == field {
			return f.GetBitwidth()
		}
	}
	return 0
}

// normalizeMatch reports whether the match means "anything".
func normalizeMatch(m *p4v1.FieldMatch, width int32) bool {
	switch x := m.GetFieldMatchType().(type) {
	case *p4v1.FieldMatch_Exact_:
		x.Exact.Value = canon.Of(x.Exact.Value)
	case *p4v1.FieldMatch_Optional_:
		x.Optional.Value = canon.Of(x.Optional.Value)
	case *p4v1.FieldMatch_Lpm:
		x.Lpm.Value = canon.Of(x.Lpm.Value)
		return x.Lpm.PrefixLen == 0
	case *p4v1.FieldMatch_Ternary_:
		x.Ternary.Value, x.Ternary.Mask = canon.Of(x.Ternary.Value), canon.Of(x.Ternary.Mask)
		return canon.IsZero(x.Ternary.Mask)
	case *p4v1.FieldMatch_Range_:
		x.Range.Low, x.Range.High = canon.Of(x.Range.Low), canon.Of(x.Range.High)
		return canon.IsZero(x.Range.Low) && canon.IsMax(x.Range.High, int(width))
	}
	return false
}

func normalizeAction(a *p4v1.Action) {
	for _, param := range a.GetParams() {
		param.Value = canon.Of(param.Value)
	}
	if params := a.GetParams(); len(params) > 1 {
		sort.Slice(params, func(i, j int) bool { return params[i].ParamId < params[j].ParamId })
	}
}

func (p *Pipeline) normalizeGroup(g *p4v1.ActionProfileGroup) error {
	prof, err := p.profiles.id(g.GetActionProfileId())
	if err != nil {
		return err
	}
	for _, m := range g.Members {
		m.Weight = max(m.Weight, 1)
		if b := m.GetWatchPort(); len(b) > 0 {
			m.WatchKind = &p4v1.ActionProfileGroup_Member_WatchPort{WatchPort: canon.Of(b)}
		}
	}
	// PI returns the watch port of one member for all of them (device_mgr.cpp,
	// action_profile_group_read_one). No PortGroup is like that, so it stands for one.
	if same := g.Members; len(same) > 1 && len(same[0].GetWatchPort()) > 0 && !slices.ContainsFunc(same, func(m *p4v1.ActionProfileGroup_Member) bool {
		return !bytes.Equal(m.GetWatchPort(), same[0].GetWatchPort())
	}) {
		for _, m := range same {
			watchOwn(m)
		}
	}
	sort.Slice(g.Members, func(i, j int) bool { return g.Members[i].MemberId < g.Members[j].MemberId })
	// A size that was left to the switch may come back as what the switch chose.
	if g.MaxSize == prof.GetMaxGroupSize() {
		g.MaxSize = 0
	}
	return nil
}

func sortMatches(list []*p4v1.FieldMatch) {
	if len(list) > 1 {
		sort.Slice(list, func(i, j int) bool { return list[i].FieldId < list[j].FieldId })
	}
}
