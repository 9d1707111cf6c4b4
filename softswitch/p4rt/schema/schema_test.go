package schema

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/internal/p4test"
)

func load(t testing.TB) *Schema {
	t.Helper()
	s, err := bound(p4test.Info())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func bound(info *p4configv1.P4Info) (*Schema, error) {
	s, err := Parse(info)
	if err != nil {
		return nil, err
	}
	return s, s.Bind(p4test.Program())
}

func (s *Schema) table(t testing.TB, name string) *Table {
	t.Helper()
	tb, ok := s.Tables.Name("ingress." + name)
	if !ok {
		t.Fatalf("no table %s", name)
	}
	return tb
}

// Every mistake in a P4Info is refused with a message that names it.
func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*p4configv1.P4Info)
		want string // part of the error
	}{
		{"id 0", func(i *p4configv1.P4Info) { i.Tables[0].Preamble.Id = 0 }, `table "ingress.port_vrf": preamble.id is 0`},
		{"wrong prefix", func(i *p4configv1.P4Info) { i.Tables[0].Preamble.Id = 0x01000001 }, "first byte must be 0x2"},
		{"id twice", func(i *p4configv1.P4Info) { i.Tables[1].Preamble.Id = i.Tables[0].Preamble.Id }, "is that of table"},
		{"no name", func(i *p4configv1.P4Info) { i.Counters[0].Preamble.Name = "" }, "preamble.name is empty"},
		{"no preamble", func(i *p4configv1.P4Info) { i.Counters[0].Preamble = nil }, "preamble.name is empty"},
		{"name twice", func(i *p4configv1.P4Info) { i.Tables[1].Preamble.Name = i.Tables[0].Preamble.Name }, "used twice"},
		{"field id twice", func(i *p4configv1.P4Info) { i.Tables[5].MatchFields[1].Id = 1 }, "must be unique and not 0"},
		{"field id 0", func(i *p4configv1.P4Info) { i.Tables[5].MatchFields[1].Id = 0 }, "must be unique and not 0"},
		{"width below 0", func(i *p4configv1.P4Info) { i.Tables[5].MatchFields[1].Bitwidth = -1 }, "bitwidth is -1, allowed are 1 to"},
		{"parameter width 0", func(i *p4configv1.P4Info) { i.Actions[2].Params[0].Bitwidth = 0 }, "bitwidth is 0, allowed are 1 to"},
		{"value set width 0", func(i *p4configv1.P4Info) { i.ValueSets[0].Match[0].Bitwidth = 0 }, "bitwidth is 0, allowed are 1 to"},
		{"match type", func(i *p4configv1.P4Info) {
			i.Tables[1].MatchFields[0].Match = &p4configv1.MatchField_OtherMatchType{OtherMatchType: "bloom"}
		}, `"bloom", allowed are EXACT`},
		{"unknown action", func(i *p4configv1.P4Info) { i.Tables[1].ActionRefs[0].Id = 7 }, "action_refs[0].id is 0x7"},
		{"unknown scope", func(i *p4configv1.P4Info) { i.Tables[1].ActionRefs[0].Scope = 9 }, "scope is 9"},
		{"const default", func(i *p4configv1.P4Info) { i.Tables[0].ConstDefaultActionId = p4test.ID("drop") }, "const_default_action_id"},
		{"implementation", func(i *p4configv1.P4Info) { i.Tables[1].ImplementationId = 5 }, "implementation_id is 0x5"},
		{"profile without table", func(i *p4configv1.P4Info) { i.ActionProfiles[0].TableIds = nil }, "whose table_ids lack the table"},
		{"profile of another table", func(i *p4configv1.P4Info) { i.ActionProfiles[0].TableIds[0] = p4test.ID("l2") }, "no table with this implementation_id"},
		{"group size", func(i *p4configv1.P4Info) { i.ActionProfiles[0].MaxGroupSize = 65 }, "max_group_size is 65, allowed are 0 to size, 64"},
		{"group size without selector", func(i *p4configv1.P4Info) { i.ActionProfiles[1].MaxGroupSize = 1 }, "must be 0 without a selector"},
		{"direct resource of nobody", func(i *p4configv1.P4Info) { i.Tables[5].DirectResourceIds = nil }, "direct_table_id"},
		{"direct resource of another", func(i *p4configv1.P4Info) { i.DirectCounters[0].DirectTableId = p4test.ID("l2") }, "direct_resource_ids[0]"},
		{"idle timeout", func(i *p4configv1.P4Info) { i.Tables[1].IdleTimeoutBehavior = 7 }, "idle_timeout_behavior is 7"},
		{"size", func(i *p4configv1.P4Info) { i.Tables[1].Size = -1 }, "size is -1"},
		{"param id", func(i *p4configv1.P4Info) { i.Actions[3].Params[1].Id = 1 }, "must be unique and not 0"},
		{"register type", func(i *p4configv1.P4Info) { i.Registers[0].TypeSpec = nil }, "is not supported"},
		{"register struct", func(i *p4configv1.P4Info) { i.Registers[0].TypeSpec = i.Digests[0].TypeSpec }, "struct or tuple"},
		{"digest struct unknown", func(i *p4configv1.P4Info) { delete(i.TypeInfo.Structs, "learn_t") }, `type "learn_t" is not in type_info`},
		{"digest struct in itself", func(i *p4configv1.P4Info) {
			i.TypeInfo.Structs["learn_t"].Members[0].TypeSpec = i.Digests[0].TypeSpec
		}, "nested deeper"},
		{"digest struct too large", func(i *p4configv1.P4Info) {
			part := i.TypeInfo.Structs["learn_t"].Members[0]
			for range 6 { // 2^6 times the one before, six times over
				part = &p4configv1.P4StructTypeSpec_Member{Name: "x", TypeSpec: &p4configv1.P4DataTypeSpec{TypeSpec: &p4configv1.P4DataTypeSpec_Tuple{
					Tuple: &p4configv1.P4TupleTypeSpec{Members: slices.Repeat([]*p4configv1.P4DataTypeSpec{part.TypeSpec}, 64)},
				}}}
			}
			i.TypeInfo.Structs["learn_t"].Members[0] = part
		}, "more than 4096 parts"},
		{"controller header", func(i *p4configv1.P4Info) { i.ControllerPacketMetadata[0].Preamble.Name = "other" }, "must be packet_in or packet_out"},
		{"controller header twice", func(i *p4configv1.P4Info) { i.ControllerPacketMetadata[0].Preamble.Name = "packet_out" }, "two of it"},
		{"controller header bits", func(i *p4configv1.P4Info) { i.ControllerPacketMetadata[0].Metadata[0].Bitwidth = 8 }, "15 bits are not whole bytes"},
		{"type unknown", func(i *p4configv1.P4Info) { i.Tables[1].MatchFields[0].TypeName = &p4configv1.P4NamedType{Name: "x"} }, `type_name "x" is not in type_info`},
	} {
		t.Run(c.name, func(t *testing.T) {
			info := p4test.Info()
			c.edit(info)
			if _, err := Parse(info); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// An object of the P4Info that differs from the program's is refused, too.
func TestBindRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*p4configv1.P4Info)
		want string
	}{
		{"all tables", func(i *p4configv1.P4Info) {
			for _, t := range i.Tables {
				t.Preamble.Name += "x"
			}
		}, "they belong to different programs"},
		{"action", func(i *p4configv1.P4Info) { i.Actions[2].Preamble.Name = "x" }, `its action "x" is not one of its actions`},
		{"parameter name", func(i *p4configv1.P4Info) { i.Actions[2].Params[0].Name = "x" }, `parameter 0 is "x"`},
		{"parameter width", func(i *p4configv1.P4Info) { i.Actions[2].Params[0].Bitwidth = 10 }, "10 bits, in the P4Info"},
		{"parameter count", func(i *p4configv1.P4Info) { i.Actions[2].Params = nil }, "has 0 parameters in the P4Info and 1"},
		{"key width", func(i *p4configv1.P4Info) { i.Tables[1].MatchFields[0].Bitwidth = 47 }, "47 bits, in the P4Info"},
		{"key kind", func(i *p4configv1.P4Info) {
			i.Tables[1].MatchFields[0].Match = &p4configv1.MatchField_MatchType_{MatchType: p4configv1.MatchField_LPM}
		}, "is lpm, 48 bits"},
		{"key count", func(i *p4configv1.P4Info) { i.Tables[1].MatchFields = nil }, "0 key fields"},
		{"actions of a table", func(i *p4configv1.P4Info) {
			i.Tables[1].ActionRefs = append(i.Tables[1].ActionRefs, &p4configv1.ActionRef{Id: p4test.ID("mark")})
		}, `its action "ingress.mark" is not one of its actions`},
		{"idle timeout", func(i *p4configv1.P4Info) { i.Tables[2].IdleTimeoutBehavior = 1 }, "idle timeouts in the P4Info and none"},
		{"const", func(i *p4configv1.P4Info) { i.Tables[2].IsConstTable = true }, "entries are const in the P4Info and not"},
		{"profile", func(i *p4configv1.P4Info) { i.ActionProfiles[0].Preamble.Name = "x" }, `implementation is "x"`},
		{"counter size", func(i *p4configv1.P4Info) { i.Counters[0].Size = 17 }, "size 17 in the P4Info and 16"},
		{"register width", func(i *p4configv1.P4Info) {
			i.Registers[0].TypeSpec = i.TypeInfo.Structs["learn_t"].Members[1].TypeSpec
		}, "9 bits in the P4Info and 48"},
		{"digest fields", func(i *p4configv1.P4Info) {
			i.TypeInfo.Structs["learn_t"].Members = i.TypeInfo.Structs["learn_t"].Members[:1]
		}, "1 fields in the P4Info and 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			info := p4test.Info()
			c.edit(info)
			if _, err := bound(info); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestMatches(t *testing.T) {
	s := load(t)
	acl := s.table(t, "acl")
	full := []*p4v1.FieldMatch{p4rtmsg.Ternary(1, 0x0800, 0xff00), p4rtmsg.Range(2, 1, 9), p4rtmsg.Optional(3, 7), p4rtmsg.LPM(4, 0x0a000000, 8)}
	for _, c := range []struct {
		name  string
		table string
		match []*p4v1.FieldMatch
		want  string // part of the error; "" is none
	}{
		{"all kinds", "acl", full, ""},
		{"all left out", "acl", nil, ""},
		{"exact missing", "l2", nil, `table "ingress.l2": field "hdr.ethernet.dst" is missing`},
		{"unknown field", "l2", []*p4v1.FieldMatch{p4rtmsg.Exact(9, 1)}, "field_id is 9, which is no field"},
		{"nil field", "l2", []*p4v1.FieldMatch{nil}, "field_id is 0"},
		{"field twice", "l2", []*p4v1.FieldMatch{p4rtmsg.Exact(1, 1), p4rtmsg.Exact(1, 2)}, "matched twice"},
		{"wrong kind", "l2", []*p4v1.FieldMatch{p4rtmsg.LPM(1, 0, 1)}, "wanted is exact"},
		{"no kind", "l2", []*p4v1.FieldMatch{{FieldId: 1}}, "wanted is exact"},
		{"empty kind", "l2", []*p4v1.FieldMatch{{FieldId: 1, FieldMatchType: &p4v1.FieldMatch_Exact_{}}}, "value is 0x"},
		{"too wide", "l2", []*p4v1.FieldMatch{p4rtmsg.Exact(1, 1<<48)}, "allowed is a number of 1 to 48 bits"},
		{"translated", "port_vrf", []*p4v1.FieldMatch{p4rtmsg.Exact(1, 511)}, ""},
		{"translated, too wide", "port_vrf", []*p4v1.FieldMatch{p4rtmsg.Exact(1, 512)}, "the 9 bits that the data plane has"},
		{"translated, far too wide", "port_vrf", []*p4v1.FieldMatch{p4rtmsg.Exact(1, 1<<32)}, "1 to 32 bits"},
		{"mask 0", "acl", []*p4v1.FieldMatch{p4rtmsg.Ternary(1, 0, 0)}, "mask is 0"},
		{"value outside mask", "acl", []*p4v1.FieldMatch{p4rtmsg.Ternary(1, 3, 1)}, "outside of mask"},
		{"prefix 0", "acl", []*p4v1.FieldMatch{p4rtmsg.LPM(4, 0, 0)}, "prefix_len is 0, allowed are 1 to 32"},
		{"prefix 33", "acl", []*p4v1.FieldMatch{p4rtmsg.LPM(4, 0, 33)}, "prefix_len is 33"},
		{"prefix negative", "acl", []*p4v1.FieldMatch{p4rtmsg.LPM(4, 0, -1)}, "prefix_len is -1"},
		{"bits beyond prefix", "acl", []*p4v1.FieldMatch{p4rtmsg.LPM(4, 0x0a000001, 8)}, "beyond its prefix"},
		{"range upside down", "acl", []*p4v1.FieldMatch{p4rtmsg.Range(2, 9, 1)}, "low 0x09 is above high 0x01"},
		{"range of everything", "acl", []*p4v1.FieldMatch{p4rtmsg.Range(2, 0, 255)}, "leave the field out"},
		{"range too wide", "acl", []*p4v1.FieldMatch{p4rtmsg.Range(2, 0, 256)}, "high is 0x0100"},
		{"optional too wide", "acl", []*p4v1.FieldMatch{p4rtmsg.Optional(3, 1<<32)}, "value is 0x0100000000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := s.table(t, c.table).Key(new(Key), c.match)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want one with %q", err, c.want)
			case err != nil && status.Code(err) != codes.InvalidArgument:
				t.Errorf("code %v", status.Code(err))
			}
		})
	}
	var a, b Key
	if err := acl.Key(&a, full); err != nil {
		t.Fatal(err)
	}
	// The order of fields and leading zeros do not make another key.
	padded := []*p4v1.FieldMatch{full[3], full[2], full[1], {FieldId: 1, FieldMatchType: &p4v1.FieldMatch_Ternary_{
		Ternary: &p4v1.FieldMatch_Ternary{Value: []byte{0, 0, 8, 0}, Mask: []byte{0, 0xff, 0}},
	}}}
	if err := acl.Key(&b, padded); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Encoded, b.Encoded) {
		t.Errorf("canonical forms differ: %x, %x", a.Encoded, b.Encoded)
	}
	var got p4v1.TableEntry
	if err := proto.Unmarshal(a.Encoded, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(full, got.Match, protocmp.Transform()); diff != "" {
		t.Errorf("canonical form, in P4Info's order: (-want +got)\n%s", diff)
	}
}

