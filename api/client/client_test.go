package client

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	headgatev1 "github.com/headgate/headgate/api/headgate/v1"
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
		{"127.0.0.1:1", Options{Cert: "me.pem", Key: "me.key"}, "--tls-cert: also needs --tls-ca"},
		{"127.0.0.1:1", Options{CA: "none"}, "--tls-ca: "},
		{"127.0.0.1:1", Options{CA: "token"}, "holds no PEM certificate"},
		{"127.0.0.1:1", Options{TokenFile: "token"}, "--token-file: needs --tls-ca"},
		{"127.0.0.1:1", Options{CA: "ca.pem", TokenFile: "two"}, "holds no token, want one word"},
		{"127.0.0.1:1", Options{CA: "ca.pem", TokenFile: "empty"}, "holds no token, want one word"},
		{"unix:/x", Options{TokenFile: "none"}, "--token-file: "},
	} {
		for _, name := range []*string{&c.o.CA, &c.o.Cert, &c.o.Key, &c.o.TokenFile} {
			if *name != "" {
				*name = a.File(*name)
			}
		}
		conn, err := Dial(c.server, c.o)
		if err == nil {
			_ = conn.Close()
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %+v: %v, want %q", c.server, c.o, err, c.want)
		}
	}
}

// late is a controller whose first answer is lost.
type late struct {
	headgatev1.UnimplementedWeightServiceServer
	ids []string
}

func (l *late) SetWeight(ctx context.Context, _ *headgatev1.SetWeightRequest) (*headgatev1.SetWeightResponse, error) {
	l.ids = append(l.ids, metadata.ValueFromIncomingContext(ctx, headgatev1.RequestIDKey)...)
	if len(l.ids) == 1 {
		return nil, status.Error(codes.Unavailable, "lost")
	}
	return &headgatev1.SetWeightResponse{Weight: 2}, nil
}

// TestSecondMember: the first member of the list is down, and the second member's first answer is lost. The client
// repeats the request with the same id.
func TestSecondMember(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, s := &late{}, grpc.NewServer()
	headgatev1.RegisterWeightServiceServer(s, l)
	go func() { _ = s.Serve(lis) }()
	t.Cleanup(s.Stop)
	conn, err := Dial(gone.Addr().String()+","+lis.Addr().String(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	answer, err := headgatev1.NewWeightServiceClient(conn).SetWeight(t.Context(), &headgatev1.SetWeightRequest{})
	if err != nil || answer.GetWeight() != 2 || len(l.ids) != 2 || l.ids[0] == "" || l.ids[0] != l.ids[1] {
		t.Errorf("%v, %v with the ids %q, want one id twice", answer, err, l.ids)
	}
}
