package emulation

import (
	"fmt"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/buffer"
	"github.com/headgate/headgate/controller/feature/pacc"
	"github.com/headgate/headgate/units"
)

// maxLag returns how late the fabric or the controller may be in a valid play. Switches and hosts
// share a clock that stretches on a busy machine, while the controller uses the wall clock. The bound
// is half of the shortest time that the controller keeps, so that its actions fall into the right
// period.
func maxLag(c *config.Config) units.Time {
	shortest := units.FromDuration(c.Controller.ProbeTimeout) // without probes for that long a link is avoided
	for _, s := range c.Switches {
		if b := buffer.Of(&s); b.Victims() {
			shortest = min(shortest, c.Scaled(b.Period)) // SPFC's states
		}
	}
	for _, l := range c.Links {
		for _, end := range []config.Endpoint{l.A, l.B} {
			if s := c.Switch(end.Node); s != nil && buffer.Of(s).On() { // a PAUSE is repeated when it is half over
				shortest = min(shortest, l.Rate.PauseTime(buffer.Of(s).PauseQuanta)/2)
			}
		}
	}
	if p := pacc.Of(c); p.Enabled && p.At == pacc.AtController {
		shortest = min(shortest, c.Scaled(p.Interval))
	}
	return shortest / 2
}

// validate fills in Invalid; more are reasons that the measurement does not show.
func (v *Result) validate(s *Scenario, more ...string) {
	bad := func(format string, args ...any) { v.Invalid = append(v.Invalid, fmt.Sprintf(format, args...)) }
	if v.late() {
		bad("the machine could not keep up: fabric or controller were %.0f ms late, where at most %.0f ms leave the result alone", v.WorstLagMS, v.MaxLagMS)
	}
	v.Invalid = append(v.Invalid, more...)
	l := v.Losses
	if len(v.Faults) == 0 && l.Faults() > 0 {
		bad("packets were lost that congestion does not explain: %d in pipelines for another reason than a full queue or buffer, %d in traffic managers, %d on links, %d at switches that were down",
			l.Pipelines, l.Queues, l.Links, l.Switches)
	}
	if n := l.Dropped() - l.Lossless; s.Lossless && n > 0 {
		bad("no room for %s of lossy classes, such as acknowledgements", units.Count(n, "packet"))
	}
	for _, f := range v.Flows {
		if f.Delivered == 0 {
			bad("flow %s never ran: nothing of it was delivered", f.Name)
		}
	}
	ran := map[string]bool{}
	for _, p := range v.Phases {
		for _, f := range p.Flows {
			switch {
			case s.Law == Soze && f.Share == nil:
				bad("phase %q: none of flow %s's packets was seen", p.Name, f.Name)
			case !ran[f.Name] && f.Measured == 0 && len(v.Faults) == 0:
				bad("phase %q: flow %s did not run", p.Name, f.Name)
			}
			ran[f.Name] = true
		}
	}
}

// late says that the machine could not keep up.
func (v *Result) late() bool { return v.WorstLagMS > v.MaxLagMS }

// Disturbed says that the machine could not keep up with a play: played again, the scenario may
// well be valid.
func (r *Report) Disturbed() bool {
	for _, v := range r.Variants {
		if v.late() {
			return true
		}
	}
	return false
}