func TestActions(t *testing.T) {
	s := load(t)
	for _, c := range []struct {
		name      string
		table     string
		action    *p4v1.Action
		asDefault bool
		code      codes.Code
	}{
		{"good", "l2", p4test.Action("forward", 5), false, codes.OK},
		{"good default", "l2", p4test.Action("forward", 5), true, codes.OK},
		{"nil", "l2", nil, false, codes.InvalidArgument},
		{"of another table", "l2", p4test.Action("mark", 5), false, codes.InvalidArgument},
		{"parameter missing", "l2", p4test.Action("forward"), false, codes.InvalidArgument},
		{"parameter too many", "l2", p4test.Action("forward", 1, 2), false, codes.InvalidArgument},
		{"parameter nil", "l2", &p4v1.Action{ActionId: p4test.ID("forward"), Params: []*p4v1.Action_Param{nil}}, false, codes.InvalidArgument},
		{"parameter empty", "l2", &p4v1.Action{ActionId: p4test.ID("forward"), Params: []*p4v1.Action_Param{{ParamId: 1}}}, false, codes.InvalidArgument},
		{"parameter twice", "l2", &p4v1.Action{ActionId: p4test.ID("forward"), Params: []*p4v1.Action_Param{{ParamId: 1, Value: []byte{1}}, {ParamId: 1, Value: []byte{1}}}}, false, codes.InvalidArgument},
		{"parameter too wide", "l2", p4test.Action("forward", 512), false, codes.InvalidArgument},
		{"translated parameter", "once", p4test.Action("to_port", 511), true, codes.OK},
		{"translated parameter too wide", "once", p4test.Action("to_port", 512), true, codes.InvalidArgument},
		{"default-only in an entry", "smac", p4test.Action("learn"), false, codes.PermissionDenied},
		{"default-only as default", "smac", p4test.Action("learn"), true, codes.OK},
		{"table-only as default", "smac", p4test.Action("mark", 1), true, codes.PermissionDenied},
	} {
		t.Run(c.name, func(t *testing.T) {
			var call engine.ActionCall
			_, err := s.table(t, c.table).Action(&call, c.action, c.asDefault)
			if status.Code(err) != c.code {
				t.Errorf("%v, want %v", err, c.code)
			}
			if err == nil && len(call.Args) != len(c.action.Params) {
				t.Errorf("%d arguments", len(call.Args))
			}
		})
	}
}

