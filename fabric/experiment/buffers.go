package experiment

import (
	"slices"

	"github.com/headgate/headgate/fabric"
	"github.com/headgate/headgate/fabric/yamlnode"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

type newBuffer = func(fabric.SwitchInfo) (fabric.Buffer, error)

// unlimited is the policy of a buffer that takes everything and never pauses.
const unlimited = "unlimited"

// decodeBuffer reads "buffer: {policy: dsh, size: 16MB, …}": the keys of headroom.Config.
// The ports are the switch's own.
func decodeBuffer(m *yamlnode.Map, payload units.Bytes) newBuffer {
	m.Need("policy")
	names := []string{unlimited}
	for _, k := range headroom.Kinds() {
		names = append(names, string(k))
	}
	kind := m.OneOf("policy", unlimited, names...)
	if kind == unlimited {
		m.Done()
		return nil
	}
	m.Need("size")
	c := headroom.Config{
		Policy: headroom.Kind(kind), Buffer: m.Bytes("size", units.MB, 1, headroom.MaxBuffer), Lossless: 0x7F,
		MTU: m.Bytes("mtu", max(1500, payload+100), 64, 65535), Private: m.Bytes("private", 0, 0, maxBytes),
		LossyPrivate: m.Bytes("lossy_private", 0, 0, maxBytes), Headroom: m.Bytes("headroom", 0, 0, maxBytes),
		Threshold: m.Bytes("threshold", 0, 0, maxBytes), ResumeGap: m.Bytes("resume_gap", 0, 0, maxBytes),
		PortResumeGap: m.Bytes("port_resume_gap", 0, 0, maxBytes), PortQueues: m.Int("port_queues", 0, 0, headroom.Classes),
		Share: m.Int("share", 0, 0, 1000), LocalResume: m.Bool("local_resume", false), AllowLoss: m.Bool("allow_loss", false),
	}
	if classes := m.Ints("lossless", 0, headroom.Classes-1); len(classes) > 0 {
		c.Lossless = 0
		for _, class := range classes {
			c.Lossless |= 1 << class
		}
	}
	a, err := headroom.ParseAlpha(m.Text("alpha", "1"))
	if err != nil {
		m.Fault("alpha", "%v", err)
	}
	c.Alpha = a
	c.DSH.Window = m.Time("dsh_window", 0, 0, units.Second)
	c.DSH.NoInsurance, c.DSH.NoSharedHeadroom = m.Bool("no_insurance", false), m.Bool("no_shared_headroom", false)
	c.SPFC.K, c.SPFC.Period = m.Int("spfc_k", 0, 0, 64), m.Time("spfc_period", 0, 0, units.Second)
	m.Done()
	return func(i fabric.SwitchInfo) (fabric.Buffer, error) {
		c := c
		c.Ports = slices.Repeat([]headroom.Port{{}}, len(i.Rates))
		for p := range c.Ports {
			c.Ports[p] = headroom.Port{Rate: i.Rates[p], Delay: i.Delay[p]}
		}
		return headroom.New(c)
	}
}
