package p4rt

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/headgate/headgate/internal/clients"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/entity"
	"github.com/headgate/headgate/softswitch/p4rt/internal/p4test"
	"github.com/headgate/headgate/units"
)

const (
	deviceID = 3
	cpuPort  = 510
)

// wait is the time that a test waits for an expected message, on a busy machine.
const wait = 60 * time.Second

// device is a switch without traffic manager: what ingress enqueues goes through egress at
// once.
type device struct {
	mu      sync.Mutex
	server  *Server
	running *Pipeline
	commits int
	clock   units.Time
	outs    [][]byte // packet-outs
	sent    map[uint32]int
}

func (d *device) Commit(p *Pipeline) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running = p
	d.commits++
}

func (d *device) PacketOut(frame []byte) {
	d.mu.Lock()
	d.outs = append(d.outs, frame)
	d.mu.Unlock()
	d.inject(d.server.opts.CPUPort, frame)
}

func (d *device) Now() units.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clock
}

func (d *device) set(now units.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clock = now
}

func (d *device) committed() (*Pipeline, int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running, d.commits
}

// inject runs a frame through the switch.
func (d *device) inject(port uint32, frame []byte) {
	p, _ := d.committed()
	now := d.Now()
	p.Instance.Ingress(p.Instance.Receive(port, frame, now), now, &pass{d, p})
}

// pass is the engine's Out for one packet.
type pass struct {
	d *device
	p *Pipeline
}

func (o *pass) Enqueue(p *engine.Packet)     { o.p.Instance.Egress(p, o.d.Now(), o) }
func (o *pass) Recirculate(p *engine.Packet) { p.Free() }
func (o *pass) Dropped(uint32, engine.Drop)  {}

func (o *pass) Transmit(port uint32, frame []byte) {
	o.d.mu.Lock()
	o.d.sent[port]++
	o.d.mu.Unlock()
	if port == o.d.server.opts.CPUPort {
		o.d.server.PacketIn(frame)
	}
}

func (o *pass) Digest(name string, fields [][]byte) { o.d.server.Digest(name, fields) }

// rig is a server on an in-memory connection.
type rig struct {
	*Server
	t      testing.TB
	dev    *device
	conn   *grpc.ClientConn
	client p4v1.P4RuntimeClient
	ctx    context.Context
}

func newRig(t testing.TB, edit ...func(*Options)) *rig {
	t.Helper()
	before := goleak.IgnoreCurrent()
	opts := Options{DeviceID: deviceID, Options: entity.Options{CPUPort: cpuPort, Queues: 8}, StreamQueue: 64}
	for _, e := range edit {
		e(&opts)
	}
	dev := &device{sent: map[uint32]int{}}
	s := New(opts, dev)
	dev.server = s
	l := bufconn.Listen(1 << 20)
	gs := grpc.NewServer(ServerOptions(clients.Process, nil)...)
	s.Register(gs)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = gs.Serve(l) // ends with the listener
	}()
	conn, err := grpc.NewClient("passthrough:///switch",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 6*wait)
	t.Cleanup(func() {
		cancel()
		s.Close()
		gs.Stop()
		<-served
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if err := goleak.Find(before); err != nil {
			t.Error(err)
		}
	})
	return &rig{s, t, dev, conn, p4v1.NewP4RuntimeClient(conn), ctx}
}

// running is a rig with the test program committed by the primary of the default role,
// whose stream is returned.
func running(t testing.TB, edit ...func(*Options)) (*rig, *session) {
	t.Helper()
	r := newRig(t, edit...)
	s := r.open()
	s.become(1)
	r.push(p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, p4test.Config(), codes.OK)
	return r, s
}

func (r *rig) set(action p4v1.SetForwardingPipelineConfigRequest_Action, cfg *p4v1.ForwardingPipelineConfig) error {
	_, err := r.client.SetForwardingPipelineConfig(r.ctx, &p4v1.SetForwardingPipelineConfigRequest{
		DeviceId: deviceID, ElectionId: id(1), Action: action, Config: cfg,
	})
	return err
}

func (r *rig) push(action p4v1.SetForwardingPipelineConfigRequest_Action, cfg *p4v1.ForwardingPipelineConfig, want codes.Code) {
	r.t.Helper()
	if err := r.set(action, cfg); status.Code(err) != want {
		r.t.Fatalf("%v: %v, want %v", action, err, want)
	}
}

func id(low uint64) *p4v1.Uint128 { return &p4v1.Uint128{Low: low} }

func (r *rig) write(us ...*p4v1.Update) error {
	_, err := r.client.Write(r.ctx, &p4v1.WriteRequest{DeviceId: deviceID, ElectionId: id(1), Updates: us})
	return err
}

