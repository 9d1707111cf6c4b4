package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/api/client"
	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/testcert"
)

// guarded is a fabric in its own folder whose API has TLS and a policy.
type guarded struct {
	*testcert.Authority
	text, api, metrics string
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{Authority: testcert.New(t, t.TempDir()), api: freePort(t), metrics: freePort(t)}
	for _, name := range []string{"server", "alice", "bob", "eve"} {
		g.Issue(t, name, name)
	}
	g.write(t, "policy.yaml", "grants:\n  - {who: 'cn:alice', role: admin}\n  - {who: 'cn:bob', role: operator}\n")
	g.text, _ = lonely(t, g.api, 10)
	g.text = strings.Replace(g.text, `"127.0.0.1:0"`, fmt.Sprintf("%q, tls: {cert: server.pem, key: server.key, client_ca: ca.pem}, policy: policy.yaml", g.metrics), 1)
	return g
}

func (g *guarded) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(g.File(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (g *guarded) options(t *testing.T) Options {
	t.Helper()
	cfg, err := config.Parse(g.File("fabric.yaml"), []byte(g.text), nil, controller.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Config: cfg}
}

func (g *guarded) as(t *testing.T, who string) *grpc.ClientConn {
	t.Helper()
	conn, err := client.Dial(g.api, client.Options{CA: g.File("ca.pem"), Cert: g.File(who + ".pem"), Key: g.File(who + ".key")},
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestPolicyIsPlannedAndApplied: a plan shows a policy's changes. An operator cannot change the
// policy. An admin who would lose access must confirm it.
func TestPolicyIsPlannedAndApplied(t *testing.T) {
	g := newGuarded(t)
	serve(t, g.options(t))
	ctx := t.Context()
	alice, bob := pb.NewFabricServiceClient(g.as(t, "alice")), pb.NewFabricServiceClient(g.as(t, "bob"))
	apply := func(c pb.FabricServiceClient, text string, lockout bool) error {
		_, err := c.ApplyConfig(ctx, &pb.ApplyConfigRequest{Config: text, AllowLockout: lockout})
		return err
	}
	expect := func(what string, err error, code codes.Code, text string) {
		t.Helper()
		if status.Code(err) != code || err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %v with %q", what, err, code, text)
		}
	}
	p, err := alice.PlanConfig(ctx, &pb.PlanConfigRequest{Config: g.text})
	if err != nil || len(p.Controller) != 0 {
		t.Errorf("the plan of the same policy: %v, %v", p.GetController(), err)
	}
	expect("an operator applies the same policy", apply(bob, g.text, false), codes.OK, "")

	g.write(t, "other.yaml", "grants:\n  - {who: 'cn:bob', role: admin}\n")
	other := strings.Replace(g.text, "policy.yaml", "other.yaml", 1)
	_, err = alice.PlanConfig(ctx, &pb.PlanConfigRequest{Config: strings.Replace(g.text, "policy.yaml", "third.yaml", 1)})
	expect("a policy that is not there", err, codes.InvalidArgument, "controller.policy")
	expect("an operator who makes itself admin", apply(bob, other, false), codes.InvalidArgument, "needs the role admin")
	expect("an operator who forces it", apply(bob, other, true), codes.InvalidArgument, "needs the role admin")
	expect("an admin's own lockout", apply(alice, other, false), codes.InvalidArgument, "--allow-lockout")
	expect("a policy elsewhere", apply(alice, strings.Replace(g.text, "policy.yaml", "/etc/passwd", 1), true), codes.InvalidArgument, "is not in ")
	expect("other folders", apply(alice, strings.Replace(g.text, "policy: ", "files: [/], policy: ", 1), true), codes.InvalidArgument, "controller.files")
	_, err = alice.GetFabric(ctx, &pb.GetFabricRequest{})
	expect("the admin after all that", err, codes.OK, "")
	g.write(t, "more.yaml", "grants:\n  - {who: 'cn:alice', role: admin}\n  - {who: 'cn:eve', role: viewer}\n")
	p, err = alice.PlanConfig(ctx, &pb.PlanConfigRequest{Config: strings.Replace(g.text, "policy.yaml", "more.yaml", 1)})
	var lines []string
	for _, c := range p.GetController() {
		lines = append(lines, c.Kind.String()+" "+c.Text)
	}
	if got := strings.Join(lines, "\n"); err != nil || got != "KIND_MODIFY configuration controller.policy: policy.yaml → more.yaml\nKIND_DELETE policy grant operator to cn:bob\nKIND_INSERT policy grant viewer to cn:eve" {
		t.Errorf("the plan is %s, %v", got, err)
	}
	expect("an admin who means it", apply(alice, other, true), codes.OK, "")
	_, err = alice.GetFabric(ctx, &pb.GetFabricRequest{})
	expect("the admin of before", err, codes.PermissionDenied, "no role")
	expect("the admin of now", apply(bob, g.text, false), codes.OK, "")
}

// TestMetricsOverTLS: metrics need a role; health checks need none.
func TestMetricsOverTLS(t *testing.T) {
	g := newGuarded(t)
	conn, _ := serve(t, g.options(t))
	if _, err := pb.NewFabricServiceClient(conn).GetFabric(t.Context(), &pb.GetFabricRequest{}); err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(g.File("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	for _, c := range []struct{ who, path, want, not string }{
		{"bob", "/metrics", "200 # HELP", ""},
		{"bob", "/readyz", "503 state store: ok\nconfiguration: ok\nswitch s1: ", ""},
		{"eve", "/metrics", "403 cn:eve has no role", "HELP"},
		{"", "/metrics", "401 want a client certificate or a token", "HELP"},
		{"", "/readyz", "503 not ok\n", "s1"},
		{"", "/healthz", "200 ok\n", "store"},
	} {
		conf := &tls.Config{RootCAs: pool}
		if c.who != "" {
			pair, err := tls.LoadX509KeyPair(g.File(c.who+".pem"), g.File(c.who+".key"))
			if err != nil {
				t.Fatal(err)
			}
			conf.Certificates = []tls.Certificate{pair}
		}
		answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: conf}}).Get("https://" + g.metrics + c.path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if got := fmt.Sprint(answer.StatusCode, " ", string(body)); err != nil || !strings.HasPrefix(got, c.want) || c.not != "" && strings.Contains(got, c.not) {
			t.Errorf("%q, %s: %.200q, %v, want %q", c.who, c.path, got, err, c.want)
		}
	}
}

// TestWhatIsServed: without TLS only the socket is served, and no address that other machines
// reach.
func TestWhatIsServed(t *testing.T) {
	for _, c := range []struct {
		name, listen, metrics, socket string
		loopback                      string
		want                          string // of the error
	}{
		{"nothing", "127.0.0.1:0", "off", "", "", "want controller.tls, --socket, or --insecure-loopback"},
		{"open", "0.0.0.0:0", "off", "api.sock", "", `controller.listen "0.0.0.0:0": want controller.tls`},
		{"open with the flag", "0.0.0.0:0", "off", "api.sock", "admin", `controller.listen "0.0.0.0:0": want controller.tls`},
		{"open metrics", "127.0.0.1:0", "[::]:0", "api.sock", "admin", `controller.metrics "[::]:0": want controller.tls`},
		{"a name", "example.com:0", "off", "", "admin", "want controller.tls"},
	} {
		text, _ := lonely(t, c.listen, 10)
		cfg, err := config.Parse("lonely.yaml", []byte(strings.Replace(text, `"127.0.0.1:0"}`, fmt.Sprintf("%q}", c.metrics), 1)), nil, controller.Sections()...)
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Config: cfg, Loopback: authz.Role(c.loopback)}
		if c.socket != "" {
			o.Socket = filepath.Join(t.TempDir(), c.socket)
		}
		if err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.want)
		}
	}
}

