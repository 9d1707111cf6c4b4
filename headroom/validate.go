package headroom

import (
	"cmp"
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

// fault returns a *units.FieldError if bad, nil else.
func fault(bad bool, field string, value any, allowed, because string) error {
	if !bad {
		return nil
	}
	return &units.FieldError{Field: field, Value: fmt.Sprint(value), Allowed: allowed, Because: because}
}

// inBytes prints an amount for an error, always in bytes.
func inBytes(n units.Bytes) string { return fmt.Sprintf("%d B", n) }

func between(field string, v, low, high units.Bytes) error {
	return fault(v < low || v > high, field, inBytes(v), fmt.Sprintf("%d to %d B", low, high), "")
}

func (c *Config) checkRanges() error {
	var names []string
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return cmp.Or(
		fault(!slices.Contains(Kinds(), c.Policy), "policy", fmt.Sprintf("%q", c.Policy), "one of "+strings.Join(names, ", "), ""),
		fault(!slices.Contains(Methods(), c.Method), "headroom_method", fmt.Sprintf("%q", c.Method), fmt.Sprintf("%s or %s", Standard, ByEq1), ""),
		fault(c.SmallPackets < 0 || c.SmallPackets > 100, "small_packets", fmt.Sprintf("%d %%", c.SmallPackets), "0 to 100 %", ""),
		between("cell_size", c.Cell, 0, 65536),
		fault(c.Lossless == 0, "lossless", "no class", "at least one of the classes 0 to 7", ""),
		fault(c.PortQueues < 1 || c.PortQueues > Classes, "port_queues", c.PortQueues, "1 to 8", ""),
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
	n := len(c.Ports)
	err := fault(n < 1 || n > MaxPorts, "ports", n, fmt.Sprintf("1 to %d", MaxPorts), "")
	for i, p := range c.Ports {
		if err != nil {
			break
		}
		port := fmt.Sprintf("ports[%d].", i)
		err = cmp.Or(
			fault(p.Rate <= 0 || p.Rate > 10_000*units.Gbps, port+"rate", p.Rate, "more than 0 to 10 000 Gbps", ""),
			fault(p.Victim && !c.Policy.victims(), port+"victim", true, "false with policy "+string(c.Policy), "only spfc and dsh+spfc have victims"),
			fault(p.Delay < 0 || p.Delay > units.Second, port+"delay", p.Delay, "0 to 1 s", ""),
			between(port+"headroom", p.Headroom, 0, c.Buffer),
			between(port+"response", p.Response, 0, 65535*Quantum),
		)
	}
	return err
}

func (c *Config) checkPolicy() error {
	err := cmp.Or(
		fault(c.Policy == Static && c.Threshold <= 0, "threshold", inBytes(c.Threshold), "1 B or more", ""),
		fault(c.Policy != Static && (c.Alpha < MinAlpha || c.Alpha > MaxAlpha), "alpha", fmt.Sprintf("2^%d", int8(c.Alpha)), alphaAllowed, ""),
		fault(c.Counted && (!c.AllowLoss || c.Policy.insured() || c.Policy == SPFC && !c.SPFC.Whole), "counted", true,
			"false unless allow_loss is set, and the policy has headroom for each queue or is spfc with spfc.whole", "nothing keeps the sum of what queues hold within the memory"),
		fault(c.Share < 1 || c.Share > 1000, "share", fmt.Sprintf("%d ‰", c.Share), "1 to 1000 ‰", ""),
	)
	if err == nil && c.Policy.insured() {
		err = c.checkDSH()
	}
	if err == nil && c.Policy.victims() {
		err = c.checkSPFC()
	}
	return err
}

func (c *Config) checkDSH() error {
	d := &c.DSH
	if err := fault(d.Window <= 0, "dsh.window", d.Window, "more than 0; the paper has 10 ms", ""); err != nil {
		return err
	}
	if err := d.Precision.Validate(); err != nil {
		return fmt.Errorf("dsh.precision: %w", err)
	}
	return cmp.Or(
		fault(d.Tick < 0 || d.Tick > phi.MaxTick, "dsh.tick", d.Tick, fmt.Sprintf("0 to %v", phi.MaxTick), ""),
		fault(d.Entries < phi.MinEntries || d.Entries > phi.MaxEntries, "dsh.entries", d.Entries, fmt.Sprintf("%d to %d", phi.MinEntries, phi.MaxEntries), ""),
		fault(d.NoInsurance && !c.AllowLoss, "dsh.no_insurance", true, "false unless allow_loss is set",
			"shared headroom is not guaranteed, so a full pool drops"),
	)
}

func (c *Config) checkSPFC() error {
	s := &c.SPFC
	err := cmp.Or(
		fault(s.K < 2 || s.K > 64, "spfc.k", s.K, "2 to 64", ""),
		fault(s.Packet < 0 || s.Packet > 65535, "spfc.packet", inBytes(s.Packet), "0 (count bytes) to 65535 B", ""),
		fault(s.Whole && (c.Policy != SPFC || !c.AllowLoss), "spfc.whole", true, "false unless the policy is spfc and allow_loss is set",
			"a victim's port fills headroom that others may need, and DSH has none of each queue"),
	)
	for i, p := range c.Ports {
		if err != nil {
			break
		}
		least := max(8*p.Delay, 1) // one hop and back is the shortest RTT there can be
		if err = fault(s.Period < least, "spfc.period", s.Period, fmt.Sprintf("%v or more", least),
			fmt.Sprintf("TC ≥ 4 RTT, and ports[%d] alone has an RTT of 2 · %v", i, p.Delay)); err == nil {
			err = fault(DepartLimit(p.Rate, s.Period, s.K, s.Packet) < 1, "spfc.period", s.Period, "a period in which one packet or byte can leave at C/K",
				fmt.Sprintf("ports[%d]: %v · %v / %d is below one", i, p.Rate, s.Period, s.K))
		}
	}
	return err
}

func (c *Config) checkPools() error {
	l := c.layout()
	return fault(l.Shared <= 0, "buffer", inBytes(c.Buffer), fmt.Sprintf("more than %d B", l.Private+l.Headroom+l.Insurance), c.poolsText(&l))
}

// checkLossless refuses headroom below Least. More than that may still be below Link.Required; whoever
// configures a switch says so.
func (c *Config) checkLossless() error {
	if c.AllowLoss || c.Policy == Oversubscribed {
		return nil
	}
	for i := range c.Ports {
		p := &c.Ports[i]
		least := c.least(p)
		have, need := c.phiOf(p), least.Required()
		if have >= need {
			continue
		}
		field := "headroom"
		if p.Headroom != 0 {
			field = fmt.Sprintf("ports[%d].headroom", i)
		}
		return fault(true, field, inBytes(have), fmt.Sprintf("%d B or more", need), fmt.Sprintf("ports[%d] needs %s", i, least.text()))
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
			return fault(true, "threshold", inBytes(c.Threshold), fmt.Sprintf("1 to %d B", l.Shared), fmt.Sprintf("the shared pool has %d B − %s = %d B", c.Buffer, c.poolsText(&l), l.Shared))
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
		field, value = "threshold", inBytes(c.Threshold)
	}
	return fault(true, field, value, fmt.Sprintf("a threshold of %d B or more with an empty pool", need),
		fmt.Sprintf("otherwise a queue could pause at its first packet and never resume (%sless δ = %d B and MTU = %d B)", text, c.ResumeGap, c.MTU))
}

func (c *Config) checkPortThreshold(top units.Bytes) error {
	most := units.Bytes(c.PortQueues) * top
	return fault(c.Policy.insured() && most <= c.PortResumeGap, "port_resume_gap", inBytes(c.PortResumeGap), fmt.Sprintf("less than %d B", most),
		fmt.Sprintf("Xpoff = Nq·T = %d · %d B with an empty pool, and no port could ever resume", c.PortQueues, top))
}
