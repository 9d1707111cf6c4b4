package mininet

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/packet"
)

// allFive is the default fabric at 2 Mb/s, with every system on: three lossless classes, one each for Söze,
// DCQCN with the switches' notifications, and PrioPlus.
//
// The rate is one that six BMv2 can forward on two processors. BMv2 needs about 220 µs of processor time per
// packet and hop, measured on a machine of 2026. 2 Mb/s are 235 full packets/s and as many acknowledgements.
// Söze's and PACC's flows take three hops, PrioPlus' one, TCP with 0.4 Mb/s three, and a poll of each of 24 ports
// one:
//
//	(2·235·3) + (2·235·3) + (2·235) + (2·33·3) + 24/0.2 = 3608 packets/s, 0.8 of a processor
//
// 5 Mb/s would be 8700 packets/s and 1.9 processors; libpcap's rings then overflow.
func allFive(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(repository + "/examples/leaf-spine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	slower := strings.NewReplacer(
		"1MB", "8MB", "50Mbps", "2Mbps", "scale: 2000", "scale: 50000", "poll_interval: 100ms", "poll_interval: 200ms",
		"    - {dscp: 48, class: 6, queue: 6}", "    - {dscp: 8, class: 1, queue: 1}\n    - {dscp: 16, class: 2, queue: 2}\n    - {dscp: 24, class: 3, queue: 3}\n    - {dscp: 48, class: 6, queue: 6}",
	).Replace(string(text))
	// Links between switches have room for all traffic, so that each system has its bottleneck at a host.
	var all strings.Builder
	for line := range strings.Lines(slower) {
		if strings.Contains(line, `b: "spine`) {
			line = strings.Replace(line, "2Mbps", "8Mbps", 1)
		}
		all.WriteString(line)
	}
	return []byte(all.String() + `
buffer: {policy: dsh+spfc, size: 8MB, lossless: [0, 1, 2], private: 3KB, lossy_private: 3KB, headroom: 200KB, alpha: 1/2, spfc: {k: 5, period: 100us}}
pacc: {enabled: true, queue: 1, cnp_dscp: 48, carry: true}
`)
}

// TestAllFive runs all five systems together on one fabric, with ping and TCP of ordinary hosts.
func TestAllFive(t *testing.T) {
	versions(t, "all five, leaf-spine", func(t *testing.T, kind string, version int) outcome {
		return again(func(t *testing.T, kind string) outcome { return playAll(t, kind, version) })(t, kind)
	})
}

func playAll(t *testing.T, kind string, version int) (o outcome) {
	const length, starting = 100 * time.Second, 10 * time.Second
	n := begin(t, allFive(t), kind, version)
	agents := map[string]*agent{}
	start := func(host string, args ...string) {
		// The first half is for the laws to settle.
		agents[host] = n.host(host, append(args, "--rate", "2Mbps", "--scale", "50000", "--warm-up", (length/2).String())...)
	}
	flow := func(to, more string) string { return "dst=" + n.hosts[to].IP.String() + more }
	start("h5", "--listen-only")
	// h6 receives one system's flows and sends another's.
	start("h6", "--law", "prioplus", "--data-dscp", "16", "--flow", flow("h8", ",priority=1"))
	start("h8", "--listen-only", "--law", "none")
	start("h1", "--flow", flow("h5", ",weight=1"))
	start("h3", "--flow", flow("h5", ",weight=2"))
	for _, host := range []string{"h2", "h4"} {
		start(host, "--law", "dcqcn-vendor", "--data-dscp", "8", "--flow", flow("h6", ""))
	}
	start("h7", "--law", "prioplus", "--data-dscp", "16", "--flow", flow("h8", ",priority=3"))
	pings := n.ping(reaction{from: "h2", to: "h4"})
	iperf := n.iperf("h1", "h3", version, "--time", fmt.Sprint((length - 5*time.Second).Seconds()), "--bitrate", "400K", "--tos", "96")
	deep := n.watchQueue("leaf3", 2, 1)
	// When ten processes start together, a switch's thread waits for 0.4 to 0.8 s. Nothing is measured then.
	time.Sleep(starting)
	late := n.late()
	time.Sleep(length - starting)
	sums := map[string]summary{}
	// h6 ends before h7, because without h7's high priority h6's low one would have the whole link.
	for _, host := range []string{"h1", "h2", "h3", "h4", "h6", "h7", "h5", "h8"} {
		if host == "h6" || host == "h5" {
			time.Sleep(10 * time.Second) // for the queues to empty: PACC's queue holds 2 s
		}
		sums[host] = n.stop(agents[host])
	}
	tcp, rtt, queue, behind := iperf(), pings(), deep(), late()

	var sent, got uint64
	for _, s := range sums {
		got += s.Received.Packets
		for _, f := range s.Flows {
			sent += f.Sent
		}
	}
	dropped := n.lossless()
	o.bear(behind, 400*time.Millisecond, "PrioPlus, between the delays of priorities 1 and 3, has")
	if gone := sent - min(sent, got); gone > dropped+sent/1000 { // as in every play
		o.invalid = append(o.invalid, fmt.Sprintf("%d packets were lost before a switch's program saw them", gone-dropped))
	}
	rate := func(host string, i int) float64 { return sums[host].Flows[i].Goodput / 1e6 }
	say := func(ok bool, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if o.figure += text + "; "; !ok {
			o.missed = append(o.missed, text)
		}
	}
	line := 2.0 * 1000 / (1000 + float64(packet.Overhead(n.hosts["h1"].IP)))
	a, b := rate("h1", 0), rate("h3", 0)
	say(math.Abs(b/a-2) < 0.2 && a+b > 0.9*line, "Söze 1:2 has %.2f and %.2f Mb/s", a, b)
	cnps := sums["h2"].Flows[0].CNPs + sums["h4"].Flows[0].CNPs
	say(cnps > 0 && rate("h2", 0)+rate("h4", 0) > 0.7*line, "PACC: %.2f and %.2f Mb/s, %d CNPs, queue %.0f KB (Q_th 500)", rate("h2", 0), rate("h4", 0), cnps, queue/1e3)
	say(rate("h7", 0) > 0.8*line && rate("h6", 0) < 0.15*line, "PrioPlus: priority 3 has %.2f, priority 1 %.2f Mb/s", rate("h7", 0), rate("h6", 0))
	say(dropped == 0, "DSH+SPFC: %d lossless drops", dropped)
	say(rtt > 0, "ping at most %v", rtt.Round(time.Millisecond))
	say(tcp > 0.12e6, "iperf3 %.2f Mb/s", tcp/1e6)
	n.right()
	n.end()
	return o
}

