package agent_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/none"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// pfcRate makes a byte last 1 us and a quantum 64 us.
const (
	pfcRate = 8 * units.Mbps
	us      = units.Microsecond
)

// sent is a frame that a host began to send.
type sent struct {
	at   units.Time
	took units.Time
	dscp uint8
	op   packet.Opcode
}

// talker is a host with an unlimited law and no answers. It records its frames.
func talker(t testing.TB, change func(*agent.Config)) (*clock.Loop, *agent.Host, *[]sent) {
	t.Helper()
	loop, out := clock.NewLoop(), &[]sent{}
	c := config(1, pfcRate)
	c.NewLaw = func(agent.FlowSpec) (law.Law, error) { return none.New(pfcRate, 0) }
	c.InitialRTO, c.MaxRTO = 60*units.Second, 60*units.Second
	if change != nil {
		change(&c)
	}
	var f packet.Frame
	h, err := agent.NewHost(loop, c, func(frame []byte, now units.Time) {
		if err := f.Decode(frame); err != nil {
			t.Error(err)
		}
		*out = append(*out, sent{now, pfcRate.TxTime(units.Bytes(len(frame))), f.DSCP, f.BTH.Opcode})
	})
	if err != nil {
		t.Fatal(err)
	}
	return loop, h, out
}

func pauseFrame(quanta uint16, classes ...int) []byte {
	var p packet.PFC
	for _, c := range classes {
		p.Enabled |= 1 << c
		p.Quanta[c] = quanta
	}
	return p.Append(nil)
}

func pause(loop *clock.Loop, h *agent.Host, at units.Time, quanta uint16, classes ...int) {
	loop.Schedule(at, func() { h.Receive(pauseFrame(quanta, classes...)) })
}

// flowTo starts an endless flow at a DSCP.
func flowTo(t testing.TB, h *agent.Host, dst byte, dscp uint8) {
	t.Helper()
	if _, err := h.StartFlow(agent.FlowSpec{Dst: addr(dst), DSCP: dscp, DstPort: packet.RoCEv2Port}); err != nil {
		t.Fatal(err)
	}
}

func begun(out []sent, dscp uint8, from, until units.Time) (n int) {
	for _, s := range out {
		if s.dscp == dscp && s.at >= from && s.at < until {
			n++
		}
	}
	return n
}

func TestPFCPausesAClassOfAHost(t *testing.T) {
	const ms = units.Millisecond
	loop, h, out := talker(t, nil)
	flowTo(t, h, 2, 26) // AF31, class 3
	loop.RunUntil(10 * ms)
	pause(loop, h, 10*ms+100*us, 1000, 3, 5) // 64 ms
	loop.RunUntil(40 * ms)
	flowTo(t, h, 3, 8) // class 1 has the whole link
	pause(loop, h, 70*ms, 1000, 3)
	pause(loop, h, 90*ms+7*us, 0, 3)
	loop.RunUntil(120 * ms)

	if n := begun(*out, 26, 10*ms+100*us, 90*ms+7*us); n != 0 {
		t.Errorf("%d frames of class 3 began in its pause", n)
	}
	if n := begun(*out, 26, 0, 10*ms); n < 9 {
		t.Errorf("%d frames of class 3 before the pause, want a full link", n)
	}
	if a, b := begun(*out, 26, 90*ms, 120*ms), begun(*out, 8, 90*ms, 120*ms); a < 12 || b < 12 {
		t.Errorf("%d and %d frames after the pause, want both flows to have half the link", a, b)
	}
	// Back to back in spite of the pause: the link is never idle after 40 ms.
	free := 40 * ms
	for _, s := range *out {
		if s.at < 40*ms {
			continue
		}
		if s.at != free {
			t.Fatalf("a frame began at %v, the link was free from %v", s.at, free)
		}
		free = s.at + s.took
	}
	st := h.Stats().PFC
	if st.Frames != 3 || st.Classes[3].Count != 1 || st.Classes[5].Count != 1 || st.Classes[0].Count != 0 {
		t.Errorf("counted %+v", st)
	}
	if want := 79*ms + 907*us; st.Classes[3].Total(120*ms) != want || st.Classes[5].Total(40*ms) != 29*ms+900*us {
		t.Errorf("class 3 was paused for %v, class 5 by 40ms for %v; want %v and 29.9ms", st.Classes[3].Total(120*ms), st.Classes[5].Total(40*ms), want)
	}
}

