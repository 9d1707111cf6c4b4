package headroom

import (
	"testing"

	"github.com/headgate/headgate/units"
)

func TestEquation1(t *testing.T) {
	for _, tc := range []struct {
		name  string
		rate  units.Rate
		delay units.Time
		want  units.Bytes
	}{
		{"DSH §III-A", 40 * units.Gbps, 1500 * units.Nanosecond, 21_840},
		{"DSH's evaluation, which configures 60 000 B", 100 * units.Gbps, 2 * units.Microsecond, 56_840},
		{"SPFC's evaluation", 100 * units.Gbps, 9 * units.Microsecond, 231_840},
		{"no cable", 100 * units.Gbps, 0, 6840},
	} {
		if got := Eq1(tc.rate, tc.delay, 1500); got != tc.want {
			t.Errorf("%s: %d B, want %d B", tc.name, got, tc.want)
		}
	}
}

func TestPoolsOfThePaper(t *testing.T) {
	trident := StaticPool(32, 8, Eq1(40*units.Gbps, 1500*units.Nanosecond, 1500))
	if trident != 5_591_040 {
		t.Errorf("Trident2: %d B", trident)
	}
	if permille := trident * 1000 / (12 * units.MiB); permille != 444 {
		t.Errorf("Trident2: %d ‰ of 12 MiB, want 44.4 %%", permille)
	}
	if got := StaticPool(32, 7, 60_000); got != 13_440_000 {
		t.Errorf("SIH: %d B", got)
	}
	if got := InsurancePool(32, 60_000); got != 1_920_000 {
		t.Errorf("DSH: %d B", got)
	}
	for kind, want := range map[Kind]Layout{
		SIH: {Private: 672_000, Headroom: 13_440_000, Shared: 1_888_000},
		DSH: {Private: 672_000, Insurance: 1_920_000, Shared: 13_408_000},
		// 56 840 + 1500 + 672 B for each queue.
		Adaptive:       {Private: 672_000, Headroom: 224 * 59_012, Shared: 16_000_000 - 672_000 - 224*59_012},
		Oversubscribed: {Private: 672_000, Headroom: 10_752_000, Shared: 4_576_000},
	} {
		l, err := tomahawk(kind).Layout()
		if err != nil {
			t.Fatal(err)
		}
		l.Phi = nil
		if l.Private != want.Private || l.Headroom != want.Headroom || l.Insurance != want.Insurance || l.Shared != want.Shared {
			t.Errorf("%s: %+v, want %+v", kind, l, want)
		}
	}
}

// tomahawk is the switch of DSH's evaluation.
func tomahawk(k Kind) Config {
	c := Config{
		Policy: k, Buffer: 16 * units.MB, Lossless: 0x7F, Private: 3 * units.KB,
		Headroom: 60_000, Alpha: -4, Threshold: 20_000,
	}
	for range 32 {
		c.Ports = append(c.Ports, Port{Rate: 100 * units.Gbps, Delay: 2 * units.Microsecond})
	}
	return c
}

func TestRequired(t *testing.T) {
	// Eq. 1, the pausing packet, and eight PFC frames of 84 B: below the paper's 60 000 B.
	if got := Required(100*units.Gbps, 2*units.Microsecond, 1500); got != 56_840+1500+672 {
		t.Errorf("%d B", got)
	}
	want := Required(100*units.Gbps, 2100*units.Nanosecond, 1500)
	if got := AdaptiveHeadroom(100*units.Gbps, 2*units.Microsecond, 100*units.Nanosecond, 1500); got != want {
		t.Errorf("measured 2 µs ± 0.1 µs: %d B, want %d B", got, want)
	}
}

func TestCable(t *testing.T) {
	for _, tc := range []struct {
		cable Cable
		want  units.Time
	}{
		{Cable{}, 0},
		{Cable{Metres: 300}, 1_539_527}, // the paper says about 1.5 µs
		{Cable{Metres: 1, Speed: 1000}, 3336},
		{Cable{Metres: 100_000}, 513_175_533},
	} {
		if got := tc.cable.Delay(); got != tc.want {
			t.Errorf("%+v: %d ps, want %d", tc.cable, got, tc.want)
		}
	}
}

func TestPauseTime(t *testing.T) {
	// 65 535 · 512 bit at 100 Gb/s.
	if got := PauseTime(100*units.Gbps, 65535); got != 335_539_200 {
		t.Errorf("%d ps", got)
	}
}

func TestRefresher(t *testing.T) {
	r := NewRefresher(100*units.Gbps, 1000) // 5.12 µs, so every 2.56 µs
	const half = 2_560_000
	if r.Next() != units.MaxTime || r.Due(units.Second) != 0 {
		t.Fatal("due without a PAUSE")
	}
	r.Sent(100, Signal{Classes: 0x01, Pause: true})
	r.Sent(half/2, Signal{Classes: 0x02, Pause: true}) // must not put off class 0
	if got := r.Next(); got != half+100 {
		t.Fatalf("due at %d", got)
	}
	if got := r.Due(half + 99); got != 0 {
		t.Errorf("early: %08b", got)
	}
	if got := r.Due(half + 100); got != 0x03 {
		t.Errorf("refreshes %08b", got)
	}
	if got := r.Next(); got != 2*half+100 {
		t.Errorf("then due at %d", got)
	}
	r.Sent(2*half, Signal{Classes: 0x01})
	if got := r.Due(2*half + 100); got != 0x02 {
		t.Errorf("after a RESUME refreshes %08b", got)
	}
	r.Sent(3*half, Signal{Classes: 0xFF, Pause: true})
	if got := r.Next(); got != 4*half {
		t.Errorf("a PAUSE of all is no refresh: due at %d", got)
	}
	r.Sent(3*half, Signal{Classes: 0xFF})
	if r.Next() != units.MaxTime {
		t.Error("due with nothing paused")
	}
}
