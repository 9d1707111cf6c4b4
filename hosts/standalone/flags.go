package standalone

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

type addrValue struct{ v *netip.Addr }

func (f addrValue) Type() string { return "address" }
func (f addrValue) String() string {
	if !f.v.IsValid() {
		return ""
	}
	return f.v.String()
}
func (f addrValue) Set(s string) error {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is4() {
		return fmt.Errorf("%q: want an IPv4 address", s)
	}
	*f.v = a
	return nil
}

type macValue struct{ v *packet.MAC }

func (f macValue) Type() string { return "MAC" }
func (f macValue) String() string {
	if *f.v == (packet.MAC{}) {
		return ""
	}
	return f.v.String()
}
func (f macValue) Set(s string) error {
	m, err := net.ParseMAC(s)
	if err != nil || len(m) != len(f.v) {
		return fmt.Errorf("%q: want a MAC address such as 02:00:00:00:00:01", s)
	}
	copy(f.v[:], m)
	return nil
}

type flowsValue struct{ v *[]agent.FlowSpec }

func (f flowsValue) Type() string   { return "flow" }
func (f flowsValue) String() string { return "" }
func (f flowsValue) Set(s string) error {
	spec, err := ParseFlow(s)
	if err != nil {
		return err
	}
	*f.v = append(*f.v, spec)
	return nil
}

// classesValue is a flag such as "26=3".
type classesValue struct{ v map[uint8]uint8 }

func (f classesValue) Type() string   { return "DSCP=CLASS" }
func (f classesValue) String() string { return "" }
func (f classesValue) Set(s string) error {
	dscp, class, _ := strings.Cut(s, "=")
	d, err := strconv.ParseUint(dscp, 10, 6)
	if err != nil {
		return fmt.Errorf("%q: want DSCP=CLASS with a DSCP of 0 to 63", s)
	}
	c, err := strconv.ParseUint(class, 10, 3)
	if err != nil {
		return fmt.Errorf("%q: want DSCP=CLASS with a class of 0 to 7", s)
	}
	f.v[uint8(d)] = uint8(c)
	return nil
}

// ParseFlow reads a flow such as "dst=10.0.4.1,weight=2,size=5MB,sport=50000,app=search".
// dst is required; weight is 1 and size endless unless given. There are also priority,
// deadline and dscp.
func ParseFlow(s string) (agent.FlowSpec, error) {
	spec := agent.FlowSpec{Weight: 1}
	given := map[string]bool{}
	for field := range strings.SplitSeq(s, ",") {
		key, value, ok := strings.Cut(field, "=")
		if !ok {
			return spec, fmt.Errorf("flow %q: %q: want key=value", s, field)
		}
		if given[key] {
			return spec, fmt.Errorf("flow %q: %s is given twice", s, key)
		}
		given[key] = true
		if err := setField(&spec, key, value); err != nil {
			return spec, fmt.Errorf("flow %q: %w", s, err)
		}
	}
	if !given["dst"] {
		return spec, fmt.Errorf("flow %q: dst is missing", s)
	}
	return spec, nil
}

func setField(spec *agent.FlowSpec, key, value string) (err error) {
	switch key {
	case "dst":
		if err := (addrValue{&spec.Dst}).Set(value); err != nil {
			return fmt.Errorf("dst %w", err)
		}
	case "weight":
		spec.Weight, err = strconv.ParseFloat(value, 64)
		if err != nil {
			return fmt.Errorf("weight %q: want a finite number above 0", value)
		}
		return soze.CheckWeight(spec.Weight)
	case "size":
		if spec.Size, err = units.ParseBytes(value); err == nil && spec.Size == 0 {
			err = fmt.Errorf("size %q: want more than 0; leave it out for a flow without end", value)
		}
		return err
	case "sport":
		p, err := strconv.ParseUint(value, 10, 16)
		if err != nil || p == 0 {
			return fmt.Errorf("sport %q: want 1 to 65535", value)
		}
		spec.SrcPort = uint16(p)
	case "app":
		spec.App = value
	case "priority":
		spec.Priority, err = strconv.Atoi(value)
		if err != nil || spec.Priority < 1 || spec.Priority > channel.MaxPriority {
			return fmt.Errorf("priority %q: want 1 to %d", value, channel.MaxPriority)
		}
	case "deadline":
		if spec.Deadline, err = units.ParseTime(value); err == nil && spec.Deadline == 0 {
			err = fmt.Errorf("deadline %q: want more than 0; leave it out for none", value)
		}
		return err
	case "dscp":
		n, err := strconv.ParseUint(value, 10, 6)
		if err != nil || n == 0 {
			return fmt.Errorf("dscp %q: want 1 to 63", value)
		}
		spec.DSCP = uint8(n)
	default:
		return fmt.Errorf("key %q: want dst, weight, size, sport, app, priority, deadline or dscp", key)
	}
	return nil
}
