package scale

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/cli"
)

// beHeadgate in the environment makes the test's binary the headgate command.
const beHeadgate = "HEADGATE_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(beHeadgate) != "" {
		os.Exit(cli.Main(cli.NewRoot(), os.Stderr))
	}
	os.Exit(m.Run())
}

// daemon is a controller's process.
type daemon struct {
	t       testing.TB
	dir     string
	cmd     *exec.Cmd
	conn    *grpc.ClientConn
	api     pb.FabricServiceClient
	metrics string // URLs
	pprof   string
}

// newDaemon starts a controller with a configuration. Its log and its state stay in dir.
func newDaemon(t testing.TB, dir string, yaml []byte) *daemon {
	t.Helper()
	d := &daemon{t: t, dir: dir, metrics: free(t), pprof: free(t)}
	file, socket := filepath.Join(dir, "fabric.yaml"), filepath.Join(dir, "api.sock")
	if err := os.WriteFile(file, yaml, 0o644); err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(dir, "controller.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d.cmd = exec.Command(self, "controller", "-f", file, "--socket", socket, "--insecure-loopback", "--metrics", d.metrics, "--pprof", d.pprof)
	d.cmd.Env, d.cmd.Stderr = append(os.Environ(), beHeadgate+"=1"), log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	d.conn, err = grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30), grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	d.api = pb.NewFabricServiceClient(d.conn)
	return d
}

// free returns a loopback address with a free port.
func free(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// kill ends the process at once.
func (d *daemon) kill() {
	if d.cmd.ProcessState == nil {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
		_ = d.conn.Close()
	}
}

// states returns the number of switches in each state.
func (d *daemon) states(ctx context.Context) map[pb.SwitchStatus_State]int {
	d.t.Helper()
	r, err := d.api.ListSwitches(ctx, &pb.ListSwitchesRequest{})
	if err != nil {
		d.t.Fatalf("%v\n%s", err, d.tail())
	}
	count := map[pb.SwitchStatus_State]int{}
	for _, s := range r.Switches {
		count[s.State]++
	}
	return count
}

// ready waits until n switches are ready.
func (d *daemon) ready(n int) {
	d.t.Helper()
	for began := time.Now(); d.states(d.t.Context())[pb.SwitchStatus_STATE_READY] < n; {
		if time.Since(began) > 40*time.Minute {
			d.t.Fatalf("not ready: %v\n%s", d.states(d.t.Context()), d.tail())
		}
		time.Sleep(max(100*time.Millisecond, time.Duration(n)*time.Millisecond)) // listing a thousand switches takes time, too
	}
}

// logged returns the number of lines in the log that contain a text.
func (d *daemon) logged(what string) int {
	text, _ := os.ReadFile(filepath.Join(d.dir, "controller.log"))
	return strings.Count(string(text), what)
}

// tail returns the end of the log.
func (d *daemon) tail() string {
	text, _ := os.ReadFile(filepath.Join(d.dir, "controller.log"))
	return string(text[max(0, len(text)-4000):])
}

// cpu returns the processor time of the process.
func (d *daemon) cpu() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.cmd.Process.Pid))
	if err != nil {
		d.t.Fatal(err)
	}
	f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100 on every Linux
}

var (
	resident = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)
	peak     = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)
	live     = regexp.MustCompile(`# HeapAlloc = (\d+)`)
	routines = regexp.MustCompile(`goroutine profile: total (\d+)`)
)

// memory returns a number of bytes from a file of the process, given in units.
func (d *daemon) memory(what *regexp.Regexp) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if err != nil {
		d.t.Fatal(err)
	}
	return number(d.t, what, text) << 10
}

// heap returns the live heap of the process right after a garbage collection, in bytes.
func (d *daemon) heap() int64 {
	return number(d.t, live, d.get("http://"+d.pprof+"/debug/pprof/heap?gc=1&debug=1"))
}

// goroutines returns the number of goroutines of the process.
func (d *daemon) goroutines() int64 {
	return number(d.t, routines, d.get("http://"+d.pprof+"/debug/pprof/goroutine?debug=1"))
}

// files returns the number of open files of the process.
func (d *daemon) files() int64 {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.cmd.Process.Pid))
	if err != nil {
		d.t.Fatal(err)
	}
	return int64(len(list))
}

func number(t testing.TB, what *regexp.Regexp, text []byte) int64 {
	t.Helper()
	m := what.FindSubmatch(text)
	if m == nil {
		t.Fatalf("no %v in %.200s", what, text)
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (d *daemon) get(url string) []byte {
	d.t.Helper()
	r, err := http.Get(url)
	if err != nil {
		d.t.Fatalf("%v\n%s", err, d.tail())
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		d.t.Fatalf("%s: %s %v", url, r.Status, err)
	}
	return text
}

// plan returns the number of changes that the controller plans for its configuration file.
func (d *daemon) plan(ctx context.Context) (changes int, err error) {
	yaml, err := os.ReadFile(filepath.Join(d.dir, "fabric.yaml"))
	if err != nil {
		return 0, err
	}
	r, err := d.api.PlanConfig(ctx, &pb.PlanConfigRequest{File: "fabric.yaml", Config: string(yaml)})
	if err != nil {
		return 0, err
	}
	for _, p := range r.Switches {
		if p.Unreachable != "" {
			return 0, fmt.Errorf("%s: %s", p.Name, p.Unreachable)
		}
		changes += len(p.Changes)
	}
	return changes, nil
}
