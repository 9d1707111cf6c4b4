//lint:file-ignore SA1019 the specification wants controller_metadata kept and returned

package entity

import (
	"errors"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/softswitch/engine"
)

func (s *State) writeTable(op p4v1.Update_Type, in *p4v1.TableEntry) error {
	t, err := s.tableByID(in.GetTableId())
	if err != nil {
		return err
	}
	switch {
	case in.IsDefaultAction:
		return s.writeDefault(t, op, in)
	case t.spec.Const && op != p4v1.Update_MODIFY:
		return denied("table %q: its entries are const, allowed is MODIFY of direct counters and meters", t.spec.Name)
	case op == p4v1.Update_DELETE:
		return s.deleteEntry(t, in)
	}
	if err := t.checkOptions(in); err != nil {
		return err
	}
	if op == p4v1.Update_INSERT {
		return s.insertEntry(t, in)
	}
	return s.modifyEntry(t, in)
}

func (s *State) insertEntry(t *table, in *p4v1.TableEntry) error {
	if len(t.spec.Fields) == 0 {
		return invalid("table %q: it has no key, allowed is MODIFY of its default entry", t.spec.Name)
	}
	if in.Action == nil {
		return invalid("table %q: action is unset", t.spec.Name)
	}
	k := &s.key
	if err := t.keyed(k, in); err != nil {
		return err
	}
	action, target, shot, err := s.target(t, in.Action)
	if err != nil {
		return err
	}
	message, err := s.encode(k.Encoded, in, action)
	if err != nil {
		return err
	}
	if shot != nil {
		if _, old, _ := s.inst.Find(t.spec.Name, k.Engine, int(in.Priority)); old {
			return t.twice(in)
		}
		if err := s.makeShot(t.profile, shot, 0); err != nil {
			return err
		}
		target = shot.target()
	}
	h, err := s.inst.AddEntry(t.spec.Name, k.Engine, int(in.Priority), target, ttl(in.IdleTimeoutNs))
	if err != nil {
		s.dropShot(t.profile, shot)
		if errors.Is(err, engine.ErrExists) {
			return t.twice(in)
		}
		return fromEngine(err)
	}
	e := t.add(entry{message: message, handle: h, priority: in.Priority})
	e.refer(target, shot)
	t.use(e, +1)
	t.watch(e, in.IdleTimeoutNs)
	return s.writeResources(t, e.handle, in, false)
}

func (t *table) twice(in *p4v1.TableEntry) error {
	return exists("table %q: an entry with this match and priority %d exists", t.spec.Name, in.Priority)
}

func (s *State) modifyEntry(t *table, in *p4v1.TableEntry) error {
	e, err := s.mustLocate(t, &s.key, in)
	if err != nil {
		return err
	}
	if e.fixed {
		if in.Action != nil {
			return denied("table %q: the action of a const entry cannot be modified", t.spec.Name)
		}
		if in.IdleTimeoutNs != 0 {
			return denied("table %q: idle_timeout_ns is %d, const entries have none", t.spec.Name, in.IdleTimeoutNs)
		}
		return s.writeResources(t, e.handle, in, true)
	}
	given := in.Action
	if given == nil {
		given = e.message.decode().Action
	}
	action, target, shot := given, engine.Target{}, e.shot
	if in.Action != nil || shot == nil {
		if action, target, shot, err = s.target(t, given); err != nil {
			return err
		}
	}
	message, err := s.encode(s.key.Encoded, in, action)
	if err != nil {
		return err
	}
	if shot != nil {
		if shot != e.shot {
			freed := int64(0)
			if e.shot != nil {
				freed = e.shot.weight()
			}
			if err := s.makeShot(t.profile, shot, freed); err != nil {
				return err
			}
		}
		target = shot.target()
	}
	if err := s.inst.ModifyEntry(t.spec.Name, e.handle, target, ttl(in.IdleTimeoutNs)); err != nil {
		if shot != e.shot {
			s.dropShot(t.profile, shot)
		}
		return fromEngine(err)
	}
	t.use(e, -1)
	if shot != e.shot {
		s.dropShot(t.profile, e.shot)
	}
	e.message = message
	e.refer(target, shot)
	t.use(e, +1)
	t.watch(e, in.IdleTimeoutNs)
	return s.writeResources(t, e.handle, in, true)
}

func (s *State) deleteEntry(t *table, in *p4v1.TableEntry) error {
	e, err := s.mustLocate(t, &s.key, in)
	if err != nil {
		return err
	}
	if err := s.inst.DeleteEntry(t.spec.Name, e.handle); err != nil {
		return fromEngine(err)
	}
	t.use(e, -1)
	shot := e.shot
	t.remove(e)
	s.dropShot(t.profile, shot)
	return nil
}

