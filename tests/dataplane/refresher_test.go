package dataplane

import (
	"testing"

	"github.com/headgate/headgate/units"
)

// refresher says when a port's PAUSE has to be repeated so that it does not expire (IEEE
// 802.1Qbb: a PAUSE lasts for its quanta and no longer). It has no clock: its owner tells it
// what was sent, asks when to look again, and then what to send.
type refresher struct {
	period  units.Time
	classes uint8
	due     units.Time
}

// newRefresher returns a refresher for PAUSEs that last for a time. They are repeated when
// half of it is over, so that one lost frame does no harm.
func newRefresher(pause units.Time) refresher {
	return refresher{period: max(1, pause/2), due: units.MaxTime}
}

// Sent takes note of a frame that was sent at now: a PAUSE of classes, or their RESUME. A PAUSE of further classes does not put
// off the refresh of those that were paused before.
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

// Next returns when the next refresh is due, or units.MaxTime when nothing is paused.
func (r *refresher) Next() units.Time { return r.due }

// Due returns the classes to pause again now, 0 before Next. The caller sends one PAUSE for
// all of them; it does not call Sent for it.
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
