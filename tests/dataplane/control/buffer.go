package control

import (
	"fmt"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tables/buffer"
)

// Names finds the ids of a P4Info's tables, fields and actions. It is never written after
// NewNames.
type Names struct {
	tables  map[string]*p4configv1.Table
	actions map[string]uint32
}

// NewNames returns the names of a program.
func NewNames(info *p4configv1.P4Info) *Names {
	n := &Names{map[string]*p4configv1.Table{}, map[string]uint32{}}
	for _, t := range info.GetTables() {
		n.tables[t.GetPreamble().GetName()] = t
	}
	for _, a := range info.GetActions() {
		n.actions[a.GetPreamble().GetName()] = a.GetPreamble().GetId()
	}
	return n
}

// Updates makes updates of one type of entries by name.
func (n *Names) Updates(kind p4v1.Update_Type, entries ...buffer.Entry) ([]*p4v1.Update, error) {
	var updates []*p4v1.Update
	for _, e := range entries {
		t, ok := n.tables[e.Table]
		if !ok {
			return nil, fmt.Errorf("no table %q", e.Table)
		}
		act, err := n.action(e.Action)
		if err != nil {
			return nil, err
		}
		entry := p4msg.Entry(t.GetPreamble().GetId(), 0, act)
		for _, m := range e.Match {
			f, err := field(t, m)
			if err != nil {
				return nil, err
			}
			entry.Match = append(entry.Match, f)
		}
		updates = append(updates, &p4v1.Update{Type: kind, Entity: p4msg.Of(entry)})
	}
	return updates, nil
}

func field(t *p4configv1.Table, m buffer.Match) (*p4v1.FieldMatch, error) {
	for _, f := range t.GetMatchFields() {
		if f.GetName() != m.Field {
			continue
		}
		if m.Prefix == buffer.Exact {
			return p4msg.Exact(f.GetId(), m.Value), nil
		}
		return p4msg.LPM(f.GetId(), m.Value, int32(m.Prefix)), nil
	}
	return nil, fmt.Errorf("table %q has no field %q", t.GetPreamble().GetName(), m.Field)
}

func (n *Names) action(a buffer.Action) (*p4v1.TableAction, error) {
	id, ok := n.actions[a.Name]
	if !ok {
		return nil, fmt.Errorf("no action %q", a.Name)
	}
	return p4msg.Do(id, a.Params...), nil
}

// BufferPolicy makes an action the buffer's policy.
func (n *Names) BufferPolicy(a buffer.Action) (*p4v1.Update, error) {
	act, err := n.action(a)
	if err != nil {
		return nil, err
	}
	return setDefault(ids.TableBufferPolicy, act), nil
}

// PFCSession installs the clone session of a port's PFC frames.
func PFCSession(port uint32) *p4v1.Update { return cloneSession(buffer.Session(port), port) }
