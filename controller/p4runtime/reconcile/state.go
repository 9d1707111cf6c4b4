// Package reconcile computes how to turn the state of a switch into the wanted state. Diff is a pure
// function that returns a Plan of ordered batches. While a plan is written no entity ever refers to
// a missing one, whatever the order of updates within a batch.
package reconcile

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// Key identifies an entity on a switch: two entities with one key cannot both be there.
// It is an opaque byte string that sorts by kind first.
type Key string

// The kinds, which are the first byte of a key.
const (
	kindExtern    = '`'
	kindDigest    = 'a'
	kindClone     = 'b'
	kindMulticast = 'c'
	kindMember    = 'd'
	kindGroup     = 'e'
	kindDefault   = 'f'
	kindEntry     = 'g'
)

func (k Key) kind() byte { return k[0] }

// KeyOf returns the key of an entity in the form of pipeline.Normalize.
func KeyOf(e *p4v1.Entity) (Key, error) {
	switch x := e.GetEntity().(type) {
	case *p4v1.Entity_TableEntry:
		t := x.TableEntry
		if t.GetIsDefaultAction() {
			return ids(kindDefault, t.GetTableId()), nil
		}
		return entryKey(t)
	case *p4v1.Entity_ActionProfileMember:
		return ids(kindMember, x.ActionProfileMember.GetActionProfileId(), x.ActionProfileMember.GetMemberId()), nil
	case *p4v1.Entity_ActionProfileGroup:
		return ids(kindGroup, x.ActionProfileGroup.GetActionProfileId(), x.ActionProfileGroup.GetGroupId()), nil
	case *p4v1.Entity_ExternEntry:
		return ids(kindExtern, x.ExternEntry.GetExternTypeId(), x.ExternEntry.GetExternId()), nil
	case *p4v1.Entity_DigestEntry:
		return ids(kindDigest, x.DigestEntry.GetDigestId()), nil
	case *p4v1.Entity_PacketReplicationEngineEntry:
		switch y := x.PacketReplicationEngineEntry.GetType().(type) {
		case *p4v1.PacketReplicationEngineEntry_CloneSessionEntry:
			return ids(kindClone, y.CloneSessionEntry.GetSessionId()), nil
		case *p4v1.PacketReplicationEngineEntry_MulticastGroupEntry:
			return ids(kindMulticast, y.MulticastGroupEntry.GetMulticastGroupId()), nil
		}
	}
	return "", fmt.Errorf("entities of kind %T are not reconciled", e.GetEntity())
}

func ids(kind byte, list ...uint32) Key {
	b := make([]byte, 1, 1+4*len(list))
	b[0] = kind
	for _, id := range list {
		b = binary.BigEndian.AppendUint32(b, id)
	}
	return Key(b)
}

// entryKey is table, priority, then each match: field, kind and its values with lengths.
func entryKey(t *p4v1.TableEntry) (Key, error) {
	b := make([]byte, 1, 32)
	b[0] = kindEntry
	b = binary.BigEndian.AppendUint32(b, t.GetTableId())
	b = binary.BigEndian.AppendUint32(b, uint32(t.GetPriority()))
	put := func(v []byte) {
		b = binary.AppendUvarint(b, uint64(len(v)))
		b = append(b, v...)
	}
	for _, m := range t.GetMatch() {
		b = binary.BigEndian.AppendUint32(b, m.GetFieldId())
		switch x := m.GetFieldMatchType().(type) {
		case *p4v1.FieldMatch_Exact_:
			b = append(b, 'e')
			put(x.Exact.GetValue())
		case *p4v1.FieldMatch_Lpm:
			b = append(b, 'l')
			b = binary.AppendUvarint(b, uint64(x.Lpm.GetPrefixLen()))
			put(x.Lpm.GetValue())
		case *p4v1.FieldMatch_Ternary_:
			b = append(b, 't')
			put(x.Ternary.GetMask())
			put(x.Ternary.GetValue())
		case *p4v1.FieldMatch_Range_:
			b = append(b, 'r')
			put(x.Range.GetLow())
			put(x.Range.GetHigh())
		case *p4v1.FieldMatch_Optional_:
			b = append(b, 'o')
			put(x.Optional.GetValue())
		default:
			return "", fmt.Errorf("table 0x%08x: matches of kind %T are not reconciled", t.GetTableId(), m.GetFieldMatchType())
		}
	}
	return Key(b), nil
}

// State is what a switch holds, or should hold. The entities in it must not be changed.
// The zero value is an empty switch.
type State struct {
	entities map[Key]*p4v1.Entity // its own
	base     *State               // which it has all entities of, without a base of its own; nil for none
	layers   []*Layer             // nil ones are empty
}

// Layer is entities that many states have. It is immutable.
type Layer struct {
	keys     []Key
	entities []*p4v1.Entity
}

// NewLayer returns a layer of entities, no two of which may have one key.
func NewLayer(entities []*p4v1.Entity) (*Layer, error) {
	l := &Layer{entities: entities, keys: make([]Key, len(entities))}
	for i, e := range entities {
		k, err := KeyOf(e)
		if err != nil {
			return nil, err
		}
		l.keys[i] = k
	}
	return l, nil
}

// Keys returns the keys of the entities, which must not be changed.
func (l *Layer) Keys() []Key { return l.keys }

// Add adds an entity to a state without layers. A second one with the same key is an error, because this
// package cannot decide between them.
func (s *State) Add(e *p4v1.Entity) error {
	k, err := KeyOf(e)
	if err != nil {
		return err
	}
	if _, twice := s.entities[k]; twice {
		return &DuplicateError{Entity: e}
	}
	if s.entities == nil {
		s.entities = make(map[Key]*p4v1.Entity)
	}
	s.entities[k] = e
	return nil
}

// With returns a state with the entities of one without layers and of layers, nil ones being empty.
// No key may be in two of them. Diff of two such states looks only at layers that one of them lacks at
// the place where the other has it.
func (s *State) With(layers []*Layer) *State { return &State{base: s, layers: layers} }

// without returns the entities but for those that it has in common with another by base and layers.
// The map must not be changed.
func (s *State) without(o *State) map[Key]*p4v1.Entity {
	if s.base == nil {
		return s.entities
	}
	all := map[Key]*p4v1.Entity{}
	if s.base != o.base {
		maps.Copy(all, s.base.entities)
	}
	for i, l := range s.layers {
		if l == nil || i < len(o.layers) && o.layers[i] == l {
			continue
		}
		for n, k := range l.keys {
			all[k] = l.entities[n]
		}
	}
	return all
}

// DuplicateError reports that a state already has an entity with this one's key.
type DuplicateError struct{ Entity *p4v1.Entity }

// Error prints the entity.
func (e *DuplicateError) Error() string { return fmt.Sprintf("wanted twice: %v", e.Entity) }

// Len returns the number of entities.
func (s *State) Len() int {
	n := len(s.entities)
	if s.base != nil {
		n += s.base.Len()
	}
	for _, l := range s.layers {
		if l != nil {
			n += len(l.keys)
		}
	}
	return n
}

// Get returns the entity with a key of a state without layers, nil when there is none.
func (s *State) Get(k Key) *p4v1.Entity { return s.entities[k] }

// Keys returns the keys of a state without layers, sorted.
func (s *State) Keys() []Key { return slices.Sorted(maps.Keys(s.entities)) }

// Entities returns all entities in the order of their keys.
func (s *State) Entities() []*p4v1.Entity {
	all := s.without(&State{})
	list := make([]*p4v1.Entity, 0, len(all))
	for _, k := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[k])
	}
	return list
}
