//go:build linux

package tcp

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/headgate/headgate/api/client"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/prioplus"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/hosts/law/swift"
	"github.com/headgate/headgate/hosts/standalone"
	"github.com/headgate/headgate/hosts/tcp/kernel"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/units"
)

// Class holds the settings that connections start with. They keep these until the controller sends others.
type Class struct {
	App    string
	Weight float64
	// Priority is PrioPlus' virtual priority, from 1 on; a larger one is higher. 0 selects Söze.
	Priority int
}

func (c Class) law() kernel.Law {
	if c.Priority > 0 {
		return kernel.PrioPlus
	}
	return kernel.Soze
}

// Options says how the machine's connections are governed. AddFlags defines flags that set it, and
// Check checks it.
type Options struct {
	Name       string // the host's name in the fabric's configuration; empty without a controller
	Controller string // host:port or unix:PATH; empty for none
	Dial       client.Options
	Netns      string // name or path of the only governed network namespace; empty for all
	Detach     bool

	Default Class
	places  []place

	Rate units.Rate // rate of the link
	Soze soze.Params
	Unit units.Time

	BaseRTT  units.Time   // round trip of the fabric's empty paths, for PrioPlus; 0 until the controller sends it
	Channels channel.Plan // divides delays among priorities; the zero value stretches the paper's plan

	For, Interval time.Duration

	flags *pflag.FlagSet
}

// place is the class of the connections of a cgroup or, if that is empty, of a mark.
type place struct {
	cgroup string
	mark   uint32
	Class
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		Default: Class{Weight: 1},
		Soze:    soze.Params{M: soze.DefaultM}, Interval: time.Second,
	}
}

// AddFlags defines the flags that set the options.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.flags = fs
	fs.StringVar(&o.Name, "name", o.Name, "name of the host in the fabric's configuration; with --netns it tells apart the agents of one machine")
	fs.StringVar(&o.Controller, "controller", o.Controller, "address of the controller's API, host:port or unix:PATH, to report to and to take weights and the fabric's parameters from; values given by flags stay")
	fs.StringVar(&o.Netns, "netns", o.Netns, "govern only connections of this network namespace, as a name of ip-netns(8) or a path (default: of all)")
	fs.BoolVar(&o.Detach, "detach", o.Detach, "remove the programs that an agent with this --name and --netns left in the kernel, and end; running connections keep their law")
	fs.Float64Var(&o.Default.Weight, "weight", o.Default.Weight, "weight of connections without another one")
	fs.StringVar(&o.Default.App, "app", o.Default.App, "application of such connections, for budgets")
	fs.IntVar(&o.Default.Priority, "priority", o.Default.Priority, "govern such connections by PrioPlus with this virtual priority, 1 and up, larger is higher (default: by Söze)")
	fs.Var(standalone.TextFlag{Kind: "PATH[,KEY=VALUE]", Parse: o.addCgroup}, "cgroup", "govern connections of a cgroup v2 folder and those below it, with weight=W, priority=N and app=NAME of its own; repeatable (default: all cgroups)")
	fs.Var(standalone.TextFlag{Kind: "MARK[,KEY=VALUE]", Parse: o.addMark}, "mark", "weight=W, priority=N and app=NAME of connections of sockets with this mark (SO_MARK), above their cgroup's; repeatable")
	fs.Var(units.Flag{Value: &o.Rate}, "rate", "rate of the link, which no connection exceeds")
	fs.Var(units.Flag{Value: &o.Soze.P}, "p", "Söze: queueing delay of a link that one flow fills (default: the paper's 3us times 40Gbps over --rate, at least 3us)")
	fs.Var(units.Flag{Value: &o.Soze.K}, "k", "Söze: range of queueing delay from rate per weight alpha to beta (default: 37us stretched as p)")
	fs.Var(units.Flag{Value: &o.Soze.Alpha}, "alpha", "Söze: highest rate per unit of weight (default: --rate)")
	fs.Var(units.Flag{Value: &o.Soze.Beta}, "beta", "Söze: lowest rate per unit of weight (default: alpha/100)")
	fs.Float64Var(&o.Soze.M, "m", o.Soze.M, "Söze: exponent per round trip, above 0 and below 2")
	fs.Var(units.Flag{Value: &o.Unit}, "maxqd-unit", "unit of maxQD: the switches' clock tick shifted by their scale (default: what a fabric with this p and k has)")
	fs.Var(units.Flag{Value: &o.BaseRTT}, "base-rtt", "PrioPlus: round trip of a full packet on an empty path (default: the controller's)")
	fs.Var(units.Flag{Value: &o.Channels.Fluctuation}, "fluctuation", "PrioPlus: A, fluctuation of the delay by flows of one priority (default: the paper's 3.2us times 40Gbps over --rate)")
	fs.Var(units.Flag{Value: &o.Channels.Noise}, "noise", "PrioPlus: B, noise of a measured delay (default: 0.8us stretched as A)")
	fs.DurationVar(&o.For, "for", o.For, "how long to run (default: until interrupted)")
	fs.DurationVar(&o.Interval, "interval", o.Interval, "time between lines")
}

