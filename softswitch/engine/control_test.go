package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate/units"
	"pgregory.net/rapid"
)

// ctl is the header of testdata/control.p4.
type ctl struct {
	op, a byte
	b     uint16
	c     uint32
	w     [2]uint64 // most significant first
}

func (h ctl) frame() []byte {
	f := []byte{h.op, h.a}
	f = binary.BigEndian.AppendUint16(f, h.b)
	f = binary.BigEndian.AppendUint32(f, h.c)
	f = binary.BigEndian.AppendUint64(f, h.w[0])
	f = binary.BigEndian.AppendUint64(f, h.w[1])
	return append(f, 0)
}

// result sends a packet and returns the byte that its action wrote.
func (h ctl) result(in *Instance, now units.Time) byte {
	s := &sink{}
	s.pass(in, 3, h.frame(), now)
	return s.frame[24]
}

func mark(v byte) Target { return Target{Call: &ActionCall{"I.mark", [][]byte{{v}}}} }

// model is an entry of the reference implementation. It has a mask and a value, or a range, for
// each field; entries are scanned in order of rank.
type model struct {
	match    func(h ctl) bool
	rank     int // higher wins
	seq      int
	result   byte
	handle   Handle
	sameness string
}

// TestTablesAgainstScan inserts, deletes and looks up at random and compares with a scan.
func TestTablesAgainstScan(t *testing.T) {
	prog := loadFile(t, "control")
	kinds := map[string]struct {
		table string
		op    byte
		draw  func(t *rapid.T) ([]Match, model)
	}{
		"exact":   {"I.exact_", 1, drawExact},
		"lpm":     {"I.lpm_", 2, drawLPM},
		"lpm6":    {"I.lpm6", 3, drawLPM6},
		"ternary": {"I.ternary_", 4, drawTernary},
		"range":   {"I.range_", 5, drawRange},
	}
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				in := New(prog, Options{})
				var live []model
				for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
					if len(live) > 0 && rapid.IntRange(0, 3).Draw(t, "what") == 0 {
						j := rapid.IntRange(0, len(live)-1).Draw(t, "victim")
						if err := in.DeleteEntry(k.table, live[j].handle); err != nil {
							t.Fatal(err)
						}
						live = slices.Delete(live, j, j+1)
					} else {
						key, m := k.draw(t)
						m.seq, m.result = i, byte(i+1)
						h, err := in.AddEntry(k.table, key, m.rank, mark(m.result), 0)
						dup := slices.ContainsFunc(live, func(o model) bool { return o.sameness == m.sameness })
						full := len(live) >= in.tables[in.prog.tables.at[k.table]].spec.size
						switch {
						case dup && errors.Is(err, ErrExists), !dup && full && errors.Is(err, ErrFull):
						case err != nil || dup || full:
							t.Fatalf("AddEntry: %v, duplicate %v, full %v", err, dup, full)
						default:
							m.handle = h
							live = append(live, m)
						}
					}
					probe := drawHeader(t)
					probe.op = k.op
					want := byte(0)
					best := -1
					for j, m := range live {
						if m.match(probe) && (best < 0 || m.rank > live[best].rank || m.rank == live[best].rank && m.seq < live[best].seq) {
							best, want = j, m.result
						}
					}
					if got := probe.result(in, 0); got != want {
						t.Fatalf("%+v: got entry %d, want %d", probe, got, want)
					}
				}
			})
		})
	}
}

// Few values, so that entries overlap and packets match.
func drawHeader(t *rapid.T) ctl {
	return ctl{
		a: rapid.SampledFrom([]byte{0, 1, 2, 3, 0x80, 0xff}).Draw(t, "a"),
		b: rapid.SampledFrom([]uint16{0, 1, 2, 10, 0x0100, 0x8000, 0xffff}).Draw(t, "b"),
		c: rapid.SampledFrom([]uint32{0, 0x0a000001, 0x0a000002, 0x0a010000, 0x80000000, 0xffffffff}).Draw(t, "c"),
		w: [2]uint64{
			rapid.SampledFrom([]uint64{0, 0x20010db800000000, 0x20010db800000001, 1 << 63}).Draw(t, "w0"),
			rapid.SampledFrom([]uint64{0, 1, 1 << 63, 0xff}).Draw(t, "w1"),
		},
	}
}

