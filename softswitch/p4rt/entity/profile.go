package entity

import (
	"cmp"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/schema"
)

// maxWeight bounds the sum of a group's weights if the P4Info does not bound the group's size. The
// engine stores a member once per unit of weight.
const maxWeight = 1 << 16

// profile holds the members and groups of one action profile. It also holds one-shots, with ids of
// their own. The ids never conflict, because the specification forbids mixing one-shots with
// members and groups in one profile.
type profile struct {
	spec    *schema.Profile
	members map[uint32]*member
	groups  map[uint32]*group
	shots   map[*oneShot]bool
	weights int64 // sum over all groups and one-shots

	nextMember engine.MemberID // next id for a one-shot's member
	nextGroup  engine.GroupID
}

type member struct {
	message *p4v1.ActionProfileMember
	entries int // table entries that point to the member
	groups  int // groups that contain the member
}

type group struct {
	message *p4v1.ActionProfileGroup
	entries int
	weight  int64
}

func newProfile(p *schema.Profile) *profile {
	return &profile{spec: p, members: map[uint32]*member{}, groups: map[uint32]*group{}, shots: map[*oneShot]bool{}, nextMember: 1, nextGroup: 1}
}

func (s *State) profileByID(id uint32) (*profile, error) {
	if p := s.profiles[id]; p != nil {
		return p, nil
	}
	_, err := s.schema.Profiles.Find(id)
	return nil, err
}

func (s *State) writeMember(op p4v1.Update_Type, in *p4v1.ActionProfileMember) error {
	p, err := s.profileByID(in.GetActionProfileId())
	if err != nil {
		return err
	}
	name, id := p.spec.Name, in.MemberId
	old := p.members[id]
	switch {
	case id == 0:
		return invalid("action profile %q: member_id is 0", name)
	case op != p4v1.Update_DELETE:
	case old == nil:
		return p.missing("member", id)
	case old.groups > 0 || old.entries > 0:
		return status.Errorf(codes.FailedPrecondition, "action profile %q: member %d is in use by %d groups and %d table entries", name, id, old.groups, old.entries)
	default:
		err := s.inst.DeleteMember(name, engine.MemberID(id))
		if err == nil {
			delete(p.members, id)
		}
		return err
	}
	if in.Action == nil {
		return invalid("action profile %q: member %d: action is unset", name, id)
	}
	if len(p.spec.Tables) == 0 {
		return invalid("action profile %q: no table uses it, so it allows no action", name)
	}
	var call engine.ActionCall
	action, err := p.spec.Tables[0].Action(&call, in.Action, false) // tables that share a profile have the same actions
	if err != nil {
		return err
	}
	message := &p4v1.ActionProfileMember{ActionProfileId: in.ActionProfileId, MemberId: id, Action: action}
	switch {
	case op == p4v1.Update_MODIFY && old == nil:
		return p.missing("member", id)
	case op == p4v1.Update_MODIFY:
		if err := s.inst.ModifyMember(name, engine.MemberID(id), call); err != nil {
			return err
		}
		old.message = message
		return nil
	case old != nil:
		return exists("action profile %q: member %d exists", name, id)
	case len(p.shots) > 0:
		return errMixed(name)
	case p.spec.Size > 0 && int64(len(p.members)) >= p.spec.Size:
		return exhausted("action profile %q: it has %d members, its size", name, p.spec.Size)
	}
	if err := s.inst.AddMember(name, engine.MemberID(id), call); err != nil {
		return err
	}
	p.members[id] = &member{message: message}
	return nil
}

func errMixed(name string) error {
	return invalid("action profile %q: it is programmed either with one-shots or with members and groups, not with both", name)
}

func (p *profile) missing(kind string, id uint32) error {
	return notFound("action profile %q: there is no %s %d", p.spec.Name, kind, id)
}

