package entity

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// The Go module of P4Runtime that this repository can use is 1.4.0-rc.5 (the public client
// does not build with later ones). Fields that 1.4.0 added after it arrive as unknown
// fields and are read and written here by number.
const (
	fieldIsConst     = 13 // TableEntry.is_const, bool
	fieldReplicaPort = 3  // Replica.port, bytes, in a oneof with egress_port
)

// isConst reads TableEntry.is_const.
func isConst(e *p4v1.TableEntry) bool {
	v, _ := unknownVarint(e.ProtoReflect().GetUnknown(), fieldIsConst)
	return v != 0
}

// setConst sets TableEntry.is_const of a message that is being built.
func setConst(e *p4v1.TableEntry) {
	b := protowire.AppendTag(nil, fieldIsConst, protowire.VarintType)
	e.ProtoReflect().SetUnknown(protowire.AppendVarint(b, 1))
}

// replicaPort reads Replica.port; ok is false when it is unset.
func replicaPort(r *p4v1.Replica) (port []byte, ok bool) {
	eachUnknown(r.ProtoReflect().GetUnknown(), func(num protowire.Number, typ protowire.Type, b []byte) {
		if num == fieldReplicaPort && typ == protowire.BytesType {
			if v, n := protowire.ConsumeBytes(b); n >= 0 {
				port, ok = v, true
			}
		}
	})
	return port, ok
}

func unknownVarint(b []byte, field protowire.Number) (v uint64, ok bool) {
	eachUnknown(b, func(num protowire.Number, typ protowire.Type, b []byte) {
		if num == field && typ == protowire.VarintType {
			if x, n := protowire.ConsumeVarint(b); n >= 0 {
				v, ok = x, true
			}
		}
	})
	return v, ok
}

// eachUnknown calls f with the number, type and value of each field.
func eachUnknown(b []byte, f func(protowire.Number, protowire.Type, []byte)) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		m := protowire.ConsumeFieldValue(num, typ, b[n:])
		if m < 0 {
			return
		}
		f(num, typ, b[n:n+m])
		b = b[n+m:]
	}
}

func cloneOf[M proto.Message](m M) M { return proto.Clone(m).(M) }
