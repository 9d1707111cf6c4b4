// Package embedded makes the embedded switch a target of data-plane tests. The switch runs in the
// test's process, on a loop that the wall clock or the test paces, and serves P4Runtime over TCP.
package embedded

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/softswitch"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/tests/dataplane/target"
	"github.com/headgate/headgate/units"
)

// Switch is a running embedded switch. The test that started it owns it.
type Switch struct {
	loop   *clock.Loop
	sw     *softswitch.Switch
	ports  map[uint32]*softswitch.Port
	inbox  target.Inbox
	paused bool       // the loop runs only while the test waits, and ignores the wall clock
	mu     sync.Mutex // guards a paused loop

	address net.Addr
	conn    *grpc.ClientConn
	stop    context.CancelFunc
	stopped chan error
}

var _ target.Timed = (*Switch)(nil)

// Start starts the switch without a program, paced by the wall clock.
func Start() (*Switch, error) { return start(false) }

func start(paused bool) (*Switch, error) {
	s := &Switch{loop: clock.NewLoop(), ports: map[uint32]*softswitch.Port{}, paused: paused, stopped: make(chan error, 1)}
	var err error
	s.sw, err = softswitch.NewOnLoop(s.loop, softswitch.Config{
		Name: "under test", DeviceID: target.DeviceID, CPUPort: ids.CPUPort,
		Traffic: tm.Config{Queues: ids.QueuesPerPort}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	for n := uint32(1); n <= target.Ports; n++ {
		p, err := s.sw.AddPort(n, 0)
		if err != nil {
			return nil, err
		}
		p.Attach(way{&s.inbox, n})
		p.SetUp(true)
		s.ports[n] = p
	}
	if s.address, err = s.sw.ServeGRPC("127.0.0.1:0", nil); err != nil {
		return nil, err
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	run := s.loop.RunReal
	if paused {
		run = s.drive
	}
	go func() { s.stopped <- run(ctx) }()
	return s, nil
}

type way struct {
	inbox *target.Inbox
	port  uint32
}

// Send implements softswitch.Sender.
func (w way) Send(frame []byte, _ units.Time) { w.inbox.Put(w.port, bytes.Clone(frame)) }

// Address implements target.Target.
func (s *Switch) Address() (network, address string) { return "tcp", s.address.String() }

// Dial implements target.Target.
func (s *Switch) Dial() (*grpc.ClientConn, error) {
	if s.conn != nil {
		return s.conn, nil
	}
	var err error
	s.conn, err = target.Dial(s.address.String())
	return s.conn, err
}

// Send implements target.Target.
func (s *Switch) Send(port uint32, frames ...[]byte) error {
	copies := make([][]byte, len(frames))
	for i, f := range frames {
		copies[i] = bytes.Clone(f)
	}
	s.loop.Post(func() {
		for _, f := range copies {
			s.ports[port].Receive(f, s.loop.Now())
		}
	})
	return nil
}

// Receive implements target.Target.
func (s *Switch) Receive(port uint32, most time.Duration) (target.Frame, bool) {
	if !s.paused {
		return s.inbox.Take(port, most)
	}
	return s.pass(most, func() (target.Frame, bool) { return s.inbox.Take(port, 0) })
}

// Shape implements target.Target.
func (s *Switch) Shape(port uint32, shape target.Shape) error {
	rate := units.Rate(shape.PacketsPerSecond) * units.Rate(shape.FrameBytes) * 8
	return errors.Join(
		s.sw.SetQueueLimit(port, softswitch.AllQueues, tm.Limit{Packets: shape.Depth}),
		s.sw.SetPortRate(port, rate))
}

// SetUp implements target.Target.
func (s *Switch) SetUp(port uint32, up bool) error {
	return s.loop.Do(context.Background(), func() { s.ports[port].SetUp(up) })
}

// Close implements target.Target.
func (s *Switch) Close() error {
	var err error
	if s.conn != nil {
		err = s.conn.Close()
	}
	s.sw.Close()
	s.stop()
	if stopped := <-s.stopped; !errors.Is(stopped, context.Canceled) {
		err = errors.Join(err, stopped)
	}
	return err
}

// PACC returns the counters of the PACC loop in the switch.
func (s *Switch) PACC() (cnpgen.LoopStats, []cnpgen.PortStats, bool) { return s.sw.PACC() }

// StartPaused is like Start, but the switch's clock runs only while the test is in Receive or Sleep, and then as
// fast as possible. So a test's time limits hold even on a slow machine. Before Receive or Sleep the test must wait
// for the answers to its P4Runtime calls.
func StartPaused() (*Switch, error) {
	return start(true)
}

func (s *Switch) drive(ctx context.Context) error {
	look := time.NewTicker(200 * time.Microsecond) // wakes the loop for functions that P4Runtime has posted
	defer look.Stop()
	for {
		s.mu.Lock()
		s.loop.RunUntil(s.loop.Now())
		s.mu.Unlock()
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pass runs the loop until there is a frame, for at most most.
func (s *Switch) pass(most time.Duration, take func() (target.Frame, bool)) (target.Frame, bool) {
	const step = units.Millisecond
	s.mu.Lock()
	defer s.mu.Unlock()
	for until := s.loop.Now() + units.FromDuration(most); ; s.loop.RunUntil(min(s.loop.Now()+step, until)) {
		s.loop.RunUntil(s.loop.Now())
		if f, ok := take(); ok || s.loop.Now() >= until {
			return f, ok
		}
	}
}

// Now implements target.Timed.
func (s *Switch) Now() time.Duration { return s.loop.Time().Duration() }

// Sleep implements target.Timed.
func (s *Switch) Sleep(d time.Duration) {
	if !s.paused {
		time.Sleep(d)
		return
	}
	s.pass(d, func() (f target.Frame, ok bool) { return f, false })
}
