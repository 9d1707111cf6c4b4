package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/local"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/dynamicpb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/config"
)

// nobody is Linux' unprivileged user.
const nobody = 65534

// dialNobody connects to a Unix socket as nobody: the kernel uses the credentials of the thread
// that connects.
func dialNobody(_ context.Context, path string) (net.Conn, error) {
	runtime.LockOSThread() // if the thread cannot become root again, it stays locked for ever
	if _, _, e := syscall.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), nobody, ^uintptr(0)); e != 0 {
		return nil, e
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	}
	if _, _, e := syscall.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), 0, ^uintptr(0)); e != 0 {
		return nil, e
	}
	runtime.UnlockOSThread()
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	return net.FileConn(file)
}

// threatened is a daemon that another user of its machine tries to misuse.
type threatened struct {
	dir, text string
	socket    string
	conn      *grpc.ClientConn // of nobody
	stop      func()
}

// newThreatened runs a daemon of root with a policy, and connects as nobody.
func newThreatened(t *testing.T, policy string) *threatened {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become nobody")
	}
	r := &threatened{dir: t.TempDir()}
	r.text, _ = lonely(t, freePort(t), 10)
	if policy != "" {
		r.write(t, "policy.yaml", policy, 0o600)
		r.text = strings.Replace(r.text, "metrics: ", "policy: policy.yaml, metrics: ", 1)
	}
	cfg, err := config.Parse(filepath.Join(r.dir, "fabric.yaml"), []byte(r.text), nil, controller.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	// The socket is in a folder that nobody may enter: the folder's mode does not decide who may
	// call.
	open, err := os.MkdirTemp("", "headgate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(open) })
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	r.socket = filepath.Join(open, "api.sock")
	_, r.stop = serve(t, Options{Config: cfg, Socket: r.socket})
	r.conn, err = grpc.NewClient("passthrough:///"+r.socket, grpc.WithTransportCredentials(local.NewCredentials()),
		grpc.WithContextDialer(dialNobody), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.conn.Close() })
	return r
}

func (r *threatened) write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(r.dir, name), mode); err != nil {
		t.Fatal(err)
	}
}

// TestNobodyCallsNothing: without a policy, another user of the machine may call no method over the
// socket, and finds no open port.
func TestNobodyCallsNothing(t *testing.T) {
	r := newThreatened(t, "")
	services := pb.File_api_headgate_v1_headgate_proto.Services()
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for j := range methods.Len() {
			m := methods.Get(j)
			s, err := r.conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: m.IsStreamingServer(), ClientStreams: m.IsStreamingClient()},
				fmt.Sprintf("/%s/%s", services.Get(i).FullName(), m.Name()))
			if err == nil {
				_ = s.SendMsg(dynamicpb.NewMessage(m.Input())) // RecvMsg has the error
				err = s.RecvMsg(dynamicpb.NewMessage(m.Output()))
			}
			if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "uid:65534 has no role") {
				t.Errorf("%s: %v, want PermissionDenied for uid:65534", m.FullName(), err)
			}
		}
	}
}

// TestNobodyFindsNoPort: without TLS and without the flag, only the socket listens.
func TestNobodyFindsNoPort(t *testing.T) {
	api, metrics := freePort(t), freePort(t)
	text, _ := lonely(t, api, 10)
	cfg, err := config.Parse("lonely.yaml", []byte(strings.Replace(text, "127.0.0.1:0", metrics, 1)), nil, controller.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	conn, _ := serve(t, Options{Config: cfg, Loopback: "none"})
	if _, err := pb.NewFabricServiceClient(conn).GetFabric(t.Context(), &pb.GetFabricRequest{}); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{api, metrics} {
		if c, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s answers: %v, %v", address, c, err)
		}
	}
}

// TestNobodyReadsNoFile: with the role operator, the user nobody still cannot make the controller read a file that this user
// may not read. device_config accepts only files of the folder that everyone may read, and no devices.
func TestNobodyReadsNoFile(t *testing.T) {
	r := newThreatened(t, "grants: [{who: 'uid:65534', role: operator}]")
	const secret = "-----BEGIN PRIVATE KEY-----"
	elsewhere := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(elsewhere, []byte(secret), 0o644); err != nil {
		t.Fatal(err)
	}
	r.write(t, "controller.key", secret, 0o600)
	r.write(t, "large", "", 0o644)
	for _, err := range []error{
		os.Symlink(elsewhere, filepath.Join(r.dir, "link")), os.Symlink("/dev/zero", filepath.Join(r.dir, "zero")),
		syscall.Mkfifo(filepath.Join(r.dir, "pipe"), 0o644), os.Truncate(filepath.Join(r.dir, "large"), 65<<20),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	fabric := pb.NewFabricServiceClient(r.conn)
	for name, want := range map[string]string{
		elsewhere: "is not in " + r.dir, "/dev/zero": "is not in ", "../secret": "is not in ", "/etc/shadow": "is not in ",
		"link": "escapes", "zero": "escapes", "pipe": "no regular file", "large": "has 68157440 bytes, at most 67108864 are allowed",
		"controller.key": "want a file that everybody on this machine may read", "policy.yaml": "want a file that everybody",
		filepath.Join(r.dir, "controller.key"): "want a file that everybody", ".": "no regular file",
	} {
		text := strings.Replace(r.text, `"127.0.0.1:1"`, fmt.Sprintf(`"127.0.0.1:1", target: tofino1, device_config: %q`, name), 1)
		for what, call := range map[string]func() error{
			"plan": func() error {
				_, err := fabric.PlanConfig(t.Context(), &pb.PlanConfigRequest{Config: text})
				return err
			},
			"apply": func() error {
				_, err := fabric.ApplyConfig(t.Context(), &pb.ApplyConfigRequest{Config: text})
				return err
			},
		} {
			err := call()
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
				t.Errorf("%s of %s: %v, want %q", what, name, err, want)
			}
		}
	}
	// An operator cannot extend its own rights either: it may change neither the policy nor the
	// folders.
	for _, change := range []string{"policy: other.yaml", "policy: policy.yaml, files: [/]", "policy: policy.yaml, audit: /tmp/x"} {
		r.write(t, "other.yaml", "grants: [{who: 'uid:65534', role: admin}]", 0o600)
		_, err := fabric.ApplyConfig(t.Context(), &pb.ApplyConfigRequest{Config: strings.Replace(r.text, "policy: policy.yaml", change, 1), AllowLockout: true})
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", change, err)
		}
	}
}

