package p4rt

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/headgate/headgate/internal/clients"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/softswitch/p4rt/internal/p4test"
	"github.com/headgate/headgate/units"
)

func packetOut(port, queue uint64, payload string) *p4v1.StreamMessageRequest {
	return &p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Packet{Packet: &p4v1.PacketOut{
		Payload:  []byte(payload),
		Metadata: []*p4v1.PacketMetadata{{MetadataId: 1, Value: p4rtmsg.Uint(port)}, {MetadataId: 2, Value: p4rtmsg.Uint(queue)}},
	}}}
}

// frame is an Ethernet frame of the test program.
func frame(dst, src uint64) []byte {
	b := make([]byte, 60)
	binary.BigEndian.PutUint64(b[0:], dst<<16)
	binary.BigEndian.PutUint64(b[6:], src<<16)
	b[12], b[13] = 0x12, 0x34
	return b
}

func TestPacketOut(t *testing.T) {
	r, s := running(t)
	payload := string(frame(1, 2))
	s.send(packetOut(5, 3, payload))
	// A packet-out to the CPU port comes back as packet-in: that shows that it arrived.
	s.send(packetOut(cpuPort, 0, payload))
	in := s.next().GetPacket()
	want := &p4v1.PacketIn{Payload: []byte(payload), Metadata: []*p4v1.PacketMetadata{
		{MetadataId: 1, Value: []byte{0x01, 0xfe}}, {MetadataId: 2, Value: []byte{5}}, {MetadataId: 3, Value: []byte{0}},
	}}
	if diff := cmp.Diff(want, in, protocmp.Transform()); diff != "" {
		t.Errorf("packet-in (-want +got):\n%s", diff)
	}
	r.dev.mu.Lock()
	if got := append([]byte{0x02, 0xb0}, payload...); !bytes.Equal(r.dev.outs[0], got) || r.dev.sent[5] != 1 {
		t.Errorf("the switch got %x", r.dev.outs[0])
	}
	r.dev.mu.Unlock()
	// Metadata that is left out is 0, as in BMv2: ONOS never sends its padding.
	partial := packetOut(cpuPort, 0, payload)
	partial.GetPacket().Metadata = partial.GetPacket().Metadata[:1]
	s.send(partial)
	if diff := cmp.Diff(want, s.next().GetPacket(), protocmp.Transform()); diff != "" {
		t.Errorf("packet-in of a partial packet-out (-want +got):\n%s", diff)
	}
	if n := r.Server.Stats().PacketOutPartial; n != 1 {
		t.Errorf("%d partial packet-outs, want 1", n)
	}
	broken := func(edit func(*p4v1.PacketOut)) {
		t.Helper()
		m := packetOut(5, 3, payload)
		edit(m.GetPacket())
		s.send(m)
		if e := s.failed(codes.InvalidArgument); e.GetPacketOut().GetPacketOut() == nil {
			t.Errorf("the error lacks the packet-out: %v", e)
		}
	}
	broken(func(p *p4v1.PacketOut) { p.Metadata[0].MetadataId = 7 })
	broken(func(p *p4v1.PacketOut) { p.Metadata[0].MetadataId = 2 })
	broken(func(p *p4v1.PacketOut) { p.Metadata[0].Value = []byte{2, 0} })
	broken(func(p *p4v1.PacketOut) { p.Metadata[0].Value = nil })
}

func TestMessagesOfOthers(t *testing.T) {
	r, s := running(t)
	other := r.open()
	other.send(packetOut(5, 0, ""))
	other.failed(codes.PermissionDenied) // no arbitration yet
	other.arbitrate(&p4v1.MasterArbitrationUpdate{DeviceId: deviceID})
	other.told(codes.AlreadyExists)
	other.send(packetOut(5, 0, ""))
	other.failed(codes.PermissionDenied)
	ack := &p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_DigestAck{DigestAck: &p4v1.DigestListAck{DigestId: 5}}}
	other.send(ack)
	other.failed(codes.PermissionDenied)
	s.send(ack)
	if e := s.failed(codes.InvalidArgument); e.GetDigestListAck().GetDigestListAck().GetDigestId() != 5 {
		t.Errorf("%v", e)
	}
	s.send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Other{Other: &anypb.Any{TypeUrl: "x"}}})
	if e := s.failed(codes.Unimplemented); e.GetOther().GetOther().GetTypeUrl() != "x" {
		t.Errorf("%v", e)
	}
	s.send(&p4v1.StreamMessageRequest{})
	s.failed(codes.Unimplemented)
}

