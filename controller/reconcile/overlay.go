package reconcile

import (
	"maps"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"
)

// Merge returns base with the entities of over in the place of those with the same keys.
// Neither is changed; base itself is returned when over has nothing.
func Merge(base, over *State) *State {
	if over == nil || len(over.entities) == 0 {
		return base
	}
	merged := &State{entities: maps.Clone(base.entities)}
	if merged.entities == nil {
		merged.entities = make(map[Key]*p4v1.Entity, len(over.entities))
	}
	maps.Copy(merged.entities, over.entities)
	return merged
}

// Restack returns the plan from base under one overlay to base under another. It looks at
// the overlays' keys only, so it costs nothing that a switch has many entries. An overlay
// may be nil.
func Restack(base, from, to *State) Plan {
	have, want := &State{entities: map[Key]*p4v1.Entity{}}, &State{entities: map[Key]*p4v1.Entity{}}
	for _, over := range []*State{from, to} {
		if over == nil {
			continue
		}
		for k := range over.entities {
			pick(have, base, from, k)
			pick(want, base, to, k)
		}
	}
	return Diff(have, want, nil)
}

func pick(into, base, over *State, k Key) {
	e := base.entities[k]
	if over != nil && over.entities[k] != nil {
		e = over.entities[k]
	}
	if e != nil {
		into.entities[k] = e
	}
}

// Unstack returns have as it would be without an overlay over base: where have holds what
// the overlay asks for, it gets what base has.
func Unstack(have, base, over *State) *State {
	if over == nil || len(over.entities) == 0 {
		return have
	}
	plain := &State{entities: maps.Clone(have.entities)}
	for k, e := range over.entities {
		if !proto.Equal(plain.entities[k], e) {
			continue
		}
		delete(plain.entities, k)
		if b := base.entities[k]; b != nil {
			plain.entities[k] = b
		}
	}
	return plain
}
