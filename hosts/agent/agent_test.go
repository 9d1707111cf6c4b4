package agent_test

import (
	"bytes"
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// Payload share of a link's rate: 1000 of 1062 bytes.
const goodput = 1000.0 / 1062

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got/want-1) > within {
		t.Errorf("%s: %.3f Mb/s, want %.3f within %v %%", what, got, want, 100*within)
	}
}

func TestFlowsShareByWeight(t *testing.T) {
	s := newStar(t)
	h1, h2, h3 := s.host(config(1, 40*units.Mbps), 40*units.Mbps), s.host(config(2, 40*units.Mbps), 40*units.Mbps), s.host(config(3, 40*units.Mbps), 40*units.Mbps)
	sink := s.host(config(4, 40*units.Mbps), 20*units.Mbps)
	a := s.start(h1, agent.FlowSpec{Dst: addr(4), Weight: 1})
	b := s.start(h2, agent.FlowSpec{Dst: addr(4), Weight: 2})
	c := s.start(h3, agent.FlowSpec{Dst: addr(4), Weight: 4})
	s.loop.RunUntil(3 * units.Second)
	got := s.rates(4*units.Second, h1, h2, h3)
	near(t, "weight 1", got[a], 20*goodput/7, 0.03)
	near(t, "weight 2", got[b], 40*goodput/7, 0.03)
	near(t, "weight 4", got[c], 80*goodput/7, 0.03)

	if err := h3.SetWeight(c, 1); err != nil {
		t.Fatal(err)
	}
	s.loop.RunUntil(s.loop.Now() + 2*units.Second)
	got = s.rates(4*units.Second, h1, h2, h3)
	near(t, "weight 1 after the change", got[a], 20*goodput/4, 0.03)
	near(t, "weight 2 after the change", got[b], 40*goodput/4, 0.03)
	near(t, "weight 4 that became 1", got[c], 20*goodput/4, 0.03)

	if err := h2.StopFlow(b); err != nil {
		t.Fatal(err)
	}
	s.loop.RunUntil(s.loop.Now() + 2*units.Second)
	got = s.rates(4*units.Second, h1, h3)
	near(t, "first of two equals", got[a], 10*goodput, 0.03)
	near(t, "second of two equals", got[c], 10*goodput, 0.03)

	for _, h := range []*agent.Host{h1, h3} {
		for _, r := range h.Report() {
			if r.Retransmits != 0 || r.Stale != 0 || r.SRTT < 8*units.Millisecond || r.MaxQD == 0 {
				t.Errorf("%v: %+v", r.Key, r)
			}
		}
	}
	if st := sink.Stats(); st.Malformed+st.NotOurs+st.Refused != 0 {
		t.Errorf("the receiver counts %+v", st)
	}
	if st := h2.Stats(); st.Unknown == 0 {
		t.Error("acknowledgements of the stopped flow were not counted as unknown")
	}
}

// With beta above the flows' share per weight, the queue stays beyond p + k, and the reports say
// so.
func TestCrowdedIsReported(t *testing.T) {
	for _, tt := range []struct {
		beta units.Rate
		want bool
	}{{200 * units.Kbps, false}, {4 * units.Mbps, true}} {
		s := newStar(t)
		c := config(1, 40*units.Mbps)
		p := params(20 * units.Mbps)
		p.P, p.K, p.Beta = 3*units.Millisecond, 37*units.Millisecond, tt.beta // within maxQD's range
		c.NewLaw = agent.Soze(p)
		h := s.host(c, 40*units.Mbps)
		s.host(config(4, 40*units.Mbps), 20*units.Mbps)
		for range 10 { // 2 Mb/s each
			s.start(h, agent.FlowSpec{Dst: addr(4)})
		}
		s.loop.RunUntil(5 * units.Second)
		for _, r := range h.Report() {
			if r.Crowded != tt.want {
				t.Errorf("beta %v: %+v", tt.beta, r)
			}
		}
	}
}

