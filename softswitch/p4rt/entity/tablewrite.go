//lint:file-ignore SA1019 the specification wants controller_metadata kept and returned

package entity

import (
	"errors"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/p4rtmsg"
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

// checkOptions validates the fields of a written entry that are neither key nor action.
func (t *table) checkOptions(in *p4v1.TableEntry) error {
	name := t.spec.Name
	switch {
	case isConst(in):
		return invalid("table %q: is_const is true, which a write must not set", name)
	case in.TimeSinceLastHit != nil:
		return invalid("table %q: time_since_last_hit is set, which a write must not do", name)
	case in.IdleTimeoutNs < 0:
		return invalid("table %q: idle_timeout_ns is %d, it must not be negative", name, in.IdleTimeoutNs)
	case in.IdleTimeoutNs != 0 && !t.spec.IdleTimeout:
		return invalid("table %q: idle_timeout_ns is %d, the table does not support idle timeouts", name, in.IdleTimeoutNs)
	case in.CounterData != nil && t.spec.CounterID == 0:
		return invalid("table %q: counter_data is set, the table has no direct counter in the program", name)
	case in.MeterConfig != nil && t.spec.MeterID == 0:
		return invalid("table %q: meter_config is set, the table has no direct meter in the program", name)
	case in.MeterCounterData != nil && t.spec.MeterID == 0:
		return invalid("table %q: meter_counter_data is set, the table has no direct meter in the program", name)
	case in.MeterCounterData != nil:
		return errMeterCounters
	}
	if _, err := counterOf(in.CounterData); err != nil {
		return err
	}
	_, err := rateOf(in.MeterConfig)
	return err
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
	c, err := s.choose(t, in.Action)
	if err != nil {
		return err
	}
	message, err := s.encode(k.Encoded, in, c.action)
	if err != nil {
		return err
	}
	twice := func() error {
		return exists("table %q: an entry with this match and priority %d exists", t.spec.Name, in.Priority)
	}
	if c.shot != nil {
		if _, old, _ := s.inst.Find(t.spec.Name, k.Engine, int(in.Priority)); old {
			return twice()
		}
		if err := s.makeShot(t.profile, c.shot, nil); err != nil {
			return err
		}
	}
	h, err := s.inst.AddEntry(t.spec.Name, k.Engine, int(in.Priority), c.target, ttl(in.IdleTimeoutNs))
	if err != nil {
		s.dropShot(t.profile, c.shot)
		if errors.Is(err, engine.ErrExists) {
			return twice()
		}
		return err
	}
	e := t.add(entry{message: message, handle: h, priority: in.Priority, shot: c.shot, uses: c.uses})
	e.use(+1)
	t.watch(e, in.IdleTimeoutNs)
	return s.writeResources(t, h, in, false)
}

// use adds delta to the use count of the member or group that an entry points to.
func (e *entry) use(delta int) {
	if e.uses != nil {
		*e.uses += delta
	}
}

func (s *State) modifyEntry(t *table, in *p4v1.TableEntry) error {
	e, err := s.mustLocate(t, &s.key, in)
	switch {
	case err != nil:
		return err
	case e.fixed && in.Action != nil:
		return denied("table %q: the action of a const entry cannot be modified", t.spec.Name)
	case e.fixed && in.IdleTimeoutNs != 0:
		return denied("table %q: idle_timeout_ns is %d, const entries have none", t.spec.Name, in.IdleTimeoutNs)
	case e.fixed:
		return s.writeResources(t, e.handle, in, true)
	}
	given := in.Action
	if given == nil {
		given = e.message.decode().Action
	}
	c := choice{action: given, shot: e.shot}
	if in.Action == nil && e.shot != nil {
		c.target.Group = &e.shot.group
	} else if c, err = s.choose(t, given); err != nil {
		return err
	}
	message, err := s.encode(s.key.Encoded, in, c.action)
	if err != nil {
		return err
	}
	old := e.shot
	if c.shot == old {
		old = nil // nothing replaces it
	} else if c.shot != nil {
		if err := s.makeShot(t.profile, c.shot, old); err != nil {
			return err
		}
	}
	if err := s.inst.ModifyEntry(t.spec.Name, e.handle, c.target, ttl(in.IdleTimeoutNs)); err != nil {
		if c.shot != e.shot {
			s.dropShot(t.profile, c.shot)
		}
		return err
	}
	s.dropShot(t.profile, old)
	e.use(-1)
	e.message, e.shot, e.uses = message, c.shot, c.uses
	e.use(+1)
	t.watch(e, in.IdleTimeoutNs)
	return s.writeResources(t, e.handle, in, true)
}

func (s *State) deleteEntry(t *table, in *p4v1.TableEntry) error {
	e, err := s.mustLocate(t, &s.key, in)
	if err != nil {
		return err
	}
	if err := s.inst.DeleteEntry(t.spec.Name, e.handle); err != nil {
		return err
	}
	e.use(-1)
	s.dropShot(t.profile, e.shot)
	delete(t.idle, e.handle)
	*e = entry{}
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
	var deflt *p4v1.TableEntry
	var target *engine.Target
	if in.Action != nil {
		a, ok := in.Action.Type.(*p4v1.TableAction_Action)
		if !ok {
			return invalid("table %q: action is %T, wanted is an action", name, in.Action.Type)
		}
		target = &engine.Target{Call: &engine.ActionCall{}}
		action, err := t.spec.Action(target.Call, a.Action, true)
		if err != nil {
			return err
		}
		deflt = &p4v1.TableEntry{
			TableId: in.TableId, IsDefaultAction: true, Action: p4rtmsg.Call(action),
			ControllerMetadata: in.ControllerMetadata, Metadata: in.Metadata,
		}
	}
	if err := s.inst.SetDefault(name, target); err != nil {
		return err
	}
	t.deflt = deflt
	return s.writeResources(t, engine.DefaultEntry, in, true)
}

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
		if err := s.setCounter(t, h, in.CounterData); err != nil {
			return err
		}
	}
	if t.spec.MeterID == 0 || in.MeterConfig == nil && !modified {
		return nil
	}
	return s.setMeter(t, h, in.MeterConfig)
}

