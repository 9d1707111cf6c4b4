package entity

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/p4msg"
)

// encoded is a p4v1.TableEntry in protobuf's encoding.
type encoded string

func (s *State) encode(m *p4v1.TableEntry) (encoded, error) {
	b, err := proto.MarshalOptions{}.MarshalAppend(s.scratch[:0], m)
	if err != nil {
		return "", status.Errorf(codes.Internal, "the entry cannot be encoded: %v", err)
	}
	s.scratch = b
	return encoded(b), nil
}

// with returns the entry with the fields of m, which it does not have yet.
func (e encoded) with(m *p4v1.TableEntry) (encoded, error) {
	b := make([]byte, len(e), len(e)+64)
	copy(b, e)
	b, err := proto.MarshalOptions{}.MarshalAppend(b, m)
	if err != nil {
		return "", status.Errorf(codes.Internal, "the entry cannot be encoded: %v", err)
	}
	return encoded(b), nil
}

// decode returns a message of the caller's own.
func (e encoded) decode() *p4v1.TableEntry {
	m := &p4v1.TableEntry{}
	if err := proto.Unmarshal([]byte(e), m); err != nil {
		panic(err) // encode made it
	}
	return m
}

// Found is an entity that a read found: a message or, as the switch keeps them, an encoded entry of a
// table.
type Found struct {
	message *p4v1.Entity
	entry   encoded // when message is nil
	table   uint32  // of the entry
}

// Message returns the entity as a message, which must not be changed.
func (f Found) Message() *p4v1.Entity {
	if f.message == nil {
		return p4msg.Of(f.entry.decode())
	}
	return f.message
}

// Object returns what ObjectOf returns of the message.
func (f Found) Object() uint32 {
	if f.message == nil {
		return f.table
	}
	return ObjectOf(f.message)
}

// entryField is the number of Entity.table_entry.
const entryField = 2

// Size returns the bytes that Append appends.
func (f Found) Size() int {
	if f.message == nil {
		return protowire.SizeTag(entryField) + protowire.SizeBytes(len(f.entry))
	}
	return proto.Size(f.message)
}

// Append appends the entity in protobuf's encoding. Size must have been called before.
func (f Found) Append(b []byte) ([]byte, error) {
	if f.message == nil {
		return protowire.AppendString(protowire.AppendTag(b, entryField, protowire.BytesType), string(f.entry)), nil
	}
	return proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b, f.message)
}
