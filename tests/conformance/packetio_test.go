package conformance

import (
	"github.com/google/go-cmp/cmp"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/headgate/headgate/p4src/ids"
)

// packetOut is a packet for testdata/punt.p4 with the given metadata in order of their ids.
func packetOut(payload string, metadata ...[]byte) *p4v1.StreamMessageRequest {
	p := &p4v1.PacketOut{Payload: []byte(payload)}
	for i, v := range metadata {
		p.Metadata = append(p.Metadata, &p4v1.PacketMetadata{MetadataId: uint32(i + 1), Value: v})
	}
	return &p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Packet{Packet: p}}
}

// packetIn checks the next message of the stream.
func (r *rig) packetIn(s *session, payload string, port uint64) {
	r.Helper()
	got := s.next(patience).GetPacket()
	want := &p4v1.PacketIn{Payload: []byte(payload), Metadata: []*p4v1.PacketMetadata{
		{MetadataId: 1, Value: number(port)}, {MetadataId: 2, Value: number(0)}}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		r.Errorf("packet-in (-want +got):\n%s", diff)
	}
}

func testPacketOutAndIn(r *rig) {
	r.load("punt")
	r.primary.send(packetOut("hello", number(0), number(0)))
	r.packetIn(r.primary, "hello", ids.CPUPort)

	r.primary.send(packetOut("to port 5", number(5), number(0)))
	if f := r.next(); f.Port != 5 || string(f.Data) != "to port 5" {
		r.Errorf("port %d sent %q", f.Port, f.Data)
	}
	r.send(3, []byte("from port 3"))
	r.packetIn(r.primary, "from port 3", 3)
}

// Only the primary can send packets, and only complete ones.
func testPacketOutRefused(r *rig) {
	r.load("punt")
	backup := r.open()
	backup.arbitrate(device(nil))
	backup.told(codes.AlreadyExists)
	for _, c := range []struct {
		name string
		from *session
		out  *p4v1.StreamMessageRequest
		want codes.Code
	}{
		{"from a backup", backup, packetOut("x", number(5), number(0)), codes.PermissionDenied},
		{"a port too wide", r.primary, packetOut("x", number(512), number(0)), codes.InvalidArgument},
	} {
		c.from.send(c.out)
		if r.lax {
			continue // BMv2's treatment of them is undefined
		}
		got := c.from.next(patience).GetError()
		if got == nil || codes.Code(got.CanonicalCode) != c.want || got.GetPacketOut() == nil {
			r.Errorf("a packet-out %s: %v, want %v", c.name, got, c.want)
		}
	}
	r.primary.send(packetOut("right", number(5), number(0)))
	for {
		f := r.next()
		if string(f.Data) == "right" {
			return
		}
		if !r.lax {
			r.Errorf("port %d sent %q", f.Port, f.Data)
		}
	}
}
