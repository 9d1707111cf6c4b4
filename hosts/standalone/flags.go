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
	"github.com/headgate/headgate/units"
)

// TextFlag is a flag that is read and printed by functions, a pflag.Value.
type TextFlag struct {
	Kind  string
	Print func() string // nil or "" for no default
	Parse func(text string) error
}

// Type implements pflag.Value.
func (f TextFlag) Type() string { return f.Kind }

// Set implements pflag.Value.
func (f TextFlag) Set(s string) error { return f.Parse(s) }

// String implements pflag.Value.
func (f TextFlag) String() string {
	if f.Print == nil {
		return ""
	}
	return f.Print()
}

// given returns a function that prints a value, "" for its zero value.
func given[T comparable](v *T) func() string {
	return func() string {
		if *v == *new(T) {
			return ""
		}
		return fmt.Sprint(*v)
	}
}

// setAddr returns a function that parses an address of IPv4 or IPv6.
func setAddr(v *netip.Addr) func(string) error {
	return func(s string) error {
		a, err := netip.ParseAddr(s)
		if err != nil || a.Is4In6() || a.Is6() && a.IsLinkLocalUnicast() { // no switch forwards link-local addresses
			return fmt.Errorf("%q: want an IPv4 address, or an IPv6 address that is not link-local", s)
		}
		*v = a
		return nil
	}
}

func (o *Options) setGateway(s string) error {
	m, err := net.ParseMAC(s)
	if err != nil || len(m) != len(o.Gateway) {
		return fmt.Errorf("%q: want a MAC address such as 02:00:00:00:00:01", s)
	}
	copy(o.Gateway[:], m)
	return nil
}

func (o *Options) addFlow(s string) error {
	spec, err := ParseFlow(s)
	if err == nil {
		o.Flows = append(o.Flows, spec)
	}
	return err
}

func (o *Options) addClass(s string) error {
	dscp, class, _ := strings.Cut(s, "=")
	d, err := strconv.ParseUint(dscp, 10, 6)
	if err != nil {
		return fmt.Errorf("%q: want DSCP=CLASS with a DSCP of 0 to 63", s)
	}
	c, err := strconv.ParseUint(class, 10, 3)
	if err != nil {
		return fmt.Errorf("%q: want DSCP=CLASS with a class of 0 to 7", s)
	}
	o.Classes[uint8(d)] = uint8(c)
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
		if err := setAddr(&spec.Dst)(value); err != nil {
			return fmt.Errorf("dst %w", err)
		}
	case "weight":
		spec.Weight, err = ParseWeight(value)
		return err
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
		spec.Priority, err = ParsePriority(value)
		return err
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

// ParseWeight reads a weight: a finite number above 0.
func ParseWeight(text string) (float64, error) {
	w, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("weight %q: want a finite number above 0", text)
	}
	return w, soze.CheckWeight(w)
}

// ParsePriority reads a virtual priority, 1 to channel.MaxPriority.
func ParsePriority(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > channel.MaxPriority {
		return 0, fmt.Errorf("priority %q: want 1 to %d", text, channel.MaxPriority)
	}
	return n, nil
}
