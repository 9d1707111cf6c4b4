package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/confine"
	"github.com/headgate/headgate/internal/testcert"
)

// TestServerReadsAnew: the next handshake uses a replaced certificate. While its key is missing, the old pair is
// used and the log says so.
func TestServerReadsAnew(t *testing.T) {
	a := testcert.New(t, t.TempDir())
	a.Issue(t, "server", "one")
	a.Issue(t, "next", "two")
	var log strings.Builder
	dirs, err := confine.New(a.Dir)
	if err != nil {
		t.Fatal(err)
	}
	files := Files{CA: "ca.pem", Cert: "server.pem", Key: "server.key", Prefix: "tls.", Read: dirs.Secret}
	conf, err := Server(files, slog.New(slog.NewTextHandler(&log, nil)), "http/1.1")
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.NotFoundHandler()}
	go srv.Serve(tls.NewListener(lis, conf)) // ends with Close
	defer srv.Close()
	ca, err := os.ReadFile(a.File("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	expect := func(want string) {
		t.Helper()
		conn, err := tls.Dial("tcp", lis.Addr().String(), &tls.Config{RootCAs: pool})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if got := conn.ConnectionState().PeerCertificates[0].Subject.CommonName; got != want {
			t.Errorf("the certificate of %q, want %q", got, want)
		}
		if _, err := io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n"); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadAll(conn); err != nil {
			t.Error(err)
		}
	}
	rename := func(from, to string) {
		t.Helper()
		if err := os.Rename(a.File(from), a.File(to)); err != nil {
			t.Fatal(err)
		}
	}
	expect("one")
	rename("next.pem", "server.pem")
	expect("one")
	if !strings.Contains(log.String(), "tls.cert and tls.key") {
		t.Errorf("the log says %q", log.String())
	}
	rename("next.key", "server.key")
	expect("two")
}

func TestFaults(t *testing.T) {
	a := testcert.New(t, t.TempDir())
	a.Issue(t, "a", "a")
	a.Issue(t, "b", "b")
	if err := os.WriteFile(a.File("empty"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ ca, cert, key, want string }{
		{"ca.pem", "a.pem", "b.key", "tls.cert and tls.key: "},
		{"empty", "a.pem", "a.key", "tls.ca: empty holds no PEM certificate"},
		{"ca.pem", "none", "a.key", "tls.cert: "},
		{"ca.pem", "a.pem", "none", "tls.key: "},
		{filepath.Join("/", "etc", "passwd"), "a.pem", "a.key", "is not in "},
	} {
		f := Files{CA: c.ca, Cert: c.cert, Key: c.key, Prefix: "tls.", Read: confine.Dirs{a.Dir}.Secret}
		for name, make := range map[string]func() error{
			"client": func() error { _, err := Client(f); return err },
			"server": func() error { _, err := Server(f, slog.Default()); return err },
		} {
			if err := make(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s with %s, %s, %s: %v, want an error with %q", name, c.ca, c.cert, c.key, err, c.want)
			}
		}
	}
}
