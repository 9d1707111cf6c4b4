package session

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate/controller/config"
)

// Credentials returns how to dial a switch: TLS when the configuration names a CA, else
// plain TCP. The files are read now, to refuse what is wrong with them, and again for each
// connection, so that certificates may be replaced while the controller runs.
func Credentials(c config.TLS) (grpc.DialOption, error) {
	if c.CA == "" {
		return grpc.WithTransportCredentials(insecure.NewCredentials()), nil
	}
	now, err := readTLS(c)
	if err != nil {
		return nil, err
	}
	return grpc.WithTransportCredentials(&files{now, c}), nil
}

// files are credentials whose files are read at each handshake.
type files struct {
	credentials.TransportCredentials // as they were first
	config                           config.TLS
}

// ClientHandshake implements credentials.TransportCredentials.
func (f *files) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	now, err := readTLS(f.config)
	if err != nil {
		return nil, nil, err
	}
	return now.ClientHandshake(ctx, authority, conn)
}

// Clone implements credentials.TransportCredentials.
func (f *files) Clone() credentials.TransportCredentials {
	return &files{f.TransportCredentials.Clone(), f.config}
}

func readTLS(c config.TLS) (credentials.TransportCredentials, error) {
	pem, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, fmt.Errorf("tls.ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("tls.ca: %s holds no PEM certificate", c.CA)
	}
	conf := &tls.Config{RootCAs: pool, ServerName: c.ServerName, MinVersion: tls.VersionTLS12}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("tls.cert and tls.key: %w", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return credentials.NewTLS(conf), nil
}
