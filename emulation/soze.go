package emulation

import (
	"fmt"
	"math"
	"net/netip"
	"slices"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/soze"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/emulation/network"
	"github.com/headgate/headgate/internal/maxmin"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// tolerance is the allowed distance of a flow's rate from its share, in percent.
const tolerance = 5

// sozeScenario returns a scenario in which flows share the operator's fabric by weight; see sozePhases.
func sozeScenario() Scenario {
	s := Shares("soze", "Söze: weighted max-min shares from one telemetry value")
	s.On = sozePhases
	return s
}

// sozePhases chooses the hosts. The last host receives. The senders are the first hosts of different switches, if
// there are enough switches. In the last phase the switch of the first flow, A, keeps only one neighbour. A shares
// the link to it with D, another flow from that switch, so A's bottleneck moves away from its receiver's port.
// This phase is left out if the fabric has no room for D or would fall apart. With only two senders there is no
// third flow.
func sozePhases(c *config.Config) ([]Phase, error) {
	g := topology.New(c)
	hosts := slices.Clone(g.Hosts())
	if len(hosts) < 3 {
		return nil, fmt.Errorf("scenario soze: hosts: %s has %d, want at least 3: two that send to the third", c.File, len(hosts))
	}
	to := hosts[len(hosts)-1]
	rank, before := map[string]int{}, map[string]int{} // rank of a host among the hosts of its switch
	for _, h := range hosts {
		rank[h.Name] = before[h.Switch]
		before[h.Switch]++
	}
	from := hosts[:len(hosts)-1]
	slices.SortStableFunc(from, func(a, b topology.Host) int { return rank[a.Name] - rank[b.Name] })
	start := func(name string, from topology.Host, to topology.Host, port uint16, weight float64) Action {
		return Action{Start: &Flow{Name: name, From: []string{from.Name}, To: to.Name, SrcPort: port, Weight: weight}}
	}
	a := from[0]
	phases := []Phase{
		{Name: "two flows, weights 1:2", Actions: []Action{start("A", a, to, 20001, 1), start("B", from[1], to, 20002, 2)}},
	}
	if len(from) < 3 {
		return append(phases, Phase{Name: "a weight changes, 4:2", Actions: []Action{{Weight: &Weight{"A", 4}}}}), nil
	}
	phases = append(phases,
		Phase{Name: "a third joins, 1:2:4", Actions: []Action{start("C", from[2], to, 20003, 4)}},
		Phase{Name: "a weight changes, 4:2:4", Actions: []Action{{Weight: &Weight{"A", 4}}}},
		Phase{Name: "a flow leaves, 4:2", Actions: []Action{{Stop: "C"}}},
	)
	idle := from[3:]
	d := slices.IndexFunc(idle, func(h topology.Host) bool { return h.Switch == a.Switch })
	elsewhere := slices.DeleteFunc(slices.Clone(idle), func(h topology.Host) bool { return h.Switch == a.Switch || h.Switch == to.Switch })
	if d < 0 || len(elsewhere) == 0 || to.Switch == a.Switch {
		return phases, nil
	}
	down := topology.State{DownLinks: map[string]bool{}}
	var actions []Action
	var kept string
	for _, p := range g.Ports(a.Switch) {
		switch {
		case p.PeerPort == 0 || p.Peer == kept:
		case kept == "":
			kept = p.Peer
		default:
			if !slices.ContainsFunc(actions, func(a Action) bool { return a.Link.B == p.Peer }) {
				actions = append(actions, Action{Link: &LinkChange{a.Switch, p.Peer, false}})
			}
			down.DownLinks[p.Link] = true
		}
	}
	if len(actions) == 0 || reached(g, down, a.Switch) < len(hosts) {
		return phases, nil
	}
	return append(phases, Phase{
		Name:    "the bottleneck moves",
		Actions: append(actions, start("D", idle[d], elsewhere[len(elsewhere)-1], 20004, 8)),
	}), nil
}

// reached returns the number of hosts that a switch reaches.
func reached(g *topology.Graph, s topology.State, sw string) (hosts int) {
	for _, r := range g.Routes(s).ForSwitch(sw) {
		if len(r.NextHops) == 0 {
			continue
		}
		for _, h := range g.Hosts() {
			if slices.ContainsFunc(r.Prefixes, func(p netip.Prefix) bool { return p.Contains(h.Addresses()[0]) }) {
				hosts++
			}
		}
	}
	return hosts
}

// Shares returns a scenario on the operator's fabric in which flows share by weight with Söze. An
// independent solver computes the weighted max-min shares to compare with.
func Shares(name, title string, phases ...Phase) Scenario {
	return Scenario{
		Name: name, Title: title, Variants: []Variant{{}}, Phases: phases,
		Law: Soze, Over: 200 * units.Millisecond,
		Table: sharesTable, Judge: judgeShares,
	}
}

// judgeShares checks that every flow of every phase is at its weighted max-min share and that, unless faults were
// injected, no packet was lost.
func judgeShares(r *Report) {
	for _, v := range r.Variants {
		worst, where := 0.0, "none ran"
		for _, p := range v.Phases {
			for _, f := range p.Flows {
				if e := math.Abs(f.Error); e >= worst {
					worst, where = e, f.Name+", "+p.Name
				}
			}
		}
		r.check(worst <= tolerance && where != "none ran", "every flow is within 5 % of its weighted max-min share",
			"at most %.1f %% away (%s)", worst, where)
		if len(v.Faults) == 0 {
			r.check(v.Losses.Dropped() == 0, "no packet is lost", "%d", v.Losses.Dropped())
		}
	}
}

// wireShare is the fraction of a full data packet, with its shim, that is payload. The switches' rates count
// exactly these bytes.
const wireShare = float64(network.MSS) / float64(packet.DataOverhead+int64(network.MSS))

// settleWindow is the length of the window over which a rate is averaged to judge whether a flow has settled, in
// multiples of the largest target round-trip time of the fabric.
const settleWindow = 4

// shares adds the weighted max-min shares to the flows of a phase, computed on the paths that their packets took.
// tracks are the flows' tracks. A flow without a path gets no share.
func (rec *Record) shares(s *Scenario, p *PhaseResult, tracks []int, paths [][]int, all Series) error {
	wires, scale := rec.Wires, units.Time(s.scale(rec.Config))
	capacity := make([]float64, len(wires))
	for i, w := range wires {
		capacity[i] = float64(w.Rate) * wireShare * float64(scale)
	}
	var flows []maxmin.Flow
	var of []*FlowPhase
	for i, k := range tracks {
		if path := paths[k]; len(path) > 0 {
			f := &p.Flows[i]
			t := s.flow(f.Name)
			weight := all[len(all)/2].Flows[k].Weight
			f.Share = &Share{From: t.From[0], To: t.To, Weight: weight}
			for _, w := range path {
				f.Path = append(f.Path, wires[w].From.String())
			}
			flows, of = append(flows, maxmin.Flow{Weight: weight, Path: path}), append(of, f)
		}
	}
	if len(flows) == 0 {
		return nil
	}
	fair, err := maxmin.Solve(capacity, flows)
	if err != nil {
		return err
	}
	law := soze.FromConfig(rec.Config)
	window := settleWindow * rec.Config.Scaled(law.P+law.K) / scale
	for i, f := range of {
		k := slices.IndexFunc(rec.Flows, func(t FlowTotal) bool { return t.Name == f.Name })
		f.Share.Share, f.Bottleneck = fair.Rate[i], wires[fair.Bottleneck[i]].From.String()
		f.Error = math.Round((f.Measured/fair.Rate[i]-1)*10000) / 100
		f.SettledUS = all.settle(func(s Series) float64 { return s.rate(k) }, fair.Rate[i], tolerance/100.0, window)
	}
	return nil
}
