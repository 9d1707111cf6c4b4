package standalone

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/units"
)

// A queue that stays beyond p + k is reported once; one that comes and goes is not.
func TestCrowdedFlowsAreWarnedOf(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	o := &Options{}
	o.Soze.P, o.Soze.K, o.Soze.Beta = 6*units.Millisecond, 74*units.Millisecond, units.Mbps
	key := func(n byte) agent.FlowKey {
		return agent.FlowKey{Src: netip.AddrFrom4([4]byte{10, 0, 0, n}), Dst: netip.AddrFrom4([4]byte{10, 0, 0, 9}), SrcPort: 1, DstPort: 2}
	}
	m := newMeter(0)
	for i := range 30 {
		m.add(units.Time(i)*units.Second, []agent.FlowReport{
			{Key: key(1), Weight: 2, Crowded: true},
			{Key: key(2), Weight: 1, Crowded: i%10 != 0},
			{Key: key(3), Weight: 1, Crowded: true, Finished: 1},
		}, agent.Stats{})
		m.now[0].Acked = units.Bytes(i) * 125_000 // 1 Mb/s
		m.warn(o, log)
	}
	if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "10.0.0.1:1") ||
		!strings.Contains(got, "p+k=80ms beta=1Mbps rate_per_weight=500Kbps") {
		t.Errorf("log:\n%s", got)
	}
}
