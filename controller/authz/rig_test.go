package authz_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate/api/client"
	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/serving/northbound"
	"github.com/headgate/headgate/internal/confine"
	"github.com/headgate/headgate/internal/testcert"
	"github.com/headgate/headgate/internal/tlsfiles"
	"github.com/headgate/headgate/preview/observed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// backend is a fabric of two hosts.
type backend struct{}

func (backend) Path(_, _ netip.AddrPort) []config.Endpoint { return nil }

func (backend) Fabric() *pb.GetFabricResponse {
	return &pb.GetFabricResponse{Name: "lab", Hosts: []*pb.Host{{Name: "h1", Ipv4: "10.0.0.1"}, {Name: "h2", Ipv4: "10.0.0.2"}}}
}
func (backend) Counted() []observed.Source                          { return nil }
func (backend) HostParameters() []*pb.HostParameter                 { return nil }
func (backend) Switches() []*pb.SwitchStatus                        { return nil }
func (backend) Switch(string) (*pb.SwitchStatus, bool)              { return &pb.SwitchStatus{}, false }
func (backend) SwitchSummaries(string, bool) []*pb.SwitchStatus     { return nil }
func (backend) SetLink(context.Context, string, string, bool) error { return nil }
func (backend) Plan(context.Context, string, []byte, int) (*pb.PlanConfigResponse, error) {
	return nil, nil
}
func (backend) Apply(context.Context, string, []byte) (uint64, []*pb.SwitchResult, error) {
	return 1, nil, nil
}

// rig serves the API with TLS, on a Unix socket and in plain text.
type rig struct {
	*testcert.Authority
	guard         *authz.Authorizer
	weights       *weights.Registry
	secure, plain string
	socket        string
	audit         *audit.Log
}

const bearer = "aaaaaaaaaaaaaaaaaaaaaaaa"

func start(t testing.TB, loopback authz.Role, policy string) *rig {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { // for the socket
		t.Fatal(err)
	}
	r := &rig{Authority: testcert.New(t, dir), weights: weights.New(weights.Options{}), audit: audit.New(audit.Options{}), socket: filepath.Join(dir, "api.sock")}
	r.Issue(t, "server", "controller")
	r.write(t, "tokens", "ci "+bearer+"\n")
	r.write(t, "policy.yaml", policy)
	dirs, err := confine.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	r.guard = authz.New(authz.Options{Loopback: loopback, Files: dirs, Audit: r.audit})
	if err := r.apply(); err != nil {
		t.Fatal(err)
	}
	secure, err := tlsfiles.Server(tlsfiles.Files{CA: "ca.pem", Cert: "server.pem", Key: "server.key", ClientAuth: tls.VerifyClientCertIfGiven, Read: dirs.Secret}, slog.New(slog.DiscardHandler), "h2")
	if err != nil {
		t.Fatal(err)
	}
	unix, err := net.Listen("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(r.socket, 0o666); err != nil {
		t.Fatal(err)
	}
	r.secure = r.serve(t, secure, unix)
	r.plain = r.serve(t, nil, nil)
	return r
}

// serve runs a server until the test ends.
func (r *rig) serve(t testing.TB, secure *tls.Config, more net.Listener) string {
	t.Helper()
	srv := northbound.New(northbound.Options{Backend: backend{}, Weights: r.weights, Audit: r.audit, Authorizer: r.guard, TLS: secure, Log: slog.New(slog.DiscardHandler)})
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	list := []net.Listener{lis}
	if more != nil {
		list = append(list, more)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, list...) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return lis.Addr().String()
}

func (r *rig) write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(r.File(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) apply() error {
	cfg := &config.Config{Controller: config.Controller{Policy: "policy.yaml"}}
	if err := r.guard.Check(cfg); err != nil {
		return err
	}
	_, err := r.guard.Configure(cfg)
	return err
}

// as connects as somebody: a certificate's name, "token WORD", "unix", "plain", or "stranger", who
// has TLS without credentials.
func (r *rig) as(t testing.TB, who string) *grpc.ClientConn {
	t.Helper()
	var conn *grpc.ClientConn
	var err error
	o := client.Options{CA: r.File("ca.pem")}
	word, isToken := strings.CutPrefix(who, "token ")
	switch {
	case who == "unix":
		conn, err = client.Dial("unix:"+r.socket, client.Options{})
	case who == "plain":
		conn, err = grpc.NewClient(r.plain, grpc.WithTransportCredentials(insecure.NewCredentials()))
	case isToken:
		r.write(t, "bearer", word)
		o.TokenFile = r.File("bearer")
		conn, err = client.Dial(r.secure, o)
	case who == "stranger":
		conn, err = client.Dial(r.secure, o)
	default:
		o.Cert, o.Key = r.File(who+".pem"), r.File(who+".key")
		conn, err = client.Dial(r.secure, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