func drawExact(t *rapid.T) ([]Match, model) {
	h := drawHeader(t)
	return []Match{{Value: []byte{h.a}}, {Value: be(uint64(h.b), 2)}},
		model{match: func(x ctl) bool { return x.a == h.a && x.b == h.b }, sameness: fmt.Sprint(h.a, h.b)}
}

func drawLPM(t *rapid.T) ([]Match, model) {
	h := drawHeader(t)
	n := rapid.SampledFrom([]int{0, 1, 8, 15, 16, 24, 31, 32}).Draw(t, "length")
	mask := uint32(uint64(0xffffffff) << (32 - n))
	return []Match{{Value: be(uint64(h.c), 4), Prefix: n}},
		model{match: func(x ctl) bool { return x.c&mask == h.c&mask }, rank: n, sameness: fmt.Sprint(h.c&mask, n)}
}

func drawLPM6(t *rapid.T) ([]Match, model) {
	h := drawHeader(t)
	n := rapid.SampledFrom([]int{0, 1, 32, 63, 64, 65, 100, 127, 128}).Draw(t, "length")
	var m [2]uint64
	m[0] = ^uint64(0) << max(0, 64-n)
	if n > 64 {
		m[1] = ^uint64(0) << (128 - n)
	}
	op := rapid.SampledFrom([]byte{3, 9}).Draw(t, "op")
	w := h.w
	key := []Match{{Value: append(be(w[0], 8), be(w[1], 8)...), Prefix: n}, {Value: []byte{op}}}
	return key, model{
		match:    func(x ctl) bool { return x.op == op && x.w[0]&m[0] == w[0]&m[0] && x.w[1]&m[1] == w[1]&m[1] },
		rank:     n,
		sameness: fmt.Sprint(w[0]&m[0], w[1]&m[1], n, op),
	}
}

func drawTernary(t *rapid.T) ([]Match, model) {
	h := drawHeader(t)
	ma := rapid.SampledFrom([]byte{0, 0xff, 0x0f, 1}).Draw(t, "ma")
	mb := rapid.SampledFrom([]uint16{0, 0xffff, 0xff00, 0x8000}).Draw(t, "mb")
	mc := rapid.SampledFrom([]uint32{0, 0xffffffff, 0xffff0000}).Draw(t, "mc")
	rank := rapid.IntRange(1, 6).Draw(t, "priority")
	key := []Match{{Value: []byte{h.a}, Mask: []byte{ma}}, {Value: be(uint64(h.b), 2), Mask: be(uint64(mb), 2)}, {Value: be(uint64(h.c), 4), Mask: be(uint64(mc), 4)}}
	if ma == 0 {
		key[0] = Match{Any: true}
	}
	return key, model{
		match:    func(x ctl) bool { return x.a&ma == h.a&ma && x.b&mb == h.b&mb && x.c&mc == h.c&mc },
		rank:     rank,
		sameness: fmt.Sprint(h.a&ma, ma, h.b&mb, mb, h.c&mc, mc, rank),
	}
}

func drawRange(t *rapid.T) ([]Match, model) {
	lo, hi := drawHeader(t).b, drawHeader(t).b
	h := drawHeader(t)
	any := rapid.Bool().Draw(t, "any")
	rank := rapid.IntRange(1, 6).Draw(t, "priority")
	key := []Match{{Value: be(uint64(lo), 2), Mask: be(uint64(hi), 2)}, {Value: []byte{h.a}}}
	same := fmt.Sprint(lo, hi, h.a, any, rank)
	if any {
		key[1] = Match{Any: true}
		same = fmt.Sprint(lo, hi, any, rank)
	}
	return key, model{match: func(x ctl) bool { return x.b >= lo && x.b <= hi && (any || x.a == h.a) }, rank: rank, sameness: same}
}

