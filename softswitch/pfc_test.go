package softswitch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/softswitch/port"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/units"
)

// pauseFrame is a PFC frame about some classes, all with the same time.
func pauseFrame(quanta uint16, classes ...int) []byte {
	var p packet.PFC
	for _, c := range classes {
		p.Enabled |= 1 << c
		p.Quanta[c] = quanta
	}
	return p.Append(nil)
}

// pausable returns a switch with ports 1 and 2 and a host at each. Frames of host 1 leave by port
// 2, and host 2 pauses that port.
func pausable(t testing.TB, pfc PFC, rate units.Rate) (*clock.Loop, *Switch, *host, *host) {
	t.Helper()
	loop := clock.NewLoop()
	c := config("a")
	c.PFC = pfc
	s, err := NewOnLoop(loop, c)
	if err != nil {
		t.Fatal(err)
	}
	s.Commit(echo(t, 8))
	h1, h2 := &host{loop: loop}, &host{loop: loop}
	for n, h := range []*host{h1, h2} {
		p, err := s.AddPort(uint32(n+1), rate)
		if err != nil {
			t.Fatal(err)
		}
		connect(t, loop, 0, h, p)
	}
	return loop, s, h1, h2
}

// A byte lasts 1 us at the tests' rate, a quantum 64 us.
const pfcRate = 8 * units.Mbps

func (h *host) order() (out []uint32) {
	for _, got := range h.got {
		out = append(out, got.seq)
	}
	return out
}

func TestPFCPausesTheClassAtThePortsRate(t *testing.T) {
	loop, s, h1, h2 := pausable(t, PFC{Enabled: true}, pfcRate)
	h1.send(0, frame(2, 3, 0, 100))
	h1.send(0, frame(2, 3, 1, 100))
	h2.send(50*us, pauseFrame(10, 3))      // until 690 us; frame 0 is on the wire until 100 us
	h1.send(50*us, frame(2, 3, 2, 100))    // comes after the PAUSE
	h1.send(60*us, frame(2, 1, 3, 100))    // another class goes on
	h2.send(600*us, pauseFrame(100, 3, 5)) // refreshed until 7 ms
	h1.send(700*us, frame(2, 5, 4, 100))   // paused too
	h2.send(1000*us, pauseFrame(0, 3))     // resumed
	h2.send(1000*us, pauseFrame(9, 4))     // nothing there
	loop.RunUntil(900 * us)
	if q := stats(t, s, 2).Queues.Queues[3]; q.Paused.Time != 850*us || q.Paused.Count != 1 {
		t.Errorf("queue 3 was paused %d times, %v by 900us, want once, 850us", q.Paused.Count, q.Paused.Time)
	}
	loop.RunUntil(20 * ms)
	var at []units.Time
	for _, got := range h2.got {
		at = append(at, got.at)
	}
	if want := []uint32{0, 3, 1, 2, 4}; !slices.Equal(h2.order(), want) {
		t.Errorf("frames %v arrived, want %v", h2.order(), want)
	}
	if want := []units.Time{100 * us, 200 * us, 1100 * us, 1200 * us, 600*us + 6400*us + 100*us}; !slices.Equal(at, want) {
		t.Errorf("frames arrived at %v, want %v", at, want)
	}
	st := stats(t, s, 2)
	want := PFCStats{Frames: 4, Pauses: [8]uint64{3: 2, 4: 1, 5: 1}, Resumes: [8]uint64{3: 1}}
	if st.PFC != want || st.RxFrames != 4 {
		t.Errorf("counted %+v of %d frames, want %+v of 4", st.PFC, st.RxFrames, want)
	}
	if q := st.Queues.Queues; q[3].Paused.Time != 950*us || q[5].Paused.Time != 6400*us || q[1].Paused.Time != 0 {
		t.Errorf("paused for %v, %v and %v, want 950us, 6.4ms and nothing", q[3].Paused.Time, q[5].Paused.Time, q[1].Paused.Time)
	}
	if other := stats(t, s, 1); other.PFC != (PFCStats{}) || other.TxFrames != 0 {
		t.Errorf("port 1 counts %+v and sent %d frames", other.PFC, other.TxFrames)
	}
}

