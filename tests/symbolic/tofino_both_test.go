package symbolic

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
	_ "github.com/headgate/headgate/softswitch/arch"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/digest"
	"github.com/headgate/headgate/softswitch/p4rt/entity"
	"github.com/headgate/headgate/softswitch/p4rt/schema"
	"github.com/headgate/headgate/tests/dataplane/control"
	"github.com/headgate/headgate/units"
)

// profile is the test's knowledge of a chip.
type profile struct {
	name string
	cell int    // bytes
	cpu  uint32 // port
}

var profiles = []profile{{"tofino1", 80, 320}, {"tofino2", 176, 0}}

// longest is about the longest wait of a packet, in ticks: deq_timedelta of Tofino 1 wraps at 1<<18.
const longest = 1 << 19

// both runs v1model's program on the embedded engine and the chip's program, with one traffic manager, which is
// the test. The lengths of frames are whole cells, so that depths in cells are depths in bytes. A tick is a
// microsecond for v1model and a nanosecond for the chip.
type both struct {
	profile
	rng    *rand.Rand
	seed   uint64 // of the engine's random numbers
	chip   *Chip
	in     *engine.Instance
	state  *entity.State
	now    units.Time // ticks
	queues map[place][]waiting
	beyond map[place]int // additional cells in a queue, to make it deep

	enqueued []*engine.Packet // from the engine, in the present call
	sent     [][]byte
	learned  []uint64
	left     map[place]uint32 // depth of the queue after its last packet
	fresh    map[place]bool   // no packet has arrived since
	from     map[uint32]Count // departures, by ingress port
}

type place struct{ port, queue uint32 }

type waiting struct {
	p     *engine.Packet
	a     Arrived
	bytes int // without a controller's header
	at    units.Time
	found int
	poll  bool
}

func newBoth(t testing.TB, chip *Chip, p profile, program *engine.Program, seed uint64) *both {
	t.Helper()
	b := &both{profile: p, rng: rand.New(rand.NewPCG(seed, 1)), seed: seed, chip: chip, queues: map[place][]waiting{}, beyond: map[place]int{},
		left: map[place]uint32{}, fresh: map[place]bool{}, from: map[uint32]Count{}}
	chip.Restart()
	chip.Draw, chip.Undefined = b.draw, b.rng.Uint64
	b.in = engine.New(program, engine.Options{Queues: ids.QueuesPerPort, Seed: seed})
	info, err := control.P4Info()
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Parse(info)
	if err == nil {
		err = s.Bind(program)
	}
	if err != nil {
		t.Fatal(err)
	}
	if b.state, err = entity.New(s, b.in, digest.New(s, 1), entity.Options{CPUPort: ids.CPUPort, DropPort: 511, Queues: ids.QueuesPerPort}); err != nil {
		t.Fatal(err)
	}
	return b
}

// draw is the engine's random number: SplitMix64, its upper 16 bits.
func (b *both) draw() uint64 {
	b.seed += 0x9e3779b97f4a7c15
	z := b.seed
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return (z ^ z>>31) >> 48
}

