package bmv2json

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// Scalars is the name that p4c gives to the metadata with a program's local variables.
const Scalars = "scalars"

// Temporaries returns the fields of Scalars that every action assigns before it reads them, and that nothing but
// actions mentions. Nobody sees the value that such a field had before an action. It returns nil if an action jumps
// backwards, if the program names Scalars in another form than [header, field], or if Scalars is not the first header
// and metadata of a type of its own.
func (p *Program) Temporaries() map[string]bool {
	if len(p.Headers) == 0 || p.Headers[0].Name != Scalars || !p.Headers[0].Metadata ||
		slices.ContainsFunc(p.Headers[1:], func(h Header) bool { return h.Type == p.Headers[0].Type }) {
		return nil
	}
	rest := *p
	rest.HeaderTypes, rest.Headers, rest.Actions = nil, nil, nil
	seen, ok := mentioned(rest)
	if !ok {
		return nil
	}
	assigned := map[string]bool{}
	for i := range p.Actions {
		if !p.Actions[i].flow(assigned, seen) {
			return nil
		}
	}
	maps.DeleteFunc(assigned, func(f string, _ bool) bool { return seen[f] })
	return assigned
}

// flow adds the fields that an action assigns to assigned, and those that it may read first to seen. It returns
// false if it cannot tell.
func (a *Action) flow(assigned, seen map[string]bool) bool {
	n := len(a.Primitives)
	before := make([]map[string]bool, n+1) // fields that are assigned on every way to a primitive; nil without a way
	before[0] = map[string]bool{}
	reach := func(i int, set map[string]bool) {
		if before[i] == nil {
			before[i] = set
			return
		}
		maps.DeleteFunc(before[i], func(f string, _ bool) bool { return !set[f] })
	}
	for i := range a.Primitives {
		j, set := &a.Primitives[i], before[i]
		if set == nil {
			continue
		}
		sources := j.Parameters
		var target map[string]bool
		if j.Op == "assign" && len(sources) > 0 && sources[0].Type == "field" {
			target, _ = mentioned(sources[0])
			sources = sources[1:]
		}
		read, ok := mentioned(sources)
		if !ok {
			return false
		}
		for f := range read {
			if !set[f] {
				seen[f] = true
			}
		}
		maps.Copy(set, target)
		maps.Copy(assigned, target)
		if j.Op == "_jump" || j.Op == "_jump_if_zero" {
			var to string
			if len(sources) == 0 || json.Unmarshal(sources[len(sources)-1].Value, &to) != nil {
				return false
			}
			k, err := strconv.ParseInt(to, 0, 32)
			if err != nil || int(k) <= i {
				return false
			}
			reach(min(int(k), n), maps.Clone(set))
			if j.Op == "_jump" {
				continue
			}
		}
		reach(i+1, set)
	}
	return true
}

// mentioned returns the fields of Scalars that a part of a program names. It returns false if the part names Scalars
// in another form than [header, field].
func mentioned(part any) (fields map[string]bool, ok bool) {
	text, err := json.Marshal(part)
	if err != nil {
		return nil, false
	}
	fields = map[string]bool{}
	for {
		_, after, found := bytes.Cut(text, []byte(`"`+Scalars+`"`))
		if !found {
			return fields, true
		}
		name, rest, ok := bytes.Cut(bytes.TrimPrefix(after, []byte(`,"`)), []byte(`"]`))
		if !ok || len(name)+len(rest)+4 != len(after) || bytes.IndexByte(name, '"') >= 0 {
			return nil, false
		}
		fields[string(name)] = true
		text = rest
	}
}
