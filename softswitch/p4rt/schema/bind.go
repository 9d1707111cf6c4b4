package schema

import (
	"cmp"
	"fmt"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine"
)

// Bind joins a parsed P4Info with a BMv2 program. It finds objects in the program by name and checks
// that they have the same shape there. An object may be absent from the program, because compilers
// omit objects that no packet can reach from the program but not from the P4Info.
func (s *Schema) Bind(prog *engine.Program) error {
	if err := bind(s, &s.Actions, prog.Actions(), (*Action).bind); err != nil {
		return err
	}
	err := bind(s, &s.Tables, prog.Tables(), func(t *Table, info engine.TableInfo) error {
		if err := t.bind(&info); err != nil {
			return err
		}
		s.omit(&t.CounterID, info.HasCounters)
		s.omit(&t.MeterID, info.HasMeters)
		s.readEntries(t, &info)
		return nil
	})
	if err != nil {
		return err
	}
	if len(s.Tables.List) == 0 && len(s.Tables.byID) > 0 {
		for _, t := range prog.Tables() {
			if len(t.Key) > 0 {
				return fmt.Errorf("no table of the P4Info is in the BMv2 JSON, which has table %q: they belong to different programs", t.Name)
			}
		}
	}
	if err := s.bindExterns(prog.Source()); err != nil {
		return err
	}
	return s.bindDigests(prog.LearnLists())
}

const leftOut = "the compiler left it out"

// bind calls join for each object of the P4Info and the object of the same name in the program.
// Objects that the program does not have are marked absent.
func bind[T interface{ object() Object }, P interface{ ObjectName() string }](s *Schema, x *Index[T], program []P, join func(T, P) error) error {
	byName := map[string]P{}
	for _, p := range program {
		byName[p.ObjectName()] = p
	}
	var list []T
	for _, v := range x.List {
		o := v.object()
		p, ok := byName[o.Name]
		if !ok {
			s.absent[o.ID] = leftOut
			continue
		}
		if err := join(v, p); err != nil {
			return fmt.Errorf("%s: %w", s.ids[o.ID], err)
		}
		list = append(list, v)
	}
	x.List = list
	return nil
}

func (a *Action) bind(info engine.ActionInfo) error {
	if len(info.Params) != len(a.Params) {
		return fmt.Errorf("it has %d parameters in the P4Info and %d in the BMv2 JSON", len(a.Params), len(info.Params))
	}
	for i, p := range a.Params {
		q := info.Params[i]
		if p.DeviceBits == 0 {
			p.DeviceBits = q.Bits
		}
		if p.Name != q.Name || p.DeviceBits != q.Bits {
			return fmt.Errorf("parameter %d is %q, %d bits, in the P4Info and %q, %d bits, in the BMv2 JSON", i, p.Name, p.DeviceBits, q.Name, q.Bits)
		}
	}
	return nil
}

func (t *Table) bind(info *engine.TableInfo) error {
	if len(info.Key) != len(t.Fields) {
		return fmt.Errorf("it has %d key fields in the P4Info and %d in the BMv2 JSON", len(t.Fields), len(info.Key))
	}
	if err := bindKey(t.Fields, info.Key); err != nil {
		return err
	}
	have := map[string]bool{}
	for _, name := range info.Actions {
		have[name] = true
	}
	for _, r := range t.Actions {
		if !have[r.Name] && r.Name != "NoAction" {
			return fmt.Errorf("its action %q is not one of its actions in the BMv2 JSON", r.Name)
		}
	}
	profile := ""
	if t.Profile != nil {
		profile = t.Profile.Name
	}
	switch {
	case info.Profile == "" && profile != "":
		return fmt.Errorf("its implementation, action profile %q, is not in the BMv2 JSON: the compiler left it out, as p4c-bm2-psa does", profile)
	case profile != info.Profile:
		return fmt.Errorf("its implementation is %q in the P4Info and %q in the BMv2 JSON", profile, info.Profile)
	case t.IdleTimeout && !info.IdleTimeout:
		return fmt.Errorf("it has idle timeouts in the P4Info and none in the BMv2 JSON")
	case t.Const && !info.ConstEntries:
		return fmt.Errorf("its entries are const in the P4Info and not in the BMv2 JSON")
	}
	// BMv2's JSON does not distinguish entries from const entries: both are immutable.
	t.Const = info.ConstEntries
	return nil
}

