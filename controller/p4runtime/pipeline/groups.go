package pipeline

import (
	"fmt"
	"sort"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/p4msg"
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
	return p4msg.Of(&p4v1.ActionProfileMember{ActionProfileId: prof.GetPreamble().GetId(), MemberId: id, Action: a}), nil
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
	return p4msg.Of(g), nil
}

// PortGroup is Group with members that are numbered after the ports they send by. Each takes
// part in the selection only while its port is up (P4Runtime Specification 1.4, section 9.2.3),
// which the switch sees to without the controller.
func (p *Pipeline) PortGroup(profile string, id uint32, ports []uint32) (*p4v1.Entity, error) {
	e, err := p.Group(profile, id, ports)
	for _, m := range e.GetActionProfileGroup().GetMembers() {
		watchOwn(m)
	}
	return e, err
}

// watchOwn makes a member of a PortGroup watch its port.
func watchOwn(m *p4v1.ActionProfileGroup_Member) {
	m.WatchKind = &p4v1.ActionProfileGroup_Member_WatchPort{WatchPort: p4msg.Uint(uint64(m.GetMemberId()))}
}

// Extern returns an extern entry without contents, for reads: the type is in the first byte of
// the id.
func Extern(id uint32) *p4v1.Entity {
	return p4msg.Of(&p4v1.ExternEntry{ExternTypeId: id >> 24, ExternId: id})
}

// CloneSession builds a clone session that sends copies to ports. Its class of service is
// 0 and it does not truncate, since PI refuses everything else.
func CloneSession(id uint32, ports ...uint32) *p4v1.Entity {
	return p4msg.Of(&p4v1.CloneSessionEntry{SessionId: id, Replicas: p4msg.Replicas(ports...)})
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
	return p4msg.Of(&p4v1.MulticastGroupEntry{MulticastGroupId: id, Replicas: p4msg.Replicas(ports...)})
}

// Digest builds the configuration of a digest: at most most messages in one list, held
// back at most timeoutNS nanoseconds.
func (p *Pipeline) Digest(name string, most int32, timeoutNS int64) (*p4v1.Entity, error) {
	d, err := p.digests.find(name)
	if err != nil {
		return nil, err
	}
	return p4msg.Of(&p4v1.DigestEntry{
		DigestId: d.GetPreamble().GetId(),
		Config:   &p4v1.DigestEntry_Config{MaxListSize: most, MaxTimeoutNs: timeoutNS, AckTimeoutNs: 1e9},
	}), nil
}
