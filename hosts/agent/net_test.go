package agent_test

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// star is hosts around one switch, on a virtual clock. Each host has an output queue with a rate
// that stamps maxQD and has strict priority for CS6. A test can add losses, duplicates and
// reordering.
type star struct {
	t     testing.TB
	loop  *clock.Loop
	hosts map[netip.Addr]*agent.Host
	ports map[netip.Addr]*port
	delay units.Time
	harm  func(frame []byte) (copies int, extra units.Time)
	rng   *rand.Rand
}

type port struct {
	rate  units.Rate
	busy  bool
	queue [2][]queued // high, low
	peak  units.Time
}

type queued struct {
	frame []byte
	came  units.Time
}

var unit = mustUnit(units.Microsecond)

func mustUnit(t units.Time) maxqd.Unit {
	u, err := maxqd.NewUnit(t)
	if err != nil {
		panic(err)
	}
	return u
}

// Söze's parameters for 20 Mb/s: the paper's, times 5000.
func params(rate units.Rate) soze.Params {
	p := param.For[soze.Params](law.Flow{Rate: rate, MSS: 1000, Scale: 2000})
	p.Alpha, p.Beta = rate, rate/100
	return p
}

func newStar(t testing.TB) *star {
	return &star{
		t: t, loop: clock.NewLoop(), hosts: map[netip.Addr]*agent.Host{}, ports: map[netip.Addr]*port{},
		delay: 2 * units.Millisecond, rng: rand.New(rand.NewPCG(1, 2)),
	}
}

func addr(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, n, 1}) }

func config(n byte, nic units.Rate) agent.Config {
	return agent.Config{
		Name: "h" + string('0'+rune(n)), MAC: packet.MAC{2, 0, 0, 0, 0, n}, Gateway: packet.MAC{2, 0, 0, 0, 1, n},
		IP: addr(n), Rate: nic, Unit: unit, NewLaw: agent.Soze(params(20 * units.Mbps)),
	}
}

// host adds host n with a NIC and a link back from the switch.
func (s *star) host(cfg agent.Config, down units.Rate) *agent.Host {
	s.t.Helper()
	h, err := agent.NewHost(s.loop, cfg, func(frame []byte, now units.Time) {
		copied := append([]byte(nil), frame...)
		copies, extra := 1, units.Time(0)
		if s.harm != nil {
			copies, extra = s.harm(copied)
		}
		for range copies {
			s.loop.Schedule(now+cfg.Rate.TxTime(units.Bytes(len(frame)))+s.delay+extra, func() { s.forward(copied) })
		}
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.hosts[cfg.IP] = h
	s.ports[cfg.IP] = &port{rate: down}
	return h
}

func (s *star) forward(frame []byte) {
	dst := netip.AddrFrom4([4]byte(frame[30:34]))
	p := s.ports[dst]
	if p == nil {
		return
	}
	class := 1
	if frame[15]>>2 == 48 {
		class = 0
	}
	p.queue[class] = append(p.queue[class], queued{frame, s.loop.Now()})
	if !p.busy {
		s.serve(dst, p)
	}
}

func (s *star) serve(dst netip.Addr, p *port) {
	class := 0
	if len(p.queue[0]) == 0 {
		class = 1
	}
	p.busy = len(p.queue[class]) > 0
	if !p.busy {
		return
	}
	q := p.queue[class][0]
	p.queue[class] = p.queue[class][1:]
	own := s.loop.Now() - q.came
	p.peak = max(p.peak, own)
	stamp(q.frame, own)
	done := s.loop.Now() + p.rate.TxTime(units.Bytes(len(q.frame)))
	s.loop.Schedule(done, func() { s.serve(dst, p) })
	s.loop.Schedule(done+s.delay, func() { s.hosts[dst].Receive(q.frame) })
}

func stamp(frame []byte, own units.Time) {
	if binary.BigEndian.Uint16(frame[36:]) != maxqd.Port {
		return
	}
	var shim maxqd.Shim
	if err := shim.Decode(frame[42:]); err != nil {
		return
	}
	shim.Stamp(unit.Encode(own))
	copy(frame[42:46], shim.Append(nil))
}

func (s *star) start(h *agent.Host, spec agent.FlowSpec) agent.FlowKey {
	s.t.Helper()
	key, err := h.StartFlow(spec)
	if err != nil {
		s.t.Fatal(err)
	}
	return key
}

// rates runs for d and returns the payload rate of each of h's flows over d, in Mb/s.
func (s *star) rates(d units.Time, hosts ...*agent.Host) map[agent.FlowKey]float64 {
	before := map[agent.FlowKey]units.Bytes{}
	for _, h := range hosts {
		for _, r := range h.Report() {
			before[r.Key] = r.Acked
		}
	}
	s.loop.RunUntil(s.loop.Now() + d)
	out := map[agent.FlowKey]float64{}
	for _, h := range hosts {
		for _, r := range h.Report() {
			out[r.Key] = float64(r.Acked-before[r.Key]) * 8 / d.Seconds() / 1e6
		}
	}
	return out
}