// omit marks a table's direct counter or meter absent if the program does not have it, as programs of
// p4c-bm2-psa.
func (s *Schema) omit(id *uint32, has bool) {
	if *id != 0 && !has {
		s.absent[*id] = leftOut
		*id = 0
	}
}

// bindKey finds the place of every field in the engine's key. It goes by name, or by position if
// the JSON is of an older compiler and has no control-plane names.
func bindKey(fields []*Field, key []engine.KeyField) error {
	at := map[string]int{}
	for i, k := range key {
		at[k.Name] = i
	}
	named := len(at) == len(key)
	for _, f := range fields {
		if _, ok := at[f.Name]; !ok {
			named = false
		}
	}
	for i, f := range fields {
		f.position = i
		if named {
			f.position = at[f.Name]
		}
		k := key[f.position]
		f.deviceKind = k.Kind
		if f.DeviceBits == 0 {
			f.DeviceBits = k.Bits
		}
		if f.Bits == 0 && f.Strings == "" {
			f.Bits = k.Bits
		}
		same := f.Kind == k.Kind || f.Kind == engine.Optional && k.Kind == engine.Ternary
		if !same || f.DeviceBits != k.Bits {
			return fmt.Errorf("key field %q is %s, %d bits, in the P4Info and %q is %s, %d bits, in the BMv2 JSON",
				f.Name, kindName(f.Kind), f.DeviceBits, k.Name, kindName(k.Kind), k.Bits)
		}
	}
	return nil
}

func (s *Schema) bindExterns(j *bmv2json.Program) error {
	for _, p := range s.Profiles.List {
		p.Tables = slices.DeleteFunc(p.Tables, func(t *Table) bool { return s.absent[t.ID] != "" })
	}
	var profiles []bmv2json.Profile
	for i := range j.Pipelines {
		profiles = append(profiles, j.Pipelines[i].Profiles...)
	}
	var counters, meters []bmv2json.Array
	for _, c := range j.CounterArrays {
		if !c.Direct {
			counters = append(counters, c)
		}
	}
	for _, m := range j.Meters() {
		if !m.Direct {
			meters = append(meters, m.Array)
		}
	}
	return cmp.Or(
		bind(s, &s.Profiles, profiles, func(*Profile, bmv2json.Profile) error { return nil }),
		bind(s, &s.Counters, counters, (*Array).bind),
		bind(s, &s.Meters, meters, (*Array).bind),
		bind(s, &s.Registers, j.RegisterArrays, (*Array).bind),
		bind(s, &s.ValueSets, j.ValueSets, func(*ValueSet, bmv2json.ValueSet) error { return nil }),
	)
}

// unnamed is the name that p4c-bm2-psa gives to the learn list of each digest.
const unnamed = "digest"

// bindDigests finds the digest of each learn list by the list's name. A list without a name is matched by the widths of
// its fields. Digests with the same widths cannot be distinguished then, so they are absent.
func (s *Schema) bindDigests(lists []engine.LearnInfo) error {
	s.learns = map[int]string{}
	for i, l := range lists {
		if _, named := s.Digests.Name(unnamed); named || l.Name != unnamed {
			continue
		}
		var of []*Digest
		for _, d := range s.Digests.List {
			if slices.Equal(d.Type.Leaves(), l.Bits) {
				of = append(of, d)
			}
		}
		if len(of) == 0 {
			return fmt.Errorf("learn list %d of the BMv2 JSON has fields of %d bits, as no digest of the P4Info has", l.ID, l.Bits)
		}
		s.learns[l.ID], lists[i].Name = of[0].Name, of[0].Name
		for _, d := range of[1:] {
			s.absent[d.ID] = fmt.Sprintf("it has fields of the same widths as %q, and the compiler left the names of digests out", of[0].Name)
			s.absent[of[0].ID] = fmt.Sprintf("it has fields of the same widths as %q, and the compiler left the names of digests out", d.Name)
		}
	}
	s.Digests.List = slices.DeleteFunc(s.Digests.List, func(d *Digest) bool { return s.absent[d.ID] != "" })
	return bind(s, &s.Digests, lists, func(d *Digest, l engine.LearnInfo) error {
		if want := len(d.Type.Leaves()); len(l.Bits) != want {
			return fmt.Errorf("it has %d fields in the P4Info and %d in the BMv2 JSON", want, len(l.Bits))
		}
		return nil
	})
}

