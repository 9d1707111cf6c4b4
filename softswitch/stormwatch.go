package softswitch

import (
	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// received is the state of the pauses that a port's peer sent for one class. The data plane owns it.
type received struct {
	since    units.Time // start of the span that the watchdog judges: it began with a PAUSE
	until    units.Time // end of the pause in force, or of the last one; a refresh prolongs it
	unpaused units.Time // time without a pause between since and the last PAUSE
	heard    units.Time // when the last PAUSE arrived
	storm    bool
	began    units.Time // when the storm began
}

// pause records a PAUSE and reports whether the queues obey it.
func (r *received) pause(now, until units.Time, w externs.Settings) bool {
	r.heard = now
	if r.unpaused += max(0, now-r.until); r.unpaused > w.Slack() {
		r.since, r.unpaused = now, 0
	}
	r.until = until
	return !r.storm || w.Action == externs.Alert
}

// resume records the end of a pause. A storm lasts until no PAUSE has arrived for the restoration
// time.
func (r *received) resume(now units.Time) { r.until = min(r.until, now) }

// next returns when the watchdog must check the class next, or MaxTime for never.
func (r *received) next(w externs.Settings) units.Time {
	switch at := r.since + w.Detection; {
	case w.Detection == 0:
	case r.storm:
		return max(r.began, r.heard) + w.Restoration
	case r.unpaused+max(0, at-r.until) <= w.Slack():
		return at
	}
	return units.MaxTime
}

// watchStorms starts and ends the storms that are due by now, and computes the time of the next
// check.
func (c *dataplane) watchStorms(now units.Time) {
	c.stormAt = units.MaxTime
	c.classes(func(number uint32, class int, p *portState) {
		r := &p.received[class]
		if r.next(c.watch) <= now {
			if r.storm = !r.storm; r.storm {
				r.began = now
				p.info.PFC.Storms[class]++
				c.unpause(number, class, now)
			} else {
				r.since, r.until, r.unpaused = now, now, 0
			}
			c.stormed(number, class, r.storm)
		}
		c.stormAt = min(c.stormAt, r.next(c.watch))
	})
}

// unpause ends the pause of a class in a storm, unless the watchdog only alerts.
func (c *dataplane) unpause(number uint32, class int, now units.Time) {
	if c.watch.Action != externs.Alert {
		c.pause(number, class, now, now)
	}
}

// lostCarrier ends the pauses and storms of a port without a carrier, because their sender can no
// longer resume the classes. The queued packets go to the next peer.
func (c *dataplane) lostCarrier(number uint32, now units.Time) {
	p := c.port(number)
	if p == nil || c.pfc == nil {
		return
	}
	for class := range p.received {
		c.forget(number, class, now)
	}
}

// setWatch replaces the watchdog's settings, for storms in progress too. Switching the watchdog
// off ends all storms; their classes obey again from the next PAUSE on.
func (c *dataplane) setWatch(w externs.Settings, now units.Time) {
	c.watch = w
	c.classes(func(number uint32, class int, p *portState) {
		r := &p.received[class]
		switch {
		case !r.storm:
		case w.Detection > 0:
			c.unpause(number, class, now)
		default:
			r.storm, r.since, r.until, r.unpaused = false, now, now, 0
			c.stormed(number, class, false)
		}
	})
	c.watchStorms(now)
}

type watchdog struct{ setting[externs.Settings] }

// Storms implements entity.Watchdog.
func (w *watchdog) Storms() []externs.Storm {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []externs.Storm
	w.dataplane.classes(func(number uint32, class int, p *portState) {
		if n := p.info.PFC.Storms[class]; n > 0 {
			list = append(list, externs.Storm{Port: number, Class: uint8(class), On: p.received[class].storm, Count: n, Dropped: p.info.PFC.StormDropped[class]})
		}
	})
	return list
}

// drops reports whether the watchdog drops the packets of a queue. It drops them after egress, so
// that the pipeline counts them.
func (c *dataplane) drops(p *portState, queue int) bool {
	if c.pfc == nil || c.watch.Action != externs.Drop || queue < 0 {
		return false
	}
	class := c.lossless.Class(queue)
	storm := class >= 0 && p.received[class].storm
	if storm {
		p.info.PFC.StormDropped[class]++
	}
	return storm
}

// stormMask returns the classes in a storm, a bit for each.
func (p *portState) stormMask() (mask uint8) {
	for class := range packet.PFCClasses {
		if p.received[class].storm {
			mask |= 1 << class
		}
	}
	return mask
}
