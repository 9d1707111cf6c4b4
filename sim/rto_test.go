package sim

import (
	"testing"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// TestLosslessFabricSendsNothingTwice fills a queue of some 7 ms at 1 Gb/s and starts a flow behind it. Without a
// drop there is no retransmission, with unlimited memory and with PFC.
func TestLosslessFabricSendsNothingTwice(t *testing.T) {
	line := topo.Line{Rate: units.Gbps, Delay: units.Microsecond}
	guarded := func(i SwitchInfo) (Buffer, error) {
		c := headroom.Config{Policy: headroom.SIH, Buffer: 4 * units.MB, Lossless: 0x7F}
		for p := range i.Rates {
			c.Ports = append(c.Ports, headroom.Port{Rate: i.Rates[p], Delay: i.Delay[p]})
		}
		return headroom.New(c)
	}
	for name, buffer := range map[string]func(SwitchInfo) (Buffer, error){"unlimited": nil, "PFC": guarded} {
		const senders = 10
		g := must[*topo.Graph](t)(topo.Star(senders+1, line))
		s := must[*Sim](t)(New(Config{Graph: g, NewBuffer: buffer}))
		var flows []FlowSpec
		for i := range senders {
			flows = append(flows, FlowSpec{Src: i, Dst: senders, Size: 100 * units.KB, Law: lineRate{}})
		}
		flows[senders-1].Start = units.Millisecond
		if err := s.AddFlows(flows); err != nil {
			t.Fatal(err)
		}
		if err := s.Run(100 * units.Millisecond); err != nil {
			t.Fatal(err)
		}
		var resent uint64
		var slowest units.Time
		for _, r := range s.Results() {
			resent += r.Stats.Retransmits
			slowest = max(slowest, r.FCT)
		}
		if st := s.Stats(); resent != 0 || st.Dropped != 0 || st.FlowsDone != senders || slowest < 7*units.Millisecond {
			t.Errorf("%s: %d packets sent again, %d dropped, %d flows done, the slowest after %v", name, resent, st.Dropped, st.FlowsDone, slowest)
		}
	}
}
