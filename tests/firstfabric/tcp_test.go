package firstfabric

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate/hosts/tcp/kernel"
	"github.com/headgate/headgate/tests/lag"
	"github.com/headgate/headgate/tests/race"
)

const tcpPage = "docs/operate/applications.md"

// needTCP skips a test where the kernel, root or a tool is missing.
func needTCP(t *testing.T) {
	t.Helper()
	race.SkipRealTime(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root, for network namespaces and eBPF")
	}
	if err := kernel.Supported(); err != nil {
		t.Skip(err)
	}
	for tool, debian := range map[string]string{"iperf3": "iperf3", "curl": "curl", "python3": "python3"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not on the PATH: it is in Debian's package %s", tool, debian)
		}
	}
}

// goodput returns what connections of iperf3 whose summaries match pattern got between two seconds after their
// start, in bits per second and in the order of the summaries' names.
func goodput(t *testing.T, files, pattern string, from, to float64) (rates []float64) {
	t.Helper()
	list, _ := filepath.Glob(filepath.Join(files, "*", pattern))
	slices.Sort(list)
	for _, name := range list {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var s struct {
			Error     string
			Intervals []struct {
				Streams []struct{ Socket, Start, End, Bytes float64 }
			}
		}
		if err := json.Unmarshal(text, &s); err != nil || s.Error != "" {
			t.Fatalf("%s: %v %s", name, err, s.Error)
		}
		var sums [][2]float64 // of each connection, bits and seconds
		for _, i := range s.Intervals {
			for n, c := range i.Streams {
				if n == len(sums) {
					sums = append(sums, [2]float64{})
				}
				if c.Start >= from-0.1 && c.End <= to+0.1 {
					sums[n][0] += 8 * c.Bytes
					sums[n][1] += c.End - c.Start
				}
			}
		}
		for _, c := range sums {
			rates = append(rates, c[0]/max(c[1], 1e-9))
		}
	}
	return rates
}

// checkShares compares rates with shares by weight of their sum, which must be most of a link's 100 Mb/s.
func checkShares(t *testing.T, what string, rates, weights []float64, within float64, late time.Duration) {
	t.Helper()
	var sum, weight float64
	for i := range rates {
		sum, weight = sum+rates[i], weight+weights[i]
	}
	worst := 0.0
	for i, r := range rates {
		worst = max(worst, math.Abs(r/(sum*weights[i]/weight)-1))
	}
	text := fmt.Sprintf("%s: %.1f Mb/s in all, %d flows within %.1f%% of their shares; the machine was late by %v", what, sum/1e6, len(rates), 100*worst, late)
	t.Log(text)
	if worst > within || sum < 85e6 {
		if late > lateness {
			t.Skipf("invalid on a machine that late: %s", text)
		}
		t.Errorf("%s: want within %.0f%%, and 85 Mb/s of 100: %.4g", text, 100*within, rates)
	}
}

// TestApplications plays the page: three transfers at weights 1:2:4, then 4:2:4, and a download.
func TestApplications(t *testing.T) {
	needTCP(t)
	files, late := play(t, tcpPage, nil)
	checkShares(t, "weights 1:2:4", goodput(t, files, "iperf3-?.json", 5, 11), []float64{1, 2, 4}, 0.15, late)
	checkShares(t, "weights 4:2:4", goodput(t, files, "iperf3-?.json", 14, 22), []float64{4, 2, 4}, 0.15, late)
}

// TestAgentRestarts: what is attached and what connections were told outlast the agent.
func TestAgentRestarts(t *testing.T) {
	needTCP(t)
	scene(t, 5, `
ip netns exec h2 iperf3 --server --one-off --port 5201 > /dev/null &
sleep 0.5
ip netns exec h1 iperf3 --client 10.0.1.2 --port 5201 --cport 40001 --time 12 > /dev/null &
transfer=$!
sleep 2
headgate set weight --flow 10.0.1.1:40001,10.0.1.2:5201 --app default 2.5
sleep 1
set -- $agents; kill $1
ip netns exec h1 ss --tcp --info | grep -q soze.h1
sleep 1
headgate host tcp --name h1 --netns h1 --rate 100Mbps > again.log 2>&1 &
agents="$2 $!"
until grep -q "weight 2.5" again.log; do sleep 0.2; done
grep -q adopted=true again.log
wait $transfer
`)
}

