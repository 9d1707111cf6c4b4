package cnpgen

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// sender is the traffic of one flow in a period.
type sender struct{ bytes, congested uint64 }

// fake is a switch with a flow table. It answers polls at once unless it is silent.
type fake struct {
	loop   *Loop
	now    units.Time
	queues map[uint32]units.Bytes
	table  map[Flow]*Counters
	order  []Flow
	room   int
	silent bool
	asked  map[uint32]units.Time // the last poll, by port
	cnps   []Flow
	at     []units.Time
	qps    []uint32
	fail   error // of Counters
	busy   bool
	writes int
}

func (f *fake) Poll(port uint32) error {
	f.asked[port] = f.now
	if !f.silent {
		f.loop.Polled(f.now, f.now, port, f.queues[port])
	}
	return nil
}

func (f *fake) Counters(dst []Counters) ([]Counters, error) {
	for _, k := range f.order {
		if c := f.table[k]; c != nil {
			dst = append(dst, *c)
		}
	}
	return dst, f.fail
}

func (f *fake) Write(add, remove []Flow) (refused []Flow, err error) {
	f.writes++
	if f.busy {
		return nil, ErrBusy
	}
	for _, k := range remove {
		delete(f.table, k)
		f.order = slices.DeleteFunc(f.order, func(o Flow) bool { return o == k })
	}
	for _, k := range add {
		if len(f.table) >= f.room {
			refused = append(refused, k)
			continue
		}
		f.put(Counters{Flow: k})
	}
	return refused, nil
}

func (f *fake) put(c Counters) {
	f.table[c.Flow] = &c
	f.order = append(f.order, c.Flow)
}

func (f *fake) CNP(k Flow, qp uint32) error {
	f.cnps, f.at, f.qps = append(f.cnps, k), append(f.at, f.now), append(f.qps, qp)
	return nil
}

// send counts packets of flows that are in the table; unknown flows become digests.
func (f *fake) send(flows map[Flow]sender) {
	for k, s := range flows {
		if c := f.table[k]; c != nil {
			c.Bytes += s.bytes
			c.Congested += s.congested
		} else {
			f.loop.Learned(k)
		}
	}
}

// run calls the loop whenever it is due, until the time end.
func (f *fake) run(t *testing.T, end units.Time) {
	t.Helper()
	for at := max(f.now, f.loop.Next()); at < end; at = max(f.now, f.loop.Next()) {
		f.now = at
		if err := f.loop.Run(at); err != nil {
			t.Fatal(err)
		}
		if f.loop.Next() <= at && f.loop.Next() != 0 {
			t.Fatalf("at %v the loop is still due, at %v", at, f.loop.Next())
		}
	}
	f.now = end
}

func flow(port uint32, n byte) Flow {
	return Flow{FlowKey{Src: netip.AddrFrom4([4]byte{10, 0, 0, n}), Dst: netip.AddrFrom4([4]byte{10, 1, 0, 1})}, port}
}

const period = 80 * units.Microsecond

