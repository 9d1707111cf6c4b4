package schema

import (
	"bytes"
	"strings"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"pgregory.net/rapid"

	"github.com/headgate/headgate/internal/bytestring"
)

// header is one of 9, 3 and 4 bits, the last of which is padding.
var header = &Header{Bits: 16, Fields: []HeaderField{
	{ID: 1, Name: "port", Bits: 9}, {ID: 2, Name: "queue", Bits: 3}, {ID: 9, Name: "pad", Bits: 4, Padding: true},
}}

func meta(id uint32, v ...byte) *p4v1.PacketMetadata {
	return &p4v1.PacketMetadata{MetadataId: id, Value: v}
}

func TestHeaderEncode(t *testing.T) {
	for _, c := range []struct {
		name   string
		header *Header
		meta   []*p4v1.PacketMetadata
		frame  string // with payload "xy"
		err    string
		absent string
	}{
		{"in order", header, []*p4v1.PacketMetadata{meta(1, 1, 0x55), meta(2, 5), meta(9, 0xf)}, "\xaa\xdfxy", "", ""},
		{"in any order, padding left out", header, []*p4v1.PacketMetadata{meta(2, 5), meta(1, 0, 1, 0x55)}, "\xaa\xd0xy", "", ""},
		{"no header", nil, nil, "xy", "", ""},
		{"no header, metadata", nil, []*p4v1.PacketMetadata{meta(1, 1)}, "", "metadata_id is 1, which is no field", ""},
		{"unknown", header, []*p4v1.PacketMetadata{meta(1, 1), meta(2, 1), meta(3, 1)}, "", "metadata[2].metadata_id is 3", ""},
		{"nil", header, []*p4v1.PacketMetadata{nil}, "", "metadata_id is 0", ""},
		{"a field left out", header, []*p4v1.PacketMetadata{meta(1, 1)}, "\x00\x80xy", "", "queue"},
		{"all left out", header, nil, "\x00\x00xy", "", "port"},
		{"twice", header, []*p4v1.PacketMetadata{meta(1, 1), meta(2, 1), meta(1, 1)}, "", `metadata "port" is given twice`, ""},
		{"too wide", header, []*p4v1.PacketMetadata{meta(1, 2, 0), meta(2, 1)}, "", `metadata "port" is 0x0200, allowed is a number of 1 to 9 bits`, ""},
		{"empty", header, []*p4v1.PacketMetadata{meta(1), meta(2, 1)}, "", `metadata "port" is 0x, allowed`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, absent, err := c.header.Encode(&p4v1.PacketOut{Payload: []byte("xy"), Metadata: c.meta})
			switch {
			case c.err == "" && (err != nil || string(got) != c.frame || absent != c.absent):
				t.Errorf("%x, %q, %v; want %x, %q", got, absent, err, c.frame, c.absent)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("error %v, want one with %q", err, c.err)
			}
		})
	}
}

func TestHeaderDecode(t *testing.T) {
	frame := []byte("\xaa\xdfxy")
	in := header.Decode(frame)
	if string(in.Payload) != "xy" || !bytes.Equal(in.Metadata[0].Value, []byte{1, 0x55}) || !bytes.Equal(in.Metadata[1].Value, []byte{5}) || in.Metadata[2].MetadataId != 9 {
		t.Errorf("%v", in)
	}
	frame[2] = 'z'
	if string(in.Payload) != "xy" {
		t.Error("the packet-in shares the frame's memory")
	}
	if header.Decode(frame[:1]) != nil {
		t.Error("a frame without its header was decoded")
	}
	if in := (*Header)(nil).Decode([]byte("xy")); string(in.Payload) != "xy" || len(in.Metadata) != 0 {
		t.Errorf("without header: %v", in)
	}
}

// Decode returns what was encoded, for any widths.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &Header{}
		out := &p4v1.PacketOut{Payload: rapid.SliceOf(rapid.Byte()).Draw(t, "payload")}
		add := func(bits int, v []byte) {
			h.Fields = append(h.Fields, HeaderField{ID: uint32(len(h.Fields) + 1), Bits: bits})
			h.Bits += bits
			out.Metadata = append(out.Metadata, &p4v1.PacketMetadata{MetadataId: uint32(len(h.Fields)), Value: v})
		}
		for range rapid.IntRange(1, 6).Draw(t, "fields") {
			bits := rapid.IntRange(1, 70).Draw(t, "bits")
			raw := rapid.SliceOfN(rapid.Byte(), (bits+7)/8, (bits+7)/8).Draw(t, "value")
			add(bits, bytestring.Truncate(append([]byte{0}, raw...), bits))
		}
		if rest := -h.Bits & 7; rest > 0 {
			add(rest, []byte{0})
		}
		frame, _, err := h.Encode(out)
		if err != nil {
			t.Fatal(err)
		}
		in := h.Decode(frame)
		if !bytes.Equal(in.Payload, out.Payload) {
			t.Fatalf("payload %x became %x", out.Payload, in.Payload)
		}
		for i, m := range out.Metadata {
			if !bytes.Equal(in.Metadata[i].Value, m.Value) {
				t.Fatalf("field %d of %d bits: %x became %x", i, h.Fields[i].Bits, m.Value, in.Metadata[i].Value)
			}
		}
	})
}

func BenchmarkHeaderDecode(b *testing.B) {
	frame := make([]byte, 128)
	b.ReportAllocs()
	for b.Loop() {
		header.Decode(frame)
	}
}

// FuzzDecode: a frame is shorter than its header, or encoding its decoded form gives the frame
// again.
func FuzzHeaderDecode(f *testing.F) {
	for _, s := range []string{"", "\xaa", "\xaa\xdfxy", "\x00\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		in := header.Decode(frame)
		if (in == nil) != (len(frame) < 2) {
			t.Fatalf("%x is %v", frame, in)
		}
		if in == nil {
			return
		}
		again, missing, err := header.Encode(&p4v1.PacketOut{Payload: in.Payload, Metadata: in.Metadata[:2]})
		if err != nil || missing != "" || again[0] != frame[0] || again[1] != frame[1]&0xf0 || !bytes.Equal(again[2:], frame[2:]) {
			t.Errorf("%x became %x: %q, %v", frame, again, missing, err)
		}
	})
}
