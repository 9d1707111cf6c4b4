package experiment

import (
	"fmt"
	"math"
	"testing"
)

// TestLinks: a flow that PFC stops because of other flows is a victim; a flow that takes part in the congestion
// is none. Each link has the time for which it was stopped.
func TestLinks(t *testing.T) {
	got, o := measured(t, `
topology: {kind: dumbbell, left: 2, right: 6, host: {rate: 100Gbps, delay: 1us}, trunk: {rate: 100Gbps, delay: 1us}}
buffer: {policy: static, size: 1MB, threshold: 20KB, lossless: [0]}
flows:
  - {kind: flow, group: victim, from: h0, to: h2, stop: 200us, law: slow}
  - {kind: flow, group: part, from: h1, to: h3, stop: 200us, law: slow}
  - {kind: incast, group: burst, from: 4-7, to: h3, size: 900KB}
laws: {slow: {kind: none, rate: 40Gbps}}
run: {until: 200us, links: true}
measures:
  - {name: victims, what: victim_flows}
  - {name: burst, what: victim_flows, group: burst}
  - {name: most, what: paused, stat: max}
  - {name: least, what: paused, stat: min}
  - {name: stopped, what: stopped}
  - {name: late, what: unfinished}
  - {name: ended, what: fct, group: burst, stat: max}
  - {name: lasted, what: lasted, group: burst, stat: max}
  - {name: headroom, what: headroom}
  - {name: drops, what: lossless_drops}
`)
	if got["victims"].Value != 1 || o.Groups[0].Victims != 1 || got["burst"].Value != 0 || got["drops"].Value != 0 || got["least"].Value != 0 {
		t.Errorf("%v, %+v", got, o.Groups)
	}
	if got["late"].Value == 0 || got["late"].Value > 4 {
		t.Errorf("%v flows have not ended, want some of the burst's 4", got["late"].Value)
	}
	if got["lasted"].Value != 200 || got["ended"].Value >= 200 {
		t.Errorf("the burst's flows lasted %v µs, those that ended %v, want 200 and less", got["lasted"].Value, got["ended"].Value)
	}
	sum, most, headroom := 0.0, 0.0, 0.0
	for _, l := range o.Links {
		if l.From == "s0" && l.To == "s1" && (l.Paused == 0 || l.Load < 20) || l.From == "h0" && l.To != "s0" {
			t.Errorf("%+v", l)
		}
		sum, most, headroom = sum+l.Paused*2, max(most, l.Paused), max(headroom, l.Headroom)
	}
	if d := sum - got["stopped"].Value; d*d > 1e-12 || math.Abs(most-got["most"].Value) > 1e-9 || len(o.Links) != 18 {
		t.Errorf("%d links, paused for %v µs and %v %% at most, want %v", len(o.Links), sum, most, got)
	}
	if headroom == 0 || headroom > got["headroom"].Value {
		t.Errorf("a link's headroom held %v KB, a switch's %v", headroom, got["headroom"].Value)
	}
}

// TestDropsOfLinks: a link has the drops of packets that arrived over it; the sum over links is the run's.
func TestDropsOfLinks(t *testing.T) {
	for name, tc := range map[string]struct {
		buffer string
		want   []string // links with drops
	}{
		"the link into the full switch": {"{policy: static, size: 400KB, threshold: 50KB, lossless: [1]}", []string{"h4→s1", "h5→s1", "h6→s1", "h7→s1"}},
		"a buffer that drops nothing":   {"{policy: static, size: 10MB, threshold: 8MB, lossless: [1]}", nil},
	} {
		got, o := measured(t, `
topology: {kind: dumbbell, left: 2, right: 6, host: {rate: 100Gbps, delay: 1us}, trunk: {rate: 100Gbps, delay: 1us}}
buffer: `+tc.buffer+`
flows:
  - {kind: incast, group: burst, from: 4-7, to: h3, size: 200KB}
run: {until: 100us, links: true}
measures:
  - {name: drops, what: drops}
`)
		var sum uint64
		var links []string
		for _, l := range o.Links {
			if sum += l.Drops; l.Drops > 0 {
				links = append(links, l.From+"→"+l.To)
			}
		}
		if fmt.Sprint(links) != fmt.Sprint(tc.want) || float64(sum) != got["drops"].Value {
			t.Errorf("%s: %d drops of %v, want %v of %v", name, sum, links, got["drops"].Value, tc.want)
		}
	}
}
