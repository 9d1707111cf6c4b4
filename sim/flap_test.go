package sim

import (
	"testing"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// TestFlapLosesNoLosslessPacket takes the link of a paused sender down for 3 µs, at times spread over the pause.
// Packets on the wire are lost. The buffer must drop nothing, because the sender is paused again before it can
// fill the headroom.
func TestFlapLosesNoLosslessPacket(t *testing.T) {
	for _, policy := range []headroom.Kind{headroom.SIH, headroom.DT, headroom.DSH, headroom.SPFC, headroom.DSHSPFC} {
		t.Run(string(policy), func(t *testing.T) {
			for at := 60 * units.Microsecond; at < 400*units.Microsecond; at += 17 * units.Microsecond {
				if drops, pauses := flap(t, policy, at); drops != 0 || pauses == 0 {
					t.Errorf("down at %v: %d lossless drops, %d PAUSE frames; want 0 and some", at, drops, pauses)
				}
			}
		})
	}
}

// flap sends many line-rate flows from one leaf to one host of another leaf, so that both spines pause the first
// leaf. It takes the link from that leaf to the first spine down for 3 µs.
func flap(t *testing.T, policy headroom.Kind, at units.Time) (drops, pauses uint64) {
	t.Helper()
	const perLeaf = 4
	g := must[*topo.Graph](t)(topo.LeafSpine(2, 2, perLeaf, line100, line100))
	s := must[*Sim](t)(New(Config{Graph: g, NewBuffer: func(i SwitchInfo) (Buffer, error) {
		c := headroom.Config{Policy: policy, Buffer: 2000 * units.KB, Lossless: 0x7F, Private: 3 * units.KB, Headroom: 35 * units.KB, Alpha: -4}
		for p := range i.Rates {
			c.Ports = append(c.Ports, headroom.Port{Rate: i.Rates[p], Delay: i.Delay[p]})
		}
		return headroom.New(c)
	}}))
	var flows []FlowSpec
	for n := range 64 {
		flows = append(flows, FlowSpec{
			Src: n % perLeaf, Dst: perLeaf, Size: 200 * units.KB, Start: units.Time(n) * 4 * units.Microsecond, Law: lineRate{},
		})
	}
	if err := s.AddFlows(flows); err != nil {
		t.Fatal(err)
	}
	leaf, _ := g.Find("leaf1")
	spine, _ := g.Find("spine1")
	link, ok := g.LinkBetween(leaf, spine)
	if !ok {
		t.Fatal("no link between leaf1 and spine1")
	}
	for d, down := range []bool{true, false} {
		s.At(at+units.Time(d)*3*units.Microsecond, func(s *Sim) error { return s.SetLink(link, down) })
	}
	if err := s.Run(2 * units.Millisecond); err != nil {
		t.Fatal(err)
	}
	for c := range 7 {
		drops += s.Stats().Drops[c]
	}
	return drops, s.Stats().PausesSent
}
