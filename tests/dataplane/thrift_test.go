package dataplane

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tests/dataplane/bmv2"
	"github.com/headgate/headgate/tests/dataplane/control"
	"github.com/headgate/headgate/tests/dataplane/target"
)

// thriftFabric is one BMv2 whose port 3 is twice as fast as port 2. Its queues are longer than the 64 packets of
// BMv2's default.
const thriftFabric = `
name: thrift
switches:
  - {name: s1, device_id: 1, address: "127.0.0.1:9", target: bmv2, thrift: %q, packet_size: 1000B}
hosts: [{name: h1, ipv4: 10.0.1.1}, {name: h2, ipv4: 10.0.2.1}, {name: h3, ipv4: 10.0.3.1}]
links:
  - {a: "s1:1", b: h1, rate: 8Mbps}
  - {a: "s1:2", b: h2, rate: 2Mbps}
  - {a: "s1:3", b: h3, rate: 4Mbps}
qos: {queue_limit: 100KB}
controller: {election_id: 2, poll_interval: "off", probe_interval: "off"}
`

// TestThriftQueuesBMv2: queues build up inside a BMv2 whose rates and depths the controller has set. The program
// drops and counts packets beyond the limits; BMv2 itself drops nothing.
func TestThriftQueuesBMv2(t *testing.T) {
	const (
		frameBytes = 1000
		queue      = 100 // packets
		burst      = 400
		slowRate   = 250 // packets/s of port 2
	)
	bmv2.Need(t)
	s := bmv2.Start(t)
	t.Cleanup(func() { must(t, s.Close()) })
	conn, err := s.Dial()
	must(t, err)
	ctl, err := control.New(conn, target.DeviceID) // primary until the controller takes over
	must(t, err)
	defer ctl.Close()
	startController(t, s, fmt.Sprintf(thriftFabric, s.Thrift()))
	frames := map[uint32][]byte{}
	for _, to := range []uint32{2, 3} {
		f := newFrame(1, to)
		f.payload = make([]byte, frameBytes-14-20-8)
		frames[to] = f.bytes(t)
	}
	var last [4]time.Time
	start := time.Now()
	for range burst {
		must(t, s.Send(1, frames[2], frames[3]))
	}
	var got [4]int
	ratio := 0.0
	for {
		f, ok := s.Receive(target.Any, time.Second)
		if !ok {
			break
		}
		got[f.Port]++
		last[f.Port] = time.Now()
		if f.Port == 3 && got[3] == 100 {
			ratio = float64(got[3]) / float64(got[2])
		}
	}
	for port, n := range got {
		if port < 2 {
			if n > 0 {
				t.Errorf("port %d sent %d packets", port, n)
			}
			continue
		}
		rate, elapsed := slowRate*(port-1), last[port].Sub(start)
		t.Logf("port %d: %d of %d packets in %v, %.1f packets/s, set to %d", port, n, burst, elapsed, float64(n-1)/elapsed.Seconds(), rate)
		if n < queue || n == burst {
			t.Errorf("port %d sent %d packets, want the %d that its queue holds and those that left meanwhile", port, n, queue)
		}
		// It can be late but never early: the first packet leaves at once.
		if least := time.Duration(n-1) * time.Second / time.Duration(rate); elapsed < least {
			t.Errorf("port %d took %v for %d packets, want %v or more", port, elapsed, n, least)
		}
	}
	t.Logf("after 100 packets of port 3 it has sent %.2f times port 2's", ratio)
	if ratio < 1.8 || ratio > 2.2 {
		t.Errorf("port 3 has sent %.2f times what port 2 has, want 2", ratio)
	}
	dropped, _, err := ctl.Counter(ids.CounterDrops, ids.DropAdmission)
	if want := int64(2*burst - got[2] - got[3]); err != nil || dropped != want {
		t.Errorf("the program counts %d drops (%v), want all %d that did not come", dropped, err, want)
	}
}