// paperRate is the link rate for which the Söze paper gives its times.
const paperRate = 40 * units.Gbps

func (o *Options) flow() law.Flow {
	return law.Flow{Rate: o.Rate, MSS: 1448, BaseRTT: o.BaseRTT, Scale: max(1, float64(paperRate)/float64(o.Rate))}
}

// channel returns the channel that a virtual priority has until the controller sends one.
func (o *Options) channel(priority int) (channel.Channel, error) {
	f, paper := o.flow(), channel.Paper(o.BaseRTT)
	plan := o.Channels
	plan.Base = o.BaseRTT
	plan.Fluctuation = cmp.Or(plan.Fluctuation, f.Stretch(paper.Fluctuation))
	plan.Noise = cmp.Or(plan.Noise, f.Stretch(paper.Noise))
	return plan.Channel(priority)
}

// params converts the flags to the kernel's parameters. Without a base round trip it has none for
// PrioPlus.
func (o *Options) params() (v kernel.Params, err error) {
	if o.Rate <= 0 {
		return v, fmt.Errorf("--rate %v: want the link's rate, more than 0", o.Rate)
	}
	if v.Soze, v.Unit, err = o.soze(); err != nil || o.BaseRTT == 0 {
		return v, err
	}
	f := o.flow()
	f.Rand = rand.New(rand.NewPCG(0, 0)) // the kernel's law does not use it
	c, err := o.channel(max(o.Default.Priority, 1))
	if err != nil {
		return v, fmt.Errorf("--fluctuation, --noise: %w", err)
	}
	f.Target, f.Limit = c.Target, c.Limit
	v.Swift, v.PrioPlus = param.For[swift.Params](f), param.For[prioplus.Params](f)
	v.PrioPlus.Tolerance = max(v.PrioPlus.Tolerance, min(o.Channels.Noise, (f.Target-f.BaseRTT)/2)) // the base delay is noisy, too
	return v, errors.Join(param.Check(v.Swift.Visit), param.Check(v.PrioPlus.Visit))
}

// soze returns Söze's parameters and the unit of maxQD.
func (o *Options) soze() (p soze.Params, unit units.Time, err error) {
	p = param.For[soze.Params](o.flow())
	p.M, p.Alpha, p.MinWindow = o.Soze.M, cmp.Or(o.Soze.Alpha, o.Rate), 2*p.MSS // a receiver acknowledges every second segment
	p.WholeWindow = true                                                        // an application's first bytes are often few
	p.P, p.K = cmp.Or(o.Soze.P, p.P), cmp.Or(o.Soze.K, p.K)
	p.Beta = cmp.Or(o.Soze.Beta, soze.DefaultBeta(p.Alpha))
	unit = cmp.Or(o.Unit, units.Microsecond<<soze.UnitShift(p.P+p.K))
	if _, err := maxqd.NewUnit(unit); err != nil {
		return p, 0, fmt.Errorf("--maxqd-unit: %w", err)
	}
	if err := param.Check(p.Visit); err != nil {
		return p, 0, fmt.Errorf("--%w", err)
	}
	return p, unit, nil
}

