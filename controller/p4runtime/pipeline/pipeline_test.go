package pipeline

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src"
)

func load(t testing.TB) *Pipeline {
	t.Helper()
	p, err := Load(p4src.P4Info, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestEntries(t *testing.T) {
	p := load(t)
	nextHop := []Arg{{"port", p4rtmsg.Uint(3)}, {"src_mac", p4rtmsg.Uint(0x020000010003)}, {"dst_mac", p4rtmsg.Uint(0x06000a000101)}}
	entity := func(e *p4v1.Entity, err error) func() (*p4v1.Entity, error) {
		return func() (*p4v1.Entity, error) { return e, err }
	}
	tests := []struct {
		name  string
		build func() (*p4v1.Entity, error)
		want  string // text of the entity, or of the error
		line  string // Describe
	}{
		{
			"host bits are cleared", p.Entry("ipv4_lpm").LPM("dst_addr", []byte{10, 0, 3, 255}, 22).Group(2).Entity,
			`table_entry{table_id:0x02020001 match{field_id:1 lpm{value:"\n\x00\x00\x00" prefix_len:22}} action{action_profile_group_id:2}}`,
			"ingress.routing.ipv4_lpm dst_addr=10.0.0.0/22 → group 2",
		},
		{
			"default route has no match", p.Entry("ipv4_lpm").LPM("dst_addr", []byte{1, 2, 3, 4}, 0).Member(2).Entity,
			`table_entry{table_id:0x02020001 action{action_profile_member_id:2}}`,
			"ingress.routing.ipv4_lpm → member 2",
		},
		{
			"masked ternary, free one left out",
			p.Entry("punt_table").Ternary("dst_addr", p4rtmsg.Uint(7), p4rtmsg.Uint(0)).Ternary("ether_type", p4rtmsg.Uint(0x88cc), p4rtmsg.Uint(0xff00)).Priority(1).Action("punt_to_cpu", Arg{"reason", p4rtmsg.Uint(2)}).Entity,
			`table_entry{table_id:0x02030001 match{field_id:1 ternary{value:"\x88\x00" mask:"\xff\x00"}} action{action{action_id:0x01030001 params{param_id:1 value:"\x02"}}} priority:1}`,
			"ingress.punt.punt_table ether_type=0x8800&0xff00 priority 1 → punt_to_cpu(reason=2)",
		},
		{
			"full range left out", p.Entry("ecn_red").Exact("curve", p4rtmsg.Uint(1)).Range("depth", p4rtmsg.Uint(0), p4rtmsg.Uint(0xffffffff)).Priority(1).Action("set_mark_probability", Arg{"p", p4rtmsg.Uint(65536)}).Entity,
			`table_entry{table_id:0x02050001 match{field_id:1 exact{value:"\x01"}} action{action{action_id:0x01050001 params{param_id:1 value:"\x01\x00\x00"}}} priority:1}`,
			"egress.ecn.ecn_red curve=1 priority 1 → set_mark_probability(p=65536)",
		},
		{
			"default entry", p.Default("maxqd_scale").Action("set_scale", Arg{"shift", p4rtmsg.Uint(0)}).Entity,
			`table_entry{table_id:0x02060001 is_default_action:true action{action{action_id:0x01060001 params{param_id:1 value:"\x00"}}}}`,
			"egress.maxqd.maxqd_scale default → set_scale(shift=0)",
		},
		{
			"member", entity(p.Member("ecmp", 3, "set_next_hop", nextHop...)),
			`action_profile_member{action_profile_id:0x11020001 member_id:3 action{action_id:0x01020001 params{param_id:1 value:"\x03"} params{param_id:2 value:"\x02\x00\x00\x01\x00\x03"} params{param_id:3 value:"\x06\x00\n\x00\x01\x01"}}}`,
			"ingress.routing.ecmp member 3 → set_next_hop(port=3, src_mac=02:00:00:01:00:03, dst_mac=06:00:0a:00:01:01)",
		},
		{
			"watched group", entity(p.PortGroup("ecmp", 1, []uint32{4, 3})),
			`action_profile_group{action_profile_id:0x11020001 group_id:1 members{member_id:3 weight:1 watch_port:"\x03"} members{member_id:4 weight:1 watch_port:"\x04"}}`,
			"ingress.routing.ecmp group 1 → members 3, 4, while their ports are up",
		},
		{
			"group", entity(p.Group("ecmp", 1, []uint32{4, 3})),
			`action_profile_group{action_profile_id:0x11020001 group_id:1 members{member_id:3 weight:1} members{member_id:4 weight:1}}`,
			"ingress.routing.ecmp group 1 → members 3, 4",
		},
		{
			"clone session", entity(CloneSession(510, 510), nil),
			`packet_replication_engine_entry{clone_session_entry{session_id:510 replicas{egress_port:510 instance:1}}}`,
			"clone session 510 → ports 510",
		},
		{"unknown table", p.Entry("ipv4").Entity, `the pipeline has no table "ipv4"; it has egress.ecn.ecn_curve, egress.ecn.ecn_red, egress.maxqd`, ""},
		{"unknown key", p.Entry("ipv4_lpm").Exact("src_addr", p4rtmsg.Uint(1)).Member(1).Entity, `has no key "src_addr"; it has dst_addr`, ""},
		{"wrong kind of key", p.Entry("ipv4_lpm").Exact("dst_addr", p4rtmsg.Uint(1)).Member(1).Entity, "matches by LPM, not by EXACT", ""},
		{"unknown action", p.Entry("dscp_to_class").Exact("dscp", p4rtmsg.Uint(1)).Action("set_klass").Entity, `no action "set_klass"`, ""},
		{"another table's action", p.Entry("dscp_to_class").Exact("dscp", p4rtmsg.Uint(1)).Action("set_scale", Arg{"shift", p4rtmsg.Uint(1)}).Entity, `has no action "set_scale"`, ""},
		{"missing parameter", p.Entry("dscp_to_class").Exact("dscp", p4rtmsg.Uint(1)).Action("set_class", Arg{"class", p4rtmsg.Uint(1)}).Entity, `parameter "queue" is missing`, ""},
		{"unknown parameter", p.Entry("dscp_to_class").Exact("dscp", p4rtmsg.Uint(1)).Action("set_class", Arg{"class", p4rtmsg.Uint(1)}, Arg{"queue", p4rtmsg.Uint(1)}, Arg{"q", p4rtmsg.Uint(1)}).Entity, `no parameter "q"`, ""},
		{"parameter too wide", p.Entry("dscp_to_class").Exact("dscp", p4rtmsg.Uint(1)).Action("set_class", Arg{"class", p4rtmsg.Uint(8)}, Arg{"queue", p4rtmsg.Uint(1)}).Entity, "has 4 bits, want at most 3", ""},
		{"key too wide", p.Entry("dscp_to_class").Exact("dscp", p4rtmsg.Uint(64)).Entity, "has 7 bits, want at most 6", ""},
		{"exact key missing", p.Entry("dscp_to_class").Action("set_class", Arg{"class", p4rtmsg.Uint(1)}, Arg{"queue", p4rtmsg.Uint(1)}).Entity, "the exact key dscp is not set", ""},
		{"priority missing", p.Entry("punt_table").Ternary("ether_type", p4rtmsg.Uint(1), p4rtmsg.Uint(1)).Action("punt_to_cpu", Arg{"reason", p4rtmsg.Uint(1)}).Entity, "the priority is 0", ""},
		{"priority too much", p.Entry("ipv4_lpm").LPM("dst_addr", p4rtmsg.Uint(1), 32).Priority(1).Member(1).Entity, "the priority is 1", ""},
		{"direct action in an indirect table", p.Entry("ipv4_lpm").LPM("dst_addr", p4rtmsg.Uint(1), 32).Action("set_next_hop", nextHop...).Entity, "direct exactly when", ""},
		{"const default", p.Default("punt_table").Action("punt_to_cpu", Arg{"reason", p4rtmsg.Uint(1)}).Entity, "its default action is const", ""},
		{"no action", p.Default("maxqd_scale").Entity, "has no action", ""},
		{"empty value", p.Entry("dscp_to_class").Exact("dscp", nil).Entity, "the value is empty", ""},
		{"range upside down", p.Entry("ecn_red").Exact("curve", p4rtmsg.Uint(1)).Range("depth", p4rtmsg.Uint(2), p4rtmsg.Uint(1)).Entity, "want low ≤ high", ""},
		{"prefix too long", p.Entry("ipv4_lpm").LPM("dst_addr", p4rtmsg.Uint(1), 33).Member(1).Entity, "want 0 to 32", ""},
		{"member 0", entity(p.Member("ecmp", 0, "set_next_hop", nextHop...)), "wildcard", ""},
		{"group too large", entity(p.Group("ecmp", 1, make([]uint32, 65))), "at most 64 fit", ""},
		{"unknown digest", entity(p.Digest("d", 1, 1)), "it has flow_digest_t", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.build()
			if err != nil {
				if tt.line != "" || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("error = %v, want %s", err, tt.want)
				}
				return
			}
			want := &p4v1.Entity{}
			if err := prototext.Unmarshal([]byte(tt.want), want); err != nil {
				t.Fatalf("no error but %v (%v)", got, err)
			}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("entity (-want +got):\n%s", diff)
			}
			if line := p.Describe(got); line != tt.line {
				t.Errorf("Describe = %s, want %s", line, tt.line)
			}
			same := proto.Clone(got).(*p4v1.Entity)
			if err := p.Normalize(same); err != nil || !proto.Equal(same, got) {
				t.Errorf("Normalize changes what a builder made: %v, %v", same, err)
			}
		})
	}
}