// writeDefault modifies a table's default entry. An entry without an action resets it.
func (s *State) writeDefault(t *table, op p4v1.Update_Type, in *p4v1.TableEntry) error {
	name := t.spec.Name
	switch {
	case op != p4v1.Update_MODIFY:
		return invalid("table %q: update type is %v, a default entry allows MODIFY", name, op)
	case in.IdleTimeoutNs != 0:
		return invalid("table %q: idle_timeout_ns is %d with is_default_action, it must be 0", name, in.IdleTimeoutNs)
	case t.spec.ConstDefault != 0:
		return denied("table %q: its default entry is const", name)
	}
	if err := t.checkDefaultKey(in); err != nil {
		return err
	}
	if err := t.checkOptions(in); err != nil {
		return err
	}
	if t.profile != nil {
		return invalid("table %q: a table with an action profile has a constant default entry", name)
	}
	if in.Action == nil {
		if err := s.inst.SetDefault(name, nil); err != nil {
			return fromEngine(err)
		}
		t.deflt = nil
		return s.writeResources(t, engine.DefaultEntry, in, true)
	}
	a, ok := in.Action.Type.(*p4v1.TableAction_Action)
	if !ok {
		return invalid("table %q: action is %T, wanted is an action", name, in.Action.Type)
	}
	var call engine.ActionCall
	action, err := t.spec.Action(&call, a.Action, true)
	if err != nil {
		return err
	}
	if err := s.inst.SetDefault(name, &engine.Target{Call: &call}); err != nil {
		return fromEngine(err)
	}
	t.deflt = &p4v1.TableEntry{
		TableId: in.TableId, IsDefaultAction: true, Action: p4msg.Call(action),
		ControllerMetadata: in.ControllerMetadata, Metadata: in.Metadata,
	}
	return s.writeResources(t, engine.DefaultEntry, in, true)
}

// checkDefaultKey refuses a default entry with a key.
func (t *table) checkDefaultKey(in *p4v1.TableEntry) error {
	switch {
	case len(in.Match) > 0:
		return invalid("table %q: match is set with is_default_action", t.spec.Name)
	case in.Priority != 0:
		return invalid("table %q: priority is %d with is_default_action, it must be 0", t.spec.Name, in.Priority)
	}
	return nil
}

// writeResources sets the direct counter and meter of an entry that checkOptions has accepted. A
// modification without meter_config resets the meter.
func (s *State) writeResources(t *table, h engine.Handle, in *p4v1.TableEntry, modified bool) error {
	if in.CounterData != nil {
		c, err := counterOf(in.CounterData)
		if err != nil {
			return err
		}
		if err := s.inst.SetEntryCounter(t.spec.Name, h, c); err != nil {
			return fromEngine(err)
		}
	}
	if t.spec.MeterID == 0 || in.MeterConfig == nil && !modified {
		return nil
	}
	r, err := rateOf(in.MeterConfig)
	if err != nil {
		return err
	}
	return fromEngine(s.inst.SetEntryMeter(t.spec.Name, h, r))
}

// target validates the action of an entry. The target of a one-shot is set by makeShot later.
func (s *State) target(t *table, in *p4v1.TableAction) (*p4v1.TableAction, engine.Target, *oneShot, error) {
	none := engine.Target{}
	switch a := in.Type.(type) {
	case *p4v1.TableAction_Action:
		if t.profile != nil {
			break
		}
		action, err := t.spec.Action(&s.call, a.Action, false)
		if err != nil {
			return nil, none, nil, err
		}
		out := in
		if action != a.Action {
			out = p4msg.Call(action)
		}
		return out, engine.Target{Call: &s.call}, nil, nil
	case *p4v1.TableAction_ActionProfileMemberId:
		if t.profile == nil {
			break
		}
		if _, ok := t.profile.members.get(a.ActionProfileMemberId); !ok {
			return nil, none, nil, t.profile.missing("member", a.ActionProfileMemberId)
		}
		id := engine.MemberID(a.ActionProfileMemberId)
		return in, engine.Target{Member: &id}, nil, nil
	case *p4v1.TableAction_ActionProfileGroupId:
		if t.profile == nil || !t.profile.spec.Selector {
			break
		}
		if _, ok := t.profile.groups.get(a.ActionProfileGroupId); !ok {
			return nil, none, nil, t.profile.missing("group", a.ActionProfileGroupId)
		}
		id := engine.GroupID(a.ActionProfileGroupId)
		return in, engine.Target{Group: &id}, nil, nil
	case *p4v1.TableAction_ActionProfileActionSet:
		if t.profile == nil || !t.profile.spec.Selector {
			break
		}
		shot, set, err := s.parseShot(t, a.ActionProfileActionSet)
		if err != nil {
			return nil, none, nil, err
		}
		return &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileActionSet{ActionProfileActionSet: set}}, none, shot, nil
	}
	want := "an action"
	if t.profile != nil {
		want = "a member"
		if t.profile.spec.Selector {
			want = "a member, a group or an action set"
		}
	}
	return nil, none, nil, invalid("table %q: action is %T, wanted is %s", t.spec.Name, in.Type, want)
}
