package cost_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/cli"
	"github.com/headgate/headgate/tests/race"
)

const (
	beHeadgate = "HEADGATE_TEST_COMMAND" // in the environment makes the test's binary the headgate command
	maxMemory  = 300                     // resident, in MB
	maxExit    = time.Second             // from SIGTERM to the end of the process
	streams    = 1000
	clients    = 20 // that the streams use together
)

func TestMain(m *testing.M) {
	if os.Getenv(beHeadgate) != "" {
		os.Exit(cli.Main(cli.NewRoot(), os.Stderr))
	}
	os.Exit(m.Run())
}

// victim is a headgate process to which clients open streams that they do not read.
type victim struct {
	*testing.T
	cmd   *exec.Cmd
	log   bytes.Buffer
	ctx   context.Context // ends with the process; its error is the cause
	conns [clients]*grpc.ClientConn
}

// start starts headgate with its API at an address.
func start(t *testing.T, address string, args ...string) *victim {
	v := &victim{T: t, cmd: exec.Command(os.Args[0], args...)}
	v.cmd.Env = append(os.Environ(), beHeadgate+"=1", "GOGC=100") // go test may run with another GOGC
	v.cmd.Stdout, v.cmd.Stderr = &v.log, &v.log
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, ended := context.WithCancelCause(context.Background())
	v.ctx = ctx
	go func() { ended(fmt.Errorf("it ended: %v", v.cmd.Wait())) }()
	t.Cleanup(func() { _ = v.cmd.Process.Kill(); <-ctx.Done() })
	for i := range v.conns {
		var err error
		if v.conns[i], err = grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStaticStreamWindowSize(65535),
			grpc.WithDefaultCallOptions(grpc.WaitForReady(true), grpc.MaxCallSendMsgSize(1<<30))); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = v.conns[i].Close() })
	}
	return v
}

