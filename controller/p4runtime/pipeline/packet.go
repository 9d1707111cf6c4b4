package pipeline

import (
	"fmt"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/canon"
)

// The controller headers of the program, as @controller_header names them.
const (
	packetIn  = "packet_in"
	packetOut = "packet_out"
)

// PacketOut builds a packet for the switch to send. Every field of the packet_out header
// must be given, because BMv2 silently reads a missing one as 0.
func (p *Pipeline) PacketOut(payload []byte, fields ...Arg) (*p4v1.PacketOut, error) {
	h, err := p.headers.find(packetOut)
	if err != nil {
		return nil, err
	}
	out := &p4v1.PacketOut{Payload: payload}
	used := 0
	for _, m := range h.GetMetadata() {
		found := false
		for _, f := range fields {
			if f.Name != m.GetName() {
				continue
			}
			v, err := value("packet_out field "+f.Name, f.Value, m.GetBitwidth())
			if err != nil {
				return nil, err
			}
			out.Metadata = append(out.Metadata, &p4v1.PacketMetadata{MetadataId: m.GetId(), Value: v})
			found = true
			used++
			break
		}
		if !found {
			return nil, fmt.Errorf("packet_out: field %q is missing", m.GetName())
		}
	}
	if used != len(fields) {
		return nil, fmt.Errorf("packet_out: %d fields are given, the header has %d of them (%s)", len(fields), used, fieldNames(h))
	}
	return out, nil
}

func fieldNames(h *p4configv1.ControllerPacketMetadata) string {
	var names []string
	for _, m := range h.GetMetadata() {
		names = append(names, m.GetName())
	}
	return orNone(names)
}

// PacketIn is a packet that the switch sent up.
type PacketIn struct {
	Fields  map[string]uint64 // of the packet_in header, by name
	Payload []byte
}

// PacketIn names the fields of a packet from the switch. Fields that the program does not
// declare are an error: the pipeline then is not the one on the switch.
func (p *Pipeline) PacketIn(in *p4v1.PacketIn) (PacketIn, error) {
	h, err := p.headers.find(packetIn)
	if err != nil {
		return PacketIn{}, err
	}
	out := PacketIn{Fields: make(map[string]uint64, len(in.GetMetadata())), Payload: in.GetPayload()}
	for _, m := range in.GetMetadata() {
		name := ""
		for _, d := range h.GetMetadata() {
			if d.GetId() == m.GetMetadataId() {
				name = d.GetName()
			}
		}
		if name == "" {
			return PacketIn{}, fmt.Errorf("packet_in: no field has id %d, the header has %s", m.GetMetadataId(), fieldNames(h))
		}
		out.Fields[name] = canon.Low64(m.GetValue())
	}
	return out, nil
}
