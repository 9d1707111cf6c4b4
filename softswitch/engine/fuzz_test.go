package engine

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzLoad feeds arbitrary JSON to the loader; what loads must also process a packet.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal("no programs in testdata", err)
	}
	for _, name := range files {
		doc, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(doc)
	}
	frame := ipv4Frame(0x0a000001, 64)
	f.Fuzz(func(_ *testing.T, doc []byte) {
		prog, err := Load(doc)
		if err != nil || prog.stateBytes() > 1<<24 {
			return
		}
		in := New(prog, Options{})
		in.fuzzPass(frame)
		in.fuzzPass(nil)
	})
}

// stateBytes estimates the memory of an instance's arrays.
func (p *Program) stateBytes() (n int) {
	for _, s := range p.counters {
		n += 16 * s.size
	}
	for _, s := range p.meters {
		n += 80 * s.size
	}
	for _, s := range p.registers {
		n += 8 * s.size * s.words
	}
	return n
}

// fuzzPass takes a frame through, but gives up on packets that keep coming back.
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

// FuzzPacket feeds arbitrary frames to the programs of testdata.
func FuzzPacket(f *testing.F) {
	var ins []*Instance
	for _, name := range []string{"arith", "flow", "headers", "l3", "match", "state"} {
		in := New(loadFile(f, name), Options{})
		if name == "flow" {
			if err := in.SetMulticastGroup(1, []Replica{{Port: 1}, {Port: 2}}); err != nil {
				f.Fatal(err)
			}
			for _, id := range []uint16{5, 6} {
				if err := in.SetCloneSession(id, CloneSession{Replicas: []Replica{{Port: 3}}, Truncate: 20}); err != nil {
					f.Fatal(err)
				}
			}
		}
		ins = append(ins, in)
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