func TestPacketOutNeedsSwitch(t *testing.T) {
	r := newRig(t)
	s := r.open()
	s.become(1)
	s.send(packetOut(5, 0, ""))
	s.failed(codes.FailedPrecondition)
	s.send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_DigestAck{DigestAck: &p4v1.DigestListAck{DigestId: 5}}})
	s.failed(codes.FailedPrecondition)
	_, s = running(t, func(o *Options) { o.CPUPort = 0 })
	s.send(packetOut(5, 0, ""))
	s.failed(codes.FailedPrecondition)
}

func TestDigests(t *testing.T) {
	r, s := running(t)
	digestID := p4test.ID("learn_t")
	learned := func(src uint64, port byte) *p4v1.P4Data {
		bits := func(b []byte) *p4v1.P4Data {
			return &p4v1.P4Data{Data: &p4v1.P4Data_Bitstring{Bitstring: b}}
		}
		return &p4v1.P4Data{Data: &p4v1.P4Data_Struct{Struct: &p4v1.P4StructLike{Members: []*p4v1.P4Data{bits(p4rtmsg.Uint(src)), bits([]byte{port})}}}}
	}
	arrive := func(srcs ...uint64) {
		for _, src := range srcs {
			r.dev.inject(4, frame(1, src))
		}
	}
	expect := func(list uint64, srcs ...uint64) {
		t.Helper()
		want := &p4v1.DigestList{DigestId: digestID, ListId: list}
		for _, src := range srcs {
			want.Data = append(want.Data, learned(src, 4))
		}
		got := s.next().GetDigest()
		if got.GetTimestamp() == 0 {
			t.Error("the list has no timestamp")
		}
		if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreFields(&p4v1.DigestList{}, "timestamp")); diff != "" {
			t.Errorf("digest list (-want +got):\n%s", diff)
		}
	}
	arrive(0xaa) // not enabled: lost
	config := &p4v1.DigestEntry{DigestId: digestID, Config: &p4v1.DigestEntry_Config{MaxListSize: 2, MaxTimeoutNs: 1e9, AckTimeoutNs: 5e9}}
	r.mustWrite(p4rtmsg.Insert(config))
	arrive(0xaa, 0xaa, 0xbb, 0xcc) // duplicates are not sent twice; two make a list
	expect(1, 0xaa, 0xbb)
	r.dev.set(units.Second)
	r.Sweep(units.Second) // the third has waited long enough
	expect(2, 0xcc)
	arrive(0xaa) // not acknowledged yet
	s.send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_DigestAck{DigestAck: &p4v1.DigestListAck{DigestId: digestID, ListId: 1}}})
	s.send(&p4v1.StreamMessageRequest{})
	s.failed(codes.Unimplemented) // so the acknowledgement has been handled
	arrive(0xcc, 0xaa)
	r.Sweep(2 * units.Second)
	expect(3, 0xaa)
	r.dev.set(20 * units.Second)
	r.Sweep(20 * units.Second) // the acknowledgement timeout
	arrive(0xcc, 0xbb)
	expect(4, 0xcc, 0xbb)
	config.Config = &p4v1.DigestEntry_Config{}
	r.mustWrite(p4rtmsg.Modify(config)) // no timeout: every message at once
	arrive(0xdd, 0xdd)
	expect(5, 0xdd)
	expect(6, 0xdd)
	r.mustWrite(p4rtmsg.Delete(config))
	arrive(0xee)
	r.Sweep(30 * units.Second)
	r.PacketIn([]byte{0, 0, 'x'})
	if m := s.next(); m.GetPacket() == nil {
		t.Errorf("got %v, want nothing before the packet-in", m)
	}
}

