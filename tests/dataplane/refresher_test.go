package dataplane

import (
	"testing"

	"github.com/headgate/headgate/units"
)

// refresher computes when a port's PAUSE must be repeated so that it does not expire (IEEE 802.1Qbb: a PAUSE
// lasts only for its quanta). It has no clock: its owner reports sent frames, asks for the next time, and then
// for the classes to pause.
type refresher struct {
	period  units.Time
	classes uint8
	due     units.Time
}

// newRefresher returns a refresher for PAUSEs of a given length. They are repeated after half of it, so that one
// lost frame does no harm.
func newRefresher(pause units.Time) refresher {
	return refresher{period: max(1, pause/2), due: units.MaxTime}
}

// Sent records a frame that was sent at now: a PAUSE of classes, or their RESUME. A PAUSE of further classes does not
// postpone the refresh of classes paused earlier.
func (r *refresher) Sent(now units.Time, classes uint8, pause bool) {
	if !pause {
		r.classes &^= classes
		if r.classes == 0 {
			r.due = units.MaxTime
		}
		return
	}
	if r.classes&^classes == 0 {
		r.due = now + r.period
	}
	r.classes |= classes
}

// Next returns the time of the next refresh, or units.MaxTime if no class is paused.
func (r *refresher) Next() units.Time { return r.due }

// Due returns the classes to pause again now, and 0 before Next. The caller sends one PAUSE for all of them and
// does not call Sent for it.
func (r *refresher) Due(now units.Time) uint8 {
	if now < r.due {
		return 0
	}
	r.due = now + r.period
	return r.classes
}

func TestRefresher(t *testing.T) {
	r := newRefresher(5120 * units.Nanosecond) // 1000 quanta at 100 Gb/s
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
