// Package bmv2 runs BMv2's simple_switch_grpc for tests. Process is the process alone. Switch is
// also a target of data-plane tests. Frames enter and leave a Switch through BMv2's own gRPC
// service instead of interfaces, which needs no privileges and loses no frames. BMv2's Thrift
// service sets the queues' rates and depths.
package bmv2

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/headgate/headgate/controller/trafficmanager/bmv2"
	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tests/dataplane/bmv2/dataplanepb"
	"github.com/headgate/headgate/tests/dataplane/target"
)

// Switch is a running simple_switch_grpc. It is owned by the test that started it.
type Switch struct {
	*Process
	dir string

	p4runtime *grpc.ClientConn
	dataplane *grpc.ClientConn
	stream    dataplanepb.DataplaneInterface_PacketStreamClient
	stop      context.CancelFunc
	received  chan struct{} // closed when the goroutine that fills inbox ends
	inbox     target.Inbox
	queues    *bmv2.Client
}

var _ target.Target = (*Switch)(nil)

// Start starts a switch for tests that use target.Target. BMv2 accepts no frames before it has a program, so it
// starts with Headgate's program. A test pushes the program again.
func Start(t testing.TB) *Switch {
	t.Helper()
	return StartProgram(t, p4src.JSON(), "--cpu-port", strconv.Itoa(ids.CPUPort), "--priority-queues", strconv.Itoa(ids.QueuesPerPort))
}

// StartProgram starts a switch with a program in BMv2's JSON and flags of its target. The
// caller closes it.
func StartProgram(t testing.TB, json []byte, flags ...string) *Switch {
	t.Helper()
	s, err := TryProgram(t, json, flags...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TryProgram is StartProgram for a program that BMv2 may refuse: the error is then an
// *exec.ExitError.
func TryProgram(t testing.TB, json []byte, flags ...string) (*Switch, error) {
	t.Helper()
	dir, err := os.MkdirTemp("", "bmv2") // t.TempDir is too long for a socket
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program := filepath.Join(dir, "program.json")
	if err := os.WriteFile(program, json, 0o644); err != nil {
		return nil, err
	}
	s := &Switch{dir: dir}
	s.Process, err = Run(Options{
		Dir: dir, DeviceID: target.DeviceID, Address: s.address("p4runtime"), Program: program,
		Flags:  []string{"--log-console", "--log-level", "warn"},
		Target: append(flags, "--dp-grpc-server-addr", s.address("dataplane")),
	})
	if err != nil {
		return nil, err
	}
	if err := s.connect(); err != nil {
		if end := s.Ended(0); end != nil {
			err = end
		}
		return nil, errors.Join(s.Explain(err), s.Close())
	}
	return s, nil
}

func (s *Switch) address(name string) string { return "unix:" + filepath.Join(s.dir, name) }

func (s *Switch) connect() error {
	starting, cancel := s.Starting()
	defer cancel()
	var err error
	if s.p4runtime, err = target.Dial(s.address("p4runtime")); err != nil {
		return err
	}
	if s.dataplane, err = target.Dial(s.address("dataplane")); err != nil {
		return err
	}
	if s.queues, err = s.Queues(starting); err != nil {
		return err
	}
	return s.openStream(starting)
}

// settle is how long a stream must last to count as accepted: BMv2 refuses it while it is
// starting, and says nothing when it accepts it.
const settle = 100 * time.Millisecond

func (s *Switch) openStream(starting context.Context) error {
	for {
		ctx, stop := context.WithCancel(context.Background())
		stream, err := dataplanepb.NewDataplaneInterfaceClient(s.dataplane).PacketStream(ctx)
		if err != nil {
			stop()
			return err
		}
		s.stream, s.stop, s.received = stream, stop, make(chan struct{})
		go s.receive(stream, s.received)
		select {
		case <-s.received:
			stop()
		case <-time.After(settle):
			return nil
		}
		if starting.Err() != nil {
			return fmt.Errorf("stream of frames: %w", starting.Err())
		}
	}
}

func (s *Switch) receive(stream dataplanepb.DataplaneInterface_PacketStreamClient, done chan<- struct{}) {
	defer close(done)
	for {
		m, err := stream.Recv()
		if err != nil {
			return
		}
		s.inbox.Put(m.GetPort(), m.GetPacket())
	}
}

// Address implements target.Target.
func (s *Switch) Address() (network, address string) {
	return "unix", filepath.Join(s.dir, "p4runtime")
}

// Dial implements target.Target.
func (s *Switch) Dial() (*grpc.ClientConn, error) { return s.p4runtime, nil }

// Send implements target.Target.
func (s *Switch) Send(port uint32, frames ...[]byte) error {
	for _, frame := range frames {
		err := s.stream.Send(&dataplanepb.Frame{DeviceId: target.DeviceID, Port: port, Packet: frame})
		if err != nil {
			return fmt.Errorf("port %d: %w", port, err)
		}
	}
	return nil
}

// Receive implements target.Target.
func (s *Switch) Receive(port uint32, wait time.Duration) (target.Frame, bool) {
	return s.inbox.Take(port, wait)
}

// Shape implements target.Target.
func (s *Switch) Shape(port uint32, shape target.Shape) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.queues.SetQueueDepth(ctx, port, int32(shape.Depth)); err != nil {
		return err
	}
	return s.queues.SetQueueRate(ctx, port, int64(shape.PacketsPerSecond))
}

// SetUp implements target.Target.
func (s *Switch) SetUp(port uint32, up bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	state := dataplanepb.PortStatus_STATE_DOWN
	if up {
		state = dataplanepb.PortStatus_STATE_UP
	}
	_, err := dataplanepb.NewDataplaneInterfaceClient(s.dataplane).SetPortOperStatus(ctx,
		&dataplanepb.PortStatus{DeviceId: target.DeviceID, Port: port, State: state})
	return err
}

// Close implements target.Target.
func (s *Switch) Close() error {
	var errs []error
	if s.stop != nil {
		s.stop()
		<-s.received
	}
	if s.queues != nil {
		errs = append(errs, s.queues.Close())
	}
	for _, conn := range []*grpc.ClientConn{s.p4runtime, s.dataplane} {
		if conn != nil {
			errs = append(errs, conn.Close())
		}
	}
	s.Kill() // it has nothing to save, and an orderly end can wait for streams for ever
	return errors.Join(errs...)
}
