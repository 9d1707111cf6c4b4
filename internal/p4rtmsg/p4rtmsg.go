// Package p4rtmsg builds messages of P4Runtime from ids and numbers. It checks nothing; what a program
// allows is checked by controller/p4runtime/pipeline before it is sent and by softswitch/p4rt when it arrives.
package p4rtmsg

import (
	"encoding/binary"
	"fmt"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/bytestring"
)

// ParseP4Info reads a P4Info in protobuf's text or binary format.
func ParseP4Info(b []byte) (*p4configv1.P4Info, error) {
	info := &p4configv1.P4Info{}
	// A newer p4c writes fields that the Go module of P4Runtime in use does not have.
	err := prototext.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(b, info)
	if err != nil && proto.Unmarshal(b, info) != nil {
		return nil, fmt.Errorf("neither a P4Info in protobuf's binary format nor in its text format: %w", err)
	}
	return info, nil
}

// Uint returns v as P4Runtime's canonical byte string.
func Uint(v uint64) []byte { return bytestring.Canonical(binary.BigEndian.AppendUint64(nil, v)) }

// Value is a number of a match: an int that is not negative, a uint64, or bytes in network order.
type Value interface{ int | uint64 | []byte }

func bytesOf[V Value](v V) []byte {
	switch v := any(v).(type) {
	case int:
		return Uint(uint64(v))
	case uint64:
		return Uint(v)
	}
	return bytestring.Canonical(any(v).([]byte))
}

// Exact matches one value of the field with an id.
func Exact[V Value](id uint32, v V) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldId: id, FieldMatchType: &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: bytesOf(v)}}}
}

// LPM matches the first prefix bits.
func LPM[V Value](id uint32, v V, prefix int32) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldId: id, FieldMatchType: &p4v1.FieldMatch_Lpm{Lpm: &p4v1.FieldMatch_LPM{Value: bytesOf(v), PrefixLen: prefix}}}
}

// Ternary matches under a mask.
func Ternary[V Value](id uint32, v, mask V) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldId: id, FieldMatchType: &p4v1.FieldMatch_Ternary_{Ternary: &p4v1.FieldMatch_Ternary{Value: bytesOf(v), Mask: bytesOf(mask)}}}
}

// Range matches low to high.
func Range[V Value](id uint32, low, high V) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldId: id, FieldMatchType: &p4v1.FieldMatch_Range_{Range: &p4v1.FieldMatch_Range{Low: bytesOf(low), High: bytesOf(high)}}}
}

// Optional matches one value.
func Optional[V Value](id uint32, v V) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldId: id, FieldMatchType: &p4v1.FieldMatch_Optional_{Optional: &p4v1.FieldMatch_Optional{Value: bytesOf(v)}}}
}

// Action calls an action with parameters 1, 2, ….
func Action(id uint32, params ...uint64) *p4v1.Action {
	a := &p4v1.Action{ActionId: id}
	for i, v := range params {
		a.Params = append(a.Params, &p4v1.Action_Param{ParamId: uint32(i + 1), Value: Uint(v)})
	}
	return a
}

// Do is the action of an entry of a direct table.
func Do(id uint32, params ...uint64) *p4v1.TableAction { return Call(Action(id, params...)) }

// Call is like Do, with an action that is built already.
func Call(a *p4v1.Action) *p4v1.TableAction {
	return &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: a}}
}

// Entry builds a table entry.
func Entry(table uint32, priority int32, action *p4v1.TableAction, match ...*p4v1.FieldMatch) *p4v1.TableEntry {
	return &p4v1.TableEntry{TableId: table, Priority: priority, Action: action, Match: match}
}

// Replicas builds the copies of a multicast group or clone session, one to each port. It counts instances
// from 1: on BMv2 the instance becomes egress_rid, and PI refuses a byte-string port, so the numeric
// field is used.
func Replicas(ports ...uint32) []*p4v1.Replica {
	list := make([]*p4v1.Replica, len(ports))
	for i, port := range ports {
		list[i] = &p4v1.Replica{EgressPort: port, Instance: uint32(i + 1)}
	}
	return list
}

// Entity wraps a message of any kind of entity: a *p4v1.TableEntry, *p4v1.CloneSessionEntry and so on. It
// panics for other types.
func Entity(m any) *p4v1.Entity {
	switch x := m.(type) {
	case *p4v1.Entity:
		return x
	case *p4v1.TableEntry:
		return &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: x}}
	case *p4v1.ActionProfileMember:
		return &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileMember{ActionProfileMember: x}}
	case *p4v1.ActionProfileGroup:
		return &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileGroup{ActionProfileGroup: x}}
	case *p4v1.MeterEntry:
		return &p4v1.Entity{Entity: &p4v1.Entity_MeterEntry{MeterEntry: x}}
	case *p4v1.DirectMeterEntry:
		return &p4v1.Entity{Entity: &p4v1.Entity_DirectMeterEntry{DirectMeterEntry: x}}
	case *p4v1.CounterEntry:
		return &p4v1.Entity{Entity: &p4v1.Entity_CounterEntry{CounterEntry: x}}
	case *p4v1.DirectCounterEntry:
		return &p4v1.Entity{Entity: &p4v1.Entity_DirectCounterEntry{DirectCounterEntry: x}}
	case *p4v1.ValueSetEntry:
		return &p4v1.Entity{Entity: &p4v1.Entity_ValueSetEntry{ValueSetEntry: x}}
	case *p4v1.RegisterEntry:
		return &p4v1.Entity{Entity: &p4v1.Entity_RegisterEntry{RegisterEntry: x}}
	case *p4v1.DigestEntry:
		return &p4v1.Entity{Entity: &p4v1.Entity_DigestEntry{DigestEntry: x}}
	case *p4v1.ExternEntry:
		return &p4v1.Entity{Entity: &p4v1.Entity_ExternEntry{ExternEntry: x}}
	case *p4v1.PacketReplicationEngineEntry:
		return &p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: x}}
	case *p4v1.MulticastGroupEntry:
		return Entity(&p4v1.PacketReplicationEngineEntry{Type: &p4v1.PacketReplicationEngineEntry_MulticastGroupEntry{MulticastGroupEntry: x}})
	case *p4v1.CloneSessionEntry:
		return Entity(&p4v1.PacketReplicationEngineEntry{Type: &p4v1.PacketReplicationEngineEntry_CloneSessionEntry{CloneSessionEntry: x}})
	}
	panic(fmt.Sprintf("p4rtmsg: %T is not an entity", m))
}

// Insert builds an INSERT update of any kind of entity.
func Insert(m any) *p4v1.Update { return &p4v1.Update{Type: p4v1.Update_INSERT, Entity: Entity(m)} }

// Modify builds a MODIFY update.
func Modify(m any) *p4v1.Update { return &p4v1.Update{Type: p4v1.Update_MODIFY, Entity: Entity(m)} }

// Delete builds a DELETE update.
func Delete(m any) *p4v1.Update { return &p4v1.Update{Type: p4v1.Update_DELETE, Entity: Entity(m)} }
