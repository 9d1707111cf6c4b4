// Package wire encodes and decodes the bulk of P4Runtime's messages: the entries that a server
// sends in reads, and the updates of entries that it receives. It allocates far less memory than
// package proto does. Start reading at Codec.
package wire

import (
	"fmt"
	"slices"
	"sync"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	protobuf "google.golang.org/protobuf/proto"
)

// Codec is gRPC's codec for protobuf. It also sends an Encoded, and receives a Request.
type Codec struct{ encoding.CodecV2 }

// NewCodec returns the codec.
func NewCodec() Codec { return Codec{encoding.GetCodecV2(proto.Name)} }

// Encoded is a message in protobuf's encoding, ready to be sent. Its bytes must not change any
// more.
type Encoded []byte

// Marshal implements encoding.CodecV2.
func (c Codec) Marshal(v any) (mem.BufferSlice, error) {
	if b, ok := v.(Encoded); ok {
		return mem.BufferSlice{mem.SliceBuffer(b)}, nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (c Codec) Unmarshal(data mem.BufferSlice, v any) error {
	r, ok := v.(*Request)
	if m, stream := v.(*StreamRequest); stream {
		if m.Size = data.Len(); m.Size > MaxStreamRequest {
			return nil
		}
		v = &m.StreamMessageRequest
	}
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	if err := r.Unmarshal(r.joined(data)); err != nil {
		return fmt.Errorf("decoding a WriteRequest: %w", err)
	}
	return nil
}

// MaxStreamRequest bounds a message of a controller's stream, in bytes. A packet-out has at most 64 KB of payload.
const MaxStreamRequest = 1 << 20

// StreamRequest is a message of a controller's stream. A message larger than MaxStreamRequest is
// not decoded, because decoding takes several times its size in memory.
type StreamRequest struct {
	p4v1.StreamMessageRequest
	Size int // bytes
}

// joined returns the bytes of data in one piece. It uses memory of its own, because gRPC's pool
// would clear 1 MB for any message of more than 32 KB.
func (d *decoder) joined(data mem.BufferSlice) []byte {
	if len(data) == 1 {
		return data[0].ReadOnlyData()
	}
	d.whole = slices.Grow(d.whole[:0], data.Len())[:data.Len()]
	data.CopyTo(d.whole)
	return d.whole
}

// Request is a WriteRequest with the memory that its updates are decoded into. Release returns the
// memory to the next request.
type Request struct {
	p4v1.WriteRequest
	decoder
}

var requests = sync.Pool{New: func() any { return new(Request) }}

// NewRequest returns an empty request.
func NewRequest() *Request { return requests.Get().(*Request) }

// Bounds of the memory that Release keeps, some 600 B per update.
const (
	mostUpdates = 10_000
	mostBytes   = 4 << 20 // bytes of the request itself
)

// Release ends the use of the request and of its table entries, because the next request reuses
// their memory. Other entities stay valid.
func (r *Request) Release() {
	if len(r.Updates) > mostUpdates || cap(r.whole) > mostBytes {
		return
	}
	r.WriteRequest.Reset()
	r.decoder.reset()
	requests.Put(r)
}

// updatesField is the field number of WriteRequest.updates.
const updatesField = 4

// Unmarshal decodes a request into an empty one, with protobuf's result. It allocates updates in
// blocks, where protobuf allocates each of some 14 parts of an update by reflection. It decodes
// only updates without repeated parts and unknown fields, and leaves all others to protobuf.
func (r *Request) Unmarshal(b []byte) error {
	m, d := &r.WriteRequest, &r.decoder
	var rest []byte
	for left := b; len(left) > 0; {
		num, typ, tag := protowire.ConsumeTag(left)
		if tag < 0 {
			return protobuf.Unmarshal(b, m) // names the fault
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
		d.list = append(d.list, u)
	}
	if err := protobuf.Unmarshal(rest, m); err != nil {
		return err
	}
	if len(d.list) > 0 {
		m.Updates = d.list
	}
	return nil
}

// decoder holds the memory for the parts of updates.
type decoder struct {
	list     []*p4v1.Update
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
	whole    []byte // a request that arrived in pieces, joined

	match []*p4v1.FieldMatch // match of the entry being decoded
	args  []*p4v1.Action_Param
}

func (d *decoder) reset() {
	clear(d.list)
	d.list = d.list[:0]
	d.updates.reset()
	d.exact.reset()
	d.lpm.reset()
	d.ternary.reset()
	d.calls.reset()
	d.groups.reset()
	d.params.reset()
	d.pmatches.reset()
	d.pparams.reset()
	d.bytes.reset()
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

// slab is a block of memory for values. Its first used values are taken.
type slab[T any] struct {
	block []T
	used  int
}

// take returns n zero values. If the block has too few, it starts a new one of twice the size.
func (s *slab[T]) take(n int) []T {
	if s.used+n > len(s.block) {
		s.block, s.used = make([]T, max(n, 8, 2*len(s.block))), 0
	}
	out := s.block[s.used : s.used+n : s.used+n]
	s.used += n
	return out
}

func (s *slab[T]) one() *T { return &s.take(1)[0] }

func (s *slab[T]) reset() {
	clear(s.block[:s.used])
	s.used = 0
}

func (d *decoder) copied(b []byte) []byte {
	out := d.bytes.take(len(b))
	copy(out, b)
	return out
}

// field is one field of a message. Its content is a number or, with wire type 2, bytes.
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

// each calls f for the fields of a message. It returns false if the message is not well formed or
// f returns false.
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

// update decodes an update of a table entry. It returns nil for all other updates.
func (d *decoder) update(b []byte) *p4v1.Update {
	x := d.updates.one()
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
		t.Match = d.pmatches.take(len(d.match))
		copy(t.Match, d.match)
	}
	return ok
}

// fieldMatch decodes an exact, LPM or ternary match. It returns nil for all other kinds.
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
			x := d.exact.one()
			m = &x.m
			x.o.Exact, x.m.FieldMatchType = &x.x, &x.o
			return d.numbers(f.bytes, &x.x.Value, nil, nil)
		case 3<<3 | length:
			x := d.ternary.one()
			m = &x.m
			x.o.Ternary, x.m.FieldMatchType = &x.x, &x.o
			return d.numbers(f.bytes, &x.x.Value, &x.x.Mask, nil)
		case 4<<3 | length:
			x := d.lpm.one()
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

// numbers decodes a match. Field 1 is the value. Field 2 is the mask or the length of the prefix,
// if mask or prefix is not nil.
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

// action decodes a call of an action or the id of a group. It returns nil for all other actions.
func (d *decoder) action(b []byte) (a *p4v1.TableAction) {
	ok := each(b, func(f field) bool {
		if a != nil {
			return false
		}
		switch f.tag {
		case 1<<3 | length:
			x := d.calls.one()
			a = &x.t
			x.o.Action, x.t.Type = &x.a, &x.o
			return d.call(f.bytes, &x.a)
		case 3<<3 | varint:
			x := d.groups.one()
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
			p := d.params.one()
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
		a.Params = d.pparams.take(len(d.args))
		copy(a.Params, d.args)
	}
	return ok
}
