package controller

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/tests/lag"
	"github.com/headgate/headgate/tests/race"
)

// stranger is the n-th frame to h2, with an invented source.
func stranger(n uint32) []byte {
	f := append([]byte{0x02, 0, 0, 0, 0, 0xfe, 0x06, 0, 10, 0, 0, 1, 0x08, 0}, // Ethernet
		0x45, 0, 0, 54, 0, 0, 0, 0, 64, 17, 0, 0, 20, 0, 0, 0, 10, 0, 0, 2, // IPv4
		0, 1, 0, 2, 0, 34, 0, 0) // UDP
	ip := f[14:34]
	binary.BigEndian.PutUint32(ip[12:], 20<<24+n)
	sum := uint32(0)
	for i := 0; i < len(ip); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum))
	return append(f, make([]byte, 26)...)
}

// TestStrangersLeaveLinksUp: a host sends frames with invented sources, and PACC at the controller learns each as a
// flow. Links stay up, the controller answers calls, and it keeps no more than the tables hold.
func TestStrangersLeaveLinksUp(t *testing.T) {
	race.SkipRealTime(t)
	worst := lag.Watch()
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	e := newEmbedded(t)
	f := &fabric{t: t}
	o := options()
	o.Heartbeat = 0
	f.c, f.stop = f.controller(o)
	defer f.stop()
	sub := f.c.Events().Subscribe(events.Options[*pb.Event]{})
	defer sub.Close()
	f.yaml = e.yaml(`scale: 200
qos: {queue_limit: 1MB, classes: [{dscp: 0, class: 0, queue: 0}, {dscp: 48, class: 6, queue: 6}]}
pacc: {enabled: true, ageing: 5s}
source_check: {edge_ports: false}
controller: {poll_interval: 100ms, probe_interval: 100ms, probe_timeout: 1s}
`)
	for _, r := range f.apply() {
		if r.Error != "" {
			t.Fatalf("result = %+v", r)
		}
	}
	eventually(t, "links up", func() bool {
		ports := f.state("s1").Ports
		return ports[0].State == pb.PortStatus_STATE_UP && ports[1].State == pb.PortStatus_STATE_UP
	})
	// In three seconds, sources for a switch's whole flow table, and some seconds in which only they are handled.
	const frames, batch = 16384, 64
	var slowest time.Duration
	for n := uint32(0); n < frames; n += batch {
		e.loop.Post(func() {
			for i := range uint32(batch) {
				e.hosts[0].Receive(stranger(n+i), e.loop.Now())
			}
		})
		began := time.Now()
		f.state("s1")
		slowest = max(slowest, time.Since(began))
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(2 * time.Second)
	if slowest > time.Second {
		fault("the controller answered after %v, want a second at most", slowest)
	}
	learned := f.c.status("s1").GetPacc().GetLoop()
	if learned.GetLearned() == 0 || learned.GetFlows() > 16384 {
		fault("PACC at s1: %+v", learned)
	}
	list, _ := sub.Take() // the hosts' ports have no cable and are down
	for _, x := range list {
		if x.Kind == "link.down" && !strings.Contains(x.Subject, "-h") || x.Kind == "session.degraded" || x.Kind == "session.disconnected" {
			fault("event %s of %s: %s", x.Kind, x.Subject, x.Message)
		}
	}
	if ports := f.state("s1").Ports; ports[0].State != pb.PortStatus_STATE_UP || ports[1].State != pb.PortStatus_STATE_UP {
		fault("ports of s1: %+v", ports)
	}
	switch late := worst(); {
	case len(faults) > 0 && late > 250*time.Millisecond: // a probe waits for a second
		t.Skipf("invalid: the machine was late by %v, and then %q", late, faults)
	case len(faults) > 0:
		t.Errorf("%q", faults)
	}
}
