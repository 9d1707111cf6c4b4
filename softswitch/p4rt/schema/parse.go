package schema

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/headgate/headgate/softswitch/engine"
)

// Parse checks a P4Info by itself and indexes it. The error names the object, the field,
// the value and what is allowed.
func Parse(info *p4configv1.P4Info) (*Schema, error) {
	s := &Schema{Info: info, direct: map[uint32]direct{}, types: info.GetTypeInfo(), ids: map[uint32]string{}, names: map[uint32]string{}, absent: map[uint32]string{}}
	for _, step := range []func() error{
		s.parseActions, s.parseProfiles, s.parseDirect, s.parseTables, s.linkProfiles,
		s.parseArrays, s.parseValueSets, s.parseDigests, s.parseHeaders,
	} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("P4Info: %w", err)
		}
	}
	return s, nil
}

type message interface {
	GetPreamble() *p4configv1.Preamble
}

// eachObject checks the preamble of each object of one kind, and calls parse for the object. The
// id must be of the right kind and unique, and the name must be set. Errors begin with the object.
func eachObject[M message](s *Schema, kind string, prefix p4configv1.P4Ids_Prefix, list []M, parse func(Object, M) error) error {
	for _, m := range list {
		o := Object{m.GetPreamble().GetId(), m.GetPreamble().GetName()}
		what := fmt.Sprintf("%s %q", kind, o.Name)
		switch {
		case o.Name == "":
			return fmt.Errorf("%s with id %#x: preamble.name is empty", kind, o.ID)
		case o.ID == 0:
			return fmt.Errorf("%s: preamble.id is 0, which P4Runtime reserves", what)
		case o.ID>>24 != uint32(prefix):
			return fmt.Errorf("%s: preamble.id is %#x, its first byte must be %#x", what, o.ID, uint32(prefix))
		case s.ids[o.ID] != "":
			return fmt.Errorf("%s: preamble.id %#x is that of %s too", what, o.ID, s.ids[o.ID])
		}
		s.ids[o.ID], s.names[o.ID] = what, o.Name
		if err := parse(o, m); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// parseObjects indexes the results of parse for the objects of one kind.
func parseObjects[M message, T interface{ object() Object }](s *Schema, x *Index[T], kind string, prefix p4configv1.P4Ids_Prefix, list []M, parse func(Object, M) (T, error)) error {
	x.Kind, x.byID, x.byName = kind, map[uint32]T{}, map[string]T{}
	return eachObject(s, kind, prefix, list, func(o Object, m M) error {
		v, err := parse(o, m)
		if err != nil {
			return err
		}
		if _, dup := x.byName[o.Name]; dup {
			return fmt.Errorf("preamble.name is used twice")
		}
		x.List = append(x.List, v)
		x.byID[o.ID], x.byName[o.Name] = v, v
		return nil
	})
}

// uniqueID checks the id of part i of an object: a parameter or a field.
func uniqueID[P interface{ id() uint32 }](where string, id uint32, before []P) error {
	if id == 0 || slices.ContainsFunc(before, func(p P) bool { return p.id() == id }) {
		return fmt.Errorf("%s: id is %d, it must be unique and not 0", where, id)
	}
	return nil
}

func checkSize(n int64) error {
	if n < 0 {
		return fmt.Errorf("size is %d, it must not be negative", n)
	}
	return nil
}

func (s *Schema) parseActions() error {
	return parseObjects(s, &s.Actions, "action", p4configv1.P4Ids_ACTION, s.Info.GetActions(), func(o Object, a *p4configv1.Action) (*Action, error) {
		out := &Action{Object: o}
		for i, p := range a.Params {
			where := fmt.Sprintf("params[%d] %q", i, p.Name)
			if err := uniqueID(where, p.Id, out.Params); err != nil {
				return nil, err
			}
			w, err := s.width(where, p.Bitwidth, p.TypeName)
			if err != nil {
				return nil, err
			}
			out.Params = append(out.Params, &Param{p.Id, p.Name, w, fmt.Sprintf("parameter %q", p.Name)})
		}
		return out, nil
	})
}

// width checks a bitwidth and looks up its type. Bits are 0 if the type is translated to strings.
// DeviceBits are 0 if the type is translated at all; the program then gives them.
func (s *Schema) width(where string, bits int32, name *p4configv1.P4NamedType) (Width, error) {
	w := Width{Bits: int(bits), DeviceBits: int(bits)}
	if name.GetName() != "" {
		nt := s.types.GetNewTypes()[name.Name]
		if nt == nil && s.types.GetSerializableEnums()[name.Name] == nil {
			return w, fmt.Errorf("%s: type_name %q is not in type_info", where, name.Name)
		}
		if tr := nt.GetTranslatedType(); tr != nil {
			if _, ok := tr.SdnType.(*p4configv1.P4NewTypeTranslation_SdnBitwidth); !ok {
				return Width{Strings: name.Name}, nil
			}
			w.DeviceBits = 0
		}
	}
	return w, checkBits(where, bits)
}

// maxBits bounds the width of a field or parameter. No useful P4 program comes near it.
const maxBits = 1 << 14

func checkBits(where string, bits int32) error {
	if bits < 1 || bits > maxBits {
		return fmt.Errorf("%s: bitwidth is %d, allowed are 1 to %d", where, bits, maxBits)
	}
	return nil
}

func (s *Schema) parseProfiles() error {
	return parseObjects(s, &s.Profiles, "action profile", p4configv1.P4Ids_ACTION_PROFILE, s.Info.GetActionProfiles(), func(o Object, p *p4configv1.ActionProfile) (*Profile, error) {
		switch {
		case p.Size < 0:
			return nil, checkSize(p.Size)
		case p.MaxGroupSize < 0 || p.Size > 0 && int64(p.MaxGroupSize) > p.Size:
			return nil, fmt.Errorf("max_group_size is %d, allowed are 0 to size, %d", p.MaxGroupSize, p.Size)
		case p.MaxGroupSize > 0 && !p.WithSelector:
			return nil, fmt.Errorf("max_group_size is %d, it must be 0 without a selector", p.MaxGroupSize)
		}
		return &Profile{Object: o, Selector: p.WithSelector, Size: p.Size, MaxGroupSize: p.MaxGroupSize}, nil
	})
}

// linkProfiles checks that tables and profiles name each other, and that tables sharing a
// profile have the same actions.
func (s *Schema) linkProfiles() error {
	for _, p := range s.Info.GetActionProfiles() {
		out, _ := s.Profiles.ID(p.Preamble.Id)
		for _, id := range p.TableIds {
			t, ok := s.Tables.ID(id)
			if !ok || t.Profile != out {
				return fmt.Errorf("action profile %q: table_ids has %#x, which is no table with this implementation_id", out.Name, id)
			}
			if len(out.Tables) > 0 && !maps.Equal(entryActions(out.Tables[0]), entryActions(t)) {
				return fmt.Errorf("action profile %q: tables %q and %q share it and differ in action_refs", out.Name, out.Tables[0].Name, t.Name)
			}
			out.Tables = append(out.Tables, t)
		}
	}
	for _, t := range s.Tables.List {
		if t.Profile != nil && !slices.Contains(t.Profile.Tables, t) {
			return fmt.Errorf("table %q: implementation_id names action profile %q, whose table_ids lack the table", t.Name, t.Profile.Name)
		}
	}
	return nil
}

// entryActions returns the ids of the actions that entries of a table may use.
func entryActions(t *Table) map[uint32]bool {
	ids := map[uint32]bool{}
	for id, r := range t.Actions {
		if r.Scope != p4configv1.ActionRef_DEFAULT_ONLY {
			ids[id] = true
		}
	}
	return ids
}

func (s *Schema) parseDirect() error {
	return cmp.Or(
		eachObject(s, "direct counter", p4configv1.P4Ids_DIRECT_COUNTER, s.Info.GetDirectCounters(), func(o Object, c *p4configv1.DirectCounter) error {
			s.direct[o.ID] = direct{table: c.DirectTableId}
			return nil
		}),
		eachObject(s, "direct meter", p4configv1.P4Ids_DIRECT_METER, s.Info.GetDirectMeters(), func(o Object, m *p4configv1.DirectMeter) error {
			s.direct[o.ID] = direct{table: m.DirectTableId, meter: true}
			return nil
		}),
	)
}

func (s *Schema) parseTables() error {
	err := parseObjects(s, &s.Tables, "table", p4configv1.P4Ids_TABLE, s.Info.GetTables(), s.parseTable)
	if err != nil {
		return err
	}
	for id, d := range s.direct {
		t, ok := s.Tables.ID(d.table)
		if !ok || t.CounterID != id && t.MeterID != id {
			return fmt.Errorf("%s: direct_table_id is %#x, which is no table with this direct resource", s.ids[id], d.table)
		}
	}
	return nil
}

func (s *Schema) parseTable(o Object, t *p4configv1.Table) (*Table, error) {
	out := &Table{
		Object: o, Size: t.Size, Const: t.IsConstTable,
		ConstDefault: t.ConstDefaultActionId, Actions: map[uint32]*ActionRef{},
		IdleTimeout: t.IdleTimeoutBehavior == p4configv1.Table_NOTIFY_CONTROL,
	}
	if err := checkSize(t.Size); err != nil {
		return nil, err
	}
	if !out.IdleTimeout && t.IdleTimeoutBehavior != p4configv1.Table_NO_TIMEOUT {
		return nil, fmt.Errorf("idle_timeout_behavior is %d, allowed are NO_TIMEOUT and NOTIFY_CONTROL", t.IdleTimeoutBehavior)
	}
	var err error
	if out.Fields, err = s.parseFields(t.MatchFields); err != nil {
		return nil, err
	}
	out.NeedsPriority = slices.ContainsFunc(out.Fields, func(f *Field) bool { return f.Kind != engine.Exact && f.Kind != engine.LPM })
	return out, s.parseRefs(t, out)
}

// parseRefs reads the objects that a table refers to: actions, implementation, direct resources.
func (s *Schema) parseRefs(t *p4configv1.Table, out *Table) error {
	for i, r := range t.ActionRefs {
		a, ok := s.Actions.ID(r.Id)
		if !ok || out.Actions[r.Id] != nil {
			return fmt.Errorf("action_refs[%d].id is %#x, which is no action or one named twice", i, r.Id)
		}
		if r.Scope < p4configv1.ActionRef_TABLE_AND_DEFAULT || r.Scope > p4configv1.ActionRef_DEFAULT_ONLY {
			return fmt.Errorf("action_refs[%d].scope is %d, allowed are 0 to 2", i, r.Scope)
		}
		out.Actions[r.Id] = &ActionRef{Action: a, Scope: r.Scope}
	}
	if id := t.ConstDefaultActionId; id != 0 && out.Actions[id] == nil {
		return fmt.Errorf("const_default_action_id is %#x, which is not among its action_refs", id)
	}
	if id := t.ImplementationId; id != 0 {
		var ok bool
		if out.Profile, ok = s.Profiles.ID(id); !ok {
			return fmt.Errorf("implementation_id is %#x, which is no action profile", id)
		}
	}
	for i, id := range t.DirectResourceIds {
		d, ok := s.direct[id]
		slot := &out.CounterID
		if d.meter {
			slot = &out.MeterID
		}
		if !ok || d.table != out.ID || *slot != 0 {
			return fmt.Errorf("direct_resource_ids[%d] is %#x, which is no direct counter or meter of this table, or the second of its kind", i, id)
		}
		*slot = id
	}
	return nil
}

var kinds = map[p4configv1.MatchField_MatchType]engine.MatchKind{
	p4configv1.MatchField_EXACT:    engine.Exact,
	p4configv1.MatchField_LPM:      engine.LPM,
	p4configv1.MatchField_TERNARY:  engine.Ternary,
	p4configv1.MatchField_RANGE:    engine.Range,
	p4configv1.MatchField_OPTIONAL: engine.Optional,
}

func (s *Schema) parseFields(in []*p4configv1.MatchField) ([]*Field, error) {
	var list []*Field
	for i, m := range in {
		where := fmt.Sprintf("match_fields[%d] %q", i, m.Name)
		if err := uniqueID(where, m.Id, list); err != nil {
			return nil, err
		}
		kind, ok := kinds[m.GetMatchType()]
		if !ok {
			return nil, fmt.Errorf("%s: match type is %v %q, allowed are EXACT, LPM, TERNARY, RANGE and OPTIONAL", where, m.GetMatchType(), m.GetOtherMatchType())
		}
		var w Width // stays zero if the field's type is error
		if m.Bitwidth != 0 || m.TypeName != nil {
			var err error
			if w, err = s.width(where, m.Bitwidth, m.TypeName); err != nil {
				return nil, err
			}
			if w.DeviceBits == 0 && kind != engine.Exact && kind != engine.Optional {
				return nil, fmt.Errorf("%s: type %q is translated, which is supported for EXACT and OPTIONAL, not %v", where, m.TypeName.GetName(), m.GetMatchType())
			}
		}
		list = append(list, &Field{ID: m.Id, Name: m.Name, Kind: kind, Width: w, position: i, deviceKind: kind})
	}
	return list, nil
}

func (s *Schema) parseArrays() error {
	return cmp.Or(
		parseObjects(s, &s.Counters, "counter", p4configv1.P4Ids_COUNTER, s.Info.GetCounters(), func(o Object, c *p4configv1.Counter) (*Array, error) {
			return &Array{o, c.Size, nil}, checkSize(c.Size)
		}),
		parseObjects(s, &s.Meters, "meter", p4configv1.P4Ids_METER, s.Info.GetMeters(), func(o Object, m *p4configv1.Meter) (*Array, error) {
			return &Array{o, m.Size, nil}, checkSize(m.Size)
		}),
		parseObjects(s, &s.Registers, "register", p4configv1.P4Ids_REGISTER, s.Info.GetRegisters(), func(o Object, r *p4configv1.Register) (*Array, error) {
			t, err := s.dataType("type_spec", r.TypeSpec)
			if err != nil {
				return nil, err
			}
			if !t.leaf() {
				return nil, fmt.Errorf("type_spec is a struct or tuple, allowed are bit<W>, int<W>, bool and serializable enums")
			}
			return &Array{o, int64(r.Size), t}, checkSize(int64(r.Size))
		}),
	)
}

func (s *Schema) parseValueSets() error {
	return parseObjects(s, &s.ValueSets, "value set", p4configv1.P4Ids_VALUE_SET, s.Info.GetValueSets(), func(o Object, v *p4configv1.ValueSet) (*ValueSet, error) {
		if err := checkSize(int64(v.Size)); err != nil {
			return nil, err
		}
		fields, err := s.parseFields(v.Match)
		if err != nil {
			return nil, err
		}
		for _, f := range fields {
			f.inValueSet = true
			if f.Bits == 0 && f.Strings == "" {
				return nil, fmt.Errorf("match %q: bitwidth is 0, allowed are 1 to %d", f.Name, maxBits)
			}
			f.DeviceBits = f.Bits
		}
		return &ValueSet{o, int64(v.Size), fields}, nil
	})
}

func (s *Schema) parseDigests() error {
	return parseObjects(s, &s.Digests, "digest", p4configv1.P4Ids_DIGEST, s.Info.GetDigests(), func(o Object, d *p4configv1.Digest) (*Digest, error) {
		t, err := s.dataType("type_spec", d.TypeSpec)
		return &Digest{o, t}, err
	})
}

func (s *Schema) parseHeaders() error {
	return eachObject(s, "controller packet metadata", p4configv1.P4Ids_CONTROLLER_HEADER, s.Info.GetControllerPacketMetadata(), func(o Object, c *p4configv1.ControllerPacketMetadata) error {
		slot, ok := map[string]**Header{"packet_in": &s.PacketIn, "packet_out": &s.PacketOut}[o.Name]
		if !ok {
			return fmt.Errorf("preamble.name must be packet_in or packet_out")
		}
		if *slot != nil {
			return fmt.Errorf("there are two of it")
		}
		h := &Header{}
		for i, m := range c.Metadata {
			where := fmt.Sprintf("metadata[%d] %q", i, m.Name)
			if err := uniqueID(where, m.Id, h.Fields); err != nil {
				return err
			}
			w, err := s.width(where, m.Bitwidth, m.TypeName)
			if err != nil {
				return err
			}
			if w.DeviceBits == 0 {
				return fmt.Errorf("%s: type %q is translated (@p4runtime_translation), which is not supported in controller headers", where, m.TypeName.GetName())
			}
			h.Fields = append(h.Fields, HeaderField{m.Id, m.Name, w.Bits, slices.Contains(m.Annotations, "@padding")})
			h.Bits += w.Bits
		}
		if h.Bits%8 != 0 {
			return fmt.Errorf("its %d bits are not whole bytes; pad the header", h.Bits)
		}
		*slot = h
		return nil
	})
}
