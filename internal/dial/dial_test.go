package dial

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/testcert"
)

func TestFaults(t *testing.T) {
	a := testcert.New(t, t.TempDir())
	a.Issue(t, "me", "me")
	for name, text := range map[string]string{"token": "abc\n", "two": "a b", "empty": "\n"} {
		if err := os.WriteFile(filepath.Join(a.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		server string
		o      Options
		want   string // of the error, none when empty
	}{
		{"127.0.0.1:1", Options{}, ""},
		{"127.0.0.1:1", Options{CA: "ca.pem", Cert: "me.pem", Key: "me.key", TokenFile: "token"}, ""},
		{"unix:/x", Options{TokenFile: "token"}, ""},
		{"127.0.0.1:1", Options{Cert: "me.pem"}, "--tls-cert and --tls-key: want both or none"},
		{"127.0.0.1:1", Options{Cert: "me.pem", Key: "me.key"}, "--tls-cert: want --tls-ca with it"},
		{"127.0.0.1:1", Options{CA: "none"}, "--tls-ca: "},
		{"127.0.0.1:1", Options{CA: "token"}, "holds no PEM certificate"},
		{"127.0.0.1:1", Options{TokenFile: "token"}, "--token-file: want --tls-ca with it"},
		{"127.0.0.1:1", Options{CA: "ca.pem", TokenFile: "two"}, "holds no token, want one word"},
		{"127.0.0.1:1", Options{CA: "ca.pem", TokenFile: "empty"}, "holds no token, want one word"},
		{"unix:/x", Options{TokenFile: "none"}, "--token-file: "},
	} {
		for _, name := range []*string{&c.o.CA, &c.o.Cert, &c.o.Key, &c.o.TokenFile} {
			if *name != "" {
				*name = a.File(*name)
			}
		}
		conn, err := Client(c.server, c.o)
		if err == nil {
			_ = conn.Close()
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %+v: %v, want %q", c.server, c.o, err, c.want)
		}
	}
}
