package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/internal/p4rtmsg"
)

// Arg is one argument of an action, by its parameter's name.
type Arg struct {
	Name  string
	Value []byte
}

// Entry builds a table entry. Errors are kept and come out of Entity; a match that means
// "anything" is left out, as P4Runtime demands.
type Entry struct {
	p     *Pipeline
	table *p4configv1.Table
	entry *p4v1.TableEntry
	err   error
}

// Entry starts an entry of a table.
func (p *Pipeline) Entry(table string) *Entry {
	t, err := p.tables.find(table)
	if err != nil {
		return &Entry{err: err}
	}
	return &Entry{p: p, table: t, entry: &p4v1.TableEntry{TableId: t.GetPreamble().GetId()}}
}

// Default starts the default entry of a table. It can only be modified.
func (p *Pipeline) Default(table string) *Entry {
	e := p.Entry(table)
	if e.err == nil {
		e.entry.IsDefaultAction = true
	}
	return e
}

// Exact sets the value of an exact key field.
func (e *Entry) Exact(name string, v []byte) *Entry {
	return e.match(name, p4configv1.MatchField_EXACT, v, nil, 0)
}

// LPM sets the value of a longest-prefix key field; bits beyond the prefix are cleared.
func (e *Entry) LPM(name string, v []byte, prefix int) *Entry {
	return e.match(name, p4configv1.MatchField_LPM, v, nil, prefix)
}

// Ternary sets value and mask of a ternary key field; bits outside the mask are cleared.
func (e *Entry) Ternary(name string, v, mask []byte) *Entry {
	return e.match(name, p4configv1.MatchField_TERNARY, v, mask, 0)
}

// Range sets the inclusive bounds of a range key field.
func (e *Entry) Range(name string, low, high []byte) *Entry {
	return e.match(name, p4configv1.MatchField_RANGE, low, high, 0)
}

// match sets a key field, which must match by kind.
func (e *Entry) match(name string, kind p4configv1.MatchField_MatchType, v, other []byte, prefix int) *Entry {
	if e.err != nil {
		return e
	}
	table := e.table.GetPreamble().GetName()
	var names []string
	for _, f := range e.table.GetMatchFields() {
		names = append(names, f.GetName())
		if f.GetName() != name {
			continue
		}
		what := fmt.Sprintf("table %s key %s", table, name)
		if f.GetMatchType() != kind {
			return e.fail(fmt.Errorf("%s matches by %v, not by %v", what, f.GetMatchType(), kind))
		}
		m, err := fieldMatch(what, f, v, other, prefix)
		if err != nil {
			return e.fail(err)
		}
		if m != nil {
			e.entry.Match = append(e.entry.Match, m)
		}
		return e
	}
	return e.fail(fmt.Errorf("table %s has no key %q; it has %s", table, name, orNone(names)))
}

// suffixes name the two values of a match.
var suffixes = map[p4configv1.MatchField_MatchType][2]string{
	p4configv1.MatchField_TERNARY: {"", " mask"}, p4configv1.MatchField_RANGE: {" low", " high"},
}

