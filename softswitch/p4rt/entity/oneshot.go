package entity

import (
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/softswitch/engine"
)

// oneShot is the group and the members that implement a one-shot action set.
type oneShot struct {
	set     *p4v1.ActionProfileActionSet // canonical
	calls   []engine.ActionCall
	members []engine.MemberID // one per action of the set
	group   engine.GroupID
}

func (o *oneShot) weight() (sum int64) {
	for _, a := range o.set.ActionProfileActions {
		sum += int64(a.Weight)
	}
	return sum
}

func (o *oneShot) target() engine.Target { return engine.Target{Group: &o.group} }

// parseShot validates an action set.
func (s *State) parseShot(t *table, in *p4v1.ActionProfileActionSet) (*oneShot, *p4v1.ActionProfileActionSet, error) {
	p := t.profile
	shot := &oneShot{set: &p4v1.ActionProfileActionSet{}}
	for i, a := range in.GetActionProfileActions() {
		if a.GetWeight() <= 0 {
			return nil, nil, invalid("table %q: action_profile_actions[%d].weight is %d, it must be positive", t.spec.Name, i, a.GetWeight())
		}
		if a.Action == nil {
			return nil, nil, invalid("table %q: action_profile_actions[%d].action is unset", t.spec.Name, i)
		}
		var call engine.ActionCall
		action, err := t.spec.Action(&call, a.Action, false)
		if err != nil {
			return nil, nil, err
		}
		if _, _, err := s.watched(a); err != nil {
			return nil, nil, err
		}
		shot.calls = append(shot.calls, call)
		shot.set.ActionProfileActions = append(shot.set.ActionProfileActions,
			&p4v1.ActionProfileAction{Action: action, Weight: a.Weight, WatchKind: a.WatchKind})
	}
	sum, limit := shot.weight(), int64(p.spec.MaxGroupSize)
	switch {
	case limit > 0 && sum > limit:
		return nil, nil, invalid("table %q: the weights of action_profile_actions sum to %d, max_group_size is %d", t.spec.Name, sum, limit)
	case sum > maxWeight:
		return nil, nil, invalid("table %q: the weights of action_profile_actions sum to %d, allowed are %d", t.spec.Name, sum, maxWeight)
	case p.members.len() > 0 || p.groups.len() > 0:
		return nil, nil, errMixed(p.spec.Name)
	}
	return shot, shot.set, nil
}

// makeShot creates the members and the group of a one-shot. freed is the weight of the one-shot
// that this one replaces and that is removed afterwards.
func (s *State) makeShot(p *profile, shot *oneShot, freed int64) error {
	if err := p.room(shot.weight(), freed); err != nil {
		return err
	}
	shot.group = p.nextGroup
	p.nextGroup++
	p.shots[shot] = true
	p.weights += shot.weight()
	for _, call := range shot.calls {
		id := p.nextMember
		p.nextMember++
		if err := s.inst.AddMember(p.spec.Name, id, call); err != nil {
			s.dropShot(p, shot)
			return fromEngine(err)
		}
		shot.members = append(shot.members, id)
	}
	if err := s.inst.SetGroup(p.spec.Name, shot.group, s.liveShot(shot)); err != nil {
		s.dropShot(p, shot)
		return fromEngine(err)
	}
	return nil
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
	p.weights -= shot.weight()
	// Errors can be ignored: only the switch uses these ids, so a delete fails only if the group
	// or member does not exist.
	_ = s.inst.DeleteGroup(p.spec.Name, shot.group)
	for _, id := range shot.members {
		_ = s.inst.DeleteMember(p.spec.Name, id)
	}
}
