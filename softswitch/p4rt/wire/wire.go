// Package wire decodes what a P4Runtime server receives most: updates of table entries.
package wire

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	protobuf "google.golang.org/protobuf/proto"
)

// Codec is gRPC's codec for protobuf, with Unmarshal for Writes.
type Codec struct{ encoding.CodecV2 }

// NewCodec returns the codec.
func NewCodec() Codec { return Codec{encoding.GetCodecV2(proto.Name)} }

// Unmarshal implements encoding.CodecV2.
func (c Codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*p4v1.WriteRequest)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	return Unmarshal(buf.ReadOnlyData(), m)
}

// updatesField is the number of WriteRequest.updates.
const updatesField = 4

// Unmarshal decodes a request into an empty message, as protobuf does. It takes the memory of updates
// in blocks, where protobuf takes that of each of some 14 parts of an update by reflection. It decodes
// only what has no part twice and nothing unknown, and leaves all other updates to protobuf.
func Unmarshal(b []byte, m *p4v1.WriteRequest) error {
	d := decoder{block: min(max(len(b)/bytesPerUpdate, 1), mostPerBlock)}
	var rest []byte
	var updates []*p4v1.Update
	for left := b; len(left) > 0; {
		num, typ, tag := protowire.ConsumeTag(left)
		if tag < 0 {
			return protobuf.Unmarshal(b, m) // which says what is wrong
		}
		if num != updatesField || typ != protowire.BytesType {
			n := protowire.ConsumeFieldValue(num, typ, left[tag:])
			if n < 0 {
				return protobuf.Unmarshal(b, m)
			}
			rest, left = append(rest, left[:tag+n]...), left[tag+n:]
			continue
		}
		v, n := protowire.ConsumeBytes(left[tag:])
		if n < 0 {
			return protobuf.Unmarshal(b, m)
		}
		left = left[tag+n:]
		u := d.update(v)
		if u == nil {
			u = new(p4v1.Update)
			if err := protobuf.Unmarshal(v, u); err != nil {
				return err
			}
		}
		if updates == nil {
			updates = make([]*p4v1.Update, 0, min(1+len(left)/(tag+n), 1024))
		}
		updates = append(updates, u)
	}
	if err := protobuf.Unmarshal(rest, m); err != nil {
		return err
	}
	m.Updates = updates
	return nil
}

const (
	// bytesPerUpdate is about how long an update is; it decides how small the block of a small request is.
	bytesPerUpdate = 40
	// mostPerBlock bounds how many parts are kept as long as one of them is in use, such as a default action.
	mostPerBlock = 32
)

// decoder holds the blocks of updates' parts.
type decoder struct {
	block    int
	updates  slab[update]
	exact    slab[exact]
	lpm      slab[lpm]
	ternary  slab[ternary]
	calls    slab[call]
	groups   slab[group]
	params   slab[p4v1.Action_Param]
	pmatches slab[*p4v1.FieldMatch]
	pparams  slab[*p4v1.Action_Param]
	bytes    slab[byte]

	match []*p4v1.FieldMatch // of the entry in the making
	args  []*p4v1.Action_Param
}

type (
	update struct {
		u p4v1.Update
		e p4v1.Entity
		o p4v1.Entity_TableEntry
		t p4v1.TableEntry
	}
	exact struct {
		m p4v1.FieldMatch
		o p4v1.FieldMatch_Exact_
		x p4v1.FieldMatch_Exact
	}
	lpm struct {
		m p4v1.FieldMatch
		o p4v1.FieldMatch_Lpm
		x p4v1.FieldMatch_LPM
	}
	ternary struct {
		m p4v1.FieldMatch
		o p4v1.FieldMatch_Ternary_
		x p4v1.FieldMatch_Ternary
	}
	call struct {
		t p4v1.TableAction
		o p4v1.TableAction_Action
		a p4v1.Action
	}
	group struct {
		t p4v1.TableAction
		o p4v1.TableAction_ActionProfileGroupId
	}
)

// slab is the rest of a block of memory.
type slab[T any] struct{ free []T }

// take returns n zero values, of a new block of some times block values where the old one has too few.
func (s *slab[T]) take(n, block int) []T {
	if n > len(s.free) {
		s.free = make([]T, max(n, block))
	}
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}

func (s *slab[T]) one(block int) *T { return &s.take(1, block)[0] }

func (d *decoder) copied(b []byte) []byte {
	out := d.bytes.take(len(b), 8*d.block)
	copy(out, b)
	return out
}

// field is one field of a message. It has a number or, with wire type 2, bytes.
type field struct {
	tag   uint64 // number and wire type
	v     uint64
	bytes []byte
}

// Wire types of fields; the tag of a field is its number times 8 and its wire type.
const (
	varint = uint64(protowire.VarintType)
	length = uint64(protowire.BytesType)
)

// each calls f for the fields of a message. It returns false when the message is not well formed or f
// returns false.
func each(b []byte, f func(field) bool) bool {
	for len(b) > 0 {
		tag, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return false
		}
		x := field{tag: tag}
		b = b[n:]
		switch tag & 7 {
		case varint:
			x.v, n = protowire.ConsumeVarint(b)
		case length:
			x.bytes, n = protowire.ConsumeBytes(b)
		default:
			return false
		}
		if n < 0 {
			return false
		}
		if b = b[n:]; !f(x) {
			return false
		}
	}
	return true
}