// fieldMatch returns a match of v, of its first prefix bits, of its bits in the mask other, or of the range from v to
// other; nil for a match of anything.
func fieldMatch(what string, f *p4configv1.MatchField, v, other []byte, prefix int) (*p4v1.FieldMatch, error) {
	id, width, kind := f.GetId(), f.GetBitwidth(), f.GetMatchType()
	if kind == p4configv1.MatchField_LPM && (prefix < 0 || prefix > int(width)) {
		return nil, fmt.Errorf("%s: the prefix length is %d, want 0 to %d", what, prefix, width)
	}
	suffix, two := suffixes[kind]
	v, err := value(what+suffix[0], v, width)
	if err == nil && two {
		other, err = value(what+suffix[1], other, width)
	}
	if err != nil {
		return nil, err
	}
	switch kind {
	case p4configv1.MatchField_OPTIONAL:
		return p4rtmsg.Optional(id, v), nil
	case p4configv1.MatchField_LPM:
		if prefix == 0 {
			return nil, nil
		}
		v = padded(v, width)
		for i, n := len(v)-1, int(width)-prefix; n > 0; i, n = i-1, n-8 {
			v[i] &= 0xff << min(n, 8)
		}
		return p4rtmsg.LPM(id, v, int32(prefix)), nil
	case p4configv1.MatchField_TERNARY:
		if bytestring.IsZero(other) {
			return nil, nil
		}
		v = padded(v, width)
		for i, b := range padded(other, width) {
			v[i] &= b
		}
		return p4rtmsg.Ternary(id, v, other), nil
	case p4configv1.MatchField_RANGE:
		switch {
		case bytestring.Compare(v, other) > 0:
			return nil, fmt.Errorf("%s: the range is 0x%x to 0x%x, want low ≤ high", what, v, other)
		case bytestring.IsZero(v) && bytestring.IsMax(other, int(width)):
			return nil, nil
		}
		return p4rtmsg.Range(id, v, other), nil
	}
	return p4rtmsg.Exact(id, v), nil
}

func (e *Entry) fail(err error) *Entry {
	e.err = errors.Join(e.err, err)
	return e
}

// Priority sets the priority; the higher of two matching entries wins. It is demanded by
// tables with a ternary, range or optional key, and refused by the others.
func (e *Entry) Priority(n int32) *Entry {
	if e.err == nil {
		e.entry.Priority = n
	}
	return e
}

// Action sets the action of a direct table's entry.
func (e *Entry) Action(name string, args ...Arg) *Entry {
	if e.err != nil {
		return e
	}
	a, err := e.p.action(name, args)
	if err == nil {
		err = allowed(e.table, a.GetActionId(), name)
	}
	if err != nil {
		return e.fail(err)
	}
	e.entry.Action = p4rtmsg.Call(a)
	return e
}

// Call is Action with the values of the parameters in the order of their declaration.
func (e *Entry) Call(name string, values []uint64) *Entry {
	if e.err != nil {
		return e
	}
	a, err := e.p.actions.find(name)
	if err != nil {
		return e.fail(err)
	}
	if n := len(a.GetParams()); n != len(values) {
		return e.fail(fmt.Errorf("action %s: %d values are given, it has %d parameters", name, len(values), n))
	}
	args := make([]Arg, len(values))
	for i, param := range a.GetParams() {
		args[i] = Arg{param.GetName(), p4rtmsg.Uint(values[i])}
	}
	return e.Action(name, args...)
}

// Member makes an entry of an indirect table use one member of its action profile.
func (e *Entry) Member(id uint32) *Entry {
	if e.err == nil {
		e.entry.Action = &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileMemberId{ActionProfileMemberId: id}}
	}
	return e
}

// Group makes an entry of an indirect table use a group of its action profile.
func (e *Entry) Group(id uint32) *Entry {
	if e.err == nil {
		e.entry.Action = &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileGroupId{ActionProfileGroupId: id}}
	}
	return e
}

// Entity returns the entry, or everything that was wrong with it.
func (e *Entry) Entity() (*p4v1.Entity, error) {
	if e.err != nil {
		return nil, e.err
	}
	if err := checkEntry(e.table, e.entry); err != nil {
		return nil, err
	}
	sortMatches(e.entry.Match)
	return p4rtmsg.Entity(e.entry), nil
}

