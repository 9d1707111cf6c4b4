package bmv2

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/controller/trafficmanager/bmv2"
)

// Command is the switch's program. CLI is BMv2's own program for its tables.
const (
	Command = "simple_switch_grpc"
	CLI     = "simple_switch_CLI"
)

// Look returns an error that names a missing program, or a module that a program lacks, and its source.
func Look(programs ...string) error {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			return fmt.Errorf("%s is not on the PATH: p4c and BMv2's programs come from p4lang's packages (see README)", p)
		}
		if p != CLI {
			continue
		}
		if out, err := exec.Command(p, "--help").CombinedOutput(); err != nil && bytes.Contains(out, []byte("No module named 'thrift'")) {
			return fmt.Errorf("%s finds no Python module thrift: install the Debian package python3-thrift", p)
		}
	}
	return nil
}

// Need skips a test unless BMv2 was asked for, and it and other tools are on the PATH.
func Need(t testing.TB, tools ...string) {
	t.Helper()
	if os.Getenv("HEADGATE_BMV2") != "1" {
		t.Skip("runs on simple_switch_grpc with HEADGATE_BMV2=1 (make test-bmv2)")
	}
	if err := Look(append(tools, Command)...); err != nil {
		t.Skip(err)
	}
}

// Options say how a switch runs.
type Options struct {
	Command  []string // only Command if empty; `headgate switch` takes the same flags
	Dir      string   // its working folder, which gets its output in the file "log"
	DeviceID uint64
	Address  string   // address of its P4Runtime server, host:port or unix:path
	Thrift   string   // host:port of its Thrift service, by default a free one
	Program  string   // path of its BMv2 JSON; without one it waits for P4Runtime
	Flags    []string // before "--"
	Target   []string // after "--": CPU port, queues, certificates
}

// Process is a running switch.
type Process struct {
	cmd    *exec.Cmd
	log    string
	thrift string
	ended  chan struct{} // closed when it has ended, with err
	err    error
}

// Run starts a switch.
func Run(o Options) (*Process, error) {
	if len(o.Command) == 0 {
		o.Command = []string{Command}
	}
	if o.Program == "" {
		o.Program = "--no-p4"
	}
	if o.Thrift == "" {
		address, err := FreeAddress()
		if err != nil {
			return nil, err
		}
		o.Thrift = address
	}
	_, port, _ := net.SplitHostPort(o.Thrift)
	p, err := Exec(o.Dir, slices.Concat(o.Command,
		[]string{"--device-id", strconv.FormatUint(o.DeviceID, 10), "--thrift-port", port}, o.Flags,
		[]string{o.Program, "--", "--grpc-server-addr", o.Address}, o.Target)...)
	if err != nil {
		return nil, err
	}
	p.thrift = o.Thrift
	return p, nil
}

// Exec starts any command in a folder, which gets its output in the file "log"; it is killed if the calling process
// dies.
func Exec(dir string, command ...string) (*Process, error) {
	p := &Process{log: filepath.Join(dir, "log"), ended: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command(command[0], command[1:]...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, log, log
	// The kernel sends the signal when the thread that started the process ends. Go ends only threads of locked
	// goroutines, so that happens when this process dies.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// FreeAddress returns host:port on the loopback interface where nobody listens. The port is below the range
// that Linux gives to connections, so that no connection takes it before the switch does.
func FreeAddress() (string, error) {
	const first, end = 10000, 32768
	for tries := 0; ; tries++ {
		port := strconv.Itoa(first + rand.IntN(end-first))
		l, err := net.Listen("tcp", ":"+port) // Thrift's server listens on all addresses
		switch {
		case err == nil:
			return net.JoinHostPort("127.0.0.1", port), l.Close()
		case tries == 100:
			return "", err
		}
	}
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Starting returns a context for waiting until the switch serves: it ends after a while, or
// when the switch does.
func (p *Process) Starting() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	go func() {
		select {
		case <-p.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// Ended waits a while for the switch to end by itself. It returns nil if the switch still runs, otherwise an
// *exec.ExitError, or errEnded if the switch ended without an error.
func (p *Process) Ended(wait time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	select {
	case <-p.ended:
	case <-ctx.Done():
		select { // if both are ready, select may take either
		case <-p.ended:
		default:
			return nil
		}
	}
	if p.err == nil {
		return errEnded
	}
	return p.err
}

var errEnded = errors.New("ended with status 0")

// Explain adds the end of the switch's output to an error.
func (p *Process) Explain(err error) error {
	if err == nil {
		return nil
	}
	text, _ := os.ReadFile(p.log)
	return fmt.Errorf("%s: %w\n%s", p.cmd.Path, err, text[max(0, len(text)-2000):])
}

// Thrift returns host:port of the service that sets rates and depths of queues.
func (p *Process) Thrift() string { return p.thrift }

// Queues connects to that service, and tries again until ctx ends: the switch begins to listen
// some time after its process has started.
func (p *Process) Queues(ctx context.Context) (*bmv2.Client, error) {
	for {
		c, err := bmv2.Dial(ctx, p.thrift)
		if err == nil {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// CLI runs commands of simple_switch_CLI.
func (p *Process) CLI(ctx context.Context, commands ...string) error {
	_, port, _ := net.SplitHostPort(p.thrift)
	cmd := exec.CommandContext(ctx, "simple_switch_CLI", "--thrift-port", port)
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	out, err := cmd.CombinedOutput()
	if err == nil && (bytes.Contains(out, []byte("Error")) || bytes.Contains(out, []byte("Invalid"))) {
		err = errors.New("a command failed") // its exit code is 0 even then
	}
	if err != nil {
		return fmt.Errorf("simple_switch_CLI: %w: %s", err, out)
	}
	return nil
}

// Stop asks the switch to end, so that it writes its files, and kills it if it does not end.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(3 * time.Second):
		p.Kill()
	}
}

// Kill ends the switch at once. It may have ended before.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}
