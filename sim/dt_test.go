package sim

import (
	"fmt"
	"testing"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// TestDTSteadyState compares the shared pool of a real MMU with the fixed point of dynamic thresholds (Choudhury
// and Hahne, ToN 1998). With n overloaded ingress queues each holds T = α·(B − n·T), so together they hold
// n·α·B/(1 + n·α), and B/(1 + n·α) stays free. The paper's case is n = 1 and α = 2: Q = T = 2B/3 (SPFC §II). A
// queue that PFC stops at T falls further while RESUME takes effect, by the bytes that drain in that time.
func TestDTSteadyState(t *testing.T) {
	const size, delay = 4 * units.MB, units.Microsecond
	fast, slow := 400*units.Gbps, 100*units.Gbps
	for _, c := range []struct {
		n     int
		alpha headroom.Alpha
	}{{1, 1}, {1, 0}, {2, 1}, {4, 0}, {4, -2}, {8, 2}} {
		t.Run(fmt.Sprintf("%d queues, alpha %v", c.n, c.alpha), func(t *testing.T) {
			g := must[*topo.Graph](t)(topo.Star(c.n+1, topo.Line{Rate: fast, Delay: delay}))
			g.Links[c.n].Rate = slow // the receiver's
			var mmu *headroom.MMU
			s := must[*Sim](t)(New(Config{Graph: g, NewBuffer: func(i SwitchInfo) (Buffer, error) {
				cfg := headroom.Config{Policy: headroom.DT, Buffer: size, Lossless: 1, LossyPrivate: 3 * units.KB, Alpha: c.alpha}
				for p := range i.Rates {
					cfg.Ports = append(cfg.Ports, headroom.Port{Rate: i.Rates[p], Delay: i.Delay[p]})
				}
				var err error
				mmu, err = headroom.New(cfg)
				return mmu, err
			}}))
			for h := range c.n {
				if err := s.AddFlows([]FlowSpec{{Src: h, Dst: c.n, Stop: 3 * units.Millisecond, Law: lineRate{}}}); err != nil {
					t.Fatal(err)
				}
			}
			layout := must[headroom.Layout](t)(mmu.Config().Layout())
			n, alpha := float64(c.n), float64(c.alpha.Threshold(1024))/1024
			want := units.Bytes(n * alpha / (1 + n*alpha) * float64(layout.Shared))
			// A RESUME is sent when a packet has left, and waits for at most one frame on the wire. The first
			// packet arrives two delays and one packet later.
			pause := 2*delay + fast.TxTime(3840) + 3*fast.TxTime(1500)
			low, high := want-slow.BytesIn(pause)-units.Bytes(c.n)*1054, want+units.Bytes(c.n)*1054
			if err := s.Run(2 * units.Millisecond); err != nil {
				t.Fatal(err)
			}
			least, most := layout.Shared, units.Bytes(0)
			for s.Now() < 2900*units.Microsecond {
				if err := s.Run(s.Now() + 100*units.Nanosecond); err != nil {
					t.Fatal(err)
				}
				least, most = min(least, mmu.Usage().Shared), max(most, mmu.Usage().Shared)
			}
			if least < low || most > high || most < want-1054*units.Bytes(c.n) {
				t.Errorf("shared pool between %v and %v, want %v within %v to %v", least, most, want, low, high)
			}
			if st := s.Stats(); st.Dropped > 0 {
				t.Errorf("%d packets dropped", st.Dropped)
			}
		})
	}
}
