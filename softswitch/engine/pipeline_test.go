package engine

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/softswitch/engine/hash"
	"github.com/headgate/headgate/units"
)

// ownPipeline returns an instance of Headgate's own program with the entries of tests/bench/bmv2:
// classes, routes to groups of four next hops, and limits and marking curves for every queue.
func ownPipeline(tb testing.TB) *Instance {
	tb.Helper()
	return fillOwn(tb, loadOwn(tb))
}

// own is Headgate's own program, compiled once. Tests must not change it.
var own = sync.OnceValues(func() (*Program, error) { return Load(p4src.JSON()) })

func loadOwn(tb testing.TB) *Program {
	tb.Helper()
	prog, err := own()
	if err != nil {
		tb.Fatal(err)
	}
	return prog
}

func fillOwn(tb testing.TB, prog *Program) *Instance {
	tb.Helper()
	in := New(prog, Options{Queues: ids.QueuesPerPort})
	must := func(err error) {
		if err != nil {
			tb.Helper()
			tb.Fatal(err)
		}
	}
	add := func(table string, priority int, target Target, key ...Match) {
		_, err := in.AddEntry(table, key, priority, target, 0)
		must(err)
	}
	call := func(name string, args ...[]byte) Target { return Target{Call: &ActionCall{name, args}} }
	scale := call("egress.maxqd.set_scale", []byte{0})
	must(in.SetDefault("egress.maxqd.maxqd_scale", &scale))
	for d := range uint64(64) {
		add("ingress.classify.dscp_to_class", 0, call("ingress.classify.set_class", be(d/8, 1), be(d/8, 1)), Match{Value: be(d, 1)})
	}
	for m := range uint64(16) {
		args := [][]byte{be(m%4+1, 2), be(0x020000010000+m, 6), be(0x020000020000+m, 6)}
		must(in.AddMember(ids.ProfileECMPName, MemberID(m+1), ActionCall{ids.ActionSetNextHopName, args}))
	}
	for g := range 16 {
		var members []MemberID
		for k := range 4 {
			members = append(members, MemberID((g+k)%16+1))
		}
		must(in.SetGroup(ids.ProfileECMPName, GroupID(g+1), members))
	}
	for i := range 1000 {
		g := GroupID(i%16 + 1)
		add(ids.TableIPv4LPMName, 0, Target{Group: &g}, Match{Value: []byte{10, byte(i >> 8), byte(i), 0}, Prefix: 24})
	}
	for q := range uint64(ids.QueuesPerPort) {
		for port := range uint64(4) {
			add("ingress.admission.queue_limit", 0, call("ingress.admission.set_queue_limit", be(1<<31, 4)), Match{Value: be(port+1, 2)}, Match{Value: be(q, 1)})
		}
		for _, r := range [][3]uint64{{1 << 16, 1<<17 - 1, 655}, {1 << 17, 1<<18 - 1, 6553}, {1 << 18, 1<<32 - 1, 65536}} {
			add("egress.ecn.ecn_red", 1, call("egress.ecn.set_mark_probability", be(r[2], 3)), Match{Value: be(q, 1)}, Match{Value: be(r[0], 4), Mask: be(r[1], 4)})
		}
	}
	add("ingress.punt.punt_table", 1, call("ingress.punt.punt_to_cpu", []byte{2}), Match{Value: []byte{0x88, 0xcc}, Mask: []byte{0xff, 0xff}}, Match{Any: true})
	return in
}

// ownFrames returns packets to the routes of ownPipeline. Three of four have a maxQD shim.
func ownFrames() [][]byte {
	frames := make([][]byte, 256)
	for i := range frames {
		f := ipv4Frame(0x0a000000|uint32(i*7919%1000)<<8|9, 128)
		binary.BigEndian.PutUint16(f[34:], uint16(1024+i*77))
		binary.BigEndian.PutUint16(f[36:], 9)
		if i%4 != 0 {
			binary.BigEndian.PutUint16(f[36:], ids.UDPPortMaxQD)
			f[42] = 0x10
		}
		binary.BigEndian.PutUint16(f[38:], 94)
		f[15] = byte(i%8)<<5 | 2 // class, ECT(0)
		f[24], f[25] = 0, 0
		binary.BigEndian.PutUint16(f[24:], uint16(hash.Internet(f[14:34])))
		frames[i] = f
	}
	return frames
}

