package experiment

import (
	"slices"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/units"
)

type newBuffer = func(sim.SwitchInfo) (sim.Buffer, error)

// maxChipPorts is more ports than a switching chip has.
const maxChipPorts = 1024

// unlimited is the policy of a buffer that takes everything and never pauses.
const unlimited = "unlimited"

// decodeBuffer reads "buffer: {policy: dsh, size: 16MB, …}": the keys of headroom.Config.
// The ports are the switch's own. Some switches may have other values, and some ports headroom
// of their own, or the state that SPFC would find. With chip_ports a switch with fewer links reserves what is
// reserved for each port for so many all the same, as its chip does.
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
	c := headroom.Config{
		Policy: headroom.Kind(kind), Lossless: 0x7F,
		MTU: m.Bytes("mtu", max(1500, payload+100), 64, 65535), Private: m.Bytes("private", 0, 0, maxBytes),
		LossyPrivate: m.Bytes("lossy_private", 0, 0, maxBytes), ResumeGap: m.Bytes("resume_gap", 0, 0, maxBytes),
		PortResumeGap: m.Bytes("port_resume_gap", 0, 0, maxBytes), PortQueues: m.Int("port_queues", 0, 0, headroom.Classes),
		Share: m.Int("share", 0, 0, 1000), LocalResume: m.Bool("local_resume", false), AllowLoss: m.Bool("allow_loss", false),
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
	c.SPFC.Whole = m.Bool("spfc_whole", false)
	chip := m.Int("chip_ports", 0, 0, maxChipPorts)
	all, switches, ports := c, map[int]headroom.Config{}, map[portRef]headroom.Port{}
	if p.Graph == nil {
		m.Node("switches")
		m.Node("ports")
	} else {
		m.Each("switches", func(m *yamlnode.Map) {
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
	return func(i sim.SwitchInfo) (sim.Buffer, error) {
		c, ok := switches[i.Node]
		if !ok {
			c = all
		}
		c.Ports = slices.Repeat([]headroom.Port{{}}, len(i.Rates))
		for p := range c.Ports {
			c.Ports[p] = ports[portRef{i.Peers[p], i.Node}]
			c.Ports[p].Rate, c.Ports[p].Delay = i.Rates[p], i.Delay[p]
		}
		for len(c.Ports) < chip {
			c.Ports = append(c.Ports, headroom.Port{Rate: i.Rates[0], Delay: i.Delay[0]})
		}
		return headroom.New(c)
	}
}

// ofSwitch reads what may differ between switches; what is not given stays.
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
