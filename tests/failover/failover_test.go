// Package failover cuts cables between real processes, in namespaces that the test makes.
package failover

import (
	"bytes"
	"context"
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
	"github.com/headgate/headgate/tests/race"
)

// cannot is the exit code of a shell that may not make the namespaces' contents.
const cannot = 77

// script has two switches with two cables between them and a host at each. h1 pings h2 every
// 5 ms while one cable is cut and mended, then the other: one of them has the requests, one the
// replies. A cut takes one end down, so the other loses its carrier. The probes are a minute
// apart: what happens, the switches do by themselves.
const script = `
{ mkdir -p /run/netns && mount -t tmpfs none /run/netns && ip link set lo up && ip link add probe type veth && ip link delete probe; } || exit 77
cat > $TMPDIR/two.yaml <<'END'
name: two
switches:
  - {name: s1, device_id: 1, address: "127.0.0.1:9551", target: embedded}
  - {name: s2, device_id: 2, address: "127.0.0.1:9552", target: embedded}
hosts: [{name: h1, ipv4: 10.0.0.1}, {name: h2, ipv4: 10.0.0.2}]
links:
  - {a: "s1:1", b: "s2:1", rate: 1Gbps}
  - {a: "s1:2", b: "s2:2", rate: 1Gbps}
  - {a: "s1:3", b: h1, rate: 1Gbps}
  - {a: "s2:3", b: h2, rate: 1Gbps}
controller: {metrics: "off", probe_interval: 60s}
END
for n in 1 2; do
    ip link add s1-$n type veth peer name s2-$n
    ip link set s1-$n up
    ip link set s2-$n up
    ip netns add h$n
    ip link add s$n-3 type veth peer name eth0 address 06:00:0a:00:00:0$n netns h$n
    ip link set s$n-3 up
    ip -n h$n link set lo up
    ip -n h$n link set eth0 up
    ip -n h$n address add 10.0.0.$n/32 dev eth0
    ip -n h$n route add 10.0.0.254 dev eth0
    ip -n h$n route add default via 10.0.0.254
    ip -n h$n neighbour add 10.0.0.254 lladdr 02:00:00:00:00:fe dev eth0
done
for n in 1 2; do
    $HEADGATE switch --device-id $n --no-p4 -i 1@s$n-1 -i 2@s$n-2 -i 3@s$n-3 --log-file $TMPDIR/s$n.log \
        -- --grpc-server-addr 127.0.0.1:955$n --cpu-port 510 --priority-queues 8 > /dev/null &
done
export HEADGATE_SERVER=unix:$TMPDIR/api.sock
$HEADGATE controller -f $TMPDIR/two.yaml --socket $TMPDIR/api.sock > $TMPDIR/controller.log 2>&1 &
until [ "$($HEADGATE get switches 2>/dev/null | grep -cw ready)" = 2 ]; do sleep 0.1; done
ip netns exec h1 ping -D -i 0.005 -w 5 10.0.0.2 > $TMPDIR/ping &
ping=$!
for n in 1 2; do
    sleep 0.8; ip link set s1-$n down
    sleep 0.8; ip link set s1-$n up
done
wait $ping
cat $TMPDIR/ping
`

// beHeadgate in the environment makes the test's binary the headgate command.
const beHeadgate = "HEADGATE_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(beHeadgate) != "" {
		os.Exit(cli.Main(cli.NewRoot(), os.Stderr))
	}
	os.Exit(m.Run())
}

func TestCables(t *testing.T) {
	race.SkipRealTime(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make network namespaces and open packet sockets")
	}
	for _, tool := range []string{"bash", "ip", "mount", "ping"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not on the PATH", tool)
		}
	}
	dir := t.TempDir()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // decides nothing but that it hangs
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-e", "-c", script)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HEADGATE="+binary, beHeadgate+"=1")
	// The shell is the first process of its namespace: all others end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	worst := lag.Watch()
	err = cmd.Run()
	late := worst()
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == cannot {
		t.Skipf("veth pairs or mounts are not allowed here: %s", &out)
	}
	logs := func() string {
		var b strings.Builder
		for _, name := range []string{"s1", "s2", "controller"} {
			text, _ := os.ReadFile(dir + "/" + name + ".log")
			b.Write(text)
		}
		return b.String()
	}
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, &out, logs())
	}
	gap, replies := longest(t, out.String())
	t.Logf("%d replies, at most %v without one; the machine was late by %v at most", replies, gap, late)
	const most = 100 * time.Millisecond
	switch {
	case gap < most && replies > 100:
	case gap < most+4*late: // each of four processes may have been late
		t.Skipf("the measurement is invalid: %v without a reply, and the machine was late by %v", gap, late)
	default:
		t.Errorf("%v without a reply, want less than %v\n%s", gap, most, logs())
	}
}

var reply = regexp.MustCompile(`(?m)^\[([0-9.]+)\] 64 bytes from`)

// longest returns the longest time between replies that ping printed, and how many there were.
func longest(t *testing.T, out string) (gap time.Duration, replies int) {
	t.Helper()
	before := 0.0
	for _, m := range reply.FindAllStringSubmatch(out, -1) {
		at, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		if replies++; replies > 1 {
			gap = max(gap, time.Duration((at-before)*float64(time.Second)))
		}
		before = at
	}
	return gap, replies
}
