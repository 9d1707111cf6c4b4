package standalone

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/big"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/headgate/headgate/softswitch"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/stages"
)

// tracedPerSecond and tracedBurst bound the packets that --log-console logs unless the operator asks
// for all. A log of each packet would make a busy switch slow.
const tracedPerSecond, tracedBurst = 100, 10

// parseTrace reads the filters of --trace, and decides which packets' paths are logged. A log in a
// file has none unless --log-level or --trace asks for them: writing a path takes the time of many
// packets, which a switch that carries traffic does not have.
func (o *Options) parseTrace(filters []string, level bool) error {
	logs := o.LogConsole || o.LogFile != ""
	verbose := o.LogLevel == "trace" || o.LogLevel == "debug"
	switch {
	case len(filters) > 0 && !logs:
		return fmt.Errorf("--trace %q: want --log-console or --log-file with it", filters[0])
	case len(filters) > 0 && level && !verbose:
		return fmt.Errorf("--trace %q: --log-level %s leaves it out: want trace or debug", filters[0], o.LogLevel)
	case !logs || level && !verbose || o.LogFile != "" && !level && len(filters) == 0:
		return nil
	}
	t := &engine.Tracer{Port: engine.AnyPort}
	if len(filters) == 0 && !level {
		t.Limit = rate.NewLimiter(tracedPerSecond, tracedBurst)
	}
	for _, f := range filters {
		name, text, ok := strings.Cut(f, "=")
		value := number(text)
		switch {
		case !ok || name == "" || value == nil:
			return fmt.Errorf("--trace %q: want port=N or FIELD=VALUE, such as ipv4.dstAddr=10.0.0.2, with a number or an IP or MAC address", f)
		case name != "port":
			t.Fields = append(t.Fields, engine.FieldValue{Name: name, Value: value})
		case !value.IsInt64() || value.Int64() > 511:
			return fmt.Errorf("--trace %q: want a port of 0 to 511", f)
		default:
			t.Port = int(value.Int64())
		}
	}
	o.Tracer = t
	return nil
}

// number reads a decimal number, a number with 0x, an IP address or a MAC address. It returns nil
// for other texts.
func number(text string) *big.Int {
	if a, err := netip.ParseAddr(text); err == nil {
		return new(big.Int).SetBytes(a.AsSlice())
	}
	if a, err := net.ParseMAC(text); err == nil {
		return new(big.Int).SetBytes(a)
	}
	if n, ok := new(big.Int).SetString(text, 0); ok && n.Sign() >= 0 {
		return n
	}
	return nil
}

