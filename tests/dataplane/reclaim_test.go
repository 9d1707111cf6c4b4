package dataplane

import (
	"testing"
	"time"

	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/tests/dataplane/bmv2"
	"github.com/headgate/headgate/tests/dataplane/target"
)

// reclaimFabric pauses a port with more than 8 KB in the switch.
const reclaimFabric = `
name: reclaim
switches:
  - {name: s1, device_id: 1, address: "127.0.0.1:9", target: bmv2}
hosts:
  - {name: h1, ipv4: 10.0.1.1}
  - {name: h2, ipv4: 10.0.2.1}
links:
  - {a: "s1:1", b: h1, rate: 100Mbps}
  - {a: "s1:2", b: h2, rate: 100Mbps}
qos: {classes: [{dscp: 24, class: 3, queue: 3}]}
buffer: {policy: static, size: 1MB, lossless: [3], headroom: 60KB, threshold: 8KB, resume_gap: 3KB, pause_quanta: 65535, watchdog: {stuck: 500ms}}
controller: {poll_interval: 50ms, probe_interval: "off"}
`

// TestReclaimBMv2: BMv2's own queue is too short and loses most of a burst. Its sender stays paused for the lost
// bytes until the controller reclaims them.
func TestReclaimBMv2(t *testing.T) {
	bmv2.Need(t)
	tg := bmv2.Start(t)
	t.Cleanup(func() {
		if err := tg.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	must(t, tg.Shape(2, target.Shape{PacketsPerSecond: 100, FrameBytes: 1000, Depth: 3}))
	startController(t, tg, reclaimFabric)
	f := newFrame(1, 2)
	f.dscp, f.payload = 24, make([]byte, 1000-14-20-8)
	for range 30 {
		must(t, tg.Send(1, f.bytes(t)))
	}
	left := 0
	for ; ; left++ {
		if _, ok := tg.Receive(2, time.Second); !ok {
			break
		}
	}
	if left > 20 {
		t.Skipf("invalid: %d of 30 packets left, so that too few were lost", left)
	}
	paused := false
	for end := time.Now().Add(patience); ; { // a PAUSE is refreshed for ever
		frame, ok := tg.Receive(1, patience)
		if !ok || time.Now().After(end) {
			t.Fatalf("after %d of 30 packets the sender is not resumed (paused: %v)", left, paused)
		}
		var pfc packet.PFC
		must(t, pfc.Decode(frame.Data))
		if pfc.Enabled>>3&1 != 0 {
			if pfc.Quanta[3] == 0 && paused {
				return
			}
			paused = pfc.Quanta[3] != 0
		}
	}
}
