package mininet

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/priority"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/controller/feature/soze"
	"github.com/headgate/headgate/emulation"
	emulated "github.com/headgate/headgate/emulation/network"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/tests/lag"
	"github.com/headgate/headgate/units"
)

// laws maps a scenario's law names to those of `headgate host`; other names are the same.
var laws = map[emulation.Law]string{emulation.LineRate: "none", emulation.DCQCN: "dcqcn-vendor"}

// extra holds additional settings of a scenario's hosts, besides those that follow from scenario and fabric.
type extra struct {
	network  []string                         // flags of mininet/fabric.py
	flow     map[string]string                // by the flow's name, to add to --flow
	host     map[string][]string              // flags by host
	faults   map[int]func(n *network)         // by the phase at whose start they run
	end      func(n *network)                 // called when the last phase is over
	captured func(variant string, n *network) // called when the captures of a variant are complete
	reaction reaction
	version  int // of IP; 4 if 0
}

// reaction is the time that a packet may take through a switch without congestion. A process that did not get the
// processor reacts later than any switch; pings between two hosts show it.
type reaction struct {
	from, to string
	most     time.Duration
}

// player plays one variant in Mininet.
type player struct {
	t        *testing.T
	kind     string
	scenario *emulation.Scenario
	config   *config.Config
	network  *network
	more     extra
	gap      units.Time // between CNPs

	agents map[string]*agent
	totals map[string]summary
}

// play plays every variant of a scenario in Mininet, as package emulation does in one process, and judges it in
// the same way.
func play(t *testing.T, s emulation.Scenario, kind string, more extra) *emulation.Report {
	t.Helper()
	times := s.Times(0)
	more.version = cmp.Or(more.version, 4)
	var results []*emulation.Result
	var first *config.Config
	for _, v := range s.Variants {
		c, err := s.Configure(v)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = c
		}
		var result *emulation.Result
		lag.Repeat(t, plays(t), func() string {
			p := &player{t: t, kind: kind, scenario: &s, config: c, more: more, gap: v.CNPGap, agents: map[string]*agent{}, totals: map[string]summary{}}
			p.network = begin(t, c.Source, kind, more.version, more.network...)
			rec := p.play(times)
			rec.Variant = v.Name
			p.network.end()
			if more.captured != nil {
				more.captured(v.Name, p.network)
			}
			if result, err = s.Assess(rec); err != nil {
				t.Fatal(err)
			}
			if len(result.Invalid) == 0 {
				return ""
			}
			return fmt.Sprintf("%s on %s is invalid: %q", v.Name, kind, result.Invalid)
		})
		results = append(results, result)
	}
	report := emulation.NewReport(&s, first, times, results)
	var table bytes.Buffer
	if err := report.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
	return report
}

