// Package client_test runs the example clients against a controller with TLS and a token.
package client_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/daemon"
	"github.com/headgate/headgate/internal/testcert"
	"github.com/headgate/headgate/tests/lag"
)

const fabric = `
name: lab
switches:
  - {name: s1, device_id: 1, address: "127.0.0.1:1"}
hosts:
  - {name: h1, ipv4: 10.0.1.1}
  - {name: h2, ipv4: 10.0.2.1}
links:
  - {a: "s1:1", b: h1, rate: 10Mbps}
  - {a: "s1:2", b: h2, rate: 10Mbps}
applications:
  - {name: web, budget: 10}
controller: {listen: %q, metrics: "127.0.0.1:0", tls: {cert: server.pem, key: server.key, client_ca: ca.pem}, policy: policy.yaml}
`

// output collects the text that a process prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start runs a controller until the test ends. It returns the controller's address, an operator's connection, and the
// folder of ca.pem and of the file token.
func start(t *testing.T) (address string, operator *grpc.ClientConn, a *testcert.Authority) {
	t.Helper()
	a = testcert.New(t, t.TempDir())
	a.Issue(t, "server", "controller")
	for name, text := range map[string]string{
		"token": "aaaaaaaaaaaaaaaaaaaaaaaa\n", "tokens": "ci aaaaaaaaaaaaaaaaaaaaaaaa\n",
		"policy.yaml": "grants:\n  - {who: 'token:ci', role: operator}\ntokens: tokens\n",
	} {
		if err := os.WriteFile(a.File(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = free.Addr().String()
	_ = free.Close()
	cfg, err := config.Parse(a.File("fabric.yaml"), fmt.Appendf(nil, fabric, address), nil, controller.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- daemon.Run(ctx, daemon.Options{Config: cfg, Socket: a.File("api.sock"), Log: slog.New(slog.DiscardHandler)})
	}()
	operator, err = grpc.NewClient("unix:"+a.File("api.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = operator.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if _, err := pb.NewFabricServiceClient(operator).GetFabric(t.Context(), &pb.GetFabricRequest{}); err != nil {
		t.Fatal(err)
	}
	return address, operator, a
}

// TestClients: each example sets a weight, which the controller then has, and prints a later event.
func TestClients(t *testing.T) {
	for _, tc := range []struct {
		name    string
		probe   []string // fails if the example cannot run
		missing string
		command func(server, ca, token string) []string
	}{
		{"go", []string{"go", "version"}, "Debian's golang-go", func(server, ca, token string) []string {
			return []string{filepath.Join(filepath.Dir(ca), "example"), "-server", server, "-tls-ca", ca, "-token-file", token}
		}},
		{"python", []string{"sh", "-c", "/usr/bin/python3 -c 'import grpc, google.protobuf' && protoc --version && test -x /usr/bin/grpc_python_plugin"}, "Debian's python3-grpcio, python3-protobuf and protobuf-compiler-grpc",
			func(server, ca, token string) []string {
				return []string{"/usr/bin/python3", "python/client.py", server, ca, token}
			}},
		{"grpcurl", []string{"grpcurl", "-version"}, "grpcurl, which Debian does not have: go install github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3",
			func(server, ca, token string) []string {
				return []string{"/bin/sh", "grpcurl/client.sh", server, ca, token}
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if out, err := exec.Command(tc.probe[0], tc.probe[1:]...).CombinedOutput(); err != nil {
				t.Skipf("want %s: %v %s", tc.missing, err, out)
			}
			address, operator, a := start(t)
			if tc.name == "go" {
				if out, err := exec.Command("go", "build", "-o", a.File("example"), "./go").CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			command := tc.command(address, a.File("ca.pem"), a.File("token"))
			var out output
			cmd := exec.Command(command[0], command[1:]...)
			cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = &out, &out, &syscall.SysProcAttr{Setpgid: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // with its children
				_ = cmd.Wait()
				if t.Failed() {
					t.Log(out.String())
				}
			})
			lag.Await(t, "the first event", func() bool { return strings.Contains(out.String(), "config.applied") })
			l, err := pb.NewWeightServiceClient(operator).ListWeights(t.Context(), &pb.ListWeightsRequest{Application: "web"})
			if err != nil || len(l.Flows) != 1 || l.Flows[0].Weight != 2 || l.Flows[0].GetFlow().GetSrcPort() != 4242 {
				t.Errorf("the controller has %v, %v, want one flow of weight 2", l, err)
			}
			if _, err := pb.NewFabricServiceClient(operator).SetLink(t.Context(), &pb.SetLinkRequest{A: "s1", B: "h2"}); err != nil {
				t.Fatal(err)
			}
			lag.Await(t, "the event of a link", func() bool { return strings.Contains(out.String(), "link.disabled") })
		})
	}
}
