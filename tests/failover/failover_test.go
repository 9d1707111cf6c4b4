// Package failover tests that traffic survives cut cables. Real processes run in network
// namespaces that the test makes, and the test cuts the cables between them.
package failover

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/cli"
	"github.com/headgate/headgate/tests/lag"
	"github.com/headgate/headgate/tests/race"
)

// cannot is the exit code of a shell that lacks the rights to set up its namespaces.
const cannot = 77

// script has two switches with two cables between them, and a host at each. h1 pings h2 every 5 ms. One cable is
// cut and mended, then the other: requests use one of them, replies the other. A cut takes one end down, so the
// other end loses its carrier. The controller is frozen, so the switches react by themselves. No cable is mended
// before there are replies without it.
const script = namespace + `
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
controller: {metrics: "off"}
END
for n in 1 2; do
    cable s1-$n s2-$n
    host h$n s$n-3 10.0.0.$n 06:00:0a:00:00:0$n
done
for n in 1 2; do
    $HEADGATE switch --device-id $n --no-p4 -i 1@s$n-1 -i 2@s$n-2 -i 3@s$n-3 --log-file $TMPDIR/s$n.log \
        -- --grpc-server-addr 127.0.0.1:955$n --cpu-port 510 --priority-queues 8 > /dev/null &
done
export HEADGATE_SERVER=unix:$TMPDIR/api.sock
$HEADGATE controller -f $TMPDIR/two.yaml --socket $TMPDIR/api.sock > $TMPDIR/controller.log 2>&1 &
until [ "$($HEADGATE get switches 2>/dev/null | grep -cw ready)" = 2 ]; do sleep 0.1; done
kill -STOP $!
ip netns exec h1 ping -D -i 0.005 10.0.0.2 > $TMPDIR/ping &
ping=$!
replies() {
    local had=$(grep -c from $TMPDIR/ping)
    until [ $(grep -c from $TMPDIR/ping) -ge $((had + 20)) ]; do sleep 0.05; done
}
for n in 1 2; do
    sleep 0.5; replies; ip link set s1-$n down
    sleep 0.5; replies; ip link set s1-$n up
done
sleep 0.5; replies
kill -INT $ping
wait $ping || true
cat $TMPDIR/ping
`

// namespace sets up the shell's namespaces, and defines functions that make cables and hosts.
const namespace = `
{ mkdir -p /run/netns && mount -t tmpfs none /run/netns && ip link set lo up && ip link add probe type veth && ip link delete probe; } || exit 77
cable() {
    ip link add $1 type veth peer name $2
    ip link set $1 up
    ip link set $2 up
}
host() {
    ip netns add $1
    ip link add $2 type veth peer name eth0 address $4 netns $1
    ip link set $2 up
    ip -n $1 link set lo up
    ip -n $1 link set eth0 up
    ip -n $1 address add $3/32 dev eth0
    ip -n $1 route add 10.0.0.254 dev eth0
    ip -n $1 route add default via 10.0.0.254
    ip -n $1 neighbour add 10.0.0.254 lladdr 02:00:00:00:00:fe dev eth0
}
`

