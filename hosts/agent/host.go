package agent

import (
	"context"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/units"
)

// Host drives an agent on a clock.Loop; the loop's goroutine owns both.
type Host struct {
	*Agent
	loop  *clock.Loop
	timer *clock.Timer
}

// NewHost returns a host on loop; send takes each frame as its transmission on the link
// begins, with that time, and the bytes are valid until it returns.
func NewHost(loop *clock.Loop, cfg Config, send func(frame []byte, now units.Time)) (*Host, error) {
	a, err := New(cfg, func(frame []byte) { send(frame, loop.Now()) })
	if err != nil {
		return nil, err
	}
	h := &Host{Agent: a, loop: loop}
	h.timer = loop.NewTimer(h.pump)
	return h, nil
}

// Receive takes a frame that arrives from the link now.
func (h *Host) Receive(frame []byte) {
	h.Agent.Receive(h.loop.Now(), frame)
	h.pump()
}

// StartFlow starts a flow now; see Agent.StartFlow.
func (h *Host) StartFlow(spec FlowSpec) (FlowKey, error) {
	key, err := h.Agent.StartFlow(h.loop.Now(), spec)
	h.pump()
	return key, err
}

// SetWeight changes a weight now; see Agent.SetWeight.
func (h *Host) SetWeight(key FlowKey, w float64) error {
	err := h.Agent.SetWeight(h.loop.Now(), key, w)
	h.pump()
	return err
}

// pump runs due work and schedules itself for the next.
func (h *Host) pump() {
	now := h.loop.Now()
	h.Wake(now)
	if next := h.Next(); next == units.MaxTime {
		h.timer.Stop()
	} else if at, ok := h.timer.Pending(); !ok || at != next {
		h.timer.Reset(next)
	}
}

// Do runs fn on the loop's goroutine, from any other, and then does what fn made due; see
// clock.Loop.Do.
func (h *Host) Do(ctx context.Context, fn func(a *Agent, now units.Time)) error {
	return h.loop.Do(ctx, func() {
		fn(h.Agent, h.loop.Now())
		h.pump()
	})
}
