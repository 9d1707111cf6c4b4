package mininet

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/emulation"
	"github.com/headgate/headgate/units"
)

// TestPACC sends a burst beside two long flows (PACC, Figures 1 to 3), with notifications from the receiver, as
// in DCQCN, and from the switches. The loops run in the controller, which works with both switches. Shares carry
// their rounding remainders, so that the queue settles at Q_th.
func TestPACC(t *testing.T) {
	versions(t, "PACC", func(t *testing.T, kind string, version int) outcome {
		s := find(t, "pacc", "dcqcn", "pacc-controller")
		s.Fabric, s.Port = slower(t, "dumbbell.yaml"), config.Endpoint{Node: "s2", Port: 2}
		s.Variants[0].Config = ""
		s.Variants[1].Config = "pacc: {enabled: true, cnp_dscp: 56, at: controller, carry: true}"
		s.Phases = []emulation.Phase{
			{Name: "calm", For: 600 * units.Microsecond, Actions: []emulation.Action{
				{Start: &emulation.Flow{Name: "L1", From: []string{"h1"}, To: "h8"}}, {Start: &emulation.Flow{Name: "L2", From: []string{"h2"}, To: "h8"}},
			}},
			{Name: "burst", For: 10000 * units.Microsecond, Whole: true, Actions: []emulation.Action{
				{Start: &emulation.Flow{Name: "burst", From: []string{"h3", "h4", "h5", "h6"}, To: "h8", Size: 144 * units.KB}},
			}},
		}
		decoded := map[string]int{} // notifications to L1's sender, by variant
		s.Judge = func(r *emulation.Report) { judgePACC(r, decoded) }
		return judged(play(t, s, kind, extra{network: []string{"--pcap"}, version: version, captured: func(variant string, n *network) {
			to := map[int]string{4: "ip.dst", 6: "ipv6.dst"}[version] + " == " + n.hosts["h1"].IP.String()
			decoded[variant] = len(decode(t, filepath.Join(n.dir, "s1-eth1_out.pcap"), "infiniband.bth.opcode == 0x81 && "+to, "frame.number"))
		}}))
	})
}

func judgePACC(r *emulation.Report, decoded map[string]int) {
	d, p := r.Variant("dcqcn"), r.Variant("pacc-controller")
	if d == nil || p == nil {
		return
	}
	check := func(ok bool, what, format string, args ...any) {
		r.Checks = append(r.Checks, emulation.Check{What: what, Measured: fmt.Sprintf(format, args...), OK: ok})
	}
	after := func(us *float64) string {
		if us == nil {
			return "never"
		}
		return fmt.Sprintf("after %.0f µs", *us)
	}
	check(p.Queue.SettledUS != nil, "the queue settles within 20 % of Q_th, 125 KB", "%.0f KB, %s", p.Queue.SettledKB, after(p.Queue.SettledUS))
	check(p.Queue.SteadyUS != nil && (d.Queue.SteadyUS == nil || *p.Queue.SteadyUS < *d.Queue.SteadyUS),
		"it is steady sooner than DCQCN's alone", "%s, DCQCN %s", after(p.Queue.SteadyUS), after(d.Queue.SteadyUS))
	n, got := decoded["pacc-controller"], p.Flows[0].CNPs
	check(n > 0 && uint64(n) >= got && got > 0, "tshark decodes the notifications, and the host takes those whose ICRC is right", "%d to h1, whose flow was given %d", n, got)
}