// A pause without a RESUME ends at the exact picosecond. It did not cut the frame that was on the
// wire when it came.
func TestPFCPauseOfAHostExpires(t *testing.T) {
	loop, h, out := talker(t, nil)
	flowTo(t, h, 2, 0)
	pause(loop, h, 5*us, 100, 0)
	loop.RunUntil(8 * units.Millisecond)
	if len(*out) < 2 || (*out)[0].at != 0 || (*out)[1].at != 6405*us {
		t.Errorf("frames began at %+v, want the second at 6.405ms", *out)
	}
}

// Acknowledgements and congestion notifications have a class of their own: a pause of data does not
// affect them, and a pause of their class does not affect data.
func TestPFCOfAcknowledgements(t *testing.T) {
	const ms = units.Millisecond
	for _, tt := range []struct {
		class       int
		acks, datas bool
	}{{0, true, false}, {6, false, true}} {
		loop, h, out := talker(t, func(c *agent.Config) { c.CNPGap = us })
		pause(loop, h, 0, packet.MaxQuanta, tt.class)
		loop.RunUntil(us)
		flowTo(t, h, 2, 0)
		d := packet.Frame{
			Src: addr(3), Dst: addr(1), TTL: 64, ECN: packet.CE, SrcPort: 50000, DstPort: packet.RoCEv2Port,
			BTH: packet.BTH{Opcode: packet.SendMiddle, DestQP: 9}, Payload: make([]byte, 100),
		}
		loop.Schedule(2*us, func() { h.Receive(d.Append(nil)) })
		loop.RunUntil(20 * ms)
		acks, cnps, datas := 0, 0, 0
		for _, s := range *out {
			switch s.op {
			case packet.Acknowledge:
				acks++
			case packet.CNP:
				cnps++
			default:
				datas++
			}
		}
		if (acks == 1) != tt.acks || (cnps == 1) != tt.acks || (datas > 0) != tt.datas {
			t.Errorf("class %d paused: %d acknowledgements, %d notifications and %d data frames left", tt.class, acks, cnps, datas)
		}
		if !tt.acks {
			pause(loop, h, 20*ms, 0, 6)
			loop.RunUntil(25 * ms)
			if n := h.Stats().AcksSent; n == 0 {
				t.Error("no acknowledgement left after the pause")
			}
		}
	}
}

// A pause is no loss: the retransmission timeout is extended by the pause.
func TestPFCIsNoLoss(t *testing.T) {
	const ms = units.Millisecond
	for _, tt := range []struct {
		name     string
		pause    bool
		timeouts uint64
	}{{"paused", true, 0}, {"only late", false, 1}} {
		s := newStar(t)
		from, to := config(1, 8*units.Mbps), config(2, 8*units.Mbps)
		from.NewLaw = func(agent.FlowSpec) (law.Law, error) { return none.New(8*units.Mbps, 8000) }
		h := s.host(from, 8*units.Mbps)
		s.host(to, 8*units.Mbps)
		late := units.Time(0)
		s.harm = func(frame []byte) (int, units.Time) {
			if frame[15]>>2 == 48 { // acknowledgements
				return 1, late
			}
			return 1, 0
		}
		s.start(h, agent.FlowSpec{Dst: addr(2)})
		s.loop.RunUntil(500 * ms)
		late = 700 * ms
		if tt.pause {
			pause(s.loop, h, 500*ms, 12500, 0) // 800 ms
		}
		s.loop.RunUntil(1400 * ms)
		late = 0
		s.loop.RunUntil(1450 * ms)
		if r := h.Report()[0]; (r.Timeouts > 0) != (tt.timeouts > 0) {
			t.Errorf("%s: %d timeouts, want %d", tt.name, r.Timeouts, tt.timeouts)
		}
	}
}

func TestPFCFramesAHostIgnores(t *testing.T) {
	bad := func(at int, v byte) []byte {
		f := pauseFrame(1000, 0)
		f[at] = v
		return f
	}
	for name, f := range map[string][]byte{
		"short": pauseFrame(1000, 0)[:40], "reserved": bad(16, 1), "address": bad(0, 3), "opcode": bad(15, 2),
	} {
		_, h, _ := talker(t, nil)
		h.Receive(f)
		if st := h.Stats(); st.PFC != (agent.PFCStats{Ignored: 1}) || st.Malformed != 0 {
			t.Errorf("%s: counted %+v, malformed %d", name, st.PFC, st.Malformed)
		}
	}
	_, h, _ := talker(t, func(c *agent.Config) { c.Lossy = 0xff })
	h.Receive(pauseFrame(1000, 0))
	if st := h.Stats().PFC; st != (agent.PFCStats{Ignored: 1}) {
		t.Errorf("told to ignore PFC: counted %+v", st)
	}
}

