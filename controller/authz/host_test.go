package authz_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/authz"
)

// TestBudgetsOfHosts: a host registers flows of the default application and of the applications
// that its grant names.
func TestBudgetsOfHosts(t *testing.T) {
	const denied = "does not grant"
	for grant, want := range map[string][]string{ // expected refusals of flows of default, web and shop
		"":                             {"", denied, denied},
		", applications: [web]":        {"", "", denied},
		`, applications: ["*"]`:        {"", "", ""},
		", applications: [web, shop]":  {"", "", ""},
		`, applications: [shop, "sh"]`: {"", denied, ""},
	} {
		r := start(t, "", "grants: [{who: 'cn:h1', role: host"+grant+"}]")
		r.Issue(t, "h1", "h1")
		s, err := pb.NewHostServiceClient(r.as(t, "h1")).Attach(t.Context())
		if err == nil {
			err = s.Send(&pb.HostReport{Host: "h1", Flows: []*pb.FlowReport{
				{Flow: flow(1), Weight: 2}, {Flow: flow(2), Weight: 2, Application: "web", VirtualPriority: 1}, {Flow: flow(3), Weight: 2, Application: "shop"},
			}})
		}
		if err == nil {
			err = s.Send(&pb.HostReport{Host: "h1"}) // flows end, and the last answer to the first report has arrived
		}
		if err == nil {
			err = s.CloseSend()
		}
		refused := map[uint32]string{}
		for err == nil {
			var c *pb.HostCommand
			if c, err = s.Recv(); c.GetRefused() != "" {
				refused[c.GetWeight().GetFlow().GetSrcPort()] = c.GetRefused()
			}
			if of := c.GetChannel(); of != nil && want[1] != "" && !strings.Contains(of.GetRefused(), "not granted to this host") {
				t.Errorf("grant %q: the channel of another's application: %v", grant, of)
			}
		}
		for i, text := range want {
			if got := refused[uint32(i+1)]; !strings.Contains(got, text) || text == "" && got != "" {
				t.Errorf("grant %q, flow %d: refused with %q, want %q", grant, i+1, got, text)
			}
		}
	}
}

// TestLimitOfMessages: messages of a stream count like calls.
func TestLimitOfMessages(t *testing.T) {
	r := start(t, "", "grants: [{who: 'cn:h1', role: host}]\nlimits: {rate: 0.001, burst: 3}")
	r.Issue(t, "h1", "h1")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s, err := pb.NewHostServiceClient(r.as(t, "h1")).Attach(ctx)
	for range 4 {
		if err == nil {
			err = s.Send(&pb.HostReport{Host: "h1"})
		}
	}
	for err == nil {
		_, err = s.Recv()
	}
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "more often than 0.001 times a second") {
		t.Errorf("four reports, three are allowed: %v", err)
	}
}

// TestRebinding: a browser sees nothing if another site's name resolves to loopback (DNS rebinding).
func TestRebinding(t *testing.T) {
	r := start(t, authz.Viewer, policy)
	for host, want := range map[string]int{
		"localhost": 200, "localhost:9601": 200, "127.0.0.1:9601": 200, "[::1]:9601": 200, "[::1]": 200, "127.3.2.1": 200,
		"evil.example": 403, "evil.example:9601": 403, "localhost.evil.example": 403, "192.0.2.1:9601": 403, "": 403,
	} {
		q := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		q.Host = host
		if got, why := r.guard.Request(q); got != want {
			t.Errorf("host %q: %d %s, want %d", host, got, why, want)
		}
	}
	q := httptest.NewRequest(http.MethodGet, "https://controller.example/metrics", nil)
	if got, _ := r.guard.Request(q); got != http.StatusUnauthorized { // with TLS the certificate's names are checked
		t.Errorf("over TLS without a certificate: %d", got)
	}
}

// BenchmarkAuthorizer measures the cost that the authorizer adds to a call with a client certificate, under a policy
// of n grants: identity, limits, rights and the message's subject.
func BenchmarkAuthorizer(b *testing.B) {
	for _, grants := range []int{10, 1000} {
		b.Run(fmt.Sprintf("grants=%d", grants), func(b *testing.B) { guarding(b, grants) })
	}
}

func guarding(b *testing.B, grants int) {
	var text strings.Builder
	text.WriteString("grants:\n")
	for i := range grants - 1 {
		fmt.Fprintf(&text, "  - {who: 'spiffe://lab/rack%d/*', role: host}\n", i)
	}
	text.WriteString("  - {who: 'cn:web', role: application, applications: [web]}\nlimits: {rate: 1e9, burst: 1000000000}\n")
	r := start(b, "", text.String())
	r.Issue(b, "web", "web")
	pair := r.Pair(b, "web")
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		b.Fatal(err)
	}
	state := tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf}}}
	ctx := peer.NewContext(b.Context(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 1}, AuthInfo: credentials.TLSInfo{State: state}})
	const method = "/headgate.v1.WeightService/SetWeight"
	info, request := &grpc.UnaryServerInfo{FullMethod: method}, &pb.SetWeightRequest{Flow: flow(1), Weight: 1, Application: "web"}
	done := func(context.Context, any) (any, error) { return nil, nil }
	b.ReportAllocs()
	for b.Loop() {
		in, err := r.guard.Tap(ctx, &tap.Info{FullMethodName: method, Header: metadata.MD{}})
		if err == nil {
			_, err = r.guard.Unary(in, request, info, done)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
