package softswitch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/headgate/headgate/internal/clients"
	"github.com/headgate/headgate/internal/gnmi"
	"github.com/headgate/headgate/internal/service"
	"github.com/headgate/headgate/softswitch/p4rt"
)

// ErrServing is returned by ServeGRPC if the switch serves P4Runtime already.
var ErrServing = errors.New("P4Runtime is being served already")

// grpcServer serves P4Runtime. It can be started and stopped while the switch runs.
type grpcServer struct {
	mu      sync.Mutex
	running *grpc.Server // nil while not serving
	done    chan struct{}
}

// listen listens on host:port, or on an address in one of gRPC's forms: dns:[///]host:port, ipv4:address:port,
// ipv6:[address]:port, unix:path, unix:///path and unix-abstract:name
// (https://github.com/grpc/grpc/blob/master/doc/naming.md).
func listen(addr string) (net.Listener, error) {
	switch scheme, rest, _ := strings.Cut(addr, ":"); scheme {
	case "unix":
		return service.ListenUnix(context.Background(), strings.TrimPrefix(rest, "//"))
	case "unix-abstract":
		return net.Listen("unix", "@"+rest)
	case "dns":
		return net.Listen("tcp", strings.TrimPrefix(rest, "///"))
	case "ipv4":
		return net.Listen("tcp4", rest)
	case "ipv6":
		return net.Listen("tcp6", rest)
	}
	return net.Listen("tcp", addr)
}

// ServeGRPC serves P4Runtime, and the switch's state over gNMI, on an address that listen reads until
// StopGRPC, and returns the address. It uses TLS if creds is not nil. Entries and pipeline belong
// to the switch, so they outlive the server and are there when it starts again.
func (s *Switch) ServeGRPC(addr string, creds credentials.TransportCredentials) (net.Addr, error) {
	g := &s.grpc
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running != nil {
		return nil, ErrServing
	}
	l, err := listen(addr)
	if err != nil {
		return nil, fmt.Errorf("P4Runtime server: %w", err)
	}
	l = clients.Limit(l, clients.Options{Name: "p4runtime", Log: s.log})
	gs := grpc.NewServer(p4rt.ServerOptions(clients.Process, creds)...)
	s.server.Register(gs)
	gnmi.Register(gs, s.shown, context.Background()) // gs.Stop ends gNMI's streams
	g.running, g.done = gs, make(chan struct{})
	go func(done chan struct{}) {
		defer close(done)
		// StopGRPC may run before Serve has begun. That is not an error.
		if err := gs.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			s.log.Error("P4Runtime server ended", "switch", s.name, "err", err)
		}
	}(g.done)
	return l.Addr(), nil
}

// StopGRPC ends all P4Runtime connections and stops serving. The data plane goes on.
func (s *Switch) StopGRPC() {
	g := &s.grpc
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running == nil {
		return
	}
	g.running.Stop()
	<-g.done
	g.running = nil
}

// Close ends the P4Runtime server for good. A switch on a loop must be closed; Run closes its
// switch itself.
func (s *Switch) Close() {
	s.StopGRPC()
	s.server.Close()
}
