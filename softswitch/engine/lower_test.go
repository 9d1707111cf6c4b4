package engine

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/units"
)

// takeLongWay undoes what makes a program fast: actions are called as closures, which are
// compiled from the same JSON on their own, headers are read and written as a whole, and
// checksums are verified and updated field by field.
func takeLongWay(prog *Program) {
	for i := range prog.deparser.order {
		prog.deparser.order[i].plain = false
	}
	for _, k := range prog.parser.checksums {
		k.intact = false
	}
	for _, h := range prog.layout.headers {
		if h.typ.codec != nil {
			h.left = nil
		}
	}
	eachStep(prog.parser.start, map[*parseState]bool{}, func(s *parseStep) {
		if s.h != nil {
			s.loads = s.h.typ.codec.loads
		}
	})
	seen := map[*node]bool{}
	var reset func(n *node)
	reset = func(n *node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		n.label, n.pc = label{}, 0
		reset(n.yes)
		reset(n.no)
		reset(n.next)
		if n.table != nil {
			for _, f := range n.table.followers() {
				reset(f)
			}
		}
	}
	reset(prog.ingress)
	reset(prog.egress)
	for _, a := range prog.actions {
		a.body = nil
	}
	prog.code = code{}
	(&compiler{Program: prog}).lower()
}

// eachStep calls f for all steps of the states that can be reached from one.
func eachStep(s *parseState, seen map[*parseState]bool, f func(*parseStep)) {
	if s == nil || seen[s] {
		return
	}
	seen[s] = true
	for i := range s.steps {
		f(&s.steps[i])
	}
	eachStep(s.next, seen, f)
	for i := range s.cases {
		eachStep(s.cases[i].next, seen, f)
	}
}

// trace is an Out that keeps what leaves, and queues the rest.
type trace struct {
	sink
	frames [][]byte
}

func (t *trace) Transmit(port uint32, frame []byte, _ units.Time) {
	t.frames = append(t.frames, append([]byte{byte(port >> 8), byte(port)}, frame...))
}

func (t *trace) run(in *Instance, frame []byte, now units.Time) {
	in.Ingress(in.Receive(1, frame, now), now, t)
	for range 20 {
		queue, again := t.queue, t.again
		t.queue, t.again = nil, nil
		for _, p := range queue {
			in.Egress(p, now, t)
		}
		for _, p := range again {
			in.Ingress(p, now, t)
		}
	}
}

// TestShortcuts compares programs with themselves without shortcuts, on random packets.
func TestShortcuts(t *testing.T) {
	load := map[string]func() *Program{"headgate": func() *Program {
		prog, err := Load(p4src.JSON)
		if err != nil {
			t.Fatal(err)
		}
		return prog
	}}
	for _, name := range []string{"arith", "control", "flow", "headers", "l3", "left", "match", "state", "sums"} {
		load[name] = func() *Program { return loadFile(t, name) }
	}
	for name, load := range load {
		t.Run(name, func(t *testing.T) {
			short, long := load(), load()
			takeLongWay(long)
			a, b := replicating(New(short, Options{Queues: 8})), replicating(New(long, Options{Queues: 8}))
			r := rand.New(rand.NewPCG(1, 2))
			for i := range 4000 {
				frame := make([]byte, r.IntN(120))
				for k := range frame {
					frame[k] = byte(r.Uint32() >> r.IntN(9)) // small numbers are met more often
				}
				if len(frame) > 34 && i%2 == 0 {
					copy(frame[12:], ipv4Frame(0x0a000001, len(frame))[12:24])
				}
				if len(frame) > 1 && i%3 == 0 {
					frame[0] = byte(i / 3 % 40) // what the test programs select by
				}
				var x, y trace
				x.run(a, frame, units.Time(i)*units.Microsecond)
				y.run(b, frame, units.Time(i)*units.Microsecond)
				if !slices.EqualFunc(x.frames, y.frames, bytes.Equal) {
					t.Fatalf("packet %x: %x, the long way %x", frame, x.frames, y.frames)
				}
			}
			for _, s := range short.registers {
				if !slices.Equal(a.registers[s.index].cells, b.registers[s.index].cells) {
					t.Errorf("register %s differs", s.name)
				}
			}
		})
	}
}
