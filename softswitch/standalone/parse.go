package standalone

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/internal/service"
	"github.com/headgate/headgate/softswitch"
	"github.com/headgate/headgate/softswitch/stages"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/units"
)

// JSONVersion is the newest BMv2 JSON that the engine reads.
const JSONVersion = "2.24"

// flags holds the raw flags. Their names, defaults and meaning are those of BMv2 1.15's
// options_parse.cpp and simple_switch_grpc/main.cpp.
type flags struct {
	general, target *pflag.FlagSet

	interfaces, rates, limits []string
	traced                    []string
	scheduler                 string
	classes, action           string
	detection, restoration    time.Duration // times of the PFC watchdog
	noP4, version, jsonVers   bool
	useFiles                  int
	queues                    int
	options                   Options
}

func newFlags() *flags {
	f := &flags{}
	o := &f.options
	g := pflag.NewFlagSet("headgate switch", pflag.ContinueOnError)
	g.SortFlags = false
	g.Usage = func() {} // Main prints it
	f.general = g
	g.StringArrayVarP(&f.interfaces, "interface", "i", nil, "attach a network interface as a port of 0 to 511, such as `PORT@NAME`; may be repeated")
	g.DurationVar(&o.InterfaceWait, "interface-wait", 0, "how long an interface may take to appear, a `TIME` such as 1m; it must be there by default")
	g.DurationVar(&o.BusyPoll, "busy-poll", 0, "for how long the switch looks for more frames after a frame before it sleeps, a `TIME` of 0 to 1s such as 5ms: a frame within it need not wake the switch, which takes a core meanwhile")
	g.StringVar(&o.Driver, "port-driver", "auto", "how interfaces are driven, `DRIVER`: afpacket; xdp (AF_XDP), which passes by this machine's network stack, queueing disciplines and captures; or auto, xdp on veth interfaces where that loses no function")
	g.Uint64Var(&o.DeviceID, "device-id", 0, "P4Runtime device ID, a number `N`")
	g.BoolVar(&f.noP4, "no-p4", false, "start without a program and wait for one over P4Runtime")
	g.StringVar(&o.P4Info, "p4info", "", "`FILE` with the P4Info of the program, so that P4Runtime works without a push")
	g.StringVar(&o.PcapDir, "pcap", "", "write NAME_in.pcap and NAME_out.pcap of each interface to directory `DIR`")
	g.Lookup("pcap").NoOptDefVal = "."
	g.IntVar(&f.useFiles, "use-files", -1, "read frames from NAME_in.pcap and write to NAME_out.pcap in place of interfaces, after waiting `SECONDS`")
	g.Lookup("use-files").DefValue = "0" // hides the default
	g.StringArrayVar(&f.rates, "port-rate", nil, "line rate of a port as `PORT=RATE`, such as 1=20Mbps; unlimited by default; may be repeated")
	g.StringArrayVar(&f.limits, "queue-limit", nil, "`LIMIT` of queues in packets, or in bytes with a unit: of all, or of PORT=LIMIT or PORT:QUEUE=LIMIT; 64 packets by default; may be repeated")
	g.StringVar(&f.scheduler, "scheduler", "strict", "strict, or a `LIST` with a weight (DWRR) or strict for each queue, such as 1,1,2,strict")
	g.BoolVar(&o.PFC.Enabled, "pfc", false, "obey PFC frames (IEEE 802.1Qbb) by pausing the queues of their classes, and consume all MAC control frames; in bit times of --port-rate, of 10 Gb/s on ports without one")
	g.StringVar(&f.classes, "pfc-classes", "", "class of each queue for --pfc, a `LIST` of 0 to 7 or none, such as 0,1,2,3; by default that of its number, none for queue 7 and above")
	g.DurationVar(&f.detection, "pfcwd-detection-time", 0, "with --pfc, how long a port's peer may pause a class for 98 % of the time, a `TIME` such as 200ms; no limit by default")
	g.DurationVar(&f.restoration, "pfcwd-restoration-time", 0, "`TIME` without a PAUSE after which the class obeys PAUSE again; by default the detection time")
	g.StringVar(&f.action, "pfcwd-action", "", "what happens to a class until then, `ACTION`: drop (the default), forward or alert, as SONiC's pfcwd")
	g.BoolVar(&o.LogConsole, "log-console", false, "log to standard output, with the path of packets through the program: all packets with --log-level debug or --trace, 100 a second without a level")
	g.StringArrayVar(&f.traced, "trace", nil, "log only packets that arrived on port=N, or that have FIELD=VALUE after the parser, a `FILTER` such as ipv4.dstAddr=10.0.0.2; may be repeated, and all must hold")
	g.BoolVar(&o.Stats, "stats", false, "print packets, drops by reason and ns by stage to standard output at the end and at SIGUSR1")
	g.StringVar(&o.Metrics, "metrics", "", "serve packets and drops by reason as OpenMetrics at `HOST:PORT`, path /metrics")
	g.StringVar(&o.LogFile, "log-file", "", "log to `FILE`, with the path of packets through the program if --log-level debug or --trace asks for it")
	g.Var(&o.LogFormat, "log-format", service.FormatUsage)
	g.StringVarP(&o.LogLevel, "log-level", "L", "info", "`LEVEL` of the log: trace, debug, info, warn, error or off")
	g.StringVar(&o.Profile, "pprof", "", service.ProfileUsage)
	g.BoolVarP(&f.version, "version", "v", false, "print the version")
	g.BoolVar(&f.jsonVers, "json-version", false, "print the newest BMv2 JSON version that is understood")

	t := pflag.NewFlagSet("headgate switch --", pflag.ContinueOnError)
	t.SortFlags = false
	t.Usage = func() {}
	f.target = t
	t.StringVar(&o.GRPCAddr, "grpc-server-addr", "0.0.0.0:9559", "address of the P4Runtime server, `HOST:PORT`, unix:PATH or another form of gRPC")
	t.BoolVar(&o.TLS.Enabled, "grpc-server-ssl", false, "serve P4Runtime over TLS")
	t.StringVar(&o.TLS.CA, "grpc-server-cacert", "", "`PEM` file of CA certificates to verify clients against")
	t.StringVar(&o.TLS.Cert, "grpc-server-cert", "", "`PEM` file of the server's certificate")
	t.StringVar(&o.TLS.Key, "grpc-server-key", "", "`PEM` file of the server's key")
	t.BoolVar(&o.TLS.ClientAuth, "grpc-server-with-client-auth", false, "clients must have a valid certificate")
	t.Uint32Var(&o.CPUPort, "cpu-port", 0, "port `N` of packet-in and packet-out, 1 to 511; without it there is no packet I/O")
	t.Uint32Var(&o.DropPort, "drop-port", softswitch.DefaultDropPort, "port `N` that means drop")
	t.IntVar(&f.queues, "priority-queues", 1, "number `N` of queues of a port, 1 to 32")

	for _, c := range compatible() {
		set := f.set(c)
		if c.bare {
			set.Bool(c.name, false, "")
		} else {
			set.String(c.name, "", "")
		}
		set.Lookup(c.name).Hidden = true
	}
	return f
}

