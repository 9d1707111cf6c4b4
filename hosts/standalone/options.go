// Package standalone is a host agent as a process of its own: what `headgate host` does.
// Options come from flags, rates are printed line by line while it runs, and a summary of
// every flow is written as JSON at the end.
package standalone

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/spf13/pflag"

	"github.com/headgate/headgate/api/client"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// Options are the settings of a host process. The zero value is not usable; NewOptions has the
// defaults.
type Options struct {
	Interface, Name string
	IP              netip.Addr // the interface's first IPv4 address when unset
	Gateway         packet.MAC // see nic.Config when unset
	Rate            units.Rate
	MSS             units.Bytes
	DataDSCP        uint8
	AckDSCP         uint8

	Flows      []agent.FlowSpec
	ListenOnly bool

	Law     string   // name of a law in the registry, or prioplus
	Params  []string // NAME=VALUE
	BaseRTT units.Time
	Scale   float64 // the factor that stretches the papers' times
	Soze    soze.Params
	Unit    units.Time
	UDPPort uint16 // port of packets with the maxQD shim

	// PrioPlus' channels, see checkChannels.
	Priority      int
	Channels      channel.Plan
	Target, Limit units.Time
	Level         string

	CNPGap    units.Time      // 0: no notification point
	Classes   map[uint8]uint8 // PFC class by DSCP
	IgnorePFC bool
	Lossless  units.Classes // classes whose PAUSE is obeyed

	Controller string         // host:port or unix:PATH; empty for none
	Dial       client.Options // options of calls to the controller

	For      time.Duration // 0 runs until interrupted
	WarmUp   time.Duration // not counted in the summary's rates
	Interval time.Duration // between lines
	JSON     string        // file of the summary, "-" for standard output; empty for none

	flags   *pflag.FlagSet // the given flags, see adopt; nil without any
	adopted bool           // the fabric's parameters have come
}

// NewOptions returns the defaults: Söze for 20 Mb/s, the paper's times 2000.
func NewOptions() *Options {
	return &Options{
		Rate: 20 * units.Mbps, MSS: 1000, AckDSCP: 48, Law: "soze", UDPPort: maxqd.Port,
		Level: "low", Classes: map[uint8]uint8{}, Lossless: 0xff,
		Soze:   soze.Params{P: 6 * units.Millisecond, K: 74 * units.Millisecond, M: soze.DefaultM},
		WarmUp: 5 * time.Second, Interval: time.Second,
	}
}

