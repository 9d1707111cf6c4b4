package dataplane

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
	"github.com/headgate/headgate/tables/buffer"
	"github.com/headgate/headgate/tests/dataplane/control"
	"github.com/headgate/headgate/tests/dataplane/target"
	"github.com/headgate/headgate/tests/lag"
	"github.com/headgate/headgate/units"
)

// testBufferTrace sends random traces through headroom.MMU and the switch, one policy after the other. The same
// packets must cause the same PFC frames, drops and counters in both. The order of events is only known if
// packets arrive well before the next one leaves the slow port. If the machine was too busy for that, the trace
// is played again.
func testBufferTrace(r *rig) {
	b := newBufferRig(r)
	for i, kind := range headroom.Kinds() {
		if invalid := lag.Repeat(b, 20, func() string {
			c := bufferConfig(kind)
			if kind.Insured() {
				c.MMU.Alpha = -3
			}
			t := newBufferTrace(b, c)
			err := t.play(rand.New(rand.NewPCG(uint64(i), 3)))
			if err == nil {
				err = t.counters()
			}
			switch {
			case err == nil:
				return ""
			case !t.late:
				b.Fatalf("%s: %v", kind, err)
			}
			t.abandon()
			return fmt.Sprintf("%s: %v", kind, err)
		}); invalid != "" {
			b.Fatal(invalid)
		}
	}
	b.quiet()
}

// bufferTrace is one policy's trace on a rig.
type bufferTrace struct {
	*bufferRig
	kind    headroom.Kind
	mmu     *headroom.MMU
	numbers []uint32
	now     units.Time // the MMU's clock: the trace does not depend on the switch's clock
	stored  []storedPacket
	whole   int // packets from victims
	before  [3]int64
	next    time.Duration // time before which no further packet leaves the slow port
	late    bool          // packets that arrived later than that
}

func newBufferTrace(b *bufferRig, c buffer.Config) *bufferTrace {
	b.Helper()
	mmu, err := headroom.New(b.run(c).MMU)
	must(b.T, err)
	t := &bufferTrace{bufferRig: b, kind: c.MMU.Policy, mmu: mmu, numbers: c.Numbers}
	for _, port := range c.Numbers { // SPFC's meters restart
		t.packetOut(control.PacketOut{Port: port, Mode: ids.PacketOutForget})
		t.poll(port)
	}
	t.before = t.read()
	return t
}

// read returns the counters of PAUSE and RESUME frames and lossless drops.
func (t *bufferTrace) read() (sum [3]int64) {
	t.Helper()
	for _, port := range losslessPorts() {
		for j, id := range []uint32{ids.CounterPFCPauses, ids.CounterPFCResumes} {
			n, _, err := t.ctl.Counter(id, int64(port))
			must(t.T, err)
			sum[j] += n
		}
		for class := range int64(8) {
			n, _, err := t.ctl.Counter(ids.CounterLosslessDrops, int64(port)<<3|class)
			must(t.T, err)
			sum[2] += n
		}
	}
	return sum
}

func (t *bufferTrace) counters() error {
	t.Helper()
	s, got := t.mmu.Stats(), t.read()
	for i := range got {
		got[i] -= t.before[i]
	}
	want := [3]int64{int64(s.PauseFrames), int64(s.ResumeFrames), int64(s.LosslessDrops)}
	if got != want || want[0] == 0 || want[1] == 0 {
		return fmt.Errorf("%d PAUSE frames, RESUME frames and lossless drops are counted, want %d, and some of the first two", got, want)
	}
	if used := t.poll(1).Buffer.Used; used != (pollreport.Pools{}) {
		return fmt.Errorf("all packets have left, and in use are %+v", used)
	}
	if t.kind.Victims() != (t.whole > 0) {
		return fmt.Errorf("%d packets came from victims", t.whole)
	}
	return nil
}

// abandon waits until the switch is in the state from before the trace.
func (t *bufferTrace) abandon() {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		for {
			if _, ok := t.target.Receive(target.Any, 5*t.gap()); !ok {
				break
			}
		}
		used := t.poll(1).Buffer.Used
		if used == (pollreport.Pools{}) {
			return
		}
		if time.Now().After(deadline) { // a busy machine is also silent earlier
			t.Fatalf("nothing leaves any more, and in use are %+v", used)
		}
	}
}