// Check returns all faults at once. Each names the flag, the value and what is allowed.
func (o *Options) Check() error {
	_, err := o.params()
	errs := []error{err}
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	if err := soze.CheckWeight(o.Default.Weight); err != nil {
		errs = append(errs, fmt.Errorf("--weight: %w", err))
	}
	n, classes := o.Default.Priority, 1+len(o.places)
	fault(n < 0 || n > channel.MaxPriority, "--priority %d: want 1 to %d, or 0 for Söze", n, channel.MaxPriority)
	fault(o.BaseRTT < 0 || o.BaseRTT > 10*units.Second, "--base-rtt %v: want more than 0 and at most 10s", o.BaseRTT)
	fault(o.BaseRTT == 0 && o.Controller == "" && o.prioritises(), "--base-rtt 0s: priorities need the round trip of an empty path, or --controller, which sends it")
	fault(o.Controller != "" && o.Name == "", `--name "": --controller wants the host's name in the fabric's configuration`)
	fault(o.Netns != "" && o.Name == "", `--name "": --netns wants a name, which tells the agents of one machine apart`)
	fault(classes > kernel.MaxClasses, "--cgroup, --mark: %d together: want at most %d", classes-1, kernel.MaxClasses-1)
	fault(o.Interval <= 0, "--interval %v: want more than 0", o.Interval)
	fault(o.For < 0, "--for %v: want 0 or more", o.For)
	return errors.Join(errs...)
}

func (o *Options) prioritises() bool {
	return o.Default.Priority > 0 || slices.ContainsFunc(o.places, func(p place) bool { return p.Priority > 0 })
}

// parsePlace reads a value of --cgroup or --mark: the place, and the class of its connections. Fields
// that are not given get the defaults later.
func parsePlace(s string) (at string, c Class, err error) {
	at, rest, more := strings.Cut(s, ",")
	for field := range strings.SplitSeq(rest, ",") {
		if !more {
			break
		}
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "weight":
			c.Weight, err = standalone.ParseWeight(value)
		case "priority":
			c.Priority, err = standalone.ParsePriority(value)
		case "app":
			c.App = value
		default:
			err = fmt.Errorf("key %q: want weight, priority or app", key)
		}
		if err != nil {
			return "", c, err
		}
	}
	return at, c, nil
}

func (o *Options) addCgroup(s string) error {
	at, c, err := parsePlace(s)
	if err != nil {
		return err
	}
	if !isCgroup(at) {
		return fmt.Errorf("%q: want a folder of a cgroup v2 file system, such as /sys/fs/cgroup/system.slice", at)
	}
	o.places = append(o.places, place{cgroup: filepath.Clean(at), Class: c})
	return nil
}

func (o *Options) addMark(s string) error {
	at, c, err := parsePlace(s)
	if err != nil {
		return err
	}
	mark, err := strconv.ParseUint(at, 0, 32)
	if err != nil || mark == 0 {
		return fmt.Errorf("mark %q: want 1 to 4294967295", at)
	}
	o.places = append(o.places, place{mark: uint32(mark), Class: c})
	return nil
}

func isCgroup(dir string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(dir, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC
}

// resolve numbers the classes and lists the cgroups to attach to and the class of each mark.
func (o *Options) resolve() (classes []Class, cgroups []kernel.Cgroup, marks map[uint32]uint32, err error) {
	classes, marks = []Class{o.Default}, map[uint32]uint32{}
	for _, p := range o.places {
		n := uint32(len(classes))
		classes = append(classes, Class{cmp.Or(p.App, o.Default.App), cmp.Or(p.Weight, o.Default.Weight), cmp.Or(p.Priority, o.Default.Priority)})
		if p.cgroup != "" {
			cgroups = append(cgroups, kernel.Cgroup{Path: p.cgroup, Class: n})
		} else {
			marks[p.mark] = n
		}
	}
	if len(cgroups) == 0 {
		roots := []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}
		i := slices.IndexFunc(roots, isCgroup)
		if i < 0 {
			return nil, nil, nil, fmt.Errorf("no cgroup v2 file system at %s: want one, by mount -t cgroup2", strings.Join(roots, " or "))
		}
		cgroups = []kernel.Cgroup{{Path: roots[i]}}
	}
	return classes, cgroups, marks, nil
}