func (s *State) readMembers(req *p4v1.ActionProfileMember, emit func(Found)) error {
	return s.readProfiles("member", req.GetActionProfileId(), req.GetMemberId(), func(p *profile) bool {
		return each(p.members, req.GetMemberId(), func(m *member) { emit(found(m.message)) })
	})
}

func (s *State) readGroups(req *p4v1.ActionProfileGroup, emit func(Found)) error {
	return s.readProfiles("group", req.GetActionProfileId(), req.GetGroupId(), func(p *profile) bool {
		return each(p.groups, req.GetGroupId(), func(g *group) { emit(found(g.message)) })
	})
}

// readProfiles calls read for a profile, or for all profiles if profile is 0. It fails if read
// does not find the member or group with the id.
func (s *State) readProfiles(kind string, profile, id uint32, read func(*profile) bool) error {
	if profile == 0 && id != 0 {
		return invalid("%s_id is %d with action_profile_id 0, which reads all %ss", kind, id, kind)
	}
	list, err := s.schema.Profiles.Select(profile)
	for _, spec := range list {
		if p := s.profiles[spec.ID]; !read(p) {
			return p.missing(kind, id)
		}
	}
	return err
}

func (s *State) writeGroup(op p4v1.Update_Type, in *p4v1.ActionProfileGroup) error {
	p, err := s.profileByID(in.GetActionProfileId())
	if err != nil {
		return err
	}
	name, id := p.spec.Name, in.GroupId
	old := p.groups[id]
	switch {
	case !p.spec.Selector:
		return invalid("action profile %q: it has no selector, hence no groups", name)
	case id == 0:
		return invalid("action profile %q: group_id is 0", name)
	case op != p4v1.Update_DELETE:
	case old == nil:
		return p.missing("group", id)
	case old.entries > 0:
		return status.Errorf(codes.FailedPrecondition, "action profile %q: group %d is in use by %d table entries", name, id, old.entries)
	default:
		err := s.inst.DeleteGroup(name, engine.GroupID(id))
		if err == nil {
			p.countMembers(old.message, -1)
			p.weights -= old.weight
			delete(p.groups, id)
		}
		return err
	}
	weight, err := s.checkGroup(p, in)
	if err != nil {
		return err
	}
	switch {
	case op == p4v1.Update_MODIFY && old == nil:
		return p.missing("group", id)
	case op == p4v1.Update_MODIFY && in.MaxSize != old.message.MaxSize:
		return invalid("action profile %q: group %d: max_size is %d, it was inserted with %d", name, id, in.MaxSize, old.message.MaxSize)
	case op == p4v1.Update_MODIFY:
	case old != nil:
		return exists("action profile %q: group %d exists", name, id)
	case len(p.shots) > 0:
		return errMixed(name)
	default:
		old = &group{}
	}
	if err := p.room(weight, old.weight); err != nil {
		return err
	}
	if err := s.inst.SetGroup(name, engine.GroupID(id), s.liveMembers(in)); err != nil {
		return err
	}
	p.countMembers(old.message, -1)
	p.weights += weight - old.weight
	old.message, old.weight = proto.CloneOf(in), weight
	p.countMembers(old.message, +1)
	p.groups[id] = old
	return nil
}

// room checks that weight fits in the profile after freed is subtracted.
func (p *profile) room(weight, freed int64) error {
	if p.spec.Size > 0 && p.weights-freed+weight > p.spec.Size {
		return exhausted("action profile %q: the weights of its groups would sum to %d, its size is %d", p.spec.Name, p.weights-freed+weight, p.spec.Size)
	}
	return nil
}

