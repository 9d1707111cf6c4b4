package config

import (
	"time"

	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/units"
)

// defaultAckDSCP is CS6 of RFC 2474.
const defaultAckDSCP = 48

// defaults fills in what the file leaves out.
func (c *Config) defaults(d *decoder) {
	set(&c.Scale, 1)
	for i := range c.Switches {
		set(&c.Switches[i].Target, BMv2)
	}
	for i := range c.Hosts {
		h := &c.Hosts[i]
		if h.MAC == ([6]byte{}) && h.IPv4.Is4() {
			a := h.IPv4.As4()
			h.MAC = [6]byte{0x06, 0, a[0], a[1], a[2], a[3]}
		}
	}
	set(&c.QoS.QueueLimit, maxLimit)
	c.sozeDefaults(d)
	c.paccDefaults(d)
	c.prioPlusDefaults(d)
	c.bufferDefaults(&c.Buffer)
	for i := range c.Switches {
		c.bufferDefaults(&c.Switches[i].Buffer)
	}
	k := &c.Controller
	set(&k.Listen, "127.0.0.1:9600")
	set(&k.Metrics, "127.0.0.1:9601")
	set(&k.ElectionID, 1)
	set(&k.PollInterval, 100*time.Millisecond)
	set(&k.ProbeInterval, 500*time.Millisecond)
	set(&k.ProbeTimeout, max(3*time.Second, 6*k.ProbeInterval))
	set(&k.UnreachableAfter, 5*time.Second)
	set(&k.ResyncInterval, time.Minute)
}

func set[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

func (c *Config) sozeDefaults(d *decoder) {
	s := &c.Soze
	if _, given := d.lines["soze"]; !given {
		s.Shift, s.AckDSCP = noShift, defaultAckDSCP
	}
	set(&s.P, 3*units.Microsecond)
	set(&s.K, 37*units.Microsecond)
	set(&s.M, soze.DefaultM)
	if s.Alpha == 0 {
		for _, l := range c.Links {
			if (l.A.Port == 0 || l.B.Port == 0) && l.Rate > s.Alpha {
				s.Alpha = l.Rate
			}
		}
		set(&s.Alpha, units.Gbps) // no host, nothing to share
	}
	set(&s.Beta, max(s.Alpha/1000, 1))
	if s.Shift == noShift && mulFits(int64(s.P+s.K), c.Scale) {
		s.Shift = 0
		for s.Shift < maxShift && c.Scaled(s.P+s.K)/units.Microsecond*4 > 65535<<s.Shift {
			s.Shift++
		}
	}
}

// maxShift bounds soze.shift; a unit of 2^16 µs is beyond any use.
const maxShift = 16

// Unit returns the unit of the maxQD header in this fabric.
func (s Soze) Unit() units.Time { return units.Microsecond << s.Shift }
