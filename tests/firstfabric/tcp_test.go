package firstfabric

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/hosts/tcp/kernel"
	"github.com/headgate/headgate/tests/lag"
	"github.com/headgate/headgate/tests/race"
)

const tcpPage = "docs/operate/applications.md"

// needTCP skips a test if the kernel, root or a tool is missing.
func needTCP(t *testing.T, tools ...string) {
	t.Helper()
	race.SkipRealTime(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root, for network namespaces and eBPF")
	}
	if err := kernel.Supported(); err != nil {
		t.Skip(err)
	}
	for _, tool := range append(tools, "iperf3", "curl", "python3") {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not on the PATH: it is in Debian's package of that name", tool)
		}
	}
}

// needLong is needTCP for long tests that only make test-tcp runs.
func needLong(t *testing.T) {
	t.Helper()
	if os.Getenv("HEADGATE_TCP") != "1" {
		t.Skip("takes long: make test-tcp, which sets HEADGATE_TCP=1, plays it")
	}
	needTCP(t)
}

// try plays a scene until its measurement is right, or is wrong although the machine did not disturb it, at most three times.
// tolerance is the part by which the scene's figures may be off. A play is disturbed if a thread that carries packets waited for a
// processor for more than this part of a second. A test with three wrong and disturbed plays is invalid: neither passed nor failed.
func try(t *testing.T, tolerance float64, play func() (late time.Duration, err error)) {
	t.Helper()
	most := time.Duration(tolerance * float64(time.Second))
	var err error
	invalid := lag.Repeat(t, 3, func() string {
		late, e := play()
		if err = e; err != nil && late > most {
			return fmt.Sprintf("a thread waited %v of a second for a processor, more than %v, and then %v", late, most, err)
		}
		t.Logf("threads waited %v of a second for a processor at most", late)
		return ""
	})
	switch {
	case invalid != "":
		t.Skip("invalid: " + invalid)
	case err != nil:
		t.Error(err)
	}
}

// goodput returns the rates of iperf3's connections whose summaries match pattern, from two seconds after their start
// on, in bits per second, in the order of the summaries' names. iperf3 counts whole writes, of 128 KB by default, which are a tenth
// of what a small share sends in ten seconds: short spans need its option --length.
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
				if mid := (c.Start + c.End) / 2; mid >= from && mid <= to {
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

// shares compares rates with the expected ones, as fractions of their sum. The sum must be most of the capacity of
// some links of 100 Mb/s.
func shares(t *testing.T, what string, rates, want []float64, within, least float64) error {
	t.Helper()
	if len(rates) != len(want) {
		return fmt.Errorf("%s: %d flows, want %d", what, len(rates), len(want))
	}
	var sum, whole, worst float64
	for i := range rates {
		sum, whole = sum+rates[i], whole+want[i]
	}
	for i, r := range rates {
		worst = max(worst, math.Abs(r*whole/(sum*want[i])-1))
	}
	t.Logf("%s: %.1f Mb/s in all, %d flows within %.1f %% of their shares", what, sum/1e6, len(rates), 100*worst)
	if !(worst <= within && sum >= least*1e6) {
		return fmt.Errorf("%s: %.4g, %.1f Mb/s in all, a flow %.1f %% off its share: want %.0f %% at most and %v Mb/s", what, rates, sum/1e6, 100*worst, 100*within, least)
	}
	return nil
}

// scene runs the page's first blocks, then commands of a test, and, if there was more than one block, the page's last.
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
	files = t.TempDir()
	out, late, err := run(t.Context(), list, files)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, logs(files))
	}
	return files, late
}

// TestApplications plays the page: three transfers at weights 1:2:4, then 4:2:4, and a download.
func TestApplications(t *testing.T) {
	needTCP(t)
	try(t, 0.05, func() (time.Duration, error) {
		files, late := play(t, tcpPage, nil)
		return late, errors.Join(
			shares(t, "weights 1:2:4", goodput(t, files, "iperf3-?.json", 5, 11), []float64{1, 2, 4}, 0.05, 85),
			shares(t, "weights 4:2:4", goodput(t, files, "iperf3-?.json", 14, 22), []float64{4, 2, 4}, 0.05, 85))
	})
}

