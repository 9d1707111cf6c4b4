package qos

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tables/red"
	"github.com/headgate/headgate/units"
)

// ECN is RED on one queue with DCQCN's parameters: at all ports of the fabric, or at those that switch, port and
// rate name. If several match a queue, the most specific applies: first one with the port, then with switch and
// rate, then with the switch, then with the rate.
type ECN struct {
	// Queue is the priority queue, 0 … 7, at most once for each combination of switch, port and rate.
	// Required.
	Queue uint8
	// Switch is the switch to whose ports this applies; default all.
	Switch string
	// Port is the number of the only port of the switch to which this applies; default 0, all ports.
	Port uint32
	// Rate is the line rate (the link's rate times scale) of the ports to which this applies; default 0, all ports.
	Rate units.Rate
	// KMin and KMax bound the depth between which the probability rises from 0 to PMax;
	// 64 B ≤ KMin ≤ KMax ≤ 2 GB, on Tofino at most 67 MB, as its buffer has. From KMax on every packet is
	// marked; with KMin = KMax none is below, as in DCTCP. Required.
	KMin, KMax units.Bytes
	// PMax is the probability at KMax, 0 < PMax ≤ 1. Required.
	PMax float64
}

// rank orders the rows that match a port: a more specific row ranks higher.
func (e ECN) rank() (n int) {
	for i, given := range []bool{e.Rate != 0, e.Switch != "", e.Port != 0} {
		if given {
			n += 1 << i
		}
	}
	return n
}

// ECNAt returns the ECN curves at a port with the given line rate, one for each queue that has a curve, by queue.
func (q Config) ECNAt(sw string, port uint32, rate units.Rate) []ECN {
	var list []ECN
	for _, e := range q.ECN {
		if e.Switch != "" && e.Switch != sw || e.Port != 0 && e.Port != port || e.Rate != 0 && e.Rate != rate {
			continue
		}
		if i := slices.IndexFunc(list, func(o ECN) bool { return o.Queue == e.Queue }); i < 0 {
			list = append(list, e)
		} else if e.rank() > list[i].rank() {
			list[i] = e
		}
	}
	slices.SortFunc(list, func(a, b ECN) int { return cmp.Compare(a.Queue, b.Queue) })
	return list
}

func readECN(m *yamlnode.Map) ECN {
	m.Need("queue", "kmin", "kmax", "pmax")
	const low, high = red.Least, 2 * units.GB
	return ECN{
		Queue: uint8(m.Int("queue", 0, 0, 7)), Switch: m.Text("switch", ""), Port: uint32(m.Int("port", 0, 0, 509)),
		Rate: m.Rate("rate", 0, 0, config.MaxRate), KMin: m.Bytes("kmin", 0, low, high), KMax: m.Bytes("kmax", 0, low, high),
		PMax: m.Above("pmax", 0, 0, 1),
	}
}

// marks turns the curves of a switch's ports into entries. A queue's most frequent curve has the queue's number, so the
// ports that use it need no entries.
func marks(env *feature.Env, q Config, c *feature.EntityList) {
	ramp := ramp{env, red.DepthOf(32)}
	if env.Switch.Target.Chip() != "" {
		ramp.depth = red.DepthOf(20) // the most bits of a range in a chip's table
	}
	ports := portsOf(env.Config, env.Switch.Name)
	own := uint64(ids.QueuesPerPort) // the number of the next curve of some ports
	for queue := range uint8(ids.QueuesPerPort) {
		at := map[red.Config][]config.Endpoint{}
		var order []red.Config
		for _, p := range ports {
			var curve red.Config // zero if the queue has no curve
			for _, e := range q.ECNAt(p.Node, p.Port, p.line) {
				if e.Queue == queue {
					curve = red.Config{Kmin: e.KMin, Kmax: e.KMax, Pmax: e.PMax}
				}
			}
			if at[curve] == nil {
				order = append(order, curve)
			}
			at[curve] = append(at[curve], p.Endpoint)
		}
		slices.SortStableFunc(order, func(a, b red.Config) int { return len(at[b]) - len(at[a]) })
		for i, curve := range order {
			number := uint64(queue)
			switch {
			case i == 0:
			case curve == red.Config{}:
				number = ids.NoCurve
			case own == ids.NoCurve:
				c.Add(nil, yamlnode.Fault{Field: "qos.ecn", Text: fmt.Sprintf("makes more than %d curves on the switch %q", ids.NoCurve, env.Switch.Name)})
				return
			default:
				number, own = own, own+1
			}
			if i > 0 {
				for _, p := range at[curve] {
					c.Add(env.Pipeline.Entry(ids.TableECNCurveName).Exact("egress_port", p4rtmsg.Uint(uint64(p.Port))).Exact("queue", p4rtmsg.Uint(uint64(queue))).
						Action(ids.ActionSetCurveName, feature.Arg("curve", number)).Entity())
				}
			}
			if curve != (red.Config{}) {
				ramp.write(c, number, queue, curve)
			}
		}
	}
}

// linked is a port of a switch with its line rate.
type linked struct {
	config.Endpoint
	line units.Rate
}

func portsOf(c *config.Config, sw string) (list []linked) {
	for _, l := range c.Links {
		line, _ := c.LineRate(l.Rate)
		for _, end := range []config.Endpoint{l.A, l.B} {
			if end.Node == sw {
				list = append(list, linked{end, line})
			}
		}
	}
	return list
}

// ramp writes RED curves for one program.
type ramp struct {
	env   *feature.Env
	depth red.Depth
}

// write writes a curve as ranges of depth, which do not overlap, so any priority will do.
func (r ramp) write(c *feature.EntityList, number uint64, queue uint8, curve red.Config) {
	if curve.Kmax > r.depth.Most() {
		c.Add(nil, yamlnode.Fault{Field: "qos.ecn", Text: fmt.Sprintf("has kmax %v for queue %d, which the switch %q cannot tell from %v: its program counts depths up to that",
			curve.Kmax, queue, r.env.Switch.Name, r.depth.Most())})
		return
	}
	entries, err := red.Entries(curve, red.DefaultSteps, r.depth)
	if err != nil {
		c.Add(nil, fmt.Errorf("ecn of queue %d: %w", queue, err))
		return
	}
	for _, e := range entries {
		c.Add(r.env.Pipeline.Entry(ids.TableECNREDName).Exact("curve", p4rtmsg.Uint(number)).
			Range("depth", p4rtmsg.Uint(uint64(e.Low)), p4rtmsg.Uint(uint64(e.High))).Priority(1).
			Action(ids.ActionSetMarkProbabilityName, feature.Arg("p", uint64(e.P))).Entity())
	}
}
