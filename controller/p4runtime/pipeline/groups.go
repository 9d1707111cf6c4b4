package pipeline

import (
	"bytes"
	"fmt"
	"slices"
	"sort"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/internal/p4rtmsg"
)

// Member builds a member of an action profile; the id must not be 0.
func (p *Pipeline) Member(profile string, id uint32, action string, args ...Arg) (*p4v1.Entity, error) {
	prof, err := p.profiles.find(profile)
	if err != nil {
		return nil, err
	}
	if id == 0 {
		return nil, fmt.Errorf("action profile %s: member id 0 is a wildcard", profile)
	}
	a, err := p.action(action, args)
	if err != nil {
		return nil, err
	}
	return p4rtmsg.Entity(&p4v1.ActionProfileMember{ActionProfileId: prof.GetPreamble().GetId(), MemberId: id, Action: a}), nil
}

// Group builds a group of an action selector with the given members at weight 1.
func (p *Pipeline) Group(profile string, id uint32, members []uint32) (*p4v1.Entity, error) {
	prof, err := p.profiles.find(profile)
	if err != nil {
		return nil, err
	}
	if id == 0 {
		return nil, fmt.Errorf("action profile %s: group id 0 is a wildcard", profile)
	}
	if most := prof.GetMaxGroupSize(); most > 0 && len(members) > int(most) {
		return nil, fmt.Errorf("action profile %s: group %d has %d members, at most %d fit", profile, id, len(members), most)
	}
	g := &p4v1.ActionProfileGroup{ActionProfileId: prof.GetPreamble().GetId(), GroupId: id}
	for _, m := range members {
		g.Members = append(g.Members, &p4v1.ActionProfileGroup_Member{MemberId: m, Weight: 1})
	}
	sort.Slice(g.Members, func(i, j int) bool { return g.Members[i].MemberId < g.Members[j].MemberId })
	return p4rtmsg.Entity(g), nil
}

// PortGroup is Group with members that are numbered after the ports they send by. Each takes part in the selection
// only while its port is up (P4Runtime Specification 1.4, section 9.2.3). The switch does this without the
// controller.
func (p *Pipeline) PortGroup(profile string, id uint32, ports []uint32) (*p4v1.Entity, error) {
	e, err := p.Group(profile, id, ports)
	for _, m := range e.GetActionProfileGroup().GetMembers() {
		watchOwn(m)
	}
	return e, err
}

// watchOwn makes a member of a PortGroup watch its port.
func watchOwn(m *p4v1.ActionProfileGroup_Member) {
	m.WatchKind = &p4v1.ActionProfileGroup_Member_WatchPort{WatchPort: p4rtmsg.Uint(uint64(m.GetMemberId()))}
}

// Extern returns an extern entry without contents, for reads: the type is in the first byte of
// the id.
func Extern(id uint32) *p4v1.Entity {
	return p4rtmsg.Entity(&p4v1.ExternEntry{ExternTypeId: id >> 24, ExternId: id})
}

// CloneSession builds a clone session that sends copies to ports. Its class of service is
// 0 and it does not truncate, since PI refuses everything else.
func CloneSession(id uint32, ports ...uint32) *p4v1.Entity {
	return p4rtmsg.Entity(&p4v1.CloneSessionEntry{SessionId: id, Replicas: p4rtmsg.Replicas(ports...)})
}

// PriorityCloneSession is CloneSession with a class of service, which is the queue of the
// copies; for targets that take one.
func PriorityCloneSession(id, class uint32, ports ...uint32) *p4v1.Entity {
	e := CloneSession(id, ports...)
	e.GetPacketReplicationEngineEntry().GetCloneSessionEntry().ClassOfService = class
	return e
}

// Multicast builds a multicast group.
func Multicast(id uint32, ports ...uint32) *p4v1.Entity {
	return p4rtmsg.Entity(&p4v1.MulticastGroupEntry{MulticastGroupId: id, Replicas: p4rtmsg.Replicas(ports...)})
}

// Digest builds the configuration of a digest: at most most messages in one list, held
// back at most timeoutNS nanoseconds.
func (p *Pipeline) Digest(name string, most int32, timeoutNS int64) (*p4v1.Entity, error) {
	d, err := p.digests.find(name)
	if err != nil {
		return nil, err
	}
	return p4rtmsg.Entity(&p4v1.DigestEntry{
		DigestId: d.GetPreamble().GetId(),
		Config:   &p4v1.DigestEntry_Config{MaxListSize: most, MaxTimeoutNs: timeoutNS, AckTimeoutNs: 1e9},
	}), nil
}

// Normalize brings an entity, in place, into the one form that builders give it: canonical byte strings, sorted
// lists, no match that means "anything", and nothing that only a switch knows (counters, times). Entities that a
// switch returns are compared in this form. The error names parts that this pipeline does not have.
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
		return nil // the target defines its contents
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
		x.Exact.Value = bytestring.Canonical(x.Exact.Value)
	case *p4v1.FieldMatch_Optional_:
		x.Optional.Value = bytestring.Canonical(x.Optional.Value)
	case *p4v1.FieldMatch_Lpm:
		x.Lpm.Value = bytestring.Canonical(x.Lpm.Value)
		return x.Lpm.PrefixLen == 0
	case *p4v1.FieldMatch_Ternary_:
		x.Ternary.Value, x.Ternary.Mask = bytestring.Canonical(x.Ternary.Value), bytestring.Canonical(x.Ternary.Mask)
		return bytestring.IsZero(x.Ternary.Mask)
	case *p4v1.FieldMatch_Range_:
		x.Range.Low, x.Range.High = bytestring.Canonical(x.Range.Low), bytestring.Canonical(x.Range.High)
		return bytestring.IsZero(x.Range.Low) && bytestring.IsMax(x.Range.High, int(width))
	}
	return false
}

func normalizeAction(a *p4v1.Action) {
	for _, param := range a.GetParams() {
		param.Value = bytestring.Canonical(param.Value)
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
			m.WatchKind = &p4v1.ActionProfileGroup_Member_WatchPort{WatchPort: bytestring.Canonical(b)}
		}
	}
	// PI returns the watch port of one member for all of them (device_mgr.cpp, action_profile_group_read_one). No
	// PortGroup has one watch port for all members, so this form is read as a PortGroup.
	if same := g.Members; len(same) > 1 && len(same[0].GetWatchPort()) > 0 && !slices.ContainsFunc(same, func(m *p4v1.ActionProfileGroup_Member) bool {
		return !bytes.Equal(m.GetWatchPort(), same[0].GetWatchPort())
	}) {
		for _, m := range same {
			watchOwn(m)
		}
	}
	sort.Slice(g.Members, func(i, j int) bool { return g.Members[i].MemberId < g.Members[j].MemberId })
	// A size of 0 may come back as the size that the switch chose.
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
