package fakeswitch

import (
	"context"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// StreamChannel serves one controller.
func (s *Switch) StreamChannel(stream p4v1.P4Runtime_StreamChannelServer) error {
	c := &client{send: make(chan *p4v1.StreamMessageResponse, 1024), quit: make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- s.listen(stream, c) }()
	defer s.leave(c)
	for {
		select {
		case err := <-ended:
			return err
		case <-stream.Context().Done():
			return stream.Context().Err()
		case m := <-c.send:
			if err := stream.Send(m); err != nil {
				return err
			}
		}
	}
}

func (s *Switch) listen(stream p4v1.P4Runtime_StreamChannelServer, c *client) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		switch x := m.GetUpdate().(type) {
		case *p4v1.StreamMessageRequest_Arbitration:
			if err := s.bid(c, x.Arbitration); err != nil {
				return err
			}
		case *p4v1.StreamMessageRequest_Packet:
			s.mu.Lock()
			f, primary := s.onPacket, s.primary() == c
			s.mu.Unlock()
			if f != nil && primary {
				f(x.Packet)
			}
		}
	}
}

func (s *Switch) bid(c *client, a *p4v1.MasterArbitrationUpdate) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.GetDeviceId() != s.deviceID {
		return status.Errorf(codes.NotFound, "no device %d", a.GetDeviceId())
	}
	for _, other := range s.clients {
		if other != c && compare(other.id, a.GetElectionId()) == 0 {
			return status.Error(codes.InvalidArgument, "Election id already exists")
		}
	}
	if c.id == nil {
		s.clients = append(s.clients, c)
	}
	c.id = a.GetElectionId()
	if s.highest == nil || compare(s.highest, c.id) < 0 {
		s.highest = c.id
	}
	s.announce()
	return nil
}

func (s *Switch) leave(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.clients {
		if other == c {
			s.clients = append(s.clients[:i], s.clients[i+1:]...)
			s.announce()
			return
		}
	}
}

// primary is the controller with the highest id ever seen, or on BMv2 the best present.
func (s *Switch) primary() *client {
	var best *client
	for _, c := range s.clients {
		if best == nil || compare(best.id, c.id) < 0 {
			best = c
		}
	}
	if best == nil || !s.BMv2 && compare(best.id, s.highest) < 0 {
		return nil
	}
	return best
}

func (s *Switch) announce() {
	primary := s.primary()
	for _, c := range s.clients {
		a := &p4v1.MasterArbitrationUpdate{DeviceId: s.deviceID, ElectionId: s.highest, Status: &statuspb.Status{}}
		switch {
		case primary == nil:
			a.Status.Code = int32(codes.NotFound)
		case c != primary:
			a.ElectionId, a.Status.Code = primary.id, int32(codes.AlreadyExists)
		}
		c.send <- &p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Arbitration{Arbitration: a}}
	}
}

func compare(a, b *p4v1.Uint128) int {
	switch {
	case a.GetHigh() != b.GetHigh():
		return sign(a.GetHigh() < b.GetHigh())
	case a.GetLow() != b.GetLow():
		return sign(a.GetLow() < b.GetLow())
	}
	return 0
}

func sign(less bool) int {
	if less {
		return -1
	}
	return 1
}

// authorized reports whether a write with that id comes from the primary.
func (s *Switch) authorized(id *p4v1.Uint128) error {
	p := s.primary()
	if p == nil || compare(p.id, id) != 0 {
		return status.Error(codes.PermissionDenied, "not primary")
	}
	return nil
}

// Capabilities tells the version.
func (s *Switch) Capabilities(context.Context, *p4v1.CapabilitiesRequest) (*p4v1.CapabilitiesResponse, error) {
	return &p4v1.CapabilitiesResponse{P4RuntimeApiVersion: "1.3.0"}, nil
}
