package sim

import (
	"testing"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// TestPFCFramesJoin: changes during a packet's transmission share the single PFC frame that follows it, with the
// last state of each class.
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

// TestStopped: a port counts as stopped while at least one of its classes is, also with one class after another.
func TestStopped(t *testing.T) {
	g := must[*topo.Graph](t)(topo.Star(2, line100))
	s := must[*Sim](t)(New(Config{Graph: g, NewBuffer: static(60*units.KB, 58*units.KB, 200*units.KB)}))
	out := must[int](t)(s.PortOf(2, 0)) // the switch's port to host 0
	peer := int(s.ports[out].peer)
	const pause = 512 * units.Nanosecond // 100 quanta at 100 Gb/s
	for i, classes := range []uint8{0b1, 0b10, 0b1100} {
		s.At(units.Time(i)*units.Microsecond, func(s *Sim) error {
			s.at(2).sendPFC(int32(out), classes, 100)
			return nil
		})
	}
	took := line100.Rate.TxTime(64) + line100.Delay + line100.Rate.TxTime(3840) // from sending to taking effect
	for _, step := range []struct{ at, stopped units.Time }{{took + pause/2, pause / 2}, {took + units.Microsecond + pause/4, pause + pause/4}, {took + 10*units.Microsecond, 3 * pause}} {
		if err := s.Run(step.at); err != nil {
			t.Fatal(err)
		}
		if got := s.Port(peer).Stopped; got != step.stopped {
			t.Errorf("stopped for %v until %v, want %v", got, step.at, step.stopped)
		}
	}
	if st := s.Port(peer); st.Paused[0] != pause || st.Paused[3] != pause {
		t.Errorf("classes were stopped for %v, want %v each of the first four", st.Paused, pause)
	}
}

// TestIgnoredPauses: a port that ignores PAUSEs of a class continues to send, and its peer drops packets. Other classes
// are stopped as usual.
func TestIgnoredPauses(t *testing.T) {
	for ignored, drops := range map[uint8]bool{0: false, 0xFE: false, 1: true} {
		g := must[*topo.Graph](t)(topo.LeafSpine(2, 2, 4, line100, line100))
		s := must[*Sim](t)(New(Config{
			Graph: g, PortOf: func(int, uint32) PortConfig { return PortConfig{Ignores: ignored} },
			NewBuffer: func(i SwitchInfo) (Buffer, error) {
				c := headroom.Config{Policy: headroom.SIH, Buffer: 2000 * units.KB, Lossless: 0x7F, Headroom: 35 * units.KB, Alpha: -4}
				for p := range i.Rates {
					c.Ports = append(c.Ports, headroom.Port{Rate: i.Rates[p], Delay: i.Delay[p]})
				}
				return headroom.New(c)
			},
		}))
		var flows []FlowSpec
		for n := range 32 {
			flows = append(flows, FlowSpec{Src: n % 4, Dst: 4, Size: 400 * units.KB, Law: lineRate{}})
		}
		if err := s.AddFlows(flows); err != nil {
			t.Fatal(err)
		}
		if err := s.Run(units.Millisecond); err != nil {
			t.Fatal(err)
		}
		if st := s.Stats(); st.PausesSent == 0 || st.Drops[0] > 0 != drops {
			t.Errorf("ignoring %08b: %d PAUSE frames and %d drops, want drops: %v", ignored, st.PausesSent, st.Drops[0], drops)
		}
	}
}
