package mininet

import (
	"fmt"
	"testing"
)

// TestOrdinaryHosts: hosts with only an address and a default route ping and send TCP with both IP versions,
// through three switches and within their rack, and ping their gateway.
func TestOrdinaryHosts(t *testing.T) {
	each(t, "ordinary hosts, IPv4 and IPv6, line", playOrdinary)
}

func playOrdinary(t *testing.T, kind string) (o outcome) {
	n := begin(t, fabric(t, "line.yaml"), kind, 4)
	ends := []string{"169.254.1.1", "fe80::1%" + n.hosts["h1"].Interface}
	for _, version := range []int{4, 6} {
		for _, to := range []string{"h8", "h2"} {
			ends = append(ends, n.hosts[to].Addresses[version].String())
		}
	}
	for _, to := range ends {
		if out, err := n.in("h1", "ping", "-n", "-c", "3", "-i", "0.2", "-W", "2", to).CombinedOutput(); err != nil {
			o.missed = append(o.missed, fmt.Sprintf("h1 pings %s: %v\n%s", to, err, out))
		}
	}
	for _, version := range []int{4, 6} {
		rate := n.iperf("h1", "h8", version, "--time", "5")() / 1e6
		text := fmt.Sprintf("iperf3 over IPv%d %.1f Mb/s", version, rate)
		if o.figure += text + "; "; rate < 5 || rate > 15 { // BMv2 paces packets as 1062 B, and TCP's have 1514
			o.missed = append(o.missed, text+" of 10")
		}
	}
	n.right()
	n.end()
	return o
}
