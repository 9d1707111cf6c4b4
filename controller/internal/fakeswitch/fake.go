// Package fakeswitch is a P4Runtime server for tests of the controller: no packets, but
// arbitration, pipelines and entities with the rules of the specification, or with the
// deviations of simple_switch_grpc, and a place to inject faults.
package fakeswitch

import (
	"fmt"
	"net"
	"sync"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/controller/reconcile"
)

// Switch is a fake switch. All its state is under mu; the server may be stopped and
// started again, which keeps or loses the state as asked.
type Switch struct {
	p4v1.UnimplementedP4RuntimeServer

	// BMv2 makes it deviate as simple_switch_grpc does: the next best controller is
	// promoted by itself, and a switch without a pipeline answers with an empty one.
	BMv2 bool
	// Trusting skips the check of references after each update, which is slow.
	Trusting bool
	// Refuse may return a code and message for an update; OK lets it pass. Set it through
	// SetRefuse while the switch runs.
	refuse func(*p4v1.Update) (codes.Code, string)
	// onPacket takes packet-outs.
	onPacket func(*p4v1.PacketOut)

	t        testing.TB
	deviceID uint64
	addr     string

	mu       sync.Mutex
	server   *grpc.Server
	config   *p4v1.ForwardingPipelineConfig
	pipe     *pipeline.Pipeline
	entities map[reconcile.Key]*p4v1.Entity
	clients  []*client
	highest  *p4v1.Uint128
	writes   int // Write RPCs
	updates  int // updates that succeeded
	pushes   int
}

// client is one stream.
type client struct {
	id   *p4v1.Uint128
	send chan *p4v1.StreamMessageResponse
	quit chan struct{}
}

// New returns a stopped switch with a free TCP address.
func New(t testing.TB, deviceID uint64) *Switch {
	t.Helper()
	// An address for each id, so that a port that is free again cannot be given out twice.
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.1.%d:0", deviceID))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := &Switch{t: t, deviceID: deviceID, addr: l.Addr().String(), entities: map[reconcile.Key]*p4v1.Entity{}}
	t.Cleanup(func() { s.Stop() })
	return s
}

// Address returns host:port of the server.
func (s *Switch) Address() string { return s.addr }

// Start begins to serve, with interceptors if any.
func (s *Switch) Start(opts ...grpc.ServerOption) {
	s.t.Helper()
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	g := grpc.NewServer(opts...)
	p4v1.RegisterP4RuntimeServer(g, s)
	s.mu.Lock()
	s.server = g
	s.mu.Unlock()
	go g.Serve(l) // ends with Stop
}

// Stop ends the server at once, as a crash of its process would; the state stays.
func (s *Switch) Stop() {
	s.mu.Lock()
	g := s.server
	s.server = nil
	s.mu.Unlock()
	if g != nil {
		g.Stop()
	}
}

// Lose forgets everything that a restart of the process would forget.
func (s *Switch) Lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config, s.pipe, s.highest = nil, nil, nil
	clear(s.entities)
}

// SetRefuse sets what refuses updates; nil lets all pass.
func (s *Switch) SetRefuse(f func(*p4v1.Update) (codes.Code, string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = f
}

// OnPacket sets what takes packet-outs. It is called without locks.
func (s *Switch) OnPacket(f func(*p4v1.PacketOut)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onPacket = f
}

// PacketIn sends a packet to the primary; it is lost when there is none.
func (s *Switch) PacketIn(p *p4v1.PacketIn) {
	s.ToPrimary(&p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Packet{Packet: p}})
}

// ToPrimary sends any message to the primary; it is lost when there is none.
func (s *Switch) ToPrimary(m *p4v1.StreamMessageResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.primary(); c != nil {
		select {
		case c.send <- m:
		default:
		}
	}
}

// Entities returns how many entities the switch holds.
func (s *Switch) Entities() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entities)
}

// Counts returns how many Write RPCs there were, updates that succeeded, and pushes.
func (s *Switch) Counts() (writes, updates, pushes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes, s.updates, s.pushes
}

// Describe returns the entities as lines, sorted by key.
func (s *Switch) Describe() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := &reconcile.State{}
	for _, e := range s.entities {
		if err := state.Add(e); err != nil {
			s.t.Error(err)
		}
	}
	var lines []string
	for _, e := range state.Entities() {
		lines = append(lines, s.pipe.Describe(e))
	}
	return lines
}

// Corrupt deletes the first entity for which f is true, behind the controller's back.
func (s *Switch) Corrupt(f func(line string) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, e := range s.entities {
		if f(s.pipe.Describe(e)) {
			delete(s.entities, k)
			return nil
		}
	}
	return fmt.Errorf("no such entity")
}