// play runs the phases by the wall clock and returns the recording.
func (p *player) play(times []units.Time) *emulation.Record {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	r := record(ctx, p)
	for _, f := range p.scenario.Flows() {
		if p.agents[f.To] == nil {
			p.agents[f.To] = p.start(f.To, "--listen-only")
		}
	}
	p.attached()
	late := p.network.late()
	took := p.network.ping(p.more.reaction)
	rec := &emulation.Record{Config: p.config, Times: times}
	r.began = time.Now()
	for i, phase := range p.scenario.Phases {
		p.until(r.began, times[i])
		p.begin(ctx, phase)
		if fault := p.more.faults[i]; fault != nil {
			rec.Faults = append(rec.Faults, phase.Name)
			fault(p.network)
		}
	}
	end := times[len(times)-1]
	p.until(r.began, end)
	rec.Late = units.FromDuration(late())
	if noise := p.config.Scaled(priority.FromConfig(p.config).Noise); strings.HasPrefix(string(p.scenario.Law), "prioplus") && rec.Late > noise {
		rec.Bad = append(rec.Bad, fmt.Sprintf("the machine was %v late, where the channels have room for %v of noise", rec.Late.Duration().Round(time.Millisecond), noise))
	}
	if rtt, most := took(), p.more.reaction.most; rtt > most {
		rec.Bad = append(rec.Bad, fmt.Sprintf("the switch was not given the processor: a ping took %v, where at most %v leave the result alone", rtt.Round(time.Millisecond), most))
	}
	time.Sleep(time.Second) // for the last reports and polls
	if p.more.end != nil {
		p.more.end(p.network)
	}
	list, err := p.network.admin.ListSwitches(ctx, &pb.ListSwitchesRequest{})
	if err != nil {
		p.t.Fatal(err)
	}
	rec.Pools = emulation.PoolsOf(list.GetSwitches())
	for _, sw := range list.GetSwitches() {
		for _, c := range sw.GetFeatures().GetBuffer().GetClasses() {
			rec.Losses.Lossless += c.GetLosslessDrops()
		}
	}
	rec.Losses.Buffer, rec.Losses.Admission = rec.Losses.Lossless, r.refused()
	// Packets that were neither refused nor received were lost before a switch's program saw them: the switch's
	// process did not take them from its interface in time. One in a thousand is accepted.
	if sent, gone := p.stop(r); gone > rec.Losses.Dropped()+sent/1000 {
		rec.Losses.Switches = gone - rec.Losses.Dropped()
	}
	cancel()
	r.streams.Wait()
	p.network.end() // captures are complete
	for _, l := range p.config.Links {
		rec.Wires = append(rec.Wires, emulated.Wire{From: l.A, To: l.B, Rate: l.Rate}, emulated.Wire{From: l.B, To: l.A, Rate: l.Rate})
	}
	rec.Series, rec.Peak = r.series(end)
	rec.Pauses = emulation.NewMeters(rec.Wires)
	if p.scenario.Lossless {
		r.pauses(p.t, p.network.dir, rec.Pauses)
	}
	// Package emulation computes shares from IPv4's frames. IPv6's are longer. BMv2's queues count packets, so they do not
	// notice.
	if p.kind == "headgate" {
		for i := range rec.Wires {
			rec.Wires[i].Rate = rec.Wires[i].Rate * units.Rate(frame(4)) / units.Rate(frame(p.more.version))
		}
	}
	for range p.scenario.Phases {
		var paths [][]int
		for _, f := range p.scenario.Flows() {
			paths = append(paths, path(p.config, f.From[0], f.To))
		}
		rec.Paths = append(rec.Paths, paths)
	}
	for _, f := range p.scenario.Flows() {
		rec.Flows = append(rec.Flows, p.total(f))
	}
	return rec
}

// stop ends all agents and returns the number of packets sent, and of those that did not arrive.
func (p *player) stop(r *recorder) (sent, gone uint64) {
	p.t.Helper()
	listens := map[string]bool{}
	for _, f := range p.scenario.Flows() {
		listens[f.To] = true
	}
	for _, turn := range []bool{false, true} {
		for name, a := range p.agents {
			if listens[name] == turn {
				p.totals[name] = p.network.stop(a)
			}
		}
		if !turn {
			time.Sleep(time.Second) // packets in flight
			for deadline := time.Now().Add(20 * time.Second); !r.empty() && time.Now().Before(deadline); {
				time.Sleep(200 * time.Millisecond)
			}
		}
	}
	var got uint64
	for _, s := range p.totals {
		got += s.Received.Packets
		for _, f := range s.Flows {
			sent += f.Sent
		}
	}
	return sent, sent - min(sent, got)
}

// until waits until a time of the play.
func (p *player) until(began time.Time, at units.Time) {
	time.Sleep(time.Until(began.Add((at * units.Time(p.config.Scale)).Duration())))
}

// attached waits until every agent is attached to the controller.
func (p *player) attached() {
	p.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		r, err := p.network.reports.ListFlows(p.t.Context(), &pb.ListFlowsRequest{})
		if err == nil && len(r.GetHosts()) >= len(p.agents) {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%d of %d agents are with the controller: %v", len(r.GetHosts()), len(p.agents), err)
		}
	}
}

