package pipeline

import (
	"fmt"
	"slices"

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
	err = fill(packetOut, "field", h.GetMetadata(), fields, func(id uint32, v []byte) {
		out.Metadata = append(out.Metadata, &p4v1.PacketMetadata{MetadataId: id, Value: v})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
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
		i := slices.IndexFunc(h.GetMetadata(), func(d *p4configv1.ControllerPacketMetadata_Metadata) bool { return d.GetId() == m.GetMetadataId() })
		if i < 0 {
			return PacketIn{}, fmt.Errorf("packet_in: the header has no field with id %d", m.GetMetadataId())
		}
		out.Fields[h.GetMetadata()[i].GetName()] = canon.Low64(m.GetValue())
	}
	return out, nil
}
