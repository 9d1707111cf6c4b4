package dataplane

import (
	"fmt"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	feature "github.com/headgate/headgate/controller/feature/buffer"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
	"github.com/headgate/headgate/tables/buffer"
	"github.com/headgate/headgate/tests/dataplane/bmv2"
	"github.com/headgate/headgate/tests/dataplane/control"
	"github.com/headgate/headgate/tests/dataplane/target"
	"github.com/headgate/headgate/units"
)

// The rig of buffer tests: packets of one size arrive on the lossless ports and wait in one queue for a slow
// port. Packets of the outside port are not accounted.
const (
	slowPort    = 2
	outsidePort = 5
	bufferBytes = 500
)

func losslessPorts() []uint32 { return []uint32{1, 3, 4} }

// bufferRig is a rig with a buffer policy.
type bufferRig struct {
	*rig
	rate    int // of the slow port, packets/s: a burst is complete before the next packet leaves
	pipe    *pipeline.Pipeline
	running []buffer.Entry
}

func newBufferRig(r *rig) *bufferRig {
	r.Helper()
	info, err := control.P4Info()
	must(r.T, err)
	pipe, err := pipeline.New(info, nil)
	must(r.T, err)
	b := &bufferRig{rig: r, pipe: pipe, rate: 50}
	if _, real := r.target.(*bmv2.Switch); real {
		b.rate = 4 // processes and their threads wait for each other
	}
	for class := range uint64(8) {
		r.write(control.Class(class, class, 0))
	}
	for _, port := range losslessPorts() {
		r.write(pfcSession(port))
	}
	return b
}

// run changes the policy in an order that loses nothing: entries, policy, then leftovers.
func (b *bufferRig) run(c buffer.Config) *buffer.Entries {
	b.Helper()
	e, err := buffer.Build(c)
	must(b.T, err)
	key := func(e buffer.Entry) string { return fmt.Sprint(e.Table, e.Match) }
	old := map[string]buffer.Entry{}
	for _, o := range b.running {
		old[key(o)] = o
	}
	var updates []*p4v1.Update
	add := func(kind p4v1.Update_Type, entry buffer.Entry) {
		e, err := feature.Entity(b.pipe, entry)
		must(b.T, err)
		updates = append(updates, &p4v1.Update{Type: kind, Entity: e})
	}
	for _, entry := range e.Tables {
		kind := p4v1.Update_INSERT
		if _, exists := old[key(entry)]; exists {
			kind = p4v1.Update_MODIFY
			delete(old, key(entry))
		}
		add(kind, entry)
	}
	b.write(updates...)
	b.policy(e.Policy)
	updates = nil
	for _, entry := range old {
		add(p4v1.Update_DELETE, entry)
	}
	if len(updates) > 0 {
		b.write(updates...)
	}
	b.running = e.Tables
	return e
}

func (b *bufferRig) policy(a buffer.Action) {
	b.Helper()
	e, err := b.pipe.Default(ids.TableBufferPolicyName).Call(a.Name, a.Params).Entity()
	must(b.T, err)
	b.write(p4rtmsg.Modify(e))
}

// gap is the time between two packets of the slow port.
func (b *bufferRig) gap() time.Duration { return time.Second / time.Duration(b.rate) }

// slow delays the slow port's next packet: an outside packet has just left.
func (b *bufferRig) slow() {
	b.Helper()
	b.shape(slowPort, target.Shape{PacketsPerSecond: b.rate, FrameBytes: bufferBytes, Depth: 1000})
	b.send(outsidePort, bufferFrame(b.rig, outsidePort, slowPort, 0))
	b.receive(slowPort, 1)
}

// settle waits until ingress has handled all packets sent; the packet that it sends for this is not accounted.
func (b *bufferRig) settle() {
	b.Helper()
	b.send(outsidePort, newFrame(outsidePort, fencePort).bytes(b.T))
	b.receive(fencePort, 1)
}

func bufferFrame(r *rig, from, to uint32, class uint8) []byte {
	f := r.frame(from, to).long(bufferBytes)
	f.dscp = class
	return f.bytes(r.T)
}

// signal returns the next PFC frame of a port.
func (b *bufferRig) signal(port uint32) pfcFrame {
	b.Helper()
	f, ok := b.target.Receive(port, patience)
	if !ok {
		b.Fatalf("port %d sends no PFC frame", port)
	}
	p, err := parsePFC(port, f.Data)
	must(b.T, err)
	return p
}

// quiet fails if a lossless port has sent anything.
func (b *bufferRig) quiet() {
	b.Helper()
	for _, port := range losslessPorts() {
		if f, ok := b.target.Receive(port, 0); ok {
			b.Errorf("port %d sent %x, want nothing", port, f.Data)
		}
	}
}

