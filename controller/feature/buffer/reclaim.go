package buffer

import (
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/p4src/ids"
)

// drainTime returns in which time every queue of a switch is empty, with a factor of two for rates
// that are not kept; never before a pause counts as stuck. It is 0 where PAUSE frames can hold a
// queue for ever, which simple_switch ignores.
func drainTime(env *feature.Env) time.Duration {
	s, b := env.Switch, Of(env.Switch)
	if s.Target != config.BMv2 {
		return 0
	}
	longest := b.Stuck
	for _, p := range env.Graph.Ports(s.Name) {
		longest = max(longest, 2*p.Rate.TxTime(min(qos.Of(env.Config).QueueLimit, b.Size)).Duration())
	}
	return longest
}

// reclaim empties the accounts of ports that wait for packets that the switch no longer has.
// simple_switch drops what its own queues cannot hold, without the pipeline's knowledge: the bytes
// stay accounted, and the peer would stay paused for ever.
func (l *loop) reclaim(now time.Time) error {
	var errs error
	for _, p := range l.ports {
		if l.drain <= 0 || p.Paused == 0 || p.moved.IsZero() || now.Sub(p.polled) > stalePolls*l.every {
			continue
		}
		since := p.moved
		for _, at := range p.since {
			if at.After(since) {
				since = at
			}
		}
		if now.Sub(since) <= l.drain {
			continue
		}
		p.moved = now // if it has no effect, not at once again
		errs = errors.Join(errs, l.ask(p, "forget", ids.PacketOutForget))
		l.callbacks.Event(view.Event{
			Time: now, Severity: view.Warning, Subject: l.sw.Name(), Kind: "buffer.reclaimed", Port: p.Number,
			Message: fmt.Sprintf("%s: paused, and nothing of it has left for %v, in which every queue empties: the switch has dropped packets that are still accounted, and its accounts begin anew; give its queues more room (simple_switch_CLI: set_queue_depth)",
				p.name(), now.Sub(since).Round(roundedTime)),
		})
	}
	return errs
}
