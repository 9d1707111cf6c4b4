//lint:file-ignore SA1019 the specification wants controller_metadata kept and returned

package entity

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/p4rtmsg"
)

// encoded is a p4v1.TableEntry in protobuf's encoding. Its match comes first.
type encoded string

// Field numbers of TableEntry, and of Entity.table_entry (entryField).
const (
	tableIDField  = 1
	matchField    = 2
	actionField   = 3
	priorityField = 4
	entryField    = 2
)

// encode returns an entry with a canonical match and action. It encodes the fields that every
// entry has itself, and leaves the others to protobuf.
func (s *State) encode(match []byte, in *p4v1.TableEntry, action *p4v1.TableAction) (encoded, error) {
	b := append(s.scratch[:0], match...)
	b = protowire.AppendVarint(protowire.AppendTag(b, tableIDField, protowire.VarintType), uint64(in.TableId))
	if in.Priority != 0 {
		b = protowire.AppendVarint(protowire.AppendTag(b, priorityField, protowire.VarintType), uint64(in.Priority))
	}
	call := action.GetAction()
	if call != nil {
		b = appendCall(b, call)
	}
	if call == nil || in.ControllerMetadata != 0 || len(in.Metadata) > 0 || in.IdleTimeoutNs != 0 {
		rest := &p4v1.TableEntry{ControllerMetadata: in.ControllerMetadata, Metadata: in.Metadata, IdleTimeoutNs: in.IdleTimeoutNs}
		if call == nil {
			rest.Action = action
		}
		var err error
		if b, err = (proto.MarshalOptions{}).MarshalAppend(b, rest); err != nil {
			return "", errEncoding(err)
		}
	}
	s.scratch = b
	return encoded(b), nil
}

func errEncoding(err error) error {
	return status.Errorf(codes.Internal, "the entry cannot be encoded: %v", err)
}

func appendCall(b []byte, a *p4v1.Action) []byte {
	const idField, paramsField = 1, 4                     // field numbers of Action
	const paramIDField, valueField, calledField = 2, 3, 1 // field numbers of Param, and of TableAction
	param := func(p *p4v1.Action_Param) int {
		return 1 + protowire.SizeVarint(uint64(p.ParamId)) + 1 + protowire.SizeBytes(len(p.Value))
	}
	n := 1 + protowire.SizeVarint(uint64(a.ActionId))
	for _, p := range a.Params {
		n += 1 + protowire.SizeBytes(param(p))
	}
	b = protowire.AppendVarint(protowire.AppendTag(b, actionField, protowire.BytesType), uint64(1+protowire.SizeBytes(n)))
	b = protowire.AppendVarint(protowire.AppendTag(b, calledField, protowire.BytesType), uint64(n))
	b = protowire.AppendVarint(protowire.AppendTag(b, idField, protowire.VarintType), uint64(a.ActionId))
	for _, p := range a.Params {
		b = protowire.AppendVarint(protowire.AppendTag(b, paramsField, protowire.BytesType), uint64(param(p)))
		b = protowire.AppendVarint(protowire.AppendTag(b, paramIDField, protowire.VarintType), uint64(p.ParamId))
		b = protowire.AppendBytes(protowire.AppendTag(b, valueField, protowire.BytesType), p.Value)
	}
	return b
}

func (e encoded) matches(match []byte) bool {
	n := len(match)
	return len(e) > n && string(e[:n]) == string(match) && e[n] != matchField<<3|byte(protowire.BytesType)
}

// with returns the entry with the fields of m added. The entry must not have these fields yet.
func (e encoded) with(m *p4v1.TableEntry) (encoded, error) {
	b, err := proto.MarshalOptions{}.MarshalAppend(append(make([]byte, 0, len(e)+64), e...), m)
	if err != nil {
		return "", errEncoding(err)
	}
	return encoded(b), nil
}

func (e encoded) decode() *p4v1.TableEntry {
	m := &p4v1.TableEntry{}
	if err := proto.Unmarshal([]byte(e), m); err != nil {
		panic(err) // encode wrote it, so it can be decoded
	}
	return m
}

// Found is an entity that a read found. It is a message, or an entry of a table in the encoded
// form in which the switch keeps it.
type Found struct {
	message *p4v1.Entity
	entry   encoded // set if message is nil
	table   uint32  // the entry's table
}

// found is an entity with a message of any kind.
func found(m any) Found { return Found{message: p4rtmsg.Entity(m)} }

// Message returns the entity as a message. It must not be changed.
func (f Found) Message() *p4v1.Entity {
	if f.message == nil {
		return p4rtmsg.Entity(f.entry.decode())
	}
	return f.message
}

// Object returns the result of ObjectOf for the entity.
func (f Found) Object() uint32 {
	if f.message == nil {
		return f.table
	}
	return ObjectOf(f.message)
}

// Size returns the number of bytes that Append appends.
func (f Found) Size() int {
	if f.message == nil {
		return protowire.SizeTag(entryField) + protowire.SizeBytes(len(f.entry))
	}
	return proto.Size(f.message)
}

// Append appends the entity in protobuf's encoding. Size must be called first.
func (f Found) Append(b []byte) ([]byte, error) {
	if f.message == nil {
		return protowire.AppendString(protowire.AppendTag(b, entryField, protowire.BytesType), string(f.entry)), nil
	}
	return proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b, f.message)
}

// This repository uses version 1.4.0-rc.5 of P4Runtime's Go module, because the public client does
// not build with later ones. Fields that 1.4.0 added since are unknown fields in it. They are read
// and written here by number.
const (
	fieldIsConst     = 13 // TableEntry.is_const, bool
	fieldReplicaPort = 3  // Replica.port, bytes, in a oneof with egress_port
)

func isConst(e *p4v1.TableEntry) bool {
	v, _ := protowire.ConsumeVarint(unknown(e, fieldIsConst, protowire.VarintType))
	return v != 0
}

// isConstField is a TableEntry with is_const true, in protobuf's encoding.
var isConstField = encoded(protowire.AppendVarint(protowire.AppendTag(nil, fieldIsConst, protowire.VarintType), 1))

func setConst(e *p4v1.TableEntry) {
	e.ProtoReflect().SetUnknown([]byte(isConstField))
}

// replicaPort reads Replica.port; ok is false if it is unset.
func replicaPort(r *p4v1.Replica) (port []byte, ok bool) {
	port, n := protowire.ConsumeBytes(unknown(r, fieldReplicaPort, protowire.BytesType))
	return port, n >= 0
}

// unknown returns the encoded value of an unknown field, or nil if there is none. If the field
// occurs several times, the last value counts.
func unknown(m proto.Message, field protowire.Number, wire protowire.Type) (value []byte) {
	b := m.ProtoReflect().GetUnknown()
	for len(b) > 0 {
		num, typ, tag := protowire.ConsumeTag(b)
		if tag < 0 {
			break
		}
		n := protowire.ConsumeFieldValue(num, typ, b[tag:])
		if n < 0 {
			break
		}
		if num == field && typ == wire {
			value = b[tag : tag+n]
		}
		b = b[tag+n:]
	}
	return value
}
