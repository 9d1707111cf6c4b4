package model

import (
	"testing"

	"github.com/headgate/headgate/units"
)

func TestRefresher(t *testing.T) {
	r := NewRefresher(5120 * units.Nanosecond) // 1000 quanta at 100 Gb/s
	const half = 2_560_000
	if r.Next() != units.MaxTime || r.Due(units.Second) != 0 {
		t.Fatal("due without a PAUSE")
	}
	r.Sent(100, 0x01, true)
	r.Sent(half/2, 0x02, true) // must not put off class 0
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
	r.Sent(2*half, 0x01, false)
	if got := r.Due(2*half + 100); got != 0x02 {
		t.Errorf("after a RESUME refreshes %08b", got)
	}
	r.Sent(3*half, 0xFF, true)
	if got := r.Next(); got != 4*half {
		t.Errorf("a PAUSE of all is no refresh: due at %d", got)
	}
	r.Sent(3*half, 0xFF, false)
	if r.Next() != units.MaxTime {
		t.Error("due with nothing paused")
	}
}
