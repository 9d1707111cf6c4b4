package schema

import (
	"fmt"
	"maps"
	"slices"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
)

// Parse checks a P4Info by itself and indexes it. The error names the object, the field,
// the value and what is allowed.
func Parse(info *p4configv1.P4Info) (*Schema, error) {
	s := &Schema{Info: info, direct: map[uint32]direct{}, types: info.GetTypeInfo(), ids: map[uint32]string{}, names: map[uint32]string{}, absent: map[uint32]bool{}}
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
func eachObject[M message](s *Schema, kind string, prefix p4configv1.P4Ids_Prefix, list []M, parse func(M) error) error {
	for _, m := range list {
		p := m.GetPreamble()
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
		}
		s.ids[p.Id], s.names[p.Id] = what, p.Name
		if err := parse(m); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// parseObjects indexes the results of parse for the objects of one kind.
func parseObjects[M message, T interface{ object() Object }](s *Schema, x *Index[T], kind string, prefix p4configv1.P4Ids_Prefix, list []M, parse func(M) (T, error)) error {
	return eachObject(s, kind, prefix, list, func(m M) error {
		v, err := parse(m)
		if err != nil {
			return err
		}
		if _, dup := x.Name(m.GetPreamble().Name); dup {
			return fmt.Errorf("preamble.name is used twice")
		}
		x.add(v)
		return nil
	})
}

func (s *Schema) parseActions() error {
	return parseObjects(s, &s.Actions, "action", p4configv1.P4Ids_ACTION, s.Info.GetActions(), func(a *p4configv1.Action) (*Action, error) {
		out := &Action{Object: objectOf(a.Preamble)}
		for i, p := range a.Params {
			where := fmt.Sprintf("params[%d] %q", i, p.Name)
			if p.Id == 0 || slices.ContainsFunc(out.Params, func(q *Param) bool { return q.ID == p.Id }) {
				return nil, fmt.Errorf("%s: id is %d, it must be unique and not 0", where, p.Id)
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
	translated := false
	if name.GetName() != "" {
		nt := s.types.GetNewTypes()[name.Name]
		if nt == nil && s.types.GetSerializableEnums()[name.Name] == nil {
			return Width{}, fmt.Errorf("%s: type_name %q is not in type_info", where, name.Name)
		}
		if tr := nt.GetTranslatedType(); tr != nil {
			if _, ok := tr.SdnType.(*p4configv1.P4NewTypeTranslation_SdnBitwidth); !ok {
				return Width{Strings: name.Name}, nil
			}
			translated = true
		}
	}
	if bits < 1 || bits > maxBits {
		return Width{}, fmt.Errorf("%s: bitwidth is %d, allowed are 1 to %d", where, bits, maxBits)
	}
	if translated {
		return Width{Bits: int(bits)}, nil
	}
	return Width{Bits: int(bits), DeviceBits: int(bits)}, nil
}

// maxBits bounds the width of a field or parameter. No useful P4 program comes near it.
const maxBits = 1 << 14

func (s *Schema) parseProfiles() error {
	return parseObjects(s, &s.Profiles, "action profile", p4configv1.P4Ids_ACTION_PROFILE, s.Info.GetActionProfiles(), func(p *p4configv1.ActionProfile) (*Profile, error) {
		switch {
		case p.Size < 0:
			return nil, errSize(p.Size)
		case p.MaxGroupSize < 0 || p.Size > 0 && int64(p.MaxGroupSize) > p.Size:
			return nil, fmt.Errorf("max_group_size is %d, allowed are 0 to size, %d", p.MaxGroupSize, p.Size)
		case p.MaxGroupSize > 0 && !p.WithSelector:
			return nil, fmt.Errorf("max_group_size is %d, it must be 0 without a selector", p.MaxGroupSize)
		}
		return &Profile{Object: objectOf(p.Preamble), Selector: p.WithSelector, Size: p.Size, MaxGroupSize: p.MaxGroupSize}, nil
	})
}

func errSize(n int64) error { return fmt.Errorf("size is %d, it must not be negative", n) }

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

// sameActions reports whether the entries of two tables may use the same actions.
func sameActions(a, b *Table) bool {
	of := func(t *Table) map[uint32]bool {
		ids := map[uint32]bool{}
		for id, r := range t.Actions {
			if r.Scope != p4configv1.ActionRef_DEFAULT_ONLY {
				ids[id] = true
			}
		}
		return ids
	}
	return maps.Equal(of(a), of(b))
}
