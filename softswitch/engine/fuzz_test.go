package engine

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"testing"
)

// FuzzLoad feeds arbitrary text to the loader. A program that loads must process packets, with the
// same results with and without optimisations.
func FuzzLoad(f *testing.F) {
	doc, err := os.ReadFile("testdata/dynvalid.json")
	if err != nil {
		f.Fatal(err)
	}
	var small bytes.Buffer
	if err := json.Compact(&small, doc); err != nil {
		f.Fatal(err)
	}
	f.Add(small.Bytes())
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, doc []byte) { tryProgram(t, doc) })
}

// FuzzProgram changes values of the test programs: every four bytes of edits replace one
// value by a constant or by another value of the program.
func FuzzProgram(f *testing.F) {
	var docs [][]byte
	for _, name := range []string{"dynvalid", "l3", "flow", "headers", "match", "state", "control", "arith", "left", "sums"} {
		doc, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			f.Fatal(err)
		}
		docs = append(docs, doc)
	}
	f.Add(uint8(0), []byte{0, 10, 1, 2})
	f.Add(uint8(3), []byte{1, 10, 20, 0, 0, 200, 3, 9})
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		if len(edits) > 40 {
			return
		}
		var root any
		if err := json.Unmarshal(docs[int(which)%len(docs)], &root); err != nil {
			t.Fatal(err)
		}
		for ; len(edits) >= 4; edits = edits[4:] {
			var slots []slot
			collect(&slots, root)
			s := slots[int(binary.BigEndian.Uint16(edits))%len(slots)]
			s.set(replacement(slots, edits[2], edits[3]))
		}
		doc, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		tryProgram(t, doc)
	})
}

// slot is a place in a JSON document.
type slot struct {
	value any
	set   func(v any)
}

func collect(list *[]slot, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			*list = append(*list, slot{v[k], func(x any) {
				if v[k] = x; x == "delete" {
					delete(v, k)
				}
			}})
			collect(list, v[k])
		}
	case []any:
		for i := range v {
			*list = append(*list, slot{v[i], func(x any) { v[i] = x }})
			collect(list, v[i])
		}
	}
}

func replacement(slots []slot, kind, arg byte) any {
	texts := []string{"delete", "", "0x00", "-0x1", "0xffffffffffffffffffffffff", "$valid$", "+", "<<", "?", "access_field", "dereference_header_stack",
		"expression", "field", "header", "hexstr", "lookahead", "stack", "regular", "lpm", "range", "*", "push", "assign_header", "_jump"}
	switch kind % 4 {
	case 0:
		return []any{nil, true, false, []any{}, map[string]any{}}[int(arg)%5]
	case 1:
		return []any{0, 1, -1, int(arg), 1 << 16, 1 << 31, 1e18, 0.5}[int(arg)%8]
	case 2:
		return texts[int(arg)%len(texts)]
	}
	// A value from elsewhere; a copy, for a document must not contain itself.
	b, err := json.Marshal(slots[(int(kind)*256+int(arg))%len(slots)].value)
	var v any
	if err != nil || json.Unmarshal(b, &v) != nil {
		return nil
	}
	return v
}

func tryProgram(t *testing.T, doc []byte) {
	prog, err := Load(doc)
	if err != nil || prog.stateBytes() > 1<<24 {
		return
	}
	long, err := compile(prog.source, true)
	if err != nil {
		t.Fatal("loads, but not as a reference: ", err)
	}
	a, b := replicating(New(prog, Options{})), replicating(New(long, Options{}))
	for _, frame := range [][]byte{
		ipv4Frame(0x0a000001, 64),
		{1, 0x31, 0, 0, 0, 1, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9},
		nil,
	} {
		var x, y trace
		x.run(a, 1, frame, 0)
		y.run(b, 1, frame, 0)
		if !slices.EqualFunc(x.frames, y.frames, bytes.Equal) {
			t.Fatalf("packet %x: %x, the long way %x", frame, x.frames, y.frames)
		}
	}
}

// stateBytes estimates the memory of an instance's arrays.
func (p *Program) stateBytes() (n int) {
	for _, s := range p.counters.list {
		n += 16 * s.size
	}
	for _, s := range p.meters.list {
		n += 80 * s.size
	}
	for _, s := range p.registers.list {
		n += 8 * s.size * s.words
	}
	return n
}

// fuzzPass takes a frame through the switch. It gives up on packets that keep coming back.
func (in *Instance) fuzzPass(frame []byte) {
	s := &sink{}
	in.Ingress(in.Receive(1, frame, 0), 0, s)
	for range 20 {
		queue, again := s.queue, s.again
		s.queue, s.again = nil, nil
		for _, p := range queue {
			in.Egress(p, 0, s)
		}
		for _, p := range again {
			in.Ingress(p, 0, s)
		}
	}
}

// replicating gives an instance the multicast group and clone sessions that the programs flow and
// left use.
func replicating(in *Instance) *Instance {
	err := in.SetMulticastGroup(1, []Replica{{Port: 1}, {Port: 2}})
	for _, id := range []uint16{5, 6} {
		err = errors.Join(err, in.SetCloneSession(id, CloneSession{Replicas: []Replica{{Port: 3}}, Truncate: 20}))
	}
	if err != nil {
		panic(err) // every instance accepts these numbers
	}
	return in
}

// FuzzPacket feeds arbitrary frames to the programs of testdata.
func FuzzPacket(f *testing.F) {
	var ins []*Instance
	for _, name := range []string{"arith", "flow", "headers", "l3", "match", "state", "left", "sums"} {
		in := New(loadFile(f, name), Options{})
		ins = append(ins, replicating(in))
	}
	f.Add(uint8(3), ipv4Frame(0x0a000001, 64))
	f.Add(uint8(1), []byte{22, 1, 0, 0})
	f.Add(uint8(2), []byte{1, 0x31, 0, 0, 0, 1, 0, 0, 1, 1})
	f.Fuzz(func(_ *testing.T, which uint8, frame []byte) {
		if len(frame) > 2048 {
			return
		}
		ins[int(which)%len(ins)].fuzzPass(frame)
	})
}
