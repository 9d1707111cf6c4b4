package preview

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/pacc"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/units"
)

// Traffic is the hosts' traffic in a preview. It has the sections packet, cnp_gap, noise, laws, flows, events and
// run of an experiment (docs/research/simulator.md), with the names of the fabric's hosts. Times are at line rate,
// like links[].delay.
type Traffic struct {
	Name string // shown to people
	File string // name in messages; traces are in the same folder
	Text []byte
	// Notes name the unknown parts of the traffic.
	Notes []string
}

// ReadTraffic reads a file of traffic: YAML, or a trace of flows as CSV. The flows of a trace follow law.
func ReadTraffic(name, law string) (Traffic, error) {
	switch ext := filepath.Ext(name); ext {
	case ".yaml", ".yml":
		text, err := os.ReadFile(name)
		return Traffic{Name: name, File: name, Text: text}, err
	case ".csv":
		last, err := lastStart(name)
		if err != nil {
			return Traffic{}, fmt.Errorf("%s: %w", name, err)
		}
		text := fmt.Sprintf("flows: [{kind: trace, file: %q, law: %s}]\n", filepath.Base(name), law)
		return Traffic{Name: name, File: name, Text: run(text, law, 4*last+10*units.Millisecond)}, nil
	default:
		return Traffic{}, fmt.Errorf("--traffic: %q has the ending %q, want .yaml, .yml, or .csv for a trace of flows", name, ext)
	}
}

// run adds the sections that are not about flows.
func run(flows, law string, until units.Time) []byte {
	if strings.HasPrefix(law, "dcqcn") {
		flows += "cnp_gap: 50us\n" // DCQCN's N (Zhu et al., SIGCOMM 2015, §3.1)
	}
	return []byte(flows + fmt.Sprintf("run: {until: %v, stop_when_done: true}\n", until))
}

// lastStart returns when the last flow of a trace starts.
func lastStart(name string) (last units.Time, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	c := csv.NewReader(f)
	c.Comment, c.TrimLeadingSpace, c.ReuseRecord = '#', true, true
	head, err := c.Read()
	if err != nil {
		return 0, fmt.Errorf("no line of column names: %w", err)
	}
	at := slices.Index(head, "start")
	if at < 0 {
		return 0, errors.New("line 1: no column start")
	}
	for {
		line, err := c.Read()
		if errors.Is(err, io.EOF) {
			return last, nil
		}
		if err != nil {
			return 0, err
		}
		start, err := units.ParseTime(line[at])
		if err != nil || start > units.Second {
			n, _ := c.FieldPos(at)
			return 0, fmt.Errorf("line %d: start: is %q, want a time up to 1s", n, line[at])
		}
		last = max(last, start)
	}
}

// DefaultLaw returns the law of hosts if the operator names none. It is dcqcn-vendor, the law of NICs, if switches
// mark packets or send notifications. Otherwise it is none: hosts send at their link's rate.
func DefaultLaw(c *config.Config) string {
	if len(qos.FromConfig(c).ECN) > 0 || pacc.FromConfig(c).Enabled {
		return "dcqcn-vendor"
	}
	return "none"
}

// Ports holds the counters of switch ports to hosts. Nothing else is known of hosts that do not report.
type Ports struct {
	// Rates has the rate of the frames that switches send to each host, by its name.
	Rates map[string]units.Rate
	// Hosts are the hosts that report, with their flows.
	Hosts []*pb.HostReport
}

// Shares of a reported flow's rate that are not its payload: headers, which arrive at the receiver, and
// acknowledgements, which arrive at the sender. Both are rounded up, so that they are not mistaken for traffic of
// other hosts.
const (
	headerPart = 0.2
	ackPart    = 0.1
)

// leastPart is the part of its link's rate that must arrive at a host to count as traffic. Polls and probes are
// below it.
const leastPart = 0.01

// Silent returns the hosts of a configuration that do not report.
func (p Ports) Silent(c *config.Config) (names []string) {
	reports := map[string]bool{}
	for _, h := range p.Hosts {
		reports[h.GetHost()] = !h.GetDetached()
	}
	for _, h := range c.Hosts {
		if !reports[h.Name] {
			names = append(names, h.Name)
		}
	}
	return names
}

// unexplained returns the rate of the traffic to a host that neither reported flows, their acknowledgements nor
// switches' counters explain, at the fabric's own rates.
func (o *observation) unexplained(p Ports, host string) units.Rate {
	own := map[string]bool{}
	if h := o.c.Host(host); h != nil {
		for _, a := range h.Addresses() {
			own[a.String()] = true
		}
	}
	rest := float64(p.Rates[host])
	for _, r := range p.Hosts {
		for _, f := range r.GetFlows() {
			if own[f.GetFlow().GetDstIpv4()] {
				rest -= (1 + headerPart) * float64(f.GetRateBps())
			}
			if r.GetHost() == host {
				rest -= ackPart * float64(f.GetRateBps())
			}
		}
	}
	for _, s := range o.counted {
		for _, pair := range s.GetPairs() {
			if pair.GetDst() == host {
				rest -= o.rates[[2]string{pair.GetSrc(), host}]
			}
		}
	}
	for _, l := range o.c.Links {
		if (l.A.Node == host || l.B.Node == host) && rest < leastPart*float64(l.Rate) {
			return 0
		}
	}
	return units.Rate(rest)
}

// unreported adds steady flows for the hosts that neither report nor are counted. The unexplained traffic to each
// host comes in equal parts from all of them.
func (o *observation) unreported(p Ports) {
	for _, dst := range o.c.Hosts {
		n := len(o.unseen)
		for _, src := range o.unseen {
			if src == dst.Name {
				n--
			}
		}
		rate, ok := o.c.LineRate(o.unexplained(p, dst.Name))
		if !ok || rate <= 0 || n == 0 || o.flows+n > maxObserved {
			continue
		}
		o.receivers++
		law := fmt.Sprintf("unreported-%d", o.receivers)
		o.steady(law, float64(rate)/(1+headerPart)/float64(n))
		for _, src := range o.unseen {
			if src != dst.Name {
				fmt.Fprintf(&o.text, "  - {kind: flow, group: unreported, from: %q, to: %q, class: %d, law: %s, stop: %v}\n", src, dst.Name, o.class(), law, o.length)
				o.flows++
			}
		}
	}
	if o.receivers > 0 {
		o.says = append(o.says, fmt.Sprintf("%s: the bytes to %s beyond the reported ones are attributed to them in equal parts, at steady rates, by the ports' present counters; "+
			"the real senders, burst sizes and laws are not known", doNotReport(o.unseen), units.Count(o.receivers, "host")))
	}
}

// steady adds a law with a fixed rate at line rate, in bits a second.
func (o *observation) steady(name string, rate float64) {
	fmt.Fprintf(&o.laws, "  %s: {kind: none, rate: %dbps}\n", name, max(int64(rate), 1))
}

func doNotReport(silent []string) string {
	const most = 8
	if len(silent) > most {
		return fmt.Sprintf("%s and %d more hosts do not report", strings.Join(silent[:most], ", "), len(silent)-most)
	}
	return "hosts that do not report are " + strings.Join(silent, ", ")
}