// tcpFrames returns ownFrames with TCP headers: data offsets from 5 to 15, and the maxQD option
// where Linux puts it.
func tcpFrames() [][]byte {
	frames := ownFrames()[:44]
	for i, f := range frames {
		f[23] = 6
		f[24], f[25] = 0, 0
		binary.BigEndian.PutUint16(f[24:], uint16(hash.Internet(f[14:34])))
		offset := 5 + i%11
		f[46] = byte(offset) << 4
		if offset >= 7 {
			_ = append(f[:34+4*offset-maxqd.OptionLen], maxqd.OptionKind, maxqd.OptionLen, maxqd.OptionExID>>8, maxqd.OptionExID&0xff, 0, 0, 0, 0)
		}
		first, second := uint32(0x0101080a), uint32(0)
		switch offset {
		case 12:
			first = 0x01010512
		case 13:
			second = 0x0101050a
		case 14:
			first = 0x0101051a
		case 15:
			second = 0x01010512
		}
		if offset >= 10 {
			binary.BigEndian.PutUint32(f[54:], first)
		}
		if second != 0 {
			binary.BigEndian.PutUint32(f[66:], second)
		}
	}
	return frames
}

func l3Frames(n int) [][]byte {
	frames := make([][]byte, 256)
	for i := range frames {
		frames[i] = ipv4Frame(uint32(0x0b000000+(i*7919%n)*256+9), 128)
	}
	return frames
}

// turns passes frames in batches as softswitch does: the whole batch through ingress, then through
// egress.
type turns struct {
	sink
	turn  Worker
	early []*Packet
	alone bool // no packet looks ahead
}

func (s *turns) pass(in *Instance, port uint32, frames [][]byte, now units.Time) {
	s.turn.BeginIngress(in, port)
	if s.turn.LooksAhead() && !s.alone {
		for part := range slices.Chunk(frames, AheadPackets) {
			s.early = s.early[:0]
			for _, f := range part {
				s.early = append(s.early, s.turn.Receive(port, f, now))
			}
			s.turn.Ahead(s.early)
			for _, p := range s.early {
				s.turn.Ingress(p, now, s)
			}
		}
	} else {
		for _, f := range frames {
			s.turn.Ingress(s.turn.Receive(port, f, now), now, s)
		}
	}
	s.turn.End()
	s.turn.BeginEgress(in, port)
	for _, p := range s.queue {
		s.turn.Egress(p, now, s)
	}
	s.queue = s.queue[:0]
	s.turn.End()
}

func routed(tb testing.TB, prog *Program) *Instance {
	in := New(prog, Options{})
	addL3(tb, in, 1000)
	return in
}

// programs returns the two programs that are compared with BMv2, and their packets. The plain router is there
// as Go and in the interpreter.
func programs(tb testing.TB) map[string]func() (*Instance, [][]byte) {
	return map[string]func() (*Instance, [][]byte){
		"headgate":       func() (*Instance, [][]byte) { return ownPipeline(tb), ownFrames() },
		"l3":             func() (*Instance, [][]byte) { return routed(tb, loadFile(tb, "l3")), l3Frames(1000) },
		"l3-interpreted": func() (*Instance, [][]byte) { return routed(tb, interpreted(loadFile(tb, "l3"))), l3Frames(1000) },
	}
}

// TestNoAllocations: after the first packets, processing a packet allocates no memory.
func TestNoAllocations(t *testing.T) {
	for name, start := range programs(t) {
		t.Run(name, func(t *testing.T) {
			in, frames := start()
			var s turns
			f := func() { s.pass(in, 1, frames[:64], 0) }
			f()
			if n := testing.AllocsPerRun(100, f); n != 0 {
				t.Errorf("%v allocations for 64 packets", n)
			}
			if s.sent != 64*102 {
				t.Errorf("%d packets left, want %d", s.sent, 64*102)
			}
		})
	}
}

// BenchmarkOwnPipeline processes the packets of tests/bench/bmv2 without its files.
func BenchmarkOwnPipeline(b *testing.B) {
	in, frames := ownPipeline(b), ownFrames()
	s := &sink{}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		s.pass(in, 1, frames[i&255], 0)
	}
	if s.sent != b.N {
		b.Fatalf("%d of %d packets left", s.sent, b.N)
	}
}

// BenchmarkPorts runs several goroutines, each with the packets of one port, on one instance. With
// a core for each goroutine, packets per second grow with their number, because they share no lock
// and no written counter. Packets of Headgate's own program share registers per port.
func BenchmarkPorts(b *testing.B) {
	for _, name := range []string{"l3", "l3-interpreted", "headgate"} {
		for _, ports := range []int{1, 2, 4} {
			b.Run(fmt.Sprintf("%s/ports=%d", name, ports), func(b *testing.B) {
				in, frames := programs(b)[name]()
				b.ReportAllocs()
				b.ResetTimer()
				var wg sync.WaitGroup
				for port := range ports {
					wg.Go(func() {
						var s turns
						for n := b.N/ports + 1; n > 0; n -= 64 {
							at := n % 4 * 64
							s.pass(in, uint32(port+1), frames[at:at+min(n, 64)], 0)
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "packets/s")
			})
		}
	}
}
