package entity

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/schema"
)

// profile holds the members and groups of one action profile. It also holds one-shots, with ids of
// their own. The ids never conflict, because the specification forbids mixing one-shots with
// members and groups in one profile.
type profile struct {
	spec    *schema.Profile
	members ordered[uint32, *member]
	groups  ordered[uint32, *group]
	shots   map[*oneShot]bool
	weights int64 // sum over all groups and one-shots

	nextMember engine.MemberID // next id for a one-shot's member
	nextGroup  engine.GroupID
}

type member struct {
	wire    *p4v1.ActionProfileMember
	entries int // table entries that point to the member
	groups  int // groups that contain the member
}

type group struct {
	wire    *p4v1.ActionProfileGroup
	entries int
	weight  int64
}

func newProfile(p *schema.Profile) *profile {
	return &profile{spec: p, shots: map[*oneShot]bool{}, nextMember: 1, nextGroup: 1}
}

// use adds delta, +1 or -1, to the use count of the member or group that an entry refers to.
func (t *table) use(e *entry, delta int) {
	switch {
	case e.refers == 0:
	case e.group:
		g, _ := t.profile.groups.get(e.refers)
		g.entries += delta
	default:
		m, _ := t.profile.members.get(e.refers)
		m.entries += delta
	}
}

// refer sets what an entry points to.
func (e *entry) refer(to engine.Target, shot *oneShot) {
	e.shot, e.refers, e.group = shot, 0, false
	switch {
	case shot != nil:
	case to.Member != nil:
		e.refers = uint32(*to.Member)
	case to.Group != nil:
		e.refers, e.group = uint32(*to.Group), true
	}
}

func (s *State) profileByID(id uint32) (*profile, error) {
	p := s.profiles[id]
	if p == nil {
		return nil, invalid("action_profile_id is %#x, which is no action profile of the P4Info", id)
	}
	return p, nil
}

// call validates an action against the tables that share the profile.
func (p *profile) call(in *p4v1.Action) (*p4v1.Action, engine.ActionCall, error) {
	if len(p.spec.Tables) == 0 {
		return nil, engine.ActionCall{}, invalid("action profile %q: no table uses it, so it allows no action", p.spec.Name)
	}
	var call engine.ActionCall
	out, err := p.spec.Tables[0].Action(&call, in, false)
	return out, call, err
}

func (s *State) writeMember(op p4v1.Update_Type, in *p4v1.ActionProfileMember) error {
	p, err := s.profileByID(in.GetActionProfileId())
	if err != nil {
		return err
	}
	name, id := p.spec.Name, in.MemberId
	if id == 0 {
		return invalid("action profile %q: member_id is 0", name)
	}
	old, ok := p.members.get(id)
	if op == p4v1.Update_DELETE {
		switch {
		case !ok:
			return p.missing("member", id)
		case old.groups > 0 || old.entries > 0:
			return status.Errorf(codes.FailedPrecondition, "action profile %q: member %d is in use by %d groups and %d table entries", name, id, old.groups, old.entries)
		}
		if err := s.inst.DeleteMember(name, engine.MemberID(id)); err != nil {
			return fromEngine(err)
		}
		p.members.remove(id)
		return nil
	}
	if in.Action == nil {
		return invalid("action profile %q: member %d: action is unset", name, id)
	}
	action, call, err := p.call(in.Action)
	if err != nil {
		return err
	}
	wire := &p4v1.ActionProfileMember{ActionProfileId: in.ActionProfileId, MemberId: id, Action: action}
	if op == p4v1.Update_MODIFY {
		if !ok {
			return p.missing("member", id)
		}
		if err := s.inst.ModifyMember(name, engine.MemberID(id), call); err != nil {
			return fromEngine(err)
		}
		old.wire = wire
		return nil
	}
	switch {
	case ok:
		return exists("action profile %q: member %d exists", name, id)
	case len(p.shots) > 0:
		return errMixed(name)
	case p.spec.Size > 0 && int64(p.members.len()) >= p.spec.Size:
		return exhausted("action profile %q: it has %d members, its size", name, p.spec.Size)
	}
	if err := s.inst.AddMember(name, engine.MemberID(id), call); err != nil {
		return fromEngine(err)
	}
	p.members.set(id, &member{wire: wire})
	return nil
}

func errMixed(name string) error {
	return invalid("action profile %q: it is programmed either with one-shots or with members and groups, not with both", name)
}

func (s *State) readMembers(req *p4v1.ActionProfileMember, emit func(*p4v1.Entity)) error {
	return s.readProfiles("member", req.GetActionProfileId(), req.GetMemberId(), func(p *profile) bool {
		return p.members.read(req.GetMemberId(), func(m *member) {
			emit(p4msg.Of(m.wire))
		})
	})
}

// readProfiles calls read for a profile, or for all profiles if profile is 0. It fails if read
// does not find the member or group with the id.
func (s *State) readProfiles(kind string, profile, id uint32, read func(*profile) bool) error {
	if profile == 0 && id != 0 {
		return invalid("%s_id is %d with action_profile_id 0, which reads all %ss", kind, id, kind)
	}
	list, err := selected("action profile", s.schema.Profiles.List, s.schema.Profiles.ID, profile)
	if err != nil {
		return err
	}
	for _, spec := range list {
		if p := s.profiles[spec.ID]; !read(p) {
			return p.missing(kind, id)
		}
	}
	return nil
}

// missing is the error for a member or group that does not exist.
func (p *profile) missing(kind string, id uint32) error {
	return notFound("action profile %q: there is no %s %d", p.spec.Name, kind, id)
}
