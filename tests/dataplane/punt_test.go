package dataplane

import (
	"bytes"
	"testing"

	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/tables/buffer"
	"github.com/headgate/headgate/tests/dataplane/control"
	"github.com/headgate/headgate/tests/race"
	"github.com/headgate/headgate/units"
)

// lldpFrame is as long as Ethernet's shortest frame.
func lldpFrame() []byte {
	b := append(bytes.Repeat([]byte{1}, 12), 0x88, 0xcc)
	return append(b, make([]byte, 46)...)
}

// testPuntLimit floods the controller from one port: the controller gets a burst from it, and all frames of other
// ports.
func testPuntLimit(r *rig) {
	const minute, burst, reason = 60_000_000, 5, 2
	r.write(control.PuntEtherType(0x88cc, reason), puntLimit(minute, (burst-1)*minute))
	for range 20 {
		r.send(5, lldpFrame())
	}
	r.send(6, lldpFrame())
	got := map[uint32]int{}
	for range burst + 1 {
		got[r.packetIn().Port]++
	}
	r.fence()
	if n := r.drops(ids.DropPuntLimit); n != 20-burst || got[5] != burst || got[6] != 1 {
		r.Errorf("%d frames of port 5 and %d of port 6 came, %d were dropped; want %d, 1 and %d", got[5], got[6], n, burst, 20-burst)
	}
	// The controller's own packets through the pipeline are not limited.
	for range burst + 1 {
		r.packetOut(control.PacketOut{Mode: ids.PacketOutPipeline, Payload: lldpFrame()})
		r.packetIn()
	}
	r.write(puntLimit(0, 0))
	for range burst {
		r.send(5, lldpFrame())
		r.packetIn()
	}
	r.noDropsBut(ids.DropPuntLimit)
}

// TestPuntLimitRate sends at various rates for ten seconds of virtual time.
func TestPuntLimitRate(t *testing.T) {
	race.SkipSequential(t)
	program := loadProgram(t)
	for _, tt := range []struct {
		every     units.Time
		want      int // of the arrivals, with 100 a second and a burst of 10
		tolerance uint64
	}{
		{20 * units.Millisecond, 500, 90_000},
		{10 * units.Millisecond, 1000, 90_000},
		{5 * units.Millisecond, 1009, 90_000},
		{10 * units.Microsecond, 1009, 90_000},
		{10 * units.Microsecond, 1000, 0},
	} {
		m := newMachine(t, program)
		_, err := m.in.AddEntry(ids.TablePuntTableName, []engine.Match{{Value: []byte{0x88, 0xcc}, Mask: []byte{0xff, 0xff}}, {Value: make([]byte, 4), Mask: make([]byte, 4)}}, 1,
			engine.Target{Call: m.call(buffer.Action{Name: ids.ActionPuntToCPUName, Params: []uint64{2}})}, 0)
		must(t, err)
		must(t, m.in.SetDefault(ids.TablePuntLimitName, &engine.Target{Call: m.call(buffer.Action{Name: ids.ActionSetPuntLimitName, Params: []uint64{10_000, tt.tolerance}})}))
		frame := lldpFrame()
		for end := m.now + 10*units.Second; m.now < end; m.now += tt.every {
			m.in.Ingress(m.in.Receive(3, frame, m.now), m.now, m)
		}
		if got := len(m.reports); got != tt.want {
			t.Errorf("a frame each %v: %d came to the controller in 10 s, want %d", tt.every, got, tt.want)
		}
	}
}
