package headroom

import (
	"fmt"
	"math/bits"

	"github.com/headgate/headgate/units"
)

// Layout is how a Config splits its buffer. The four pools add up to it.
type Layout struct {
	Private, Headroom, Insurance, Shared units.Bytes
	// Phi is the headroom of each lossless queue of a port, or a port's insurance.
	Phi []units.Bytes
}

// queues returns the number of lossless classes.
func (c *Config) queues() int { return bits.OnesCount8(c.Lossless) }

// phiOf returns what a port reserves: for each of its lossless queues, or once with DSH.
func (c *Config) phiOf(p *Port) units.Bytes {
	if c.Policy.insured() && c.DSH.NoInsurance {
		return 0
	}
	return c.fullPhi(p)
}

// fullPhi returns Φ of a port.
func (c *Config) fullPhi(p *Port) units.Bytes {
	phi := p.Headroom
	if phi == 0 {
		phi = c.Headroom
	}
	if phi == 0 || c.Policy == Adaptive && p.Headroom == 0 {
		phi = c.link(p).Required()
	}
	if c.Policy == Oversubscribed {
		phi = phi * units.Bytes(c.Share) / 1000
	}
	return phi
}

// layout splits the buffer of a Config with defaults and sane fields. Shared is not
// positive when the other pools exceed the buffer.
func (c *Config) layout() Layout {
	n := units.Bytes(len(c.Ports))
	lossless := units.Bytes(c.queues())
	l := Layout{
		Private: n * (lossless*c.Private + (Classes-lossless)*c.LossyPrivate),
		Phi:     make([]units.Bytes, len(c.Ports)),
	}
	for i := range c.Ports {
		l.Phi[i] = c.phiOf(&c.Ports[i])
		if c.Policy.insured() {
			l.Insurance += l.Phi[i]
		} else {
			l.Headroom += lossless * l.Phi[i]
		}
	}
	l.Shared = c.Buffer - l.Private - l.Headroom - l.Insurance
	return l
}

// Layout returns the pools that c asks for. It returns a *units.FieldError when c is not valid.
func (c Config) Layout() (Layout, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return Layout{}, err
	}
	return c.layout(), nil
}

// poolsText shows how the pools that are not shared add up.
func (c *Config) poolsText(l *Layout) string {
	reserved, per := "headroom", fmt.Sprintf("%d ports × %d lossless queues", len(c.Ports), c.queues())
	if c.Policy.insured() {
		reserved, per = "insurance", fmt.Sprintf("%d ports", len(c.Ports))
	}
	return fmt.Sprintf("private %d B (%d ports × (%d lossless queues × %d B + %d others × %d B)) + %s %d B (%s × Φ, Φ of port 0 %d B) = %d B",
		l.Private, len(c.Ports), c.queues(), c.Private, Classes-c.queues(), c.LossyPrivate,
		reserved, l.Headroom+l.Insurance, per, l.Phi[0], l.Private+l.Headroom+l.Insurance)
}
