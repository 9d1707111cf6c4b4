package mininet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/emulation"
	"github.com/headgate/headgate/units"
)

// find returns a scenario of `headgate run` with some of its variants.
func find(t *testing.T, name string, variants ...string) emulation.Scenario {
	t.Helper()
	s, err := emulation.Find(name)
	if err == nil {
		s, err = s.Select(variants)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// incast adapts a scenario to a single switch. h1 sends the victim flow to h7 and a second flow to h8. Then h2 to
// h6 send a burst to h8. A PAUSE of h1 because of its flow to h8 slows the victim.
func incast(s *emulation.Scenario, text []byte, burst units.Bytes, calm, during units.Time) {
	other := "F2"
	if s.Victim == "F0" {
		other = "F1"
	}
	s.Fabric, s.Port, s.Limits = text, config.Endpoint{Node: "s1", Port: 8}, nil
	s.Phases = []emulation.Phase{
		{Name: "calm", For: calm, Actions: []emulation.Action{
			{Start: &emulation.Flow{Name: s.Victim, From: []string{"h1"}, To: "h7"}}, {Start: &emulation.Flow{Name: other, From: []string{"h1"}, To: "h8"}},
		}},
		{Name: "burst", For: during, Whole: true, Actions: []emulation.Action{
			{Start: &emulation.Flow{Name: "burst", From: []string{"h2", "h3", "h4", "h5", "h6"}, To: "h8", Size: burst}},
		}},
	}
}

// TestDSH sends a fan-in into one switch (DSH, Figure 14) with the paper's pools and bytes. The headroom is 240
// KB, because eight ports here represent the paper's 32.
func TestDSH(t *testing.T) {
	each(t, "DSH", func(t *testing.T, kind string) outcome {
		s := find(t, "dsh", "sih", "dsh")
		for i := range s.Variants {
			s.Variants[i].Config = strings.Replace(s.Variants[i].Config, "headroom: 60KB", "headroom: 240KB", 1)
		}
		incast(&s, fabric(t, "single.yaml"), 300*units.KB, 200*units.Microsecond, 300*units.Microsecond)
		return judged(play(t, s, kind, extra{network: []string{"--pcap"}, reaction: prompt(2*units.Mbps, 240*units.KB)}))
	})
}

// TestSPFC lets a burst last (SPFC, Figures 4 and 5) with five senders, more than K - 1 as its Equation 8
// requires, under DT, SPFC and DSH+SPFC. α gives each of the six ingress ports the threshold that each of 25 has in `headgate run`. There is
// no congestion control: DCQCN would relieve five senders before PFC acts, and the victim would then get the
// second flow's part of h1's link.
func TestSPFC(t *testing.T) {
	versions(t, "SPFC and DSH+SPFC", func(t *testing.T, kind string, version int) outcome {
		s := find(t, "spfc", "dt", "spfc", "dsh+spfc")
		for i := range s.Variants {
			c := strings.Replace(s.Variants[i].Config, "alpha: 1/8", "alpha: 1/32", 1)
			s.Variants[i].Config = strings.Replace(c, "size: 16MB,", "size: 12MB, headroom: 200KB,", 1)
			s.Variants[i].CNPGap = 0
		}
		s.Law = emulation.LineRate
		claims := s.Judge
		s.Judge = func(r *emulation.Report) {
			claims(r)
			lost := r.Variant("dsh+spfc").Victim.Lost
			r.Checks = append(r.Checks, emulation.Check{What: "under DSH+SPFC it loses less than 10 %", Measured: fmt.Sprintf("%.2f", lost), OK: lost < 10})
		}
		incast(&s, slower(t, "single.yaml"), 2400*units.KB, 150*units.Microsecond, 400*units.Microsecond)
		return judged(play(t, s, kind, extra{network: []string{"--pcap"}, version: version, reaction: prompt(units.Mbps, 200*units.KB)}))
	})
}

// TestSPFCTestbed plays SPFC's Figure 12 at 2 Mb/s. Each burst host sends one long flow without a law, which stands for flows of
// 64 KB that each start at line rate. A headroom of 80 KB lets processes react late.
func TestSPFCTestbed(t *testing.T) {
	each(t, "SPFC's testbed", func(t *testing.T, kind string) outcome {
		s := find(t, "spfc-12", "static", "spfc")
		s.Fabric = []byte(strings.NewReplacer("scale: 2000", "scale: 5000", "5Mbps", "2Mbps").Replace(string(s.Fabric)))
		for i := range s.Variants {
			s.Variants[i].Config = strings.Replace(s.Variants[i].Config, "size: 2.5MB,", "size: 2.5MB, headroom: 80KB,", 1)
		}
		more := extra{network: []string{"--pcap"}, host: map[string][]string{}, reaction: reaction{"r1", "h0", (2 * units.Mbps).TxTime(40 * units.KB).Duration()}}
		for _, f := range s.Flows() {
			if f.Rounds > 0 {
				f.Size, f.Rounds = f.Size*units.Bytes(f.Rounds), 1
				for _, host := range f.From {
					more.host[host] = []string{"--law", "none"}
				}
			}
		}
		return judged(play(t, s, kind, more))
	})
}

// slower returns a fabric file of mininet/ at half of its rates. With more flows, or for longer, BMv2 needs more than
// two processors at the file's own.
func slower(t *testing.T, name string) []byte {
	t.Helper()
	return []byte(strings.NewReplacer("rate: 20Mbps", "rate: 10Mbps", "rate: 5Mbps", "rate: 2500kbps", "rate: 2Mbps", "rate: 1Mbps",
		"scale: 50000", "scale: 100000", "scale: 5000", "scale: 10000").Replace(string(fabric(t, name))))
}

// prompt requires a switch to react within half of the time in which a headroom fills at a link's rate.
func prompt(rate units.Rate, headroom units.Bytes) reaction {
	return reaction{"h7", "h1", rate.TxTime(headroom / 2).Duration()}
}