func (t *bufferTrace) play(rng *rand.Rand) error {
	t.Helper()
	for _, burst := range []int{32, 12} {
		t.sleep(t.gap()) // so that the first packet leaves at once
		t.next = t.rig.now() + t.gap()
		t.slow()
		if err := t.arrivals(rng, burst); err != nil {
			return err
		}
		for len(t.stored) > 0 {
			if err := t.depart(); err != nil {
				return err
			}
			if burst == 32 && rng.IntN(3) == 0 && len(t.stored) > 4 && t.next-t.rig.now() > t.gap()*2/3 {
				if err := t.arrivals(rng, 1+rng.IntN(2)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// arrivals sends packets in while the slow port holds its packets.
func (t *bufferTrace) arrivals(rng *rand.Rand, n int) error {
	t.Helper()
	return t.inTime(func() error {
		for range n {
			i := rng.IntN(len(t.numbers))
			class := []uint8{0, 3, 4, 4, 5, 5}[rng.IntN(6)]
			if t.kind.Insured() {
				class = uint8(3 + i) // one class, because τ would otherwise depend on the clock
			}
			t.now += units.Time(rng.IntN(20)) * units.Millisecond
			if err := t.arrive(i, class); err != nil {
				return err
			}
		}
		return nil
	})
}

// inTime runs arrivals and fails if they took longer than the slow port waits for its next packet.
func (t *bufferTrace) inTime(arrivals func() error) error {
	t.Helper()
	err := arrivals()
	t.settle()
	if late := t.rig.now() - t.next; late > 0 {
		t.late = true
		err = errors.Join(err, fmt.Errorf("packets came %v too late", late))
	}
	return err
}

// arrive sends one packet to the switch and the MMU.
func (t *bufferTrace) arrive(i int, class uint8) error {
	t.Helper()
	port := t.numbers[i]
	t.now += units.Millisecond
	if t.mmu.Victim(t.now, i) {
		t.whole++
	}
	t.send(port, bufferFrame(t.rig, port, slowPort, class))
	ok, signals := t.mmu.Arrive(t.now, i, class, bufferBytes)
	if ok {
		t.stored = append(t.stored, storedPacket{port: i, class: class})
	}
	return t.expect(signals)
}

func (t *bufferTrace) depart() error {
	t.Helper()
	s := t.stored[0]
	t.stored = t.stored[1:]
	t.now += units.Millisecond
	f, ok := t.target.Receive(slowPort, patience)
	if !ok {
		return fmt.Errorf("class %d from port %d does not leave", s.class, t.numbers[s.port])
	}
	t.next += t.gap()
	want := t.frame(t.numbers[s.port], slowPort)
	if got := decode(t.T, f); got.trafficClass()>>2 != s.class || !bytes.Equal(got.source(), want.src.AsSlice()) {
		return fmt.Errorf("class %d from %v leaves, want class %d from port %d: the switch has dropped another packet than the MMU", got.trafficClass()>>2, got.source(), s.class, t.numbers[s.port])
	}
	return t.expect(t.mmu.Depart(t.now, s.port, s.class, bufferBytes))
}

// expect waits for the PFC frames that the MMU has requested. A surplus frame shows up at the next frame, or in
// the counters.
func (t *bufferTrace) expect(signals []headroom.Signal) error {
	for _, s := range signals {
		port := t.numbers[s.Port]
		f, ok := t.target.Receive(port, patience)
		if !ok {
			return fmt.Errorf("port %d sends nothing, want %+v", port, s)
		}
		p, err := parsePFC(port, f.Data)
		if err != nil {
			return err
		}
		pause, err := p.pause(buffer.DefaultQuanta)
		if got := (headroom.Signal{Port: s.Port, Classes: p.classes, Pause: pause}); err != nil || got != s {
			return fmt.Errorf("port %d sent %+v (%v), want %+v", port, got, err, s)
		}
	}
	return nil
}
