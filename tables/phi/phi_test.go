package phi

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/units"
)

func configs(t *rapid.T) Config {
	c := Config{
		Phi:     units.Bytes(rapid.Int64Range(1, 1<<24).Draw(t, "phi")),
		Delay:   units.Time(rapid.Int64Range(1, int64(units.Millisecond)).Draw(t, "delay")),
		Unit:    rapid.UintRange(0, MaxUnit).Draw(t, "unit"),
		Tick:    rapid.SampledFrom([]units.Time{0, 1, units.Nanosecond, units.Microsecond}).Draw(t, "tick"),
		Entries: rapid.IntRange(MinEntries, MaxEntries).Draw(t, "entries"),
	}
	for c.full().BitLen() > maxGradientBits {
		c.Unit--
	}
	return c
}

func TestErrorIsWithinItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := configs(t)
		table, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(table.Entries()); n > c.Entries {
			t.Fatalf("%d entries, %d allowed", n, c.Entries)
		}
		g := rapid.Int64Range(-10, 1<<62).Draw(t, "wide") >> rapid.IntRange(0, 61).Draw(t, "shift")
		got, want := table.Lookup(g), Headroom(c, g)
		if got < want || got-want > table.Error() || got > c.Phi {
			t.Fatalf("ĝ = %d: φ̂ = %d B, exactly %d B, bound %d B", g, got, want, table.Error())
		}
	})
}

func TestEntriesGiveTheSameValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := configs(t)
		c.Entries = min(c.Entries, 64)
		table, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		next := int64(1)
		for _, e := range table.Entries() {
			if e.Low != next || e.High < e.Low {
				t.Fatalf("entry %+v, want one from %d", e, next)
			}
			if table.Lookup(e.Low) != e.Phi || table.Lookup(e.High) != e.Phi {
				t.Fatalf("entry %+v, looked up %d and %d", e, table.Lookup(e.Low), table.Lookup(e.High))
			}
			next = e.High + 1
		}
		if next != math.MinInt64 {
			t.Fatalf("the last entry ends at %d", next-1)
		}
	})
}

func TestEvaluationParameters(t *testing.T) {
	// Φ = 60 000 B at 100 Gb/s takes 4.8 µs; a queue that grows at line rate needs it all.
	c := Config{Phi: 60_000, Delay: 4800 * units.Nanosecond, Unit: 22, Entries: DefaultEntries}
	table, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	line := int64((100 * units.Gbps).BytesIn(1 << 22))
	if got := table.Lookup(line); got != c.Phi {
		t.Errorf("at line rate φ̂ = %d B", got)
	}
	if got, want := table.Lookup(line/2), c.Phi/2; got < want || got-want > table.Error() {
		t.Errorf("at half the line rate φ̂ = %d B, want %d to %d", got, want, want+table.Error())
	}
	if table.Error() > c.Phi/32 {
		t.Errorf("error %d B, the default's comment says Φ/32", table.Error())
	}
	for _, g := range []int64{0, -1, math.MinInt64} {
		if got := table.Lookup(g); got != 0 {
			t.Errorf("ĝ = %d: φ̂ = %d B, want 0", g, got)
		}
	}
}

func TestBadConfig(t *testing.T) {
	good := Config{Phi: 60_000, Delay: units.Microsecond, Unit: 20, Entries: 16}
	for field, spoil := range map[string]func(*Config){
		"phi": func(c *Config) { c.Phi = 0 }, "delay": func(c *Config) { c.Delay = 0 },
		"unit": func(c *Config) { c.Unit = MaxUnit + 1 }, "entries": func(c *Config) { c.Entries = 1 },
	} {
		c := good
		spoil(&c)
		var fe *units.FieldError
		if _, err := New(c); !errors.As(err, &fe) || fe.Field != field {
			t.Errorf("%+v: %v, want a fault of %s", c, err, field)
		}
	}
}
