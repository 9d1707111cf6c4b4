// Package lldp is the feature that finds out which links between switches work. P4Runtime has no port state, and a
// port that is up need not lead anywhere, so each switch sends an LLDP frame (IEEE 802.1AB) out of every port that
// leads to another switch, and punts those that arrive to the controller. The controller decides when a link's probes
// are missing, and what follows.
package lldp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
)

// New returns the feature.
func New(callbacks feature.Callbacks) *feature.Feature {
	return &feature.Feature{
		Name: "linkprobe", Capabilities: []feature.Capability{probeCapability, limitCapability}, Section: config.Section{Key: "punt", Read: read},
		Desired: desired,
		Attach:  func(env *feature.Env, sw feature.Switch) feature.Loop { return attach(callbacks, env, sw) },
	}
}

var probeCapability = feature.Capability{
	Name: "linkprobe.lldp",
	Objects: pipeline.Objects{
		Tables:  []string{ids.TablePuntTableName},
		Headers: []string{ids.HeaderPacketOutName, ids.HeaderPacketInName},
	},
	Instead: "its links to switches cannot be verified",
}

// limitCapability is the limit of the frames that a port may send to the controller.
var limitCapability = feature.Capability{
	Name: "linkprobe.punt_limit", Objects: pipeline.Objects{Tables: []string{ids.TablePuntLimitName}},
	Instead: "punt.rate has no effect: a host can send the controller as many frames as its link carries",
}

// desired is feature.Feature.Desired: LLDP frames go to the controller alone, whether it probes or not, a bounded number of them.
func desired(env *feature.Env) ([]*p4v1.Entity, error) {
	var c feature.EntityList
	c.Add(env.Pipeline.Entry(ids.TablePuntTableName).
		Ternary("ether_type", p4rtmsg.Uint(etherType), p4rtmsg.Uint(0xffff)).Priority(10).
		Action(ids.ActionPuntToCPUName, feature.Arg("reason", feature.ProbeReason)).Entity())
	if limitCapability.InProgram(env.Pipeline) {
		c.Add(env.Pipeline.Default(ids.TablePuntLimitName).Action(ids.ActionSetPuntLimitName, FromConfig(env.Config).args()...).Entity())
	}
	return c.Result()
}

func attach(callbacks feature.Callbacks, env *feature.Env, sw feature.Switch) feature.Loop {
	if env.Config.Controller.ProbeInterval <= 0 {
		return nil
	}
	c := &env.Config.Controller
	l := &loop{callbacks: callbacks, sw: sw, fabric: env.Config.Name, interval: c.ProbeInterval, by: map[uint32]topology.Port{}, wrong: map[uint32]bool{}}
	for _, p := range env.Graph.Ports(sw.Name()) {
		if p.PeerPort == 0 {
			continue
		}
		l.by[p.Number] = p
		frame := probe{fabric: l.fabric, node: sw.Name(), port: p.Number, ttl: c.ProbeTimeout}.encode(p.MAC)
		out, err := env.Pipeline.PacketOut(frame, feature.Arg("egress_port", uint64(p.Number)),
			feature.Arg("queue", uint64(env.Switch.PriorityQueues-1)), feature.Arg("mode", ids.PacketOutPort))
		l.out, l.failed = append(l.out, out), errors.Join(l.failed, err)
	}
	return l
}

// loop probes the links of one switch; it owns wrong.
type loop struct {
	callbacks feature.Callbacks
	sw        feature.Switch
	fabric    string
	by        map[uint32]topology.Port // ports by number
	out       []*p4v1.PacketOut        // the probe of each port, always the same
	failed    error                    // error of making the probes
	interval  time.Duration
	wrong     map[uint32]bool // ports with another neighbour than the configured one
}

// Interval implements feature.Loop.
func (l *loop) Interval() time.Duration { return l.interval }

// Tick implements feature.Loop: one probe out of each port.
func (l *loop) Tick(context.Context, time.Time) error {
	errs := l.failed
	for _, out := range l.out {
		if out != nil {
			errs = errors.Join(errs, l.sw.PacketOut(out))
		}
	}
	return errs
}

// Receives implements feature.Loop.
func (l *loop) Receives() feature.Kinds { return feature.Probes }

// Receive implements feature.Loop.
func (l *loop) Receive(_ time.Time, m feature.Message) {
	if m.Packet == nil || m.Packet.Fields["reason"] != feature.ProbeReason {
		return
	}
	got, ok := decode(m.Packet.Payload)
	if !ok || got.fabric != l.fabric {
		return // LLDP of something that is not ours
	}
	port := uint32(m.Packet.Fields["ingress_port"])
	p, is := l.by[port], config.Endpoint{Node: got.node, Port: got.port}
	right := p.PeerPort != 0 && is == config.Endpoint{Node: p.Peer, Port: p.PeerPort}
	if right == l.wrong[port] {
		l.report(port, right, is)
	}
	if right {
		l.callbacks.LinkSeen(p.Link, l.sw.Name())
	}
}

