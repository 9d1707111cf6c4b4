package sim

import (
	"testing"

	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// TestPFCFramesJoin lets changes that come while a packet is on the wire share the one frame
// that follows it, with the last word for each class.
func TestPFCFramesJoin(t *testing.T) {
	g := must[*topo.Graph](t)(topo.Star(2, line100))
	s := must[*Sim](t)(New(Config{Graph: g, NewBuffer: static(60*units.KB, 58*units.KB, 200*units.KB)}))
	if err := s.AddFlows([]FlowSpec{{Src: 1, Dst: 0, Size: 1000, Law: lineRate{}}}); err != nil {
		t.Fatal(err)
	}
	out := must[int](t)(s.PortOf(2, 0)) // the switch's port to host 0
	peer := s.ports[out].peer
	busy := line100.Delay + line100.Rate.TxTime(1054) + 50*units.Nanosecond
	live := 0
	s.At(busy, func(s *Sim) error {
		// Host 1's packet has just begun to leave by out.
		p := s.at(2)
		live = p.live
		p.sendPFC(int32(out), 0b0000_0011, 1000)
		p.sendPFC(int32(out), 0b0000_0100, 1000)
		p.sendPFC(int32(out), 0b0000_0010, 0)
		live = p.live - live
		return s.Check()
	})
	effect := busy + line100.Rate.TxTime(1054) + line100.Delay + line100.Rate.TxTime(64) + line100.Rate.TxTime(3840)
	if err := s.Run(effect); err != nil {
		t.Fatal(err)
	}
	if got := s.ports[peer].paused; live != 1 || got != 0b101 {
		t.Errorf("%d frames for three changes, which pause classes %08b; want 1 and %08b", live, got, 0b101)
	}
	// A later frame may resume and pause at once.
	s.At(s.Now(), func(s *Sim) error {
		p := s.at(2)
		s.ports[out].freeAt = s.now + 1
		p.sendPFC(int32(out), 0b0000_0001, 0)
		p.sendPFC(int32(out), 0b0001_0000, 1000)
		return nil
	})
	if err := s.Run(s.Now() + 2*line100.Delay); err != nil {
		t.Fatal(err)
	}
	if got := s.ports[peer].paused; got != 0b1_0100 {
		t.Errorf("classes %08b are paused, want %08b", got, 0b1_0100)
	}
}