// Usage describes the flags.
func Usage() string {
	f := newFlags()
	return "Flags:\n" + f.general.FlagUsages() + "\nFlags behind --, as for simple_switch_grpc:\n" + f.target.FlagUsages()
}

func parse(args []string) (*flags, error) {
	f := newFlags()
	if err := f.general.Parse(joinPcap(args)); err != nil {
		return nil, err
	}
	if f.version || f.jsonVers {
		return f, nil
	}
	own := f.general.Args()
	if dash := f.general.ArgsLenAtDash(); dash >= 0 {
		if err := f.target.Parse(own[dash:]); err != nil {
			return nil, err
		}
		own = own[:dash]
		if f.target.NArg() > 0 {
			return nil, fmt.Errorf("argument %q behind --: want flags only", f.target.Arg(0))
		}
	}
	if err := f.unused(); err != nil {
		return nil, err
	}
	return f, f.check(own)
}

// joinPcap turns `--pcap DIR` into `--pcap=DIR`, because the value of BMv2's --pcap is optional and
// may be an argument of its own. An argument that names a program is not taken as the directory.
func joinPcap(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(out, args[i:]...)
		}
		if args[i] == "--pcap" && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") && !strings.HasSuffix(args[i+1], ".json") {
			out = append(out, "--pcap="+args[i+1])
			i++
			continue
		}
		out = append(out, args[i])
	}
	return out
}