// AddFlags defines the flags that set the options.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.flags = fs
	fs.StringVar(&o.Interface, "interface", o.Interface, "network interface, such as h1-eth0")
	fs.StringVar(&o.Name, "name", o.Name, "name of the host in the fabric's configuration (default: the interface's name)")
	fs.Var(TextFlag{"address", given(&o.IP), setAddr(&o.IP)}, "ip", "IPv4 or IPv6 address; flows are of the same version (default: the interface's first IPv4 address)")
	fs.Var(TextFlag{"MAC", given(&o.Gateway), o.setGateway}, "gateway-mac", "MAC address of the next hop (default: the default route's from the kernel's neighbour table, 02:00:00:00:00:fe without such a route)")
	fs.Var(units.Flag{Value: &o.Rate}, "rate", "rate of the link")
	fs.Var(units.Flag{Value: &o.MSS}, "mss", "payload of a full packet")
	fs.Uint8Var(&o.DataDSCP, "data-dscp", o.DataDSCP, "DSCP of data, 0 to 63")
	fs.Uint8Var(&o.AckDSCP, "ack-dscp", o.AckDSCP, "DSCP of acknowledgements, 1 to 63")
	fs.Var(TextFlag{"flow", nil, o.addFlow}, "flow", "a flow to send, repeatable: dst=IPV4[,weight=W][,size=BYTES][,sport=PORT][,app=NAME][,priority=N][,deadline=TIME][,dscp=N]")
	fs.BoolVar(&o.ListenOnly, "listen-only", o.ListenOnly, "send no flows, only answer other hosts' flows")
	fs.StringVar(&o.Law, "law", o.Law, "congestion law, one of those below")
	fs.StringArrayVar(&o.Params, "param", o.Params, "a parameter of the law as `NAME=VALUE`, such as alpha_timer=110ms; repeatable")
	fs.Var(units.Flag{Value: &o.BaseRTT}, "base-rtt", "round trip of a full packet on an empty path, for laws based on delay")
	fs.Float64Var(&o.Scale, "scale", o.Scale, "factor of the papers' times, 1 to 1e6 (default: 40 Gb/s over --rate, at least 1)")
	fs.IntVar(&o.Priority, "priority", o.Priority, "PrioPlus: virtual priority of flows that name none, 1 and up, larger is higher")
	fs.Var(TextFlag{"plan", o.printChannels, o.setChannels}, "channels", "PrioPlus: the division of delays into channels, such as fluctuation=6.4ms,noise=1.6ms (default: the controller's, or the paper's 3.2us and 0.8us stretched)")
	fs.Var(units.Flag{Value: &o.Target}, "target", "PrioPlus: D_target, a round trip, in place of --priority")
	fs.Var(units.Flag{Value: &o.Limit}, "limit", "PrioPlus: D_limit, a round trip; none for a highest priority")
	fs.StringVar(&o.Level, "level", o.Level, "PrioPlus: how flows start, low, middle or high")
	fs.Var(units.Flag{Value: &o.CNPGap}, "cnp-gap", "answer packets marked CE with congestion notifications, at most one per flow and this time (DCQCN has 50us; default: none)")
	fs.Var(TextFlag{"DSCP=CLASS", nil, o.addClass}, "pfc-class", "class of a DSCP for PFC frames, as DSCP=CLASS; repeatable (default: DSCP/8)")
	fs.Var(units.Flag{Value: &o.Lossless}, "lossless", "classes whose PAUSE is obeyed, such as 3,4, or none")
	fs.BoolVar(&o.IgnorePFC, "ignore-pfc", o.IgnorePFC, "do not obey PFC frames, as --lossless none")
	fs.Var(units.Flag{Value: &o.Soze.P}, "p", "Söze: queueing delay of a link that one flow fills")
	fs.Var(units.Flag{Value: &o.Soze.K}, "k", "Söze: range of queueing delay from rate per weight alpha to beta")
	fs.Var(units.Flag{Value: &o.Soze.Alpha}, "alpha", "Söze: highest rate per unit of weight (default: the link's rate)")
	fs.Var(units.Flag{Value: &o.Soze.Beta}, "beta", "Söze: lowest rate per unit of weight (default: alpha/100)")
	fs.Float64Var(&o.Soze.M, "m", o.Soze.M, "Söze: exponent per round trip, above 0 and below 2")
	fs.Var(units.Flag{Value: &o.Unit}, "maxqd-unit", "unit of the maxQD field: the switches' clock tick shifted by their scale (default: what a fabric with this p and k has)")
	fs.Uint16Var(&o.UDPPort, "udp-port", o.UDPPort, "UDP port of packets with the maxQD shim, the same at all hosts and switches, as soze.udp_port of the fabric file")
	fs.StringVar(&o.Controller, "controller", o.Controller, "address of the controller's API, host:port or unix:PATH, to report to and to take weights, channels and the fabric's parameters from; values given by flags stay")
	fs.DurationVar(&o.For, "for", o.For, "how long to run (default: until interrupted)")
	fs.DurationVar(&o.WarmUp, "warm-up", o.WarmUp, "time at the start, or after a flow starts, that the summary's rates leave out")
	fs.DurationVar(&o.Interval, "interval", o.Interval, "time between lines")
	fs.StringVar(&o.JSON, "json", o.JSON, `file to write the summary to at the end, "-" for standard output`)
}