func (r *rig) mustWrite(us ...*p4v1.Update) {
	r.t.Helper()
	if err := r.write(us...); err != nil {
		r.t.Fatalf("%v %v", err, details(r.t, err))
	}
}

func (r *rig) read(req *p4v1.ReadRequest) (entities []*p4v1.Entity, chunks int, err error) {
	r.t.Helper()
	stream, err := r.client.Read(r.ctx, req)
	if err != nil {
		return nil, 0, err
	}
	for {
		m, err := stream.Recv()
		if err == io.EOF {
			return entities, chunks, nil
		}
		if err != nil {
			return entities, chunks, err
		}
		chunks++
		entities = append(entities, m.Entities...)
	}
}

func (r *rig) wantRead(req any, want ...any) {
	r.t.Helper()
	got, _, err := r.read(&p4v1.ReadRequest{DeviceId: deviceID, Entities: []*p4v1.Entity{p4rtmsg.Entity(req)}})
	if err != nil {
		r.t.Fatal(err)
	}
	var list []*p4v1.Entity
	for _, w := range want {
		list = append(list, p4rtmsg.Entity(w))
	}
	if diff := cmp.Diff(list, got, protocmp.Transform()); diff != "" {
		r.t.Errorf("read %v (-want +got):\n%s", req, diff)
	}
}

// details returns the codes of the p4.Errors in a status.
func details(t testing.TB, err error) []codes.Code {
	t.Helper()
	var out []codes.Code
	for _, d := range status.Convert(err).Details() {
		e, ok := d.(*p4v1.Error)
		if !ok {
			t.Fatalf("detail %T", d)
		}
		if c := codes.Code(e.CanonicalCode); c != codes.OK && (e.Message == "" || e.Space == "") {
			t.Errorf("p4.Error without message or space: %v", e)
		}
		out = append(out, codes.Code(e.CanonicalCode))
	}
	return out
}

// session is one stream.
type session struct {
	p4v1.P4Runtime_StreamChannelClient
	t        testing.TB
	messages chan *p4v1.StreamMessageResponse
	ended    chan error
}

// open starts a stream whose messages are received in the background.
func (r *rig) open() *session {
	r.t.Helper()
	stream, err := r.client.StreamChannel(r.ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	s := &session{stream, r.t, make(chan *p4v1.StreamMessageResponse, 1000), make(chan error, 1)}
	go func() {
		for {
			m, err := stream.Recv()
			if err != nil {
				s.ended <- err
				return
			}
			s.messages <- m
		}
	}()
	return s
}

func (s *session) send(m *p4v1.StreamMessageRequest) {
	s.t.Helper()
	if err := s.Send(m); err != nil {
		s.t.Fatal(err)
	}
}

func (s *session) arbitrate(m *p4v1.MasterArbitrationUpdate) {
	s.t.Helper()
	s.send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Arbitration{Arbitration: m}})
}

// become sends an election id and waits until the client is the primary.
func (s *session) become(low uint64) {
	s.t.Helper()
	s.arbitrate(&p4v1.MasterArbitrationUpdate{DeviceId: deviceID, ElectionId: id(low)})
	s.told(codes.OK)
}

func (s *session) next() *p4v1.StreamMessageResponse {
	s.t.Helper()
	select {
	case m := <-s.messages:
		return m
	case err := <-s.ended:
		s.t.Fatalf("the stream ended: %v", err)
	case <-time.After(wait):
		s.t.Fatal("no message came")
	}
	return nil
}

// told checks that the next message is an arbitration update with a status.
func (s *session) told(want codes.Code) *p4v1.MasterArbitrationUpdate {
	s.t.Helper()
	m := s.next()
	a := m.GetArbitration()
	if a == nil || codes.Code(a.Status.GetCode()) != want {
		s.t.Fatalf("told %v, want arbitration %v", m, want)
	}
	return a
}

func (s *session) ends(want codes.Code) {
	s.t.Helper()
	select {
	case err := <-s.ended:
		if err == io.EOF {
			err = nil
		}
		if status.Code(err) != want {
			s.t.Fatalf("the stream ended with %v, want %v", err, want)
		}
	case <-time.After(wait):
		s.t.Fatal("the stream did not end")
	}
}

// failed checks that the next message is a StreamError with a code.
func (s *session) failed(want codes.Code) *p4v1.StreamError {
	s.t.Helper()
	m := s.next()
	e := m.GetError()
	if e == nil || codes.Code(e.CanonicalCode) != want || e.Details == nil || e.Message == "" {
		s.t.Fatalf("got %v, want StreamError %v", m, want)
	}
	return e
}

func l2(dst, port uint64) *p4v1.TableEntry {
	return p4test.Entry("l2", 0, p4test.Do("forward", port), p4rtmsg.Exact(1, dst))
}
