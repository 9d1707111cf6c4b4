package softswitch

import (
	"context"
	"testing"
	"time"

	"github.com/headgate/headgate/softswitch/port"
	"github.com/headgate/headgate/units"
)

// wire is a port's driver that records the first byte of each frame sent, its kind in
// testdata/loops.json.
type wire struct {
	fakePort
	kinds []byte
}

func (w *wire) Send(frame []byte) { w.kinds = append(w.kinds, frame[0]) }
func (w *wire) Flush() error      { return nil }

// TestSignalsLeaveInTheOrderOfTheirCauses: ingress of a frame writes 1 to a register and clones a
// PAUSE to port 1; its egress writes 0 and clones a RESUME. The last signal sent must agree with
// the register, however the batch enters the switch and whatever is due at that moment.
func TestSignalsLeaveInTheOrderOfTheirCauses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		locked bool // the switch is locked when the batch arrives, so the batch is queued
	}{{"direct", false}, {"handed over", true}} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := NewRealtime(config("a"))
			if err != nil {
				t.Fatal(err)
			}
			signals, slow := &wire{}, &wire{}
			for _, p := range []struct {
				number uint32
				rate   units.Rate
				driver port.Port
			}{{1, 0, signals}, {2, 80, slow}} { // a frame lasts 6 s on port 2
				if err := s.AddPort(port.Named{Number: p.number, Name: "fake"}, p.rate, p.driver); err != nil {
					t.Fatal(err)
				}
			}
			program := loops(t)
			sessions(t, program.Instance)
			s.dataplane.install(program.Instance)
			arrive := func(frames int) {
				b := port.NewBatch(96, 64<<10)
				for range frames {
					b.Add(1, kindFrame(kindSignal))
				}
				s.deliver(context.Background(), b, false)
			}
			arrive(2) // the first one leaves at once, the second one waits for it
			s.r.start = s.r.start.Add(-9 * time.Second)
			if tt.locked {
				s.mu.Lock()
			}
			arrive(1) // while the second one is due
			if tt.locked {
				s.mu.Unlock()
			}
			s.runReady()
			paused, err := program.Instance.ReadRegister("paused", 0)
			if err != nil {
				t.Fatal(err)
			}
			want := map[byte]byte{0: 0x12, 1: 0x11}[paused[0]]
			if n := len(signals.kinds); n != 5 || signals.kinds[n-1] != want {
				t.Errorf("signals %#x with the register at %d, want 5 of them, %#x last", signals.kinds, paused[0], want)
			}
			if len(slow.kinds) != 2 {
				t.Errorf("%d frames left, want 2: the third one waits", len(slow.kinds))
			}
		})
	}
}