// checkEntry checks an entry by the rules of the specification's section on table entries.
func checkEntry(t *p4configv1.Table, e *p4v1.TableEntry) error {
	name := t.GetPreamble().GetName()
	if e.Action == nil {
		return fmt.Errorf("table %s: the entry has no action", name)
	}
	_, direct := e.Action.Type.(*p4v1.TableAction_Action)
	if indirect := t.GetImplementationId() != 0; direct == indirect {
		return fmt.Errorf("table %s: an action is direct exactly when the table has no action profile", name)
	}
	if e.IsDefaultAction {
		if len(e.Match) > 0 || e.Priority != 0 {
			return fmt.Errorf("table %s: a default entry has neither keys nor a priority", name)
		}
		if t.GetConstDefaultActionId() != 0 {
			return fmt.Errorf("table %s: its default action is const", name)
		}
		return nil
	}
	set := map[uint32]bool{}
	for _, m := range e.Match {
		if set[m.FieldId] {
			return fmt.Errorf("table %s: key field %d is set twice", name, m.FieldId)
		}
		set[m.FieldId] = true
	}
	priority := false
	for _, f := range t.GetMatchFields() {
		switch f.GetMatchType() {
		case p4configv1.MatchField_EXACT:
			if !set[f.GetId()] {
				return fmt.Errorf("table %s: the exact key %s is not set", name, f.GetName())
			}
		case p4configv1.MatchField_TERNARY, p4configv1.MatchField_RANGE, p4configv1.MatchField_OPTIONAL:
			priority = true
		}
	}
	if priority != (e.Priority > 0) {
		return fmt.Errorf("table %s: the priority is %d, want above 0 exactly when a key is ternary, range or optional", name, e.Priority)
	}
	return nil
}

func allowed(t *p4configv1.Table, action uint32, name string) error {
	for _, ref := range t.GetActionRefs() {
		if ref.GetId() == action {
			return nil
		}
	}
	return fmt.Errorf("table %s has no action %q", t.GetPreamble().GetName(), name)
}

// action builds a call, with every parameter given exactly once.
func (p *Pipeline) action(name string, args []Arg) (*p4v1.Action, error) {
	a, err := p.actions.find(name)
	if err != nil {
		return nil, err
	}
	out := &p4v1.Action{ActionId: a.GetPreamble().GetId()}
	err = fill("action "+name, "parameter", a.GetParams(), args, func(id uint32, v []byte) {
		out.Params = append(out.Params, &p4v1.Action_Param{ParamId: id, Value: v})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// declared is a parameter of an action or a field of a controller header.
type declared interface {
	GetId() uint32
	GetName() string
	GetBitwidth() int32
}

// fill hands over the value of each parameter or field in the order of their declaration. Each must be
// given exactly once.
func fill[T declared](what, kind string, list []T, given []Arg, add func(id uint32, v []byte)) error {
	for _, d := range list {
		i := slices.IndexFunc(given, func(a Arg) bool { return a.Name == d.GetName() })
		if i < 0 {
			return fmt.Errorf("%s: %s %q is missing", what, kind, d.GetName())
		}
		v, err := value(what+" "+kind+" "+d.GetName(), given[i].Value, d.GetBitwidth())
		if err != nil {
			return err
		}
		add(d.GetId(), v)
	}
	if len(given) == len(list) {
		return nil
	}
	var names []string
	for _, d := range list {
		names = append(names, d.GetName())
	}
	for i, a := range given {
		switch {
		case !slices.Contains(names, a.Name):
			return fmt.Errorf("%s has no %s %q; it has %s", what, kind, a.Name, orNone(names))
		case slices.ContainsFunc(given[:i], func(b Arg) bool { return b.Name == a.Name }):
			return fmt.Errorf("%s: %s %q is given twice", what, kind, a.Name)
		}
	}
	return nil
}

// short returns the last part of a name.
func short(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// value checks that b fits a field of that many bits and returns its canonical form.
func value(what string, b []byte, width int32) ([]byte, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%s: the value is empty", what)
	}
	c := bytestring.Canonical(b)
	if n := bytestring.Bits(c); width > 0 && n > int(width) {
		return nil, fmt.Errorf("%s: the value 0x%x has %d bits, want at most %d", what, c, n, width)
	}
	return append([]byte(nil), c...), nil
}

// padded returns b left-padded to the bytes of a field of that many bits.
func padded(b []byte, width int32) []byte {
	out := make([]byte, (int(width)+7)/8)
	if len(b) > len(out) {
		b = b[len(b)-len(out):]
	}
	copy(out[len(out)-len(b):], b)
	return out
}
