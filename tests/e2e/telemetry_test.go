package e2e

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/conduct"
	"github.com/headgate/headgate/controller/feature/soze"
	"github.com/headgate/headgate/emulation/network"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// TestForgedTelemetry: h4 echoes to h3 that no packet waited, in frames that an embedded switch forwards. The
// controller polls the switch's queue and has h3's reports. It reports h3's flow, and not h1's, whose echoes are true.
func TestForgedTelemetry(t *testing.T) {
	cfg := pair(t, "")
	var forged atomic.Int64
	var f packet.Frame // owned by the loop
	from, to := cfg.Host("h4").IPv4, cfg.Host("h3").IPv4
	l := playFlows(t, cfg, []string{"h1", "h3"}, map[string]string{"h1": "h4", "h3": "h4"}, func(_ int, frame []byte, _ units.Time) {
		f.ShimPort = soze.FromConfig(cfg).UDPPort
		if f.Decode(frame) != nil || f.Src != from || f.Dst != to || !f.Shim.Echo || f.Shim.MaxQD == 0 {
			return
		}
		f.Shim.MaxQD = 0
		copy(frame, f.Append(nil))
		forged.Add(1)
	})
	ctx, cancel := context.WithTimeout(l.ctx, network.ReadyWithin)
	defer cancel()
	events, err := l.control.Admin.WatchEvents(ctx, &pb.WatchEventsRequest{Recent: 100})
	if err != nil {
		t.Fatal(err)
	}
	for {
		e, err := events.Recv()
		if err != nil {
			t.Fatalf("no event %s after %d forged echoes: %v", conduct.Telemetry, forged.Load(), err)
		}
		if e.GetKind() != conduct.Telemetry {
			continue
		}
		t.Logf("%s: %s", e.GetSubject(), e.GetMessage())
		if e.GetSubject() != "h3" || !strings.Contains(e.GetMessage(), "reports a maxQD of 0s") || forged.Load() == 0 {
			t.Errorf("event of %s after %d forged echoes: %s", e.GetSubject(), forged.Load(), e.GetMessage())
		}
		return
	}
}
