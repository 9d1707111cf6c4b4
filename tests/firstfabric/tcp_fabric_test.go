package firstfabric

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/controller/conduct"
)

// hosts returns commands that make a fabric with one switch per list of hosts. The switches form a row, with links of a
// rate between them, and an agent runs on each host. Host n is 10.0.1.n and 2001:db8:1::n. flags has additional flags
// of agents, by host.
func hosts(rate string, scale int, flags map[string]string, switches ...[]string) string {
	var yaml, nodes, links, commands strings.Builder
	var all []string
	for i, list := range switches {
		name, run := fmt.Sprintf("s%d", i+1), ""
		fmt.Fprintf(&yaml, "  - {name: %s, device_id: %d, address: \"127.0.0.1:955%d\", target: embedded}\n", name, i+1, i+1)
		port := func(n int) { run += fmt.Sprintf(" -i %d@%s-%d --port-rate %d=%s", n, name, n, n, rate) }
		for n, h := range list {
			at := strings.TrimPrefix(h, "h")
			fmt.Fprintf(&nodes, "  - {name: %s, ipv4: 10.0.1.%s, ipv6: \"2001:db8:1::%s\"}\n", h, at, at)
			fmt.Fprintf(&links, "  - {a: \"%s:%d\", b: %s, rate: %s}\n", name, n+1, h, rate)
			fmt.Fprintf(&commands, `
ip netns add %[1]s
ip link add %[2]s-%[3]d type veth peer name eth0 address 06:00:0a:00:01:0%[4]s netns %[1]s
ip link set %[2]s-%[3]d up
ip -n %[1]s link set lo up
ip -n %[1]s link set eth0 up
ip -n %[1]s address add 10.0.1.%[4]s/32 dev eth0
ip -n %[1]s address add 2001:db8:1::%[4]s/128 dev eth0 nodad
ip -n %[1]s route add default via 169.254.1.1 dev eth0 onlink
ip -n %[1]s -6 route add default via fe80::1 dev eth0
`, h, name, n+1, at)
			port(n + 1)
		}
		if i+1 < len(switches) {
			fmt.Fprintf(&links, "  - {a: \"%s:8\", b: \"s%d:9\", rate: %s}\n", name, i+2, rate)
			fmt.Fprintf(&commands, "ip link add %s-8 type veth peer name s%d-9; ip link set %s-8 up; ip link set s%d-9 up\n", name, i+2, name, i+2)
			port(8)
		}
		if i > 0 {
			port(9)
		}
		fmt.Fprintf(&commands, "headgate switch --device-id %d --no-p4%s --queue-limit 2MB --log-file %s.log -- --grpc-server-addr 127.0.0.1:955%d --cpu-port 510 --priority-queues 8 > /dev/null &\n",
			i+1, run, name, i+1)
		all = append(all, list...)
	}
	fmt.Fprintf(&commands, `
cat > fabric.yaml <<END
name: tcp
scale: %d
switches:
%shosts:
%slinks:
%sqos: {queue_limit: 2MB, classes: [{dscp: 0, class: 0, queue: 0}, {dscp: 48, class: 6, queue: 6}]}
soze: {p: 3us, k: 37us}
controller: {metrics: "off"}
END
export HEADGATE_SERVER=unix:$PWD/headgate.sock
headgate controller -f fabric.yaml --socket $PWD/headgate.sock > controller.log 2>&1 &
until [ $(headgate get switches 2> /dev/null | grep -cw ready) = %d ]; do sleep 0.2; done
`, scale, yaml.String(), nodes.String(), links.String(), len(switches))
	for _, h := range all {
		fmt.Fprintf(&commands, "headgate host tcp --name %s --netns %s --rate %s %s --controller $HEADGATE_SERVER > %s.log 2>&1 & agents=\"$agents $!\"\n", h, h, rate, flags[h], h)
	}
	for _, h := range all {
		fmt.Fprintf(&commands, "until grep -q governed %s.log; do sleep 0.2; done\n", h)
	}
	// end ends the started processes.
	commands.WriteString("end() { kill $agents; for h in " + strings.Join(all, " ") + "; do headgate host tcp --name $h --netns $h --detach; ip netns del $h; done; kill $(jobs -p); }\n")
	return commands.String()
}

