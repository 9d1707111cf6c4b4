package scale

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"

	"github.com/headgate/headgate/internal/clients"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
	"github.com/headgate/headgate/softswitch/p4rt"
	"github.com/headgate/headgate/softswitch/p4rt/entity"
	"github.com/headgate/headgate/tests/switchtest"
	"github.com/headgate/headgate/units"
)

// farm is the switches of a fabric.
type farm struct {
	*fabric
	list  []*server
	peers map[end]peer
	cut   []atomic.Bool // by link

	mu     sync.Mutex
	writes map[int]int // Write RPCs by switch, since begin
	last   time.Time   // end of the last one
}

// peer is the other end of a port's cable.
type peer struct {
	end
	link int
}

// server is one switch; mu guards the fields that a restart replaces.
type server struct {
	farm *farm
	at   int // index in the fabric
	addr string

	mu   sync.Mutex
	p4rt *p4rt.Server
	grpc *grpc.Server // nil while stopped
}

// newFarm starts the switches.
func newFarm(t testing.TB, f *fabric) *farm {
	t.Helper()
	fm := &farm{fabric: f, peers: map[end]peer{}, cut: make([]atomic.Bool, len(f.links)), writes: map[int]int{}}
	for i, l := range f.links {
		fm.peers[l[0]], fm.peers[l[1]] = peer{l[1], i}, peer{l[0], i}
	}
	for i := range f.switches {
		s := &server{farm: fm, at: i, addr: switchtest.Loopback()}
		fm.list = append(fm.list, s)
		if err := s.start(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, s := range fm.list {
			s.stop()
		}
	})
	return fm
}

// addresses returns the switches' addresses, in order.
func (fm *farm) addresses() []string {
	var list []string
	for _, s := range fm.list {
		list = append(list, s.addr)
	}
	return list
}

// start serves a switch that has just been switched on and is empty.
func (s *server) start() error {
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		return err
	}
	p := p4rt.New(p4rt.Options{DeviceID: uint64(s.at + 1), Options: entity.Options{CPUPort: ids.CPUPort, Queues: ids.QueuesPerPort}}, s)
	g := grpc.NewServer(append(p4rt.ServerOptions(clients.Process, nil), grpc.UnaryInterceptor(s.count))...)
	p.Register(g)
	s.mu.Lock()
	s.addr, s.p4rt, s.grpc = l.Addr().String(), p, g
	s.mu.Unlock()
	go func() { _ = g.Serve(l) }() // ends with stop
	return nil
}

// stop ends a switch as if its process ended.
func (s *server) stop() {
	s.mu.Lock()
	g := s.grpc
	s.grpc, s.p4rt = nil, nil
	s.mu.Unlock()
	if g != nil {
		g.Stop()
	}
}

// count records the end of a write.
func (s *server) count(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	resp, err := handle(ctx, req)
	if _, ok := req.(*p4v1.WriteRequest); ok {
		s.farm.mu.Lock()
		s.farm.writes[s.at]++
		s.farm.last = time.Now()
		s.farm.mu.Unlock()
	}
	return resp, err
}

// written returns the writes since begin: the number of switches, the number of writes, and the end of the last.
func (fm *farm) written() (switches, writes int, last time.Time) {
	fm.mu.Lock()
	defer fm.mu.Unlock()
	for _, n := range fm.writes {
		writes += n
	}
	return len(fm.writes), writes, fm.last
}

// begin restarts the count of writes.
func (fm *farm) begin() {
	fm.mu.Lock()
	defer fm.mu.Unlock()
	clear(fm.writes)
	fm.last = time.Time{}
}

// Commit implements p4rt.Device.
func (*server) Commit(*p4rt.Pipeline) {}

// Now implements p4rt.Device.
func (*server) Now() units.Time { return 0 }

// The reasons of packet-ins.
const probed = 2

// PacketOut implements p4rt.Device: it answers polls, carries probes, and drops other packets.
func (s *server) PacketOut(frame []byte) {
	head := binary.BigEndian.Uint16(frame)
	port, mode, payload := uint32(head>>7), head&15, frame[ids.PacketOutBytes:]
	switch mode {
	case ids.PacketOutPoll:
		r := pollreport.Report{Port: port, DepartedBytes: 1000, DepartedPackets: 10}
		s.toController(port, ids.PacketInPoll, append(r.Append(nil), payload...))
	case ids.PacketOutPort:
		if to, ok := s.farm.peers[end{s.at, port}]; ok && !s.farm.cut[to.link].Load() {
			s.farm.list[to.sw].toController(to.port, probed, payload)
		}
	}
}

func (s *server) toController(port uint32, reason uint16, payload []byte) {
	s.mu.Lock()
	p := s.p4rt
	s.mu.Unlock()
	if p != nil {
		p.PacketIn(append(binary.BigEndian.AppendUint16(nil, uint16(port)<<7|reason), payload...))
	}
}
