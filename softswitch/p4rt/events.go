package p4rt

import (
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/softswitch/p4rt/arbitration"
	"github.com/headgate/headgate/units"
)

// PacketIn sends a frame that left the switch on the CPU port to the primaries. It copies the frame
// and never blocks.
func (s *Server) PacketIn(frame []byte) {
	l := s.running.Load()
	list := *s.listeners.Load()
	if l == nil || l.schema == nil || len(list) == 0 {
		s.stats.packetIn.Add(1)
		return
	}
	in := l.schema.PacketIn.Decode(frame)
	if in == nil {
		s.stats.packetIn.Add(1)
		return
	}
	m := &p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Packet{Packet: in}}
	for _, x := range list {
		if x.scope != nil && !x.scope.packetIn {
			continue
		}
		if !x.box.offer(m, len(in.Payload), 1) {
			s.stats.packetIn.Add(1)
		}
	}
}

// Digest adds one learning message of the data plane to its list. The fields are in declaration
// order. It copies them and never blocks.
func (s *Server) Digest(name string, fields [][]byte) {
	l := s.running.Load()
	if l == nil || l.digests == nil {
		return
	}
	if list := l.digests.Add(name, fields, s.dev.Now()); list != nil {
		s.sendDigest(l, list)
	}
}

func (s *Server) sendDigest(l *live, d *p4v1.DigestList) {
	d.Timestamp = time.Now().UnixNano()
	m := &p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Digest{Digest: d}}
	if s.broadcast(l, d.DigestId, m, proto.Size(d)) == 0 {
		s.stats.digest.Add(uint64(len(d.Data)))
	}
}

// broadcast offers a message about one object to every primary whose scope contains the object. It
// returns the number of primaries that had room for the message.
func (s *Server) broadcast(l *live, object uint32, m *p4v1.StreamMessageResponse, size int) (delivered int) {
	for _, x := range *s.listeners.Load() {
		if x.scope.allows(l.schema, object) && x.box.offer(m, size, 1) {
			delivered++
		}
	}
	return delivered
}

// Sweep sends the idle notifications and digest lists that are due. Call it at least every 100 ms.
// It never blocks: during a write it leaves idle notifications to the next call.
func (s *Server) Sweep(now units.Time) {
	l := s.running.Load()
	if l == nil || l.state == nil {
		return
	}
	for _, d := range l.digests.Sweep(now) {
		s.sendDigest(l, d)
	}
	if !s.mu.TryLock() {
		return
	}
	idle := l.state.Idle(now)
	s.mu.Unlock()
	for _, n := range idle {
		n.Timestamp = time.Now().UnixNano()
		m := &p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_IdleTimeoutNotification{IdleTimeoutNotification: n}}
		if s.broadcast(l, n.TableEntry[0].TableId, m, proto.Size(n)) == 0 {
			s.stats.idle.Add(1)
		}
	}
}

// SetPortState reports that a port's link went up or down. Group members that watch the port are
// added to the selection or removed from it. It waits for a write in progress, so the switch calls
// it outside of its packet loop.
func (s *Server) SetPortState(port uint32, up bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if up {
		delete(s.down, port)
	} else {
		s.down[port] = true
	}
	for _, l := range []*live{s.running.Load(), s.saved} {
		if l == nil || l.state == nil {
			continue
		}
		if err := l.state.SetPort(port, up); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) packetOut(c arbitration.Client, m *p4v1.PacketOut) error {
	sc, err := s.sender(c)
	if err != nil {
		return err
	}
	if sc != nil && !sc.packetOut {
		return status.Error(codes.PermissionDenied, "the role's configuration does not allow packet-outs")
	}
	if s.opts.CPUPort == 0 {
		return status.Error(codes.FailedPrecondition, "the switch has no CPU port (--cpu-port), so packet-outs have no way in")
	}
	l := s.running.Load()
	if l == nil || l.schema == nil {
		return errNoPipeline
	}
	frame, missing, err := l.schema.PacketOut.Encode(m)
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "packet: %v", err)
	}
	if missing != "" && s.stats.packetOutPartial.Add(1) == 1 {
		s.log.Warn("packet-outs leave out metadata, which is taken as 0; said once, counted from now on", "field", missing)
	}
	s.dev.PacketOut(frame)
	return nil
}

func (s *Server) digestAck(c arbitration.Client, m *p4v1.DigestListAck) error {
	if _, err := s.sender(c); err != nil {
		return err
	}
	l := s.running.Load()
	if l == nil || l.digests == nil {
		return errNoPipeline
	}
	if !l.digests.Ack(m.GetDigestId(), m.GetListId()) {
		return status.Errorf(codes.InvalidArgument, "digest_id is %#x, which is no digest of the P4Info", m.GetDigestId())
	}
	return nil
}

// sender checks that a stream message comes from a primary.
func (s *Server) sender(c arbitration.Client) (*scope, error) {
	s.arbMu.Lock()
	defer s.arbMu.Unlock()
	key, primary, ok := s.arb.RoleOf(c)
	switch {
	case !ok:
		return nil, status.Error(codes.PermissionDenied, "no arbitration update was sent on this stream")
	case !primary:
		return nil, status.Errorf(codes.PermissionDenied, "this client is not the primary of role %v", key)
	}
	return s.scopes[key], nil
}