// TestParkingLot: flow 1 shares the link between two switches with flows 2 to 4. These share the link to h3 with flows
// 5 and 6, as in Söze's figure 17. With a weight of 1, flow 1 gets two fifths of its link; with 6, the bottleneck of
// the others moves.
func TestParkingLot(t *testing.T) {
	needLong(t)
	for _, c := range []struct{ name, format string }{{"IPv4", "10.0.1.%d"}, {"IPv6", "[2001:db8:1::%d]"}} {
		t.Run(c.name, func(t *testing.T) {
			commands := hosts("100Mbps", 400, nil, []string{"h1"}, []string{"h2", "h3", "h4"})
			at := func(h int) string { return fmt.Sprintf(c.format, h) }
			clients := ""
			for n, ends := range [][2]int{{1, 4}, {1, 3}, {1, 3}, {1, 3}, {2, 3}, {2, 3}} {
				commands += fmt.Sprintf("ip netns exec h%d iperf3 --server --one-off --port 520%d > /dev/null &\n", ends[1], n+1)
				clients += fmt.Sprintf("ip netns exec h%d iperf3 --client %s --port 520%d --cport 4000%d --length 8K --time 10 --json > iperf3-%d.json & transfers=\"$transfers $!\"\n",
					ends[0], strings.Trim(at(ends[1]), "[]"), n+1, n+1, n+1)
			}
			commands += "sleep 0.5\n" + clients + fmt.Sprintf("sleep 5\nheadgate set weight --flow %s:40001,%s:5201 --app default 6\nwait $transfers\nend\n", at(1), at(4))
			try(t, 0.1, func() (time.Duration, error) {
				files, late := scene(t, 1, commands)
				return late, errors.Join(
					shares(t, "flow 1 of weight 1", goodput(t, files, "iperf3-?.json", 2, 5), []float64{40, 20, 20, 20, 20, 20}, 0.1, 110),
					shares(t, "flow 1 of weight 6", goodput(t, files, "iperf3-?.json", 7, 10), []float64{66.7, 11.1, 11.1, 11.1, 33.3, 33.3}, 0.1, 130))
			})
		})
	}
}

// TestCriticalPath: a job of four transfers, as in Söze's figure 6. The second follows the first and the third the second. The
// first and the fourth share the link to h4. With twice the weight for the first the job takes 0.82 of the time.
func TestCriticalPath(t *testing.T) {
	needLong(t)
	commands := hosts("100Mbps", 400, nil, []string{"h1", "h2", "h3", "h4"}) + `
send() { ip netns exec h$1 iperf3 --client 10.0.1.$2 --port 52$3 --cport 400$3 --bytes $4 > /dev/null; }
for weight in 1 2; do
    for end in 4/1 3/2 2/3 4/4; do ip netns exec h${end%/*} iperf3 --server --one-off --port 52$weight${end#*/} > /dev/null & done
    sleep 0.5
    began=$(date +%s%N)
    send 2 4 ${weight}4 58M & fourth=$!
    send 1 4 ${weight}1 58M & first=$!
    sleep 0.3
    headgate set weight --flow 10.0.1.1:400${weight}1,10.0.1.4:52${weight}1 --app default $weight
    wait $first
    send 1 3 ${weight}2 29M
    send 3 2 ${weight}3 29M
    wait $fourth
    echo $(($(date +%s%N) - began)) > job-$weight
done
end
`
	try(t, 0.05, func() (late time.Duration, err error) {
		files, late := scene(t, 1, commands)
		one, two := number(t, files, "job-1")/1e9, number(t, files, "job-2")/1e9
		t.Logf("%.2f s at equal weights, %.2f s at weights 2:1: %.2f", one, two, two/one)
		if r := two / one; r < 0.78 || r > 0.87 {
			err = fmt.Errorf("the job takes %.2f s of %.2f s, which is %.2f: want 0.78 to 0.87", two, one, r)
		}
		return late, err
	})
}

