package bmv2_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
)

// queues are the settings of a port; the zero value has BMv2's initial settings.
type queues struct {
	Rate  int64 // packets/s of each queue, 0 is unlimited
	Depth int32 // packets in each queue
}

// server is the part of BMv2's Thrift service that package bmv2 uses, for one switch. mu guards all fields
// below it.
type server struct {
	t    testing.TB
	addr string

	mu       sync.Mutex
	listener net.Listener // nil while stopped
	conns    map[net.Conn]bool
	ports    map[int32]queues
	calls    int
	refuse   string        // name of the call that is refused
	stalled  chan struct{} // calls wait until it is closed; nil for no wait
	wg       sync.WaitGroup
}

// newServer starts a service on a free port. It stops with the test.
func newServer(t testing.TB) *server {
	s := &server{t: t, addr: "127.0.0.1:0", conns: map[net.Conn]bool{}}
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// Addr returns the service's address.
func (s *server) Addr() string { return s.addr }

// Start starts the service of a newly started switch, at its old address.
func (s *server) Start() {
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addr, s.listener, s.ports = l.Addr().String(), l, map[int32]queues{}
	s.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[conn] = true
			s.mu.Unlock()
			s.wg.Go(func() { s.serve(conn) })
		}
	})
}

// Stop ends the service and all its connections.
func (s *server) Stop() {
	s.Stall(false)
	s.mu.Lock()
	if s.listener != nil {
		s.listener.Close()
	}
	s.listener = nil
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// Stall stops the service from answering; a second call ends that.
func (s *server) Stall(stall bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stalled != nil {
		close(s.stalled)
		s.stalled = nil
	}
	if stall {
		s.stalled = make(chan struct{})
	}
}

// Refuse makes the service answer calls of a method with an exception. After Refuse(""), it answers all calls as usual.
func (s *server) Refuse(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = method
}

// Ports returns the settings made since the start, by port.
func (s *server) Ports() map[int32]queues {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.ports)
}

// Calls returns the number of settings written.
func (s *server) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// serve answers the calls of a connection.
func (s *server) serve(conn net.Conn) {
	socket := thrift.NewTSocketFromConnConf(conn, &thrift.TConfiguration{})
	protocol := thrift.NewTBinaryProtocolConf(thrift.NewTBufferedTransport(socket, 4096), &thrift.TConfiguration{})
	services := thrift.NewTMultiplexedProcessor()
	services.RegisterProcessor("simple_switch", processor{s})
	for {
		if _, err := services.Process(context.Background(), protocol, protocol); err != nil {
			break
		}
	}
	conn.Close()
	s.mu.Lock()
	delete(s.conns, conn)
	s.mu.Unlock()
}

// processor is thrift.TProcessor for the service SimpleSwitch.
type processor struct{ s *server }

// ProcessorMap implements thrift.TProcessor.
func (processor) ProcessorMap() map[string]thrift.TProcessorFunction { return nil }

// AddToProcessorMap implements thrift.TProcessor.
func (processor) AddToProcessorMap(string, thrift.TProcessorFunction) {}

// Process implements thrift.TProcessor.
func (p processor) Process(ctx context.Context, in, out thrift.TProtocol) (bool, thrift.TException) {
	method, _, seq, err := in.ReadMessageBegin(ctx)
	if err != nil {
		return false, thrift.WrapTException(err)
	}
	args, err := readArgs(ctx, in)
	if err != nil {
		return false, thrift.WrapTException(err)
	}
	p.s.mu.Lock()
	stalled := p.s.stalled
	p.s.mu.Unlock()
	if stalled != nil {
		<-stalled
	}
	kind, write := thrift.REPLY, func() error { return writeZero(ctx, out, method) }
	if err := p.s.set(method, args); err != nil {
		exception := thrift.NewTApplicationException(thrift.UNKNOWN_METHOD, err.Error())
		kind, write = thrift.EXCEPTION, func() error { return exception.Write(ctx, out) }
	}
	for _, step := range []func() error{
		func() error { return out.WriteMessageBegin(ctx, method, kind, seq) }, write,
		func() error { return out.WriteMessageEnd(ctx) }, func() error { return out.Flush(ctx) },
	} {
		if err := step(); err != nil {
			return false, thrift.WrapTException(err)
		}
	}
	return true, nil
}

// set performs a call.
func (s *server) set(method string, args map[int16]int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	port := int32(args[1])
	q := s.ports[port]
	switch {
	case method == s.refuse:
		return fmt.Errorf("%s is refused", method)
	case method == "get_time_elapsed_us":
		return nil
	case method == "set_egress_queue_rate":
		q.Rate = args[2]
	case method == "set_egress_queue_depth":
		q.Depth = int32(args[2])
	default:
		return fmt.Errorf("invalid method name: %q", method)
	}
	s.ports[port] = q
	s.calls++
	return nil
}

// readArgs reads a call's arguments by their numbers; all of them are integers.
func readArgs(ctx context.Context, in thrift.TProtocol) (map[int16]int64, error) {
	args := map[int16]int64{}
	for {
		_, kind, id, err := in.ReadFieldBegin(ctx)
		switch {
		case err != nil:
			return nil, err
		case kind == thrift.STOP:
			return args, in.ReadMessageEnd(ctx)
		case kind == thrift.I32:
			v, err := in.ReadI32(ctx)
			if err != nil {
				return nil, err
			}
			args[id] = int64(v)
		case kind == thrift.I64:
			if args[id], err = in.ReadI64(ctx); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("an argument is a %v", kind)
		}
	}
}

// writeZero writes the result 0, which is BMv2's result for all these calls.
func writeZero(ctx context.Context, out thrift.TProtocol, method string) error {
	if method == "get_time_elapsed_us" {
		if err := out.WriteFieldBegin(ctx, "", thrift.I64, 0); err != nil {
			return err
		}
		if err := out.WriteI64(ctx, time.Second.Microseconds()); err != nil {
			return err
		}
	} else {
		if err := out.WriteFieldBegin(ctx, "", thrift.I32, 0); err != nil {
			return err
		}
		if err := out.WriteI32(ctx, 0); err != nil {
			return err
		}
	}
	return out.WriteFieldStop(ctx)
}