// While all classes are paused, the switch's own frames in the highest queue still leave.
func TestPFCNeverHoldsNetworkControl(t *testing.T) {
	loop, s, h1, h2 := pausable(t, PFC{Enabled: true}, pfcRate)
	h2.send(0, pauseFrame(packet.MaxQuanta, 0, 1, 2, 3, 4, 5, 6, 7))
	for q := range uint8(8) {
		h1.send(us, frame(2, q, uint32(q), 100))
	}
	loop.RunUntil(10 * ms)
	if want := []uint32{7}; !slices.Equal(h2.order(), want) {
		t.Errorf("frames of queues %v left, want %v", h2.order(), want)
	}
	if st := stats(t, s, 2).PFC; st.Ignored != [8]uint64{7: 1} {
		t.Errorf("ignored %v, want one PAUSE of class 7", st.Ignored)
	}
}

func TestPFCQueuesOfAClass(t *testing.T) {
	classes := []int{3, NoClass, 3, NoClass, NoClass, NoClass, NoClass, 7}
	loop, _, h1, h2 := pausable(t, PFC{Enabled: true, Classes: classes}, pfcRate)
	h2.send(0, pauseFrame(1000, 3, 7))
	for q := range uint8(8) {
		h1.send(us, frame(2, q, uint32(q), 100))
	}
	loop.RunUntil(10 * ms)
	got := h2.order()
	slices.Sort(got)
	if want := []uint32{1, 3, 4, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("frames of queues %v left, want %v", got, want)
	}
}

// A port without a rate counts bit times at 10 Gb/s.
func TestPFCWithoutARate(t *testing.T) {
	loop, _, h1, h2 := pausable(t, PFC{Enabled: true}, 0)
	h2.send(0, pauseFrame(100, 3))
	h1.send(us, frame(2, 3, 1, 100))
	loop.RunUntil(10 * ms)
	if want := 51200 * 100 * units.Picosecond; len(h2.got) != 1 || h2.got[0].at != want {
		t.Errorf("arrived %+v, want at %v", h2.got, want)
	}
}

func TestMACControlFramesThatAreNotObeyed(t *testing.T) {
	bad := func(at int, v byte) []byte {
		f := pauseFrame(1000, 3)
		f[at] = v
		return f
	}
	frames := map[string][]byte{
		"short": pauseFrame(1000, 3)[:59], "reserved": bad(16, 1), "address": bad(0, 3), "opcode": bad(15, 2),
	}
	loop, s, h1, h2 := pausable(t, PFC{Enabled: true}, pfcRate)
	for _, f := range frames {
		h2.send(0, f)
	}
	h1.send(us, frame(2, 3, 1, 100))
	loop.RunUntil(10 * ms)
	if len(h2.got) != 1 || h2.got[0].at != 101*us {
		t.Errorf("a frame was held back: %+v", h2.got)
	}
	if len(h1.got) != 0 {
		t.Errorf("the pipeline got %d MAC control frames", len(h1.got))
	}
	if st := stats(t, s, 2).PFC; st != (PFCStats{Malformed: 3, Other: 1}) {
		t.Errorf("counted %+v, want 3 malformed and 1 other", st)
	}
}

// With PFC off, MAC control frames pass the pipeline as in BMv2; this pipeline sends them out of
// port 1. With PFC on, the port consumes them.
func TestPipelineSeesMACControlWithoutPFC(t *testing.T) {
	for _, tt := range []struct {
		pfc          PFC
		seen, paused bool
	}{{PFC{}, true, false}, {PFC{Enabled: true}, false, true}} {
		loop, s, h1, h2 := pausable(t, tt.pfc, pfcRate)
		h2.send(0, pauseFrame(1000, 3))
		h1.send(us, frame(2, 3, 1, 100))
		loop.RunUntil(10 * ms)
		if seen := len(h1.got) == 1; seen != tt.seen {
			t.Errorf("%+v: the pipeline saw the frame: %v", tt.pfc, seen)
		}
		if paused := len(h2.got) == 0; paused != tt.paused {
			t.Errorf("%+v: the port paused: %v", tt.pfc, paused)
		}
		if n := stats(t, s, 2).PFC.Frames; (n == 1) != tt.paused {
			t.Errorf("%+v: %d PFC frames counted", tt.pfc, n)
		}
	}
}