// TestWeightsInAllOrders: shares follow the weights, whichever connection has which weight, and whatever weight
// it had.
func TestWeightsInAllOrders(t *testing.T) {
	needLong(t)
	orders := [][]float64{{1, 2, 4}, {4, 2, 1}, {2, 1, 4}, {1, 4, 2}, {4, 1, 2}, {2, 4, 1}}
	commands := `
for n in 1 2 3; do ip netns exec h2 iperf3 --server --one-off --port 520$n > /dev/null & done
sleep 0.5
for n in 1 2 3; do
    ip netns exec h1 iperf3 --client 10.0.1.2 --port 520$n --cport 4000$n --length 8K --interval 0.1 --time 32 --json > iperf3-$n.json &
    transfers="$transfers $!"
    sleep 0.05
done
began=$(date +%s%N); sleep 1
`
	for i, weights := range orders {
		for n, w := range weights {
			commands += fmt.Sprintf("headgate set weight --flow 10.0.1.1:4000%d,10.0.1.2:520%d --app default %v\n", n+1, n+1, w)
		}
		commands += fmt.Sprintf("echo $(($(date +%%s%%N) - began)) > order-%d; sleep 2.5\n", i)
	}
	try(t, 0.05, func() (time.Duration, error) {
		files, late := scene(t, 5, commands+"wait $transfers\n")
		var err error
		for i, weights := range orders {
			from := number(t, files, fmt.Sprintf("order-%d", i))/1e9 + 0.3
			err = errors.Join(err, shares(t, fmt.Sprint("weights ", weights), goodput(t, files, "iperf3-?.json", from, from+2), weights, 0.05, 85))
		}
		return late, err
	})
}