// newFake is a switch with ports 1 and 2 at 25 Gb/s: Q_th is 125 KB.
func newFake(t *testing.T, most int) *fake {
	t.Helper()
	f := &fake{queues: map[uint32]units.Bytes{}, table: map[Flow]*Counters{}, asked: map[uint32]units.Time{}, room: 1 << 20}
	p := paperParams(25 * units.Gbps)
	var err error
	f.loop, err = NewLoop(LoopConfig{Ports: []PortConfig{{1, p}, {2, p}}, MaxFlows: most}, f)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Two flows whose congested packets are 2 : 1 get CNPs in that ratio, spread over the period.
func TestLoopSharesAndPaces(t *testing.T) {
	f := newFake(t, 100)
	a, b, c := flow(1, 1), flow(1, 2), flow(2, 3)
	traffic := map[Flow]sender{a: {100_000, 60}, b: {100_000, 30}, c: {100_000, 30}}
	f.run(t, period)
	f.send(traffic) // learned
	f.run(t, 2*period)
	f.queues[1] = 125*units.KB + 300*units.KB // β1 · 300 KB = 15 CNPs a period
	for n := units.Time(3); n <= 13; n++ {
		f.send(traffic)
		f.run(t, n*period)
	}
	count := map[Flow]int{}
	for _, k := range f.cnps {
		count[k]++
	}
	// The first period with this queue adds β2 · 425 KB; ten of 15 in all.
	if count[c] != 0 || count[a] < 10*10 || count[a] > 10*10+20 || count[b] < 10*5 || count[b] > 10*5+20 {
		t.Errorf("CNPs %v, want about 10 a period to a, 5 to b and none to c, whose port has no queue", count)
	}
	last := map[Flow]units.Time{}
	for i, k := range f.cnps {
		if before, ok := last[k]; ok && f.at[i]-before < 4*units.Microsecond {
			t.Fatalf("two CNPs to %v within %v", k.Src, f.at[i]-before)
		}
		last[k] = f.at[i]
	}
	s := f.loop.Stats()
	if s.Flows != 3 || s.Learned != 3 || s.CNPs != uint64(len(f.cnps)) || s.Late != 0 || s.Missed != 0 || s.Ticks != 13 {
		t.Errorf("stats %+v", s)
	}
	if p := f.loop.Ports(); p[0].Queue != 425*units.KB || p[0].Ticks != 13 {
		t.Errorf("ports %+v", p)
	}
}

// Late ticks are measured with their true length, and later ticks stay on the grid.
func TestLoopLate(t *testing.T) {
	f := newFake(t, 10)
	f.run(t, period/2)
	for _, at := range []units.Time{period + period/2, 5*period + 1} {
		f.now = at
		if err := f.loop.Run(at); err != nil {
			t.Fatal(err)
		}
	}
	want := LoopStats{Ticks: 3, Late: 2, Missed: 3, Lateness: period/2 + 3*period + 1, WorstLateness: 3*period + 1}
	if got := f.loop.Stats(); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
	if next := f.loop.Next(); next != 6*period {
		t.Errorf("the next tick is at %v, want %v", next, 6*period)
	}
}

// If the answer to a poll is lost or late, the port misses that tick and nothing else.
func TestLoopPolls(t *testing.T) {
	f := newFake(t, 10)
	f.silent = true
	f.run(t, period)
	f.loop.Polled(f.now, f.asked[1], 1, 1000)
	f.loop.Polled(f.now, f.asked[1], 1, 2000) // the same answer again
	f.loop.Polled(f.now, f.asked[1], 9, 1000) // a port that the loop does not have
	before := f.asked[2]
	f.run(t, 2*period)
	f.loop.Polled(f.now, before, 2, 1000) // an answer to the poll before
	f.loop.Polled(f.now, f.asked[2], 2, 3000)
	f.run(t, 3*period)
	s := f.loop.Stats()
	if s.Unanswered != 2 || s.Ticks != 3 {
		t.Errorf("stats %+v, want 2 unanswered polls", s)
	}
	if p := f.loop.Ports(); p[0].Ticks != 1 || p[0].Queue != 1000 || p[1].Ticks != 1 || p[1].Queue != 3000 {
		t.Errorf("ports %+v", p)
	}
}

// charged returns the traffic of the flow in the last computation of its port.
func (s *flowState) charged() count { return count{s.last.Bytes, s.last.Congested} }

// NewPacer returns a pacer without ports.
func NewPacer(p Params) (*Pacer, error) {
	pacer := newPacer(p)
	return &pacer, nil
}

// Add implements Pacer.
func (p *Pacer) Add(now units.Time, grants []Grant) { p.add(now, grants) }

// A flow whose poll is lost is charged for both periods in the next tick. A counter that restarts
// is charged with nothing, and so are bytes that an earlier loop counted.
func TestLoopDifferences(t *testing.T) {
	f := newFake(t, 10)
	k := flow(1, 1)
	f.put(Counters{Flow: k, Bytes: 1 << 40, Congested: 1 << 30})
	tick := func(bytes, congested uint64) count {
		f.table[k].Bytes, f.table[k].Congested = bytes, congested
		f.run(t, f.loop.groups[0].due+1)
		return f.loop.table.flows[k].charged()
	}
	for _, step := range []struct {
		bytes, congested uint64
		silent           bool
		want             count
	}{
		{1<<40 + 100, 1<<30 + 1, false, count{}},
		{1<<40 + 300, 1<<30 + 3, false, count{200, 2}},
		{1<<40 + 600, 1<<30 + 4, true, count{200, 2}},
		{1<<40 + 1000, 1<<30 + 8, false, count{700, 5}},
		{50, 1 << 31, false, count{}},
		{80, 1<<31 + 1, false, count{30, 1}},
	} {
		f.silent = step.silent
		if got := tick(step.bytes, step.congested); got != step.want {
			t.Errorf("at %d B: %+v, want %+v", step.bytes, got, step.want)
		}
	}
}

func TestLoopReadFails(t *testing.T) {
	f := newFake(t, 10)
	f.fail = errors.New("no answer")
	if err := f.loop.Run(0); !errors.Is(err, f.fail) || f.loop.Stats().ReadErrors != 1 {
		t.Errorf("error %v, stats %+v", err, f.loop.Stats())
	}
	if p := f.loop.Ports(); p[0].Ticks != 0 {
		t.Error("a port was computed without counters")
	}
	f.fail = nil
	f.run(t, 3*period)
	if p := f.loop.Ports(); p[0].Ticks != 2 {
		t.Errorf("%d ticks after the switch answers again, want 2", p[0].Ticks)
	}
}

// A full table first evicts the flow that has been idle for longest, then flows without congestion, at most an
// eighth of the table per period.
func TestLoopEvicts(t *testing.T) {
	const most = 16
	f := newFake(t, most)
	f.loop.table.ports = 1 // the other port needs no share
	traffic := map[Flow]sender{}
	for i := range byte(most) {
		traffic[flow(1, i)] = sender{1000, uint64(i)} // flow 0 meets no congestion
	}
	f.run(t, period)
	for n := units.Time(2); n < 5; n++ {
		f.send(traffic)
		delete(traffic, flow(1, most/2)) // is idle from the second period on
		f.run(t, n*period)
	}
	for i := range byte(5) {
		f.loop.Learned(flow(1, 100+i))
	}
	f.run(t, 6*period)
	s := f.loop.Stats()
	if s.Evicted != most/churnShare || s.Refused != 5-most/churnShare || s.Flows != most || len(f.table) != most {
		t.Errorf("stats %+v with %d entries, want %d evictions", s, len(f.table), most/churnShare)
	}
	for i := range byte(most) {
		if _, there := f.table[flow(1, i)]; there != (i != 0 && i != most/2) {
			t.Errorf("flow %d: in the table %v", i, there)
		}
	}
	if f.table[flow(1, 100)] == nil || f.table[flow(1, 101)] == nil {
		t.Error("the new flows are not in the table")
	}
}

// The loop keeps an earlier loop's complete entries. It removes incomplete entries and those of
// unwatched queues. A removed flow may be learned again.
func TestLoopAdopts(t *testing.T) {
	f := newFake(t, 10)
	old, half, foreign := flow(1, 1), flow(1, 2), flow(7, 3)
	f.put(Counters{Flow: old, Bytes: 5_000_000, Congested: 1000})
	f.put(Counters{Flow: half, Partial: true})
	f.put(Counters{Flow: foreign, Bytes: 1})
	f.run(t, 2*period)
	if len(f.table) != 1 || f.table[old] == nil || f.loop.Stats().Flows != 1 || len(f.cnps) != 0 {
		t.Errorf("entries %v, stats %+v, %d CNPs", f.table, f.loop.Stats(), len(f.cnps))
	}
	delete(f.table, old)
	f.run(t, 3*period)
	f.loop.Learned(old)
	f.run(t, 5*period)
	if f.table[old] == nil {
		t.Error("a flow whose entries were lost is not learned again")
	}
	f.loop.Aged(old, old)
	f.run(t, 6*period)
	if s := f.loop.Stats(); len(f.table) != 0 || s.Aged != 1 || s.Flows != 0 {
		t.Errorf("after ageing: %v, %+v", f.table, s)
	}
}

// A burst of new flows is written in batches; entries that the switch refuses are not in the table.
func TestLoopWritesInPieces(t *testing.T) {
	f := newFake(t, 1000)
	f.room = 300
	f.run(t, period)
	for i := range 600 {
		k := flow(1, byte(i))
		k.Port = uint32(1 + i/256%2)
		k.Dst = netip.AddrFrom4([4]byte{10, 2, 0, byte(i / 256)})
		f.loop.Learned(k, k)
	}
	if !f.loop.Pending() {
		t.Fatal("nothing is pending")
	}
	for n := 0; f.loop.Pending(); n++ {
		if err := f.loop.Run(f.now); err != nil || n > 10 {
			t.Fatal(n, err)
		}
	}
	if s := f.loop.Stats(); f.writes != 3 || s.Learned != 300 || s.Refused != 300 || s.Flows != 300 {
		t.Errorf("%d writes, %+v", f.writes, s)
	}
}

// A busy switch is asked again, and no flow is lost.
func TestLoopBusy(t *testing.T) {
	f := newFake(t, 10)
	f.busy = true
	f.run(t, period)
	f.loop.Learned(flow(1, 1))
	f.run(t, 3*period)
	if s := f.loop.Stats(); s.Learned != 0 || s.Refused != 0 || !f.loop.Pending() {
		t.Errorf("while it is busy: %+v", s)
	}
	f.busy = false
	f.run(t, 4*period)
	if s := f.loop.Stats(); s.Learned != 1 || f.table[flow(1, 1)] == nil {
		t.Errorf("afterwards: %+v", s)
	}
}

func TestNewLoopRefuses(t *testing.T) {
	p := paperParams(25 * units.Gbps)
	slow := p.Stretch(2)
	bad := p
	bad.Beta1 = 0
	for name, c := range map[string]LoopConfig{
		"no port":         {MaxFlows: 1},
		"no flows":        {Ports: []PortConfig{{1, p}}},
		"a port twice":    {Ports: []PortConfig{{1, p}, {1, p}}, MaxFlows: 1},
		"two intervals":   {Ports: []PortConfig{{1, p}, {2, slow}}, MaxFlows: 1},
		"bad parameters":  {Ports: []PortConfig{{1, bad}}, MaxFlows: 1},
		"no flows at all": {Ports: []PortConfig{{1, p}}, MaxFlows: -1},
	} {
		if _, err := NewLoop(c, &fake{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestCNPBuilder(t *testing.T) {
	k := flow(1, 9).FlowKey
	b := &CNPBuilder{DSCP: 46}
	var n packet.Notification
	if err := n.Decode(b.Append(nil, k, 0xabcde)); err != nil {
		t.Fatal(err)
	}
	if n.FlowSrc != k.Src || n.FlowDst != k.Dst || n.DSCP != 46 || n.SrcPort < 0xc000 || n.DestQP != 0xabcde {
		t.Errorf("notification %+v", n)
	}
	other := flow(1, 10).FlowKey
	first := n.SrcPort
	if err := n.Decode(b.Append(nil, other, 0)); err != nil || n.SrcPort == first {
		t.Errorf("both flows' notifications go by port %d, %v", first, err)
	}
}

// rows is a switch with only the counters implemented.
type rows struct {
	fake
	counts []Counters
}

func (r *rows) Counters(dst []Counters) ([]Counters, error) { return append(dst, r.counts...), nil }

// BenchmarkTick is a period of the loop over flows of one port.
func BenchmarkTick(b *testing.B) {
	for _, flows := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(flows), func(b *testing.B) {
			r := &rows{fake: fake{queues: map[uint32]units.Bytes{1: 300 * units.KB}, asked: map[uint32]units.Time{}}}
			var err error
			r.loop, err = NewLoop(LoopConfig{Ports: []PortConfig{{1, paperParams(25 * units.Gbps)}}, MaxFlows: flows}, r)
			if err != nil {
				b.Fatal(err)
			}
			for i := range flows {
				k := flow(1, 0)
				k.Src = netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)})
				r.counts = append(r.counts, Counters{Flow: k})
			}
			b.ReportAllocs()
			for b.Loop() {
				for i := range r.counts {
					r.counts[i].Bytes += 9000
					r.counts[i].Congested++
				}
				r.now += period
				if err := r.loop.Run(r.now); err != nil {
					b.Fatal(err)
				}
			}
			if s := r.loop.Stats(); s.Flows != flows {
				b.Fatalf("%d flows in the table, want %d", s.Flows, flows)
			}
		})
	}
}
