// Package firstfabric runs docs/start/first-fabric.md and docs/start/your-program.md as an operator would: every
// block of commands in order, in one shell, as root. The shell has network, process and mount namespaces of its
// own, so that runs do not disturb each other and always clean up.
package firstfabric

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/tests/lag"
	"github.com/headgate/headgate/tests/race"
)

const (
	repository = "../.."
	// most is the time after which a hanging shell is killed; nothing else depends on it.
	most = 5 * time.Minute
	// cannot is the exit code of a shell that lacks the rights to set up its namespaces.
	cannot = 77
	// lateness is about a round trip of the flows. Losses and unequal shares on a machine that was late by more
	// prove nothing.
	lateness = 50 * time.Millisecond
)

// tools are the programs that the page uses besides the shell's own, with their Debian packages.
var tools = map[string]string{
	"bash": "bash", "cp": "coreutils", "go": "golang-go", "grep": "grep", "ip": "iproute2", "make": "make", "mount": "mount",
	"ping": "iputils-ping", "sed": "sed", "timeout": "coreutils",
}

func TestFirstFabric(t *testing.T) {
	files, late := play(t, "docs/start/first-fabric.md", nil)
	share(t, files, late)
}

// TestYourProgram leaves out the Python blocks if their modules are not installed.
func TestYourProgram(t *testing.T) {
	out, err := exec.Command("/usr/bin/python3", "-c", "import grpc, p4.v1.p4runtime_pb2, p4.tmp.p4config_pb2, p4runtime_lib.bmv2").CombinedOutput()
	play(t, "docs/start/your-program.md", func(b block) bool {
		if err != nil && strings.Contains(b.commands, "client.py ") {
			t.Logf("line %d is left out: /usr/bin/python3: %v\n%s", b.line, err, out)
			return true
		}
		return false
	})
}

// play executes a page's blocks, except those to leave out, and compares their output. It returns the folder of
// temporary files and the machine's largest delay.
func play(t *testing.T, page string, leaveOut func(block) bool) (files string, late time.Duration) {
	t.Helper()
	race.SkipRealTime(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make network namespaces and open packet sockets")
	}
	for tool, debian := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not on the PATH: it is in Debian's package %s", tool, debian)
		}
	}
	text, err := os.ReadFile(filepath.Join(repository, page))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := read(string(text))
	if err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	if leaveOut != nil {
		blocks = slices.DeleteFunc(blocks, leaveOut)
	}
	if len(blocks) < 8 {
		t.Fatalf("%s: only %d blocks of commands", page, len(blocks))
	}

	files = t.TempDir()
	out, late, err := run(t.Context(), blocks, files)
	if err != nil {
		if exit := new(exec.ExitError); errors.As(err, &exit) && exit.ExitCode() == cannot {
			t.Skipf("veth pairs or mounts are not allowed here: %s", out)
		}
		t.Fatalf("%s: %v\n%s\n%s", page, err, out, logs(files))
	}
	parts := strings.Split(out, mark)
	for i, b := range blocks {
		for _, want := range b.missing(parts[i+1]) {
			if strings.Contains(want, "packets transmitted") && late > lateness { // ping waits an interval for the last reply
				t.Skipf("the count of replies is invalid: the machine was late by %v, more than %v\n%s", late, lateness, parts[i+1])
			}
			t.Errorf("%s:%d: the output lacks %q or has it elsewhere:\n%s", page, b.line, want, parts[i+1])
		}
	}
	if t.Failed() || testing.Verbose() {
		t.Logf("%s", logs(files))
	}
	if t.Failed() {
		t.FailNow()
	}
	return files, late
}

// mark separates the blocks' outputs.
const mark = "\x01\n"

// run executes the blocks. It returns their output and the machine's largest delay for their processes.
func run(ctx context.Context, blocks []block, files string) (string, time.Duration, error) {
	var script strings.Builder
	fmt.Fprintf(&script, "{ mkdir -p /run/netns && mount -t tmpfs none /run/netns && ip link set lo up && ip link add probe type veth && ip link delete probe; } || exit %d\n", cannot)
	for _, b := range blocks {
		fmt.Fprintf(&script, "printf '\\001\\n'\n%s", b.commands)
	}
	// The page promises that no process or file remains.
	script.WriteString("[ -z \"$(ip netns)\" ] || { echo namespaces are left; exit 1; }\n")
	script.WriteString("[ \"$(ip -oneline link | grep -c -e leaf -e spine -e l2-)\" = 0 ] || { echo cables are left; exit 1; }\n")

	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-e", "-c", script.String())
	cmd.Dir = repository
	cmd.Env = append(os.Environ(), "TMPDIR="+files)
	// The shell is the first process of its namespace, so all others end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL, Setsid: true,
	}
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); errors.Is(err, os.ErrPermission) {
		return "", 0, fmt.Errorf("namespaces: %w", err)
	} else if err != nil {
		return "", 0, err
	}
	// A session of its own gives the shell an autogroup of its own: the links' rates and queues are in real time.
	os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", cmd.Process.Pid), []byte("-15"), 0)
	worst := lag.WatchThreads(cmd.Process.Pid)
	err := cmd.Wait()
	return out.String(), worst(), err
}

// logs returns the ends of the processes' logs.
func logs(files string) string {
	var b strings.Builder
	list, _ := filepath.Glob(filepath.Join(files, "*", "*.log"))
	for _, name := range list {
		text, _ := os.ReadFile(name)
		fmt.Fprintf(&b, "--- %s\n%s", filepath.Base(name), text[max(0, len(text)-4000):])
	}
	return b.String()
}

// summary is the output of `headgate host --json` for a flow.
type summary struct {
	Goodput     float64 `json:"goodput_bps"`
	Sent        uint64  `json:"sent_packets"`
	Retransmits uint64  `json:"retransmits"`
}

// share compares the two flows' rates with their weights, 1 and 2. It also compares retransmitted with sent
// packets, because no queue of this fabric is full.
func share(t *testing.T, files string, late time.Duration) {
	of := func(host string) summary {
		list, _ := filepath.Glob(filepath.Join(files, "*", host+".json"))
		if len(list) != 1 {
			t.Fatalf("%d summaries of %s", len(list), host)
		}
		text, err := os.ReadFile(list[0])
		if err != nil {
			t.Fatal(err)
		}
		var s struct {
			Flows []summary `json:"flows"`
		}
		if err := json.Unmarshal(text, &s); err != nil || len(s.Flows) != 1 {
			t.Fatalf("%s: %v, %d flows", list[0], err, len(s.Flows))
		}
		return s.Flows[0]
	}
	h1, h2 := of("h1"), of("h2")
	one, two := h1.Goodput, h2.Goodput
	again := float64(h1.Retransmits+h2.Retransmits) / float64(h1.Sent+h2.Sent)
	t.Logf("%.2f and %.2f Mb/s by weights 1 and 2, %.2f%% sent again; the machine was late by %v at most", one/1e6, two/1e6, 100*again, late)
	if ratio := two / one; !(ratio > 1.6 && ratio < 2.5) || one+two < 12e6 || !(again < 0.01) {
		if late > lateness {
			t.Skipf("the comparison is invalid: the machine was late by %v, more than %v", late, lateness)
		}
		t.Errorf("rates %.2f and %.2f Mb/s of a link of 20 Mb/s, by weights 1 and 2; %.2f%% sent again", one/1e6, two/1e6, 100*again)
	}
}
