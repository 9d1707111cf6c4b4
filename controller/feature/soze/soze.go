// Package soze is the switch side of Söze: it sets the unit in which every switch stamps
// maxQD. The rest of Söze lives at the hosts.
package soze

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/units"
)

// scaleCapability is the stamping of maxQD.
var scaleCapability = feature.Capability{
	Name: "soze.maxqd", Objects: pipeline.Objects{Tables: []string{ids.TableMaxQDScaleName}},
	Instead: "the switch does not update maxQD",
}

// delayFilter is the program's filter that maxQD's stamps go through, one cell per port.
const delayFilter = "egress.maxqd.delay_filter"

// sampleCapability is the chip's low-pass filter, which smooths the delays before maxQD is stamped. The filter's output
// is undefined until the filter has a time constant.
var sampleCapability = feature.Capability{
	Name: "soze.sample", Objects: pipeline.Objects{Filters: []string{delayFilter}}, SetUp: true,
	TrafficManager: "sets the time constant of the filter",
	Instead:        "maxQD takes the delay of each packet as it is; where there is a filter, nothing is stamped",
}

// New returns the feature.
func New(feature.Callbacks) *feature.Feature {
	return &feature.Feature{
		Name: "soze", Capabilities: []feature.Capability{scaleCapability, sampleCapability},
		Section: config.Section{Key: "soze", Read: read, Check: check}, Desired: desired,
		UDPPort: func(c *config.Config) (uint16, string) {
			return cmp.Or(FromConfig(c).UDPPort, ids.UDPPortMaxQD), "soze.udp_port"
		},
		HostParameters: hostParameters, Shape: shape, ShapedBy: shapedBy,
	}
}

// sampleTime is the time constant of the filter at line rate.
const sampleTime = 10 * units.Microsecond

func shape(env *feature.Env, c *trafficmanager.Config) error {
	if env.Provider(sampleCapability) != pb.ByTrafficManager {
		return nil
	}
	c.Filters = map[string]units.Time{delayFilter: env.Config.Scaled(sampleTime)}
	return nil
}

func shapedBy(_ *feature.Env, field string) string {
	if strings.HasPrefix(field, "filters[") {
		return "scale"
	}
	return ""
}

// maxShift is the largest value in set_scale's 5 bits.
const maxShift = 31

func desired(env *feature.Env) ([]*p4v1.Entity, error) {
	s := env.Switch
	if env.Provider(scaleCapability) != pb.ByProgram {
		return nil, nil
	}
	shift := uint64(FromConfig(env.Config).Shift) + uint64(s.Target.TickShift())
	if shift > maxShift {
		return nil, yamlnode.Fault{Field: "soze.shift", Text: fmt.Sprintf(
			"is %d, which on the switch %q of target %s makes %d; want %d at most", FromConfig(env.Config).Shift, s.Name, s.Target, shift, maxShift-s.Target.TickShift())}
	}
	var c feature.EntityList
	if sampleCapability.InProgram(env.Pipeline) && env.Provider(sampleCapability) == pb.ByNothing {
		if env.Config.Given("soze") {
			return nil, env.Refuse("soze", "given", sampleCapability)
		}
		c.Add(env.Pipeline.Default(ids.TableMaxQDScaleName).Action(ids.ActionDisableStampingName).Entity())
		return c.Result()
	}
	c.Add(env.Pipeline.Default(ids.TableMaxQDScaleName).Action(ids.ActionSetScaleName, feature.Arg("shift", shift)).Entity())
	return c.Result()
}

