package network

import (
	"slices"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/buffer"
	"github.com/headgate/headgate/controller/feature/qos"
	section "github.com/headgate/headgate/controller/feature/soze"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/softswitch"
	"github.com/headgate/headgate/units"
)

// MSS is the payload of a full packet, as in the papers' simulations (Söze §5).
const MSS = 1000 * units.Byte

// host makes the host at the end of a link. By default its flows follow Söze's law with the parameters of the
// fabric file. If the host exists already, it gets the link as a further one.
func (f *Fabric) host(name string, l config.Link, s *socket) error {
	if n := f.nics[name]; n != nil {
		s.plug(n.port())
		return nil
	}
	h, p := f.cfg.Host(name), section.FromConfig(f.cfg)
	unit, err := maxqd.NewUnit(p.Unit())
	if err != nil {
		return err
	}
	nic := &nic{rate: l.Rate}
	params := param.For[soze.Params](law.Flow{Rate: l.Rate, MSS: MSS})
	params.P, params.K, params.Alpha, params.Beta, params.M = f.cfg.Scaled(p.P), f.cfg.Scaled(p.K), p.Alpha, p.Beta, p.M
	c := agent.Config{
		Name: name, MAC: l.MAC, Gateway: packet.Gateway, IP: h.Addresses()[0], Rate: l.Rate, Unit: unit,
		NewLaw: agent.Soze(params), Law: "soze",
		MSS:      MSS,
		DataDSCP: p.DSCP, AckDSCP: p.AckDSCP, ShimPort: p.UDPPort,
		Classes: f.classes(),
	}
	if lossless := buffer.LosslessAnywhere(f.cfg); lossless != 0 {
		c.Lossy = ^units.Classes(lossless)
	}
	if f.opts.Host != nil {
		f.opts.Host(&c)
	}
	nic.host, err = agent.NewHost(f.Loop, c, nic.send)
	if err != nil {
		return err
	}
	f.Hosts[name], f.nics[name] = nic.host, nic
	s.plug(nic.port())
	return nil
}

// classes returns the class of each DSCP, the same as in the switches.
func (f *Fabric) classes() map[uint8]uint8 {
	m := make(map[uint8]uint8, 64)
	for dscp := range uint8(64) {
		m[dscp] = qos.FromConfig(f.cfg).ClassOf(dscp).Class
	}
	return m
}

// nic joins a host's links. It sends by the first link that is up, and receives by all.
type nic struct {
	host  *agent.Host
	rate  units.Rate // line rate of the first link
	ports []*hostPort
}

// hostPort is a host's end of one link.
type hostPort struct {
	*nic
	out softswitch.Sender
	up  bool
}

// port adds the end of another link.
func (n *nic) port() *hostPort {
	p := &hostPort{nic: n}
	n.ports = append(n.ports, p)
	return p
}

func (p *hostPort) Attach(out softswitch.Sender)       { p.out = out }
func (p *hostPort) SetUp(up bool)                      { p.up = up }
func (p *hostPort) Receive(frame []byte, _ units.Time) { p.host.Receive(frame) }

// send takes a frame when its transmission begins. Its last bit leaves after the frame's transmission time.
func (n *nic) send(frame []byte, now units.Time) {
	at := max(slices.IndexFunc(n.ports, func(p *hostPort) bool { return p.up }), 0)
	n.ports[at].out.Send(frame, now+n.rate.TxTime(units.Bytes(len(frame))))
}
