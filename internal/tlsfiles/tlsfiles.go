// Package tlsfiles makes TLS configurations from files. Files are read again for each handshake, so
// certificates can be replaced while a process runs.
package tlsfiles

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
)

// Files name certificates and a key in PEM.
type Files struct {
	CA         string // who signs the other side's certificates
	Cert, Key  string // one's own; a client may have none
	ServerName string // name in the server's certificate; a client's default is the host that it dials
	// For messages: Prefix is the common part of the keys or flags that name the files. CAName is the rest of the
	// CA's name; "" means ca.
	Prefix, CAName string
	// ClientAuth is a server's requirement for client certificates.
	ClientAuth tls.ClientAuthType
	// Read reads a file.
	Read func(name string) ([]byte, error)
}

// load returns the trusted authorities, nil without CA, and the own certificate.
func (f Files) load() (pool *x509.CertPool, own []tls.Certificate, read []byte, err error) {
	if f.CA != "" {
		name := f.Prefix + cmp.Or(f.CAName, "ca")
		pem, err := f.Read(f.CA)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		pool = x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, nil, nil, fmt.Errorf("%s: %s holds no PEM certificate", name, f.CA)
		}
		read = append(read, pem...)
	}
	if f.Cert != "" {
		cert, err := f.Read(f.Cert)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("%scert: %w", f.Prefix, err)
		}
		key, err := f.Read(f.Key)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("%skey: %w", f.Prefix, err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("%scert and %skey: %w", f.Prefix, f.Prefix, err)
		}
		own, read = []tls.Certificate{pair}, append(append(read, cert...), key...)
	}
	return pool, own, read, nil
}

// Client returns credentials for dialling, or an error if the files are wrong now.
func Client(f Files) (credentials.TransportCredentials, error) {
	now, err := f.client()
	if err != nil {
		return nil, err
	}
	return &client{now, f}, nil
}

func (f Files) client() (credentials.TransportCredentials, error) {
	pool, own, _, err := f.load()
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{RootCAs: pool, Certificates: own, ServerName: f.ServerName, MinVersion: tls.VersionTLS12}), nil
}

// client are credentials whose files are read at each handshake.
type client struct {
	credentials.TransportCredentials // credentials from the first reading
	files                            Files
}

// ClientHandshake implements credentials.TransportCredentials.
func (c *client) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	now, err := c.files.client()
	if err != nil {
		return nil, nil, err
	}
	return now.ClientHandshake(ctx, authority, conn)
}

// Clone implements credentials.TransportCredentials.
func (c *client) Clone() credentials.TransportCredentials {
	return &client{c.TransportCredentials.Clone(), c.files}
}

// Server returns the TLS configuration of a server of one of the protocols (of ALPN), or an error if
// the files are wrong now. If they are wrong later, such as between the replacement of a certificate
// and of its key, the last valid pair stays, and the log says so.
func Server(f Files, log *slog.Logger, protocols ...string) (*tls.Config, error) {
	s := &server{files: f, protocols: protocols, log: log}
	if err := s.read(); err != nil {
		return nil, err
	}
	return &tls.Config{GetConfigForClient: s.config, MinVersion: tls.VersionTLS12, NextProtos: protocols}, nil
}

// server is safe for concurrent use; mu guards what follows it.
type server struct {
	files     Files
	protocols []string
	log       *slog.Logger

	mu   sync.Mutex
	text []byte // content of all files
	now  *tls.Config
}

func (s *server) config(*tls.ClientHelloInfo) (*tls.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.read(); err != nil {
		s.log.Error("the certificates that were read last stay in use", "err", err)
	}
	return s.now, nil
}

// read replaces the configuration when the files have changed. An unchanged configuration lets clients
// resume sessions.
func (s *server) read() error {
	pool, own, text, err := s.files.load()
	if err != nil || s.now != nil && bytes.Equal(text, s.text) {
		return err
	}
	s.text = text
	s.now = &tls.Config{Certificates: own, ClientCAs: pool, ClientAuth: s.files.ClientAuth, MinVersion: tls.VersionTLS12, NextProtos: s.protocols}
	return nil
}
