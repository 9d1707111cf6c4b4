package entity

import (
	"cmp"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/canon"
	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/softswitch/engine"
)

// maxWeight bounds the sum of a group's weights if the P4Info does not bound the group's size. The
// engine stores a member once per unit of weight.
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
			return p.missing("group", id)
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
	g := &group{wire: proto.CloneOf(in)}
	if g.weight, err = s.checkGroup(p, in); err != nil {
		return err
	}
	freed := int64(0)
	switch {
	case op == p4v1.Update_MODIFY && !ok:
		return p.missing("group", id)
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

// room checks that weight fits in the profile after freed is subtracted.
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

// watcher is a group's member or a one-shot's action, which may watch a port.
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
	if len(s.opts.Ports) > 0 && !slices.Contains(s.opts.Ports, port) {
		return 0, false, invalid("watch_port is %d, which is no port of the switch", port)
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
	if up {
		delete(s.down, port)
	} else {
		s.down[port] = true
	}
	var failed error
	for _, spec := range s.schema.Profiles.List {
		p := s.profiles[spec.ID]
		set := func(id engine.GroupID, members []engine.MemberID) {
			failed = cmp.Or(s.inst.SetGroup(spec.Name, id, members), failed)
		}
		for id, g := range p.groups.all {
			if watches(s, g.wire.Members, port) {
				set(engine.GroupID(id), s.liveMembers(g.wire))
			}
		}
		for shot := range p.shots {
			if watches(s, shot.set.ActionProfileActions, port) {
				set(shot.group, s.liveShot(shot))
			}
		}
	}
	return fromEngine(failed)
}

// watches reports whether the liveness of one of the members depends on a port.
func watches[W watcher](s *State, members []W, port uint32) bool {
	return slices.ContainsFunc(members, func(m W) bool {
		w, ok, _ := s.watched(m)
		return ok && w == port
	})
}

func (s *State) readGroups(req *p4v1.ActionProfileGroup, emit func(*p4v1.Entity)) error {
	return s.readProfiles("group", req.GetActionProfileId(), req.GetGroupId(), func(p *profile) bool {
		return p.groups.read(req.GetGroupId(), func(g *group) {
			emit(p4msg.Of(g.wire))
		})
	})
}
