// Package none is the law that does nothing: a flow sends at line rate within the transport's own
// bounds. It is the baseline for every law, and shows what PFC does alone.
package none

import (
	"fmt"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/units"
)

// Law allows a fixed rate and window.
type Law struct {
	law.Untimed
	allow law.Allowance
}

var _ law.Law = Law{}

// New returns a law that allows rate, more than 0, with window bytes in flight; a window
// of 0 is unbounded.
func New(rate units.Rate, window units.Bytes) (Law, error) {
	if rate <= 0 {
		return Law{}, fmt.Errorf("rate %d b/s: want more than 0", int64(rate))
	}
	if window < 0 {
		return Law{}, fmt.Errorf("window %d B: want 0 (unbounded) or more", int64(window))
	}
	if window == 0 {
		window = law.Unbounded
	}
	return Law{allow: law.Allowance{Rate: rate, Window: window}}, nil
}

// OnAck implements law.Law.
func (Law) OnAck(*law.Ack) {}

// OnEvent implements law.Law.
func (Law) OnEvent(law.Event, units.Time) {}

// Allowance implements law.Law.
func (l Law) Allowance() law.Allowance { return l.allow }
