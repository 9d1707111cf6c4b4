package dcqcn

import "github.com/headgate/headgate/units"

// NotificationPoint is the receiver's side of one flow (Zhu et al., SIGCOMM 2015, §3.1 and
// Figure 6). A marked packet is answered with a CNP at once when none was sent within the last
// gap. A packet that is marked within the gap is answered at its end, once for all of them. The
// zero value has sent none. The gap is N of the paper, 50 µs there; it is above 0.
type NotificationPoint struct {
	until units.Time // end of the window that the last CNP opened
	owed  bool       // a packet within it was marked
}

// Marked takes a packet that arrived marked and reports whether to send a CNP now. If not, Due says
// when.
func (n *NotificationPoint) Marked(now, gap units.Time) bool {
	if now < n.until {
		n.owed = true
		return false
	}
	n.until, n.owed = now+gap, false
	return true
}

// Due returns when to call Expired, units.MaxTime for never.
func (n *NotificationPoint) Due() units.Time {
	if !n.owed {
		return units.MaxTime
	}
	return n.until
}

// End returns the end of the window that the last CNP opened.
func (n *NotificationPoint) End() units.Time { return n.until }

// Expired reports whether to send the deferred CNP now.
func (n *NotificationPoint) Expired(now, gap units.Time) bool {
	return n.owed && n.Marked(now, gap)
}