func TestIdleNotifications(t *testing.T) {
	r, s := running(t)
	e := l2(1, 1)
	e.IdleTimeoutNs = 1e9
	r.mustWrite(p4rtmsg.Insert(e))
	r.Sweep(units.Second / 2)
	r.Sweep(units.Second)
	n := s.next().GetIdleTimeoutNotification()
	if len(n.GetTableEntry()) != 1 || n.Timestamp == 0 || n.TableEntry[0].IdleTimeoutNs != 1e9 {
		t.Errorf("notification %v", n)
	}
	// A hit counts: the packet at 1.5 s postpones the next notification to 2.5 s.
	r.dev.set(3 * units.Second / 2)
	r.dev.inject(2, frame(1, 9))
	r.Sweep(2 * units.Second)
	r.Sweep(5 * units.Second / 2)
	if n := s.next().GetIdleTimeoutNotification(); n == nil {
		t.Error("no second notification")
	}
	r.dev.mu.Lock()
	if r.dev.sent[1] != 1 {
		t.Errorf("port 1 sent %d frames", r.dev.sent[1])
	}
	r.dev.mu.Unlock()
	if got := r.Stats(); got != (Stats{}) {
		t.Errorf("dropped %+v", got)
	}
}

func TestSlowClient(t *testing.T) {
	r, s := running(t, func(o *Options) { o.StreamQueue = 4 })
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	s.ends(codes.OK)
	// A stream that is opened and never read: messages pile up in the transport, then in
	// the queue, and then packet-ins are dropped while the switch goes on.
	stream, err := r.client.StreamChannel(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Arbitration{
		Arbitration: &p4v1.MasterArbitrationUpdate{DeviceId: deviceID, ElectionId: id(1)},
	}}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	big := make([]byte, 60<<10)
	for range 200 { // a switch that waited for its client would drop nothing
		r.PacketIn(big)
	}
	if r.Stats().PacketInDropped == 0 {
		t.Error("nothing was dropped")
	}
	r.mustWrite(p4rtmsg.Insert(l2(1, 1))) // and writes go on
}

func TestPacketInWithoutClient(t *testing.T) {
	r := newRig(t)
	r.PacketIn([]byte("x"))
	r.Digest("learn_t", nil)
	r.Sweep(0)
	s := r.open()
	s.become(1)
	r.push(both, p4test.Config(), codes.OK)
	r.PacketIn([]byte("x")) // shorter than the header
	r.Digest("unknown", nil)
	if got := r.Stats().PacketInDropped; got != 2 {
		t.Errorf("%d packet-ins dropped, want 2", got)
	}
}

func TestOutboxOverflow(t *testing.T) {
	o := newOutbox(2, clients.New(1<<20))
	for range 4 {
		o.mustSend(&p4v1.StreamMessageResponse{})
	}
	if o.offer(&p4v1.StreamMessageResponse{}, 0, 1) {
		t.Error("a full queue took a message")
	}
	if q, bytes, last, full := o.drain(); len(q) != 4 || bytes != 4*messageBytes || last || full {
		t.Errorf("%d messages of %d bytes, %v, %v", len(q), bytes, last, full)
	}
	for range 5 {
		o.mustSend(&p4v1.StreamMessageResponse{})
	}
	if _, _, _, full := o.drain(); !full {
		t.Error("a message that must not be lost was, and the stream goes on")
	}
}

// TestOutboxBytes: the bytes that wait for clients are bounded per stream and per server. They are
// released when the stream ends.
func TestOutboxBytes(t *testing.T) {
	const payload, most = 1 << 20, 64 << 20
	all := clients.New(most)
	var boxes []*outbox
	for range 20 {
		o := newOutbox(1024, all)
		n := 0
		for o.offer(&p4v1.StreamMessageResponse{}, payload, 1) {
			n++
		}
		if n > streamBytes/payload {
			t.Errorf("a stream took %d messages of 1 MiB", n)
		}
		boxes = append(boxes, o)
	}
	if got := all.Stats().Bytes; got > most || got < most/2 {
		t.Errorf("all streams hold %d bytes, want up to %d", got, most)
	}
	_, bytes, _, _ := boxes[0].drain()
	boxes[0].sent(bytes)
	for _, o := range boxes {
		o.close()
		o.sent(payload) // a message that was under way
	}
	if got := all.Stats().Bytes; got != 0 || boxes[0].offer(&p4v1.StreamMessageResponse{}, 0, 1) {
		t.Errorf("%d bytes are left of streams that are closed", got)
	}
}