// write puts entries into both.
func (b *both) write(t testing.TB, updates ...*p4v1.Update) {
	t.Helper()
	for _, u := range updates {
		if err := b.state.Apply(u); err != nil {
			t.Fatal(err)
		}
		if te := u.GetEntity().GetTableEntry(); te != nil {
			if err := b.chip.Insert(te); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Enqueue implements engine.Out.
func (b *both) Enqueue(p *engine.Packet) { b.enqueued = append(b.enqueued, p) }

// Transmit implements engine.Out.
func (b *both) Transmit(_ uint32, frame []byte) { b.sent = append(b.sent, bytes.Clone(frame)) }

// Recirculate implements engine.Out.
func (b *both) Recirculate(*engine.Packet) { panic("the program sends nothing round again") }

// Dropped implements engine.Out.
func (b *both) Dropped(uint32, engine.Drop) {}

// Digest implements engine.Out.
func (b *both) Digest(name string, fields [][]byte) {
	if name != "flow_digest_t" && name != "flow_ipv6_digest_t" {
		return
	}
	for i, f := range fields {
		v := wide(f)
		if name == "flow_ipv6_digest_t" && i < 2 {
			b.learned = append(b.learned, v.hi)
		}
		b.learned = append(b.learned, v.n)
	}
}

// theirs is the chip's number of a port; ours is the reverse.
func (b *both) theirs(port uint32) uint32 {
	if port == ids.CPUPort {
		return b.cpu
	}
	return port
}

func (b *both) time() units.Time { return b.now * units.Microsecond }

// arrive sends a frame to both; diff is their difference.
func (b *both) arrive(port uint32, frame []byte) (diff string, err error) {
	b.enqueued, b.learned = nil, nil
	b.in.Ingress(b.in.Receive(port, frame, b.time()), b.time(), b)
	b.chip.Now = uint64(b.now)
	a, err := b.chip.Ingress(b.theirs(port), frame)
	if err != nil {
		return "", err
	}
	if a.Dropped != (len(b.enqueued) == 0) {
		return fmt.Sprintf("a frame is dropped on one target alone: chip %v", a.Dropped), nil
	}
	for i := range ids.DropReasonCells {
		v, err := b.in.ReadCounter(ids.CounterDropsName, i)
		if n := b.chip.Counter(ids.CounterDropsName, uint64(i)); err != nil || n.Packets != v.Packets {
			return fmt.Sprintf("drops for %s: chip %d, v1model %d (%v)", ids.DropReason(i), n.Packets, v.Packets, err), nil
		}
	}
	if a.Dropped {
		return "", nil
	}
	p := b.enqueued[0]
	if a.Port != b.theirs(p.EgressPort) || a.Queue != uint32(p.Queue) || !slices.Equal(a.Digest, b.learned) {
		return fmt.Sprintf("port %d, queue %d, digest %v: v1model port %d, queue %d, digest %v", a.Port, a.Queue, a.Digest, p.EgressPort, p.Queue, b.learned), nil
	}
	at := place{p.EgressPort, a.Queue}
	w := waiting{p: p, a: a, bytes: len(frame), at: b.now, found: b.depth(at)}
	if port == ids.CPUPort {
		w.bytes -= ids.PacketOutBytes
		w.poll = frame[1]&15 == ids.PacketOutPoll
	}
	p.EnqTime, p.EnqDepth = b.time(), uint32(len(b.queues[at]))
	b.queues[at] = append(b.queues[at], w)
	b.fresh[at] = false
	return "", nil
}

// depth returns a queue's length in cells.
func (b *both) depth(at place) (cells int) {
	cells = b.beyond[at]
	for _, w := range b.queues[at] {
		cells += (w.bytes + b.cell - 1) / b.cell
	}
	return cells
}

// depart sends the first packet of a queue through egress. For a poll it returns both reports.
func (b *both) depart(at place) (chip, v1model *pollreport.Report, diff string, err error) {
	w := b.queues[at][0]
	b.queues[at] = b.queues[at][1:]
	b.enqueued, b.sent = nil, nil
	w.p.DeqTime, w.p.DeqDepth = b.time(), uint32(len(b.queues[at])+b.beyond[at])
	port := w.p.IngressPort
	b.in.Egress(w.p, b.time(), b)
	cells := b.depth(at)
	l, err := b.chip.Egress(w.a, Departure{Found: uint32(w.found), Left: uint32(cells), Delay: uint32(b.now - w.at), Time: uint64(b.now)})
	if err != nil {
		return nil, nil, "", err
	}
	if w.poll {
		if len(b.enqueued) != 1 || l.Frame != nil || l.Session != ids.PollCloneSession {
			return nil, nil, fmt.Sprintf("a poll has %d copies in v1model and goes on as %x, session %d", len(b.enqueued), l.Frame, l.Session), nil
		}
		b.in.Egress(b.enqueued[0], b.time(), b)
		chip, v1model, err = &pollreport.Report{}, &pollreport.Report{}, nil
		return chip, v1model, b.reports(chip, l.Report, v1model, b.sent[0]), nil
	}
	b.left[at], b.fresh[at] = uint32(cells*b.cell), true
	if at.port == ids.CPUPort {
		head := binary.BigEndian.Uint16(l.Frame)
		if uint32(head>>7) == b.cpu && port == ids.CPUPort {
			binary.BigEndian.PutUint16(l.Frame, ids.CPUPort<<7|head&0x7f)
		}
	}
	b.from[port] = Count{b.from[port].Packets + 1, b.from[port].Bytes + uint64(len(l.Frame))}
	if len(b.sent) != 1 || !bytes.Equal(b.sent[0], l.Frame) {
		return nil, nil, fmt.Sprintf("chip %x, v1model %x", l.Frame, b.sent), nil
	}
	return nil, nil, "", nil
}

// reports decodes poll reports and compares their headers and payloads.
func (b *both) reports(chip *pollreport.Report, got []byte, v1model *pollreport.Report, want []byte) string {
	var rest [2][]byte
	for i, of := range []struct {
		to   *pollreport.Report
		data []byte
	}{{chip, got}, {v1model, want}} {
		if len(of.data) < 2 {
			return fmt.Sprintf("a report of %d bytes", len(of.data))
		}
		r, payload, err := pollreport.Parse(of.data[2:])
		if err != nil {
			return err.Error()
		}
		*of.to, rest[i] = r, payload
	}
	if !bytes.Equal(got[:2], want[:2]) || !bytes.Equal(rest[0], rest[1]) {
		return fmt.Sprintf("reports begin and end with %x … %x and %x … %x", got[:2], rest[0], want[:2], rest[1])
	}
	return ""
}

// poll asks about a port and queue; other packets of the port wait meanwhile.
func (b *both) poll(port, queue uint32) (chip, v1model *pollreport.Report, diff string, err error) {
	out := binary.BigEndian.AppendUint16(nil, uint16(port<<7|queue<<4|ids.PacketOutPoll))
	if diff, err = b.arrive(ids.CPUPort, append(out, make([]byte, 60)...)); diff != "" || err != nil {
		return nil, nil, diff, err
	}
	at := place{port, ids.HighestQueue}
	last := len(b.queues[at]) - 1
	b.queues[at] = append([]waiting{b.queues[at][last]}, b.queues[at][:last]...)
	return b.depart(at)
}

// compiled is v1model's program.
func compiled(t testing.TB) *engine.Program {
	t.Helper()
	program, err := engine.Load(p4src.JSON())
	if err != nil {
		t.Fatal(err)
	}
	return program
}