type choice struct {
	action *p4v1.TableAction // canonical
	target engine.Target     // target of a one-shot, valid once makeShot has run
	shot   *oneShot          // nil for others
	uses   *int              // use count of the member or group; nil for others
}

func (s *State) choose(t *table, in *p4v1.TableAction) (c choice, err error) {
	p := t.profile
	c.action = in
	switch a := in.Type.(type) {
	case *p4v1.TableAction_Action:
		if p != nil {
			break
		}
		action, err := t.spec.Action(&s.call, a.Action, false)
		if err == nil && action != a.Action {
			c.action = p4rtmsg.Call(action)
		}
		c.target.Call = &s.call
		return c, err
	case *p4v1.TableAction_ActionProfileMemberId:
		if p == nil {
			break
		}
		m := p.members[a.ActionProfileMemberId]
		if m == nil {
			return c, p.missing("member", a.ActionProfileMemberId)
		}
		id := engine.MemberID(a.ActionProfileMemberId)
		c.target.Member, c.uses = &id, &m.entries
		return c, nil
	case *p4v1.TableAction_ActionProfileGroupId:
		if p == nil || !p.spec.Selector {
			break
		}
		g := p.groups[a.ActionProfileGroupId]
		if g == nil {
			return c, p.missing("group", a.ActionProfileGroupId)
		}
		id := engine.GroupID(a.ActionProfileGroupId)
		c.target.Group, c.uses = &id, &g.entries
		return c, nil
	case *p4v1.TableAction_ActionProfileActionSet:
		if p == nil || !p.spec.Selector {
			break
		}
		if c.shot, err = s.parseShot(t, a.ActionProfileActionSet); err != nil {
			return c, err
		}
		c.action = &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileActionSet{ActionProfileActionSet: c.shot.set}}
		c.target.Group = &c.shot.group
		return c, nil
	}
	want := "an action"
	if p != nil {
		want = "a member"
		if p.spec.Selector {
			want = "a member, a group or an action set"
		}
	}
	return c, invalid("table %q: action is %T, wanted is %s", t.spec.Name, in.Type, want)
}
