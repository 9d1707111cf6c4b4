package mininet

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
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
)

const (
	repository = "../.."
	headgate   = repository + "/bin/headgate"
	python     = "/usr/bin/python3" // Debian's, which has Mininet
)

// network is a fabric file in Mininet, served by mininet/fabric.py --serve. One goroutine owns it.
type network struct {
	t        *testing.T
	dir      string // folder of logs, captures and the controller's socket
	process  *exec.Cmd
	commands io.WriteCloser
	answers  *bufio.Reader
	inside   int // a process in its namespaces

	socket string
	hosts  map[string]hostInfo

	conn    *grpc.ClientConn
	admin   pb.FabricServiceClient
	reports pb.HostServiceClient
	weights pb.WeightServiceClient
}

// hostInfo is a Mininet host's position; its process ID is that of a process inside.
type hostInfo struct {
	PID       int                `json:"pid"`
	Interface string             `json:"interface"`
	Addresses map[int]netip.Addr `json:"addresses"` // by version of IP
	IP        netip.Addr         `json:"-"`         // the one that agents and pings use
}

// begin starts the network for a fabric file's text, with agents and pings of one version of IP. It ends with the
// test, or by end.
func begin(t *testing.T, yaml []byte, kind string, version int, flags ...string) *network {
	t.Helper()
	dir, err := os.MkdirTemp("", "headgate-mininet-") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "fabric.yaml")
	if err := os.WriteFile(file, yaml, 0o644); err != nil {
		t.Fatal(err)
	}
	n := &network{t: t, dir: dir}
	n.process = exec.Command(python, append([]string{repository + "/mininet/fabric.py", file, "--switch", kind, "--logs", dir, "--serve"}, flags...)...)
	n.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var errs bytes.Buffer
	n.process.Stderr = &errs
	if n.commands, err = n.process.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := n.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	n.answers = bufio.NewReader(out)
	if err := n.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.end()
		if t.Failed() || t.Skipped() {
			t.Logf("the logs stay in %s\n%s", dir, errs.String())
		} else {
			os.RemoveAll(dir)
		}
	})
	line, err := n.answers.ReadBytes('\n')
	if err != nil {
		n.end()
		t.Fatalf("mininet/fabric.py: %v\n%s", err, errs.String())
	}
	where := struct {
		Socket string              `json:"socket"`
		Hosts  map[string]hostInfo `json:"hosts"`
	}{}
	if err := json.Unmarshal(line, &where); err != nil {
		t.Fatalf("%v in %s", err, line)
	}
	n.socket, n.hosts = where.Socket, where.Hosts
	for name, h := range n.hosts {
		h.IP = h.Addresses[version]
		n.hosts[name] = h
	}
	n.inside = child(t, n.process.Process.Pid)
	if n.conn, err = grpc.NewClient("unix:"+n.socket, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		t.Fatal(err)
	}
	n.admin, n.reports, n.weights = pb.NewFabricServiceClient(n.conn), pb.NewHostServiceClient(n.conn), pb.NewWeightServiceClient(n.conn)
	return n
}

// end stops the network and waits for its end.
func (n *network) end() {
	if n.process.ProcessState != nil {
		return
	}
	if n.conn != nil {
		n.conn.Close()
	}
	n.commands.Close()
	late := time.AfterFunc(30*time.Second, func() { _ = n.process.Process.Kill() })
	defer late.Stop()
	_, _ = io.Copy(io.Discard, n.answers)
	_ = n.process.Wait()
}

// do makes the network run a command of nodes.Served.
func (n *network) do(command ...string) {
	n.t.Helper()
	_, err := fmt.Fprintln(n.commands, strings.Join(command, " "))
	if err == nil {
		var line string
		if line, err = n.answers.ReadString('\n'); err == nil && line != "done\n" {
			err = fmt.Errorf("%q", line)
		}
	}
	if err != nil {
		n.t.Fatalf("%v: %v", command, err)
	}
}

