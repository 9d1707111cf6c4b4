// Package reconcile computes how to turn the state of a switch into the desired state. Diff is a pure
// function that returns a Plan of ordered batches. While a plan is written no entity ever refers to
// a missing one, whatever the order of updates within a batch.
package reconcile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/internal/p4rtmsg"
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

// State is the actual or desired state of a switch. The entities in it must not be changed. The zero
// value is an empty switch.
type State struct {
	entities map[Key]*p4v1.Entity // entities of a state that Add built
	items    []*Item              // items of a state that NewState made
}

// Item is an entity that many states may have. It is immutable.
type Item struct {
	Key    Key
	Entity *p4v1.Entity
}

// NewItems returns the items of entities.
func NewItems(entities []*p4v1.Entity) ([]*Item, error) {
	items := make([]*Item, len(entities))
	for i, e := range entities {
		k, err := KeyOf(e)
		if err != nil {
			return nil, err
		}
		items[i] = &Item{k, e}
	}
	return items, nil
}

// NewState returns a state of items, which it keeps. No two may have one key. Diff of two such states compares only
// the positions where their items differ.
func NewState(items []*Item) *State { return &State{items: items} }

// Add adds an entity to a state that was not made by NewState. A second one with the same key is an
// error, because this package cannot decide between them.
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

// without returns the entities except items that another state has under the same key. The map must
// not be changed.
func (s *State) without(o *State) map[Key]*p4v1.Entity {
	if s.items == nil {
		return s.entities
	}
	all := map[Key]*p4v1.Entity{}
	for i, it := range s.items {
		if i >= len(o.items) || o.items[i] != it {
			all[it.Key] = it.Entity
		}
	}
	return all
}

// DuplicateError reports that a state already has an entity with this one's key.
type DuplicateError struct{ Entity *p4v1.Entity }

// Error prints the entity.
func (e *DuplicateError) Error() string { return fmt.Sprintf("wanted twice: %v", e.Entity) }

// Len returns the number of entities.
func (s *State) Len() int { return len(s.entities) + len(s.items) }

// Get returns the entity with the key, or nil if there is none. The state must have been built by Add.
func (s *State) Get(k Key) *p4v1.Entity { return s.entities[k] }

// Items returns the items of a state made by Add, in the order of their keys.
func (s *State) Items() []*Item {
	items := make([]*Item, 0, len(s.entities))
	for _, k := range slices.Sorted(maps.Keys(s.entities)) {
		items = append(items, &Item{k, s.entities[k]})
	}
	return items
}

// All yields all entities in no order.
func (s *State) All() iter.Seq[*p4v1.Entity] {
	return func(yield func(*p4v1.Entity) bool) {
		for _, e := range s.entities {
			if !yield(e) {
				return
			}
		}
		for _, it := range s.items {
			if !yield(it.Entity) {
				return
			}
		}
	}
}

// Entities returns all entities in the order of their keys.
func (s *State) Entities() []*p4v1.Entity {
	all := s.without(&State{})
	list := make([]*p4v1.Entity, 0, len(all))
	for _, k := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[k])
	}
	return list
}

// Reader reads entities of a switch; an unset id in a request is a wildcard.
type Reader interface {
	Read(ctx context.Context, requests ...*p4v1.Entity) ([]*p4v1.Entity, error)
}

// Read returns the entities on a switch, of all kinds that Headgate reconciles. PI supports no filters, reads digests
// only one by one, and default entries only by table. So each request reads one kind, with no wildcard but the id.
// Kinds that the switch cannot read at all (UNIMPLEMENTED) count as absent and are listed in unreadable. externs are
// the externs of the target to read; a target that was started without them has none.
func Read(ctx context.Context, r Reader, p *pipeline.Pipeline, externs ...uint32) (have *State, unreadable []string, err error) {
	have = &State{}
	for _, q := range queries(p, externs) {
		list, err := r.Read(ctx, q.request)
		switch code := codeOf(err); {
		case code == codes.Unimplemented && q.request.GetExternEntry() != nil:
			continue
		case code == codes.Unimplemented:
			unreadable = append(unreadable, q.what)
			continue
		case code == codes.NotFound:
			continue
		case err != nil:
			return nil, nil, fmt.Errorf("reading %s: %w", q.what, err)
		}
		for _, e := range list {
			t := e.GetTableEntry()
			if id := t.GetTableId(); p.ConstTable(id) || p.Learned(id) && !t.GetIsDefaultAction() {
				continue
			}
			// A default entry that was never set may come back without an action.
			if t.GetIsDefaultAction() && t.GetAction() == nil {
				continue
			}
			if err := p.Normalize(e); err != nil {
				return nil, nil, fmt.Errorf("reading %s: %w", q.what, err)
			}
			if err := have.Add(e); err != nil {
				return nil, nil, fmt.Errorf("reading %s: the switch returned it twice: %s", q.what, p.Describe(e))
			}
		}
	}
	return have, unreadable, nil
}

func codeOf(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) {
		return s.GRPCStatus().Code()
	}
	return codes.Unknown
}

type query struct {
	what    string
	request *p4v1.Entity
}

func queries(p *pipeline.Pipeline, externs []uint32) []query {
	list := []query{{"table entries", p4rtmsg.Entity(&p4v1.TableEntry{})}}
	for _, id := range p.SettableDefaults() {
		e := &p4v1.TableEntry{TableId: id, IsDefaultAction: true}
		list = append(list, query{"default entries", p4rtmsg.Entity(e)})
	}
	if p.HasProfiles() {
		list = append(list,
			query{"action profile members", p4rtmsg.Entity(&p4v1.ActionProfileMember{})},
			query{"action profile groups", p4rtmsg.Entity(&p4v1.ActionProfileGroup{})},
		)
	}
	list = append(list,
		query{"clone sessions", pipeline.CloneSession(0)},
		query{"multicast groups", pipeline.Multicast(0)},
	)
	for _, id := range p.Digests() {
		list = append(list, query{"digests", p4rtmsg.Entity(&p4v1.DigestEntry{DigestId: id})})
	}
	for _, id := range externs {
		list = append(list, query{"externs", pipeline.Extern(id)})
	}
	return list
}
