package schema

import (
	"fmt"
	"slices"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
)

// Parse checks a P4Info by itself and indexes it. The error names the object, the field,
// the value and what is allowed.
func Parse(info *p4configv1.P4Info) (*Schema, error) {
	s := &Schema{Info: info, direct: map[uint32]direct{}, types: info.GetTypeInfo(), ids: map[uint32]string{}, names: map[uint32]string{}}
	for _, step := range []func() error{
		s.parseActions, s.parseProfiles, s.parseDirect, s.parseTables, s.linkProfiles,
		s.parseArrays, s.parseRegisters, s.parseValueSets, s.parseDigests, s.parseHeaders,
	} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("P4Info: %w", err)
		}
	}
	return s, nil
}

// claim checks an object's preamble: an id of the right kind that nothing else uses, and a name.
func (s *Schema) claim(kind string, prefix p4configv1.P4Ids_Prefix, p *p4configv1.Preamble) error {
	what := fmt.Sprintf("%s %q", kind, p.GetName())
	switch id := p.GetId(); {
	case p.GetName() == "":
		return fmt.Errorf("%s with id %#x: preamble.name is empty", kind, id)
	case id == 0:
		return fmt.Errorf("%s: preamble.id is 0, which P4Runtime reserves", what)
	case id>>24 != uint32(prefix):
		return fmt.Errorf("%s: preamble.id is %#x, its first byte must be %#x", what, id, uint32(prefix))
	case s.ids[id] != "":
		return fmt.Errorf("%s: preamble.id %#x is that of %s too", what, id, s.ids[id])
	default:
		s.ids[id], s.names[id] = what, p.GetName()
		return nil
	}
}

func addNamed[T any](x *Index[T], kind string, p *p4configv1.Preamble, v T) error {
	if _, dup := x.Name(p.Name); dup {
		return fmt.Errorf("%s %q: preamble.name is used twice", kind, p.Name)
	}
	x.add(p.Id, p.Name, v)
	return nil
}

func (s *Schema) parseActions() error {
	for _, a := range s.Info.GetActions() {
		if err := s.claim("action", p4configv1.P4Ids_ACTION, a.Preamble); err != nil {
			return err
		}
		out := &Action{ID: a.Preamble.Id, Name: a.Preamble.Name, params: map[uint32]*Param{}}
		for i, p := range a.Params {
			where := fmt.Sprintf("action %q: params[%d] %q", out.Name, i, p.Name)
			if p.Id == 0 || out.params[p.Id] != nil {
				return fmt.Errorf("%s: id is %d, it must be unique and not 0", where, p.Id)
			}
			bits, translated, err := s.width(where, p.Bitwidth, p.TypeName)
			if err != nil {
				return err
			}
			q := &Param{ID: p.Id, Name: p.Name, Bits: bits, DeviceBits: bits, position: i}
			if translated {
				q.DeviceBits = 0 // the JSON says
			}
			out.Params = append(out.Params, q)
			out.params[p.Id] = q
		}
		if err := addNamed(&s.Actions, "action", a.Preamble, out); err != nil {
			return err
		}
	}
	return nil
}

// width checks a bitwidth and looks at its type: translated is true for a translated type
// whose values are numbers; those in strings are refused.
func (s *Schema) width(where string, bits int32, name *p4configv1.P4NamedType) (int, bool, error) {
	translated := false
	if name.GetName() != "" {
		nt := s.types.GetNewTypes()[name.Name]
		if nt == nil && s.types.GetSerializableEnums()[name.Name] == nil {
			return 0, false, fmt.Errorf("%s: type_name %q is not in type_info", where, name.Name)
		}
		if tr := nt.GetTranslatedType(); tr != nil {
			if _, ok := tr.SdnType.(*p4configv1.P4NewTypeTranslation_SdnBitwidth); !ok {
				return 0, false, fmt.Errorf("%s: type %q is translated to strings (@p4runtime_translation), only translation to numbers is supported", where, name.Name)
			}
			translated = true
		}
	}
	if bits < 1 || bits > maxBits {
		return 0, false, fmt.Errorf("%s: bitwidth is %d, allowed are 1 to %d", where, bits, maxBits)
	}
	return int(bits), translated, nil
}

// maxBits bounds the width of a field or parameter; no P4 program of use comes near it.
const maxBits = 1 << 14

func (s *Schema) parseProfiles() error {
	for _, p := range s.Info.GetActionProfiles() {
		if err := s.claim("action profile", p4configv1.P4Ids_ACTION_PROFILE, p.Preamble); err != nil {
			return err
		}
		out := &Profile{ID: p.Preamble.Id, Name: p.Preamble.Name, Selector: p.WithSelector, Size: p.Size, MaxGroupSize: p.MaxGroupSize}
		switch {
		case p.Size < 0:
			return fmt.Errorf("action profile %q: size is %d, it must not be negative", out.Name, p.Size)
		case p.MaxGroupSize < 0 || p.Size > 0 && int64(p.MaxGroupSize) > p.Size:
			return fmt.Errorf("action profile %q: max_group_size is %d, allowed are 0 to size, %d", out.Name, p.MaxGroupSize, p.Size)
		case p.MaxGroupSize > 0 && !p.WithSelector:
			return fmt.Errorf("action profile %q: max_group_size is %d, it must be 0 without a selector", out.Name, p.MaxGroupSize)
		}
		if err := addNamed(&s.Profiles, "action profile", p.Preamble, out); err != nil {
			return err
		}
	}
	return nil
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
			if len(out.Tables) > 0 && !sameActions(out.Tables[0], t) {
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

func sameActions(a, b *Table) bool {
	// A default-only action is no concern of the profile.
	count := func(t *Table) (n int) {
		for _, r := range t.Actions {
			if r.Scope != p4configv1.ActionRef_DEFAULT_ONLY {
				n++
			}
		}
		return n
	}
	for id, r := range a.Actions {
		if o := b.Actions[id]; r.Scope != p4configv1.ActionRef_DEFAULT_ONLY && (o == nil || o.Scope == p4configv1.ActionRef_DEFAULT_ONLY) {
			return false
		}
	}
	return count(a) == count(b)
}