// lossless returns the number of lossless packets that switches dropped.
func (n *network) lossless() (sum uint64) {
	n.t.Helper()
	for _, packets := range n.losslessBy() {
		sum += packets
	}
	return sum
}

// losslessBy returns the same by switch and ingress port.
func (n *network) losslessBy() map[string]uint64 {
	n.t.Helper()
	list, err := n.admin.ListSwitches(n.t.Context(), &pb.ListSwitchesRequest{})
	if err != nil {
		n.t.Fatal(err)
	}
	by := map[string]uint64{}
	for _, sw := range list.GetSwitches() {
		for _, c := range sw.GetFeatures().GetBuffer().GetClasses() {
			by[fmt.Sprintf("%s:%d", sw.GetName(), c.GetPort())] += c.GetLosslessDrops()
		}
	}
	return by
}

// watchQueue follows a queue. It returns a function that returns the average bytes over the second half of the
// time.
func (n *network) watchQueue(sw string, port uint32, queue int) func() float64 {
	n.t.Helper()
	ctx, cancel := context.WithCancel(n.t.Context())
	stream, err := n.admin.StreamTelemetry(ctx, &pb.StreamTelemetryRequest{Switches: []string{sw}})
	if err != nil {
		n.t.Fatal(err)
	}
	done := make(chan []float64)
	go func() {
		var list []float64
		for m, err := stream.Recv(); err == nil; m, err = stream.Recv() {
			if m.GetPort() == port {
				list = append(list, float64(m.GetQueueBytes()[queue]))
			}
		}
		done <- list
	}()
	return func() float64 {
		cancel()
		list := <-done
		sum, late := 0.0, list[len(list)/2:]
		for _, v := range late {
			sum += v
		}
		return sum / float64(len(late))
	}
}

// iperf lets a host send TCP to another over a version of IP. It returns a function that waits for the end and
// returns the received rate in bits per second.
func (n *network) iperf(from, to string, version int, args ...string) func() float64 {
	n.t.Helper()
	server := n.in(to, "iperf3", "--server", "--one-off")
	if err := server.Start(); err != nil {
		n.t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	client := n.in(from, append([]string{"iperf3", "--json", "--client", n.hosts[to].Addresses[version].String()}, args...)...)
	var out strings.Builder
	client.Stdout = &out
	if err := client.Start(); err != nil {
		n.t.Fatal(err)
	}
	return func() float64 {
		_ = client.Wait()
		n.kill(server)
		var r struct {
			End struct {
				Received struct {
					Rate float64 `json:"bits_per_second"`
				} `json:"sum_received"`
			} `json:"end"`
		}
		_ = json.Unmarshal([]byte(out.String()), &r) // without TCP there is no rate
		return r.End.Received.Rate
	}
}