// TestStepsBesideCubic: one, two and three senders to one host, as in Söze's figures 12 and 13, and then the same with the
// kernel's own congestion control. Söze has equal shares and a shorter round trip. The processor time is logged.
func TestStepsBesideCubic(t *testing.T) {
	needLong(t)
	commands := hosts("100Mbps", 400, nil, []string{"h1", "h2", "h3", "h4"}) + `
steps() {
    for n in 1 2 3; do ip netns exec h4 iperf3 --server --one-off --port 52$2$n > /dev/null & done
    sleep 0.5
    transfers=
    for n in 1 2 3; do
        ip netns exec h$n iperf3 --client 10.0.1.4 --port 52$2$n --length 8K --time $((16 - 4 * n)) --json > $1-$n.json & transfers="$transfers $!"
        sleep 4
    done
    wait $transfers
}
steps soze 1
kill $agents
for h in h1 h2 h3 h4; do headgate host tcp --name $h --netns $h --detach; done
steps kernel 2
for h in h1 h2 h3 h4; do ip netns del $h; done
kill $(jobs -p)
`
	try(t, 0.05, func() (late time.Duration, err error) {
		files, late := scene(t, 1, commands)
		var trips [2]float64
		for i, name := range []string{"soze", "kernel"} {
			for senders := 1; senders <= 3; senders++ {
				var rates []float64
				for n := 1; n <= senders; n++ {
					from := float64(4 * (senders - n))
					rates = append(rates, goodput(t, files, fmt.Sprintf("%s-%d.json", name, n), from+1.5, from+4)...)
				}
				within := []float64{0.05, math.Inf(1)}[i]
				err = errors.Join(err, shares(t, fmt.Sprintf("%s, %d senders", name, senders), rates, slices.Repeat([]float64{1}, senders), within, 85))
			}
			var sum struct {
				End struct {
					Sent    struct{ Bytes, Seconds float64 } `json:"sum_sent"`
					Streams []struct {
						Sender struct {
							RTT float64 `json:"mean_rtt"`
						}
					}
					CPU struct {
						Sender   float64 `json:"host_total"`
						Receiver float64 `json:"remote_total"`
					} `json:"cpu_utilization_percent"`
				}
			}
			list, _ := filepath.Glob(filepath.Join(files, "*", name+"-1.json"))
			text, _ := os.ReadFile(list[0])
			if err := json.Unmarshal(text, &sum); err != nil || len(sum.End.Streams) != 1 {
				t.Fatalf("%v, %d streams", err, len(sum.End.Streams))
			}
			e := sum.End
			trips[i] = e.Streams[0].Sender.RTT
			perGigabit := e.Sent.Seconds / 100 / (8 * e.Sent.Bytes / 1e9)
			t.Logf("%s: round trip %.1f ms, processor time for a gigabit %.3f s of the first sender and %.3f s of its receiver",
				name, trips[i]/1000, e.CPU.Sender*perGigabit, e.CPU.Receiver*perGigabit)
		}
		if trips[0] > trips[1]/2 {
			err = errors.Join(err, fmt.Errorf("a round trip takes %.1f ms, and %.1f ms with the kernel's own law: want half at most", trips[0]/1000, trips[1]/1000))
		}
		return late, err
	})
}

// TestCheats: the agent of h2 reads maxQD as a sixteenth of its value, so its TCP flow takes h1's share. The controller
// names h2 for both reasons, and no other host.
func TestCheats(t *testing.T) {
	needTCP(t)
	commands := hosts("10Mbps", 4000, map[string]string{"h2": "--maxqd-unit 1us"}, []string{"h1", "h2", "h3"}) + `
for n in 1 2; do ip netns exec h3 iperf3 --server --one-off --port 520$n > /dev/null & done
sleep 0.5
for n in 1 2; do
    ip netns exec h$n iperf3 --client 10.0.1.3 --port 520$n --cport 4000$n --time 10 > /dev/null & transfers="$transfers $!"
done
sleep 8
headgate get flows -o json > flows.json
wait $transfers
end
`
	files, _ := scene(t, 1, commands)
	list, _ := filepath.Glob(filepath.Join(files, "*", "controller.log"))
	text, err := os.ReadFile(list[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{conduct.OverShare, conduct.Telemetry} {
		n, mine := 0, 0
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "event="+kind+" ") {
				n++
				if strings.Contains(line, "subject=h2") {
					mine++
				}
			}
		}
		if n == 0 || n != mine {
			t.Errorf("%d events %s, %d of h2\n%s", n, kind, mine, text)
		}
	}
	list, _ = filepath.Glob(filepath.Join(files, "*", "flows.json"))
	if text, err = os.ReadFile(list[0]); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(text), `"law": "soze"`); got != 2 || !strings.Contains(string(text), `"src_port": 40002`) {
		t.Errorf("the API lists %d flows of Söze, want 2: %s", got, text)
	}
}

// TestJumboFrames: the switch stamps segments of 9 kB, and frames of 64 KB that no interface has cut, with a correct
// checksum.
func TestJumboFrames(t *testing.T) {
	needLong(t)
	for _, mtu := range []int{9000, 65000} {
		files, _ := scene(t, 5, fmt.Sprintf(`
for h in h1 h2; do ip -n $h link set eth0 mtu %[1]d; ip link set s1-${h#h} mtu %[1]d; done
ip netns exec h2 iperf3 --server --one-off --port 5201 > /dev/null &
sleep 0.5
ip netns exec h1 iperf3 --client 10.0.1.2 --port 5201 --cport 40001 --time 5 --json > iperf3-1.json
grep maxQD h1.log | sed 's/.*maxQD //; s/us$//; s/ms$/e3/' | sort --general-numeric-sort | tail -1 > maxqd
ip netns exec h2 nstat -asz TcpInCsumErrors | awk '/Csum/ {print $2}' > checksums
`, mtu))
		if bad := number(t, files, "checksums"); bad != 0 {
			t.Errorf("MTU %d: %v checksums are wrong", mtu, bad)
		}
		if d := number(t, files, "maxqd"); !(d > 100 && d < 16000) {
			t.Errorf("MTU %d: the largest maxQD that the flow reports is %v us", mtu, d)
		}
		if r := goodput(t, files, "iperf3-1.json", 1, 5); r[0] < 20e6 { // a window of two such frames is small
			t.Errorf("MTU %d: %.3g b/s", mtu, r)
		}
	}
}