// bufferConfig is a small policy for links so slow that no PAUSE is refreshed. DSH's window is so short that τ,
// which varies by microseconds, is 0 for a port with one class.
func bufferConfig(kind headroom.Kind) buffer.Config {
	c := headroom.Config{
		Policy: kind, Lossless: 0b0111_1000, MTU: bufferBytes, AllowLoss: true, Buffer: 38_000,
		Private: 500, LossyPrivate: 500, Headroom: 1500, ResumeGap: 500, PortResumeGap: 500,
		Threshold: 1001, Share: 500, Alpha: -2,
	}
	if kind == headroom.Adaptive {
		c.Headroom, c.Buffer = 0, 92_144 // Φ of the links is 6012 B
	}
	c.DSH.Window = units.Microsecond
	// No period of SPFC ends during a trace, because the switch's clock is not the trace's.
	const rate = 400 * units.BitPerSecond
	if kind.Victims() {
		c.SPFC.Period, c.SPFC.K = 4000*units.Second, 64 // IRC is 3125 B
	}
	b := buffer.Config{MMU: c, Quanta: 65535, Numbers: losslessPorts()}
	for range b.Numbers {
		b.MMU.Ports = append(b.MMU.Ports, headroom.Port{Rate: rate})
	}
	return b
}

// testBufferRefresh lets a PAUSE age: packets repeat it, and so may the controller.
func testBufferRefresh(r *rig) {
	b := newBufferRig(r)
	b.rate = 4 // all of this happens before a queue has drained
	c := bufferConfig(headroom.Static)
	const quanta = 1000
	c.Quanta = quanta
	c.MAC = [][6]byte{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 3}, {2, 0, 0, 0, 0, 4}}
	for i := range c.MMU.Ports {
		c.MMU.Ports[i].Rate = units.Gbps // half of the pause is 256 µs
	}
	b.run(c)
	b.slow()
	pause := func(what string) {
		b.Helper()
		f := b.signal(3)
		if is, err := f.pause(quanta); err != nil || !is || f.classes != 1<<5 {
			b.Fatalf("%s: %+v (%v), want a PAUSE of class 5 for %d", what, f, err, quanta)
		}
	}
	packets := 0
	send := func(class uint8) {
		b.Helper()
		packets++
		b.send(3, bufferFrame(r, 3, slowPort, class))
		b.settle()
		b.sleep(time.Millisecond)
	}
	for range 5 { // private, twice shared, twice headroom: the first headroom packet pauses
		send(5)
	}
	pause("the fourth packet")
	pause("the fifth, later")
	// The controller's refresh is for a peer that may have restarted: it names the state of all classes.
	restated := func(port uint32, paused uint8) {
		b.Helper()
		want := pfcFrame{port: port, classes: 0xff}
		for class := range want.times {
			if paused>>class&1 != 0 {
				want.times[class] = quanta
			}
		}
		b.packetOut(control.PacketOut{Port: port, Mode: ids.PacketOutRefresh, Payload: []byte("anything")})
		if f := b.signal(port); f != want {
			b.Fatalf("the controller has port %d send %+v, want %+v", port, f, want)
		}
	}
	restated(3, 1<<5)
	send(0) // of a class that is not paused
	pause("a packet of another class")
	restated(1, 0)
	if report := b.poll(3).Buffer; report.Paused() != 1<<5 || report.LastPause == 0 || report.Private[5] != 500 {
		b.Errorf("port 3 reports %+v, want class 5 paused", report)
	}
	// The queue drains: refreshes, then RESUME, then silence.
	b.receive(slowPort, packets)
	for n := 0; ; n++ {
		f := b.signal(3)
		if is, err := f.pause(quanta); err != nil || is && n > packets {
			b.Fatalf("%+v (%v) after %d others", f, err, n)
		} else if !is {
			break
		}
	}
	restated(3, 0)
	if report := b.poll(3).Buffer; report.Paused() != 0 || report.Used != (pollreport.Pools{}) {
		b.Errorf("everything has left, and port 3 reports %+v", report)
	}
	b.quiet()
	refreshes, _, err := b.ctl.Counter(ids.CounterPFCRefreshes, 3)
	if err != nil || refreshes < 3 {
		b.Errorf("%d refreshes are counted (%v), want 3 or more", refreshes, err)
	}
	b.noDropsBut()
}

// testBufferForget loses packets without the pipeline's knowledge: their bytes stay until the controller makes
// the idle port forget them.
func testBufferForget(r *rig) {
	b := newBufferRig(r)
	c := bufferConfig(headroom.DSH)
	c.MMU.Alpha = -3
	b.run(c)
	b.shape(slowPort, target.Shape{PacketsPerSecond: b.rate, FrameBytes: bufferBytes, Depth: 3})
	for range 10 {
		b.send(4, bufferFrame(r, 4, slowPort, 6))
	}
	b.settle()
	b.signal(4)
	got := 0
	for {
		if _, ok := b.target.Receive(slowPort, 4*b.gap()); !ok {
			break
		}
		got++
	}
	if got > 6 {
		b.Fatalf("%d packets of 10 passed a queue of 3", got)
	}
	leaked := b.poll(4).Buffer
	if leaked.Paused() == 0 || leaked.Private[6]+leaked.Shared[6] == 0 {
		b.Fatalf("with %d of 10 packets lost port 4 reports %+v", 10-got, leaked)
	}
	b.packetOut(control.PacketOut{Port: 4, Mode: ids.PacketOutForget})
	for {
		f := b.signal(4)
		if is, err := f.pause(65535); err != nil {
			b.Fatal(err)
		} else if !is {
			break
		}
	}
	after := b.poll(4).Buffer
	after.Peak, after.LastPause = pollreport.Pools{}, 0
	if after != (pollreport.Buffer{}) {
		b.Errorf("after it has been told to forget, port 4 reports %+v", after)
	}
	b.packetOut(control.PacketOut{Port: 4, Mode: ids.PacketOutForget})
	b.poll(4)
	b.quiet()
}