// print prints the statistics of --stats: packets of each port, drops by reason, and the mean time of each stage.
func (o *Options) print(sw *softswitch.Realtime, out io.Writer) {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	ports := sw.PortStats()
	fmt.Fprintf(w, "PORT\tINTERFACE\tSTATE\tPACKETS IN\tBYTES IN\tPACKETS OUT\tBYTES OUT\n")
	for _, p := range ports {
		state := "down"
		if p.Up {
			state = "up"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%d\t%d\t%d\n", p.Port, p.Name, state, p.RxFrames, p.RxBytes, p.TxFrames, p.TxBytes)
	}
	drops := 0
	row := func(port, name, why string, n uint64) {
		if n == 0 {
			return
		}
		if drops++; drops == 1 {
			fmt.Fprintf(w, "\nPORT\tINTERFACE\tDROPPED FOR\tPACKETS\n")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", port, name, why, n)
	}
	for _, p := range ports {
		for why, n := range p.Lost() {
			row(strconv.FormatUint(uint64(p.Port), 10), p.Name, why, n)
		}
	}
	st := sw.Stats()
	for why, n := range st.Lost() {
		row("-", "-", why, n)
	}
	if drops == 0 {
		fmt.Fprintf(w, "\nno packet was dropped\n")
	}
	fmt.Fprintf(w, "\nSTAGE\tPACKETS TIMED\tNS A PACKET\n")
	for s := range stages.Stages {
		if n, ns := o.Times.Mean(s); n > 0 {
			fmt.Fprintf(w, "%s\t%d\t%.0f\n", s, n, ns)
		}
	}
	_ = w.Flush()
	_, _ = io.WriteString(out, text.String())
}

// metrics shows the switch as OpenMetrics.
type metrics struct {
	*softswitch.Realtime
	times *stages.Times // nil if stages are not timed
}

var (
	frames = prometheus.NewDesc("headgate_switch_packets_total", "Packets of the port.", []string{"port", "interface", "direction"}, nil)
	octets = prometheus.NewDesc("headgate_switch_bytes_total", "Bytes of the packets of the port, without FCS.", []string{"port", "interface", "direction"}, nil)
	up     = prometheus.NewDesc("headgate_switch_port_up", "1 while the interface of the port is up and has a carrier.", []string{"port", "interface"}, nil)
	lost   = prometheus.NewDesc("headgate_switch_dropped_packets_total", "Packets that the switch dropped at the port, or at none, by reason.", []string{"port", "interface", "reason"}, nil)
	spent  = prometheus.NewDesc("headgate_switch_stage_seconds_total", "Time that packets spent in a stage, of the packets that were timed (--stats).", []string{"stage"}, nil)
	timed  = prometheus.NewDesc("headgate_switch_stage_packets_total", "Packets that were timed in a stage (--stats).", []string{"stage"}, nil)
)

// Describe implements prometheus.Collector.
func (m metrics) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{frames, octets, up, lost, spent, timed} {
		c <- d
	}
}

// Collect implements prometheus.Collector.
func (m metrics) Collect(c chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	for _, p := range m.PortStats() {
		n, state := strconv.FormatUint(uint64(p.Port), 10), 0.0
		if p.Up {
			state = 1
		}
		c <- prometheus.MustNewConstMetric(up, prometheus.GaugeValue, state, n, p.Name)
		counter(frames, float64(p.RxFrames), n, p.Name, "in")
		counter(frames, float64(p.TxFrames), n, p.Name, "out")
		counter(octets, float64(p.RxBytes), n, p.Name, "in")
		counter(octets, float64(p.TxBytes), n, p.Name, "out")
		for why, k := range p.Lost() {
			counter(lost, float64(k), n, p.Name, why)
		}
	}
	st := m.Stats()
	for why, k := range st.Lost() {
		counter(lost, float64(k), "", "", why)
	}
	if m.times == nil {
		return
	}
	for s := range stages.Stages {
		n, ns := m.times.Mean(s)
		counter(spent, float64(n)*ns/1e9, s.String())
		counter(timed, float64(n), s.String())
	}
}

var levels = map[string]slog.Level{
	"trace": slog.LevelDebug, "debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError, "off": math.MaxInt,
}

func level(name string) (slog.Level, error) {
	l, ok := levels[name]
	if !ok {
		return 0, fmt.Errorf("--log-level %q: want trace, debug, info, warn, error or off", name)
	}
	return l, nil
}

// logger returns the log that the options ask for: to the console, to a file, or warnings only to
// standard error. Its lines are written in the background. The returned out takes the place of
// stdout, and close writes what is left and closes the log.
func (o *Options) logger(stdout, stderr io.Writer) (log *slog.Logger, out io.Writer, close func() error, err error) {
	min, err := level(o.LogLevel)
	if err != nil {
		return nil, nil, nil, err
	}
	to, done := stderr, func() error { return nil }
	if o.Tracer != nil {
		min = slog.LevelDebug
	}
	switch {
	case o.LogConsole:
		to = stdout
	case o.LogFile != "":
		file, err := os.Create(o.LogFile)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("--log-file: %w", err)
		}
		to, done = file, file.Close
	default:
		min = max(min, slog.LevelWarn)
	}
	b := newBackground(to)
	log = o.LogFormat.Log(b, min)
	b.start(log)
	if o.LogConsole {
		stdout = b
	}
	if o.Tracer != nil {
		o.Tracer.Log, o.Tracer.Behind = log, b.behind
	}
	return log, stdout, func() error { b.close(); return done() }, nil
}
