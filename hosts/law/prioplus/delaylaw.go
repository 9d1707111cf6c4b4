package prioplus

import (
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/units"
)

// DelayLaw is a law that holds a delay at a target and lets PrioPlus steer it.
type DelayLaw interface {
	law.Law
	Steered
}

// Steered is what PrioPlus sets in the law underneath. Windows and steps are bytes of
// payload, in floating point so that steps of less than a byte add up.
type Steered interface {
	// OnDelay is the law's step (the paper's OriginalCC) for an acknowledgement with a
	// delay. The Ack is valid until it returns.
	OnDelay(a *law.Ack, delay units.Time)
	// SetTarget sets the delay to hold, and with it the kind of delay that OnDelay is
	// given, round trip or one-way; base is that delay on an empty path. No target scaling
	// may be added.
	SetTarget(base, target units.Time)
	// SetIncrease makes the additive increase per round trip the law's own times scale,
	// plus extra bytes.
	SetIncrease(scale, extra float64)
	// Window and SetWindow get and set the congestion window.
	Window() float64
	SetWindow(w float64)
}