// TestNobodyIsNoOtherHost: a host cannot end another host's stream, and gets no weight for an
// application without a budget.
func TestNobodyIsNoOtherHost(t *testing.T) {
	r := newThreatened(t, "grants: [{who: 'uid:65534', role: host, hosts: [h2]}]")
	s, err := pb.NewHostServiceClient(r.conn).Attach(t.Context())
	if err == nil {
		err = s.Send(&pb.HostReport{Host: "h1"})
	}
	if err == nil {
		_, err = s.Recv()
	}
	if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), `may attach as h2, not as "h1"`) {
		t.Errorf("as another: %v", err)
	}
}

// TestNobodyGetsNoWeight: an application without a budget gets no weight, whoever asks.
func TestNobodyGetsNoWeight(t *testing.T) {
	r := newThreatened(t, "grants: [{who: 'uid:65534', role: host, hosts: [h1], applications: ['*']}, {who: 'uid:65534', role: application, applications: [nosuch, web]}]")
	s, err := pb.NewHostServiceClient(r.conn).Attach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key := func(port uint32) *pb.FlowKey {
		return &pb.FlowKey{SrcIpv4: "10.0.1.1", DstIpv4: "10.0.2.1", SrcPort: port, DstPort: 50151}
	}
	report := &pb.HostReport{Host: "h1", Flows: []*pb.FlowReport{{Flow: key(1), Weight: 50000, Application: "nosuch"}, {Flow: key(2), Weight: 1}, {Flow: key(3), Weight: 50000, Application: "web"}}}
	if err := s.Send(report); err != nil {
		t.Fatal(err)
	}
	for refused := 0; refused < len(report.Flows); {
		c, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if c.Weight == nil {
			continue
		}
		if refused++; !strings.Contains(c.Refused, "budget") {
			t.Errorf("%v is granted: %v", c.Weight.Flow, c)
		}
	}
	_, err = pb.NewWeightServiceClient(r.conn).SetWeight(t.Context(), &pb.SetWeightRequest{Flow: key(4), Weight: 1, Application: "nosuch"})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("set weight: %v", err)
	}
}

// TestNobodyFloodsNoLog: refused calls, with thousands of flows or without rights, displace no
// entries of others in the log.
func TestNobodyFloodsNoLog(t *testing.T) {
	r := newThreatened(t, "grants: [{who: 'uid:65534', role: application, applications: [web]}]")
	weights := pb.NewWeightServiceClient(r.conn)
	many := &pb.SetWeightsRequest{}
	for i := range uint32(40000) {
		many.Weights = append(many.Weights, &pb.SetWeightRequest{Application: "web", Weight: 1,
			Flow: &pb.FlowKey{SrcIpv4: "10.0.1.1", DstIpv4: "10.0.2.1", SrcPort: i + 1, DstPort: 50151}})
	}
	for range 2 {
		if _, err := weights.SetWeights(t.Context(), many); status.Code(err) != codes.FailedPrecondition {
			t.Fatalf("40000 weights: %v", err)
		}
	}
	for range 1000 {
		if _, err := weights.SetBudget(t.Context(), &pb.SetBudgetRequest{Application: "web", Limit: 1e6}); status.Code(err) != codes.PermissionDenied {
			t.Fatalf("a budget: %v", err)
		}
	}
	conn, err := grpc.NewClient("unix:"+r.socket, grpc.WithTransportCredentials(local.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	list, err := pb.NewWeightServiceClient(conn).ListAudit(t.Context(), &pb.ListAuditRequest{Limit: 100000})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, e := range list.Entries {
		kinds[e.What]++
	}
	if kinds[audit.Apply] != 1 || kinds[audit.Weight] != 1 || kinds[audit.Denied] != 1 {
		t.Errorf("the log has %v", kinds)
	}
}
