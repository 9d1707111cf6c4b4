package units

import (
	"testing"

	"pgregory.net/rapid"
)

func TestTxTime(t *testing.T) {
	tests := []struct {
		name string
		rate Rate
		n    Bytes
		want Time
	}{
		{"1500 B at 100 Gb/s", 100 * Gbps, 1500, 120 * Nanosecond},
		{"one byte at 400 Gb/s", 400 * Gbps, 1, 20 * Picosecond},
		{"rounds up", 3 * Gbps, 1, 2667 * Picosecond},
		{"nothing takes no time", 0, 0, 0},
		{"no rate takes for ever", 0, 1, MaxTime},
		{"beyond the range", 1, 1 << 40, MaxTime},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.rate.TxTime(tt.n); got != tt.want {
				t.Errorf("TxTime = %d, want %d", got, tt.want)
			}
		})
	}
}

func TestTxTimeAndInAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rate(rapid.Int64Range(1, int64(800*Gbps)).Draw(t, "rate"))
		n := Bytes(rapid.Int64Range(0, 1<<20).Draw(t, "n"))
		if r.TxTime(n) == MaxTime {
			return
		}
		if got := r.BytesIn(r.TxTime(n)); got < n {
			t.Fatalf("%v for %v passes %v, want at least %v", r, r.TxTime(n), got, n)
		}
		if n > 0 && r <= Second1 {
			if got := r.BytesIn(r.TxTime(n) - 1); got >= n {
				t.Fatalf("one picosecond less still passes %v", got)
			}
		}
	})
}

// Second1 bounds the rates whose byte lasts at least a picosecond.
const Second1 = 8 * Rate(Second/Picosecond)

func TestParse(t *testing.T) {
	if v, err := ParseTime("1.5us"); err != nil || v != 1500*Nanosecond {
		t.Errorf("ParseTime = %v, %v", v, err)
	}
	if v, err := ParseTime("80 µs"); err != nil || v != 80*Microsecond {
		t.Errorf("ParseTime = %v, %v", v, err)
	}
	if v, err := ParseBytes("5.33MiB"); err != nil || v != 5588910 {
		t.Errorf("ParseBytes = %v, %v", int64(v), err)
	}
	if v, err := ParseRate("100Gbps"); err != nil || v != 100*Gbps {
		t.Errorf("ParseRate = %v, %v", v, err)
	}
	for _, bad := range []string{"", "5", "us", "-1us", "1e3us", "1/2us", "1.2.3us", "99999999999999s", "NaNs", "Infs", "0x1s"} {
		if v, err := ParseTime(bad); err == nil {
			t.Errorf("ParseTime(%q) = %v, want an error", bad, v)
		}
	}
	if _, err := ParseRate("10MB"); err == nil || err.Error() != `"10MB" is not a rate: want a non-negative number with one of the units Gbps, Mbps, Kbps, kbps, bps` {
		t.Errorf("ParseRate error = %v", err)
	}
}

func TestStringRoundTrip(t *testing.T) {
	for _, s := range []string{"1.5us", "80us", "2s", "0s", "999ps"} {
		v, err := ParseTime(s)
		if err != nil || v.String() != s {
			t.Errorf("%q -> %v, %v", s, v, err)
		}
	}
	for _, s := range []string{"100Gbps", "12.5Mbps", "1bps", "0bps"} {
		v, err := ParseRate(s)
		if err != nil || v.String() != s {
			t.Errorf("%q -> %v, %v", s, v, err)
		}
	}
	for _, s := range []string{"16MB", "1.5KB", "64B", "0B"} {
		v, err := ParseBytes(s)
		if err != nil || v.String() != s {
			t.Errorf("%q -> %v, %v", s, v, err)
		}
	}
}

func TestPauseTime(t *testing.T) {
	for _, tt := range []struct {
		quanta uint16
		rate   Rate
		want   Time
	}{
		{0, Gbps, 0},
		{1, 100 * Gbps, 5120},
		{1, 10 * Gbps, 51200},
		{65535, 100 * Gbps, 65535 * 5120},
		{65535, 20 * Mbps, 65535 * 512 * 50 * Nanosecond},
	} {
		if got := tt.rate.PauseTime(tt.quanta); got != tt.want {
			t.Errorf("%d quanta at %v last %v, want %v", tt.quanta, tt.rate, got, tt.want)
		}
	}
}

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"0 hosts": Count(0, "host"), "1 host": Count(1, "host"), "2 switches": Count(2, "switch"), "1 switch": Count(uint64(1), "switch"), "3 virtual priorities": Count(3, "virtual priority"),
		"2 days": Count(2, "day"), "2 classes": Count(int64(2), "class"), "2 next hops": Count(uint32(2), "next hop"), "4 refreshes": Count(4, "refresh"), "5 time boxes": Count(5, "time box"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
