package reconcile

import (
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/internal/p4rtmsg"
)

// TestEqual compares equal with proto.Equal over entities that differ in one field each, for every field
// of every message, also fields that a later P4Runtime may add.
func TestEqual(t *testing.T) {
	p := load(t)
	route := func(to func(*pipeline.Entry) *pipeline.Entry) *p4v1.Entity {
		e, err := to(p.Entry("ipv4_lpm").LPM("dst_addr", p4rtmsg.Uint(0x0a000001), 32)).Entity()
		return must(t, e, err)
	}
	group := func(id uint32) *p4v1.Entity {
		return route(func(e *pipeline.Entry) *pipeline.Entry { return e.Group(id) })
	}
	direct := route(func(e *pipeline.Entry) *pipeline.Entry { return e.Member(1) })
	watched, err := p.PortGroup("ecmp", 1, []uint32{1, 2})
	watched = must(t, watched, err)
	unwatched, err := p.Group("ecmp", 1, []uint32{1, 2})
	unwatched = must(t, unwatched, err)
	for _, kind := range [][]*p4v1.Entity{
		{group(1), group(2), direct},
		{watched, unwatched},
		{member(t, p, 1, 1), member(t, p, 1, 2)},
	} {
		var list []*p4v1.Entity
		for _, e := range kind {
			list = append(list, variants(t, e)...)
		}
		k, err := KeyOf(kind[0])
		if err != nil {
			t.Fatal(err)
		}
		same, pairs := 0, 0
		for _, a := range list {
			for _, b := range list {
				ka, erra := KeyOf(a)
				kb, errb := KeyOf(b)
				if erra != nil || errb != nil || ka != k || kb != k {
					continue
				}
				want := proto.Equal(a, b)
				if pairs++; want {
					same++
				}
				if equal(a, b) != want {
					t.Errorf("equal = %v:\n%v\n%v", !want, a, b)
				}
			}
		}
		if len(list) < 20 || pairs < 200 || same == pairs {
			t.Errorf("%d variants, %d of %d pairs are equal", len(list), same, pairs)
		}
	}
}

// variants returns an entity and copies of it that differ in one place each: a field that is missing or has
// another value, a list that is shorter or longer, or an unknown field.
func variants(t *testing.T, e *p4v1.Entity) []*p4v1.Entity {
	list := []*p4v1.Entity{e}
	vary := func(path []func(protoreflect.Message) protoreflect.Message, edit func(protoreflect.Message)) {
		c := proto.Clone(e).(*p4v1.Entity)
		m := c.ProtoReflect()
		for _, step := range path {
			m = step(m)
		}
		edit(m)
		list = append(list, c)
	}
	var walk func(m protoreflect.Message, path []func(protoreflect.Message) protoreflect.Message)
	walk = func(m protoreflect.Message, path []func(protoreflect.Message) protoreflect.Message) {
		unknown := protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 1)
		vary(path, func(m protoreflect.Message) { m.SetUnknown(unknown) })
		fields := m.Descriptor().Fields()
		for i := range fields.Len() {
			f := fields.Get(i)
			if f.Name() == "match" {
				continue // it is the key
			}
			vary(path, func(m protoreflect.Message) { m.Clear(f) })
			switch {
			case f.IsList():
				vary(path, func(m protoreflect.Message) { m.Mutable(f).List().AppendMutable() })
				for n := range m.Get(f).List().Len() {
					walk(m.Get(f).List().Get(n).Message(), append(path[:len(path):len(path)], func(m protoreflect.Message) protoreflect.Message {
						return m.Mutable(f).List().Get(n).Message()
					}))
				}
			case f.Message() != nil:
				vary(path, func(m protoreflect.Message) { m.Set(f, m.NewField(f)) })
				if m.Has(f) {
					walk(m.Get(f).Message(), append(path[:len(path):len(path)], func(m protoreflect.Message) protoreflect.Message {
						return m.Mutable(f).Message()
					}))
				}
			default:
				vary(path, func(m protoreflect.Message) { m.Set(f, other(t, f)) })
			}
		}
	}
	walk(e.ProtoReflect(), nil)
	return list
}

// other returns a value that no entity in the test has.
func other(t *testing.T, f protoreflect.FieldDescriptor) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(99)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(99)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(99)
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(99)
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte{99})
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("99")
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(1)
	}
	t.Fatalf("no value for %v", f)
	return protoreflect.Value{}
}
