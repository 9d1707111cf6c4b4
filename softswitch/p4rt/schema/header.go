package schema

import (
	"fmt"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/softswitch/engine/phv"
)

// Encode builds the frame of a packet-out: the fields in order, packed bit by bit, most significant
// first, and the payload. If h is nil, metadata must be empty. A field that is
// left out is 0, as in BMv2. missing names the first such field that the P4Info does not mark as
// padding, or is "". Errors name the field, the value and what is allowed.
func (h *Header) Encode(out *p4v1.PacketOut) (frame []byte, missing string, err error) {
	var fields []HeaderField
	size := 0
	if h != nil {
		fields, size = h.Fields, h.Bits/8
	}
	frame = make([]byte, size, size+len(out.Payload))
	for i, m := range out.Metadata {
		if !slices.ContainsFunc(fields, func(f HeaderField) bool { return f.ID == m.GetMetadataId() }) {
			return nil, "", fmt.Errorf("metadata[%d].metadata_id is %d, which is no field of packet_out", i, m.GetMetadataId())
		}
	}
	at := 0
	for _, f := range fields {
		var value []byte
		found := false
		for _, m := range out.Metadata {
			if m.MetadataId != f.ID {
				continue
			}
			if found {
				return nil, "", fmt.Errorf("metadata %q is given twice", f.Name)
			}
			value, found = m.Value, true
		}
		switch {
		case !found && !f.Padding && missing == "":
			missing = f.Name
		case found && !bytestring.Fits(value, f.Bits):
			return nil, "", fmt.Errorf("metadata %q is 0x%x, allowed is a number of 1 to %d bits", f.Name, value, f.Bits)
		}
		put(frame, at, f.Bits, value)
		at += f.Bits
	}
	return append(frame, out.Payload...), missing, nil
}

// Decode splits a frame that left on the CPU port into metadata and payload. The result shares no
// memory with the frame. Decode returns nil if the frame is shorter than its header.
func (h *Header) Decode(frame []byte) *p4v1.PacketIn {
	if h == nil {
		return &p4v1.PacketIn{Payload: append([]byte(nil), frame...)}
	}
	size := h.Bits / 8
	if len(frame) < size {
		return nil
	}
	in := &p4v1.PacketIn{Metadata: make([]*p4v1.PacketMetadata, len(h.Fields))}
	at := 0
	for i, f := range h.Fields {
		in.Metadata[i] = &p4v1.PacketMetadata{MetadataId: f.ID, Value: bytestring.Canonical(get(frame, at, f.Bits))}
		at += f.Bits
	}
	in.Payload = append([]byte(nil), frame[size:]...)
	return in
}

// put writes the low width bits of v at bit offset at of dst.
func put(dst []byte, at, width int, v []byte) {
	for i := len(v) - 1; i >= 0 && width > 0; i-- {
		n := min(8, width)
		width -= n
		phv.WriteBits(dst, at+width, uint64(v[i]), n)
	}
}

// get reads width bits at bit offset at of src as a number, padded to whole bytes.
func get(src []byte, at, width int) []byte {
	out := make([]byte, (width+7)/8)
	for i := len(out) - 1; i >= 0; i-- {
		n := min(8, width)
		width -= n
		out[i] = byte(phv.ReadBits(src, at+width, n))
	}
	return out
}