// open opens all streams, over all connections.
func (v *victim) open(call func(ctx context.Context, n int, conn *grpc.ClientConn) error) {
	v.Helper()
	var wg sync.WaitGroup
	for i, conn := range v.conns {
		wg.Go(func() {
			for n := range streams / clients {
				if err := call(v.ctx, i+n*clients, conn); err != nil {
					v.Errorf("stream %d: %v", n, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// memory returns the process's largest resident memory, in MB.
func (v *victim) memory() int {
	v.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.cmd.Process.Pid))
	if err != nil {
		v.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		v.Fatal(err)
	}
	return kb / 1024
}

// check compares memory, and the time to end, with their bounds.
func (v *victim) check(what string) {
	v.Helper()
	memory := v.memory()
	began := time.Now()
	_ = v.cmd.Process.Signal(syscall.SIGTERM)
	most := maxExit * time.Duration(max(1, busy(v.T)))
	stacks := time.AfterFunc(3*most, func() { _ = v.cmd.Process.Signal(syscall.SIGQUIT) }) // into the log
	<-v.ctx.Done()
	stacks.Stop()
	took := time.Since(began)
	v.Logf("%s: %d MB, it ended %v after SIGTERM; on each processor %d programs want to run", what, memory, took.Round(time.Millisecond), busy(v.T))
	if state := v.cmd.ProcessState; !state.Success() || memory > maxMemory || took > most {
		v.Errorf("%s: %d MB, want %d; it ended %v after SIGTERM, want %v: %v\n%s", what, memory, maxMemory, took, most, state, &v.log)
	}
}

// busy returns the number of programs per processor.
func busy(t *testing.T) int {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	load, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(load) / runtime.NumCPU()
}

func address(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// newSwitch runs a switch with n ports.
func newSwitch(t *testing.T, ports int) *victim {
	dir := t.TempDir()
	empty := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	empty = append(empty, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 1, 0, 0, 0)
	args := []string{"switch", "--use-files", "3600", "--no-p4", "--device-id", "1"}
	for p := range ports {
		name := filepath.Join(dir, fmt.Sprintf("p%d", p))
		if err := os.WriteFile(name+"_in.pcap", empty, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-i", fmt.Sprintf("%d@%s", p, name))
	}
	at := address(t)
	return start(t, at, append(args, "--", "--grpc-server-addr", at, "--cpu-port", "510", "--priority-queues", "8")...)
}

// samples subscribes to everything, many times.
func samples(target string) *gpb.SubscribeRequest {
	list := &gpb.SubscriptionList{Prefix: &gpb.Path{Target: target}}
	for range 128 {
		list.Subscription = append(list.Subscription, &gpb.Subscription{
			Path: &gpb.Path{Elem: []*gpb.PathElem{{Name: "..."}}}, Mode: gpb.SubscriptionMode_SAMPLE, SampleInterval: uint64(10 * time.Second),
		})
	}
	return &gpb.SubscribeRequest{Request: &gpb.SubscribeRequest_Subscribe{Subscribe: list}}
}

func subscribe(target string) func(context.Context, int, *grpc.ClientConn) error {
	return func(ctx context.Context, _ int, conn *grpc.ClientConn) error {
		s, err := gpb.NewGNMIClient(conn).Subscribe(ctx)
		if err != nil {
			return err
		}
		return s.Send(samples(target))
	}
}

// TestUnreadStreams: a thousand unread streams and large useless messages do not make a process exceed its memory
// bound, and it ends within a second.
func TestUnreadStreams(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector takes memory of its own")
	}
	const settle = 12 * time.Second // a sample is due again, and switches announce changes
	t.Run("gNMI of a switch of 32 ports", func(t *testing.T) {
		v := newSwitch(t, 32)
		v.open(subscribe(""))
		time.Sleep(settle)
		v.check("switch")
	})
	t.Run("P4Runtime of a switch", func(t *testing.T) {
		v := newSwitch(t, 32)
		v.open(func(ctx context.Context, n int, conn *grpc.ClientConn) error {
			s, err := p4v1.NewP4RuntimeClient(conn).StreamChannel(ctx)
			if err != nil {
				return err
			}
			return s.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Arbitration{Arbitration: &p4v1.MasterArbitrationUpdate{DeviceId: 1, ElectionId: &p4v1.Uint128{Low: uint64(n + 1)}}}})
		})
		time.Sleep(settle)
		v.check("switch")
	})
	t.Run("packet-outs of 32 MB", func(t *testing.T) {
		v := newSwitch(t, 2)
		s, err := p4v1.NewP4RuntimeClient(v.conns[0]).StreamChannel(v.ctx)
		if err != nil {
			t.Fatal(err)
		}
		m := &p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Packet{Packet: &p4v1.PacketOut{Payload: make([]byte, 32<<20)}}}
		for range 100 {
			if err := s.Send(m); err != nil {
				break // the switch has ended the stream
			}
		}
		v.check("switch")
	})
	t.Run("controller", func(t *testing.T) {
		at := address(t)
		v := start(t, at, "controller", "-f", fabric(t), "--listen", at, "--metrics", "off", "--state", filepath.Join(t.TempDir(), "state.db"), "--insecure-loopback=admin", "--socket", filepath.Join(t.TempDir(), "s"))
		v.open(func(ctx context.Context, n int, conn *grpc.ClientConn) (err error) {
			switch n % 4 {
			case 0:
				err = subscribe("*")(ctx, n, conn)
			case 1:
				_, err = pb.NewFabricServiceClient(conn).StreamTelemetry(ctx, &pb.StreamTelemetryRequest{})
			case 2:
				_, err = pb.NewWeightServiceClient(conn).WatchWeights(ctx, &pb.WatchWeightsRequest{})
			case 3:
				_, err = pb.NewFabricServiceClient(conn).WatchEvents(ctx, &pb.WatchEventsRequest{})
			}
			return err
		})
		time.Sleep(settle)
		v.check("controller")
	})
}

// fabric writes a configuration with 32 leaves, which do not run.
func fabric(t *testing.T) string {
	var b strings.Builder
	b.WriteString("name: unread\nswitches:\n")
	for i := range 32 {
		fmt.Fprintf(&b, "  - {name: s%d, device_id: %d, address: \"127.0.0.%d:1\"}\n", i, i+1, i+1)
	}
	b.WriteString("hosts:\n")
	for i := range 256 {
		fmt.Fprintf(&b, "  - {name: h%d, ipv4: 10.0.%d.%d}\n", i, i/8, i%8+1)
	}
	b.WriteString("links:\n")
	for i := range 256 {
		fmt.Fprintf(&b, "  - {a: \"s%d:%d\", b: h%d, rate: 10Gbps}\n", i/8, i%8+1, i)
	}
	for i := range 31 {
		fmt.Fprintf(&b, "  - {a: \"s%d:20\", b: \"s%d:21\", rate: 40Gbps}\n", i, i+1)
	}
	name := filepath.Join(t.TempDir(), "fabric.yaml")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
