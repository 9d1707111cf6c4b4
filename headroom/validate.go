package headroom

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/tables/phi"
	"github.com/headgate/headgate/units"
)

// Validate returns a *units.FieldError for the first fault of a Config with defaults: a value out
// of range, pools that exceed the buffer, headroom too small to be lossless on its link, or
// a threshold at which no queue could ever resume.
func (c Config) Validate() error {
	for _, check := range []func(*Config) error{
		(*Config).checkRanges, (*Config).checkPorts, (*Config).checkPolicy, (*Config).checkPools, (*Config).checkLossless, (*Config).checkThresholds,
	} {
		if err := check(&c); err != nil {
			return err
		}
	}
	return nil
}

func between(field string, v, low, high units.Bytes) error {
	if v >= low && v <= high {
		return nil
	}
	return &units.FieldError{Field: field, Value: fmt.Sprintf("%d B", v), Allowed: fmt.Sprintf("%d to %d B", low, high)}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) checkRanges() error {
	if !slices.Contains(Kinds(), c.Policy) {
		var names []string
		for _, k := range Kinds() {
			names = append(names, string(k))
		}
		return &units.FieldError{Field: "policy", Value: fmt.Sprintf("%q", c.Policy), Allowed: "one of " + strings.Join(names, ", ")}
	}
	if c.Lossless == 0 {
		return &units.FieldError{Field: "lossless", Value: "no class", Allowed: "at least one of the classes 0 to 7"}
	}
	if c.PortQueues < 1 || c.PortQueues > Classes {
		return &units.FieldError{Field: "port_queues", Value: fmt.Sprint(c.PortQueues), Allowed: "1 to 8"}
	}
	return firstError(
		between("buffer", c.Buffer, 1, MaxBuffer),
		between("mtu", c.MTU, 64, 65535),
		between("private", c.Private, 0, c.Buffer),
		between("lossy_private", c.LossyPrivate, 0, c.Buffer),
		between("headroom", c.Headroom, 0, c.Buffer),
		between("resume_gap", c.ResumeGap, 0, c.Buffer),
		between("port_resume_gap", c.PortResumeGap, 0, c.Buffer),
	)
}