// Frames from the controller begin with the packet_out header. They are never MAC control frames,
// whatever the header contains.
func TestPacketOutIsNoPFC(t *testing.T) {
	loop, s, _, h2 := pausable(t, PFC{Enabled: true}, pfcRate)
	f := pauseFrame(1000, 3)
	f[5] = 2
	loop.Schedule(0, func() { s.PacketOut(f) })
	loop.RunUntil(ms)
	if len(h2.got) != 1 || stats(t, s, cpuPort).PFC != (PFCStats{}) {
		t.Errorf("%d frames left, the CPU port counts %+v", len(h2.got), stats(t, s, cpuPort).PFC)
	}
}

// PFC frames of a batch take effect in their place among the other frames, even if the whole batch
// passed ingress ahead.
func TestPFCInABatch(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		t.Run(fmt.Sprintf("ahead=%v", ahead), func(t *testing.T) { testPFCInABatch(t, ahead) })
	}
}

func testPFCInABatch(t *testing.T, ahead bool) {
	m, err := tm.New(tm.Config{Queues: 8})
	if err != nil {
		t.Fatal(err)
	}
	pfc, err := newFlowControl(PFC{Enabled: true}, 8, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := &frames{}
	c := &dataplane{tm: m, pfc: pfc, lossless: pfc.queues, old: map[uint32]*pipeline{}}
	if err := m.AddPort(1, pfcRate); err != nil {
		t.Fatal(err)
	}
	c.ports[1] = &portState{out: out, up: true, info: PortStats{Port: 1}}
	c.install(echo(t, 8).Instance)
	a, b := &rxBatch{}, port.NewBatch(96, 64<<10)
	for _, f := range [][]byte{frame(1, 3, 0, 100), pauseFrame(100, 3), frame(1, 3, 1, 100), frame(1, 4, 2, 100), pauseFrame(0, 3)[:20], frame(1, 3, 3, 100)} {
		b.Add(1, f)
	}
	b.Add(9, pauseFrame(100, 4)) // no such port
	a.fill(b)
	if ahead {
		a.ingressAhead(c, 0)
	}
	c.receiveBatch(a, 5*us)
	seqs := func() (s []uint32) {
		for _, r := range out.got {
			s = append(s, r.seq)
		}
		return s
	}
	c.run(ms)
	if got, want := seqs(), []uint32{0, 2}; !slices.Equal(got, want) {
		t.Errorf("frames %v left, want %v", got, want)
	}
	c.run(20 * ms)
	if got, want := seqs(), []uint32{0, 2, 1, 3}; !slices.Equal(got, want) {
		t.Errorf("frames %v left, want %v", got, want)
	}
	if st := c.ports[1].info; st.PFC.Frames != 1 || st.PFC.Malformed != 1 || st.RxFrames != 6 {
		t.Errorf("counted %+v of %d frames", st.PFC, st.RxFrames)
	}
	a.reset()
}

func TestPFCErrors(t *testing.T) {
	for _, tt := range []struct {
		pfc  PFC
		want string
	}{
		{PFC{Enabled: true, Classes: []int{0}}, "PFC classes of 1 queues: want one for each of the 8 queues"},
		{PFC{Enabled: true, Classes: []int{0, 1, 2, 3, 4, 5, 6, 8}}, "PFC class 8 of queue 7: want 0 to 7, or -1 for none"},
	} {
		c := config("a")
		c.PFC = tt.pfc
		if _, err := NewOnLoop(clock.NewLoop(), c); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
}

// Whatever PFC frames arrive, no frame of a paused class starts before the pause is over, and all
// frames arrive in the end.
func TestPFCProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		loop, _, h1, h2 := pausable(t, PFC{Enabled: true}, pfcRate)
		type pfc struct {
			at, until units.Time
			class     int
		}
		var pauses []pfc
		n := rapid.IntRange(1, 60).Draw(rt, "events")
		now := units.Time(0)
		sent := 0
		for range n {
			now += units.Time(rapid.IntRange(1, 300).Draw(rt, "gap")) * us
			class := rapid.IntRange(0, 6).Draw(rt, "class")
			if rapid.Bool().Draw(rt, "pause") {
				quanta := uint16(rapid.SampledFrom([]int{0, 1, 5, 30}).Draw(rt, "quanta"))
				pauses = append(pauses, pfc{now, now + 64*us*units.Time(quanta), class})
				h2.send(now, pauseFrame(quanta, class))
			} else {
				h1.send(now, frame(2, uint8(class), uint32(class), 100))
				sent++
			}
		}
		loop.RunUntil(now + units.Second)
		if len(h2.got) != sent {
			rt.Fatalf("%d of %d frames arrived", len(h2.got), sent)
		}
		for _, got := range h2.got {
			began := got.at - 100*us
			until := units.Time(0)
			for _, p := range pauses {
				if p.class == int(got.seq) && p.at <= began {
					until = p.until
				}
				if p.class == int(got.seq) && p.at == began {
					until = 0 // resumed just now, or begun before the PAUSE
				}
			}
			if began < until {
				rt.Fatalf("class %d sent at %v, paused until %v", got.seq, began, until)
			}
		}
	})
}

