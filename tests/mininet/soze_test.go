package mininet

import (
	"os"
	"testing"

	"github.com/headgate/headgate/emulation"
	"github.com/headgate/headgate/units"
)

// fabric returns a fabric file of mininet/.
func fabric(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(repository + "/mininet/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestSoze shares a line of switches by weight: 1:2:4 on the first hop, a change, and a flow on the
// second hop that becomes the first flow's bottleneck (Söze, Figure 17).
func TestSoze(t *testing.T) {
	start := func(name, from, to string, port uint16, weight float64) emulation.Action {
		return emulation.Action{Start: &emulation.Flow{Name: name, From: []string{from}, To: to, SrcPort: port, Weight: weight}}
	}
	versions(t, "Söze", func(t *testing.T, kind string, version int) outcome {
		const phase = 1200 * units.Microsecond // 12 s here
		s := emulation.Shares("soze", "Söze: weighted max-min shares on two hops",
			emulation.Phase{Name: "1:2:4", For: phase, Actions: []emulation.Action{
				start("A", "h1", "h7", 20001, 1), start("B", "h2", "h5", 20002, 2), start("C", "h3", "h6", 20003, 4),
			}},
			emulation.Phase{Name: "4:2:4", For: phase, Actions: []emulation.Action{{Weight: &emulation.Weight{Flow: "A", Value: 4}}}},
			emulation.Phase{Name: "a second hop", For: phase, Actions: []emulation.Action{start("D", "h4", "h8", 20004, 12)}},
		)
		s.Fabric = fabric(t, "line.yaml")
		s.Sample, s.Over = 10*units.Microsecond, 100*units.Microsecond
		return judged(play(t, s, kind, extra{version: version}))
	})
}
