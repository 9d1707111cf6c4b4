package conformance

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate/softswitch/standalone"
	"github.com/headgate/headgate/tests/dataplane/bmv2"
	"github.com/headgate/headgate/tests/dataplane/target"
)

// authority signs certificates and keeps them as PEM files in a folder.
type authority struct {
	t    *testing.T
	dir  string
	name string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, dir, name string) *authority {
	a := &authority{t: t, dir: dir, name: name}
	a.issue(name, time.Now().Add(time.Hour))
	return a
}

// issue makes NAME.pem and NAME.key: the authority's own at first, later those it signs.
func (a *authority) issue(name string, until time.Time) {
	a.t.Helper()
	check := func(err error) {
		a.t.Helper()
		if err != nil {
			a.t.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	check(err)
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA:        a.cert == nil, BasicConstraintsValid: true,
	}
	if a.cert == nil {
		a.cert, a.key = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	check(err)
	if a.cert == c {
		a.cert, err = x509.ParseCertificate(der)
		check(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	check(err)
	check(os.WriteFile(a.file(name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	check(os.WriteFile(a.file(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// trusts is a client that trusts the authority and shows a certificate of a name, if any.
func (a *authority) trusts(name string) credentials.TransportCredentials {
	a.t.Helper()
	c := &tls.Config{RootCAs: x509.NewCertPool()}
	c.RootCAs.AddCert(a.cert)
	if name != "" {
		pair, err := tls.LoadX509KeyPair(a.file(name+".pem"), a.file(name+".key"))
		if err != nil {
			a.t.Fatal(err)
		}
		// Shown also to a server that asks for another authority's.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return credentials.NewTLS(c)
}

// TLS and mutual TLS by the flags of simple_switch_grpc, on both switches.
func TestTLS(t *testing.T) {
	t.Run("Embedded", func(t *testing.T) { testTLS(t, runHeadgateSwitch) })
	t.Run("BMv2", func(t *testing.T) {
		bmv2.Need(t)
		testTLS(t, runBMv2)
	})
}

func testTLS(t *testing.T, run func(t *testing.T, flags []string) (address string)) {
	dir := t.TempDir()
	ours, theirs := newAuthority(t, dir, "ours"), newAuthority(t, dir, "theirs")
	soon, past := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	ours.issue("server", soon)
	ours.issue("client", soon)
	ours.issue("expired", past)
	theirs.issue("stranger", soon)

	oneWay := []string{"--grpc-server-ssl", "--grpc-server-cert", ours.file("server.pem"), "--grpc-server-key", ours.file("server.key")}
	mutual := append(oneWay[:len(oneWay):len(oneWay)], "--grpc-server-cacert", ours.file("ours.pem"), "--grpc-server-with-client-auth")
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
			{"that trusts another authority", theirs.trusts(""), false},
			{"without certificate", ours.trusts(""), true},
			{"with a certificate", ours.trusts("client"), true},
		}},
		{"mutual", mutual, []client{
			{"without TLS", insecure.NewCredentials(), false},
			{"without certificate", ours.trusts(""), false},
			{"with another authority's certificate", ours.trusts("stranger"), false},
			{"with a certificate that has expired", ours.trusts("expired"), false},
			{"with a certificate", ours.trusts("client"), true},
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

// useOver becomes primary and pushes a program over a connection of its own.
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
	// Leave in good order, so that the next client finds the id free.
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
