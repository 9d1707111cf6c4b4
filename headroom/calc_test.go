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
		if got := eq1Of(tc.rate, tc.delay, 1500); got != tc.want {
			t.Errorf("%s: %d B, want %d B", tc.name, got, tc.want)
		}
	}
}

func TestPoolsOfThePaper(t *testing.T) {
	trident := staticPool(32, 8, eq1Of(40*units.Gbps, 1500*units.Nanosecond, 1500))
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
		// 56 840 + 1500 + 672 B for each queue by Eq. 1.
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
		Headroom: 60_000, Method: ByEq1, Alpha: -4, Threshold: 20_000,
	}
	for range 32 {
		c.Ports = append(c.Ports, Port{Rate: 100 * units.Gbps, Delay: 2 * units.Microsecond})
	}
	return c
}

// TestRequired: the bytes that a peer may still send after the decision to pause, and how many of
// them fit in a chip's cells.
func TestRequired(t *testing.T) {
	const g = units.Gbps
	for _, tc := range []struct {
		name string
		link Link
		want units.Bytes
	}{
		// Eq. 1, the pausing packet, and eight PFC frames of 84 B: below the paper's 60 000 B.
		{"DSH's evaluation", Link{Rate: 100 * g, Delay: 2 * units.Microsecond, MTU: 1500, Response: Processing}, 56_840 + 1500 + 672},
		{"100 Gb/s, 40 m", Link{Rate: 100 * g, Delay: 200 * units.Nanosecond, MTU: 9100, Response: 394 * 64}, 2*2500 + 3*9100 + 394*64 + 672},
		{"400 Gb/s, 5 m", Link{Rate: 400 * g, Delay: 25 * units.Nanosecond, MTU: 1500, Response: 905 * 64}, 2*1250 + 3*1500 + 905*64 + 672},
		// Cells of 80 B: 1500 B take 19 of them, 1520 B.
		{"cells, large packets", Link{Rate: 10 * g, MTU: 1500, Response: 3840, Cell: 80}, 7680 + 1520},
		// The worst packet is one of 81 B in two cells: 160/81 of 7512 B are 14 839 B, 186 cells.
		{"cells, small packets", Link{Rate: 10 * g, MTU: 1500, Response: 3840, Cell: 80, SmallPackets: 100}, 186*80 + 1520},
		// A cell of 208 B for each packet of 64 B; 1500 B take 8 of them, 1664 B.
		{"cells, half of them small", Link{Rate: 10 * g, MTU: 1500, Response: 3840, Cell: 208, SmallPackets: 50}, 79*208 + 1664},
	} {
		if got := tc.link.Required(); got != tc.want {
			t.Errorf("%s: %d B, want %d B", tc.name, got, tc.want)
		}
	}
}

func TestResponse(t *testing.T) {
	last := units.Bytes(0)
	for _, tc := range []struct {
		gbps   float64
		quanta units.Bytes
	}{{0.01, 60}, {1, 60}, {2.5, 67}, {10, 67}, {25, 80}, {40, 118}, {50, 147}, {56, 394}, {100, 394}, {200, 453}, {400, 905}, {800, 905}, {1600, 1810}} {
		got := Response(units.Rate(tc.gbps * float64(units.Gbps)))
		if got != tc.quanta*Quantum || got < last {
			t.Errorf("at %v Gb/s: %d B, want %d quanta, and no less than at lower rates", tc.gbps, got, tc.quanta)
		}
		last = got
	}
}

// staticPool is SIH's headroom of a whole switch, Eq. 3: B_h = Np·Nq·Φ.
func staticPool(ports, queues int, phi units.Bytes) units.Bytes {
	return units.Bytes(ports) * units.Bytes(queues) * phi
}

// insurancePool is DSH's insurance of a whole switch, Eq. 9: B_i = Np·Φ.
func insurancePool(ports int, phi units.Bytes) units.Bytes { return units.Bytes(ports) * phi }

// eq1Of is DSH's Eq. 1.
func eq1Of(rate units.Rate, delay units.Time, mtu units.Bytes) units.Bytes {
	return Link{Rate: rate, Delay: delay, MTU: mtu, Response: Processing}.arrives()
}
