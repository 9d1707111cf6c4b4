package softswitch

import "github.com/headgate/headgate/softswitch/port"

// driverSelect holds the driver that each port has chosen. The goroutine that watches the ports
// owns it.
type driverSelect struct {
	users *port.IfaceUsers // nil: no port chooses its driver
	last  map[uint32]chosen
}

type chosen struct{ driver, why string }

// SetUsers lets the ports choose their drivers again when another program begins or stops using
// their interfaces, at most watchPeriod later. Run closes u.
func (s *Realtime) SetUsers(u *port.IfaceUsers) {
	s.r.driverSelect = driverSelect{users: u, last: map[uint32]chosen{}}
}

// choose lets each port choose its driver, and logs each change and its reason. event says that
// the interfaces may have changed.
func (s *Realtime) choose(event bool) {
	c := &s.r.driverSelect
	if c.users == nil {
		return
	}
	if err := c.users.Look(event); err != nil {
		s.log.Error("ports keep their drivers", "switch", s.name, "err", err)
		return
	}
	for i, p := range s.dataplane.ports {
		if p == nil {
			continue
		}
		d, _ := p.out.(driven)
		if chooser, ok := d.port.(port.Chooser); ok {
			var now chosen
			now.driver, now.why = chooser.Choose(c.users)
			if n := uint32(i); now != c.last[n] {
				c.last[n] = now
				s.log.Info("port driver", "switch", s.name, "port", n, "interface", p.info.Name, "driver", now.driver, "why", now.why)
			}
		}
	}
}

func (c *driverSelect) close() error {
	if c.users == nil {
		return nil
	}
	return c.users.Close()
}