// Config is the section soze: the parameters of Söze's law and of its maxQD header
// (Söze, §3.1.4, Equation 6).
type Config struct {
	// P is the least target queueing delay at line rate, 1 ns … 1 s; default 3 µs.
	P units.Time
	// K is the range above P, 1 ns … 1 s; default 37 µs.
	K units.Time
	// Alpha is the highest expected rate per unit of weight in this fabric, > Beta;
	// default the rate of the fastest host link.
	Alpha units.Rate
	// Beta is the lowest expected rate per unit of weight, > 0; default a hundredth of Alpha, as in hosts
	// (soze.DefaultBeta).
	Beta units.Rate
	// M is the exponent of the update per round-trip time, 0 < M < 2; default 0.2.
	M float64
	// Shift sets the unit of the maxQD header: 2^Shift µs of the switch's clock, 0 … 16;
	// by default the least that lets the header hold four times scale·(P + K).
	Shift uint8
	// DSCP of Söze's data packets, 0 … 63; default 0.
	DSCP uint8
	// UDPPort is the UDP destination port of packets with the maxQD header, which all laws use: 1 … 65535, except
	// RoCEv2's 4791; default 50151. Tofino has the default compiled in.
	UDPPort uint16
	// AckDSCP of acknowledgements, 0 … 63; default 48 (CS6).
	AckDSCP uint8
}

// Unit returns the unit of the maxQD header in this fabric.
func (s Config) Unit() units.Time { return units.Microsecond << s.Shift }

// FromConfig returns the section of a configuration.
func FromConfig(c *config.Config) Config { return config.SectionOf[Config](c, "soze") }

func hostParameters(c *config.Config) []*pb.HostParameter {
	s := FromConfig(c)
	return []*pb.HostParameter{
		{Law: "soze", Name: "p", Value: c.Scaled(s.P).String()}, {Law: "soze", Name: "k", Value: c.Scaled(s.K).String()},
		{Law: "soze", Name: "alpha", Value: s.Alpha.String()}, {Law: "soze", Name: "beta", Value: s.Beta.String()},
		{Law: "soze", Name: "m", Value: strconv.FormatFloat(s.M, 'g', -1, 64)}, {Law: "soze", Name: "maxqd-unit", Value: s.Unit().String()},
		{Name: "udp-port", Value: strconv.Itoa(int(s.UDPPort))},
	}
}

// noShift marks a shift that the file does not set.
const noShift = 255

func read(m *yamlnode.Map, c *config.Config) any {
	_, fastest := c.HostRates()
	m.Computed("alpha", "beta", "shift")
	s := Config{
		P:     m.Time("p", 3*units.Microsecond, units.Nanosecond, units.Second),
		K:     m.Time("k", 37*units.Microsecond, units.Nanosecond, units.Second),
		Alpha: m.Rate("alpha", fastest, 1, config.MaxRate),
		M:     m.Between("m", soze.DefaultM, 0, 2), Shift: uint8(m.Int("shift", noShift, 0, soze.MaxUnitShift)),
		UDPPort: uint16(m.Int("udp_port", ids.UDPPortMaxQD, 1, 65535)),
		DSCP:    uint8(m.Int("dscp", 0, 0, 63)), AckDSCP: uint8(m.Int("ack_dscp", 48, 0, 63)), // CS6 of RFC 2474
	}
	s.Beta = m.Rate("beta", soze.DefaultBeta(s.Alpha), 1, config.MaxRate)
	if s.Shift == noShift && c.Fits(s.P+s.K) {
		s.Shift = soze.UnitShift(c.Scaled(s.P + s.K))
	}
	return s
}

func check(c *config.Config, d *yamlnode.Doc) {
	s := FromConfig(c)
	if s.UDPPort == ids.UDPPortRoCE {
		d.Fault("soze.udp_port", "is %d, which is RoCEv2's without the maxQD header, want another from 1 to 65535", s.UDPPort)
	}
	if s.Alpha <= s.Beta {
		d.Fault("soze.alpha", "is %v, want more than soze.beta, which is %v", s.Alpha, s.Beta)
	}
	if !c.Fits(s.P + s.K) {
		d.Fault("soze.k", "is %v, which is too long with p %v when multiplied by scale %d", s.K, s.P, c.Scale)
		return
	}
	// The header saturates at 65535 units: the law must be able to see all of [p, p + k].
	if most := 65535 * s.Unit(); c.Scaled(s.P+s.K) > most {
		d.Fault("soze.shift", "is %d: the maxQD header then holds %v at most, want it to hold scale·(p + k) = %v", s.Shift, most, c.Scaled(s.P+s.K))
	}
}
