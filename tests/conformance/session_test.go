package conformance

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/tests/dataplane/target"
)

// session is one client's stream. The test's goroutine owns it.
type session struct {
	t        *testing.T
	stream   p4v1.P4Runtime_StreamChannelClient
	messages chan *p4v1.StreamMessageResponse // closed when the stream ends
	end      error                            // reason of its end; valid when messages is closed
}

func (r *rig) open() *session {
	r.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := r.client.StreamChannel(ctx, grpc.WaitForReady(true))
	if err != nil {
		cancel()
		r.Fatal(err)
	}
	s := &session{t: r.T, stream: stream, messages: make(chan *p4v1.StreamMessageResponse, 1024)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(s.messages)
		for {
			m, err := stream.Recv()
			if err != nil {
				s.end = err
				return
			}
			s.messages <- m
		}
	}()
	r.Cleanup(func() {
		cancel()
		<-done
	})
	return s
}

func (s *session) send(m *p4v1.StreamMessageRequest) {
	s.t.Helper()
	// The receiving side of a stream that the server ended returns the reason.
	if err := s.stream.Send(m); err != nil && !errors.Is(err, io.EOF) {
		s.t.Fatal(err)
	}
}

// device is an arbitration update for the device under test; a nil id is unset.
func device(id *p4v1.Uint128) *p4v1.MasterArbitrationUpdate {
	return &p4v1.MasterArbitrationUpdate{DeviceId: target.DeviceID, ElectionId: id}
}

func (s *session) arbitrate(m *p4v1.MasterArbitrationUpdate) {
	s.t.Helper()
	s.send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Arbitration{Arbitration: m}})
}

// next returns the next message, or nil if none arrives in time.
func (s *session) next(wait time.Duration) *p4v1.StreamMessageResponse {
	s.t.Helper()
	select {
	case m, ok := <-s.messages:
		if !ok {
			s.t.Fatalf("the stream ended: %v", s.end)
		}
		return m
	case <-time.After(wait):
		return nil
	}
}

// told checks that the next message is an arbitration update with a status.
func (s *session) told(want codes.Code) *p4v1.MasterArbitrationUpdate {
	s.t.Helper()
	m := s.next(patience)
	if got := m.GetArbitration(); got == nil || codes.Code(got.GetStatus().GetCode()) != want {
		s.t.Fatalf("told %v, want %v", m, want)
	}
	return m.GetArbitration()
}

// ends checks that the stream ends with a status.
func (s *session) ends(want codes.Code) {
	s.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case m, ok := <-s.messages:
			if ok {
				s.t.Errorf("told %v, want the end of the stream", m)
				continue
			}
			got := status.Code(s.end)
			if errors.Is(s.end, io.EOF) {
				got = codes.OK
			}
			if got != want {
				s.t.Errorf("the stream ended with %v, want %v", s.end, want)
			}
		case <-deadline:
			s.t.Errorf("the stream goes on, want its end with %v", want)
		}
		return
	}
}

// close ends the stream regularly.
func (s *session) close() {
	s.t.Helper()
	if err := s.stream.CloseSend(); err != nil {
		s.t.Fatal(err)
	}
	s.ends(codes.OK)
}