func TestProgramEntries(t *testing.T) {
	s := load(t)
	want := []*p4v1.TableEntry{
		p4test.Entry("fixed", 3, p4test.Do("mark", 7), p4rtmsg.Ternary(1, 0x10, 0xf0), p4rtmsg.Exact(2, 1)),
		p4test.Entry("fixed", 2, p4test.Do("drop"), p4rtmsg.Exact(2, 2)),
		p4test.Entry("fixed", 1, p4test.Do("mark", 0x1234), p4rtmsg.Ternary(1, 0x21, 0xff), p4rtmsg.Exact(2, 2)),
	}
	if diff := cmp.Diff(want, s.table(t, "fixed").Entries, protocmp.Transform()); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	for name, want := range map[string]*p4v1.Action{
		"once": p4test.Action("to_port", 3), "l2": p4test.Action("drop"), "routes": p4test.Action("NoAction"), "port_vrf": p4test.Action("NoAction"),
	} {
		if diff := cmp.Diff(want, s.table(t, name).Default, protocmp.Transform()); diff != "" {
			t.Errorf("default of %s (-want +got):\n%s", name, diff)
		}
	}
}

func TestData(t *testing.T) {
	bits := func(b ...byte) *p4v1.P4Data { return &p4v1.P4Data{Data: &p4v1.P4Data_Bitstring{Bitstring: b}} }
	u12, i12 := &Type{form: unsigned, Bits: 12}, &Type{form: signed, Bits: 12}
	flag, kind := &Type{form: boolean, Bits: 1}, &Type{form: enum, Bits: 4}
	yes := &p4v1.P4Data{Data: &p4v1.P4Data_Bool{Bool: true}}
	for _, c := range []struct {
		typ  *Type
		data *p4v1.P4Data
		raw  []byte
		code codes.Code
	}{
		{u12, bits(0x0f, 0xff), []byte{0x0f, 0xff}, codes.OK},
		{u12, bits(0x10, 0), nil, codes.OutOfRange},
		{u12, bits(), nil, codes.OutOfRange},
		{u12, yes, nil, codes.InvalidArgument},
		{u12, nil, nil, codes.InvalidArgument},
		{i12, bits(0xff), []byte{0x0f, 0xff}, codes.OK},
		{i12, bits(0x80), []byte{0x0f, 0x80}, codes.OK},
		{i12, bits(0x08, 0x00), nil, codes.OutOfRange},
		{flag, yes, []byte{1}, codes.OK},
		{flag, bits(1), nil, codes.InvalidArgument},
		{kind, &p4v1.P4Data{Data: &p4v1.P4Data_EnumValue{EnumValue: []byte{3}}}, []byte{3}, codes.OK},
		{kind, bits(3), nil, codes.InvalidArgument},
	} {
		raw, err := c.typ.Decode(c.data)
		if status.Code(err) != c.code || string(raw) != string(c.raw) {
			t.Errorf("Decode(%v) = %x, %v; want %x, %v", c.data, raw, err, c.raw, c.code)
		}
		if err == nil {
			if diff := cmp.Diff(c.data, c.typ.Encode([][]byte{raw}), protocmp.Transform()); diff != "" {
				t.Errorf("Encode(Decode(%v)): %s", c.data, diff)
			}
		}
	}
	pair := &Type{form: tuple, members: []*Type{u12, {form: structure, members: []*Type{flag}}}}
	if d := pair.Encode([][]byte{{1}, {1}}); len(d.GetTuple().GetMembers()) != 2 || !d.GetTuple().Members[1].GetStruct().Members[0].GetBool() {
		t.Errorf("tuple: %v", d)
	}
	if pair.Encode([][]byte{{1}}) != nil || pair.Encode([][]byte{{1}, {1}, {1}}) != nil {
		t.Error("a wrong number of leaves was encoded")
	}
}

// FuzzBind joins arbitrary P4Infos and programs: they are refused or they fit.
func FuzzBind(f *testing.F) {
	info, err := proto.Marshal(p4test.Info())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(info, p4test.JSON)
	f.Add([]byte{}, []byte("{}"))
	f.Fuzz(func(t *testing.T, b, doc []byte) {
		info := &p4configv1.P4Info{}
		if proto.Unmarshal(b, info) != nil {
			return
		}
		s, err := Parse(info)
		if err != nil {
			return
		}
		prog, err := engine.Load(doc)
		if err != nil || s.Bind(prog) != nil {
			return
		}
		for _, tb := range s.Tables.List {
			for _, e := range tb.Entries {
				if err := tb.Key(new(Key), e.Match); err != nil {
					t.Errorf("an entry of the program has no valid key: %v", err)
				}
			}
		}
	})
}