// Check fills in what follows from other options, and returns every fault at once, each
// naming the flag, the value and what is allowed.
func (o *Options) Check() error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	if o.Name == "" {
		o.Name = o.Interface
	}
	if o.Soze.Alpha == 0 {
		o.Soze.Alpha = o.Rate
	}
	if o.Soze.Beta == 0 {
		o.Soze.Beta = soze.DefaultBeta(o.Soze.Alpha)
	}
	if o.Unit == 0 && (o.flags == nil || !o.flags.Changed("maxqd-unit")) {
		o.Unit = units.Microsecond << soze.UnitShift(o.Soze.P+o.Soze.K)
	}
	o.Soze.MaxRate, o.Soze.MSS = o.Rate, o.MSS
	if o.Scale == 0 && o.Rate > 0 {
		o.Scale = max(1, float64(paperRate)/float64(o.Rate))
	}
	fault(o.Interface == "", "--interface: want a network interface's name")
	fault(o.Rate <= 0, "--rate %v: want more than 0", o.Rate)
	fault(o.DataDSCP > 63, "--data-dscp %d: want 0 to 63", o.DataDSCP)
	fault(o.AckDSCP < 1 || o.AckDSCP > 63, "--ack-dscp %d: want 1 to 63", o.AckDSCP)
	most := units.Bytes(1500 - packet.Overhead(o.IP))
	fault(o.MSS < 1 || o.MSS > most, "--mss %v: want 1B to %v, what fits an MTU of 1500", o.MSS, most)
	fault(o.UDPPort == 0 || o.UDPPort == packet.RoCEv2Port, "--udp-port %d: want 1 to 65535 but not %d, which is RoCEv2's", o.UDPPort, packet.RoCEv2Port)
	fault(o.ListenOnly && len(o.Flows) > 0, "--listen-only and --flow exclude each other")
	fault(!o.ListenOnly && len(o.Flows) == 0, "--flow: want at least one, or --listen-only")
	fault(o.For < 0, "--for %v: want 0 or more", o.For)
	fault(o.WarmUp < 0, "--warm-up %v: want 0 or more", o.WarmUp)
	fault(o.For > 0 && o.WarmUp >= o.For && !o.ListenOnly, "--warm-up %v: want less than --for, %v", o.WarmUp, o.For)
	fault(o.Rate > 0 && !(o.Scale >= 1 && o.Scale <= 1e6), "--scale %v: want 1 to 1e6", o.Scale)
	fault(o.BaseRTT < 0 || o.BaseRTT > 10*units.Second, "--base-rtt %v: want more than 0 and at most 10s", o.BaseRTT)
	fault(o.CNPGap > 10*units.Second, "--cnp-gap %v: want 0s (none) to 10s", o.CNPGap)
	fault(o.Interval <= 0, "--interval %v: want more than 0", o.Interval)
	if _, err := maxqd.NewUnit(o.Unit); err != nil {
		errs = append(errs, fmt.Errorf("--maxqd-unit: %w", err))
	}
	if err := o.checkLaw(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// paperRate is the rate that the papers' times are for, as --scale has it.
const paperRate = 40 * units.Gbps

// checkLaw returns the error that the law would return at a flow's start.
func (o *Options) checkLaw() error {
	k, err := o.lawKind()
	if err == nil && (o.Rate <= 0 || o.MSS < 1 || !(o.Scale >= 1)) {
		return nil // said already
	}
	if err == nil && o.awaitsBase(k) {
		return nil // checked when it has come
	}
	create, err := o.flowLaw()
	if err != nil {
		return err
	}
	flows := o.Flows
	if len(flows) == 0 { // no flow needs the law, but its faults are reported too
		flows = []agent.FlowSpec{{Weight: 1, Size: units.MB, Deadline: units.Second, Priority: max(o.Priority, 1)}}
		if o.Target != 0 || !k.Needs.Channel {
			flows[0].Priority = 0
		}
	}
	for _, f := range flows {
		f, err := o.withChannel(f)
		if err == nil {
			_, err = create(f)
		}
		if err != nil {
			return fmt.Errorf("--law %s: %w", o.Law, err)
		}
	}
	return nil
}