// TestAuditIsExported: the exported file has all entries of the API's changes. So has a copy of it, and so has
// the file of the next controller.
func TestAuditIsExported(t *testing.T) {
	g := newGuarded(t)
	g.text = strings.Replace(g.text, "policy: ", fmt.Sprintf("state: %q, policy: ", g.File("state.db")), 1)
	var lines []string
	for range 2 {
		_, stop := serve(t, g.options(t))
		alice := g.as(t, "alice")
		if _, err := pb.NewFabricServiceClient(alice).SetLink(t.Context(), &pb.SetLinkRequest{A: "s1", B: "h1"}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			_, err := pb.NewFabricServiceClient(g.as(t, "eve")).SetLink(t.Context(), &pb.SetLinkRequest{A: "s1", B: "h1"})
			if status.Code(err) != codes.PermissionDenied {
				t.Error(err)
			}
		}
		lines = nil
		stream, err := pb.NewWeightServiceClient(alice).ExportAudit(t.Context(), &pb.ExportAuditRequest{})
		for err == nil {
			var l *pb.AuditLine
			if l, err = stream.Recv(); err == nil {
				lines = append(lines, l.Text+l.Head)
			}
		}
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		stop()
	}
	n, hash, err := audit.Verify(g.File("state.db.audit"), 1)
	if err != nil || n < 10 || hash == "" {
		t.Errorf("%d lines, %v", n, err)
	}
	all := strings.Join(lines, "\n")
	for _, want := range []string{
		`"identity":"cn:alice"`, `"what":"link down"`, `"subject":"s1 h1"`, `"after":"out of service"`,
		`"identity":"cn:eve"`, `"what":"denied"`, `"refused":"2 more within 1m0s`, // the last process ended, so the log says so
		`"what":"policy"`, `"after":"grant admin to cn:alice; grant operator to cn:bob"`, `"after":"sha256:`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the log lacks %s:\n%s", want, all)
		}
	}
}
