package engine

import (
	"fmt"
	"math/big"
	"slices"
)

// profileSpec declares an action profile; with a selector it has groups.
type profileSpec struct {
	name     string
	index    int
	size     int
	selector *calculation
	actions  map[string]*action
}

func (c *compiler) declareProfile(j *jsonProfile) {
	if c.profileBy[j.Name] != nil {
		c.fail("action profile %q is declared twice", j.Name)
	}
	s := &profileSpec{name: j.Name, index: len(c.profiles), size: j.MaxSize, actions: map[string]*action{}}
	if j.Selector != nil {
		s.selector = c.buildSelector(j.Selector)
	}
	c.profiles, c.profileBy[j.Name] = append(c.profiles, s), s
}

// profile is the state of an action profile, guarded by the instance's lock.
type profile struct {
	spec    *profileSpec
	members map[MemberID]*member
	groups  map[GroupID]*group
}

type member struct {
	act  *boundAction
	uses int // entries and places in groups
}

type group struct {
	members []*member
	uses    int // entries
}

// bind checks an action call against the actions that are allowed.
func bind(allowed map[string]*action, where string, call *ActionCall) (*boundAction, error) {
	a := allowed[call.Name]
	if a == nil {
		return nil, fmt.Errorf("%q has no action %q: %w", where, call.Name, ErrInvalid)
	}
	if len(call.Args) != len(a.params) {
		return nil, fmt.Errorf("action %q takes %d arguments, not %d: %w", a.name, len(a.params), len(call.Args), ErrInvalid)
	}
	b := &boundAction{a, make([]uint64, a.words)}
	for i, v := range call.Args {
		z := new(big.Int).SetBytes(v)
		if z.BitLen() > a.params[i].bits {
			return nil, fmt.Errorf("argument %q of action %q: value 0x%x has more than %d bits: %w", a.params[i].name, a.name, v, a.params[i].bits, ErrInvalid)
		}
		putWords(b.args[a.params[i].word:], z, a.params[i].bits)
	}
	return b, nil
}

func (in *Instance) profile(name string) (*profile, error) {
	s := in.prog.profileBy[name]
	if s == nil {
		return nil, fmt.Errorf("action profile %q: %w", name, ErrNotFound)
	}
	return in.profiles[s.index], nil
}

// AddMember adds a member to an action profile.
func (in *Instance) AddMember(name string, id MemberID, call ActionCall) error {
	in.lock()
	defer in.unlock()
	p, err := in.profile(name)
	if err != nil {
		return err
	}
	if p.members[id] != nil {
		return fmt.Errorf("action profile %q: member %d %w", name, id, ErrExists)
	}
	b, err := bind(p.spec.actions, name, &call)
	if err != nil {
		return err
	}
	p.members[id] = &member{act: b}
	return nil
}

// ModifyMember replaces what a member does, everywhere it is used.
func (in *Instance) ModifyMember(name string, id MemberID, call ActionCall) error {
	in.lock()
	defer in.unlock()
	p, err := in.profile(name)
	if err != nil {
		return err
	}
	m := p.members[id]
	if m == nil {
		return fmt.Errorf("action profile %q: member %d: %w", name, id, ErrNotFound)
	}
	b, err := bind(p.spec.actions, name, &call)
	if err != nil {
		return err
	}
	m.act = b
	return nil
}

// DeleteMember removes a member that no entry and no group uses.
func (in *Instance) DeleteMember(name string, id MemberID) error {
	in.lock()
	defer in.unlock()
	p, err := in.profile(name)
	if err != nil {
		return err
	}
	m := p.members[id]
	switch {
	case m == nil:
		return fmt.Errorf("action profile %q: member %d: %w", name, id, ErrNotFound)
	case m.uses > 0:
		return fmt.Errorf("action profile %q: member %d is in use: %w", name, id, ErrInvalid)
	}
	delete(p.members, id)
	return nil
}

// SetGroup creates or replaces a group; a weight is expressed by repeating a member.
// The selector's hash modulo the number of members picks one, in the order given.
func (in *Instance) SetGroup(name string, id GroupID, members []MemberID) error {
	in.lock()
	defer in.unlock()
	p, err := in.profile(name)
	if err != nil {
		return err
	}
	if p.spec.selector == nil {
		return fmt.Errorf("action profile %q has no selector, hence no groups: %w", name, ErrInvalid)
	}
	list := make([]*member, len(members))
	for i, m := range members {
		if list[i] = p.members[m]; list[i] == nil {
			return fmt.Errorf("action profile %q: member %d: %w", name, m, ErrNotFound)
		}
	}
	g := p.groups[id]
	if g == nil {
		g = &group{}
		p.groups[id] = g
	}
	for _, m := range list {
		m.uses++
	}
	for _, m := range g.members {
		m.uses--
	}
	g.members = slices.Clip(list)
	return nil
}

// DeleteGroup removes a group that no entry uses.
func (in *Instance) DeleteGroup(name string, id GroupID) error {
	in.lock()
	defer in.unlock()
	p, err := in.profile(name)
	if err != nil {
		return err
	}
	g := p.groups[id]
	switch {
	case g == nil:
		return fmt.Errorf("action profile %q: group %d: %w", name, id, ErrNotFound)
	case g.uses > 0:
		return fmt.Errorf("action profile %q: group %d is in use: %w", name, id, ErrInvalid)
	}
	for _, m := range g.members {
		m.uses--
	}
	delete(p.groups, id)
	return nil
}
