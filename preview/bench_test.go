package preview

import (
	"fmt"
	"strings"
	"testing"
)

// sixteen is a fabric of 16 leaves, 4 spines and 128 hosts at 100 Gb/s.
func sixteen(policy string) string {
	var switches, hosts, links strings.Builder
	id := 0
	add := func(name string) {
		id++
		fmt.Fprintf(&switches, "  - {name: %s, device_id: %d, address: \"127.0.0.1:%d\"}\n", name, id, id)
	}
	for l := range 16 {
		add(fmt.Sprintf("leaf%d", l))
	}
	for s := range 4 {
		add(fmt.Sprintf("spine%d", s))
	}
	for h := range 128 {
		fmt.Fprintf(&hosts, "  - {name: h%d, ipv4: 10.0.%d.%d}\n", h, h/8, h%8+1)
		fmt.Fprintf(&links, "  - {a: \"leaf%d:%d\", b: h%d, rate: 100Gbps, delay: 1us}\n", h/8, h%8+1, h)
	}
	for l := range 16 {
		for s := range 4 {
			fmt.Fprintf(&links, "  - {a: \"leaf%d:%d\", b: \"spine%d:%d\", rate: 100Gbps, delay: 1us}\n", l, 9+s, s, l+1)
		}
	}
	return "name: sixteen\nswitches:\n" + switches.String() + "hosts:\n" + hosts.String() + "links:\n" + links.String() +
		"qos: {ecn: [{queue: 0, kmin: 100KB, kmax: 400KB, pmax: 0.2}], classes: [{dscp: 0, class: 0}, {dscp: 48, class: 6}]}\n" +
		"buffer: {size: 16MB, private: 3KB, headroom: 60KB, lossless: [0, 6], alpha: 1/16, policy: " + policy + "}\n"
}

const sixteenTraffic = `
cnp_gap: 50us
flows:
  - {kind: poisson, group: background, sizes: websearch, load: 0.5, stop: 1.5ms, law: dcqcn-vendor}
  - {kind: incast, group: fan-in, from: "0-31", to: h127, size: 32KB, start: 300us, law: dcqcn-vendor}
  - {kind: incast, group: fan-in, from: "32-63", to: h64, size: 32KB, start: 900us, law: dcqcn-vendor}
run: {until: 1.5ms}
`

// BenchmarkSixteenLeaves measures the simulation part of `plan --preview` on 16 leaves: both configurations, the
// default's three seeds, on all processors.
func BenchmarkSixteenLeaves(b *testing.B) {
	o := Options{Traffic: Traffic{File: "t.yaml", Text: []byte(sixteenTraffic)}, Seed: 1, Seeds: 3}
	o.Before, o.After = parse(b, "a", sixteen("sih")), parse(b, "b", sixteen("dsh"))
	for b.Loop() {
		p, err := Run(b.Context(), o)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(p.Hops)/1e6, "Mhops/op")
	}
}
