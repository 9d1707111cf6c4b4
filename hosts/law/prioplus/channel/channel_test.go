package channel_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/units"
)

const (
	us = units.Microsecond
	ns = units.Nanosecond
)

// §4.3.2 with the paper's A = 3.2 µs and B = 0.8 µs: D_target = 4·i µs, D_limit 2.4 µs on.
func TestPaperChannels(t *testing.T) {
	p := channel.Paper(12 * us)
	for i, want := range map[int]units.Time{1: 4 * us, 2: 8 * us, 5: 20 * us, 8: 32 * us} {
		c, err := p.Channel(i)
		if err != nil {
			t.Fatal(err)
		}
		if c.Target != 12*us+want || c.Limit != c.Target+2400*ns {
			t.Errorf("channel %d: %+v, want target %v and limit 2.4 µs on", i, c, 12*us+want)
		}
	}
	// Figure 10b: priority 8 of the paper holds 32 µs and stops at 34.4 µs.
	c, _ := channel.Paper(0).Channel(8)
	if c.Target != 32*us || c.Limit != 34400*ns {
		t.Errorf("priority 8: %+v", c)
	}
	if got := p.Priorities(12*us + 34400*ns); got != 8 {
		t.Errorf("%d priorities fit below the limit of the eighth", got)
	}
	if got := p.Priorities(12*us + 34399*ns); got != 7 {
		t.Errorf("%d priorities fit just below the limit of the eighth", got)
	}
	if got := p.Priorities(us); got != 0 {
		t.Errorf("%d priorities fit below the base", got)
	}
}

// §4.1: D_limit of a priority is below D_target of the next, by half of A.
func TestChannelsDoNotOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := channel.Plan{
			Base:        units.Time(rapid.Int64Range(0, int64(units.Millisecond)).Draw(t, "base")),
			Fluctuation: units.Time(rapid.Int64Range(2, int64(units.Millisecond)).Draw(t, "A")),
			Noise:       units.Time(rapid.Int64Range(0, int64(units.Millisecond)).Draw(t, "B")),
		}
		i := rapid.IntRange(1, channel.MaxPriority-1).Draw(t, "priority")
		low, err := p.Channel(i)
		if err != nil {
			t.Fatal(err)
		}
		high, err := p.Channel(i + 1)
		if err != nil {
			t.Fatal(err)
		}
		if low.Target <= p.Base || low.Limit <= low.Target || high.Target <= low.Limit {
			t.Fatalf("channels %d %+v and %d %+v", i, low, i+1, high)
		}
		if gap := high.Target - low.Limit; gap < p.Fluctuation/2 || gap > p.Fluctuation/2+1 {
			t.Fatalf("gap %v, want half of %v", gap, p.Fluctuation)
		}
		if got := p.Priorities(low.Limit); got != i {
			t.Fatalf("%d priorities fit below the limit of %d", got, i)
		}
	})
}

// The paper: 150 Swift flows at 100 Gb/s and 12 µs need 3.2 µs.
func TestFluctuation(t *testing.T) {
	s := channel.Swift{Flows: 150, Increase: 150, Rate: 100 * units.Gbps, Target: 28 * us, Beta: 0.8, MaxMDF: 0.5}
	a, err := s.Fluctuation()
	if err != nil {
		t.Fatal(err)
	}
	if want := 3240 * ns; a != want { // 1.8 µs up and 0.8 · 1.8 µs down
		t.Errorf("150 flows swing by %v, want %v", a, want)
	}
	s.Flows = 10000 // 120 µs up, the decrease bounded by max_mdf: 14 µs
	if a, err = s.Fluctuation(); err != nil || a != 134*us {
		t.Errorf("10000 flows swing by %v, %v", a, err)
	}
}

func TestErrors(t *testing.T) {
	plan := channel.Paper(12 * us)
	for name, bad := range map[string]func(*channel.Plan){
		"base delay":  func(p *channel.Plan) { p.Base = -1 },
		"fluctuation": func(p *channel.Plan) { p.Fluctuation = 0 },
		"noise":       func(p *channel.Plan) { p.Noise = -1 },
		"base":        func(p *channel.Plan) { p.Base = 2 * units.Second },
	} {
		p := plan
		bad(&p)
		if _, err := p.Channel(1); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
		if p.Priorities(units.Second) != 0 {
			t.Errorf("%s: priorities fit", name)
		}
	}
	for _, i := range []int{-1, 0, channel.MaxPriority + 1} {
		if _, err := plan.Channel(i); err == nil {
			t.Errorf("priority %d was taken", i)
		}
	}
	ok := channel.Swift{Flows: 1, Increase: 1, Rate: 1000, Target: 1, Beta: 0.8, MaxMDF: 0.5}
	for name, bad := range map[string]func(*channel.Swift){
		"flows":    func(s *channel.Swift) { s.Flows = math.NaN() },
		"increase": func(s *channel.Swift) { s.Increase = 0 },
		"rate":     func(s *channel.Swift) { s.Rate = 0 },
		"target":   func(s *channel.Swift) { s.Target = 0 },
		"beta":     func(s *channel.Swift) { s.Beta = 0 },
		"max MDF":  func(s *channel.Swift) { s.MaxMDF = 1 },
	} {
		s := ok
		bad(&s)
		if _, err := s.Fluctuation(); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	ok.Flows = 1e9
	if _, err := ok.Fluctuation(); err == nil {
		t.Error("a swing of years was taken")
	}
}
