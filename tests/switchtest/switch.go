// Package switchtest is a switch for tests of the controller: the embedded switch's P4Runtime
// server over TCP, without packets. A gRPC interceptor in front of it injects faults: refused
// updates, failed and delayed calls, messages and packets that no program sent, and deviations of
// simple_switch_grpc. The process can be stopped with or without its state.
package switchtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/reconcile"
	"github.com/headgate/headgate/internal/clients"
	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/softswitch/p4rt"
	"github.com/headgate/headgate/softswitch/p4rt/entity"
	"github.com/headgate/headgate/softswitch/p4rt/wire"
	"github.com/headgate/headgate/units"
)

// Switch is a switch. mu guards its state. The server can be stopped and started again; the switch keeps its state
// unless Lose is called.
type Switch struct {
	// BMv2 makes the switch deviate as simple_switch_grpc does. When the primary leaves, the next best
	// controller becomes primary without a bid of its own. A switch without a pipeline answers with an empty
	// one. A push of a program that cannot run is OK. Registers cannot be read.
	BMv2 bool
	// NoCPU removes the CPU port from the next Lose on.
	NoCPU bool
	// Externs adds the externs of lossless classes and the PFC watchdog from the next Lose on. They store settings
	// but have no effect.
	Externs bool

	t        testing.TB
	deviceID uint64
	addr     string

	mu       sync.Mutex
	p4rt     *p4rt.Server
	server   *grpc.Server // nil while stopped
	refuse   func(*p4v1.Update) (codes.Code, string)
	onPacket func(*p4v1.PacketOut)
	streams  []*stream
	promoted map[uint64]uint64 // election ids that the server knows instead of the controllers' own
	highest  uint64            // election id that the server has seen
	writes   int               // Write RPCs
	updates  int               // updates that succeeded
	pushes   int               // pipelines that were committed
}

// hosts counts the addresses that were given out.
var hosts atomic.Uint32

// Loopback returns an address of this machine with port 0, another address each time. Its ports stay free until the
// test needs them: no other test, in this process or another, gets the address, and connections to loopback come
// from 127.0.0.1.
func Loopback() string {
	n := hosts.Add(1)
	return fmt.Sprintf("127.%d.%d.%d:0", 1+os.Getpid()%250, n>>8&255, n&255)
}

// New returns a stopped switch with a free TCP address.
func New(t testing.TB, deviceID uint64) *Switch { return NewAt(t, deviceID, Loopback()) }

// NewAt is New with an address. Port 0 means a free port.
func NewAt(t testing.TB, deviceID uint64, address string) *Switch {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := &Switch{t: t, deviceID: deviceID, addr: l.Addr().String()}
	s.Lose()
	t.Cleanup(s.Stop)
	return s
}

// Address returns host:port of the server.
func (s *Switch) Address() string { return s.addr }

// Start begins to serve. Interceptors in opts run before the faults.
func (s *Switch) Start(opts ...grpc.ServerOption) {
	s.t.Helper()
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	g := grpc.NewServer(append(append(p4rt.ServerOptions(clients.Process, nil), opts...), grpc.ChainUnaryInterceptor(s.unary), grpc.ChainStreamInterceptor(s.stream))...)
	s.mu.Lock()
	s.p4rt.Register(g)
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

// Lose drops all state that a restart of the process would lose. The switch must be stopped.
func (s *Switch) Lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := p4rt.Options{DeviceID: s.deviceID, Options: entity.Options{CPUPort: 510, Queues: 8}}
	if s.NoCPU {
		o.CPUPort = 0
	}
	if s.Externs {
		o.Lossless, o.Weights, o.Obeyed, o.Watchdog = &setting[externs.Lossless]{}, &setting[externs.Weights]{}, &setting[externs.Obeyed]{}, &watchdog{}
	}
	s.p4rt = p4rt.New(o, noDevice{})
	s.promoted, s.highest = map[uint64]uint64{}, 0
}

type setting[T any] struct{ is atomic.Pointer[T] }

