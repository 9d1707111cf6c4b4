//lint:file-ignore SA1019 the specification wants controller_metadata kept and returned

package entity

import (
	"bytes"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/schema"
	"github.com/headgate/headgate/units"
)

func (s *State) readTable(req *p4v1.TableEntry, emit func(Found)) error {
	if req.GetMeterCounterData() != nil {
		return errMeterCounters
	}
	if req.GetTableId() == 0 {
		if len(req.GetMatch()) > 0 || req.GetAction() != nil || req.GetPriority() != 0 || len(req.GetMetadata()) > 0 || req.GetControllerMetadata() != 0 {
			return invalid("table_id is 0, which reads all tables: match, action, priority and metadata must be unset")
		}
		for _, spec := range s.schema.Tables.List {
			if err := s.readOneTable(s.tables[spec.ID], req, emit); err != nil {
				return err
			}
		}
		return nil
	}
	t, err := s.tableByID(req.TableId)
	if err != nil {
		return err
	}
	if req.TimeSinceLastHit != nil && (!t.spec.IdleTimeout || req.IsDefaultAction) {
		return invalid("table %q: time_since_last_hit is set, the table or its default entry has no idle timeout", t.spec.Name)
	}
	return s.readOneTable(t, req, emit)
}

func (s *State) readOneTable(t *table, req *p4v1.TableEntry, emit func(Found)) error {
	if req.GetIsDefaultAction() {
		e, err := s.defaultEntry(t, req)
		if err == nil {
			emit(found(e))
		}
		return err
	}
	return s.selected(t, req, func(e *entry) error {
		m, err := s.withResources(t, e, req)
		if err == nil {
			emit(Found{entry: m, table: t.spec.ID})
		}
		return err
	})
}

// selected calls f for the entries that the filters of req select, until f fails.
func (s *State) selected(t *table, req *p4v1.TableEntry, f func(*entry) error) error {
	wantAction := uint32(0)
	if req.GetAction() != nil {
		a, ok := req.Action.Type.(*p4v1.TableAction_Action)
		if !ok || t.profile != nil {
			return invalid("table %q: action is set, entries can be filtered by the action_id of a direct table only", t.spec.Name)
		}
		wantAction = a.Action.GetActionId()
		if t.spec.Actions[wantAction] == nil {
			return invalid("table %q: action_id is %#x, which is none of its actions", t.spec.Name, wantAction)
		}
	}
	var k schema.Key
	if len(req.GetMatch()) > 0 {
		if !t.spec.NeedsPriority || req.Priority != 0 {
			e, err := s.locate(t, &k, req)
			if err != nil || e == nil || !e.passes(req, wantAction) {
				return err
			}
			return f(e)
		}
		if err := t.spec.Key(&k, req.Match); err != nil {
			return err
		}
	}
	for e := range t.all {
		if len(k.Encoded) > 0 && !e.message.matches(k.Encoded) || req.GetPriority() != 0 && e.priority != req.Priority || !e.passes(req, wantAction) {
			continue
		}
		if err := f(e); err != nil {
			return err
		}
	}
	return nil
}

func (e *entry) passes(req *p4v1.TableEntry, action uint32) bool {
	number, text := req.GetControllerMetadata(), req.GetMetadata()
	if action == 0 && number == 0 && len(text) == 0 {
		return true
	}
	m := e.message.decode()
	return (action == 0 || m.GetAction().GetAction().GetActionId() == action) &&
		(number == 0 || m.GetControllerMetadata() == number) &&
		(len(text) == 0 || bytes.Equal(m.Metadata, text))
}

// addResources sets the counter and the meter of an entry in out, if req asks for them.
func (s *State) addResources(t *table, h engine.Handle, req, out *p4v1.TableEntry) error {
	if req.GetCounterData() != nil && t.spec.CounterID != 0 {
		c, err := s.inst.EntryCounter(t.spec.Name, h)
		if err != nil {
			return err
		}
		out.CounterData = counterData(c)
	}
	if req.GetMeterConfig() != nil && t.spec.MeterID != 0 {
		r, err := s.inst.EntryMeter(t.spec.Name, h)
		if err != nil {
			return err
		}
		out.MeterConfig = meterConfig(r)
	}
	return nil
}

// withResources returns an entry with the values that the request asks for: counter, meter, and time
// since the last hit.
func (s *State) withResources(t *table, e *entry, req *p4v1.TableEntry) (encoded, error) {
	hit := req.GetTimeSinceLastHit() != nil && t.spec.IdleTimeout
	if !hit && req.GetCounterData() == nil && req.GetMeterConfig() == nil {
		return e.message, nil
	}
	out := &p4v1.TableEntry{}
	if err := s.addResources(t, e.handle, req, out); err != nil {
		return "", err
	}
	if hit {
		since, err := s.inst.SinceHit(t.spec.Name, e.handle, s.opts.Now())
		if err != nil {
			return "", err
		}
		out.TimeSinceLastHit = &p4v1.TableEntry_IdleTimeout{ElapsedNs: int64(since / units.Nanosecond)}
	}
	return e.message.with(out)
}

// defaultEntry returns a table's default entry: the written one, or else the program's.
func (s *State) defaultEntry(t *table, req *p4v1.TableEntry) (*p4v1.TableEntry, error) {
	if len(req.Match) > 0 || req.Priority != 0 {
		return nil, invalid("table %q: match or priority is set with is_default_action", t.spec.Name)
	}
	out := &p4v1.TableEntry{TableId: t.spec.ID, IsDefaultAction: true}
	if d := t.deflt; d != nil {
		out.Action, out.ControllerMetadata, out.Metadata = d.Action, d.GetControllerMetadata(), d.Metadata
	} else if t.spec.Default != nil {
		out.Action = p4rtmsg.Call(t.spec.Default)
	}
	if t.spec.ConstDefault != 0 {
		setConst(out)
	}
	return out, s.addResources(t, engine.DefaultEntry, req, out)
}

// identify returns the fields that identify an entry, and its handle. A nil entry is the default
// entry.
func (t *table) identify(e *entry) (*p4v1.TableEntry, engine.Handle) {
	if e == nil {
		return &p4v1.TableEntry{TableId: t.spec.ID, IsDefaultAction: true}, engine.DefaultEntry
	}
	m := e.message.decode()
	return &p4v1.TableEntry{TableId: m.TableId, Match: m.Match, Priority: m.Priority}, e.handle
}
