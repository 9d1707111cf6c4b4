package schema

import (
	"fmt"

	"github.com/headgate/headgate/softswitch/engine"
)

// Bind joins a parsed P4Info with a BMv2 program: every object of the P4Info must exist in
// the program under its name, with the same shape. prog is doc as the engine compiled it.
func (s *Schema) Bind(prog *engine.Program, doc []byte) error {
	j, err := parseBMv2(doc)
	if err != nil {
		return err
	}
	actions := map[string]engine.ActionInfo{}
	for _, a := range prog.Actions() {
		actions[a.Name] = a
	}
	for _, a := range s.Actions.List {
		if err := a.bind(actions); err != nil {
			return err
		}
	}
	tables := map[string]engine.TableInfo{}
	for _, t := range prog.Tables() {
		tables[t.Name] = t
	}
	for _, t := range s.Tables.List {
		info, ok := tables[t.Name]
		if !ok {
			return missing("table", t.Name)
		}
		if err := t.bind(&info); err != nil {
			return fmt.Errorf("table %q: %w", t.Name, err)
		}
	}
	if err := s.bindExterns(j); err != nil {
		return err
	}
	for p := range j.Pipelines {
		for i := range j.Pipelines[p].Tables {
			jt := &j.Pipelines[p].Tables[i]
			if t, ok := s.Tables.Name(jt.Name); ok {
				if err := s.readEntries(j, jt, t); err != nil {
					return fmt.Errorf("table %q: %w", t.Name, err)
				}
			}
		}
	}
	return nil
}

func missing(kind, name string) error {
	return fmt.Errorf("%s %q of the P4Info is not in the BMv2 JSON", kind, name)
}

func (a *Action) bind(actions map[string]engine.ActionInfo) error {
	info, ok := actions[a.Name]
	if !ok {
		// p4c leaves an action out of the JSON that no table of the program can run.
		if a.Name == "NoAction" {
			return nil
		}
		return missing("action", a.Name)
	}
	if len(info.Params) != len(a.Params) {
		return fmt.Errorf("action %q has %d parameters in the P4Info and %d in the BMv2 JSON", a.Name, len(a.Params), len(info.Params))
	}
	for i, p := range a.Params {
		q := info.Params[i]
		if p.DeviceBits == 0 {
			p.DeviceBits = q.Bits
		}
		if p.Name != q.Name || p.DeviceBits != q.Bits {
			return fmt.Errorf("action %q: parameter %d is %q, %d bits, in the P4Info and %q, %d bits, in the BMv2 JSON", a.Name, i, p.Name, p.DeviceBits, q.Name, q.Bits)
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
	case profile != info.Profile:
		return fmt.Errorf("its implementation is %q in the P4Info and %q in the BMv2 JSON", profile, info.Profile)
	case t.CounterID != 0 && !info.HasCounters:
		return fmt.Errorf("it has a direct counter in the P4Info and none in the BMv2 JSON")
	case t.MeterID != 0 && !info.HasMeters:
		return fmt.Errorf("it has a direct meter in the P4Info and none in the BMv2 JSON")
	case t.IdleTimeout && !info.IdleTimeout:
		return fmt.Errorf("it has idle timeouts in the P4Info and none in the BMv2 JSON")
	case t.Const && !info.ConstEntries:
		return fmt.Errorf("its entries are const in the P4Info and not in the BMv2 JSON")
	}
	// BMv2's JSON does not distinguish entries from const entries: both are immutable.
	t.Const = info.ConstEntries
	return nil
}

// bindKey finds every field's place in the engine's key: by name, or by position where the
// JSON, as older compilers wrote it, has no control-plane names.
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
		same := f.Kind == k.Kind || f.Kind == engine.Optional && k.Kind == engine.Ternary
		if !same || f.DeviceBits != k.Bits {
			return fmt.Errorf("key field %q is %s, %d bits, in the P4Info and %q is %s, %d bits, in the BMv2 JSON",
				f.Name, kindName(f.Kind), f.DeviceBits, k.Name, kindName(k.Kind), k.Bits)
		}
	}
	return nil
}

func (s *Schema) bindExterns(j *bmv2) error {
	profiles := map[string]bool{}
	for i := range j.Pipelines {
		for _, p := range j.Pipelines[i].Profiles {
			profiles[p.Name] = true
		}
	}
	for _, p := range s.Profiles.List {
		if !profiles[p.Name] {
			return missing("action profile", p.Name)
		}
	}
	arrays := func(kind string, want []*Array, have []bmv2Array) error {
		for _, w := range want {
			if _, err := findArray(kind, w.Name, w.Size, have); err != nil {
				return err
			}
		}
		return nil
	}
	if err := arrays("counter", s.Counters.List, j.Counters); err != nil {
		return err
	}
	if err := arrays("meter", s.Meters.List, j.Meters); err != nil {
		return err
	}
	for _, r := range s.Registers.List {
		a, err := findArray("register", r.Name, r.Size, j.Registers)
		if err != nil {
			return err
		}
		if a.Bits != r.Type.Bits {
			return fmt.Errorf("register %q has %d bits in the P4Info and %d in the BMv2 JSON", r.Name, r.Type.Bits, a.Bits)
		}
	}
	sets := map[string]bool{}
	for _, v := range j.ValueSets {
		sets[v.Name] = true
	}
	for _, v := range s.ValueSets.List {
		if !sets[v.Name] {
			return missing("value set", v.Name)
		}
	}
	learns := map[string]int{}
	for _, l := range j.Learns {
		learns[l.Name] = len(l.Elements)
	}
	for _, d := range s.Digests.List {
		n, ok := learns[d.Name]
		if !ok {
			return missing("digest", d.Name)
		}
		if want := len(d.Type.Leaves()); n != want {
			return fmt.Errorf("digest %q has %d fields in the P4Info and %d in the BMv2 JSON", d.Name, want, n)
		}
	}
	return nil
}

func findArray(kind, name string, size int64, have []bmv2Array) (*bmv2Array, error) {
	for i := range have {
		a := &have[i]
		if a.Name == name && !a.Direct {
			if a.Size != size {
				return nil, fmt.Errorf("%s %q has size %d in the P4Info and %d in the BMv2 JSON", kind, name, size, a.Size)
			}
			return a, nil
		}
	}
	return nil, missing(kind, name)
}

func kindName(k engine.MatchKind) string {
	switch k {
	case engine.Exact:
		return "exact"
	case engine.LPM:
		return "lpm"
	case engine.Ternary:
		return "ternary"
	case engine.Range:
		return "range"
	case engine.Optional:
		return "optional"
	}
	return "selector"
}