func (c *Config) checkPorts() error {
	if n := len(c.Ports); n < 1 || n > MaxPorts {
		return &units.FieldError{Field: "ports", Value: fmt.Sprint(n), Allowed: fmt.Sprintf("1 to %d", MaxPorts)}
	}
	for i, p := range c.Ports {
		name := func(field string) string { return fmt.Sprintf("ports[%d].%s", i, field) }
		switch {
		case p.Rate <= 0 || p.Rate > 10_000*units.Gbps:
			return &units.FieldError{Field: name("rate"), Value: p.Rate.String(), Allowed: "more than 0 to 10 000 Gbps"}
		case p.Victim && !c.Policy.victims():
			return &units.FieldError{Field: name("victim"), Value: "true", Allowed: "false with policy " + string(c.Policy), Because: "only spfc and dsh+spfc have victims"}
		case p.Delay < 0 || p.Delay > units.Second:
			return &units.FieldError{Field: name("delay"), Value: p.Delay.String(), Allowed: "0 to 1 s"}
		}
		if err := between(name("headroom"), p.Headroom, 0, c.Buffer); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) checkPolicy() error {
	if c.Policy == Static {
		if c.Threshold <= 0 {
			return &units.FieldError{Field: "threshold", Value: fmt.Sprintf("%d B", c.Threshold), Allowed: "1 B or more"}
		}
	} else if c.Alpha < MinAlpha || c.Alpha > MaxAlpha {
		return &units.FieldError{Field: "alpha", Value: fmt.Sprintf("2^%d", int8(c.Alpha)), Allowed: alphaAllowed}
	}
	if c.Share < 1 || c.Share > 1000 {
		return &units.FieldError{Field: "share", Value: fmt.Sprintf("%d ‰", c.Share), Allowed: "1 to 1000 ‰"}
	}
	if c.Policy.insured() {
		d := &c.DSH
		if d.Window <= 0 {
			return &units.FieldError{Field: "dsh.window", Value: d.Window.String(), Allowed: "more than 0; the paper has 10 ms"}
		}
		if err := d.Precision.Validate(); err != nil {
			return fmt.Errorf("dsh.precision: %w", err)
		}
		if d.Tick < 0 || d.Tick > phi.MaxTick {
			return &units.FieldError{Field: "dsh.tick", Value: d.Tick.String(), Allowed: fmt.Sprintf("0 to %v", phi.MaxTick)}
		}
		if d.Entries < phi.MinEntries || d.Entries > phi.MaxEntries {
			return &units.FieldError{Field: "dsh.entries", Value: fmt.Sprint(d.Entries), Allowed: fmt.Sprintf("%d to %d", phi.MinEntries, phi.MaxEntries)}
		}
		if d.NoInsurance && !c.AllowLoss {
			return &units.FieldError{Field: "dsh.no_insurance", Value: "true", Allowed: "false unless allow_loss is set",
				Because: "shared headroom is not guaranteed, so a full pool drops"}
		}
	}
	if c.Policy.victims() {
		return c.checkSPFC()
	}
	return nil
}

func (c *Config) checkSPFC() error {
	s := &c.SPFC
	if s.K < 2 || s.K > 64 {
		return &units.FieldError{Field: "spfc.k", Value: fmt.Sprint(s.K), Allowed: "2 to 64"}
	}
	if s.Packet < 0 || s.Packet > 65535 {
		return &units.FieldError{Field: "spfc.packet", Value: fmt.Sprintf("%d B", s.Packet), Allowed: "0 (count bytes) to 65535 B"}
	}
	if s.Whole && (c.Policy != SPFC || !c.AllowLoss) {
		return &units.FieldError{Field: "spfc.whole", Value: "true", Allowed: "false unless the policy is spfc and allow_loss is set",
			Because: "a victim's port fills headroom that others may need, and DSH has none of each queue"}
	}
	for i, p := range c.Ports {
		// One hop and back is the shortest RTT there can be.
		if least := 8 * p.Delay; s.Period < max(least, 1) {
			return &units.FieldError{Field: "spfc.period", Value: s.Period.String(), Allowed: fmt.Sprintf("%v or more", max(least, 1)),
				Because: fmt.Sprintf("TC ≥ 4 RTT, and ports[%d] alone has an RTT of 2 · %v", i, p.Delay)}
		}
		if DepartLimit(p.Rate, s.Period, s.K, s.Packet) < 1 {
			return &units.FieldError{Field: "spfc.period", Value: s.Period.String(), Allowed: "a period in which one packet or byte can leave at C/K",
				Because: fmt.Sprintf("ports[%d]: %v · %v / %d is below one", i, p.Rate, s.Period, s.K)}
		}
	}
	return nil
}

func (c *Config) checkPools() error {
	l := c.layout()
	if l.Shared > 0 {
		return nil
	}
	return &units.FieldError{Field: "buffer", Value: fmt.Sprintf("%d B", c.Buffer),
		Allowed: fmt.Sprintf("more than %d B", l.Private+l.Headroom+l.Insurance), Because: c.poolsText(&l)}
}

func (c *Config) checkLossless() error {
	if c.AllowLoss || c.Policy == Oversubscribed {
		return nil
	}
	for i := range c.Ports {
		p := &c.Ports[i]
		have, need := c.phiOf(p), Required(p.Rate, p.Delay, c.MTU)
		if have >= need {
			continue
		}
		field := "headroom"
		if p.Headroom != 0 {
			field = fmt.Sprintf("ports[%d].headroom", i)
		}
		return &units.FieldError{Field: field, Value: fmt.Sprintf("%d B", have), Allowed: fmt.Sprintf("%d B or more", need),
			Because: fmt.Sprintf("ports[%d] needs %s", i, requiredText(p.Rate, p.Delay, c.MTU))}
	}
	return nil
}

// checkThresholds makes sure that with an empty pool every queue and port may send a packet
// and resume.
func (c *Config) checkThresholds() error {
	l := c.layout()
	top, text := c.Threshold, ""
	if c.Policy == Static {
		if c.Threshold > l.Shared {
			return &units.FieldError{Field: "threshold", Value: fmt.Sprintf("%d B", c.Threshold), Allowed: fmt.Sprintf("1 to %d B", l.Shared),
				Because: fmt.Sprintf("the shared pool has %d B − %s = %d B", c.Buffer, c.poolsText(&l), l.Shared)}
		}
	} else {
		top = c.Alpha.Of(l.Shared)
		text = fmt.Sprintf("α·Bs = %v · %d B = %d B, ", c.Alpha, l.Shared, top)
	}
	need := c.ResumeGap + c.MTU + 1
	if c.Policy.insured() && !c.DSH.NoSharedHeadroom {
		var tau units.Bytes
		for i := range c.Ports {
			tau = max(tau, c.fullPhi(&c.Ports[i]))
		}
		need += tau
		text += fmt.Sprintf("less τ of up to Φ = %d B, ", tau)
	}
	if top >= need {
		return c.checkPortThreshold(top)
	}
	field, value := "alpha", c.Alpha.String()
	if c.Policy == Static {
		field, value = "threshold", fmt.Sprintf("%d B", c.Threshold)
	}
	return &units.FieldError{Field: field, Value: value, Allowed: fmt.Sprintf("a threshold of %d B or more with an empty pool", need),
		Because: fmt.Sprintf("otherwise a queue could pause at its first packet and never resume (%sless δ = %d B and MTU = %d B)", text, c.ResumeGap, c.MTU)}
}

func (c *Config) checkPortThreshold(top units.Bytes) error {
	if !c.Policy.insured() || units.Bytes(c.PortQueues)*top > c.PortResumeGap {
		return nil
	}
	return &units.FieldError{Field: "port_resume_gap", Value: fmt.Sprintf("%d B", c.PortResumeGap),
		Allowed: fmt.Sprintf("less than %d B", units.Bytes(c.PortQueues)*top),
		Because: fmt.Sprintf("Xpoff = Nq·T = %d · %d B with an empty pool, and no port could ever resume", c.PortQueues, top)}
}
