package mininet

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"
	"time"
)

// TestOrdinaryHosts: hosts with only an address and a default route ping and send TCP with both IP versions,
// through three switches and within their rack, and ping their gateway. Söze's weights hold over IPv6.
func TestOrdinaryHosts(t *testing.T) {
	each(t, "ordinary hosts, IPv4 and IPv6, line", again(playOrdinary))
}

func playOrdinary(t *testing.T, kind string) (o outcome) {
	text, err := os.ReadFile(repository + "/mininet/line.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n := begin(t, text, kind)
	ipv6 := func(host string) string { return "fd00::" + n.hosts[host].IP } // mininet/fabric.py
	run := func(host string, command ...string) []byte {
		t.Helper()
		out, err := n.in(host, command...).CombinedOutput()
		if err != nil {
			o.missed = append(o.missed, fmt.Sprintf("%s: %v: %v\n%s", host, command, err, out))
		}
		return out
	}
	for _, to := range []string{n.hosts["h8"].IP, ipv6("h8"), n.hosts["h2"].IP, ipv6("h2"), "169.254.1.1", "fe80::1%" + n.hosts["h1"].Interface} {
		run("h1", "ping", "-n", "-c", "3", "-i", "0.2", "-W", "2", to)
	}
	for _, to := range []string{n.hosts["h8"].IP, ipv6("h8")} {
		server := n.in("h8", "iperf3", "-s", "-1")
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // until it listens
		var report struct {
			End struct {
				Received struct {
					Rate float64 `json:"bits_per_second"`
				} `json:"sum_received"`
			} `json:"end"`
		}
		if err := json.Unmarshal(run("h1", "iperf3", "-c", to, "-t", "5", "-J"), &report); err != nil {
			o.missed = append(o.missed, fmt.Sprintf("iperf3 to %s: %v", to, err))
		}
		n.kill(server)
		rate := report.End.Received.Rate / 1e6
		if o.figure += fmt.Sprintf("iperf3 to %s %.1f Mb/s; ", to, rate); rate < 5 || rate > 15 { // BMv2 paces packets as 1062 B, and TCP's have 1514
			o.missed = append(o.missed, fmt.Sprintf("iperf3 to %s has %.1f Mb/s of 10", to, rate))
		}
	}

	const length = 20 * time.Second
	late := n.late()
	agents := map[string]*agent{}
	start := func(host string, args ...string) {
		agents[host] = n.host(host, append(args, "--ip", ipv6(host), "--rate", "10Mbps", "--warm-up", (length/2).String())...)
	}
	start("h7", "--listen-only")
	start("h1", "--flow", "dst="+ipv6("h7")+",weight=1")
	start("h2", "--flow", "dst="+ipv6("h7")+",weight=2")
	time.Sleep(length)
	o.bear(late(), 50*time.Millisecond, "Söze, whose round trips are tens of milliseconds, has")
	a, b := n.stop(agents["h1"]).Flows[0].Goodput/1e6, n.stop(agents["h2"]).Flows[0].Goodput/1e6
	n.stop(agents["h7"])
	line := 10.0 * 1000 / 1082
	figure := fmt.Sprintf("Söze 1:2 over IPv6 has %.2f and %.2f Mb/s", a, b)
	if o.figure += figure; math.Abs(b/a-2) > 0.2 || a+b < 0.9*line {
		o.missed = append(o.missed, figure)
	}
	n.right()
	n.end()
	return o
}
