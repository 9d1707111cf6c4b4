package dataplane

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/tests/lag"
	"github.com/headgate/headgate/units"
)

// testSPFCPeriod lets SPFC's Timeout Clock run: a port is a victim if C·TC/K of its bytes depart within a period,
// and no longer one after a period without. testBufferTrace and TestBufferDecisions compare the effect of the
// states on packets with headroom.MMU.
func testSPFCPeriod(r *rig) {
	const period = time.Second
	b := newBufferRig(r)
	c := bufferConfig(headroom.SPFC)
	c.MMU.SPFC.Period, c.MMU.SPFC.K = units.FromDuration(period), 5
	for i := range c.MMU.Ports {
		c.MMU.Ports[i].Rate = 80 * units.Kbps // IRC is 2000 B
	}
	b.run(c)
	pass := func(n int) {
		b.Helper()
		for range n {
			b.send(3, bufferFrame(r, 3, slowPort, 5))
		}
		b.receive(slowPort, n)
	}
	if invalid := lag.Repeat(b, 10, func() string {
		begun := b.rig.now()
		pass(8)
		victim := b.poll(3).Buffer.Victim
		took := b.rig.now() - begun
		switch {
		case victim:
			return ""
		case took < period:
			b.Fatalf("8 packets departed within %v, and port 3 is not a victim's", took)
		}
		return fmt.Sprintf("8 packets took %v, more than the period of %v", took, period)
	}); invalid != "" {
		b.Fatal(invalid)
	}
	if b.poll(4).Buffer.Victim {
		b.Error("port 4 is a victim's, and nothing departed")
	}
	b.sleep(2*period + period/10)
	if b.poll(3).Buffer.Victim {
		b.Error("a period has passed without a departure, and port 3 is a victim's")
	}
	pass(1)
	if b.poll(3).Buffer.Victim {
		b.Error("one packet departed, and port 3 is a victim's")
	}
}