func (a *Array) bind(j bmv2json.Array) error {
	switch {
	case int64(j.Size) != a.Size:
		return fmt.Errorf("it has size %d in the P4Info and %d in the BMv2 JSON", a.Size, j.Size)
	case a.Type != nil && j.Bits != a.Type.Bits:
		return fmt.Errorf("it has %d bits in the P4Info and %d in the BMv2 JSON", a.Type.Bits, j.Bits)
	}
	return nil
}

func kindName(k engine.MatchKind) string {
	return [...]string{"exact", "lpm", "ternary", "range", "optional", "selector"}[k]
}

func (s *Schema) readEntries(t *Table, info *engine.TableInfo) {
	if info.Default != nil {
		t.Default = s.programAction(info.Default)
	} else if a, ok := s.Actions.Name("NoAction"); ok && t.Actions[a.ID] != nil {
		t.Default = &p4v1.Action{ActionId: a.ID} // P4's default for tables without a default_action
	}
	for i := range info.Entries {
		own := &info.Entries[i]
		e := &p4v1.TableEntry{TableId: t.ID}
		for _, f := range t.Fields {
			if m := f.programMatch(&own.Key[f.position]); m != nil {
				e.Match = append(e.Match, m)
			}
		}
		if a := s.programAction(&own.Action); a != nil {
			e.Action = p4rtmsg.Call(a)
		}
		t.Entries = append(t.Entries, e)
	}
	if t.NeedsPriority {
		rank(t.Entries, info.Entries)
	}
}

// rank numbers entries in ascending order of precedence, from 1. The specification requires these
// priorities in reads.
func rank(entries []*p4v1.TableEntry, own []engine.ConstEntry) {
	order := make([]int, len(own))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(own[b].Priority, own[a].Priority) })
	for i, at := range order {
		entries[at].Priority = int32(len(order) - i)
	}
}

// programAction translates an action call of the program; nil if the P4Info lacks the action.
func (s *Schema) programAction(call *engine.ActionCall) *p4v1.Action {
	a, ok := s.Actions.Name(call.Name)
	if !ok {
		return nil
	}
	out := &p4v1.Action{ActionId: a.ID}
	for i, p := range a.Params {
		out.Params = append(out.Params, &p4v1.Action_Param{ParamId: p.ID, Value: programNumber(call.Args[i])})
	}
	return out
}

// programMatch translates a match of the program; nil if it matches everything.
func (f *Field) programMatch(m *engine.Match) *p4v1.FieldMatch {
	value, mask := programNumber(m.Value), programNumber(m.Mask)
	switch {
	case f.Kind == engine.LPM && m.Prefix == 0,
		f.deviceKind == engine.Ternary && bytestring.IsZero(mask),
		f.Kind == engine.Range && bytestring.IsZero(value) && bytestring.IsMax(mask, f.DeviceBits):
		return nil
	}
	switch f.Kind {
	case engine.Exact:
		return p4rtmsg.Exact(f.ID, value)
	case engine.Optional:
		return p4rtmsg.Optional(f.ID, value)
	case engine.LPM:
		return p4rtmsg.LPM(f.ID, value, int32(m.Prefix))
	case engine.Ternary:
		return p4rtmsg.Ternary(f.ID, value, mask)
	}
	return p4rtmsg.Range(f.ID, value, mask)
}

// programNumber returns the canonical form of b, a number of the engine.
func programNumber(b []byte) []byte { return bytestring.Canonical(append([]byte{0}, b...)) }