// TestPauseOfALossyClassIsIgnored: port 2's host pauses classes again and again while 200 frames
// of classes 0, 3 and 6 pass. Only lossless classes stop. PAUSEs of the other classes are counted
// and have no other effect, on the watchdog either.
func TestPauseOfALossyClassIsIgnored(t *testing.T) {
	const frames = 200
	all := []int{0, 1, 2, 3, 4, 5, 6, 7}
	for _, tt := range []struct {
		name     string
		lossless *externs.Lossless
		paused   []int
		arrived  [8]int // of the classes 0, 3 and 6
		stormed  [8]uint64
	}{
		{"flags", nil, all, [8]int{}, [8]uint64{1, 1, 1, 1, 1, 1, 1}},
		{"class 0", &externs.Lossless{3: 1 << 3}, []int{0}, [8]int{0: frames, 3: frames, 6: frames}, [8]uint64{}},
		{"class 6", &externs.Lossless{3: 1 << 3}, []int{6}, [8]int{0: frames, 3: frames, 6: frames}, [8]uint64{}},
		{"0xff", &externs.Lossless{3: 1 << 3}, all, [8]int{0: frames, 6: frames}, [8]uint64{3: 1}},
		{"another queue", &externs.Lossless{3: 1<<0 | 1<<6}, all, [8]int{3: frames}, [8]uint64{3: 1}},
		{"none", &externs.Lossless{}, all, [8]int{0: frames, 3: frames, 6: frames}, [8]uint64{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const pauses = 10
			loop, s, h1, h2 := pausable(t, PFC{Enabled: true, Watch: externs.Settings{Detection: units.Second, Action: externs.Alert}}, pfcRate)
			if tt.lossless != nil {
				s.lossless.Set(tt.lossless)
			}
			for i := range units.Time(pauses) {
				h2.send(i*200*ms, pauseFrame(65535, tt.paused...))
			}
			for i := range uint32(frames) {
				for _, class := range []uint32{0, 3, 6} {
					h1.send(units.Time(i+1)*10*ms, frame(2, byte(class), class<<16|i, 100))
				}
			}
			loop.RunUntil(3 * units.Second) // a PAUSE lasts 4.2 s
			var arrived [8]int
			for _, seq := range h2.order() {
				arrived[seq>>16]++
			}
			var ignored, obeyed [8]uint64
			for _, c := range tt.paused {
				if s.dataplane.lossless[c] != 0 {
					obeyed[c] = pauses
				} else {
					ignored[c] = pauses
				}
			}
			if st := stats(t, s, 2).PFC; arrived != tt.arrived || st.Ignored != ignored || st.Pauses != obeyed || st.Storms != tt.stormed {
				t.Errorf("%v frames arrived, want %v; %+v, want %v PAUSEs ignored, %v obeyed, %v storms", arrived, tt.arrived, st, ignored, obeyed, tt.stormed)
			}
		})
	}
}

