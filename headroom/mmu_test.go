package headroom

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/units"
)

// rig is an MMU that gets packets of 1000 B back to back at 100 Gb/s.
type rig struct {
	*MMU
	t   *testing.T
	now units.Time
}

// newRig returns a switch of four 100 Gb/s ports with Φ = 10 000 B and the given shared pool.
func newRig(t *testing.T, c Config, shared units.Bytes) *rig {
	t.Helper()
	if c.Lossless == 0 {
		c.Lossless = 0x0F
	}
	c.MTU = 1000
	for range 4 {
		c.Ports = append(c.Ports, Port{Rate: 100 * units.Gbps, Headroom: 10_000})
	}
	c.Buffer = MaxBuffer
	c = c.WithDefaults()
	l := c.layout()
	c.Buffer = l.Private + l.Headroom + l.Insurance + shared
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{MMU: m, t: t}
}

// arrive feeds n packets and returns all PFC frames.
func (r *rig) arrive(port int, class uint8, n int) (frames []Signal) {
	r.t.Helper()
	for range n {
		r.now += 80 * units.Nanosecond
		ok, s := r.Arrive(r.now, port, class, 1000)
		if !ok {
			r.t.Errorf("port %d class %d: a packet is dropped", port, class)
		}
		frames = append(frames, s...)
	}
	r.audit()
	return frames
}

func (r *rig) depart(port int, class uint8, n int) (frames []Signal) {
	r.t.Helper()
	for range n {
		frames = append(frames, r.Depart(r.now, port, class, 1000)...)
	}
	r.audit()
	return frames
}

func (r *rig) audit() {
	r.t.Helper()
	if err := r.Audit(); err != nil {
		r.t.Error(err)
	}
}

func (r *rig) want(what string, got []Signal, want ...Signal) {
	r.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Errorf("%s: want -, got +\n%s", what, diff)
	}
}

func pause(port int, classes uint8) Signal  { return Signal{port, classes, true} }
func resume(port int, classes uint8) Signal { return Signal{port, classes, false} }

// SPFC §II-D: with α = 2 one overloaded port fills two thirds of the pool; one third stays free.
func TestOneOverloadedPort(t *testing.T) {
	r := newRig(t, Config{Policy: DT, Alpha: 1}, 300_001)
	r.want("below T", r.arrive(0, 0, 199))
	r.want("at T", r.arrive(0, 0, 1))
	r.want("above T", r.arrive(0, 0, 1), pause(0, 1))
	u := r.Usage()
	if u.Shared != 200_000 || r.Threshold() != 200_002 || u.Headroom != 1000 {
		t.Errorf("in use %+v, T = %d", u, r.Threshold())
	}
}

