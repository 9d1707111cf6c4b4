package experiment

import (
	"math"
	"slices"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/units"
)

type newBuffer = func(sim.SwitchInfo) (sim.Buffer, error)

// maxChipPorts exceeds the number of ports of any switching chip.
const maxChipPorts = 1024

// unlimited is the policy of a buffer that takes everything and never pauses.
const unlimited = "unlimited"

// decodeBuffer reads "buffer: {policy: dsh, size: 16MB, …}": the keys of headroom.Config, except the ports, which are
// those of each switch. Further keys give other values to single switches, give headroom to single ports, and name
// ports that SPFC treats as victims. With chip_ports a switch reserves memory for that number of ports even if it has
// fewer links, as its chip does. "mmu: hpcc" is the public HPCC simulator's SwitchMmu.
func (p *Plan) decodeBuffer(m *yamlnode.Map) newBuffer {
	m.Need("policy")
	payload := p.Config.Payload
	names := []string{unlimited}
	for _, k := range headroom.Kinds() {
		names = append(names, string(k))
	}
	kind := m.OneOf("policy", unlimited, names...)
	if kind == unlimited {
		return nil
	}
	m.Need("size")
	m.Computed("mtu")
	c := headroom.Config{
		Policy: headroom.Kind(kind), Lossless: 0x7F,
		MTU: m.Bytes("mtu", max(1500, payload+100), 64, 65535), Private: m.Bytes("private", 0, 0, maxBytes),
		LossyPrivate: m.Bytes("lossy_private", 0, 0, maxBytes), ResumeGap: m.Bytes("resume_gap", 0, 0, maxBytes),
		PortResumeGap: m.Bytes("port_resume_gap", 0, 0, maxBytes), PortQueues: m.Int("port_queues", 0, 0, headroom.Classes),
		Method: headroom.Method(m.OneOf("headroom_method", string(headroom.ByEq1), string(headroom.Standard), string(headroom.ByEq1))),
		Share:  m.Int("share", 0, 0, 1000), LocalResume: m.Bool("local_resume", false), AllowLoss: m.Bool("allow_loss", false),
	}
	if classes := m.Ints("lossless", 0, headroom.Classes-1); len(classes) > 0 {
		c.Lossless = 0
		for _, class := range classes {
			c.Lossless |= 1 << class
		}
	}
	ofSwitch(m, &c, "1")
	c.DSH.Window = m.Time("dsh_window", 0, 0, units.Second)
	c.DSH.NoInsurance, c.DSH.NoSharedHeadroom = m.Bool("no_insurance", false), m.Bool("no_shared_headroom", false)
	c.SPFC.K, c.SPFC.Period = m.Int("spfc_k", 0, 0, 64), m.Time("spfc_period", 0, 0, units.Second)
	if c.Counted = m.OneOf("mmu", "headgate", "headgate", "hpcc") == "hpcc"; c.Counted {
		likeHPCC(m, &c)
	}
	chip := m.Int("chip_ports", 0, 0, maxChipPorts)
	all, switches, ports := c, map[int]headroom.Config{}, map[portRef]headroom.Port{}
	if p.Graph == nil {
		m.Node("switches")
		m.Node("ports")
	} else {
		m.Each("switches", func(m *yamlnode.Map) {
			m.Computed("size", "headroom", "threshold", "alpha")
			own := c
			ofSwitch(m, &own, "")
			for _, n := range p.switches(m) {
				switches[n] = own
			}
		})
		m.Each("ports", func(m *yamlnode.Map) {
			if !m.Has("headroom") && !m.Has("victim") {
				m.Fault("headroom", "is missing; want it or victim")
			}
			ports[p.linkEnds(m)] = headroom.Port{Headroom: m.Bytes("headroom", 0, 1, maxBytes), Victim: m.Bool("victim", false)}
		})
	}
	chosen, peers := m.Has("headroom_method"), &p.Config.PFC
	return func(i sim.SwitchInfo) (sim.Buffer, error) {
		c, ok := switches[i.Node]
		if !ok {
			c = all
		}
		c.Ports = slices.Repeat([]headroom.Port{{}}, len(i.Rates))
		for p := range c.Ports {
			c.Ports[p] = ports[portRef{i.Peers[p], i.Node}]
			c.Ports[p].Rate, c.Ports[p].Delay = i.Rates[p], i.Delay[p]
			switch {
			case chosen:
			case peers.Response != nil:
				c.Ports[p].Response = peers.Response(i.Rates[p])
			default:
				c.Ports[p].Response = peers.Processing
			}
			if c.Counted && c.Ports[p].Headroom == 0 && c.Headroom == 0 {
				c.Ports[p].Headroom = 3 * i.Rates[p].BytesIn(i.Delay[p]) // scratch/third.cc
			}
		}
		for len(c.Ports) < chip {
			c.Ports = append(c.Ports, headroom.Port{Rate: i.Rates[0], Delay: i.Delay[0]})
		}
		return headroom.New(c)
	}
}

