package headroom

import (
	"testing"

	"github.com/headgate/headgate/units"
)

// The paper: K = 5 fails below N = 4, and for ε > 0.8 + 1/(N+1) (§IV-C).
func TestSPFCMarginIsThePapers(t *testing.T) {
	c := SPFCConfig{K: 5, Period: units.Millisecond}
	for n := 1; n <= 64; n++ {
		m, err := c.Margin(100*units.Gbps, n, 0.5, 1500)
		if err != nil {
			t.Fatal(err)
		}
		if want := n > 4; m.BurstsHold() != want || m.FewestBursts != 5 {
			t.Errorf("N = %d: burst ports are told apart: %v by %.1f packets, from N = %d", n, !want, m.Below, m.FewestBursts)
		}
		edge := 0.8 + 1/float64(n+1)
		for _, tt := range []struct {
			congested float64
			found     bool
		}{{edge - 0.01, true}, {edge + 0.01, false}} {
			if tt.congested > 1 {
				continue
			}
			m, err := c.Margin(100*units.Gbps, n, tt.congested, 1500)
			if err != nil || m.VictimHolds() != tt.found || (m.KAbove < 5) != tt.found {
				t.Errorf("N = %d, ε = %.3f: the victim is found: %v by %.1f packets (K above %.2f), %v", n, tt.congested, !tt.found, m.Above, m.KAbove, err)
			}
		}
	}
}

// flowModel plays the paper's flow model through an MMU packet by packet. It returns the number of
// periods in which each kind of port was a victim: port 0 has the victim, the others burst.
func flowModel(t *testing.T, c SPFCConfig, rate units.Rate, bursts int, congested float64, packet units.Bytes, periods int) (victim, burst, of int) {
	t.Helper()
	cfg := Config{Policy: SPFC, Buffer: 500 * units.GB, Lossless: 1, MTU: packet, Headroom: units.MB, SPFC: c}
	for range bursts + 1 {
		cfg.Ports = append(cfg.Ports, Port{Rate: rate})
	}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	queued := make([]int, bursts+1) // packets for the congested port
	slot, next, part := rate.TxTime(packet), 0, 0.0
	check := 5 * c.Period / 2 // in the middle of a period, when the state found at its start holds
	for now := units.Time(0); of < periods; now += slot {
		for port := range queued {
			m.Arrive(now, port, 0, packet)
			queued[port]++
		}
		if part += 1 - congested; part >= 1 { // of port 0, to other ports
			part--
			queued[0]--
			m.Depart(now, 0, 0, packet)
		}
		for range queued {
			next = (next + 1) % len(queued)
			if queued[next] > 0 {
				queued[next]--
				m.Depart(now, next, 0, packet)
				break
			}
		}
		if now >= check {
			check += c.Period
			of++
			if m.Victim(now, 0) {
				victim++
			}
			if m.Victim(now, 1) {
				burst++
			}
		}
	}
	if s := m.Stats(); s.PauseFrames != 0 {
		t.Fatalf("%d PAUSEs: the buffer is too small for the flow model", s.PauseFrames)
	}
	return victim, burst, of
}

// TestSPFCMarginHolds compares the margins with the MMU: outside the jitter of a count, the states
// are right in every period or wrong in every period.
func TestSPFCMarginHolds(t *testing.T) {
	cases, sure := 0, 0
	for _, k := range []int{2, 3, 5, 8} {
		for _, bursts := range []int{1, 2, 3, 4, 5, 7, 8, 12} {
			for _, congested := range []float64{0.05, 0.3, 0.6, 0.75, 0.85, 0.95, 1} {
				for _, period := range []units.Time{20 * units.Microsecond, 53 * units.Microsecond} {
					c := SPFCConfig{K: k, Period: period}
					m, err := c.Margin(100*units.Gbps, bursts, congested, 1500)
					if err != nil {
						t.Fatal(err)
					}
					victim, burst, of := flowModel(t, c, 100*units.Gbps, bursts, congested, 1500, 6)
					cases++
					for _, x := range []struct {
						what      string
						margin, j float64
						was, want int // periods as a victim, with a good margin
					}{{"the victim's port", m.Above, victimJitter, victim, of}, {"a burst port", m.Below, burstJitter, burst, 0}} {
						want := x.want
						switch {
						case x.margin <= -x.j:
							want = of - want
						case x.margin < x.j:
							continue
						}
						sure++
						if x.was != want {
							t.Errorf("K %d, N %d, ε %.2f, TC %v: %s was a victim's in %d of %d periods at a margin of %.2f packets", k, bursts, congested, period, x.what, x.was, of, x.margin)
						}
					}
				}
			}
		}
	}
	t.Logf("%d cases; %d of %d judgements are beyond jitter", cases, sure, 2*cases)
	if sure < cases {
		t.Error("too few cases are beyond jitter")
	}
}