func TestNICIsSharedByWeight(t *testing.T) {
	s := newStar(t)
	h1 := s.host(config(1, 10*units.Mbps), 10*units.Mbps)
	s.host(config(2, 10*units.Mbps), 10*units.Mbps)
	s.host(config(3, 10*units.Mbps), 10*units.Mbps)
	a := s.start(h1, agent.FlowSpec{Dst: addr(2), Weight: 1})
	b := s.start(h1, agent.FlowSpec{Dst: addr(3), Weight: 3})
	s.loop.RunUntil(units.Second)
	got := s.rates(2*units.Second, h1)
	near(t, "weight 1", got[a], 10*goodput/4, 0.02)
	near(t, "weight 3", got[b], 30*goodput/4, 0.02)
}

// One of two flows of a NIC is limited elsewhere; the other takes the rest. When the bottleneck
// moves, both follow.
func TestBottleneckMoves(t *testing.T) {
	s := newStar(t)
	h1 := s.host(config(1, 20*units.Mbps), 20*units.Mbps)
	h2 := s.host(config(2, 20*units.Mbps), 20*units.Mbps)
	s.host(config(3, 20*units.Mbps), 20*units.Mbps)
	s.host(config(4, 20*units.Mbps), 20*units.Mbps)
	a := s.start(h1, agent.FlowSpec{Dst: addr(3), Weight: 1})
	b := s.start(h1, agent.FlowSpec{Dst: addr(4), Weight: 1})
	s.loop.RunUntil(units.Second)
	c := s.start(h2, agent.FlowSpec{Dst: addr(3), Weight: 4})
	s.loop.RunUntil(4 * units.Second)
	got := s.rates(4*units.Second, h1, h2)
	near(t, "held at the far port", got[a], 4*goodput, 0.04)
	near(t, "left over at the NIC", got[b], 16*goodput, 0.04)
	near(t, "weight 4 at the far port", got[c], 16*goodput, 0.04)
	if err := h2.StopFlow(c); err != nil {
		t.Fatal(err)
	}
	s.loop.RunUntil(s.loop.Now() + 2*units.Second)
	got = s.rates(2*units.Second, h1)
	near(t, "back at the NIC", got[a], 10*goodput, 0.03)
	near(t, "back at the NIC", got[b], 10*goodput, 0.03)
}

// With losses, duplicates and reordering in both directions, every byte arrives once and in order.
func TestRecoversFromEverything(t *testing.T) {
	s := newStar(t)
	s.harm = func([]byte) (int, units.Time) {
		copies := 1
		switch x := s.rng.Float64(); {
		case x < 0.02:
			copies = 0
		case x < 0.03:
			copies = 2
		}
		extra := units.Time(0)
		if s.rng.Float64() < 0.02 {
			extra = 3 * units.Millisecond
		}
		return copies, extra
	}
	const size = 300_001
	pattern := func(at uint64) byte { return byte(at*7 + at>>8) }
	sender := config(1, 20*units.Mbps)
	sender.Fill = func(_ agent.FlowKey, offset uint64, payload []byte) {
		for i := range payload {
			payload[i] = pattern(offset + uint64(i))
		}
	}
	var got bytes.Buffer
	receiver := config(2, 20*units.Mbps)
	receiver.Deliver = func(_ agent.FlowKey, payload []byte) { got.Write(payload) }
	h1 := s.host(sender, 20*units.Mbps)
	s.host(receiver, 20*units.Mbps)
	s.start(h1, agent.FlowSpec{Dst: addr(2), Size: size})
	s.loop.RunUntil(60 * units.Second)
	r := h1.Report()[0]
	if r.Finished == 0 || r.Acked != size || got.Len() != size {
		t.Fatalf("%d of %d bytes delivered, report %+v", got.Len(), size, r)
	}
	for i, b := range got.Bytes() {
		if b != pattern(uint64(i)) {
			t.Fatalf("byte %d is %d, want %d", i, b, pattern(uint64(i)))
		}
	}
	if r.Retransmits == 0 || r.Naks == 0 {
		t.Errorf("nothing was lost: %+v", r)
	}
	if h1.Next() != units.MaxTime {
		t.Errorf("a finished flow still wants attention at %v", h1.Next())
	}
}

// A restarted receiver has forgotten its flows; the senders start them again by themselves.
func TestReceiverRestart(t *testing.T) {
	s := newStar(t)
	h1 := s.host(config(1, 20*units.Mbps), 20*units.Mbps)
	s.host(config(2, 20*units.Mbps), 20*units.Mbps)
	key := s.start(h1, agent.FlowSpec{Dst: addr(2)})
	s.loop.RunUntil(units.Second)
	s.host(config(2, 20*units.Mbps), 20*units.Mbps) // in place of the old receiver
	s.loop.RunUntil(3 * units.Second)
	got := s.rates(units.Second, h1)
	near(t, "after the restart", got[key], 20*goodput, 0.03)
	if r := h1.Report()[0]; r.Resets != 1 || r.Acked < 5_000_000 {
		t.Errorf("report %+v", r)
	}
}

