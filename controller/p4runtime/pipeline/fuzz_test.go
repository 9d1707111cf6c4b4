package pipeline

import (
	"strings"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"
)

// FuzzPacketIn: a packet-in is either refused, or all its fields have names.
func FuzzPacketIn(f *testing.F) {
	for _, in := range []*p4v1.PacketIn{
		{Payload: []byte("y"), Metadata: []*p4v1.PacketMetadata{{MetadataId: 1, Value: []byte{0, 3}}, {MetadataId: 3, Value: []byte{1}}}},
		{Metadata: []*p4v1.PacketMetadata{{MetadataId: 9}, nil}},
		{Metadata: []*p4v1.PacketMetadata{{MetadataId: 1, Value: []byte("a value of more than eight bytes")}}},
	} {
		text, err := proto.Marshal(in)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	p := load(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		in := &p4v1.PacketIn{}
		if proto.Unmarshal(text, in) != nil {
			return
		}
		if got, err := p.PacketIn(in); err == nil && (len(got.Fields) > len(in.GetMetadata()) || len(got.Payload) != len(in.GetPayload())) {
			t.Errorf("%v is %v", in, got)
		}
	})
}

// FuzzEntity: a command line's words are either refused, or give an entity or a packet-out.
func FuzzEntity(f *testing.F) {
	for _, s := range []string{"table ipv4 dst=10.0.0.0/8 => forward port=1", "member m 1 => a", "digest flows", "register r[3] = 9", "group g 1 members 1 2", "clone 5 ports 1"} {
		f.Add(s)
	}
	p := load(f)
	f.Fuzz(func(t *testing.T, s string) {
		for _, remove := range []bool{false, true} {
			if e, err := p.Parse(strings.Fields(s), remove); err == nil && e.GetEntity() == nil {
				t.Errorf("%q is nothing", s)
			}
		}
		if out, err := p.ParsePacketOut([]byte(s), strings.Fields(s)); err == nil && string(out.GetPayload()) != s {
			t.Errorf("%q is %v", s, out)
		}
	})
}
