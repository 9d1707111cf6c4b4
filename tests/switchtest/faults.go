package switchtest

import (
	"context"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

func (s *Switch) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	switch r := req.(type) {
	case *p4v1.WriteRequest:
		r.ElectionId = s.known(r.GetElectionId())
		return s.write(ctx, r, next)
	case *p4v1.SetForwardingPipelineConfigRequest:
		r.ElectionId = s.known(r.GetElectionId())
		answer, err := next(ctx, req)
		if err == nil {
			s.mu.Lock()
			s.pushes++
			s.mu.Unlock()
		}
		if s.BMv2 && status.Code(err) == codes.InvalidArgument {
			return &p4v1.SetForwardingPipelineConfigResponse{}, nil
		}
		return answer, err
	case *p4v1.GetForwardingPipelineConfigRequest:
		answer, err := next(ctx, req)
		if s.BMv2 && status.Code(err) == codes.FailedPrecondition {
			return &p4v1.GetForwardingPipelineConfigResponse{Config: &p4v1.ForwardingPipelineConfig{}}, nil
		}
		return answer, err
	}
	return next(ctx, req)
}

// write passes on the updates that the test does not refuse. It merges the errors of refused updates with the
// switch's errors.
func (s *Switch) write(ctx context.Context, r *p4v1.WriteRequest, next grpc.UnaryHandler) (any, error) {
	s.mu.Lock()
	s.writes++
	refuse := s.refuse
	s.mu.Unlock()
	details := make([]*p4v1.Error, len(r.GetUpdates()))
	var passed []int // indices of updates
	var updates []*p4v1.Update
	for i, u := range r.GetUpdates() {
		details[i] = &p4v1.Error{}
		if refuse != nil {
			code, text := refuse(u)
			details[i].CanonicalCode, details[i].Message = int32(code), text
		}
		if details[i].CanonicalCode == int32(codes.OK) {
			passed, updates = append(passed, i), append(updates, u)
		}
	}
	r.Updates = updates
	answer, err := next(ctx, r)
	st := status.Convert(err)
	if err != nil && len(st.Details()) != len(passed) {
		return answer, err // the error concerns the whole batch
	}
	for i, d := range st.Details() {
		details[passed[i]] = d.(*p4v1.Error)
	}
	failed := 0
	st = status.New(codes.Unknown, "some updates failed")
	for _, d := range details {
		if d.GetCanonicalCode() != int32(codes.OK) {
			failed++
		}
		st, _ = st.WithDetails(d)
	}
	s.mu.Lock()
	s.updates += len(details) - failed
	s.mu.Unlock()
	if failed > 0 {
		return nil, st.Err()
	}
	return answer, nil
}

type reads struct {
	grpc.ServerStream
	s *Switch
}

// RecvMsg implements grpc.ServerStream.
func (r *reads) RecvMsg(m any) error {
	err := r.ServerStream.RecvMsg(m)
	for _, e := range m.(*p4v1.ReadRequest).GetEntities() {
		if r.s.BMv2 && e.GetRegisterEntry() != nil {
			return status.Error(codes.Unimplemented, "Register reads are not supported yet")
		}
	}
	return err
}

type stream struct {
	grpc.ServerStream
	s       *Switch
	id      uint64 // the controller's election id
	primary bool
	in      chan *p4v1.StreamMessageRequest
	ended   chan struct{} // closed once err is set
	err     error
}

func (s *Switch) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if !info.IsClientStream {
		return next(srv, &reads{ss, s})
	}
	c := &stream{ServerStream: ss, s: s, in: make(chan *p4v1.StreamMessageRequest, 1), ended: make(chan struct{})}
	s.mu.Lock()
	s.streams = append(s.streams, c)
	s.mu.Unlock()
	go c.receive()
	err := next(srv, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams = slices.DeleteFunc(s.streams, func(o *stream) bool { return o == c })
	if s.BMv2 && c.primary {
		s.promote()
	}
	return err
}

// promote makes the remaining controller with the highest election id primary. It bids for it with an id above all
// that the server has seen.
func (s *Switch) promote() {
	var best *stream
	for _, c := range s.streams {
		if c.id > 0 && (best == nil || c.id > best.id) {
			best = c
		}
	}
	if best == nil {
		return
	}
	s.highest++
	s.promoted[best.id] = s.highest
	best.in <- &p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Arbitration{Arbitration: &p4v1.MasterArbitrationUpdate{
		DeviceId: s.deviceID, ElectionId: &p4v1.Uint128{Low: s.highest},
	}}}
}

// known returns the election id under which the server knows a controller.
func (s *Switch) known(id *p4v1.Uint128) *p4v1.Uint128 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other, ok := s.promoted[id.GetLow()]; ok {
		return &p4v1.Uint128{Low: other}
	}
	return id
}

// receive reads the controller's messages. It passes on those that the test does not take.
func (c *stream) receive() {
	defer close(c.ended)
	for {
		m := &p4v1.StreamMessageRequest{}
		if c.err = c.ServerStream.RecvMsg(m); c.err != nil {
			return
		}
		c.s.mu.Lock()
		onPacket := c.s.onPacket
		if a := m.GetArbitration(); a != nil {
			c.id = a.GetElectionId().GetLow()
			c.s.highest = max(c.s.highest, c.id)
		}
		primary := c.primary
		c.s.mu.Unlock()
		if p := m.GetPacket(); p != nil && onPacket != nil {
			if primary {
				onPacket(p)
			}
			continue
		}
		select {
		case c.in <- m:
		case <-c.Context().Done():
			c.err = c.Context().Err()
			return
		}
	}
}

// RecvMsg implements grpc.ServerStream.
func (c *stream) RecvMsg(m any) error {
	select {
	case got := <-c.in:
		proto.Merge(m.(proto.Message), got)
		return nil
	case <-c.ended:
		return c.err
	}
}

// SendMsg implements grpc.ServerStream: it notes who is primary.
func (c *stream) SendMsg(m any) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if a := m.(*p4v1.StreamMessageResponse).GetArbitration(); a != nil {
		if c.primary = a.GetStatus().GetCode() == int32(codes.OK); c.primary && c.s.promoted[c.id] != 0 {
			own := proto.Clone(m.(proto.Message)).(*p4v1.StreamMessageResponse)
			own.GetArbitration().ElectionId = &p4v1.Uint128{Low: c.id}
			m = own
		}
	}
	return c.ServerStream.SendMsg(m)
}
