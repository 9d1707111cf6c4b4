// Package standalone is `headgate switch`: it turns the flags of BMv2's simple_switch_grpc, and a
// few of our own, into a running switch. Start reading at Main.
package standalone

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/service"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/softswitch"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/port"
	"github.com/headgate/headgate/softswitch/stages"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/units"
)

// Options are the checked values of the flags.
type Options struct {
	DeviceID   uint64
	Interfaces []port.Named
	Program    string // path of the JSON; empty with --no-p4
	P4Info     string // path of the program's P4Info; may be empty

	// InterfaceWait bounds the wait for interfaces to appear; with 0 they must exist at the start.
	InterfaceWait time.Duration

	Driver   string        // auto, afpacket or xdp
	BusyPoll time.Duration // after a frame, for how long a reader looks for more before it sleeps

	PcapDir  string // empty: no capture
	UseFiles bool   // use pcap files in place of interfaces
	Wait     int    // seconds to wait before the files are read

	LogConsole bool
	LogFile    string
	LogFormat  service.Format
	LogLevel   string
	Profile    string // address that serves Go's profiles; empty for none
	Metrics    string // address that serves OpenMetrics; empty for none

	Tracer *engine.Tracer // its log is set later; nil: no packet is logged
	Stats  bool           // print statistics at the end and at SIGUSR1
	Times  *stages.Times  // for the statistics; nil: not timed

	GRPCAddr string
	TLS      TLSOptions
	CPUPort  uint32
	DropPort uint32

	Traffic tm.Config
	PFC     softswitch.PFC
	Rates   map[uint32]units.Rate
	Limits  []QueueLimit

	Ignored  []string // sentences about BMv2's flags that this switch ignores
	NoEffect []string // sentences about flags that other flags make ineffective
}

// TLSOptions holds the --grpc-server-ssl family of flags.
type TLSOptions struct {
	Enabled       bool
	CA, Cert, Key string // paths of PEM files
	ClientAuth    bool
}

// AllPorts is the Port of a QueueLimit that applies to every port.
const AllPorts = -1

// QueueLimit is one value of --queue-limit.
type QueueLimit struct {
	Port  int // number of a port, or AllPorts
	Queue int // number of a queue, or softswitch.AllQueues
	Limit tm.Limit
}

// parseInterface reads PORT@NAME.
func parseInterface(s string) (port.Named, error) {
	number, name, ok := strings.Cut(s, "@")
	n, err := strconv.ParseUint(number, 10, 9)
	if !ok || err != nil || name == "" {
		return port.Named{}, fmt.Errorf("--interface %q: want PORT@NAME, such as 1@veth1, with a port of 0 to 511", s)
	}
	return port.Named{Number: uint32(n), Name: name}, nil
}

func parseInterfaces(args []string) ([]port.Named, error) {
	var all []port.Named
	for _, arg := range args {
		p, err := parseInterface(arg)
		if err != nil {
			return nil, err
		}
		for _, q := range all {
			if q.Number == p.Number {
				return nil, fmt.Errorf("--interface %q: port %d is %s already: want each port once", arg, p.Number, q.Name)
			}
			if q.Name == p.Name {
				return nil, fmt.Errorf("--interface %q: %s is port %d already: want each interface once", arg, p.Name, q.Number)
			}
		}
		all = append(all, p)
	}
	return all, nil
}

func (o *Options) hasPort(n uint32) bool {
	return n == o.CPUPort && n != 0 || slices.ContainsFunc(o.Interfaces, func(p port.Named) bool { return p.Number == n })
}

// parseRates reads PORT=RATE.
func (o *Options) parseRates(args []string) error {
	o.Rates = map[uint32]units.Rate{}
	for _, arg := range args {
		number, value, ok := strings.Cut(arg, "=")
		n, err := strconv.ParseUint(number, 10, 32)
		if !ok || err != nil {
			return fmt.Errorf("--port-rate %q: want PORT=RATE, such as 1=20Mbps", arg)
		}
		rate, err := units.ParseRate(value)
		if err != nil {
			return fmt.Errorf("--port-rate %q: %w", arg, err)
		}
		if !o.hasPort(uint32(n)) {
			return fmt.Errorf("--port-rate %q: port %d has no --interface", arg, n)
		}
		o.Rates[uint32(n)] = rate
	}
	return nil
}

// parseLimits reads [PORT[:QUEUE]=]LIMIT. LIMIT is a number of packets or, with a unit, an amount
// of data.
func (o *Options) parseLimits(args []string) error {
	for _, arg := range args {
		l := QueueLimit{Port: AllPorts, Queue: softswitch.AllQueues}
		value := arg
		if where, v, ok := strings.Cut(arg, "="); ok {
			value = v
			number, queue, hasQueue := strings.Cut(where, ":")
			n, err := strconv.ParseUint(number, 10, 9)
			if err == nil && hasQueue {
				l.Queue, err = strconv.Atoi(queue)
			}
			if err != nil {
				return fmt.Errorf("--queue-limit %q: want PORT=LIMIT or PORT:QUEUE=LIMIT before the limit", arg)
			}
			if l.Port = int(n); !o.hasPort(uint32(n)) {
				return fmt.Errorf("--queue-limit %q: port %d has no --interface", arg, n)
			}
			if hasQueue && (l.Queue < 0 || l.Queue >= o.Traffic.Queues) {
				return fmt.Errorf("--queue-limit %q: queue %d: want 0 to %d (--priority-queues)", arg, l.Queue, o.Traffic.Queues-1)
			}
		}
		if n, err := strconv.Atoi(value); err == nil && n >= 0 {
			l.Limit.Packets = n
		} else if l.Limit.Bytes, err = units.ParseBytes(value); err != nil {
			return fmt.Errorf("--queue-limit %q: want a number of packets, such as 1000, or an amount of data, such as 64KB", arg)
		}
		o.Limits = append(o.Limits, l)
	}
	return nil
}

// perQueue reads one value for each queue: a number from min to max, or word, which means none.
func perQueue(flag, arg string, queues int, word string, none, min, max int, want string) ([]int, error) {
	words := strings.Split(arg, ",")
	if len(words) != queues {
		return nil, fmt.Errorf("--%s %q is for %d queues: want one word for each of the %d queues (--priority-queues)", flag, arg, len(words), queues)
	}
	list := make([]int, queues)
	for q, w := range words {
		n, err := strconv.Atoi(w)
		switch {
		case w == word:
			n = none
		case err != nil || n < min || n > max:
			return nil, fmt.Errorf("--%s %q: %q of queue %d: want %s", flag, arg, w, q, want)
		}
		list[q] = n
	}
	return list, nil
}

// parseClasses reads a class or "none" for each queue.
func parseClasses(arg string, queues int) ([]int, error) {
	const last = packet.PFCClasses - 1
	return perQueue("pfc-classes", arg, queues, "none", softswitch.NoClass, 0, last, fmt.Sprintf("a class of 0 to %d, or none", last))
}

// parseScheduler reads "strict", or a weight or "strict" for each queue.
func parseScheduler(arg string, queues int) ([]tm.Share, error) {
	if arg == "strict" {
		return tm.Strict(queues), nil
	}
	weights, err := perQueue("scheduler", arg, queues, "strict", 0, 1, 1000, "strict or a weight of 1 to 1000")
	return tm.Weighted(weights), err
}