// TestPriorities: connections of eight virtual priorities in the one queue of a shaped link, each starting 3 s after the one
// below and ending 3 s before it. The highest that runs has the link.
func TestPriorities(t *testing.T) {
	needTCP(t)
	files, late := scene(t, 1, `
for n in p1 p2 p3; do ip netns add $n; done
ip link add eth0 netns p1 type veth peer name one netns p2
ip link add two netns p2 type veth peer name eth0 netns p3
for at in p1/eth0/10.77.1.1 p2/one/10.77.1.254 p2/two/10.77.2.254 p3/eth0/10.77.2.1; do
    IFS=/ read ns dev address <<< $at
    ip -n $ns address add $address/24 dev $dev
    ip -n $ns link set $dev up
done
ip -n p1 route add default via 10.77.1.254
ip -n p3 route add default via 10.77.2.254
ip netns exec p2 sysctl -qw net.ipv4.ip_forward=1
ip netns exec p2 tc qdisc add dev two root tbf rate 100mbit burst 16kb limit 2mb
top=/sys/fs/cgroup; [ $(stat -fc %T $top) = cgroup2fs ] || top=$top/unified
top=$top/headgate-${work##*/}
for n in 1 2 3 4 5 6 7 8; do mkdir $top-$n; groups="$groups --cgroup $top-$n,priority=$n"; done
headgate host tcp --name p1 --netns p1 --rate 100Mbps $groups --base-rtt 1ms --fluctuation 2ms --noise 4ms > p1.log 2>&1 &
agent=$!
until grep -q governed p1.log; do sleep 0.2; done
for n in 1 2 3 4 5 6 7 8; do
    ip netns exec p3 iperf3 --server --one-off --port 540$n --json > priority-$n.json &
    receivers="$receivers $!"
done
sleep 1
for n in 1 2 3 4 5 6 7 8; do
    (echo $BASHPID > $top-$n/cgroup.procs; exec ip netns exec p1 iperf3 --client 10.77.2.1 --port 540$n --time $((51 - 6 * n)) > /dev/null) &
    sleep 3
done
wait $receivers
kill $agent
headgate host tcp --name p1 --netns p1 --detach
rmdir $top-*
for n in p1 p2 p3; do ip netns del $n; done
`)
	var owned, all float64
	for second := 2; second < 44; second += 3 { // a change takes up to two seconds
		top := min(second/3+1, (47-second)/3) // 1 alone at first and at the end
		var sum, own float64
		for n := 1; n <= 8; n++ {
			from := float64(second - 3*(n-1))
			if from < 0 || from+1 > float64(51-6*n) {
				continue
			}
			r := goodput(t, files, fmt.Sprintf("priority-%d.json", n), from, from+1)[0]
			if sum += r; n == top {
				own = r
			}
		}
		t.Logf("%2d s: priority %d has %.1f of %.1f Mb/s", second, top, own/1e6, sum/1e6)
		owned, all = owned+own, all+sum
	}
	text := fmt.Sprintf("the highest priority has %.0f%% of %.1f Mb/s; the machine was late by %v", 100*owned/all, all/14e6, late)
	t.Log(text)
	if !(owned > 0.8*all && all > 14*80e6) {
		if late > lateness {
			t.Skipf("invalid on a machine that late: %s", text)
		}
		t.Errorf("%s: want 80%% of 80 Mb/s at least", text)
	}
}

// scene runs the first blocks of the page, then commands of a test's own, and after more than one block the page's last.
func scene(t *testing.T, first int, commands string) (files string, late time.Duration) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, tcpPage))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := read(string(text))
	if err != nil {
		t.Fatal(err)
	}
	list := append(blocks[:first:first], block{commands: commands})
	if first > 1 {
		list = append(list, blocks[len(blocks)-1])
	}
	worst := lag.Watch()
	files = t.TempDir()
	if out, err := run(t.Context(), list, files); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, logs(files))
	}
	return files, worst()
}
