package p4rt

import (
	"strings"
	"testing"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/softswitch/p4rt/internal/p4test"
)

// leftovers are objects that a compiler may leave in the P4Info and omit from the program.
const leftovers = `
tables {
  preamble { id: 0x02000777 name: "ingress.gone" }
  match_fields { id: 1 name: "key" bitwidth: 8 match_type: EXACT }
  action_refs { id: 0x01000777 }
  implementation_id: 0x11000777
  direct_resource_ids: 0x13000777
}
actions { preamble { id: 0x01000777 name: "ingress.gone_too" } }
action_profiles { preamble { id: 0x11000777 name: "ingress.unused" } table_ids: 0x02000777 with_selector: true }
direct_counters { preamble { id: 0x13000777 name: "ingress.gone_hits" } direct_table_id: 0x02000777 }
counters { preamble { id: 0x12000777 name: "ingress.no_counter" } size: 4 }
meters { preamble { id: 0x14000777 name: "ingress.no_meter" } size: 4 }
registers { preamble { id: 0x16000777 name: "ingress.no_register" } type_spec { bitstring { bit { bitwidth: 8 } } } size: 4 }
value_sets { preamble { id: 0x03000777 name: "ingress.no_set" } match { id: 1 bitwidth: 8 match_type: EXACT } size: 4 }
digests { preamble { id: 0x17000777 name: "no_digest" } type_spec { bitstring { bit { bitwidth: 8 } } } }
`

// TestObjectsThatTheProgramDoesNotHave: P4Info may name what the compiler dropped from the
// program. Reads find nothing, writes say so, and everything else works.
func TestObjectsThatTheProgramDoesNotHave(t *testing.T) {
	more := &p4configv1.P4Info{}
	if err := prototext.Unmarshal([]byte(leftovers), more); err != nil {
		t.Fatal(err)
	}
	r, _ := running(t)
	cfg := p4test.Config()
	proto.Merge(cfg.P4Info, more)
	r.push(both, cfg, codes.OK)
	index := &p4v1.Index{}
	for _, e := range []any{
		&p4v1.TableEntry{TableId: 0x02000777},
		&p4v1.TableEntry{TableId: 0x02000777, IsDefaultAction: true},
		&p4v1.ActionProfileMember{ActionProfileId: 0x11000777, MemberId: 1},
		&p4v1.ActionProfileGroup{ActionProfileId: 0x11000777, GroupId: 1},
		&p4v1.DirectCounterEntry{TableEntry: &p4v1.TableEntry{TableId: 0x02000777}},
		&p4v1.CounterEntry{CounterId: 0x12000777, Index: index},
		&p4v1.MeterEntry{MeterId: 0x14000777, Index: index},
		&p4v1.RegisterEntry{RegisterId: 0x16000777, Index: index},
		&p4v1.ValueSetEntry{ValueSetId: 0x03000777},
		&p4v1.DigestEntry{DigestId: 0x17000777},
	} {
		r.wantRead(e)
		err := r.write(p4rtmsg.Modify(e))
		d := status.Convert(err).Details()
		if len(d) != 1 {
			t.Errorf("write %v: %v, want one p4.Error", e, err)
			continue
		}
		if e := d[0].(*p4v1.Error); codes.Code(e.CanonicalCode) != codes.FailedPrecondition || !strings.Contains(e.Message, "is in the P4Info, but not in the program") {
			t.Errorf("write: %v", e)
		}
	}
	r.mustWrite(p4rtmsg.Insert(l2(1, 1)))
	for _, all := range []any{&p4v1.CounterEntry{}, &p4v1.MeterEntry{}, &p4v1.RegisterEntry{}, &p4v1.DirectCounterEntry{TableEntry: &p4v1.TableEntry{}}, &p4v1.ActionProfileMember{}} {
		if _, _, err := r.read(&p4v1.ReadRequest{DeviceId: deviceID, Entities: []*p4v1.Entity{p4rtmsg.Entity(all)}}); err != nil {
			t.Errorf("read of all: %v", err)
		}
	}
	r.push(reconcile, cfg, codes.OK)
	r.wantRead(&p4v1.TableEntry{TableId: p4test.ID("l2")}, l2(1, 1))
}

// TestFieldOfTypeError: the P4Info gives a match field of type error no width. The program
// has one.
func TestFieldOfTypeError(t *testing.T) {
	r, _ := running(t)
	cfg := p4test.Config()
	cfg.P4Info.Tables[1].MatchFields[0].Bitwidth = 0
	r.push(both, cfg, codes.OK)
	r.mustWrite(p4rtmsg.Insert(l2(0x0a0b0c0d0e0f, 1)))
	r.wantRead(&p4v1.TableEntry{TableId: p4test.ID("l2")}, l2(0x0a0b0c0d0e0f, 1))
	if err := r.write(p4rtmsg.Insert(l2(1<<48, 1))); details(t, err)[0] != codes.InvalidArgument {
		t.Errorf("a value wider than the program's field: %v", err)
	}
}

// TestTranslationToStrings: a program with such a type runs. Entries that need a number for a
// string are refused with the reason.
func TestTranslationToStrings(t *testing.T) {
	r, _ := running(t)
	cfg := p4test.Config()
	cfg.P4Info.TypeInfo.NewTypes["port_id_t"].GetTranslatedType().SdnType = &p4configv1.P4NewTypeTranslation_SdnString_{}
	r.push(both, cfg, codes.OK)
	r.mustWrite(p4rtmsg.Insert(l2(1, 1)))
	match := &p4v1.FieldMatch{FieldId: 1, FieldMatchType: &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: []byte("Ethernet0")}}}
	err := r.write(p4rtmsg.Insert(p4test.Entry("port_vrf", 0, p4test.Do("set_vrf", 1), match)))
	e, ok := status.Convert(err).Details()[0].(*p4v1.Error)
	if !ok || codes.Code(e.CanonicalCode) != codes.InvalidArgument || !strings.Contains(e.Message, `its type "port_id_t" is translated to strings`) {
		t.Errorf("write: %v", err)
	}
}
