package engine

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/headgate/headgate/softswitch/engine/hash"
	"github.com/headgate/headgate/units"
)

// sink is an Out that keeps enqueued packets and counts frames.
type sink struct {
	queue []*Packet
	again []*Packet
	sent  int
	drops [Drops]int
	port  uint32
	frame []byte
}

func (s *sink) Enqueue(p *Packet)     { s.queue = append(s.queue, p) }
func (s *sink) Recirculate(p *Packet) { s.again = append(s.again, p) }
func (s *sink) Transmit(port uint32, frame []byte) {
	s.sent++
	s.port = port
	s.frame = append(s.frame[:0], frame...)
}
func (s *sink) Digest(string, [][]byte) {}
func (s *sink) Dropped(_ uint32, why Drop) {
	s.drops[why]++
}

// pass takes a frame through ingress and egress.
func (s *sink) pass(in *Instance, port uint32, frame []byte, now units.Time) {
	in.Ingress(in.Receive(port, frame, now), now, s)
	for len(s.queue)+len(s.again) > 0 {
		for len(s.again) > 0 {
			p := s.again[0]
			s.again = s.again[:copy(s.again, s.again[1:])]
			in.Ingress(p, now, s)
		}
		for len(s.queue) > 0 {
			p := s.queue[0]
			s.queue = s.queue[:copy(s.queue, s.queue[1:])]
			in.Egress(p, now, s)
		}
	}
}

func loadFile(tb testing.TB, name string) *Program {
	tb.Helper()
	doc, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		tb.Fatal(err)
	}
	prog, err := Load(doc)
	if err != nil {
		tb.Fatal(err)
	}
	return prog
}

func be(v uint64, n int) []byte {
	b := make([]byte, 8)
	binary.BigEndian.PutUint64(b, v)
	return b[8-n:]
}

// ipv4Frame is an Ethernet frame of n bytes with a correct IPv4 header.
func ipv4Frame(dst uint32, n int) []byte {
	f := make([]byte, n)
	f[12], f[13] = 0x08, 0x00
	h := f[14:34]
	h[0], h[8], h[9] = 0x45, 64, 17
	binary.BigEndian.PutUint16(h[2:], uint16(n-14))
	binary.BigEndian.PutUint32(h[12:], 0x0a000001)
	binary.BigEndian.PutUint32(h[16:], dst)
	binary.BigEndian.PutUint16(h[10:], uint16(hash.Internet(h)))
	return f
}

func addL3(tb testing.TB, in *Instance, n int) {
	tb.Helper()
	for i := range n {
		addr := uint32(0x0b000000 + i*256)
		key := []Match{{Value: be(uint64(addr), 4), Prefix: 24}}
		if _, err := in.AddEntry("I.routes", key, 0, Target{Call: &ActionCall{"I.set_next_hop", [][]byte{be(uint64(i%64), 2)}}}, 0); err != nil {
			tb.Fatal(err)
		}
	}
	for i := range min(n, 64) {
		call := ActionCall{"I.forward", [][]byte{be(uint64(i), 2), be(0x0200000000, 6), be(uint64(0x0210000000+i), 6)}}
		if _, err := in.AddEntry("I.next_hops", []Match{{Value: be(uint64(i), 2)}}, 0, Target{Call: &call}, 0); err != nil {
			tb.Fatal(err)
		}
	}
}

// BenchmarkL3 forwards packets to random destinations through the plain router with tables of several
// sizes, each packet alone and several ahead.
func BenchmarkL3(b *testing.B) {
	prog := loadFile(b, "l3")
	for _, t := range prog.tables.list {
		t.size = 1 << 20
	}
	for _, n := range []int{1000, largeTable, 100000, 1 << 20} {
		in := New(prog, Options{})
		addL3(b, in, n)
		for _, alone := range []bool{true, false} {
			b.Run(fmt.Sprintf("routes=%d/alone=%t", n, alone), func(b *testing.B) {
				s := turns{alone: alone}
				frames := make([][]byte, 64)
				for i := range frames {
					frames[i] = ipv4Frame(0, 128)
				}
				r := rand.New(rand.NewPCG(1, 2))
				b.ReportAllocs()
				for i := 0; i < b.N; i += len(frames) {
					for _, f := range frames {
						h := f[14:34]
						binary.BigEndian.PutUint32(h[16:], 0x0b000000+r.Uint32N(uint32(n))<<8+9)
						h[10], h[11] = 0, 0
						binary.BigEndian.PutUint16(h[10:], uint16(hash.Internet(h)))
					}
					s.pass(in, 1, frames, 0)
				}
				if s.sent < b.N {
					b.Fatalf("%d of %d packets left", s.sent, b.N)
				}
			})
		}
	}
}

// BenchmarkTable looks packets up in one table of n entries of each kind.
func BenchmarkTable(b *testing.B) {
	prog := loadFile(b, "control")
	for _, t := range prog.tables.list {
		t.size = 1 << 20
	}
	for _, k := range []struct {
		name, table string
		op          byte
		sizes       []int
		key         func(i int) []Match
	}{
		{"exact", "I.exact_", 1, []int{100, 10000, 100000}, func(i int) []Match { return []Match{{Value: be(uint64(i>>16), 1)}, {Value: be(uint64(i&0xffff), 2)}} }},
		{"lpm", "I.lpm_", 2, []int{100, 10000, 100000}, func(i int) []Match { return []Match{{Value: be(uint64(i)<<8&0xffffffff, 4), Prefix: 24}} }},
		{"ternary", "I.ternary_", 4, []int{100, 1000, 10000}, func(i int) []Match {
			// 64 different masks.
			mask := uint64(0xffffffff) << (i % 16)
			return []Match{{Any: i%4 != 0, Value: []byte{7}, Mask: []byte{0xff}}, {Any: true}, {Value: be(uint64(i)<<16&mask&0xffffffff, 4), Mask: be(mask&0xffffffff, 4)}}
		}},
	} {
		for _, n := range k.sizes {
			b.Run(fmt.Sprintf("%s/entries=%d", k.name, n), func(b *testing.B) {
				in := New(prog, Options{})
				for i := range n {
					if _, err := in.AddEntry(k.table, k.key(i), i+1, mark(1), 0); err != nil {
						b.Fatal(err)
					}
				}
				s := &sink{}
				frames := make([][]byte, 256)
				for i := range frames {
					v := uint32(i * 7919 % n)
					h := ctl{op: k.op, a: byte(v >> 16), b: uint16(v), c: v << 8}
					if k.op == 4 {
						h.c = v << 16
					}
					frames[i] = h.frame()
				}
				b.ReportAllocs()
				b.ResetTimer()
				for i := 0; b.Loop(); i++ {
					s.pass(in, 1, frames[i&255], 0)
				}
			})
		}
	}
}

// BenchmarkAddEntry fills a table; the time per entry must not grow with its size.
func BenchmarkAddEntry(b *testing.B) {
	prog := loadFile(b, "l3")
	for _, n := range []int{1000, 100000} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			for b.Loop() {
				addL3(b, New(prog, Options{}), n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/entry")
		})
	}
}

// BenchmarkPrograms takes packets through the other test programs.
func BenchmarkPrograms(b *testing.B) {
	for _, name := range []string{"arith", "state", "match"} {
		b.Run(name, func(b *testing.B) {
			in := New(loadFile(b, name), Options{})
			s := &sink{}
			frame := make([]byte, 100)
			frame[12] = 1
			b.ReportAllocs()
			for b.Loop() {
				s.pass(in, 1, frame, 0)
			}
		})
	}
}