func (s *State) checkGroup(p *profile, in *p4v1.ActionProfileGroup) (int64, error) {
	name, id, limit := p.spec.Name, in.GroupId, p.spec.MaxGroupSize
	if in.MaxSize < 0 || limit > 0 && in.MaxSize > limit {
		return 0, invalid("action profile %q: group %d: max_size is %d, allowed are 0 to max_group_size, %d", name, id, in.MaxSize, limit)
	}
	seen := make(map[uint32]bool, len(in.Members))
	sum := int64(0)
	for i, m := range in.Members {
		switch {
		case seen[m.GetMemberId()]:
			return 0, invalid("action profile %q: group %d: members[%d].member_id %d is there twice; use its weight", name, id, i, m.GetMemberId())
		case m.GetWeight() <= 0:
			return 0, invalid("action profile %q: group %d: members[%d].weight is %d, it must be positive", name, id, i, m.GetWeight())
		case p.members[m.MemberId] == nil:
			return 0, notFound("action profile %q: group %d: there is no member %d", name, id, m.MemberId)
		}
		if _, _, err := s.watched(m); err != nil {
			return 0, err
		}
		seen[m.MemberId] = true
		sum += int64(m.Weight)
	}
	switch {
	case in.MaxSize > 0 && sum > int64(in.MaxSize):
		return 0, exhausted("action profile %q: group %d: its weights sum to %d, its max_size is %d", name, id, sum, in.MaxSize)
	case limit > 0 && sum > int64(limit):
		return 0, exhausted("action profile %q: group %d: its weights sum to %d, max_group_size is %d", name, id, sum, limit)
	case sum > maxWeight:
		return 0, exhausted("action profile %q: group %d: its weights sum to %d, allowed are %d", name, id, sum, maxWeight)
	}
	return sum, nil
}

func (p *profile) countMembers(g *p4v1.ActionProfileGroup, delta int) {
	for _, m := range g.GetMembers() {
		p.members[m.MemberId].groups += delta
	}
}

// watcher is a group's member or a one-shot's action, which may watch a port.
type watcher interface {
	GetWatchPort() []byte
	GetWatch() int32
}

// watched returns the port that a member's liveness depends on, if any.
func (s *State) watched(w watcher) (port uint32, ok bool, err error) {
	n := w.GetWatch()
	switch b := w.GetWatchPort(); {
	case len(b) > 0:
		v, fits := bytestring.Uint(b)
		if !fits || v > 0xffffffff {
			return 0, false, invalid("watch_port is %#x, allowed is a port of the switch", b)
		}
		port = uint32(v)
	case n < 0:
		return 0, false, invalid("watch is %d, allowed is a port of the switch", n)
	case n == 0:
		return 0, false, nil
	default:
		port = uint32(n)
	}
	return port, true, nil
}

// up reports whether a member can be selected: its watch port, if any, is up.
func (s *State) up(w watcher) bool {
	port, ok, _ := s.watched(w)
	return !ok || !s.down[port]
}

// liveMembers lists a group's members except those whose watch port is down. It repeats each
// member as often as its weight. A group without live members acts like an empty group: the table
// runs no action.
func (s *State) liveMembers(g *p4v1.ActionProfileGroup) []engine.MemberID {
	var out []engine.MemberID
	for _, m := range g.Members {
		if s.up(m) {
			out = append(out, slices.Repeat([]engine.MemberID{engine.MemberID(m.MemberId)}, int(m.Weight))...)
		}
	}
	return out
}

// SetPort records that a port's link went up or down, and updates the groups and one-shots with a
// member that watches the port.
func (s *State) SetPort(port uint32, up bool) error {
	if s.down[port] == !up {
		return nil
	}
	s.down[port] = !up
	var failed error
	for _, spec := range s.schema.Profiles.List {
		p := s.profiles[spec.ID]
		for id, g := range p.groups {
			if watches(s, g.message.Members, port) {
				failed = cmp.Or(failed, s.inst.SetGroup(spec.Name, engine.GroupID(id), s.liveMembers(g.message)))
			}
		}
		for shot := range p.shots {
			if watches(s, shot.set.ActionProfileActions, port) {
				failed = cmp.Or(failed, s.inst.SetGroup(spec.Name, shot.group, s.liveShot(shot)))
			}
		}
	}
	return statusOf(failed)
}