// begin makes the changes at the beginning of a phase.
func (p *player) begin(ctx context.Context, phase emulation.Phase) {
	p.t.Helper()
	flows := map[string][]string{} // --flow by host
	for _, a := range phase.Actions {
		switch {
		case a.Start != nil:
			for _, from := range a.Start.From {
				flows[from] = append(flows[from], "--flow", p.flow(a.Start))
			}
		case a.Stop != "":
			from := p.find(a.Stop).From[0]
			p.totals[from] = p.network.stop(p.agents[from])
			delete(p.agents, from)
		case a.Weight != nil:
			f := p.find(a.Weight.Flow)
			_, err := p.network.weights.SetWeight(ctx, &pb.SetWeightRequest{Weight: a.Weight.Value, Flow: &pb.FlowKey{
				SrcIpv4: p.network.hosts[f.From[0]].IP.String(), DstIpv4: p.network.hosts[f.To].IP.String(),
				SrcPort: uint32(f.SrcPort), DstPort: maxqd.Port,
			}})
			if err != nil {
				p.t.Fatalf("%s: %v", a, err)
			}
		default:
			p.t.Fatalf("%s: not in Mininet", a)
		}
	}
	for host, args := range flows {
		if p.agents[host] != nil {
			p.t.Fatalf("host %s has an agent already", host)
		}
		p.agents[host] = p.start(host, args...)
	}
}

func (p *player) find(flow string) *emulation.Flow {
	list := p.scenario.Flows()
	return list[slices.IndexFunc(list, func(f *emulation.Flow) bool { return f.Name == flow })]
}

// flow is a flow for --flow.
func (p *player) flow(f *emulation.Flow) string {
	text := "dst=" + p.network.hosts[f.To].IP.String()
	if f.Weight > 0 {
		text += fmt.Sprintf(",weight=%g", f.Weight)
	}
	if f.SrcPort > 0 {
		text += fmt.Sprintf(",sport=%d", f.SrcPort)
	}
	if f.Size > 0 {
		text += fmt.Sprintf(",size=%d", f.Size) + "B"
	}
	return text + p.more.flow[f.Name]
}

// start starts an agent with the fabric's settings for hosts.
func (p *player) start(host string, args ...string) *agent {
	p.t.Helper()
	c, law := p.config, string(p.scenario.Law)
	if name, ok := laws[p.scenario.Law]; ok {
		law = name
	}
	if p.scenario.Law != emulation.Soze && slices.Contains(args, "--listen-only") {
		law = "none" // some laws need to know the path
	}
	args = append(args, "--law", law, "--scale", fmt.Sprint(c.Scale), "--ack-dscp", fmt.Sprint(soze.FromConfig(c).AckDSCP))
	for _, l := range c.Links {
		if l.A.Node == host || l.B.Node == host {
			args = append(args, "--rate", l.Rate.String())
		}
	}
	for _, class := range qos.FromConfig(c).Classes {
		args = append(args, "--pfc-class", fmt.Sprintf("%d=%d", class.DSCP, class.Class))
	}
	if p.gap > 0 {
		args = append(args, "--cnp-gap", c.Scaled(p.gap).String())
	}
	return p.network.host(host, append(args, p.more.host[host]...)...)
}

// total sums up the measurements of a flow's or a burst's hosts.
func (p *player) total(f *emulation.Flow) emulation.FlowTotal {
	out := emulation.FlowTotal{Name: f.Name, Flows: len(f.From)}
	for _, from := range f.From {
		for _, s := range p.totals[from].Flows {
			if s.Dst != p.network.hosts[f.To].IP.String() {
				continue
			}
			out.Delivered += s.Acked
			out.CNPs += s.CNPs
			out.Retransmits += s.Retransmits
			if s.Finished {
				out.Done++
				out.LastUS = max(out.LastUS, s.MeasuredFor*1e6/float64(p.config.Scale))
			}
		}
	}
	return out
}

// path returns the wires of a shortest path between two hosts.
func path(c *config.Config, from, to string) []int {
	came := map[string]int{from: -1} // by node, the wire that leads to it
	for next := []string{from}; len(next) > 0; next = next[1:] {
		for i, l := range c.Links {
			for k, ends := range [][2]string{{l.A.Node, l.B.Node}, {l.B.Node, l.A.Node}} {
				if _, known := came[ends[1]]; ends[0] == next[0] && !known {
					came[ends[1]] = 2*i + k
					next = append(next, ends[1])
				}
			}
		}
	}
	var wires []int
	for node := to; came[node] >= 0; {
		wire := came[node]
		wires = append(wires, wire)
		if l := c.Links[wire/2]; wire%2 == 0 {
			node = l.A.Node
		} else {
			node = l.B.Node
		}
	}
	slices.Reverse(wires)
	return wires
}
