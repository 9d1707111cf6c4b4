package failover

import (
	"strings"
	"testing"
	"time"
)

// shaped has h1 with a NIC at leaf1 and one at leaf2, h2 at leaf3, and h3 with a LAG of two members at leaf3. h2
// pings h1 while h1's NIC at leaf1 is cut, and while leaf1 fails: its process ends and its cables lose their
// carrier. Then h1 pings h3 while first one LAG member is cut and mended, then the other. The controller is
// frozen meanwhile: leaf3 leaves the member out by itself.
const shaped = namespace + `
cat > $TMPDIR/shaped.yaml <<'END'
name: shaped
switches:
  - {name: leaf1,  device_id: 1, address: "127.0.0.1:9551", target: embedded}
  - {name: leaf2,  device_id: 2, address: "127.0.0.1:9552", target: embedded}
  - {name: leaf3,  device_id: 3, address: "127.0.0.1:9553", target: embedded}
  - {name: spine1, device_id: 4, address: "127.0.0.1:9554", target: embedded}
  - {name: spine2, device_id: 5, address: "127.0.0.1:9555", target: embedded}
hosts: [{name: h1, ipv4: 10.0.0.1}, {name: h2, ipv4: 10.0.1.1}, {name: h3, ipv4: 10.0.1.2, bond: lag}]
links:
  - {a: "leaf1:3", b: h1, rate: 1Gbps}
  - {a: "leaf2:3", b: h1, rate: 1Gbps}
  - {a: "leaf3:3", b: h2, rate: 1Gbps}
  - {a: "leaf3:4", b: h3, rate: 1Gbps}
  - {a: "leaf3:5", b: h3, rate: 1Gbps}
  - {a: "leaf1:1", b: "spine1:1", rate: 1Gbps}
  - {a: "leaf1:2", b: "spine2:1", rate: 1Gbps}
  - {a: "leaf2:1", b: "spine1:2", rate: 1Gbps}
  - {a: "leaf2:2", b: "spine2:2", rate: 1Gbps}
  - {a: "leaf3:1", b: "spine1:3", rate: 1Gbps}
  - {a: "leaf3:2", b: "spine2:3", rate: 1Gbps}
controller: {metrics: "off"}
END
# twice HOST IP PORT MAC PORT MAC: a host with two links has its address on the loopback interface.
twice() {
    ip netns add $1
    ip link add $3 type veth peer name eth0 address $4 netns $1
    ip link add $5 type veth peer name eth1 address $6 netns $1
    ip -n $1 link set lo up
    ip -n $1 address add $2/32 dev lo
    ip netns exec $1 sysctl -qw net.ipv4.conf.all.ignore_routes_with_linkdown=1 net.ipv4.conf.all.rp_filter=0
    for i in 0 1; do
        ip netns exec $1 sysctl -qw net.ipv4.conf.eth$i.ignore_routes_with_linkdown=1 net.ipv4.conf.eth$i.rp_filter=0
        ip -n $1 link set eth$i up
        ip -n $1 neighbour add 10.0.0.254 lladdr 02:00:00:00:00:fe dev eth$i
    done
    ip link set $3 up
    ip link set $5 up
    ip -n $1 route add default src $2 nexthop via 10.0.0.254 dev eth0 onlink nexthop via 10.0.0.254 dev eth1 onlink
}
for l in 1 2 3; do
    for s in 1 2; do cable leaf$l-$s spine$s-$l; done
done
twice h1 10.0.0.1 leaf1-3 06:00:0a:00:00:01 leaf2-3 06:01:0a:00:00:01
host h2 leaf3-3 10.0.1.1 06:00:0a:00:01:01
twice h3 10.0.1.2 leaf3-4 06:00:0a:00:01:02 leaf3-5 06:00:0a:00:01:02
declare -A id=([leaf1]=1 [leaf2]=2 [leaf3]=3 [spine1]=4 [spine2]=5)
start() {
    local ports= n=${id[$1]} i
    for i in $2; do ports="$ports -i $i@$1-$i"; done
    $HEADGATE switch --device-id $n --no-p4 $ports --log-file $TMPDIR/s$n.log -- --grpc-server-addr 127.0.0.1:955$n --cpu-port 510 --priority-queues 8 > /dev/null &
}
start leaf1 "1 2 3"; gone=$!
start leaf2 "1 2 3"
start leaf3 "1 2 3 4 5"
start spine1 "1 2 3"
start spine2 "1 2 3"
export HEADGATE_SERVER=unix:$TMPDIR/api.sock
$HEADGATE controller -f $TMPDIR/shaped.yaml --socket $TMPDIR/api.sock > $TMPDIR/controller.log 2>&1 &
controller=$!
ready() { until [ "$($HEADGATE get switches 2>/dev/null | grep -cw ready)" = 5 ]; do sleep 0.1; done; }
links() { until [ "$($HEADGATE get links | grep -cw up)" = 11 ]; do sleep 0.05; done; }
cut() { ip link set $1 down; sleep 1.5; ip link set $1 up; sleep 0.5; }
leaf() {
    kill -KILL $gone
    for i in 1 2 3; do ip link set leaf1-$i down; done
    sleep 3
    for i in 1 2 3; do ip link set leaf1-$i up; done
    start leaf1 "1 2 3"
    ready
    links
}
# during HOST IP COMMAND…
during() {
    local from=$1 to=$2
    shift 2
    ip netns exec $from ping -D -i 0.005 $to > $TMPDIR/ping &
    local ping=$!
    sleep 0.5; "$@"; sleep 0.5
    kill -INT $ping
    wait $ping || true
    echo "== $*"
    cat $TMPDIR/ping
}
ready
links
during h2 10.0.0.1 cut leaf1-3
links
during h2 10.0.0.1 cut leaf2-3
links
during h2 10.0.0.1 leaf
kill -STOP $controller
during h1 10.0.1.2 cut leaf3-4
during h1 10.0.1.2 cut leaf3-5
`

// TestShapes: on an idle machine, a host at two leaves and one with a LAG are reached again within the timeout of a
// silent link (controller.probe_timeout, 900 ms).
func TestShapes(t *testing.T) {
	text, logs, late := execute(t, shaped)
	parts := strings.Split(text, "== ")[1:]
	if len(parts) != 5 {
		t.Fatalf("%d parts, want 5\n%s\n%s", len(parts), text, logs)
	}
	const most, idle = 900 * time.Millisecond, 10 * time.Millisecond
	for _, part := range parts {
		name, out, _ := strings.Cut(part, "\n")
		gap, replies := longest(t, out)
		t.Logf("%-12s %d replies, at most %v without one; the machine was late by %v at most", name, replies, gap.Round(time.Millisecond), late)
		switch {
		case replies < 100:
			t.Errorf("%s: %d replies\n%s\n%s", name, replies, out, logs)
		case gap > most && late > idle:
			t.Logf("%s: how long there was none is not a measurement: the machine was late by %v", name, late)
		case gap > most:
			t.Errorf("%s: %v without a reply, want at most %v\n%s", name, gap, most, logs)
		}
	}
}