func TestNormalize(t *testing.T) {
	p := load(t)
	parse := func(text string) *p4v1.Entity {
		e := &p4v1.Entity{}
		if err := prototext.Unmarshal([]byte(text), e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	tests := []struct{ name, have, want string }{
		{
			"padding, order and counters",
			`table_entry{table_id:0x02050001 match{field_id:2 range{low:"\x00\x02" high:"\x00\x07"}} match{field_id:1 exact{value:"\x00\x01"}} action{action{action_id:0x01050001 params{param_id:1 value:"\x00\x00\x05"}}} priority:1 counter_data{byte_count:7} controller_metadata:9}`,
			`table_entry{table_id:0x02050001 match{field_id:1 exact{value:"\x01"}} match{field_id:2 range{low:"\x02" high:"\x07"}} action{action{action_id:0x01050001 params{param_id:1 value:"\x05"}}} priority:1}`,
		},
		{
			"anything is left out",
			`table_entry{table_id:0x02030001 match{field_id:1 ternary{value:"\x00" mask:"\x00"}} match{field_id:2 ternary{value:"\x00\x01" mask:"\x00\xff"}} priority:1}`,
			`table_entry{table_id:0x02030001 match{field_id:2 ternary{value:"\x01" mask:"\xff"}} priority:1}`,
		},
		{
			"full range is left out",
			`table_entry{table_id:0x02050001 match{field_id:2 range{low:"\x00" high:"\xff\xff\xff\xff"}}}`,
			`table_entry{table_id:0x02050001}`,
		},
		{
			"groups",
			`action_profile_group{action_profile_id:0x11020001 group_id:1 max_size:64 members{member_id:4 weight:1 watch_port:"\x00\x01"} members{member_id:3}}`,
			`action_profile_group{action_profile_id:0x11020001 group_id:1 members{member_id:3 weight:1} members{member_id:4 weight:1 watch_port:"\x01"}}`,
		},
		{
			"PI returns one watch port for all members",
			`action_profile_group{action_profile_id:0x11020001 group_id:1 members{member_id:4 weight:1 watch_port:"\x04"} members{member_id:3 weight:1 watch_port:"\x04"}}`,
			`action_profile_group{action_profile_id:0x11020001 group_id:1 members{member_id:3 weight:1 watch_port:"\x03"} members{member_id:4 weight:1 watch_port:"\x04"}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := parse(tt.have)
			if err := p.Normalize(got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parse(tt.want), got, protocmp.Transform()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if err := p.Normalize(parse(`table_entry{table_id:1}`)); err == nil {
		t.Error("an entry of an unknown table is fine")
	}
}

func TestPackets(t *testing.T) {
	p := load(t)
	out, err := p.PacketOut([]byte("x"), Arg{"mode", p4rtmsg.Uint(2)}, Arg{"egress_port", p4rtmsg.Uint(300)}, Arg{"queue", p4rtmsg.Uint(7)})
	if err != nil {
		t.Fatal(err)
	}
	want := &p4v1.PacketOut{Payload: []byte("x"), Metadata: []*p4v1.PacketMetadata{
		{MetadataId: 1, Value: []byte{1, 44}}, {MetadataId: 2, Value: []byte{7}}, {MetadataId: 3, Value: []byte{2}},
	}}
	if !proto.Equal(out, want) {
		t.Errorf("packet-out = %v, want %v", out, want)
	}
	if _, err := p.PacketOut(nil, Arg{"mode", p4rtmsg.Uint(2)}); err == nil || !strings.Contains(err.Error(), `"egress_port" is missing`) {
		t.Errorf("error = %v", err)
	}
	in, err := p.PacketIn(&p4v1.PacketIn{Payload: []byte("y"), Metadata: []*p4v1.PacketMetadata{
		{MetadataId: 1, Value: []byte{0, 3}}, {MetadataId: 3, Value: []byte{1}},
	}})
	if err != nil || in.Fields["ingress_port"] != 3 || in.Fields["reason"] != 1 || string(in.Payload) != "y" {
		t.Errorf("packet-in = %+v, %v", in, err)
	}
	if _, err := p.PacketIn(&p4v1.PacketIn{Metadata: []*p4v1.PacketMetadata{{MetadataId: 9}}}); err == nil {
		t.Error("a field that the header does not have is fine")
	}
}

func TestLoadErrors(t *testing.T) {
	if _, err := Load([]byte("tables {"), []byte("{}")); err == nil {
		t.Error("broken P4Info is fine")
	}
	if _, err := Load(nil, []byte("{")); err == nil {
		t.Error("broken JSON is fine")
	}
	if _, err := Load([]byte(`tables { preamble { id: 1 } }`), []byte("{}")); err == nil {
		t.Error("a table without a name is fine")
	}
	a, b := load(t), load(t)
	if a.Cookie() != b.Cookie() || a.Cookie() == 0 {
		t.Errorf("cookies %x and %x", a.Cookie(), b.Cookie())
	}
}