func (s *setting[T]) Settings() (v T, set bool) {
	if p := s.is.Load(); p != nil {
		return *p, true
	}
	return v, false
}

func (s *setting[T]) Set(v *T) { s.is.Store(v) }

// watchdog stores its settings and never reports a storm.
type watchdog struct{ setting[externs.Settings] }

func (*watchdog) Storms() []externs.Storm { return nil }

type noDevice struct{}

func (noDevice) Commit(*p4rt.Pipeline) {}
func (noDevice) PacketOut([]byte)      {}
func (noDevice) Now() units.Time       { return 0 }

// SetRefuse sets a function that returns a code and message for an update, OK to let it pass; nil lets
// all pass.
func (s *Switch) SetRefuse(f func(*p4v1.Update) (codes.Code, string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = f
}

// OnPacket sets a function that takes packet-outs in place of the switch. It is called without locks.
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
	for _, c := range s.streams {
		if c.primary {
			_ = c.ServerStream.SendMsg(m) // fails only if the stream is ending
		}
	}
}

// Counts returns how many Write RPCs there were, updates that succeeded, and pushes.
func (s *Switch) Counts() (writes, updates, pushes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes, s.updates, s.pushes
}

// Entities returns how many entities the switch holds.
func (s *Switch) Entities() int { return len(s.Describe()) }

// Describe returns the entities as lines, sorted by key.
func (s *Switch) Describe() []string {
	p, list := s.holds()
	lines := make([]string, len(list))
	for i, e := range list {
		lines[i] = p.Describe(e)
	}
	return lines
}

// Delete deletes the first entity for which f is true, without the controller's knowledge.
func (s *Switch) Delete(f func(line string) bool) error {
	p, list := s.holds()
	for _, e := range list {
		if f(p.Describe(e)) {
			s.mu.Lock()
			defer s.mu.Unlock()
			_, err := s.p4rt.Write(context.Background(), &p4v1.WriteRequest{
				DeviceId: s.deviceID, ElectionId: &p4v1.Uint128{Low: s.highest}, Updates: []*p4v1.Update{{Type: p4v1.Update_DELETE, Entity: e}},
			})
			return err
		}
	}
	return fmt.Errorf("no such entity")
}

// holds reads the switch as the controller does, but without the faults.
func (s *Switch) holds() (*pipeline.Pipeline, []*p4v1.Entity) {
	s.mu.Lock()
	server := s.p4rt
	s.mu.Unlock()
	r, err := server.GetForwardingPipelineConfig(context.Background(), &p4v1.GetForwardingPipelineConfigRequest{DeviceId: s.deviceID})
	if err != nil {
		return nil, nil // no pipeline, no entities
	}
	p, err := pipeline.New(r.GetConfig().GetP4Info(), r.GetConfig().GetP4DeviceConfig())
	if err != nil {
		s.t.Error(err)
		return nil, nil
	}
	have, _, err := reconcile.Read(context.Background(), reader{server, s.deviceID}, p, externs.SettingsID)
	if err != nil {
		s.t.Error(err)
		return p, nil
	}
	return p, have.Entities()
}

type reader struct {
	server *p4rt.Server
	device uint64
}

// Read implements reconcile.Reader.
func (r reader) Read(_ context.Context, requests ...*p4v1.Entity) ([]*p4v1.Entity, error) {
	var got answers
	err := r.server.Read(&p4v1.ReadRequest{DeviceId: r.device, Entities: requests}, &got)
	for _, d := range status.Convert(err).Details() { // details of the only request
		err = status.Error(codes.Code(uint32(d.(*p4v1.Error).GetCanonicalCode())), d.(*p4v1.Error).GetMessage())
	}
	return got.list, err
}

type answers struct {
	p4v1.P4Runtime_ReadServer
	list []*p4v1.Entity
}

func (*answers) Context() context.Context { return context.Background() }
func (a *answers) SendMsg(m any) error {
	var got p4v1.ReadResponse
	if err := proto.Unmarshal(m.(wire.Encoded), &got); err != nil {
		return err
	}
	a.list = append(a.list, got.GetEntities()...)
	return nil
}
