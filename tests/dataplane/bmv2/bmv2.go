// Package bmv2 runs simple_switch_grpc as a target of data-plane tests. Frames go in and
// out through its own gRPC service instead of interfaces, so that no privileges are
// needed and nothing is lost on the way; queues are shaped through its Thrift service.
package bmv2

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tests/dataplane/bmv2/dataplanepb"
	"github.com/headgate/headgate/tests/dataplane/target"
)

// Command is the program that runs.
const Command = "simple_switch_grpc"

// startTimeout bounds the time from exec to the first frame.
const startTimeout = 20 * time.Second

// Switch is a running simple_switch_grpc. It is owned by the test that started it.
type Switch struct {
	process *exec.Cmd
	exited  chan error
	dir     string

	p4runtime *grpc.ClientConn
	dataplane *grpc.ClientConn
	stream    dataplanepb.DataplaneInterface_PacketStreamClient
	stop      context.CancelFunc
	received  chan struct{} // closed when the goroutine that fills inbox ends
	inbox     target.Inbox
	queues    *queueService
}

var _ target.Cabled = (*Switch)(nil)

// Start starts the switch. dir is an empty folder for its files, with a name so short that
// a socket fits. It starts with Headgate's program, since BMv2 takes no frames before it has
// one; a test pushes it again.
func Start(dir string) (*Switch, error) {
	s := &Switch{dir: dir, exited: make(chan error, 1)}
	thriftPort, err := freePort()
	if err != nil {
		return nil, err
	}
	if err := s.exec(thriftPort); err != nil {
		return nil, err
	}
	if err := s.connect(thriftPort); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		return nil, errors.Join(fmt.Errorf("%s does not start: %w\n%s", Command, err, log), s.Close())
	}
	return s, nil
}

func (s *Switch) exec(thriftPort int) error {
	program := filepath.Join(s.dir, "program.json")
	if err := os.WriteFile(program, p4src.JSON, 0o644); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.process = exec.Command(Command,
		"--device-id", strconv.Itoa(target.DeviceID), "--thrift-port", strconv.Itoa(thriftPort),
		"--log-console", "--log-level", "warn", program,
		"--",
		"--grpc-server-addr", s.address("p4runtime"), "--dp-grpc-server-addr", s.address("dataplane"),
		"--cpu-port", strconv.Itoa(ids.CPUPort), "--priority-queues", strconv.Itoa(ids.QueuesPerPort))
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		return err
	}
	go func() { s.exited <- s.process.Wait() }()
	return nil
}

func (s *Switch) address(name string) string { return "unix:" + filepath.Join(s.dir, name) }

// connect waits for the switch's three servers.
func (s *Switch) connect(thriftPort int) error {
	starting, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	go func() { // no use in waiting for a process that has ended
		select {
		case err := <-s.exited:
			s.exited <- err
			cancel()
		case <-starting.Done():
		}
	}()
	var err error
	if s.p4runtime, err = dial(s.address("p4runtime")); err != nil {
		return err
	}
	if s.dataplane, err = dial(s.address("dataplane")); err != nil {
		return err
	}
	if s.queues, err = dialQueues(starting, thriftPort); err != nil {
		return err
	}
	return s.openStream(starting)
}

// settle is how long a stream must last to count as accepted: BMv2 refuses it while it is
// starting, and says nothing when it accepts it.
const settle = 100 * time.Millisecond

// openStream opens the stream of frames.
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

func dial(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20), grpc.WaitForReady(true)))
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// receive moves frames from the switch to the inbox until the stream ends.
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
	if err := s.queues.setDepth(ctx, port, shape.Depth); err != nil {
		return err
	}
	return s.queues.setRate(ctx, port, shape.PacketsPerSecond)
}

// SetUp implements target.Cabled.
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
		errs = append(errs, s.queues.close())
	}
	for _, conn := range []*grpc.ClientConn{s.p4runtime, s.dataplane} {
		if conn != nil {
			errs = append(errs, conn.Close())
		}
	}
	// It has nothing to save, and its own way out can wait for streams for ever.
	if err := s.process.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		errs = append(errs, err)
	}
	<-s.exited
	return errors.Join(errs...)
}
