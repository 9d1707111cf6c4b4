package standalone

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// authority makes certificates and writes them to dir.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue writes NAME.pem and NAME-key.pem, signed by the authority, or by itself when there
// is none yet.
func (a *authority) issue(t *testing.T, name string) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:         a.cert == nil, BasicConstraintsValid: true,
	}
	parent, parentKey := template, key
	if a.cert != nil {
		parent, parentKey = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		name + ".pem":     {Type: "CERTIFICATE", Bytes: der},
		name + "-key.pem": {Type: "EC PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(a.dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func TestTLS(t *testing.T) {
	a := &authority{dir: t.TempDir()}
	a.cert, a.key = a.issue(t, "ca")
	a.issue(t, "server")
	a.issue(t, "client")
	file := func(name string) string { return filepath.Join(a.dir, name) }
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	pair, err := tls.LoadX509KeyPair(file("client.pem"), file("client-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	plain := insecure.NewCredentials()
	anonymous := credentials.NewTLS(&tls.Config{RootCAs: roots})
	known := credentials.NewTLS(&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}})

	oneWay := []string{"--grpc-server-ssl", "--grpc-server-cert", file("server.pem"), "--grpc-server-key", file("server-key.pem")}
	mutual := append(oneWay, "--grpc-server-cacert", file("ca.pem"), "--grpc-server-with-client-auth")
	for _, tt := range []struct {
		name   string
		flags  []string
		client credentials.TransportCredentials
		want   bool
	}{
		{"plain", nil, plain, true},
		{"one-way", oneWay, anonymous, true},
		{"one-way, plain client", oneWay, plain, false},
		{"mutual", mutual, known, true},
		{"mutual, client without certificate", mutual, anonymous, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := net.Listen("tcp", listen)
			if err != nil {
				t.Fatal(err)
			}
			addr := l.Addr().String()
			l.Close() // free for the switch
			run(t, append([]string{"--no-p4", "--", "--grpc-server-addr", addr}, tt.flags...)...)
			conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(tt.client))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			ctx, cancel := context.WithTimeout(t.Context(), hang)
			defer cancel()
			_, err = p4v1.NewP4RuntimeClient(conn).Capabilities(ctx, &p4v1.CapabilitiesRequest{})
			if reached := status.Code(err) != codes.Unavailable && status.Code(err) != codes.DeadlineExceeded; reached != tt.want {
				t.Errorf("reached the server: %v (%v), want %v", reached, err, tt.want)
			}
		})
	}
	o := TLSOptions{Enabled: true, Cert: file("server.pem"), Key: file("server-key.pem"), CA: file("ca-key.pem")}
	if _, err := o.credentials(); err == nil {
		t.Error("a key serves as CA certificate")
	}
}
