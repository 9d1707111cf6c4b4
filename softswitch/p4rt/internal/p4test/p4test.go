// Package p4test carries the program that the tests of the P4Runtime server run, which has
// one of each thing that P4Runtime can read or write, and builds messages about it by name.
package p4test

import (
	_ "embed" // for the program
	"math/big"
	"math/bits"
	"strings"
	"sync"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/headgate/headgate/softswitch/engine"
)

// JSON is the program, kinds.p4, as p4c compiled it.
//
//go:embed kinds.json
var JSON []byte

// Text is its P4Info as p4c wrote it.
//
//go:embed kinds.p4info.txtpb
var Text []byte

// Uint returns v as P4Runtime's canonical byte string.
func Uint(v uint64) []byte {
	return new(big.Int).SetUint64(v).FillBytes(make([]byte, max(1, (bits.Len64(v)+7)/8)))
}

// Info returns a fresh P4Info.
func Info() *p4configv1.P4Info {
	info := &p4configv1.P4Info{}
	if err := (prototext.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(Text, info); err != nil {
		panic(err)
	}
	return info
}

// Config returns a pipeline configuration.
func Config() *p4v1.ForwardingPipelineConfig {
	return &p4v1.ForwardingPipelineConfig{
		P4Info: Info(), P4DeviceConfig: JSON, Cookie: &p4v1.ForwardingPipelineConfig_Cookie{Cookie: 42},
	}
}

var ids = func() map[string]uint32 {
	m := map[string]uint32{}
	Info().ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		for i := 0; f.IsList() && i < v.List().Len(); i++ {
			if x, ok := v.List().Get(i).Message().Interface().(interface{ GetPreamble() *p4configv1.Preamble }); ok {
				m[x.GetPreamble().GetName()] = x.GetPreamble().GetId()
			}
		}
		return true
	})
	return m
}()

// ID returns the id of an object; short names are those of the ingress control.
func ID(name string) uint32 {
	if id, ok := ids[name]; ok {
		return id
	}
	if id, ok := ids["ingress."+name]; ok {
		return id
	}
	panic("p4test: no object " + name)
}

// Exact, LPM, Ternary, Range and Optional build matches.
func Exact(id uint32, v uint64) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldId: id, FieldMatchType: &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: Uint(v)}}}
}

// LPM matches the first prefix bits.
func LPM(id uint32, v uint64, prefix int32) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldId: id, FieldMatchType: &p4v1.FieldMatch_Lpm{Lpm: &p4v1.FieldMatch_LPM{Value: Uint(v), PrefixLen: prefix}}}
}

// Ternary matches under a mask.
func Ternary(id uint32, v, mask uint64) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldId: id, FieldMatchType: &p4v1.FieldMatch_Ternary_{Ternary: &p4v1.FieldMatch_Ternary{Value: Uint(v), Mask: Uint(mask)}}}
}

// Range matches low to high.
func Range(id uint32, low, high uint64) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldId: id, FieldMatchType: &p4v1.FieldMatch_Range_{Range: &p4v1.FieldMatch_Range{Low: Uint(low), High: Uint(high)}}}
}

// Optional matches one value.
func Optional(id uint32, v uint64) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldId: id, FieldMatchType: &p4v1.FieldMatch_Optional_{Optional: &p4v1.FieldMatch_Optional{Value: Uint(v)}}}
}

// Action calls an action with parameters 1, 2, ….
func Action(name string, params ...uint64) *p4v1.Action {
	a := &p4v1.Action{ActionId: ID(name)}
	for i, v := range params {
		a.Params = append(a.Params, &p4v1.Action_Param{ParamId: uint32(i + 1), Value: Uint(v)})
	}
	return a
}

// Do is a table action that calls an action.
func Do(name string, params ...uint64) *p4v1.TableAction {
	return &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: Action(name, params...)}}
}

// Entry builds a table entry.
func Entry(table string, priority int32, action *p4v1.TableAction, match ...*p4v1.FieldMatch) *p4v1.TableEntry {
	return &p4v1.TableEntry{TableId: ID(table), Priority: priority, Action: action, Match: match}
}

// Of wraps a message of any kind of entity.
func Of(m any) *p4v1.Entity {
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
		return Of(&p4v1.PacketReplicationEngineEntry{Type: &p4v1.PacketReplicationEngineEntry_MulticastGroupEntry{MulticastGroupEntry: x}})
	case *p4v1.CloneSessionEntry:
		return Of(&p4v1.PacketReplicationEngineEntry{Type: &p4v1.PacketReplicationEngineEntry_CloneSessionEntry{CloneSessionEntry: x}})
	}
	panic("p4test: not an entity")
}

// Insert, Modify and Delete build updates of any kind of entity.
func Insert(m any) *p4v1.Update { return &p4v1.Update{Type: p4v1.Update_INSERT, Entity: Of(m)} }

// Modify builds a MODIFY update.
func Modify(m any) *p4v1.Update { return &p4v1.Update{Type: p4v1.Update_MODIFY, Entity: Of(m)} }

// Delete builds a DELETE update.
func Delete(m any) *p4v1.Update { return &p4v1.Update{Type: p4v1.Update_DELETE, Entity: Of(m)} }

// Program is JSON compiled, once for all tests of a package.
var Program = sync.OnceValue(func() *engine.Program {
	prog, err := engine.Load(JSON)
	if err != nil {
		panic(err)
	}
	return prog
})

// PlainText is the P4Info without the fields that P4Runtime 1.4.0-rc.5 does not know, as
// strict readers of that version need it.
func PlainText() []byte {
	b, err := prototext.MarshalOptions{Multiline: true}.Marshal(Info())
	if err != nil {
		panic(err)
	}
	return []byte(strings.TrimSpace(string(b)) + "\n")
}