// far has two leaves and two spines, and cuts leaf1's cables to the spines one after the other. There are no
// probes. leaf2 keeps its carrier, so only the controller can tell it: leaf1 and the spine report their ports to
// the controller. If leaf2 were not told, one of the pings would have no reply until the cable is mended.
const far = namespace + `
cat > $TMPDIR/far.yaml <<'END'
name: far
switches:
  - {name: leaf1,  device_id: 1, address: "127.0.0.1:9551", target: embedded}
  - {name: leaf2,  device_id: 2, address: "127.0.0.1:9552", target: embedded}
  - {name: spine1, device_id: 3, address: "127.0.0.1:9553", target: embedded}
  - {name: spine2, device_id: 4, address: "127.0.0.1:9554", target: embedded}
hosts: [{name: h1, ipv4: 10.0.0.1}, {name: h2, ipv4: 10.0.0.2}]
links:
  - {a: "leaf1:3", b: h1, rate: 1Gbps}
  - {a: "leaf2:3", b: h2, rate: 1Gbps}
  - {a: "leaf1:1", b: "spine1:1", rate: 1Gbps}
  - {a: "leaf1:2", b: "spine2:1", rate: 1Gbps}
  - {a: "leaf2:1", b: "spine1:2", rate: 1Gbps}
  - {a: "leaf2:2", b: "spine2:2", rate: 1Gbps}
controller: {metrics: "off", probe_interval: "off"}
END
for l in 1 2; do
    for s in 1 2; do cable leaf$l-$s spine$s-$l; done
    host h$l leaf$l-3 10.0.0.$l 06:00:0a:00:00:0$l
done
id=0
for n in leaf1 leaf2 spine1 spine2; do
    id=$((id + 1))
    ports="-i 1@$n-1 -i 2@$n-2"
    case $n in leaf*) ports="$ports -i 3@$n-3" ;; esac
    $HEADGATE switch --device-id $id --no-p4 $ports --log-file $TMPDIR/s$id.log -- --grpc-server-addr 127.0.0.1:955$id --cpu-port 510 --priority-queues 8 > /dev/null &
done
export HEADGATE_SERVER=unix:$TMPDIR/api.sock
$HEADGATE controller -f $TMPDIR/far.yaml --socket $TMPDIR/api.sock > $TMPDIR/controller.log 2>&1 &
until [ "$($HEADGATE get switches 2>/dev/null | grep -cw ready)" = 4 ]; do sleep 0.1; done
links() { until [ "$($HEADGATE get links | grep -cw $1)" = $2 ]; do sleep 0.05; done; }
links up 6
ip netns exec h2 ping -D -i 0.005 10.0.0.1 > $TMPDIR/ping &
ping=$!
for n in 1 2; do
    sleep 0.5
    ip link set leaf1-$n down
    links down 1
    $HEADGATE get links | grep -w down
    sleep 0.5
    ip link set leaf1-$n up
    links up 6
done
ip link set leaf1-3 down
links down 1
$HEADGATE get links | grep -w down
ip link set leaf1-3 up
links up 6
sleep 0.5
kill -INT $ping
wait $ping || true
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

// execute runs a script. It returns the output, the programs' logs and the machine's largest delay.
func execute(t *testing.T, script string) (text, logs string, late time.Duration) {
	t.Helper()
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
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // only ends a script that hangs
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-e", "-c", script)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HEADGATE="+binary, beHeadgate+"=1")
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
	files, _ := filepath.Glob(dir + "/*.log")
	for _, name := range files {
		text, _ := os.ReadFile(name)
		logs += string(text)
	}
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, &out, logs)
	}
	return out.String(), logs, late
}

// TestCables: with each cable cut there are replies, and on an idle machine they return within 100 ms. The kernel
// reports a lost carrier when it gets to it, so on a busy machine the test measures the machine.
func TestCables(t *testing.T) {
	text, logs, late := execute(t, script)
	gap, replies := longest(t, text)
	t.Logf("%d replies, at most %v without one; the machine was late by %v at most", replies, gap, late)
	const most, idle = 100 * time.Millisecond, 10 * time.Millisecond
	switch {
	case gap < most:
	case late > idle:
		t.Logf("how long there was none is not a measurement: the machine was late by %v", late)
	default:
		t.Errorf("%v without a reply, want less than %v\n%s", gap, most, logs)
	}
}

// TestFarLeaf: a switch that loses no port of its own depends on the controller, which changes its routes when
// the others report.
func TestFarLeaf(t *testing.T) {
	text, logs, late := execute(t, far)
	gap, replies := longest(t, text)
	t.Logf("%d replies, at most %v without one; the machine was late by %v at most", replies, gap, late)
	if replies < 100 {
		t.Errorf("%d replies\n%s\n%s", replies, text, logs)
	}
	for _, want := range []string{`leaf1:1 .* down .*the port (leaf1|spine1):1 is down`, `leaf1:2 .* down .*the port (leaf1:2|spine2:1) is down`, `leaf1:3 .* down .*the port leaf1:3 is down`} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no link shows %s\n%s", want, text)
		}
	}
}

var reply = regexp.MustCompile(`(?m)^\[([0-9.]+)\] 64 bytes from`)

// longest returns the longest time between replies in ping's output, and their number.
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
