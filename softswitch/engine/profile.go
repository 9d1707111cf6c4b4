package engine

import (
	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine/phv"
)

// profileSpec declares an action profile. A profile with a selector has groups.
type profileSpec struct {
	name     string
	index    int
	selector *calculation
	actions  map[string]*action
	users    []*tableSpec
}

func (c *compiler) declareProfile(j *bmv2json.Profile) {
	s := &profileSpec{name: j.Name, index: len(c.profiles.list), actions: map[string]*action{}}
	if j.Selector != nil {
		s.selector = c.selector(j.Selector)
	}
	c.profiles.add(c, j.Name, s)
}

// profile is the state of an action profile, guarded by the instance's lock.
type profile struct {
	spec    *profileSpec
	members map[MemberID]*member
	groups  map[GroupID]*group
}

type member struct {
	act   boundAction
	steps []step // one per table that uses the profile
	uses  int    // references from entries and groups
}

// steps returns a member's steps.
func (s *profileSpec) steps(b *boundAction) []step {
	steps := make([]step, len(s.users))
	for i, t := range s.users {
		steps[i] = newStep(b, t.after(b.act))
	}
	return steps
}

type group struct {
	members []*member
	uses    int // references from entries
}

// fewWords is the number of words of arguments that fit into an entry itself.
const fewWords = 2

// bind checks an action call against the allowed actions. It stores the arguments in few, which
// must be zero, if they fit there.
func bind(allowed map[string]*action, where string, call *ActionCall, few []uint64) (b boundAction, err error) {
	a := allowed[call.Name]
	if a == nil {
		return b, errorf(ErrInvalid, "%q has no action %q", where, call.Name)
	}
	if len(call.Args) != len(a.params) {
		return b, errorf(ErrInvalid, "action %q takes %d arguments, not %d", a.name, len(a.params), len(call.Args))
	}
	if a.words > len(few) {
		few = make([]uint64, a.words)
	}
	b = boundAction{a, few[:a.words:a.words]}
	for i, v := range call.Args {
		q := a.params[i]
		if !phv.PutBytes(b.args[q.word:q.word+phv.Words(q.Bits)], v, q.Bits) {
			return boundAction{}, errorf(ErrInvalid, "argument %q of action %q: value 0x%x has more than %d bits", q.Name, a.name, v, q.Bits)
		}
	}
	return b, nil
}

// bound binds an action call of the program.
func (c *compiler) bound(t *tableSpec, call ActionCall) *boundAction {
	b, err := bind(t.actions, t.name, &call, nil)
	if err != nil {
		c.Fail("%v", err)
	}
	return &b
}

func (p *profile) member(id MemberID) (*member, error) {
	if m := p.members[id]; m != nil {
		return m, nil
	}
	return nil, errorf(ErrNotFound, "action profile %q: member %d", p.spec.name, id)
}

func (p *profile) group(id GroupID) (*group, error) {
	if g := p.groups[id]; g != nil {
		return g, nil
	}
	return nil, errorf(ErrNotFound, "action profile %q: group %d", p.spec.name, id)
}

// onProfile runs f on an action profile while no packet is processed.
func (in *Instance) onProfile(name string, f func(p *profile) error) error {
	in.lock()
	defer in.unlock()
	s, err := in.prog.profiles.find(name)
	if err != nil {
		return err
	}
	return f(in.profiles[s.index])
}

// AddMember adds a member to an action profile.
func (in *Instance) AddMember(name string, id MemberID, call ActionCall) error {
	return in.onProfile(name, func(p *profile) error {
		if p.members[id] != nil {
			return errorf(ErrExists, "action profile %q: member %d", name, id)
		}
		b, err := bind(p.spec.actions, name, &call, nil)
		if err == nil {
			p.members[id] = &member{act: b, steps: p.spec.steps(&b)}
		}
		return err
	})
}

// ModifyMember replaces what a member does, everywhere it is used.
func (in *Instance) ModifyMember(name string, id MemberID, call ActionCall) error {
	return in.onProfile(name, func(p *profile) error {
		m, err := p.member(id)
		if err != nil {
			return err
		}
		b, err := bind(p.spec.actions, name, &call, nil)
		if err == nil {
			m.act, m.steps = b, p.spec.steps(&b)
		}
		return err
	})
}

// DeleteMember removes a member that no entry and no group uses.
func (in *Instance) DeleteMember(name string, id MemberID) error {
	return in.onProfile(name, func(p *profile) error {
		m, err := p.member(id)
		if err != nil {
			return err
		}
		if m.uses > 0 {
			return errorf(ErrInvalid, "action profile %q: member %d is in use", name, id)
		}
		delete(p.members, id)
		return nil
	})
}

// SetGroup creates or replaces a group. A member's weight is the number of times it is in members.
// The selector's hash modulo len(members) picks one.
func (in *Instance) SetGroup(name string, id GroupID, members []MemberID) error {
	return in.onProfile(name, func(p *profile) error {
		if p.spec.selector == nil {
			return errorf(ErrInvalid, "action profile %q has no selector, hence no groups", name)
		}
		list := make([]*member, len(members))
		for i, m := range members {
			var err error
			if list[i], err = p.member(m); err != nil {
				return err
			}
		}
		g := p.groups[id]
		if g == nil {
			g = &group{}
			p.groups[id] = g
		}
		g.replace(list)
		return nil
	})
}

// replace replaces the members and updates their use counts.
func (g *group) replace(members []*member) {
	for _, m := range members {
		m.uses++
	}
	for _, m := range g.members {
		m.uses--
	}
	g.members = members
}

// DeleteGroup removes a group that no entry uses.
func (in *Instance) DeleteGroup(name string, id GroupID) error {
	return in.onProfile(name, func(p *profile) error {
		g, err := p.group(id)
		if err != nil {
			return err
		}
		if g.uses > 0 {
			return errorf(ErrInvalid, "action profile %q: group %d is in use", name, id)
		}
		g.replace(nil)
		delete(p.groups, id)
		return nil
	})
}
