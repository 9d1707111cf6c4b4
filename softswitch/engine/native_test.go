package engine

import (
	"bytes"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/softswitch/engine/phv"
	"github.com/headgate/headgate/units"
)

// interpreted returns a program that runs in the interpreter.
func interpreted(prog *Program) *Program {
	without := *prog
	without.code.native = Native{}
	return &without
}

// TestNativeIsCurrent fails if a program that the tests link in, or WriteNative, changed and the Go code
// did not.
func TestNativeIsCurrent(t *testing.T) {
	for name, prog := range map[string]*Program{"headgate": loadOwn(t), "l3": loadFile(t, "l3")} {
		want, err := prog.WriteNative(name)
		if err != nil {
			t.Fatal(err)
		}
		file := "../native/" + name + "/" + name + "_native.go"
		have, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, want) {
			t.Fatalf("%s is stale: run `go generate ./softswitch/native/gen`", file)
		}
		if prog.code.native.Exec == nil || prog.code.native.Parse == nil {
			t.Errorf("%s is interpreted", name)
		}
	}
	if loadFile(t, "control").code.native.Exec != nil {
		t.Error("another program runs it too")
	}
}

// twins are two switches with the same entries that run Headgate's own program, one as Go and one
// in the interpreter.
type twins struct{ native, long *Instance }

func newTwins(tb testing.TB, native, long *Program) twins {
	return twins{replicating(fillOwn(tb, native)), replicating(fillOwn(tb, long))}
}

// pass sends a packet through both switches and compares the results.
func (w twins) pass(t *testing.T, port uint32, frame []byte, now units.Time) {
	t.Helper()
	var x, y trace
	x.run(w.native, port, frame, now)
	y.run(w.long, port, frame, now)
	if !slices.EqualFunc(x.frames, y.frames, bytes.Equal) {
		t.Fatalf("packet %x from port %d: %x, interpreted %x", frame, port, x.frames, y.frames)
	}
}

func (w twins) compareRegisters(t *testing.T) {
	t.Helper()
	for name, i := range w.native.prog.registers.at {
		if !slices.Equal(w.native.registers[i].cells, w.long.registers[i].cells) {
			t.Errorf("register %s differs", name)
		}
	}
}

// ownPort returns a port of ownPipeline, or its CPU port.
func ownPort(n byte) uint32 {
	if n%8 == 0 {
		return ids.CPUPort
	}
	return uint32(n % 8)
}

// TestNative compares the Go code with the interpreter, on packets that hit entries and on packets
// that nearly do, while entries are added and defaults change at random.
func TestNative(t *testing.T) {
	frames, native, long := append(ownFrames(), tcpFrames()...), loadOwn(t), interpreted(loadOwn(t))
	for seed := range uint64(4) {
		r, w := rand.New(rand.NewPCG(seed, 8)), newTwins(t, native, long)
		for i := range 400 {
			if i > 0 && i%15 == 0 {
				w.reconfigure(t, r, 1+seed%2*40)
			}
			frame := slices.Clone(frames[r.IntN(len(frames))])
			for range r.IntN(4) {
				frame[r.IntN(60)] = byte(r.Uint32() >> r.IntN(9))
			}
			if r.IntN(8) == 0 {
				frame = frame[:r.IntN(len(frame))]
			}
			w.pass(t, ownPort(byte(r.Uint32())), frame, units.Time(i)*units.Microsecond)
		}
		w.compareRegisters(t)
	}
}

// reconfigure adds entries to tables or sets their defaults. Both switches must give the same
// answer.
func (w twins) reconfigure(t *testing.T, r *rand.Rand, tables uint64) {
	t.Helper()
	small := func(bits int) []byte { // small numbers match more often
		return be(r.Uint64()>>r.IntN(64)&phv.LastMask(min(bits, 64)), min((bits+7)/8, 8))
	}
	infos := w.native.prog.Tables()
	for range tables {
		info := infos[r.IntN(len(infos))]
		name := info.Actions[r.IntN(len(info.Actions))]
		call := ActionCall{Name: name}
		for _, q := range w.native.prog.actionBy[name].params {
			call.Args = append(call.Args, small(q.Bits))
		}
		target := Target{Call: &call}
		var key []Match
		for _, f := range info.Key {
			m := Match{Value: small(f.Bits)}
			switch f.Kind {
			case LPM:
				m.Prefix = r.IntN(f.Bits + 1)
			case Range:
				m = Match{Any: true}
			case Ternary, Optional:
				m.Any = r.IntN(2) == 0
			}
			key = append(key, m)
		}
		change := func(in *Instance) error {
			_, err := in.AddEntry(info.Name, key, 1, target, 0)
			return err
		}
		if len(key) == 0 || r.IntN(2) == 0 {
			change = func(in *Instance) error { return in.SetDefault(info.Name, &target) }
		}
		if x, y := change(w.native), change(w.long); (x == nil) != (y == nil) {
			t.Fatalf("table %s: %v, interpreted %v", info.Name, x, y)
		}
	}
}

// FuzzNative compares the Go code with the interpreter on three packets. Every three bytes of
// edits replace a byte of one of them.
func FuzzNative(f *testing.F) {
	frames := append(tcpFrames()[10:11], ownFrames()...)
	native, long := loadOwn(f), interpreted(loadOwn(f))
	f.Add(uint8(1), []byte{0, 15, 0xb8, 1, 22, 1, 2, 23, 6})
	f.Add(uint8(0), []byte{0, 12, 0x88, 0, 13, 0x08})
	f.Fuzz(func(t *testing.T, port uint8, edits []byte) {
		w := newTwins(t, native, long)
		packets := [][]byte{slices.Clone(frames[0]), slices.Clone(frames[1]), slices.Clone(frames[2])}
		for ; len(edits) >= 3; edits = edits[3:] {
			packets[edits[0]%3][int(edits[1])%len(frames[0])] = edits[2]
		}
		for i, frame := range packets {
			w.pass(t, ownPort(port), frame, units.Time(i)*units.Microsecond)
		}
		w.compareRegisters(t)
	})
}
