package session

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/testcert"
)

// TestCertificatesAreReadAnew: the session reads the CA file again, so that a switch with a new
// certificate is trusted as soon as the file has its CA, with the same dial options.
func TestCertificatesAreReadAnew(t *testing.T) {
	first, second := testcert.New(t, t.TempDir()), testcert.New(t, t.TempDir())
	var serving atomic.Pointer[tls.Certificate]
	serve := func(a *testcert.Authority) {
		a.Issue(t, "server", "server")
		pair := a.Pair(t, "server")
		serving.Store(&pair)
	}
	serve(first)
	ca, other := first.File("ca.pem"), second.File("ca.pem")
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return serving.Load(), nil },
	})))
	healthpb.RegisterHealthServer(server, health.NewServer())
	go server.Serve(lis) // ends with Stop
	defer server.Stop()

	dial, err := Credentials(config.TLS{CA: ca}, nil)
	if err != nil {
		t.Fatal(err)
	}
	call := func() codes.Code {
		t.Helper()
		conn, err := grpc.NewClient(lis.Addr().String(), dial)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
		return status.Code(err)
	}
	if got := call(); got != codes.OK {
		t.Errorf("at first: %v", got)
	}
	serve(second)
	if got := call(); got != codes.Unavailable {
		t.Errorf("a certificate that nobody trusts: %v", got)
	}
	if err := os.Rename(other, ca); err != nil {
		t.Fatal(err)
	}
	if got := call(); got != codes.OK {
		t.Errorf("after the file was replaced: %v", got)
	}
	if _, err := Credentials(config.TLS{CA: other}, nil); err == nil {
		t.Error("a file that is not there is fine")
	}
}
