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
	trident := staticPool(32, 8, Eq1(40*units.Gbps, 1500*units.Nanosecond, 1500))
	if trident != 5_591_040 {
		t.Errorf("Trident2: %d B", trident)
	}
	if permille := trident * 1000 / (12 * units.MiB); permille != 444 {
		t.Errorf("Trident2: %d ‰ of 12 MiB, want 44.4 %%", permille)
	}
	if got := staticPool(32, 7, 60_000); got != 13_440_000 {
		t.Errorf("SIH: %d B", got)
	}
	if got := insurancePool(32, 60_000); got != 1_920_000 {
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
}

// staticPool is SIH's headroom of a whole switch, Eq. 3: B_h = Np·Nq·Φ.
func staticPool(ports, queues int, phi units.Bytes) units.Bytes {
	return units.Bytes(ports) * units.Bytes(queues) * phi
}

// insurancePool is DSH's insurance of a whole switch, Eq. 9: B_i = Np·Φ.
func insurancePool(ports int, phi units.Bytes) units.Bytes { return units.Bytes(ports) * phi }
