package standalone

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/testcert"
)

func TestTLS(t *testing.T) {
	a := testcert.New(t, t.TempDir())
	a.Issue(t, "server", "server")
	a.Issue(t, "client", "client")
	plain := insecure.NewCredentials()
	anonymous := credentials.NewTLS(&tls.Config{RootCAs: a.Pool()})
	known := credentials.NewTLS(&tls.Config{RootCAs: a.Pool(), Certificates: []tls.Certificate{a.Pair(t, "client")}})

	oneWay := []string{"--grpc-server-ssl", "--grpc-server-cert", a.File("server.pem"), "--grpc-server-key", a.File("server.key")}
	mutual := append(oneWay, "--grpc-server-cacert", a.File("ca.pem"), "--grpc-server-with-client-auth")
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
	o := TLSOptions{Enabled: true, Cert: a.File("server.pem"), Key: a.File("server.key"), CA: a.File("server.key")}
	if _, err := o.credentials(slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a key serves as CA certificate")
	}
}

// If the certificate is replaced while the switch runs, the next client gets the new one.
func TestCertificateIsReadAnew(t *testing.T) {
	a := testcert.New(t, t.TempDir())
	a.Issue(t, "server", "first")
	o := TLSOptions{Enabled: true, Cert: a.File("server.pem"), Key: a.File("server.key")}
	creds, err := o.credentials(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first", "second"} {
		a.Issue(t, "server", want)
		client, server := net.Pipe()
		go creds.ServerHandshake(server)
		_, info, err := credentials.NewTLS(&tls.Config{RootCAs: a.Pool()}).ClientHandshake(t.Context(), "127.0.0.1:9559", client)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.(credentials.TLSInfo).State.PeerCertificates[0].Subject.CommonName; got != want {
			t.Errorf("the certificate of %q, want %q", got, want)
		}
		client.Close()
	}
}
