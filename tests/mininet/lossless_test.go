package mininet

import (
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
		return judged(play(t, s, kind, extra{network: []string{"--pcap"}, reaction: prompt(240 * units.KB)}))
	})
}

// TestSPFC lets a burst last (SPFC, Figures 4 and 5) with five senders, more than K - 1 as its Equation 8
// requires. α gives each of the six ingress ports the threshold that each of 25 has in `headgate run`. There is
// no congestion control: DCQCN would relieve five senders before PFC acts, and the victim would then get the
// second flow's part of h1's link.
func TestSPFC(t *testing.T) {
	each(t, "SPFC", func(t *testing.T, kind string) outcome {
		s := find(t, "spfc", "dt", "spfc")
		for i := range s.Variants {
			c := strings.Replace(s.Variants[i].Config, "alpha: 1/8", "alpha: 1/32", 1)
			s.Variants[i].Config = strings.Replace(c, "size: 16MB,", "size: 12MB, headroom: 200KB,", 1)
			s.Variants[i].CNPGap = 0
		}
		s.Law = emulation.LineRate
		incast(&s, fabric(t, "single.yaml"), 2400*units.KB, 300*units.Microsecond, 500*units.Microsecond)
		return judged(play(t, s, kind, extra{network: []string{"--pcap"}, reaction: prompt(200 * units.KB)}))
	})
}

// prompt requires a switch to react within half of the time in which a headroom fills at 2 Mb/s.
func prompt(headroom units.Bytes) reaction {
	return reaction{"h7", "h1", (2 * units.Mbps).TxTime(headroom / 2).Duration()}
}
