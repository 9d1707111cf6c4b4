package entity

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/canon"
)

// maxWeight bounds the sum of weights of a group whose size the P4Info does not bound: the
// engine repeats a member once per unit of weight.
const maxWeight = 1 << 16

func (s *State) writeGroup(op p4v1.Update_Type, in *p4v1.ActionProfileGroup) error {
	p, err := s.profileByID(in.GetActionProfileId())
	if err != nil {
		return err
	}
	name, id := p.spec.Name, in.GroupId
	switch {
	case !p.spec.Selector:
		return invalid("action profile %q: it has no selector, hence no groups", name)
	case id == 0:
		return invalid("action profile %q: group_id is 0", name)
	}
	old, ok := p.groups.get(id)
	if op == p4v1.Update_DELETE {
		switch {
		case !ok:
			return notFound("action profile %q: there is no group %d", name, id)
		case old.entries > 0:
			return status.Errorf(codes.FailedPrecondition, "action profile %q: group %d is in use by %d table entries", name, id, old.entries)
		}
		if err := s.inst.DeleteGroup(name, engine.GroupID(id)); err != nil {
			return fromEngine(err)
		}
		p.countMembers(old.wire, -1)
		p.weights -= old.weight
		p.groups.remove(id)
		return nil
	}
	g := &group{wire: cloneOf(in)}
	if g.weight, err = s.checkGroup(p, in); err != nil {
		return err
	}
	freed := int64(0)
	switch {
	case op == p4v1.Update_MODIFY && !ok:
		return notFound("action profile %q: there is no group %d", name, id)
	case op == p4v1.Update_MODIFY && in.MaxSize != old.wire.MaxSize:
		return invalid("action profile %q: group %d: max_size is %d, it was inserted with %d", name, id, in.MaxSize, old.wire.MaxSize)
	case op == p4v1.Update_MODIFY:
		g.entries, freed = old.entries, old.weight
	case ok:
		return exists("action profile %q: group %d exists", name, id)
	case len(p.shots) > 0:
		return errMixed(name)
	}
	if err := p.room(g.weight, freed); err != nil {
		return err
	}
	if err := s.inst.SetGroup(name, engine.GroupID(id), s.liveMembers(g.wire)); err != nil {
		return fromEngine(err)
	}
	if ok {
		p.countMembers(old.wire, -1)
	}
	p.countMembers(g.wire, +1)
	p.weights += g.weight - freed
	p.groups.set(id, g)
	return nil
}

// room checks that the profile takes weight more, after freed is gone.
func (p *profile) room(weight, freed int64) error {
	if p.spec.Size > 0 && p.weights-freed+weight > p.spec.Size {
		return exhausted("action profile %q: the weights of its groups would sum to %d, its size is %d", p.spec.Name, p.weights-freed+weight, p.spec.Size)
	}
	return nil
}

// checkGroup validates size and members of a group and returns the sum of its weights.
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
		}
		if _, ok := p.members.get(m.MemberId); !ok {
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
	for _, m := range g.Members {
		if x, ok := p.members.get(m.MemberId); ok {
			x.groups += delta
		}
	}
}

// watcher is a group's member or a one-shot's action.
type watcher interface {
	GetWatchPort() []byte
	GetWatch() int32
}

// watched returns the port that a member's liveness depends on, if any.
func (s *State) watched(w watcher) (port uint32, ok bool, err error) {
	if b := w.GetWatchPort(); len(b) > 0 {
		v, fits := canon.Uint(b)
		if !fits || v > 0xffffffff {
			return 0, false, invalid("watch_port is %#x, allowed is a port of the switch", b)
		}
		port = uint32(v)
	} else if n := w.GetWatch(); n > 0 {
		port = uint32(n)
	} else if n < 0 {
		return 0, false, invalid("watch is %d, allowed is a port of the switch", n)
	} else {
		return 0, false, nil
	}
	if len(s.opts.Ports) == 0 {
		return port, true, nil
	}
	for _, p := range s.opts.Ports {
		if p == port {
			return port, true, nil
		}
	}
	return 0, false, invalid("watch_port is %d, which is no port of the switch", port)
}

// up reports whether a member takes part in the selection.
func (s *State) up(w watcher) bool {
	port, ok, _ := s.watched(w)
	return !ok || !s.down[port]
}

// liveMembers lists a group's members, each as often as it weighs, without those whose
// watch port is down. A group that is empty for that reason behaves like any empty group:
// the packet goes on as after a table without an action.
func (s *State) liveMembers(g *p4v1.ActionProfileGroup) []engine.MemberID {
	var out []engine.MemberID
	for _, m := range g.Members {
		if s.up(m) {
			for range m.Weight {
				out = append(out, engine.MemberID(m.MemberId))
			}
		}
	}
	return out
}

// SetPort tells that a port's link went up or down.
func (s *State) SetPort(port uint32, up bool) error {
	if s.down[port] == !up {
		return nil
	}
	if up {
		delete(s.down, port)
	} else {
		s.down[port] = true
	}
	var failed error
	for _, spec := range s.schema.Profiles.List {
		p := s.profiles[spec.ID]
		p.groups.each(func(id uint32, g *group) {
			for _, m := range g.wire.Members {
				if w, ok, _ := s.watched(m); ok && w == port {
					if err := s.inst.SetGroup(spec.Name, engine.GroupID(id), s.liveMembers(g.wire)); err != nil {
						failed = err
					}
					return
				}
			}
		})
		for shot := range p.shots {
			for _, a := range shot.set.ActionProfileActions {
				if w, ok, _ := s.watched(a); ok && w == port {
					if err := s.inst.SetGroup(spec.Name, shot.group, s.liveShot(shot)); err != nil {
						failed = err
					}
					break
				}
			}
		}
	}
	return fromEngine(failed)
}

func (s *State) readGroups(req *p4v1.ActionProfileGroup, emit func(*p4v1.Entity)) error {
	one := func(g *group) {
		emit(&p4v1.Entity{Entity: &p4v1.Entity_ActionProfileGroup{ActionProfileGroup: g.wire}})
	}
	if req.GetActionProfileId() == 0 {
		if req.GetGroupId() != 0 {
			return invalid("group_id is %d with action_profile_id 0, which reads all groups", req.GroupId)
		}
		for _, spec := range s.schema.Profiles.List {
			s.profiles[spec.ID].groups.each(func(_ uint32, g *group) { one(g) })
		}
		return nil
	}
	p, err := s.profileByID(req.ActionProfileId)
	if err != nil {
		return err
	}
	if req.GroupId == 0 {
		p.groups.each(func(_ uint32, g *group) { one(g) })
		return nil
	}
	g, ok := p.groups.get(req.GroupId)
	if !ok {
		return notFound("action profile %q: there is no group %d", p.spec.Name, req.GroupId)
	}
	one(g)
	return nil
}