func TestAlgorithm1FillsPoolsInOrder(t *testing.T) {
	r := newRig(t, Config{Policy: SIH, Alpha: 0, Private: 2000}, 8001)
	r.arrive(0, 0, 2)
	if got, want := r.Queue(0, 0), (Usage{Private: 2000}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	r.arrive(0, 0, 4)
	if got, want := r.Queue(0, 0), (Usage{Private: 2000, Shared: 4000}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	// T = 4001 and the last byte of headroom is used.
	r.arrive(0, 0, 10)
	if got, want := r.Queue(0, 0), (Usage{Private: 2000, Shared: 4000, Headroom: 10_000}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if ok, _ := r.Arrive(r.now, 0, 0, 1000); ok {
		t.Error("a packet beyond the headroom is taken")
	}
	if s := r.Stats(); s.LosslessDrops != 1 || s.LosslessDropBytes != 1000 || s.LossyDrops != 0 {
		t.Errorf("%+v", s)
	}
	r.depart(0, 0, 11)
	if got, want := r.Queue(0, 0), (Usage{Private: 2000, Shared: 3000}); got != want {
		t.Errorf("headroom is free first: %+v, want %+v", got, want)
	}
}

// Algorithm 1 shares a packet only while the queue is below T; at T it does not.
func TestThresholdItselfIsNotShared(t *testing.T) {
	for shared, want := range map[units.Bytes]units.Bytes{8000: 4000, 7000: 3000} {
		r := newRig(t, Config{Policy: SIH, Alpha: 0}, shared)
		r.arrive(0, 0, 10)
		if got := r.Queue(0, 0).Shared; got != want {
			t.Errorf("%d B of %d B are shared, want %d B", got, shared, want)
		}
	}
}

func TestQueueStates(t *testing.T) {
	r := newRig(t, Config{Policy: SIH, Alpha: 0, ResumeGap: 2500}, 8001)
	r.want("up to T", r.arrive(0, 2, 4))
	r.want("the packet that finds no shared room", r.arrive(0, 2, 1), pause(0, 4))
	r.want("more of it", r.arrive(0, 2, 9))
	r.want("until the headroom is empty", r.depart(0, 2, 10))
	// ω_s = 4000 and T = 4001, then 3000 and 5001: ω_s must fall below T − 2500.
	r.want("above Xon", r.depart(0, 2, 1))
	r.want("below Xon", r.depart(0, 2, 1), resume(0, 4))
	if s := r.Stats(); s.QueuePauses != 1 || s.QueueResumes != 1 || s.PauseFrames != 1 || s.ResumeFrames != 1 {
		t.Errorf("%+v", s)
	}
}

// T rises when other queues drain. A paused queue that is then below T resumes, with one frame for
// all classes of a port.
func TestOthersDepartureResumes(t *testing.T) {
	fill := func(local bool) *rig {
		r := newRig(t, Config{Policy: SIH, Alpha: 0, LocalResume: local}, 16_000)
		r.arrive(0, 0, 8)
		r.arrive(1, 1, 4)
		r.arrive(2, 1, 2)
		r.want("as much as T", r.arrive(2, 2, 1))
		r.want("above a low T", append(r.arrive(2, 1, 1), r.arrive(2, 2, 1)...), pause(2, 2), pause(2, 4))
		r.depart(2, 1, 1)
		r.depart(2, 2, 1)
		return r
	}
	r := fill(false)
	if r.Paused(2) != 6 || r.Threshold() != 1000 {
		t.Fatalf("paused %08b, T = %d", r.Paused(2), r.Threshold())
	}
	r.want("another queue drains", r.depart(0, 0, 1), resume(2, 4))
	r.want("and more", r.depart(0, 0, 1), resume(2, 2))

	r = fill(true)
	r.want("a pipeline does not look", r.depart(0, 0, 8))
	r.want("before the queue's own packets leave", r.depart(2, 1, 1), resume(2, 2))
}

func TestLossyClassesAreDroppedNotPaused(t *testing.T) {
	for _, k := range []Kind{SIH, DSH} {
		r := newRig(t, Config{Policy: k, Alpha: 0, LossyPrivate: 1000}, 24_001)
		r.want("private and shared", r.arrive(0, 7, 13))
		if ok, s := r.Arrive(r.now, 0, 7, 1000); ok || len(s) != 0 {
			t.Errorf("%s: above T: %v, %v", k, ok, s)
		}
		if s := r.Stats(); s.LossyDrops != 1 || s.LosslessDrops != 0 || s.PauseFrames != 0 {
			t.Errorf("%s: %+v", k, s)
		}
		r.depart(0, 7, 13)
		if u := r.Usage(); u != (Usage{}) {
			t.Errorf("%s: %+v", k, u)
		}
	}
}

// dshRig has T = 64 000 B when empty and Xpoff = 4·T; with α = 1 the pool fills up first.
func dshRig(t *testing.T) *rig { return newRig(t, Config{Policy: DSH, Alpha: 0}, 64_000) }

func TestDSHPausesQueueThenPort(t *testing.T) {
	r := dshRig(t)
	// Class 0 at line rate has τ = Φ = 10 000 B after two packets: Xqoff = T − τ.
	r.want("below Xqoff", r.arrive(0, 0, 27))
	if got := r.Tau(0, 0); got != 10_000 {
		t.Errorf("τ = %d B", got)
	}
	// ω = 28 000 > 36 000 − 10 000.
	r.want("above Xqoff", r.arrive(0, 0, 1), pause(0, 1))
	r.want("shared headroom, to the end of the pool", r.arrive(0, 0, 23))
	// ω_port + n < 4·T holds until 51 000 + 1000 exceeds 4 · 13 000.
	if u := r.Usage(); u.Insurance != 0 || u.Shared != 51_000 {
		t.Fatalf("%+v", u)
	}
	r.want("insurance", r.arrive(0, 0, 1), pause(0, 0xFF))
	r.want("more of it, from a queue that is paused on its own account too", r.arrive(0, 1, 9))
	if got := r.Insured(0); got != 10_000 || !r.PortPaused(0) || r.PortPaused(1) {
		t.Errorf("insured %d B", got)
	}
	if ok, _ := r.Arrive(r.now, 0, 1, 1000); ok {
		t.Error("a packet beyond the insurance is taken")
	}
	// Departures empty the insurance first. Then the port resumes, but class 0 is above Xqon and
	// stays paused.
	r.want("until the insurance is empty", r.depart(0, 1, 9))
	got := r.depart(0, 0, 2)
	r.want("the port resumes without its paused queue", got, resume(0, 0xFE))
	if r.Paused(0)&1 == 0 {
		t.Error("class 0 is not paused any more")
	}
	r.depart(0, 0, 50)
	if r.Paused(0) != 0 || r.Usage() != (Usage{}) {
		t.Errorf("in the end %08b is paused and %+v in use", r.Paused(0), r.Usage())
	}
}

func TestDSHPortsAreApart(t *testing.T) {
	r := dshRig(t)
	r.arrive(0, 0, 53) // insured
	if !r.PortPaused(0) {
		t.Fatal("port 0 is not paused")
	}
	r.want("another port", r.arrive(1, 1, 1))
	if r.Paused(1) != 0 {
		t.Errorf("port 1 has %08b paused", r.Paused(1))
	}
}

func TestDSHSingleQueueHasNoMargin(t *testing.T) {
	r := dshRig(t)
	r.arrive(0, 0, 20)
	r.now += 10 * units.Millisecond
	r.arrive(0, 0, 2)
	if got := r.Tau(0, 0); got != 0 {
		t.Fatalf("one queue for 10 ms: τ = %d B", got)
	}
	r.want("τ = 0: up to T", r.arrive(0, 0, 10))
	r.want("above T", r.arrive(0, 0, 1), pause(0, 1))
	r = dshRig(t)
	r.arrive(0, 0, 20)
	r.now += 10 * units.Millisecond
	r.arrive(0, 1, 1)
	r.arrive(0, 0, 2)
	if got := r.Tau(0, 0); got == 0 {
		t.Error("two queues: τ = 0")
	}
}

// A queue also grows while it fills its private part, so τ is known before it uses the shared pool.
func TestDSHMarginCountsPrivateBytes(t *testing.T) {
	r := newRig(t, Config{Policy: DSH, Alpha: 0, Private: 5000}, 64_000)
	r.arrive(0, 0, 5)
	if got := r.Tau(0, 0); got != 10_000 {
		t.Errorf("τ = %d B", got)
	}
}

func TestDSHWithoutSharedHeadroom(t *testing.T) {
	r := newRig(t, Config{Policy: DSH, Alpha: 0, DSH: DSHConfig{NoSharedHeadroom: true}}, 64_000)
	r.want("below T", r.arrive(0, 0, 32))
	r.want("the queue ends at T, in the insurance", r.arrive(0, 0, 1), pause(0, 0xFF))
}

func TestDSHPortGap(t *testing.T) {
	r := newRig(t, Config{Policy: DSH, Alpha: 0, PortResumeGap: 14_000}, 64_000)
	r.arrive(0, 0, 52)
	// ω_port = 51 000 and T = 13 000 with one packet insured.
	r.want("not below 4·T − δp", r.depart(0, 0, 3))
	if r.Insured(0) != 0 || !r.PortPaused(0) {
		t.Fatalf("%d B insured, port paused %v", r.Insured(0), r.PortPaused(0))
	}
	r.want("below 4·T − δp", r.depart(0, 0, 1), resume(0, 0xFE))
}

// A pipeline that only acts on departures must resume an empty port even if others fill the pool,
// because no packet will leave that port's queues.
func TestLocalResumeOfWhatIsEmpty(t *testing.T) {
	r := newRig(t, Config{Policy: DSH, Alpha: 0, LocalResume: true}, 64_000)
	r.arrive(0, 0, 51)
	r.arrive(1, 1, 11)
	r.arrive(2, 2, 2)
	r.arrive(3, 3, 1)
	if !r.PortPaused(2) || !r.PortPaused(3) || r.Threshold() != 0 {
		t.Fatalf("ports paused %v and %v, T = %d", r.PortPaused(2), r.PortPaused(3), r.Threshold())
	}
	r.want("the only packet leaves", r.depart(3, 3, 1), resume(3, 0xFF))
	r.depart(2, 2, 2)
	r.depart(1, 1, 11)
	r.depart(0, 0, 51)
	if r.Paused(0)|r.Paused(1)|r.Paused(2)|r.Paused(3) != 0 {
		t.Error("somebody is still paused")
	}
}

// spfcRig sends enough traffic of port 0 through the switch to make it a victim port.
func spfcRig(t *testing.T, k Kind) *rig {
	r := newRig(t, Config{Policy: k, Alpha: 0}, 64_000)
	for range 1000 { // 80 µs at line rate
		r.arrive(0, 0, 1)
		r.depart(0, 0, 1)
	}
	if !r.Victim(r.now, 0) || r.Victim(r.now, 1) {
		t.Fatalf("%s: victims %v, %v; want port 0 alone", k, r.Victim(r.now, 0), r.Victim(r.now, 1))
	}
	return r
}

func TestSPFCVictimUsesTheWholeBuffer(t *testing.T) {
	r := spfcRig(t, SPFC)
	r.want("a victim port fills the pool", r.arrive(0, 0, 64))
	r.want("and pauses when it is full", r.arrive(0, 0, 1), pause(0, 1))
	if r.Victim(r.now, 0) {
		t.Error("still a victim after its PAUSE")
	}
	r.want("T of a normal port is 0 then", r.arrive(1, 0, 1), pause(1, 1))
	// 64 000 − ω > ω holds only below 32 000; port 1 resumes earlier.
	r.want("the port has to fall below T", r.depart(0, 0, 33))
	r.want("port 1 has its headroom empty and T above", r.depart(1, 0, 1), resume(1, 1))
	r.want("port 0 goes on", r.depart(0, 0, 1), resume(0, 1))
	if r.Victim(r.now, 0) != true {
		t.Error("its departures of this period do not count after RESUME")
	}
}

func TestSPFCNormalPortsMakeRoom(t *testing.T) {
	for _, victim := range []bool{true, false} {
		r := newRig(t, Config{Policy: SPFC, Alpha: 0}, 64_000)
		if victim {
			r = spfcRig(t, SPFC)
		}
		r.arrive(1, 0, 20)
		frames := r.arrive(0, 0, 30)
		if got := len(frames) > 0; got == victim {
			t.Errorf("victim %v: port 0 is paused: %v", victim, frames)
		}
	}
}

func TestDSHSPFCVictimKeepsItsMargin(t *testing.T) {
	r := spfcRig(t, DSHSPFC)
	// Xqoff = Bs − τ with τ = Φ at line rate.
	frames := r.arrive(0, 0, 50)
	r.want("a victim port passes T", frames)
	r.want("its queue pauses below the end of the pool", r.arrive(0, 0, 5), pause(0, 1))
	if r.Victim(r.now, 0) || r.PortPaused(0) {
		t.Errorf("victim %v, port paused %v", r.Victim(r.now, 0), r.PortPaused(0))
	}
}

func TestUnderflowIsCounted(t *testing.T) {
	r := newRig(t, Config{Policy: SIH, Alpha: 0}, 8000)
	r.arrive(0, 0, 1)
	r.Depart(r.now, 0, 0, 1500)
	if s := r.Stats(); s.Underflows != 1 || r.Usage() != (Usage{}) {
		t.Errorf("%+v, %+v", s, r.Usage())
	}
}
