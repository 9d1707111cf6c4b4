package session

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
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
)

// certificate makes a self-signed certificate for 127.0.0.1 and writes it to a file.
func certificate(t *testing.T, file string) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestCertificatesAreReadAnew: a switch with another certificate is trusted as soon as the file
// says so, by the options that it was dialled with before.
func TestCertificatesAreReadAnew(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.pem")
	var serving atomic.Pointer[tls.Certificate]
	serving.Store(certificate(t, ca))
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
	other := ca + ".new"
	serving.Store(certificate(t, other))
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