// unused records flags that have no effect, and refuses those that the switch cannot obey.
func (f *flags) unused() (err error) {
	for _, c := range compatible() {
		switch {
		case !f.set(c).Changed(c.name):
		case c.refused:
			err = errors.Join(err, fmt.Errorf("--%s: %s", c.name, c.why))
		default:
			f.options.Ignored = append(f.options.Ignored, fmt.Sprintf("--%s has no effect: %s", c.name, c.why))
		}
	}
	return err
}

func (f *flags) check(own []string) (err error) {
	o := &f.options
	switch {
	case len(own) > 1:
		return fmt.Errorf("argument %q: want one JSON program only; target flags go behind --", own[1])
	case f.noP4 && len(own) == 1:
		o.NoEffect = append(o.NoEffect, fmt.Sprintf("%s has no effect: --no-p4 was given", own[0]))
	case len(own) == 1:
		o.Program = own[0]
	case !f.noP4:
		return errors.New("no program: want the path of a BMv2 JSON file, or --no-p4")
	}
	if o.P4Info != "" && o.Program == "" {
		return errors.New("--p4info: want a JSON program with it")
	}
	if o.Interfaces, err = parseInterfaces(f.interfaces); err != nil {
		return err
	}
	if o.BusyPoll < 0 || o.BusyPoll > time.Second {
		return fmt.Errorf("--busy-poll %v: want 0 to 1s", o.BusyPoll)
	}
	if o.Driver != "auto" && o.Driver != "afpacket" && o.Driver != "xdp" {
		return fmt.Errorf("--port-driver %q: want auto, afpacket or xdp", o.Driver)
	}
	if o.LogConsole && o.LogFile != "" {
		return errors.New("--log-console and --log-file: want one of them")
	}
	if _, err := level(o.LogLevel); err != nil {
		return err
	}
	if err := o.parseTrace(f.traced, f.general.Changed("log-level")); err != nil {
		return err
	}
	if o.Stats {
		o.Times = stages.New()
	}
	if f.useFiles >= 0 || f.general.Changed("use-files") { // as in BMv2, a negative wait means no wait
		o.UseFiles, o.Wait = true, max(0, min(f.useFiles, math.MaxInt32))
		if o.PcapDir != "" {
			o.NoEffect = append(o.NoEffect, "--pcap has no effect: with --use-files all frames are in files")
			o.PcapDir = ""
		}
		if f.general.Changed("port-driver") {
			o.NoEffect = append(o.NoEffect, "--port-driver has no effect: with --use-files there are no interfaces")
		}
	}
	if o.PcapDir != "" {
		if info, err := os.Stat(o.PcapDir); err != nil || !info.IsDir() {
			return fmt.Errorf("--pcap %q: want an existing directory", o.PcapDir)
		}
	}
	return f.checkTarget()
}