func TestSelector(t *testing.T) {
	in := New(loadFile(t, "control"), Options{})
	const sel = "I.sel"
	for id := range MemberID(3) {
		if err := in.AddMember(sel, id, ActionCall{"I.port", [][]byte{{byte(id + 1)}}}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(name string, got, want error) {
		t.Helper()
		if !errors.Is(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	check("member twice", in.AddMember(sel, 1, ActionCall{"I.drop", nil}), ErrExists)
	check("wrong action", in.AddMember(sel, 9, ActionCall{"I.mark", [][]byte{{1}}}), ErrInvalid)
	check("group of unknown member", in.SetGroup(sel, 1, []MemberID{8}), ErrNotFound)
	// A weight of two for member 2.
	check("group", in.SetGroup(sel, 1, []MemberID{0, 1, 2, 2}), nil)
	group, member := GroupID(1), MemberID(1)
	h, err := in.AddEntry("I.group", []Match{{Value: []byte{7}}}, 0, Target{Group: &group}, 0)
	check("entry", err, nil)
	check("group in use", in.DeleteGroup(sel, 1), ErrInvalid)
	check("member in use", in.DeleteMember(sel, 2), ErrInvalid)
	ports := map[uint32]int{}
	for c := range uint32(400) {
		s := &sink{}
		s.pass(in, 3, ctl{op: 7, c: c * 2654435761}.frame(), 0)
		s2 := &sink{}
		s2.pass(in, 3, ctl{op: 7, c: c * 2654435761}.frame(), 0)
		if s.port != s2.port {
			t.Fatalf("flow %d goes to ports %d and %d", c, s.port, s2.port)
		}
		ports[s.port]++
	}
	if ports[1] < 60 || ports[2] < 60 || ports[3] < 140 {
		t.Errorf("400 flows spread as %v, want about 100, 100, 200", ports)
	}
	check("to a member", in.ModifyEntry("I.group", h, Target{Member: &member}, 0), nil)
	check("group free", in.DeleteGroup(sel, 1), nil)
	s := &sink{}
	s.pass(in, 3, ctl{op: 7}.frame(), 0)
	if s.port != 2 {
		t.Errorf("member 1 sends to port %d, want 2", s.port)
	}
	check("modify", in.ModifyMember(sel, 1, ActionCall{"I.drop", nil}), nil)
	s = &sink{}
	s.pass(in, 3, ctl{op: 7}.frame(), 0)
	if s.sent != 0 {
		t.Error("the packet left although its member drops")
	}
	check("direct action in an indirect table", in.ModifyEntry("I.group", h, mark(1), 0), ErrInvalid)
}

func TestCountersAndTimeouts(t *testing.T) {
	in := New(loadFile(t, "control"), Options{})
	key := []Match{{Value: []byte{5}}, {Value: []byte{0, 6}}}
	h, err := in.AddEntry("I.exact_", key, 0, mark(1), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	hit, miss := ctl{op: 1, a: 5, b: 6}, ctl{op: 1, a: 5, b: 7}
	hit.result(in, 500*units.Millisecond)
	miss.result(in, 600*units.Millisecond)
	if c, err := in.EntryCounter("I.exact_", h); err != nil || c != (Counter{1, 25}) {
		t.Errorf("entry counter %v %v, want 1 packet of 25 bytes", c, err)
	}
	if c, err := in.EntryCounter("I.exact_", DefaultEntry); err != nil || c.Packets != 1 {
		t.Errorf("default counter %v %v, want 1 packet", c, err)
	}
	if got := in.Expired("I.exact_", 1400*units.Millisecond); len(got) != 0 {
		t.Errorf("expired %v too early", got)
	}
	if got := in.Expired("I.exact_", 1500*units.Millisecond); !slices.Equal(got, []Handle{h}) {
		t.Errorf("expired %v, want %d", got, h)
	}
	if d, err := in.SinceHit("I.exact_", h, units.Second); err != nil || d != 500*units.Millisecond {
		t.Errorf("since hit %v %v, want 500ms", d, err)
	}
	if err := in.SetEntryCounter("I.exact_", h, Counter{7, 8}); err != nil {
		t.Fatal(err)
	}
	if c, _ := in.EntryCounter("I.exact_", h); c != (Counter{7, 8}) {
		t.Errorf("entry counter %v after writing 7, 8", c)
	}
	for range 3 {
		ctl{op: 8, a: 2}.result(in, 0)
	}
	if c, err := in.ReadCounter("I.counters", 2); err != nil || c != (Counter{3, 75}) {
		t.Errorf("counter %v %v, want 3 packets of 75 bytes", c, err)
	}
	if v, err := in.ReadRegister("I.regs", 2); err != nil || !slices.Equal(v, []byte{0, 0, 0, 0, 0, 3}) {
		t.Errorf("register %x %v, want 3", v, err)
	}
	if err := in.WriteRegister("I.regs", 2, []byte{1, 0, 0, 0, 0, 0xff}); err != nil {
		t.Fatal(err)
	}
	ctl{op: 8, a: 2}.result(in, 0)
	if v, _ := in.ReadRegister("I.regs", 2); !slices.Equal(v, []byte{1, 0, 0, 0, 1, 0}) {
		t.Errorf("register %x, want 010000000100", v)
	}
	ctl{op: 8, a: 200}.result(in, 0) // an index beyond every array does nothing
	if _, err := in.ReadCounter("I.counters", 8); !errors.Is(err, ErrInvalid) {
		t.Errorf("reading beyond a counter: %v", err)
	}
}

func TestMeters(t *testing.T) {
	in := New(loadFile(t, "control"), Options{})
	// 10 packets/s with a burst of 2 are green, 20 packets/s with a burst of 4 yellow.
	rate := MeterRate{CIR: 10, CBurst: 2, PIR: 20, PBurst: 4, Configured: true}
	if err := in.WriteMeter("I.meters", 1, rate); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for range 6 {
		got = append(got, ctl{op: 8, a: 1}.result(in, units.Second))
	}
	got = append(got, ctl{op: 8, a: 1}.result(in, 1100*units.Millisecond))
	if want := []byte{0, 0, 1, 1, 2, 2, 0}; !slices.Equal(got, want) {
		t.Errorf("colors %v, want %v", got, want)
	}
	if r, err := in.ReadMeter("I.meters", 1); err != nil || r != rate {
		t.Errorf("meter reads %+v %v", r, err)
	}
	h, err := in.AddEntry("I.metered", []Match{{Value: []byte{4}}}, 0, Target{Call: &ActionCall{"I.colored", nil}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	// Frames have 25 bytes.
	if err := in.SetEntryMeter("I.metered", h, MeterRate{CIR: 1, CBurst: 25, PIR: 1, PBurst: 50, Configured: true}); err != nil {
		t.Fatal(err)
	}
	got = nil
	for range 3 {
		got = append(got, ctl{op: 6, a: 4}.result(in, 0))
	}
	if want := []byte{0, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("direct colors %v, want %v", got, want)
	}
	if err := in.WriteMeter("I.meters", 1, MeterRate{CIR: 2, PIR: 1}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a CIR above the PIR: %v", err)
	}
}

func TestValueSets(t *testing.T) {
	in := New(loadFile(t, "control"), Options{})
	if err := in.SetValueSet("P.ops", [][]Match{{{Value: []byte{9}}}, {{Value: []byte{0x40}, Mask: []byte{0xf0}}}}); err != nil {
		t.Fatal(err)
	}
	pairs := [][]Match{
		{{Value: []byte{1}}, {Value: []byte{0, 2}}},
		{{Value: []byte{3, 0, 4}}}, // one value for both fields
		{{Any: true}, {Value: []byte{1, 0}, Mask: []byte{2, 0}, Range: true}},
	}
	if err := in.SetValueSet("P.pairs", pairs); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		h    ctl
		want byte
	}{
		{ctl{op: 9}, 1}, {ctl{op: 0x4a}, 1}, {ctl{op: 10}, 0}, {ctl{op: 10, a: 1, b: 2}, 2}, {ctl{op: 10, a: 2, b: 2}, 0},
		{ctl{op: 10, a: 3, b: 4}, 2}, {ctl{op: 10, a: 99, b: 0x180}, 2}, {ctl{op: 10, a: 99, b: 0x201}, 0},
	} {
		if got := c.h.result(in, 0); got != c.want {
			t.Errorf("%+v: tag %d, want %d", c.h, got, c.want)
		}
	}
	if err := in.SetValueSet("P.ops", [][]Match{{{Value: []byte{1, 2}}}}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a value too wide: %v", err)
	}
}

func TestControlErrors(t *testing.T) {
	in := New(loadFile(t, "control"), Options{})
	ok := []Match{{Value: []byte{5}}, {Value: []byte{6}}}
	call := func(name string, args ...[]byte) Target { return Target{Call: &ActionCall{name, args}} }
	add := func(table string, key []Match, target Target) error {
		_, err := in.AddEntry(table, key, 1, target, 0)
		return err
	}
	for _, c := range []struct {
		name string
		got  error
		want error
	}{
		{"unknown table", add("nope", ok, mark(1)), ErrNotFound},
		{"short key", add("I.exact_", ok[:1], mark(1)), ErrInvalid},
		{"wide value", add("I.exact_", []Match{{Value: []byte{1, 2}}, ok[1]}, mark(1)), ErrInvalid},
		{"padded value", add("I.exact_", []Match{{Value: []byte{0, 0, 2}}, ok[1]}, mark(1)), nil},
		{"any for exact", add("I.exact_", []Match{{Any: true}, ok[1]}, mark(1)), ErrInvalid},
		{"long prefix", add("I.lpm_", []Match{{Value: []byte{1}, Prefix: 33}}, mark(1)), ErrInvalid},
		{"unknown action", add("I.exact_", ok, call("I.port", []byte{1})), ErrInvalid},
		{"missing argument", add("I.exact_", ok, call("I.mark")), ErrInvalid},
		{"wide argument", add("I.exact_", ok, call("I.mark", []byte{1, 0})), ErrInvalid},
		{"no target", add("I.exact_", ok, Target{}), ErrInvalid},
		{"constant default", in.SetDefault("tbl_touch", nil), ErrImmutable},
		{"unknown entry", in.DeleteEntry("I.exact_", 99), ErrNotFound},
		{"group 0", in.SetMulticastGroup(0, nil), ErrInvalid},
		{"large session", in.SetCloneSession(1<<15, CloneSession{}), ErrInvalid},
		{"unknown session", in.DeleteCloneSession(1), ErrNotFound},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
	def := mark(77)
	if err := in.SetDefault("I.lpm_", &def); err != nil {
		t.Fatal(err)
	}
	if got := (ctl{op: 2}).result(in, 0); got != 77 {
		t.Errorf("default action wrote %d, want 77", got)
	}
	if err := in.SetDefault("I.lpm_", nil); err != nil {
		t.Fatal(err)
	}
	if got := (ctl{op: 2}).result(in, 0); got != 0 {
		t.Errorf("after the reset the default action wrote %d, want 0", got)
	}
}

// TestConcurrentControl changes tables while several goroutines send packets, for the race
// detector.
func TestConcurrentControl(t *testing.T) {
	in := New(loadFile(t, "control"), Options{})
	const n = 200
	done := make(chan bool)
	for port := range uint32(3) {
		go func() {
			s := &sink{}
			for i := range n {
				s.pass(in, port, ctl{op: byte(1 + i%8), a: byte(i % 4), b: uint16(i % 4)}.frame(), units.Time(i))
			}
			done <- s.sent == n
		}()
	}
	for i := range n {
		h, err := in.AddEntry("I.ternary_", []Match{{Any: true}, {Any: true}, {Any: true}}, 1, mark(byte(i)), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := in.WriteMeter("I.meters", 1, MeterRate{CIR: 1, PIR: 1, Configured: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := in.ReadRegister("I.regs", 1); err != nil {
			t.Fatal(err)
		}
		if err := in.DeleteEntry("I.ternary_", h); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if !<-done {
			t.Error("a goroutine lost packets")
		}
	}
}

// A handle never names another entry, even when the entry's slot is used again. Find returns the
// entry that is there.
func TestHandles(t *testing.T) {
	const table = "I.exact_"
	in := New(loadFile(t, "control"), Options{})
	key := []Match{{Value: []byte{5}}, {Value: []byte{0, 6}}}
	var gone Handle
	for i := range 3 {
		if h, ok, err := in.Find(table, key, 0); ok || err != nil {
			t.Fatalf("round %d: found %d, %v, want none", i, h, err)
		}
		h, err := in.AddEntry(table, key, 0, mark(1), 0)
		if err != nil || h == gone || h.Slot() != 0 {
			t.Fatalf("round %d: handle %d in slot %d, %v, want another than %d in slot 0", i, h, h.Slot(), err, gone)
		}
		if got, ok, err := in.Find(table, key, 0); got != h || !ok || err != nil {
			t.Errorf("round %d: found %d %v %v, want %d", i, got, ok, err, h)
		}
		if err := in.ModifyEntry(table, gone, mark(2), 0); !errors.Is(err, ErrNotFound) {
			t.Errorf("round %d: modifying entry %d, which is gone: %v, want %v", i, gone, err, ErrNotFound)
		}
		if err := in.DeleteEntry(table, h); err != nil {
			t.Fatal(err)
		}
		gone = h
	}
}
