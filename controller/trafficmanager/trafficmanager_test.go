package trafficmanager

import (
	"testing"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

func spfc(victims ...uint32) *Config {
	return &Config{
		Ports: []Port{{Number: 1}, {Number: 3}}, MMU: &headroom.Config{Policy: headroom.SPFC}, Victims: victims,
		Filters: map[string]units.Time{"f": units.Microsecond},
	}
}

func TestEqual(t *testing.T) {
	queues := spfc(3)
	queues.Queues = 4
	for name, c := range map[string]struct {
		a, b           *Config
		equal, victims bool
	}{
		"none":         {nil, nil, true, true},
		"one":          {nil, spfc(), false, false},
		"the same":     {spfc(3), spfc(3), true, true},
		"victims":      {spfc(), spfc(3), false, true},
		"queues":       {spfc(3), queues, false, false},
		"the policy":   {spfc(), &Config{Ports: spfc().Ports}, false, false},
		"both of them": {spfc(), queues, false, false},
	} {
		if c.a.Equal(c.b) != c.equal || c.b.Equal(c.a) != c.equal {
			t.Errorf("%s: Equal is %v", name, c.a.Equal(c.b))
		}
		if c.a.OnlyVictims(c.b) != c.victims || c.b.OnlyVictims(c.a) != c.victims {
			t.Errorf("%s: OnlyVictims is %v", name, c.a.OnlyVictims(c.b))
		}
	}
}

func TestWithVictims(t *testing.T) {
	plain := spfc()
	got, err := plain.WithVictims([]uint32{3})
	if err != nil || !got.Equal(spfc(3)) || !plain.Equal(spfc()) {
		t.Errorf("%+v, %v; it was %+v", got, err, plain)
	}
	if back, err := got.WithVictims(nil); err != nil || !back.OnlyVictims(plain) || len(back.Victims) > 0 {
		t.Errorf("back: %+v, %v", back, err)
	}
	if _, err := plain.WithVictims([]uint32{2}); err == nil {
		t.Error("a victim that is no port")
	}
	dsh := spfc()
	dsh.MMU = &headroom.Config{Policy: headroom.DSH}
	if _, err := dsh.WithVictims([]uint32{3}); err == nil {
		t.Error("a victim under DSH")
	}
}
