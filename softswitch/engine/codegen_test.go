package engine

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/headgate/headgate/units"
)

// trace is an Out that records the frames sent and queues the other packets.
type trace struct {
	sink
	frames [][]byte
}

func (t *trace) Transmit(port uint32, frame []byte) {
	t.frames = append(t.frames, append([]byte{byte(port >> 8), byte(port)}, frame...))
}

func (t *trace) run(in *Instance, port uint32, frame []byte, now units.Time) {
	in.Ingress(in.Receive(port, frame, now), now, t)
	for range 20 {
		queue, again := t.queue, t.again
		t.queue, t.again = nil, nil
		for _, p := range queue {
			in.Egress(p, now+5*units.Microsecond, t)
		}
		for _, p := range again {
			in.Ingress(p, now, t)
		}
	}
}

// TestShortcuts compares programs with their reference compilations, on random packets.
func TestShortcuts(t *testing.T) {
	load := map[string]func() *Program{
		"headgate":    func() *Program { return loadOwn(t) },
		"interpreted": func() *Program { return interpreted(loadOwn(t)) },
	}
	for _, name := range []string{"arith", "control", "flow", "headers", "l3", "left", "match", "state", "sums"} {
		load[name] = func() *Program { return loadFile(t, name) }
	}
	for name, load := range load {
		t.Run(name, func(t *testing.T) {
			short := load()
			long, err := compile(short.source, true)
			if err != nil {
				t.Fatal(err)
			}
			a, b := replicating(New(short, Options{Queues: 8})), replicating(New(long, Options{Queues: 8}))
			r := rand.New(rand.NewPCG(1, 2))
			for i := range 4000 {
				frame := make([]byte, r.IntN(120))
				for k := range frame {
					frame[k] = byte(r.Uint32() >> r.IntN(9)) // small numbers match more often
				}
				if len(frame) > 34 && i%2 == 0 {
					copy(frame[12:], ipv4Frame(0x0a000001, len(frame))[12:24])
				}
				if len(frame) > 1 && i%3 == 0 {
					frame[0] = byte(i / 3 % 40) // the byte by which the test programs select
				}
				var x, y trace
				x.run(a, 1, frame, units.Time(i)*units.Microsecond)
				y.run(b, 1, frame, units.Time(i)*units.Microsecond)
				if !slices.EqualFunc(x.frames, y.frames, bytes.Equal) {
					t.Fatalf("packet %x: %x, the long way %x", frame, x.frames, y.frames)
				}
			}
			for name, i := range short.registers.at {
				if !slices.Equal(a.registers[i].cells, b.registers[i].cells) {
					t.Errorf("register %s differs", name)
				}
			}
		})
	}
}