// number reads a file that holds a number.
func number(t *testing.T, files, name string) (v float64) {
	t.Helper()
	list, _ := filepath.Glob(filepath.Join(files, "*", name))
	if len(list) != 1 {
		t.Fatalf("%d files %s", len(list), name)
	}
	text, err := os.ReadFile(list[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(text), &v); err != nil {
		t.Fatalf("%s: %q: %v", name, text, err)
	}
	return v
}

// cgroups makes a cgroup for each number, and removes them at the end.
const cgroups = `
top=/sys/fs/cgroup; [ $(stat -fc %T $top) = cgroup2fs ] || top=$top/unified
top=$top/headgate-${work##*/}
cgroups() { for n in $*; do mkdir $top-$n; done; }
`

// TestHundredConnections: fifty connections of weight 1 and fifty of weight 2 have less than a packet per round
// trip each.
func TestHundredConnections(t *testing.T) {
	needLong(t)
	commands := cgroups + `
cgroups 1 2
headgate host tcp --name h2 --netns h2 --rate 100Mbps --controller $HEADGATE_SERVER > h2.log 2>&1 &
agents=$!
headgate host tcp --name h1 --netns h1 --rate 100Mbps --controller $HEADGATE_SERVER --cgroup $top-1,weight=1 --cgroup $top-2,weight=2 > h1.log 2>&1 &
agents="$agents $!"
until grep -q governed h1.log && grep -q governed h2.log; do sleep 0.2; done
for n in 1 2; do ip netns exec h2 iperf3 --server --one-off --port 520$n > /dev/null & done
sleep 0.5
for n in 1 2; do
    (echo $BASHPID > $top-$n/cgroup.procs; exec ip netns exec h1 iperf3 --client 10.0.1.2 --port 520$n --parallel 50 --length 8K --time 14 --json > iperf3-$n.json) &
    transfers="$transfers $!"
done
wait $transfers
rmdir $top-*
server=
`
	weights := append(slices.Repeat([]float64{1}, 50), slices.Repeat([]float64{2}, 50)...)
	try(t, 0.1, func() (time.Duration, error) {
		files, late := scene(t, 4, commands)
		return late, shares(t, "100 connections at weights 1:2", goodput(t, files, "iperf3-?.json", 4, 14), weights, 0.1, 85)
	})
}

// TestWeightTakesEffect: ten round trips after an order, the rates follow the new weight.
func TestWeightTakesEffect(t *testing.T) {
	needTCP(t)
	const trips, span = 10, 500 * time.Millisecond
	try(t, 0.05, func() (late time.Duration, err error) {
		name := filepath.Join(t.TempDir(), "running")
		changed := make(chan error, 1)
		go func() {
			for _, err := os.Stat(name); err != nil && t.Context().Err() == nil; _, err = os.Stat(name) {
				time.Sleep(10 * time.Millisecond)
			}
			changed <- changeWeights(t, trips, span)
		}()
		_, late = scene(t, 5, `
for n in 1 2; do ip netns exec h2 iperf3 --server --one-off --port 520$n > /dev/null & done
sleep 0.5
for n in 1 2; do
    ip netns exec h1 iperf3 --client 10.0.1.2 --port 520$n --cport 4000$n --time 8 --json > iperf3-$n.json &
    transfers="$transfers $!"
done
sleep 2
touch `+name+`
wait $transfers
`)
		return late, <-changed
	})
}

// changeWeights gives one of h1's two connections the weights 3 and 1 in turn, and measures both trips round trips
// later.
func changeWeights(t *testing.T, trips int, span time.Duration) (err error) {
	top := "/sys/fs/cgroup"
	if _, err := os.Stat(top + "/unified"); err == nil {
		top += "/unified"
	}
	k, err := kernel.Open(kernel.Config{Name: "h1", Cgroups: []kernel.Cgroup{{Path: top}}})
	if err != nil || !k.Adopted {
		return fmt.Errorf("the agent's programs: adopted %v, %w", k != nil && k.Adopted, err)
	}
	of := func() (list [2]kernel.Flow, at time.Time) {
		all, err := k.Flows()
		at = time.Now()
		for _, f := range all {
			if n := int(f.Key.Src.Port()) - 40001; n >= 0 && n < 2 {
				list[n] = f
			}
		}
		if err != nil || list[0].Acked == 0 || list[1].Acked == 0 {
			t.Errorf("the connections: %v, %+v", err, all)
		}
		return list, at
	}
	for _, w := range []float64{3, 1, 3, 1} {
		before, _ := of()
		trip := time.Duration(before[0].RTT / 1000) // picoseconds
		if err := k.Tell(before[0].Key, kernel.Order{Weight: w}); err != nil {
			return err
		}
		time.Sleep(time.Duration(trips) * trip)
		from, at := of()
		time.Sleep(span)
		to, end := of()
		rates := []float64{float64(to[0].Acked - from[0].Acked), float64(to[1].Acked - from[1].Acked)}
		for i := range rates {
			rates[i] *= 8 / end.Sub(at).Seconds()
		}
		err = errors.Join(err, shares(t, fmt.Sprintf("weights %v:1 from %d round trips of %v on", w, trips, trip), rates, []float64{w, 1}, 0.1, 75))
	}
	return err
}

// TestAgentRestarts: attached programs and the connections' orders survive the agent.
func TestAgentRestarts(t *testing.T) {
	needTCP(t)
	scene(t, 5, `
ip netns exec h2 iperf3 --server --one-off --port 5201 > /dev/null &
sleep 0.5
ip netns exec h1 iperf3 --client 10.0.1.2 --port 5201 --cport 40001 --time 12 > /dev/null &
transfer=$!
sleep 2
headgate set weight --flow 10.0.1.1:40001,10.0.1.2:5201 --app default 2.5
headgate get flows -o json | grep -q '"law": "soze"'
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

// TestPriorities starts connections of eight virtual priorities in the one queue of a shaped link, one every 4 s from the
// lowest up, and ends them in reverse. In the last second before each change the highest has the link but for the
// others' probes. The link is busy all the time, also when a high priority ends. A takeover by the highest takes some 80
// round trips of 20 ms: in two of them its window grows by an eighth, the difference of the two targets over the delay.
func TestPriorities(t *testing.T) {
	needLong(t)
	const n, step = 8, 4
	const noise = 2 * time.Millisecond // two segments of each of seven lower priorities, and a burst of the kernel's
	const link, least = 93, 85         // Mb/s: payload that arrives of 100 on the wire, and what must arrive
	commands := cgroups + fmt.Sprintf(`
n=%d; step=%d; noise=%v`, n, step, noise) + `
for at in p1 p2 p3; do ip netns add $at; done
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
cgroups $(seq $n)
for i in $(seq $n); do groups="$groups --cgroup $top-$i,priority=$i"; done
headgate host tcp --name p1 --netns p1 --rate 100Mbps $groups --base-rtt 1ms --fluctuation 800us --noise $noise > p1.log 2>&1 &
agent=$!
until grep -q governed p1.log; do sleep 0.2; done
for i in $(seq $n); do
    ip netns exec p3 iperf3 --server --one-off --port 540$i --interval 0.2 --json > priority-$i.json &
    receivers="$receivers $!"
done
ip netns exec p3 bash -c 'while sleep 0.1; do echo $(date +%s%N) $(< /sys/class/net/eth0/statistics/rx_bytes); done' > link &
watch=$!
sleep 1
began=$(date +%s%N)
for i in $(seq $n); do
    echo $(($(date +%s%N) - began)) > began-$i
    (echo $BASHPID > $top-$i/cgroup.procs; exec ip netns exec p1 iperf3 --client 10.77.2.1 --port 540$i --time $(((2 * n + 1 - 2 * i) * step)) > /dev/null) &
    sleep $step
done
wait $receivers
kill $watch $agent
headgate host tcp --name p1 --netns p1 --detach
rmdir $top-*
for at in p1 p2 p3; do ip netns del $at; done
`
	try(t, 1-least/float64(link), func() (late time.Duration, err error) {
		files, late := scene(t, 1, commands)
		for from := 0; from < (2*n-1)*step; from += step {
			top := min(from/step+1, 2*n-1-from/step)
			var sum, own float64 // in the last second
			for i := 1; i <= n; i++ {
				at := float64(from+step-1) - number(t, files, fmt.Sprint("began-", i))/1e9
				if at < -0.5 || at+0.9 > float64((2*n+1-2*i)*step) {
					continue
				}
				r := goodput(t, files, fmt.Sprintf("priority-%d.json", i), at, at+1)[0] / 1e6
				if sum += r; i == top {
					own = r
				}
			}
			t.Logf("%2d s: priority %d has %.1f of %.1f Mb/s in the last second", from, top, own, sum)
			if sum < least || own < 0.8*sum {
				err = errors.Join(err, fmt.Errorf("at %d s: %.1f Mb/s in the last second, %.1f of them of priority %d: want %d Mb/s and 80 %%", from, sum, own, top, least))
			}
		}
		at, lowest := lowestRate(t, files, (2*n-1)*step-1)
		t.Logf("the link carries %.1f Mb/s or more in each second, the least from %.1f s on", lowest, at)
		if lowest < least {
			err = errors.Join(err, fmt.Errorf("the link carries only %.1f Mb/s from %.1f s on, want %d", lowest, at, least))
		}
		return late, err
	})
}

// lowestRate returns the lowest rate of a second in Mb/s, and when that second began, from the samples of a link's counter. The
// first second, and what follows end seconds, do not count.
func lowestRate(t *testing.T, files string, end float64) (at, lowest float64) {
	t.Helper()
	list, _ := filepath.Glob(filepath.Join(files, "*", "link"))
	text, err := os.ReadFile(strings.Join(list, ""))
	if err != nil {
		t.Fatal(err)
	}
	var samples [][2]float64 // seconds and bytes
	for line := range strings.Lines(string(text)) {
		var ns, bytes float64
		if _, err := fmt.Sscan(line, &ns, &bytes); err != nil {
			t.Fatalf("link: %q: %v", line, err)
		}
		samples = append(samples, [2]float64{ns / 1e9, bytes})
	}
	began := samples[slices.IndexFunc(samples, func(s [2]float64) bool { return s[1] > 1e5 })][0]
	lowest = math.Inf(1)
	for i, a := range samples {
		if a[0] < began+1 {
			continue
		}
		for _, b := range samples[i:] {
			if b[0] > began+end {
				return at, lowest
			}
			if took := b[0] - a[0]; took >= 1 {
				if r := (b[1] - a[1]) * 8 / took / 1e6; r < lowest {
					at, lowest = a[0]-began, r
				}
				break
			}
		}
	}
	t.Fatalf("link: %d samples, want more than %.0f s", len(samples), end)
	return
}

// TestWebServer: nginx and curl, unmodified, share by weight over IPv6.
func TestWebServer(t *testing.T) {
	needTCP(t, "nginx")
	commands := `
ip -n h1 address add 2001:db8:1::1/128 dev eth0 nodad
ip -n h2 address add 2001:db8:1::2/128 dev eth0 nodad
for h in h1 h2; do ip -n $h -6 route add default via fe80::1 dev eth0; done
sed -i -e 's/10.0.1.1}/10.0.1.1, ipv6: "2001:db8:1::1"}/' -e 's/10.0.1.2}/10.0.1.2, ipv6: "2001:db8:1::2"}/' fabric.yaml
headgate apply -f fabric.yaml > /dev/null
mkdir web; truncate --size 80M web/file; chmod 755 . web
cat > nginx.conf <<END
daemon off; pid $PWD/nginx.pid; error_log $PWD/nginx.log; user root;
events {}
http { access_log off; server { listen [::]:8080 ipv6only=on; root $PWD/web; } }
END
ip netns exec h1 nginx -c $PWD/nginx.conf &
server=$!
until ip netns exec h2 curl --silent --output /dev/null "http://[2001:db8:1::1]:8080/"; do sleep 0.2; done
for n in 1 3; do
    ip netns exec h2 curl --silent --local-port 4100$n --output copy-$n --max-time 8 "http://[2001:db8:1::1]:8080/file" &
    downloads="$downloads $!"
done
sleep 1
headgate set weight --flow [2001:db8:1::1]:8080,[2001:db8:1::2]:41003 --app default 3
sleep 2.5
for s in 0 1; do stat --format %s copy-1 > one-$s; stat --format %s copy-3 > three-$s; sleep 2; done
wait $downloads || true
`
	try(t, 0.1, func() (time.Duration, error) {
		files, late := scene(t, 5, commands)
		of := func(name string) float64 { return 4 * (number(t, files, name+"-1") - number(t, files, name+"-0")) }
		return late, shares(t, "downloads at weights 1:3", []float64{of("one"), of("three")}, []float64{1, 3}, 0.1, 80)
	})
}
