// Package faults injects real faults into a fabric of real processes: switches die and freeze, the
// controller is killed in mid-apply, cables are cut and flap. It reports lost packets and the
// longest time without a reply. It fails if the fabric does not recover.
//
// It runs as root with HEADGATE_FAULTS=1 and takes about two minutes for each target. If
// simple_switch_grpc is on the PATH, the faults run on it too.
package faults

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/cli"
	"github.com/headgate/headgate/tests/lag"
)

//go:embed faults.sh
var script string

// beHeadgate in the environment makes the test's binary the headgate command.
const beHeadgate = "HEADGATE_TEST_COMMAND"

// cannot is the exit code of a shell that lacks the rights to set up its namespaces.
const cannot = 77

func TestMain(m *testing.M) {
	if os.Getenv(beHeadgate) != "" {
		os.Exit(cli.Main(cli.NewRoot(), os.Stderr))
	}
	os.Exit(m.Run())
}

func TestEmbedded(t *testing.T) { play(t, "embedded") }

func TestBMv2(t *testing.T) { play(t, "bmv2", "simple_switch_grpc") }

// execute runs a script in its own namespaces. It returns the output, the controller's log and the machine's
// largest delay.
func execute(t *testing.T, script, target string, tools ...string) (text, log string, late time.Duration) {
	t.Helper()
	if os.Geteuid() != 0 || os.Getenv("HEADGATE_FAULTS") == "" {
		t.Skip("needs root and HEADGATE_FAULTS=1: it takes minutes")
	}
	for _, tool := range append(tools, "bash", "ip", "mount") {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not on the PATH", tool)
		}
	}
	dir := t.TempDir()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute) // only ends a script that hangs
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-e", "-c", script)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HEADGATE="+binary, "TARGET="+target, beHeadgate+"=1")
	// The shell is the first process of its namespace, so all others end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	worst := lag.Watch()
	err = cmd.Run()
	late = worst()
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == cannot {
		t.Skipf("veth pairs or mounts are not allowed here: %s", &out)
	}
	text = out.String()
	read, _ := os.ReadFile(dir + "/controller.log")
	log = string(read)
	for _, line := range happened.FindAllString(log, -1) {
		t.Log(line)
	}
	if err != nil {
		t.Fatalf("%v\n%s%s", err, text, log)
	}
	t.Logf("the machine was late by %v at most", late)
	return text, log, late
}

func play(t *testing.T, target string, tools ...string) {
	text, _, late := execute(t, script, target, append(tools, "ping")...)
	parts := strings.Split(text, "\n== ")[1:]
	if len(parts) < 6 {
		t.Fatalf("%d faults were played, want 6 or more:\n%s", len(parts), text)
	}
	for _, part := range parts {
		name, rest, _ := strings.Cut(part, "\n")
		r := read(t, rest)
		t.Logf("%-45s %5d of %5d packets lost, at most %v without a reply", name, r.lost, r.sent, r.gap.Round(time.Millisecond))
		switch {
		case r.replies < 100 || r.pings != pings:
			t.Errorf("%s: %d replies to %d pings: the measurement is no good\n%s", name, r.replies, r.pings, rest)
		case r.deaf:
			t.Errorf("%s: at the end nothing came back\n%s", name, rest)
		case strings.Contains(name, "controller") && r.lost > 0 && r.gap > 4*late+100*time.Millisecond:
			t.Errorf("%s: packets were lost, but switches need no controller", name)
		}
	}
}

// pings are the script's pings, each from a host behind leaf1 to one behind leaf2, so that both spines are used.
const pings = 4

// result is the pings' result for one fault.
type result struct {
	pings, sent, replies, lost int
	gap                        time.Duration // the longest without a reply
	deaf                       bool          // a ping had no reply in its last second
}

var (
	happened = regexp.MustCompile(`(?m)^.*event=(link|switch|session)\..*$`)

	reply = regexp.MustCompile(`(?m)^\[([0-9.]+)\] 64 bytes from`)
	sum   = regexp.MustCompile(`(\d+) packets transmitted, (\d+) received`)
)

func read(t *testing.T, text string) (r result) {
	t.Helper()
	for _, one := range strings.Split(text, "\nPING ")[1:] {
		counts := sum.FindStringSubmatch(one)
		ended := regexp.MustCompile(`(?m)^ended ([0-9.]+)`).FindStringSubmatch(text)
		if counts == nil || ended == nil {
			t.Fatalf("ping printed no sum:\n%s", one)
		}
		number := func(s string) int { n, _ := strconv.Atoi(s); return n }
		r.pings++
		r.sent += number(counts[1])
		r.replies += number(counts[2])
		r.lost += number(counts[1]) - number(counts[2])
		before := 0.0
		for _, m := range reply.FindAllStringSubmatch(one, -1) {
			at, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			if before > 0 {
				r.gap = max(r.gap, time.Duration((at-before)*float64(time.Second)))
			}
			before = at
		}
		end, err := strconv.ParseFloat(ended[1], 64)
		if err != nil {
			t.Fatal(fmt.Errorf("end of the fault: %w", err))
		}
		r.deaf = r.deaf || end-before > 1
	}
	return r
}