func TestRefusals(t *testing.T) {
	for name, bad := range map[string]func(*agent.Config){
		"address":         func(c *agent.Config) { c.IP = netip.Addr{} },
		"rate":            func(c *agent.Config) { c.Rate = 0 },
		"maxQD unit":      func(c *agent.Config) { c.Unit = maxqd.Unit{} },
		"law":             func(c *agent.Config) { c.NewLaw = nil },
		"MSS":             func(c *agent.Config) { c.MSS = 70000 },
		"DSCP":            func(c *agent.Config) { c.DataDSCP = 64 },
		"queue pair":      func(c *agent.Config) { c.FirstQP = 1 << 24 },
		"lateness":        func(c *agent.Config) { c.MaxLate = -1 },
		`host "h1": rate`: func(c *agent.Config) { c.Rate = -5 },
	} {
		cfg := config(1, units.Mbps)
		bad(&cfg)
		if _, err := agent.New(cfg, func([]byte) {}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	a, err := agent.New(config(1, units.Mbps), func([]byte) {})
	if err != nil {
		t.Fatal(err)
	}
	for name, spec := range map[string]agent.FlowSpec{
		"destination ": {},
		"port 7":       {Dst: addr(2), DstPort: 7},
		"size":         {Dst: addr(2), Size: -1},
		"weight -1":    {Dst: addr(2), Weight: -1},
		"weight NaN":   {Dst: addr(2), Weight: math.NaN()},
	} {
		if _, err := a.StartFlow(0, spec); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	key, err := a.StartFlow(0, agent.FlowSpec{Dst: addr(2), SrcPort: 50000})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.StartFlow(0, agent.FlowSpec{Dst: addr(2), SrcPort: 50000}); !errors.Is(err, agent.ErrExists) {
		t.Errorf("the same five-tuple again: %v", err)
	}
	if err := a.SetWeight(0, agent.FlowKey{}, 1); !errors.Is(err, agent.ErrNoFlow) {
		t.Errorf("weight of no flow: %v", err)
	}
	if err := a.StopFlow(agent.FlowKey{}); !errors.Is(err, agent.ErrNoFlow) {
		t.Errorf("stop of no flow: %v", err)
	}
	for _, w := range []float64{0, -1, math.Inf(1), math.NaN()} {
		if err := a.SetWeight(0, key, w); err == nil || a.Report()[0].Weight != 1 {
			t.Errorf("weight %v: %v, weight is %v", w, err, a.Report()[0].Weight)
		}
	}
}

// The fields of a receiver's answer.
func TestAnswers(t *testing.T) {
	var sent []packet.Frame
	a, err := agent.New(config(1, 100*units.Mbps), func(frame []byte) {
		var f packet.Frame
		if err := f.Decode(frame); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, f)
	})
	if err != nil {
		t.Fatal(err)
	}
	data := packet.Frame{
		Src: addr(2), Dst: addr(1), ECN: packet.CE, TTL: 9, SrcPort: 50001, DstPort: maxqd.Port,
		Shim:    maxqd.Shim{Next: maxqd.BTH, MaxQD: 777},
		BTH:     packet.BTH{Opcode: packet.SendMiddle, DestQP: 42, PSN: 0},
		Payload: make([]byte, 10),
	}
	receive := func(change func(*packet.Frame)) {
		f := data
		change(&f)
		a.Receive(0, f.Append(nil))
	}
	receive(func(f *packet.Frame) {})
	receive(func(f *packet.Frame) { f.BTH.PSN = 5 })
	receive(func(f *packet.Frame) { f.BTH.PSN, f.BTH.Opcode, f.ECN = 1, packet.SendLast, packet.ECT0 })
	receive(func(f *packet.Frame) { f.DstPort, f.BTH.DestQP = packet.RoCEv2Port, 43 })
	a.Wake(units.Second)
	for now := units.Second; a.Next() != units.MaxTime; now = a.Next() {
		a.Wake(now)
	}
	if len(sent) != 4 {
		t.Fatalf("%d answers, want 4", len(sent))
	}
	f := sent[0]
	if f.Src != addr(1) || f.Dst != addr(2) || f.SrcPort != 50001 || f.DstPort != maxqd.Port || f.DSCP != 48 || f.ECN != packet.NotECT {
		t.Errorf("headers %+v", f)
	}
	if f.Shim != (maxqd.Shim{Echo: true, Next: maxqd.BTH, MaxQD: 777}) || !f.BTH.BECN || f.BTH.DestQP != 42 || f.AETH.Syndrome != packet.ACK {
		t.Errorf("echo %+v", f)
	}
	if f := sent[1]; f.AETH.Syndrome != packet.NAKSequence || f.BTH.PSN != 1 {
		t.Errorf("answer to a gap %+v", f)
	}
	if f := sent[2]; f.AETH.Syndrome != packet.ACK || f.BTH.PSN != 1 || f.AETH.MSN != 1 || f.BTH.BECN {
		t.Errorf("answer to the end of the message %+v", f)
	}
	if f := sent[3]; f.DstPort != packet.RoCEv2Port || f.Shim != (maxqd.Shim{}) {
		t.Errorf("answer to plain RoCEv2 %+v", f)
	}

	before := a.Stats()
	for name, tt := range map[string]struct {
		change func(*packet.Frame)
		count  func(agent.Stats) uint64
	}{
		"other host":         {func(f *packet.Frame) { f.Dst = addr(9) }, func(s agent.Stats) uint64 { return s.NotOurs }},
		"data with an echo":  {func(f *packet.Frame) { f.Shim.Echo = true }, func(s agent.Stats) uint64 { return s.Malformed }},
		"ACK without echo":   {func(f *packet.Frame) { f.BTH.Opcode = packet.Acknowledge }, func(s agent.Stats) uint64 { return s.Malformed }},
		"unknown opcode":     {func(f *packet.Frame) { f.BTH.Opcode = 0x3f }, func(s agent.Stats) uint64 { return s.Malformed }},
		"ACK of no flow":     {func(f *packet.Frame) { f.BTH.Opcode, f.Shim.Echo = packet.Acknowledge, true }, func(s agent.Stats) uint64 { return s.Unknown }},
		"CNP of no flow":     {func(f *packet.Frame) { f.BTH.Opcode, f.BTH.BECN = packet.CNP, true }, func(s agent.Stats) uint64 { return s.Unknown }},
		"not a frame at all": {func(f *packet.Frame) { f.DstPort = 53 }, func(s agent.Stats) uint64 { return s.Malformed }},
	} {
		was := tt.count(a.Stats())
		receive(tt.change)
		if got := tt.count(a.Stats()); got != was+1 {
			t.Errorf("%s: counted %d times", name, got-was)
		}
	}
	if after := a.Stats(); after.DataReceived != before.DataReceived || a.Next() != units.MaxTime {
		t.Error("a bad frame was answered")
	}
}

func FuzzReceive(f *testing.F) {
	d := packet.Frame{Src: addr(2), Dst: addr(1), SrcPort: 50001, DstPort: maxqd.Port, BTH: packet.BTH{Opcode: packet.SendOnly, DestQP: 1}, Payload: []byte{1, 2}}
	f.Add(d.Append(nil))
	k := packet.Frame{Src: addr(2), Dst: addr(1), SrcPort: 49152, DstPort: maxqd.Port, Shim: maxqd.Shim{Echo: true, MaxQD: 9},
		BTH: packet.BTH{Opcode: packet.Acknowledge, DestQP: 1, PSN: 2}, AETH: packet.AETH{Syndrome: packet.NAKSequence}}
	f.Add(k.Append(nil))
	c := packet.Frame{Src: addr(2), Dst: addr(1), DstPort: packet.RoCEv2Port, BTH: packet.BTH{Opcode: packet.CNP, BECN: true, DestQP: 1}}
	f.Add(c.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := agent.New(config(1, units.Gbps), func([]byte) {})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.StartFlow(0, agent.FlowSpec{Dst: addr(2)}); err != nil {
			t.Fatal(err)
		}
		now := units.Time(0)
		for range 3 {
			now += units.Microsecond
			a.Wake(now)
			a.Receive(now, b)
		}
		// With correct checksums the frame gets to the later checks.
		var frame packet.Frame
		if len(b) > 12 && frame.BTH.Decode(b) == nil {
			frame.Src, frame.Dst, frame.SrcPort, frame.DstPort = addr(2), addr(1), 49152, maxqd.Port
			frame.Shim.Echo = b[12]&1 != 0
			frame.AETH = packet.AETH{Syndrome: packet.Syndrome(b[12])}
			frame.Payload = b[12:min(len(b), 500)]
			a.Receive(now, frame.Append(nil))
			a.Wake(now + units.Second)
		}
	})
}

// open is a law without limits.
type open struct{}

func (open) OnAck(*law.Ack)                {}
func (open) OnEvent(law.Event, units.Time) {}
func (open) Timer() units.Time             { return units.MaxTime }
func (open) Allowance() law.Allowance {
	return law.Allowance{Rate: 1000 * units.Gbps, Window: 64_000}
}

// BenchmarkPacket sends, receives and acknowledges one data packet and handles its ACK, with two
// agents, under Söze and under no law, with n flows.
func BenchmarkPacket(b *testing.B) {
	for _, tt := range []struct {
		name  string
		flows int
		law   func(agent.FlowSpec) (law.Law, error)
	}{
		{"soze/flows=1", 1, agent.Soze(params(20 * units.Mbps))},
		{"soze/flows=100", 100, agent.Soze(params(20 * units.Mbps))},
		{"none/flows=1", 1, func(agent.FlowSpec) (law.Law, error) { return open{}, nil }},
	} {
		b.Run(tt.name, func(b *testing.B) {
			type pair struct{ here, there *agent.Agent }
			var p pair
			now := units.Time(0)
			var toThere, toHere [][]byte // pools of frames in flight
			var spare [][]byte
			carry := func(to *[][]byte) func([]byte) {
				return func(frame []byte) {
					var buf []byte
					if n := len(spare); n > 0 {
						buf, spare = spare[n-1], spare[:n-1]
					}
					*to = append(*to, append(buf[:0], frame...))
				}
			}
			make := func(n byte, send func([]byte)) *agent.Agent {
				cfg := config(n, 100*units.Gbps)
				cfg.NewLaw = tt.law
				a, err := agent.New(cfg, send)
				if err != nil {
					b.Fatal(err)
				}
				return a
			}
			p.here, p.there = make(1, carry(&toThere)), make(2, carry(&toHere))
			for range tt.flows {
				if _, err := p.here.StartFlow(0, agent.FlowSpec{Dst: addr(2)}); err != nil {
					b.Fatal(err)
				}
			}
			deliver := func(a *agent.Agent, frames *[][]byte) {
				for _, f := range *frames {
					a.Receive(now, f)
					spare = append(spare, f)
				}
				*frames = (*frames)[:0]
			}
			step := func() {
				now = max(now+units.Nanosecond, min(p.here.Next(), p.there.Next()))
				p.here.Wake(now)
				deliver(p.there, &toThere)
				p.there.Wake(now)
				deliver(p.here, &toHere)
			}
			for p.here.Stats().AcksReceived < 5000 {
				step()
			}
			b.ReportAllocs()
			b.ResetTimer()
			start := p.here.Stats().AcksReceived
			for p.here.Stats().AcksReceived-start < uint64(b.N) {
				step()
			}
		})
	}
}

func TestHeldFlowSendsNothing(t *testing.T) {
	s := newStar(t)
	h1 := s.host(config(1, 10*units.Mbps), 10*units.Mbps)
	s.host(config(2, 10*units.Mbps), 10*units.Mbps)
	key := s.start(h1, agent.FlowSpec{Dst: addr(2), Weight: 1})
	s.loop.RunUntil(units.Second)
	hold := func(held bool) {
		if err := h1.Hold(key, held); err != nil {
			t.Fatal(err)
		}
		s.loop.RunUntil(s.loop.Now() + units.Second/2) // frames in flight arrive
	}
	hold(true)
	if got := s.rates(units.Second, h1)[key]; got != 0 {
		t.Errorf("a held flow sends %.2f Mb/s", got)
	}
	hold(false)
	near(t, "let go", s.rates(units.Second, h1)[key], 10*goodput, 0.05)
}