// in returns a command that runs in a host's namespaces.
func (n *network) in(host string, command ...string) *exec.Cmd {
	h := n.hosts[host]
	args := []string{"--target", strconv.Itoa(n.inside), "--net", "--pid", "--mount", "mnexec", "-a", strconv.Itoa(h.PID)}
	cmd := exec.Command("nsenter", append(args, command...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

var pinged = regexp.MustCompile(`time=([0-9.]+) ms`)

// ping makes a host ping another. It returns a function that stops it and returns the longest time of an answer.
// Without hosts nothing is measured.
func (n *network) ping(r reaction) func() time.Duration {
	n.t.Helper()
	if r.from == "" {
		return func() time.Duration { return 0 }
	}
	cmd := n.in(r.from, "ping", "-n", "-i", "0.1", n.hosts[r.to].IP.String())
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	return func() (most time.Duration) {
		_ = syscall.Kill(child(n.t, cmd.Process.Pid), syscall.SIGINT)
		_ = cmd.Wait()
		for _, m := range pinged.FindAllStringSubmatch(out.String(), -1) {
			ms, _ := strconv.ParseFloat(m[1], 64)
			most = max(most, time.Duration(ms*float64(time.Millisecond)))
		}
		return most
	}
}

// kill ends a command started with in, and its children.
func (n *network) kill(cmd *exec.Cmd) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid))
	if id, bad := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && bad == nil {
		_ = syscall.Kill(id, syscall.SIGKILL)
	}
	_ = cmd.Wait()
}

// child returns the only child of a process.
func child(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err == nil {
		var id int
		if id, err = strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			return id
		}
	}
	t.Fatalf("the child of process %d: %v", pid, err)
	return 0
}

// agent is a `headgate host` in a Mininet host.
type agent struct {
	cmd  *exec.Cmd
	json string
	log  string
}

// host starts an agent.
func (n *network) host(name string, args ...string) *agent {
	n.t.Helper()
	program, err := filepath.Abs(headgate)
	if err != nil {
		n.t.Fatal(err)
	}
	a := &agent{json: filepath.Join(n.dir, name+".json"), log: filepath.Join(n.dir, name+".log")}
	log, err := os.Create(a.log)
	if err != nil {
		n.t.Fatal(err)
	}
	defer log.Close()
	h := n.hosts[name]
	a.cmd = n.in(name, append([]string{program, "host", "--interface", h.Interface, "--name", name, "--ip", h.IP.String(),
		"--controller", "unix:" + n.socket, "--warm-up", "0s", "--json", a.json}, args...)...)
	a.cmd.Stdout, a.cmd.Stderr = log, log
	if err := a.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	return a
}

// summary is the final output of `headgate host`.
type summary struct {
	Flows []struct {
		Dst         string  `json:"dst"`
		MeasuredFor float64 `json:"measured_for"`
		Acked       int64   `json:"acked_bytes"`
		Goodput     float64 `json:"goodput_bps"`
		Retransmits uint64  `json:"retransmits"`
		CNPs        uint64  `json:"cnps"`
		Sent        uint64  `json:"sent_packets"`
		Finished    bool    `json:"finished"`
	} `json:"flows"`
	Received struct {
		Packets uint64 `json:"packets"`
	} `json:"received"`
	PFC struct {
		Frames uint64 `json:"frames"`
	} `json:"pfc"`
}

// stop interrupts an agent and returns its measurements.
func (n *network) stop(a *agent) (s summary) {
	n.t.Helper()
	_ = syscall.Kill(child(n.t, a.cmd.Process.Pid), syscall.SIGINT)
	if err := a.cmd.Wait(); err != nil {
		text, _ := os.ReadFile(a.log)
		n.t.Fatalf("%v: %v\n%s", a.cmd.Args, err, text)
	}
	text, err := os.ReadFile(a.json)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return s
}