// A PAUSE stops only lossless classes, also if it names all classes. A class that becomes lossy resumes at
// once.
func TestPauseOfLossyClasses(t *testing.T) {
	loop, h, _ := talker(t, func(c *agent.Config) { c.Lossy = 1 << 0 })
	pause(loop, h, 0, 1000, 0)
	pause(loop, h, us, 1000, 0, 3, 4)
	loop.RunUntil(2 * us)
	st := h.Stats().PFC
	if st.Ignored != 1 || st.Frames != 1 || st.Classes[0].Count != 0 || st.Classes[3].Count != 1 || st.Classes[4].Count != 1 {
		t.Fatalf("counted %+v", st)
	}
	h.Ignore(loop.Now(), 1<<0|1<<3)
	st = h.Stats().PFC
	if st.Classes[3].Until != loop.Now() || st.Classes[4].Until <= loop.Now() {
		t.Errorf("class 3 is paused until %v and class 4 until %v, want %v and later", st.Classes[3].Until, st.Classes[4].Until, loop.Now())
	}
}

func TestPFCConfiguration(t *testing.T) {
	for want, change := range map[string]func(*agent.Config){
		"class 8 of DSCP 26: want 0 to 7":          func(c *agent.Config) { c.Classes = map[uint8]uint8{26: 8} },
		"class of DSCP 64: want a DSCP of 0 to 63": func(c *agent.Config) { c.Classes = map[uint8]uint8{64: 0} },
		"gap of congestion notifications -1ps":     func(c *agent.Config) { c.CNPGap = -1 },
	} {
		c := config(1, pfcRate)
		change(&c)
		if _, err := agent.New(c, func([]byte) {}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	loop, h, out := talker(t, func(c *agent.Config) { c.Classes = map[uint8]uint8{0: 3} })
	if _, err := h.StartFlow(agent.FlowSpec{Dst: addr(2), DSCP: 64}); err == nil || !strings.Contains(err.Error(), "flow DSCP 64: want 1 to 63") {
		t.Errorf("error %v", err)
	}
	pause(loop, h, 0, 1000, 3)
	loop.RunUntil(us)
	flowTo(t, h, 2, 0)
	loop.RunUntil(10 * units.Millisecond)
	if len(*out) != 0 {
		t.Errorf("%d frames of DSCP 0 left in the pause of its class 3", len(*out))
	}
}

// For any pauses, no frame of a paused class begins, and the link is never idle while a flow of
// another class has data.
func TestPFCPropertyOfAHost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		loop, h, out := talker(t, nil)
		classes := []int{0, 2, 3}
		for i, c := range classes {
			flowTo(t, h, byte(2+i), uint8(c<<3))
		}
		type pfc struct {
			at, until units.Time
			classes   []int
		}
		var all []pfc
		now := units.Time(0)
		for range rapid.IntRange(0, 30).Draw(rt, "frames") {
			now += units.Time(rapid.IntRange(1, 5000).Draw(rt, "gap")) * us
			quanta := uint16(rapid.SampledFrom([]int{0, 1, 20, 100}).Draw(rt, "quanta"))
			about := rapid.SliceOfNDistinct(rapid.SampledFrom(classes), 1, 3, func(c int) int { return c }).Draw(rt, "classes")
			all = append(all, pfc{now, now + 64*us*units.Time(quanta), about})
			pause(loop, h, now, quanta, about...)
		}
		// paused returns the end of a class's pause, given the frames up to a time.
		paused := func(class int, at units.Time) units.Time {
			until := at
			for _, p := range all {
				for _, c := range p.classes {
					if c == class && p.at <= at {
						until = max(at, p.until)
					}
				}
			}
			return until
		}
		end := now + 20*units.Millisecond
		loop.RunUntil(end)
		free := units.Time(0)
		for _, s := range *out {
			if until := paused(int(s.dscp>>3), s.at-1); until > s.at-1 && paused(int(s.dscp>>3), s.at) > s.at {
				rt.Fatalf("class %d sent at %v, paused until %v", s.dscp>>3, s.at, until)
			}
			// Times at which something may have changed while the link was idle.
			for _, at := range append([]units.Time{free}, changes(all, func(p pfc) []units.Time { return []units.Time{p.at, p.until} })...) {
				if at < free || at >= s.at {
					continue
				}
				for _, c := range classes {
					if paused(c, at) == at {
						rt.Fatalf("idle from %v to %v, but class %d could have sent at %v", free, s.at, c, at)
					}
				}
			}
			free = s.at + s.took
		}
		if free < end-7*units.Millisecond {
			rt.Fatalf("nothing was sent from %v to %v", free, end)
		}
	})
}

func changes[T any](all []T, of func(T) []units.Time) (out []units.Time) {
	for _, v := range all {
		out = append(out, of(v)...)
	}
	return out
}