// likeHPCC sets the values of the public HPCC simulator's SwitchMmu that the file does not give: reserve and
// resume_offset of switch-mmu.cc, and of scratch/third.cc α = 1/8 (a shift of 3) and a headroom of 3·C·d. There α
// doubles with each doubling of a port's rate over the hosts' rate; here all ports of a switch have the same α.
func likeHPCC(m *yamlnode.Map, c *headroom.Config) {
	c.AllowLoss, c.LossyPrivate = true, 0
	for key, v := range map[string]struct {
		at *units.Bytes
		to units.Bytes
	}{"private": {&c.Private, 4096}, "resume_gap": {&c.ResumeGap, 3072}} {
		if !m.Has(key) {
			*v.at = v.to
		}
	}
	if !m.Has("alpha") {
		c.Alpha = -3
	}
}

// ofSwitch reads the keys that may differ between switches. Keys that are not given keep their values.
func ofSwitch(m *yamlnode.Map, c *headroom.Config, alpha string) {
	c.Buffer = m.Bytes("size", max(c.Buffer, 1), 1, headroom.MaxBuffer)
	c.Headroom = m.Bytes("headroom", c.Headroom, 0, maxBytes)
	c.Threshold = m.Bytes("threshold", c.Threshold, 0, maxBytes)
	if alpha = m.Text("alpha", alpha); alpha == "" {
		return
	}
	a, err := headroom.ParseAlpha(alpha)
	if err != nil {
		m.Fault("alpha", "%v", err)
	}
	c.Alpha = a
}

// decodePACC reads "pacc: {class: 0, …}", which makes switches send CNPs. Missing keys follow from each port's rate
// by the paper's rules, with scaled weights. Weights that the analyses find unstable are allowed, because the
// simulator serves to show their effect.
func decodePACC(m *yamlnode.Map, c *sim.Config) {
	m.Computed("beta1", "beta2", "threshold", "burst", "filter_weight", "cnp_gap", "max_flows")
	class := uint8(m.Int("class", 0, 0, sim.NumClasses-1))
	interval := m.Time("interval", cnpgen.PaperInterval, units.Microsecond, units.Second)
	v := cnpgen.Params{
		Beta1: m.Float("beta1", 0, 0, 1e6), Beta2: m.Float("beta2", 0, 0, 1e6),
		Threshold: m.Bytes("threshold", 0, 0, maxBytes), Burst: m.Bytes("burst", 0, 0, maxBytes),
		FilterWeight: m.Float("filter_weight", 0, 0, 1), CNPGap: m.Time("cnp_gap", 0, 0, units.Second),
		MaxFlows: m.Int("max_flows", 0, 0, 1<<22), Carry: m.Bool("carry", false),
	}
	var sets []func(*cnpgen.Params) // one for each key that is given
	for key, set := range map[string]func(*cnpgen.Params){
		"beta1": func(p *cnpgen.Params) { p.Beta1 = v.Beta1 }, "beta2": func(p *cnpgen.Params) { p.Beta2 = v.Beta2 },
		"threshold": func(p *cnpgen.Params) { p.Threshold = v.Threshold }, "burst": func(p *cnpgen.Params) { p.Burst = v.Burst },
		"filter_weight": func(p *cnpgen.Params) { p.FilterWeight = v.FilterWeight }, "cnp_gap": func(p *cnpgen.Params) { p.CNPGap = v.CNPGap },
		"max_flows": func(p *cnpgen.Params) { p.MaxFlows = v.MaxFlows }, "carry": func(p *cnpgen.Params) { p.Carry = v.Carry },
	} {
		if m.Has(key) {
			sets = append(sets, set)
		}
	}
	params := func(rate units.Rate) cnpgen.Params {
		p := cnpgen.ParamsFor(rate, interval)
		for _, set := range sets {
			set(&p)
		}
		return p
	}
	if c.Graph != nil {
		tried := map[units.Rate]bool{}
		for _, l := range c.Graph.Links {
			if tried[l.Rate] {
				continue
			}
			tried[l.Rate] = true
			if err := params(l.Rate).Validate(l.Rate); err != nil {
				m.Fault("", "at %v: %v", l.Rate, err)
				return
			}
		}
	}
	c.PACC = &sim.PACC{Class: class, Params: params}
}

// phaseMargin returns the phase margin of PACC at a port by the paper's analysis, with NICs' DCQCN at the hosts.
// It returns NaN if switches send no CNPs.
func phaseMargin(r *run, me *Measure) float64 {
	pacc, ref := r.plan.Config.PACC, r.plan.ports[me.port]
	link, ok := r.plan.Graph.LinkBetween(ref.from, ref.to)
	if pacc == nil || !ok {
		return math.NaN()
	}
	rate := r.plan.Graph.Links[link].Rate
	return pacc.Params(rate).PhaseMargin(rate, cnpgen.VendorReaction()).Phase
}