// update decodes an update of a table entry; nil for all others.
func (d *decoder) update(b []byte) *p4v1.Update {
	x := d.updates.one(d.block)
	ok := each(b, func(f field) bool {
		switch f.tag {
		case 1<<3 | varint:
			x.u.Type = p4v1.Update_Type(f.v)
		case 2<<3 | length:
			if x.u.Entity != nil {
				return false
			}
			x.u.Entity = &x.e
			return each(f.bytes, func(f field) bool {
				if f.tag != 2<<3|length || x.o.TableEntry != nil {
					return false
				}
				x.o.TableEntry, x.e.Entity = &x.t, &x.o
				return d.entry(f.bytes, &x.t)
			})
		default:
			return false
		}
		return true
	})
	if !ok {
		return nil
	}
	return &x.u
}

func (d *decoder) entry(b []byte, t *p4v1.TableEntry) bool {
	d.match = d.match[:0]
	ok := each(b, func(f field) bool {
		switch f.tag {
		case 1<<3 | varint:
			t.TableId = uint32(f.v)
		case 2<<3 | length:
			m := d.fieldMatch(f.bytes)
			d.match = append(d.match, m)
			return m != nil
		case 3<<3 | length:
			if t.Action != nil {
				return false
			}
			t.Action = d.action(f.bytes)
			return t.Action != nil
		case 4<<3 | varint:
			t.Priority = int32(f.v)
		default:
			return false
		}
		return true
	})
	if len(d.match) > 0 {
		t.Match = d.pmatches.take(len(d.match), d.block)
		copy(t.Match, d.match)
	}
	return ok
}

// fieldMatch decodes an exact, LPM or ternary match; nil for all others.
func (d *decoder) fieldMatch(b []byte) (m *p4v1.FieldMatch) {
	id := uint32(0)
	ok := each(b, func(f field) bool {
		switch {
		case f.tag == 1<<3|varint:
			id = uint32(f.v)
			return true
		case m != nil:
			return false
		}
		switch f.tag {
		case 2<<3 | length:
			x := d.exact.one(d.block)
			m = &x.m
			x.o.Exact, x.m.FieldMatchType = &x.x, &x.o
			return d.numbers(f.bytes, &x.x.Value, nil, nil)
		case 3<<3 | length:
			x := d.ternary.one(d.block)
			m = &x.m
			x.o.Ternary, x.m.FieldMatchType = &x.x, &x.o
			return d.numbers(f.bytes, &x.x.Value, &x.x.Mask, nil)
		case 4<<3 | length:
			x := d.lpm.one(d.block)
			m = &x.m
			x.o.Lpm, x.m.FieldMatchType = &x.x, &x.o
			return d.numbers(f.bytes, &x.x.Value, nil, &x.x.PrefixLen)
		}
		return false
	})
	if !ok || m == nil {
		return nil
	}
	m.FieldId = id
	return m
}

// numbers decodes a match with a value in field 1 and, where these are not nil, a mask or the length of
// a prefix in field 2.
func (d *decoder) numbers(b []byte, value, mask *[]byte, prefix *int32) bool {
	return each(b, func(f field) bool {
		switch {
		case f.tag == 1<<3|length:
			*value = d.copied(f.bytes)
		case f.tag == 2<<3|length && mask != nil:
			*mask = d.copied(f.bytes)
		case f.tag == 2<<3|varint && prefix != nil:
			*prefix = int32(f.v)
		default:
			return false
		}
		return true
	})
}

// action decodes a call of an action or the id of a group; nil for all others.
func (d *decoder) action(b []byte) (a *p4v1.TableAction) {
	ok := each(b, func(f field) bool {
		if a != nil {
			return false
		}
		switch f.tag {
		case 1<<3 | length:
			x := d.calls.one(d.block)
			a = &x.t
			x.o.Action, x.t.Type = &x.a, &x.o
			return d.call(f.bytes, &x.a)
		case 3<<3 | varint:
			x := d.groups.one(d.block)
			a = &x.t
			x.o.ActionProfileGroupId, x.t.Type = uint32(f.v), &x.o
			return true
		}
		return false
	})
	if !ok {
		return nil
	}
	return a
}

func (d *decoder) call(b []byte, a *p4v1.Action) bool {
	d.args = d.args[:0]
	ok := each(b, func(f field) bool {
		switch f.tag {
		case 1<<3 | varint:
			a.ActionId = uint32(f.v)
			return true
		case 4<<3 | length:
			p := d.params.one(d.block)
			d.args = append(d.args, p)
			return each(f.bytes, func(f field) bool {
				switch f.tag {
				case 2<<3 | varint:
					p.ParamId = uint32(f.v)
				case 3<<3 | length:
					p.Value = d.copied(f.bytes)
				default:
					return false
				}
				return true
			})
		}
		return false
	})
	if len(d.args) > 0 {
		a.Params = d.pparams.take(len(d.args), d.block)
		copy(a.Params, d.args)
	}
	return ok
}
