package agent_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/prioplus"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/hosts/law/swift"
	"github.com/headgate/headgate/units"
)

// Base round trip of a full packet in the star: four propagation delays, the NIC, the port,
// and the same for the acknowledgement.
const starRTT = 8*units.Millisecond + 700*units.Microsecond

// withPrioPlus makes the host's flows PrioPlus over Swift in a channel of the fabric's plan.
func withPrioPlus(t *testing.T, c agent.Config, priority int) agent.Config {
	t.Helper()
	plan := channel.Plan{Base: starRTT, Fluctuation: 10 * units.Millisecond, Noise: 2 * units.Millisecond}
	ch, err := plan.Channel(priority)
	if err != nil {
		t.Fatal(err)
	}
	rate := 20 * units.Mbps * 1000 / 1062 // goodput
	rng := rand.New(rand.NewPCG(1, uint64(priority)))
	c.NewLaw = func(agent.FlowSpec) (law.Law, error) {
		under, err := swift.New(param.For[swift.Params](law.Flow{Rate: c.Rate, BaseRTT: starRTT, MSS: 1000}))
		if err != nil {
			return nil, err
		}
		return prioplus.New(under, middle(law.Flow{
			Rate: rate, BaseRTT: starRTT, MSS: 1000, Target: ch.Target, Limit: ch.Limit, Scale: 1000, Rand: rng,
		}))
	}
	return c
}

// With real frames, probes and round trips: the higher of two virtual priorities in one queue has
// the link while it runs. The lower has it before and after.
func TestPrioPlusOverRealFrames(t *testing.T) {
	s := newStar(t)
	low := s.host(withPrioPlus(t, config(1, 40*units.Mbps), 1), 40*units.Mbps)
	high := s.host(withPrioPlus(t, config(2, 40*units.Mbps), 3), 40*units.Mbps)
	sink := s.host(config(3, 40*units.Mbps), 20*units.Mbps)
	a := s.start(low, agent.FlowSpec{Dst: addr(3)})
	s.loop.RunUntil(units.Second)
	got := s.rates(2*units.Second, low)
	near(t, "the lower priority alone", got[a], 20*goodput, 0.03)

	b := s.start(high, agent.FlowSpec{Dst: addr(3)})
	s.loop.RunUntil(s.loop.Now() + units.Second)
	got = s.rates(2*units.Second, low, high)
	near(t, "the higher priority", got[b], 20*goodput, 0.05)
	if got[a] > 0.5 {
		t.Errorf("the lower priority sends %.2f Mb/s beside the higher", got[a])
	}

	if err := high.StopFlow(b); err != nil {
		t.Fatal(err)
	}
	s.loop.RunUntil(s.loop.Now() + units.Second)
	got = s.rates(2*units.Second, low)
	near(t, "the lower priority again", got[a], 20*goodput, 0.03)

	sent, answered := low.Stats().ProbesSent+high.Stats().ProbesSent, sink.Stats().ProbesReceived
	if sent < 10 || answered != sent {
		t.Errorf("%d probes were sent, %d arrived", sent, answered)
	}
	for _, r := range low.Report() {
		if r.Probes == 0 || r.Retransmits != 0 || r.Timeouts != 0 || r.Stale != 0 {
			t.Errorf("%+v", r)
		}
	}
	if st := sink.Stats(); st.Malformed+st.Unknown+st.NotOurs+st.Refused != 0 {
		t.Errorf("the receiver counts %+v", st)
	}
}

// Probes and their answers on the wire: opcodes, flow, no payload. They have the data's DSCP on the
// way there and the acknowledgements' on the way back. Lost ones are repeated.
func TestProbesOnTheWire(t *testing.T) {
	s := newStar(t)
	host := s.host(withPrioPlus(t, config(1, 40*units.Mbps), 1), 40*units.Mbps)
	s.host(config(3, 40*units.Mbps), 20*units.Mbps)
	const dscp, opcode, total = 15, 46, 16 // offsets behind Ethernet, IPv4, UDP and shim
	probes, answers := 0, 0
	s.harm = func(frame []byte) (int, units.Time) {
		switch frame[opcode] {
		case 0xC0:
			probes++
			if frame[dscp]>>2 != 0 || binary.BigEndian.Uint16(frame[total:]) != 20+8+4+12+4 {
				t.Errorf("probe %x", frame)
			}
			if probes == 1 {
				return 0, 0
			}
		case 0xC1:
			answers++
			if frame[dscp]>>2 != 48 {
				t.Errorf("answer %x", frame)
			}
			if answers == 1 {
				return 0, 0
			}
			return 2, 0 // a duplicate has no effect
		}
		return 1, 0
	}
	s.start(host, agent.FlowSpec{Dst: addr(3), Size: 100 * units.KB})
	s.loop.RunUntil(10 * units.Second)
	r := host.Report()[0]
	if r.Finished == 0 || r.Probes != 3 || answers != 2 {
		t.Errorf("finished at %v, %d probes, %d answers", r.Finished, r.Probes, answers)
	}
}
