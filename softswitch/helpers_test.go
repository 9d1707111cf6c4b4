package softswitch

import (
	"encoding/binary"
	"log/slog"
	"os"
	"sync"
	"testing"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/units"
)

const (
	us      = units.Microsecond
	ms      = units.Millisecond
	cpuPort = 510
)

// echo returns a new instance of testdata/echo.p4.
func echo(t testing.TB, queues int) *p4rt.Pipeline { return instance(t, "testdata/echo.json", queues) }

// loops returns a new instance of testdata/loops.json. It forwards to port 2. The first byte of a
// frame selects what else it does:
//
//	1  ingress sets register "paused" and clones to session 1, egress clears it and clones to session 1
//	2  ingress resubmits it for ever
//	3  egress recirculates it for ever
//	4  egress clones it, and its clones, to session 2
//
// The ingress clone of 1 leaves with a first byte of 0x11, the egress clone with 0x12.
func loops(t testing.TB) *p4rt.Pipeline { return instance(t, "testdata/loops.json", 8) }

func instance(t testing.TB, file string, queues int) *p4rt.Pipeline {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	prog, err := engine.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	return &p4rt.Pipeline{Program: prog, Instance: engine.New(prog, engine.Options{Queues: queues})}
}

func config(name string) Config {
	return Config{
		Name:    name,
		CPUPort: cpuPort,
		Traffic: tm.Config{Queues: 8},
		Log:     slog.New(slog.DiscardHandler),
	}
}

// onLoop makes a switch that runs echo, with ports 1 to n of a rate.
func onLoop(t testing.TB, loop *clock.Loop, name string, n int, rate units.Rate) (*Switch, []*Port) {
	t.Helper()
	s, err := NewOnLoop(loop, config(name))
	if err != nil {
		t.Fatal(err)
	}
	s.Commit(echo(t, 8))
	ports := make([]*Port, n+1)
	for i := 1; i <= n; i++ {
		if ports[i], err = s.AddPort(uint32(i), rate); err != nil {
			t.Fatal(err)
		}
	}
	return s, ports
}

// host is an endpoint that keeps what it receives.
type host struct {
	loop *clock.Loop
	out  Sender
	up   bool
	got  []arrived
}

type arrived struct {
	at units.Time
	report
}

func (h *host) Attach(out Sender) { h.out = out }
func (h *host) SetUp(up bool)     { h.up = up }
func (h *host) Receive(frame []byte, now units.Time) {
	h.got = append(h.got, arrived{now, decode(frame)})
}

// send sends a frame whose last bit leaves at time at.
func (h *host) send(at units.Time, frame []byte) {
	h.loop.Schedule(at, func() { h.out.Send(frame, at) })
}

func connect(t testing.TB, loop *clock.Loop, delay units.Time, a, b Endpoint) *Link {
	t.Helper()
	l, err := Connect(loop, delay, a, b)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// report is what echo.p4 writes into a frame.
type report struct {
	port, rounds, queue uint8
	enq, delta          uint32 // us
	enqDepth, deqDepth  uint16
	ingress             uint16
	seq                 uint32
	length              int
}

// frame makes a frame of n bytes for a port and queue, with a sequence number.
func frame(port, queue uint8, seq uint32, n int) []byte {
	f := make([]byte, n)
	f[5], f[14] = port, queue
	binary.BigEndian.PutUint32(f[30:], seq)
	return f
}

func decode(f []byte) report {
	be := binary.BigEndian
	return report{
		port: f[5], queue: f[14], rounds: f[15], enq: be.Uint32(f[16:]), delta: be.Uint32(f[20:]),
		enqDepth: be.Uint16(f[24:]), deqDepth: be.Uint16(f[26:]), ingress: be.Uint16(f[28:]),
		seq: be.Uint32(f[30:]), length: len(f),
	}
}

// fakeControl keeps packet-ins.
type fakeControl struct {
	mu        sync.Mutex
	packetIns []report
}

func (c *fakeControl) PacketIn(frame []byte) {
	c.mu.Lock()
	c.packetIns = append(c.packetIns, decode(frame))
	c.mu.Unlock()
}
func (c *fakeControl) Digest(string, [][]byte) {}

// fakeControl replaces the P4Runtime server that the data plane uses.
func (s *Switch) fakeControl() *fakeControl {
	c := &fakeControl{}
	s.dataplane.control = c
	s.dataplane.ports[cpuPort].out = cpuSender{c}
	return c
}

func stats(t testing.TB, s *Switch, port uint32) PortStats {
	t.Helper()
	for _, p := range s.PortStats() {
		if p.Port == port {
			return p
		}
	}
	t.Fatalf("no port %d", port)
	return PortStats{}
}