// report publishes once that a port has another neighbour than configured, and once that it has the right one again.
// Further wrong neighbours in between are not reported.
func (l *loop) report(port uint32, right bool, neighbour config.Endpoint) {
	l.wrong[port] = !right
	e := &pb.Event{
		Severity: pb.Event_SEVERITY_INFO, Subject: l.sw.Name(), Kind: "link.miswired_over", Port: port,
		Message: fmt.Sprintf("port %d is connected as the configuration says", port),
	}
	if !right {
		want := "nothing"
		if p := l.by[port]; p.PeerPort != 0 {
			want = config.Endpoint{Node: p.Peer, Port: p.PeerPort}.String()
		}
		e.Severity, e.Kind = pb.Event_SEVERITY_ERROR, "link.miswired"
		e.Message = fmt.Sprintf("port %d is connected to %v, the configuration says %s", port, neighbour, want)
	}
	l.callbacks.Event(e)
}

// Config is the section punt: how many frames each port of a switch may send to the controller, so that a host
// cannot flood it. Further frames are dropped and counted as punt_limit.
type Config struct {
	// Rate is in frames per second, 0 … 1 000 000; 0 is no limit; default 100.
	Rate int
	// Burst is how many frames may come at once, 1 … 1000; default 100.
	Burst int
}

// FromConfig returns the section of a configuration.
func FromConfig(c *config.Config) Config { return config.SectionOf[Config](c, "punt") }

// args returns the limit in the pipeline's µs: the time between two frames, and how early the next one may come.
func (c Config) args() []pipeline.Arg {
	var interval, tolerance uint64
	if c.Rate > 0 {
		interval = uint64((1_000_000 + c.Rate - 1) / c.Rate)
		tolerance = uint64(c.Burst-1) * interval
	}
	return []pipeline.Arg{feature.Arg("interval", interval), feature.Arg("tolerance", min(tolerance, ids.Unlimited))}
}

func read(m *yamlnode.Map, _ *config.Config) any {
	return Config{Rate: m.Int("rate", 100, 0, 1_000_000), Burst: m.Int("burst", 100, 1, 1000)}
}

// etherType of LLDP (IEEE 802.1AB clause 7).
const etherType = 0x88cc

// nearestBridge is the address that bridges never forward (IEEE 802.1AB clause 7.1).
var nearestBridge = topology.MAC{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e}

// Types of TLVs (IEEE 802.1AB clause 8), each a type of 7 bits, a length of 9 and a value.
const (
	tlvEnd        = 0
	tlvChassis    = 1 // subtype 7, locally assigned: the switch's name
	tlvPort       = 2 // subtype 7, locally assigned: the port's number
	tlvTTL        = 3 // seconds, 16 bits
	tlvSystemName = 5 // the fabric's name
)

const local = 7

// minFrame is Ethernet's shortest frame without its check sequence.
const minFrame = 60

// probe is the content of a probe: its sender and the sender's port.
type probe struct {
	fabric string // up to 63 bytes, see config
	node   string // up to 63 bytes
	port   uint32
	ttl    time.Duration
}

func (p probe) encode(src topology.MAC) []byte {
	b := make([]byte, 0, 160)
	b = append(b, nearestBridge[:]...)
	b = append(b, src[:]...)
	b = binary.BigEndian.AppendUint16(b, etherType)
	b = appendTLV(b, tlvChassis, append([]byte{local}, p.node...))
	b = appendTLV(b, tlvPort, strconv.AppendUint([]byte{local}, uint64(p.port), 10))
	ttl := min(max((p.ttl+time.Second-1)/time.Second, 1), 65535)
	b = appendTLV(b, tlvTTL, binary.BigEndian.AppendUint16(nil, uint16(ttl)))
	b = appendTLV(b, tlvSystemName, []byte(p.fabric))
	b = appendTLV(b, tlvEnd, nil)
	for len(b) < minFrame {
		b = append(b, 0)
	}
	return b
}

func appendTLV(b []byte, kind int, value []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(kind<<9|len(value)))
	return append(b, value...)
}

// decode parses a frame. It is strict about the TLVs of probes, skips other TLVs, and returns false for an incomplete
// probe.
func decode(frame []byte) (p probe, ok bool) {
	if len(frame) < 14 || binary.BigEndian.Uint16(frame[12:]) != etherType {
		return p, false
	}
	for b := frame[14:]; len(b) >= 2; {
		head := binary.BigEndian.Uint16(b)
		kind, n := head>>9, int(head&0x1ff)
		if b = b[2:]; len(b) < n {
			return p, false
		}
		value := b[:n]
		b = b[n:]
		own := n > 1 && value[0] == local
		switch {
		case kind == tlvEnd:
			return p, p.node != "" && p.port != 0
		case kind == tlvChassis && own:
			p.node = string(value[1:])
		case kind == tlvPort && own:
			port, err := strconv.ParseUint(string(value[1:]), 10, 32)
			if err != nil {
				return p, false
			}
			p.port = uint32(port)
		case kind == tlvTTL && n >= 2:
			p.ttl = time.Duration(binary.BigEndian.Uint16(value)) * time.Second
		case kind == tlvSystemName:
			p.fabric = string(value)
		}
	}
	return p, false
}