// TestLosslessClassesChange: a class that becomes lossy sends again at once, even during a storm.
// When the controller takes its setting back, the switch returns to the classes it started with.
func TestLosslessClassesChange(t *testing.T) {
	loop, s, h1, h2 := pausable(t, PFC{Enabled: true, Watch: externs.Settings{Detection: 100 * ms, Restoration: 10 * units.Second, Action: externs.Alert}}, pfcRate)
	h2.send(0, pauseFrame(65535, 3))
	h1.send(ms, frame(2, 3, 0, 100))
	loop.RunUntil(500 * ms)
	if st := stats(t, s, 2).PFC; len(h2.got) != 0 || st.Storming != 1<<3 {
		t.Fatalf("%d frames arrived, %+v: want a storm of class 3", len(h2.got), st)
	}
	s.lossless.Set(&externs.Lossless{4: 1 << 4})
	loop.RunUntil(600 * ms)
	if st := stats(t, s, 2).PFC; len(h2.got) != 1 || st.Storming != 0 {
		t.Errorf("%d frames arrived, %+v: want the frame and no storm", len(h2.got), st)
	}
	if got, set := s.lossless.Settings(); !set || got != (externs.Lossless{4: 1 << 4}) {
		t.Errorf("settings %v, %v", got, set)
	}
	s.lossless.Set(nil)
	if got, set := s.lossless.Settings(); set || got[3] != 1<<3 || got[7] != 0 {
		t.Errorf("settings %v, %v, want those of the flags", got, set)
	}
	h2.send(700*ms, pauseFrame(65535, 3))
	h1.send(710*ms, frame(2, 3, 1, 100))
	loop.RunUntil(units.Second)
	if len(h2.got) != 1 {
		t.Errorf("%d frames arrived, want class 3 to obey again", len(h2.got))
	}
}

// TestWeightsChange: a controller's weights make queues share a port; without them the switch has its own schedule again.
func TestWeightsChange(t *testing.T) {
	loop, s, h1, h2 := pausable(t, PFC{}, pfcRate)
	send := func(at units.Time) (low int) {
		h2.got = nil
		for i := range 10 {
			h1.send(at, frame(2, 1, uint32(i), 1400))
			h1.send(at, frame(2, 3, uint32(i), 1400))
		}
		loop.RunUntil(at + units.Second)
		for _, f := range h2.got[:10] {
			if f.queue == 1 {
				low++
			}
		}
		return low
	}
	strict := send(0)
	s.weights.Set(&externs.Weights{1: 1, 3: 1})
	if low := send(2 * units.Second); strict > 1 || low < 4 {
		t.Errorf("of the first 10 frames %d were of the lower queue by strict priority, %d by equal weights", strict, low)
	}
	s.weights.Set(nil)
	if low := send(4 * units.Second); low > 1 {
		t.Errorf("of the first 10 frames %d were of the lower queue without weights", low)
	}
}

// TestObeyedByPort: a port ignores the PAUSEs of a class that is not lossless there. It sends held frames as soon
// as it learns that a class is not lossless.
func TestObeyedByPort(t *testing.T) {
	loop, s, h1, h2 := pausable(t, PFC{Enabled: true}, pfcRate)
	s.lossless.Set(&externs.Lossless{3: 1 << 3, 4: 1 << 4})
	h2.send(0, pauseFrame(65535, 3, 4))
	h1.send(ms, frame(2, 3, 3, 100))
	h1.send(ms, frame(2, 4, 4, 100))
	loop.RunUntil(100 * ms)
	if len(h2.got) != 0 {
		t.Fatalf("%d frames arrived while both classes are paused", len(h2.got))
	}
	s.obeyed.Set(&externs.Obeyed{2: 1 << 4})
	loop.RunUntil(200 * ms)
	h2.send(210*ms, pauseFrame(65535, 3, 4))
	h1.send(220*ms, frame(2, 3, 5, 100))
	loop.RunUntil(300 * ms)
	if got := h2.order(); len(got) != 2 || got[0] != 3 || got[1] != 5 {
		t.Errorf("frames %v arrived, want those of class 3", got)
	}
	if st := stats(t, s, 2).PFC; st.Ignored[3] != 1 || st.Ignored[4] != 0 {
		t.Errorf("%v PAUSEs were ignored, want one of class 3", st.Ignored)
	}
	s.obeyed.Set(nil)
	h2.send(310*ms, pauseFrame(65535, 3))
	h1.send(320*ms, frame(2, 3, 6, 100))
	loop.RunUntil(400 * ms)
	if len(h2.got) != 2 {
		t.Errorf("%d frames arrived, want class 3 to obey again", len(h2.got))
	}
}
