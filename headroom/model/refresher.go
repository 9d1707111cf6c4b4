package model

import "github.com/headgate/headgate/units"

// Refresher says when a port's PAUSE has to be repeated so that it does not expire (IEEE
// 802.1Qbb: a PAUSE lasts for its quanta and no longer). It has no clock: its owner tells it
// what was sent, asks when to look again, and then what to send.
type Refresher struct {
	period  units.Time
	classes uint8
	due     units.Time
}

// NewRefresher returns a refresher for PAUSEs that last for a time. They are repeated when
// half of it is over, so that one lost frame does no harm.
func NewRefresher(pause units.Time) Refresher {
	return Refresher{period: max(1, pause/2), due: units.MaxTime}
}

// Sent takes note of a frame that was sent at now: a PAUSE of classes, or their RESUME. A PAUSE of further classes does not put
// off the refresh of those that were paused before.
func (r *Refresher) Sent(now units.Time, classes uint8, pause bool) {
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
func (r *Refresher) Next() units.Time { return r.due }

// Due returns the classes to pause again now, 0 before Next. The caller sends one PAUSE for
// all of them; it does not call Sent for it.
func (r *Refresher) Due(now units.Time) uint8 {
	if now < r.due {
		return 0
	}
	r.due = now + r.period
	return r.classes
}
