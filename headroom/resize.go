package headroom

import (
	"fmt"

	"github.com/headgate/headgate/units"
)

// Measured sets the headroom of an Adaptive port from a new measurement of its link's delay
// one way. Headroom that grows is taken from the shared pool, and headroom that shrinks is
// given back to it. It returns a *FieldError and changes nothing when the pool could then
// not work, or when the memory is in use just now; in the latter case Because says so and
// the caller tries again later. It may allocate.
func (m *MMU) Measured(port int, delay units.Time) error {
	if m.config.Policy != Adaptive {
		return &FieldError{Field: "policy", Value: string(m.config.Policy), Allowed: string(Adaptive)}
	}
	c := m.config
	c.Ports = append([]Port(nil), c.Ports...)
	c.Ports[port].Delay, c.Ports[port].Headroom = delay, 0
	if err := c.Validate(); err != nil {
		return err
	}
	l := c.layout()
	name := fmt.Sprintf("ports[%d].delay", port)
	if m.used > l.Shared {
		return &FieldError{Field: name, Value: delay.String(), Allowed: "a delay whose headroom is free",
			Because: fmt.Sprintf("the shared pool would have %d B, of which %d B are in use now", l.Shared, m.used)}
	}
	for class := range Classes {
		if h := m.queues[port*Classes+class].headroom; h > l.Phi[port] {
			return &FieldError{Field: name, Value: delay.String(), Allowed: "a delay whose headroom is free",
				Because: fmt.Sprintf("class %d holds %d B of headroom now, more than the new %d B", class, h, l.Phi[port])}
		}
	}
	m.config, m.size, m.ports[port].phi = c, l.Shared, l.Phi[port]
	return nil
}