// watches reports whether the liveness of one of the members depends on a port.
func watches[W watcher](s *State, members []W, port uint32) bool {
	return slices.ContainsFunc(members, func(m W) bool {
		w, ok, _ := s.watched(m)
		return ok && w == port
	})
}

// oneShot is the group and the members that implement a one-shot action set.
type oneShot struct {
	set     *p4v1.ActionProfileActionSet // canonical
	calls   []engine.ActionCall
	members []engine.MemberID // one per action of the set
	group   engine.GroupID
	weight  int64 // sum over the actions
}

func (s *State) parseShot(t *table, in *p4v1.ActionProfileActionSet) (*oneShot, error) {
	p := t.profile
	shot := &oneShot{set: &p4v1.ActionProfileActionSet{}}
	for i, a := range in.GetActionProfileActions() {
		if a.GetWeight() <= 0 {
			return nil, invalid("table %q: action_profile_actions[%d].weight is %d, it must be positive", t.spec.Name, i, a.GetWeight())
		}
		if a.Action == nil {
			return nil, invalid("table %q: action_profile_actions[%d].action is unset", t.spec.Name, i)
		}
		var call engine.ActionCall
		action, err := t.spec.Action(&call, a.Action, false)
		if err != nil {
			return nil, err
		}
		if _, _, err := s.watched(a); err != nil {
			return nil, err
		}
		shot.calls = append(shot.calls, call)
		shot.weight += int64(a.Weight)
		shot.set.ActionProfileActions = append(shot.set.ActionProfileActions,
			&p4v1.ActionProfileAction{Action: action, Weight: a.Weight, WatchKind: a.WatchKind})
	}
	switch limit := int64(p.spec.MaxGroupSize); {
	case limit > 0 && shot.weight > limit:
		return nil, invalid("table %q: the weights of action_profile_actions sum to %d, max_group_size is %d", t.spec.Name, shot.weight, limit)
	case shot.weight > maxWeight:
		return nil, invalid("table %q: the weights of action_profile_actions sum to %d, allowed are %d", t.spec.Name, shot.weight, maxWeight)
	case len(p.members) > 0 || len(p.groups) > 0:
		return nil, errMixed(p.spec.Name)
	}
	return shot, nil
}

// makeShot creates the members and the group of a one-shot. old is the one-shot that this one
// replaces and that is removed afterwards, or nil.
func (s *State) makeShot(p *profile, shot, old *oneShot) (err error) {
	freed := int64(0)
	if old != nil {
		freed = old.weight
	}
	if err := p.room(shot.weight, freed); err != nil {
		return err
	}
	shot.group = p.nextGroup
	p.nextGroup++
	p.shots[shot] = true
	p.weights += shot.weight
	defer func() {
		if err != nil {
			s.dropShot(p, shot)
		}
	}()
	for _, call := range shot.calls {
		id := p.nextMember
		p.nextMember++
		if err := s.inst.AddMember(p.spec.Name, id, call); err != nil {
			return err
		}
		shot.members = append(shot.members, id)
	}
	return s.inst.SetGroup(p.spec.Name, shot.group, s.liveShot(shot))
}

func (s *State) liveShot(shot *oneShot) []engine.MemberID {
	var out []engine.MemberID
	for i, a := range shot.set.ActionProfileActions {
		if s.up(a) {
			out = append(out, slices.Repeat(shot.members[i:i+1], int(a.Weight))...)
		}
	}
	return out
}

// dropShot removes the group and the members that makeShot created. No entry may refer to them.
func (s *State) dropShot(p *profile, shot *oneShot) {
	if shot == nil || !p.shots[shot] {
		return
	}
	delete(p.shots, shot)
	p.weights -= shot.weight
	// Errors can be ignored: only the switch uses these ids, so a delete fails only if the group
	// or member does not exist.
	_ = s.inst.DeleteGroup(p.spec.Name, shot.group)
	for _, id := range shot.members {
		_ = s.inst.DeleteMember(p.spec.Name, id)
	}
}