// checkTarget fills in the options of the flags after --, and the options that depend on them.
func (f *flags) checkTarget() (err error) {
	o := &f.options
	if f.target.Changed("cpu-port") && (o.CPUPort < 1 || o.CPUPort > 511) {
		return fmt.Errorf("--cpu-port %d: want 1 to 511", o.CPUPort)
	}
	if o.DropPort < 1 || o.DropPort > 511 {
		return fmt.Errorf("--drop-port %d: want 1 to 511", o.DropPort)
	}
	if o.CPUPort == o.DropPort {
		return fmt.Errorf("--cpu-port %d is the drop port: give one of them another number", o.CPUPort)
	}
	for _, p := range o.Interfaces {
		switch p.Number {
		case o.DropPort:
			return fmt.Errorf("--interface %d@%s: port %d is the drop port: use another port or --drop-port", p.Number, p.Name, p.Number)
		case o.CPUPort:
			if o.CPUPort != 0 {
				return fmt.Errorf("--interface %d@%s: port %d is the CPU port: use another port or --cpu-port", p.Number, p.Name, p.Number)
			}
		}
	}
	if f.queues < 1 || f.queues > tm.MaxQueues {
		return fmt.Errorf("--priority-queues %d: want 1 to %d", f.queues, tm.MaxQueues)
	}
	o.Traffic.Queues = f.queues
	if o.Traffic.Schedule, err = parseScheduler(f.scheduler, f.queues); err != nil {
		return err
	}
	if f.classes != "" {
		if !o.PFC.Enabled {
			return errors.New("--pfc-classes: want --pfc with it")
		}
		if o.PFC.Classes, err = parseClasses(f.classes, f.queues); err != nil {
			return err
		}
	}
	o.PFC.Watch = externs.Settings{
		Detection: units.FromDuration(f.detection), Restoration: units.FromDuration(f.restoration), Action: externs.Action(f.action),
	}
	switch on := f.detection != 0; {
	case !on && (f.restoration != 0 || f.action != ""):
		return errors.New("--pfcwd-restoration-time and --pfcwd-action: want --pfcwd-detection-time with them")
	case on && !o.PFC.Enabled:
		return errors.New("--pfcwd-detection-time: want --pfc with it")
	}
	if err := o.parseRates(f.rates); err != nil {
		return err
	}
	if err := o.parseLimits(f.limits); err != nil {
		return err
	}
	return o.TLS.check(o)
}

func (t *TLSOptions) check(o *Options) error {
	if !t.Enabled {
		if t.CA != "" || t.Cert != "" || t.Key != "" || t.ClientAuth {
			o.NoEffect = append(o.NoEffect, "certificates and --grpc-server-with-client-auth have no effect without --grpc-server-ssl")
		}
		return nil
	}
	switch {
	case t.Cert == "":
		return errors.New("--grpc-server-ssl: want --grpc-server-cert with it")
	case t.Key == "":
		return errors.New("--grpc-server-ssl: want --grpc-server-key with it")
	case t.ClientAuth && t.CA == "":
		return errors.New("--grpc-server-with-client-auth: want --grpc-server-cacert with it")
	}
	return nil
}

// compat is a flag of BMv2 that has no effect in this switch. The switch accepts it, so that
// scripts work, and logs that it has no effect. If the flag asks for something that the switch
// does not do, the switch refuses it.
type compat struct {
	name    string
	target  bool // belongs after --
	bare    bool // takes no value
	refused bool
	why     string
}

func compatible() []compat {
	return []compat{
		{name: "thrift-port", why: "there is no Thrift service: rates and limits are --port-rate and --queue-limit"},
		{name: "nanolog", why: "there is no nanomsg log"},
		{name: "notifications-addr", why: "notifications go by P4Runtime"},
		{name: "log-flush", bare: true, why: "log lines are written as soon as the output takes them"},
		{name: "log-file-max-size", why: "log files are not rotated"},
		{name: "log-file-max-files", why: "log files are not rotated"},
		{name: "max-port-count", why: "the number of ports is not limited"},
		{name: "debugger", bare: true, why: "there is no debugger"},
		{name: "debugger-addr", why: "there is no debugger"},
		{name: "dump-packet-data", why: "packets are not dumped: use --pcap"},
		{name: "disable-swap", target: true, bare: true, why: "a pipeline can always be replaced"},
		{name: "max-mc-groups", target: true, why: "the number of multicast groups is not limited"},
		{name: "max-l1-entries", target: true, why: "the number of replicas is not limited"},
		{name: "max-l2-entries", target: true, why: "the number of replicas is not limited"},
		{name: "packet-in", refused: true, why: "frames over nanomsg are not supported: use --interface or --use-files"},
		{name: "restore-state", refused: true, why: "restoring state from a file is not supported: push it by P4Runtime"},
		{name: "dp-grpc-server-addr", target: true, refused: true, why: "frames over gRPC are not supported: use --interface or --use-files"},
	}
}

// set returns the set of flags that a flag belongs to.
func (f *flags) set(c compat) *pflag.FlagSet {
	if c.target {
		return f.target
	}
	return f.general
}
