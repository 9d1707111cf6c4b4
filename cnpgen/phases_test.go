package cnpgen

import (
	"testing"

	"github.com/headgate/headgate/units"
)

func TestPhases(t *testing.T) {
	for _, tt := range []struct {
		interval    units.Time
		ports, most int
		want        int
	}{
		{64 * units.Millisecond, 5, 16, 5}, {64 * units.Millisecond, 32, 16, 12}, {160 * units.Millisecond, 32, 4, 4},
		{80 * units.Microsecond, 32, 16, 1}, {9 * units.Millisecond, 2, 16, 1}, {10 * units.Millisecond, 2, 16, 2}, {units.Second, 1, 16, 1},
	} {
		if got := Phases(tt.interval, tt.ports, tt.most); got != tt.want {
			t.Errorf("Phases(%v, %d, %d) = %d, want %d", tt.interval, tt.ports, tt.most, got, tt.want)
		}
	}
}

// Each port ticks once per interval, at its own time. It is charged with its flows' bytes since its
// own last tick, even if its poll is answered after the reading of another group.
func TestLoopPhases(t *testing.T) {
	const ports = 4
	f := newFake(t, 100)
	p := paperParams(25 * units.Gbps)
	c := LoopConfig{MaxFlows: 100, Phases: 9}
	for n := uint32(1); n <= ports; n++ {
		c.Ports = append(c.Ports, PortConfig{n, p})
	}
	var err error
	if f.loop, err = NewLoop(c, f); err != nil {
		t.Fatal(err)
	}
	// A flow of each port sends 1 byte per quarter of a period.
	const quarter = period / ports
	step := func() {
		f.run(t, f.now+quarter)
		for n := uint32(1); n <= ports; n++ {
			f.send(map[Flow]sender{flow(n, byte(n)): {1, 1}})
		}
	}
	for range 3 * ports {
		step()
	}
	seen := map[units.Time]bool{}
	for n, at := range f.asked {
		seen[at] = true
		if got := f.loop.table.flows[flow(n, byte(n))].charged(); got != (count{ports, ports}) {
			t.Errorf("port %d is charged with %+v, want what a period has", n, got)
		}
	}
	if len(seen) != ports || !seen[2*period] || !seen[2*period+3*quarter] {
		t.Errorf("the ports are polled at %v, want a quarter of a period between them", f.asked)
	}
	for _, s := range f.loop.Ports() {
		if s.Ticks != 3 {
			t.Errorf("port %d ticked %d times in three periods", s.Port, s.Ticks)
		}
	}
	if s := f.loop.Stats(); s.Ticks != 3 || s.Late != 0 || s.Unanswered != 0 {
		t.Errorf("stats %+v", s)
	}
	// The first group's answers are late.
	f.silent = true
	step()
	asked := f.asked[1]
	f.silent = false
	step()
	f.loop.Polled(f.now, asked, 1, 1000)
	if got := f.loop.table.flows[flow(1, 1)]; got.charged() != (count{ports, ports}) || got.now.bytes != got.base.bytes+1 {
		t.Errorf("with a late answer port 1 is charged with %+v, base %+v, now %+v", got.charged(), got.base, got.now)
	}
}
