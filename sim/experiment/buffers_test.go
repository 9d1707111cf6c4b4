package experiment

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/units"
)

const unequal = `
title: links of unequal length
topology:
  kind: custom
  hosts: [near, far, sink]
  switches: [s]
  links:
    - {a: near, b: s, rate: 100Gbps, delay: 1us}
    - {a: far, b: s, rate: 100Gbps, delay: 20us}
    - {a: sink, b: s, rate: 100Gbps, delay: 1us}
buffer: BUFFER
flows:
  - {kind: incast, from: "near, far", to: sink, size: 3MB}
run: {until: 5ms, stop_when_done: true}
measures: [{name: drops, what: drops}]
`

// TestAdaptiveKnowsDelays compares the headroom of each port under "adaptive" with the need of its own link's
// delay, whatever the file says about headroom. It loses nothing in a case in which the near link's headroom
// loses packets.
func TestAdaptiveKnowsDelays(t *testing.T) {
	drops := func(buffer string) (Plan, uint64) {
		f, err := Parse("unequal.yaml", []byte(strings.ReplaceAll(unequal, "BUFFER", buffer)))
		if err != nil {
			t.Fatal(err)
		}
		o, err := f.Plans[0].Run(context.Background(), "unequal", 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		return *f.Plans[0], o.Stats.Drops[0]
	}
	p, lost := drops("{policy: adaptive, size: 2MB, headroom: 50KB, lossless: [0], lossy_private: 3KB}")
	if lost != 0 {
		t.Errorf("adaptive headroom lost %d packets", lost)
	}
	info := sim.SwitchInfo{Peers: []int{0, 1}, Rates: []units.Rate{100 * units.Gbps, 100 * units.Gbps}, Delay: []units.Time{units.Microsecond, 20 * units.Microsecond}}
	b, err := p.Config.NewBuffer(info)
	if err != nil {
		t.Fatal(err)
	}
	layout, err := b.(*headroom.MMU).Config().Layout()
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range info.Delay {
		if want := (headroom.Link{Rate: info.Rates[i], Delay: d, MTU: 1500, Response: headroom.Processing}).Required(); layout.Phi[i] != want {
			t.Errorf("port %d over %v has headroom %v, want %v", i, d, layout.Phi[i], want)
		}
	}
	if _, lost := drops("{policy: sih, size: 2MB, headroom: 50KB, lossless: [0], lossy_private: 3KB, allow_loss: true}"); lost == 0 {
		t.Error("headroom for a near link lost nothing over a far one, so this shows little")
	}
}

// TestDroppedAnswersAreSaid: if lossless classes fill the shared pool, the lossy class of ACKs gets nothing
// without memory of its own, and the table says so.
func TestDroppedAnswersAreSaid(t *testing.T) {
	for private, warned := range map[string]bool{"": true, ", lossy_private: 8KB": false} {
		text := strings.ReplaceAll(unequal, "BUFFER", "{policy: static, size: 1300KB, threshold: 500KB, lossless: [0]"+private+"}")
		text += "packet: {ack: 1500B}\n" // has no room where a data packet still has
		f, err := Parse("unequal.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		r, err := (&Batch{File: f, Seed: 1, Seeds: 1, Shards: 1}).Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		st := r.Outcomes[0].Stats
		var table strings.Builder
		if err := r.WriteTable(&table); err != nil || strings.Contains(table.String(), "were ACKs") != warned || st.AnswersDropped > 0 != warned || st.Drops[0] > 0 {
			t.Errorf("lossy_private %q: %+v\n%v\n%s", private, st, err, table.String())
		}
	}
}

// TestChipReservesForAllPorts: in each policy, a chip reserves headroom for all its ports, connected or not.
func TestChipReservesForAllPorts(t *testing.T) {
	for policy, want := range map[string]units.Bytes{"sih": 8 * 50_000, "dsh": 8 * 50_000, "dt": 8 * 50_000} {
		text := strings.NewReplacer("20us", "1us", "BUFFER", "{policy: "+policy+", size: 2MB, headroom: 50KB, private: 1KB, lossless: [0], chip_ports: 8}").Replace(unequal)
		f, err := Parse("unequal.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		b, err := f.Plans[0].Config.NewBuffer(sim.SwitchInfo{Peers: []int{0, 1, 2}, Rates: slices.Repeat([]units.Rate{100 * units.Gbps}, 3), Delay: slices.Repeat([]units.Time{units.Microsecond}, 3)})
		if err != nil {
			t.Fatal(err)
		}
		l, err := b.(*headroom.MMU).Config().Layout()
		if err != nil {
			t.Fatal(err)
		}
		if l.Headroom+l.Insurance != want || l.Private != 8*1000 || l.Shared != 2_000_000-want-8*1000 {
			t.Errorf("%s: %+v, want %v reserved for eight ports", policy, l, want)
		}
	}
}
