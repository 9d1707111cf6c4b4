package conformance

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate/internal/testcert"
	"github.com/headgate/headgate/softswitch/standalone"
	"github.com/headgate/headgate/tests/dataplane/bmv2"
	"github.com/headgate/headgate/tests/dataplane/target"
)

// trusts is a client that trusts an authority and shows the certificate of another, if any.
func trusts(t *testing.T, a, own *testcert.Authority, name string) credentials.TransportCredentials {
	t.Helper()
	c := &tls.Config{RootCAs: a.Pool()}
	if name != "" {
		pair := own.Pair(t, name)
		// The certificate is shown even to a server that asks for another authority's.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return credentials.NewTLS(c)
}

// TLS and mutual TLS with simple_switch_grpc's flags, on both switches.
func TestTLS(t *testing.T) {
	t.Run("Embedded", func(t *testing.T) { testTLS(t, runHeadgateSwitch) })
	t.Run("BMv2", func(t *testing.T) {
		bmv2.Need(t)
		testTLS(t, runBMv2)
	})
}

func testTLS(t *testing.T, run func(t *testing.T, flags []string) (address string)) {
	ours, theirs := testcert.New(t, t.TempDir()), testcert.New(t, t.TempDir())
	ours.Issue(t, "server", "server")
	ours.Issue(t, "client", "client")
	ours.IssueUntil(t, time.Now().Add(-time.Hour), "expired", "expired")
	theirs.Issue(t, "stranger", "stranger")

	oneWay := []string{"--grpc-server-ssl", "--grpc-server-cert", ours.File("server.pem"), "--grpc-server-key", ours.File("server.key")}
	mutual := append(oneWay[:len(oneWay):len(oneWay)], "--grpc-server-cacert", ours.File("ca.pem"), "--grpc-server-with-client-auth")
	type client struct {
		name string
		as   credentials.TransportCredentials
		want bool
	}
	for _, c := range []struct {
		name    string
		flags   []string
		clients []client
	}{
		{"one-way", oneWay, []client{
			{"without TLS", insecure.NewCredentials(), false},
			{"that trusts another authority", trusts(t, theirs, nil, ""), false},
			{"without certificate", trusts(t, ours, nil, ""), true},
			{"with a certificate", trusts(t, ours, ours, "client"), true},
		}},
		{"mutual", mutual, []client{
			{"without TLS", insecure.NewCredentials(), false},
			{"without certificate", trusts(t, ours, nil, ""), false},
			{"with another authority's certificate", trusts(t, ours, theirs, "stranger"), false},
			{"with a certificate that has expired", trusts(t, ours, ours, "expired"), false},
			{"with a certificate", trusts(t, ours, ours, "client"), true},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			address := run(t, c.flags)
			for _, cl := range c.clients {
				if err := useOver(t, address, cl.as); (err == nil) != cl.want {
					t.Errorf("a client %s: %v, want success: %v", cl.name, err, cl.want)
				}
			}
		})
	}
}

// useOver becomes primary and pushes a program over a separate connection.
func useOver(t *testing.T, address string, as credentials.TransportCredentials) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(as))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stream, err := p4v1.NewP4RuntimeClient(conn).StreamChannel(ctx)
	if err != nil {
		return err
	}
	id := &p4v1.Uint128{Low: 1}
	err = stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Arbitration{Arbitration: device(id)}})
	if err != nil {
		return err
	}
	m, err := stream.Recv()
	if err != nil {
		return err
	}
	if got := codes.Code(m.GetArbitration().GetStatus().GetCode()); got != codes.OK {
		t.Errorf("arbitration: %v", m)
	}
	_, err = p4v1.NewP4RuntimeClient(conn).SetForwardingPipelineConfig(ctx, &p4v1.SetForwardingPipelineConfigRequest{
		DeviceId: target.DeviceID, ElectionId: id,
		Action: p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, Config: loadProgram(t, "route").config(),
	})
	if err != nil {
		return err
	}
	// Leaves regularly, so that the next client finds the id free.
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for err == nil {
		_, err = stream.Recv()
	}
	if err != io.EOF {
		return err
	}
	return nil
}

// runHeadgateSwitch runs `headgate switch` until the test ends.
func runHeadgateSwitch(t *testing.T, flags []string) (address string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		args := []string{"--no-p4", "--device-id", strconv.Itoa(target.DeviceID), "--", "--grpc-server-addr", "127.0.0.1:0"}
		err := standalone.Main(ctx, append(args, flags...), in, in)
		in.CloseWithError(err)
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the switch ended with: %v", err)
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if a, ok := strings.CutPrefix(lines.Text(), "Server listening on "); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return a
		}
	}
	t.Fatalf("the switch does not listen: %v", lines.Err())
	return ""
}

// runBMv2 runs simple_switch_grpc until the test ends.
func runBMv2(t *testing.T, flags []string) (address string) {
	t.Helper()
	address, err := bmv2.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	p, err := bmv2.Run(bmv2.Options{Dir: t.TempDir(), DeviceID: target.DeviceID, Address: address, Target: flags})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return address
		}
		if time.Now().After(deadline) {
			t.Fatal(p.Explain(err))
		}
	}
}
