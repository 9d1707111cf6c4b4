package entity

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// This repository uses version 1.4.0-rc.5 of P4Runtime's Go module, because the public client does
// not build with later ones. Fields that 1.4.0 added since are unknown fields in it. They are read
// and written here by number.
const (
	fieldIsConst     = 13 // TableEntry.is_const, bool
	fieldReplicaPort = 3  // Replica.port, bytes, in a oneof with egress_port
)

// isConst reads TableEntry.is_const.
func isConst(e *p4v1.TableEntry) bool {
	v, _ := protowire.ConsumeVarint(unknown(e, fieldIsConst, protowire.VarintType))
	return v != 0
}

// isConstField is a TableEntry with is_const true, in protobuf's encoding.
var isConstField = encoded(protowire.AppendVarint(protowire.AppendTag(nil, fieldIsConst, protowire.VarintType), 1))

// setConst sets TableEntry.is_const in a message that is being built.
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
