package cnpgen_test

import (
	"encoding/binary"
	"math"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/units"
)

const (
	us = units.Microsecond
	kb = units.KB
)

func key(i int) cnpgen.FlowKey {
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], 0x0a000000+uint32(i))
	return cnpgen.FlowKey{Src: netip.AddrFrom4(a), Dst: netip.AddrFrom4([4]byte{10, 255, 0, 1})}
}

func newPort(t testing.TB, p cnpgen.Params) *cnpgen.Port {
	t.Helper()
	port, err := cnpgen.NewPort(p)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func counts(bytes uint64, congested ...uint64) []cnpgen.FlowCount {
	var out []cnpgen.FlowCount
	for i, c := range congested {
		out = append(out, cnpgen.FlowCount{Key: key(i), Bytes: bytes, Congested: c})
	}
	return out
}

// sends sets the traffic of each flow in a list, and adds missing flows.
func sends(list []cnpgen.FlowCount, bytes uint64, congested ...uint64) []cnpgen.FlowCount {
	for i, c := range congested {
		if i == len(list) {
			list = append(list, cnpgen.FlowCount{Key: key(i)})
		}
		list[i].Bytes, list[i].Congested = bytes, c
	}
	return list
}

func granted(gs []cnpgen.Grant) map[cnpgen.FlowKey]int {
	m := map[cnpgen.FlowKey]int{}
	for _, g := range gs {
		m[g.Key] = g.CNPs
	}
	return m
}

// Algorithm 1 by hand: a queue of 225 KB after 125 KB gives 0.05·100 + 0.1·100 = 15 CNPs. Flows
// with 60, 30 and 10 congested packets get 9, 4 (4.5) and 1 (1.5).
func TestTick(t *testing.T) {
	p := newPort(t, paperParams(25*units.Gbps))
	p.Tick(0, 125*kb, counts(0, 0, 0, 0))
	gs := granted(p.Tick(80*us, 225*kb, counts(80_000, 60, 30, 10)))
	if gs[key(0)] != 9 || gs[key(1)] != 4 || gs[key(2)] != 1 {
		t.Errorf("grants %v, want 9, 4 and 1", gs)
	}
	st := p.Stats()
	if math.Abs(st.All-15) > 1e-9 || st.CNPs != 14 || st.Lost != 1 || st.Interval != 80*us || st.QueueAvg != 215*kb || st.Flows != 3 {
		t.Errorf("stats %+v", st)
	}
	// The queue returns to the threshold: 0 + 0.1·(−100) gives no CNP.
	if gs := p.Tick(160*us, 125*kb, counts(80_000, 10, 10, 10)); len(gs) != 0 {
		t.Errorf("a falling queue at its threshold gives %v", gs)
	}
	// The queue stays above it: 0.05·20 + 0.1·20 = 3 CNPs for the only flow that was congested
	// since.
	gs = granted(p.Tick(240*us, 145*kb, counts(80_000, 0, 1, 0)))
	if len(gs) != 1 || gs[key(1)] != 3 {
		t.Errorf("grants %v, want 3 for flow 1", gs)
	}
}

// The queue has long been below the threshold. With w = 0.9 it counts as a burst at once: 0.9·140
// KB > 4 KB. With a Q_burst of 127 KB it does so only when the average is above that.
func TestBurstFilter(t *testing.T) {
	par := paperParams(25 * units.Gbps)
	for _, tt := range []struct {
		threshold, burst, queue units.Bytes
		first, second           bool
	}{
		{125 * kb, 4 * kb, 140 * kb, true, true},
		{100 * kb, 95 * kb, 104 * kb, false, true}, // averages 93.6 and 102.96 KB
	} {
		par.Threshold, par.Burst = tt.threshold, tt.burst
		p := newPort(t, par)
		p.Tick(0, 0, nil)
		one := len(p.Tick(80*us, tt.queue, counts(200_000, 100))) > 0
		p2 := newPort(t, par)
		p2.Tick(0, 0, nil)
		p2.Tick(80*us, tt.queue, counts(200_000, 100))
		two := len(p2.Tick(160*us, tt.queue+40*kb, counts(400_000, 200))) > 0
		if one != tt.first || two != tt.second {
			t.Errorf("burst %v, queue %v: CNPs %v then %v, want %v then %v", tt.burst, tt.queue, one, two, tt.first, tt.second)
		}
		if want := map[bool]uint64{true: 0, false: 1}[tt.first]; p.Stats().Filtered != want {
			t.Errorf("burst %v: filtered %d, want %d", tt.burst, p.Stats().Filtered, want)
		}
	}
}

func TestAtMostOnePerGap(t *testing.T) {
	p := newPort(t, paperParams(25*units.Gbps))
	p.Tick(0, 0, nil)
	gs := p.Tick(80*us, 16*units.MB, counts(200_000, 100))
	if len(gs) != 1 || gs[0].CNPs != 20 {
		t.Errorf("grants %v, want 20 = 80 µs / 4 µs", gs)
	}
}

// Late ticks: the queue's change counts per period; the average and ageing use the true time.
func TestLateTick(t *testing.T) {
	p := newPort(t, paperParams(25*units.Gbps))
	p.Tick(0, 125*kb, counts(0, 0))
	gs := p.Tick(320*us, 225*kb, counts(30_000, 60)) // four periods
	// 0.05·100 + 0.1·100/4 = 7.5
	if len(gs) != 1 || gs[0].CNPs != 7 {
		t.Errorf("grants %v, want 7", gs)
	}
	st := p.Stats()
	if st.Late != 1 || st.Missed != 3 || st.Interval != 320*us {
		t.Errorf("stats %+v, want one late tick and three missed", st)
	}
	if want := units.Bytes(math.Round(225_000 - 100_000*1e-4)); st.QueueAvg != want {
		t.Errorf("average %v, want %v", st.QueueAvg, want)
	}
	if st.Aged != 0 {
		t.Errorf("30 KB in four periods is more than 4 KB per period, but the flow aged")
	}
	// An early tick gets its fraction of the period.
	gs = p.Tick(360*us, 225*kb, counts(30_000, 20)) // 0.05·100/2
	if len(gs) != 1 || gs[0].CNPs != 2 {
		t.Errorf("grants of an early tick %v, want 2", gs)
	}
	if gs = p.Tick(360*us, 500*kb, counts(0, 10)); len(gs) != 0 || p.Stats().Ticks != 3 {
		t.Errorf("a second tick at the same time gives %v", gs)
	}
}

// The time over which the first list was counted is unknown.
func TestFirstTickGrantsNothing(t *testing.T) {
	p := newPort(t, paperParams(25*units.Gbps))
	if gs := p.Tick(7*units.Second, units.MB, counts(1<<40, 1<<30)); len(gs) != 0 {
		t.Errorf("grants %v, want none", gs)
	}
	if gs := p.Tick(7*units.Second+80*us, units.MB, counts(80_000, 0)); len(gs) != 0 {
		t.Errorf("grants %v without a congested packet, want none", gs)
	}
}

func TestAgeing(t *testing.T) {
	p := newPort(t, paperParams(25*units.Gbps))
	p.Tick(0, 0, nil)
	list := counts(4000, 0, 0)
	p.Tick(80*us, 0, list)
	if st := p.Stats(); st.Flows != 2 || st.Aged != 0 {
		t.Errorf("4000 B = B_th stay, got %+v", st)
	}
	list[1].Bytes = 3999
	p.Tick(160*us, 0, list)
	p.Tick(240*us, 0, sends(list, 0, 0, 0))
	if st := p.Stats(); st.Flows != 0 || st.Aged != 2 {
		t.Errorf("stats %+v, want both aged", st)
	}
	// Flows that had aged out are learned again.
	gs := p.Tick(320*us, 225*kb, counts(5000, 3))
	if len(gs) != 1 || gs[0].Key != key(0) || p.Stats().Flows != 1 {
		t.Errorf("grants %v, flows %d, want one for flow 0", gs, p.Stats().Flows)
	}
	p.Tick(400*us, 0, nil)
	if p.Stats().Flows != 0 {
		t.Error("a flow that is not listed stays")
	}
}

func TestFullTableEvictsLeastCongested(t *testing.T) {
	par := paperParams(25 * units.Gbps)
	par.MaxFlows = 2
	p := newPort(t, par)
	p.Tick(0, 125*kb, nil)
	list := counts(80_000, 5, 9)
	p.Tick(80*us, 225*kb, list)
	list = sends(list, 80_000, 10, 1, 20, 0)
	gs := granted(p.Tick(160*us, 225*kb, list))
	if len(gs) != 2 || gs[key(0)] == 0 || gs[key(2)] == 0 {
		t.Errorf("grants %v, want flows 0 and 2: flow 1 had one congested packet", gs)
	}
	// Flow 3 had no entry and found no room; flow 1 lost its entry.
	if st := p.Stats(); st.Evicted != 2 || st.Flows != 2 {
		t.Errorf("stats %+v, want two evictions", st)
	}
}

// For any traffic, grants are at least 1 and at most 20 per flow, their sum is N_all, each is
// within one of the exact share, flows without congested packets get none, and the order of rows
// does not matter.
func TestAllocator(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		par := paperParams(units.Rate(rapid.SampledFrom([]int{10, 25, 40, 100, 400}).Draw(t, "rate")) * units.Gbps)
		par.MaxFlows = rapid.IntRange(1, 64).Draw(t, "table")
		p, err := cnpgen.NewPort(par)
		if err != nil {
			t.Fatal(err)
		}
		now := units.Time(0)
		p.Tick(now, 0, nil)
		flows := make([]cnpgen.FlowCount, rapid.IntRange(1, 64).Draw(t, "flows"))
		for i := range flows {
			flows[i].Key = key(i)
		}
		for range rapid.IntRange(1, 5).Draw(t, "ticks") {
			now += units.Time(rapid.Int64Range(1, int64(400*us)).Draw(t, "interval"))
			delta := map[cnpgen.FlowKey]uint64{}
			for i := range flows {
				d := rapid.Uint64Range(0, 1000).Draw(t, "congested")
				delta[flows[i].Key] = d
				flows[i].Congested = d
				flows[i].Bytes = d*1000 + 5000*uint64(rapid.IntRange(0, 3).Draw(t, "more"))
			}
			queue := units.Bytes(rapid.Int64Range(0, int64(8*units.MB)).Draw(t, "queue"))
			order := rapid.Permutation(flows).Draw(t, "order")
			gs := p.Tick(now, queue, order)
			st := p.Stats()
			sum := 0
			for _, g := range gs {
				sum += g.CNPs
				if g.CNPs < 1 || g.CNPs > 20 {
					t.Fatalf("%d CNPs for one flow, want 1 to 20", g.CNPs)
				}
				if delta[g.Key] == 0 {
					t.Fatalf("%d CNPs for a flow that met no congestion", g.CNPs)
				}
			}
			if float64(sum) > st.All {
				t.Fatalf("%d CNPs, N_all is %v", sum, st.All)
			}
			if len(flows) <= par.MaxFlows && st.All > 0 {
				var total uint64
				for _, d := range delta {
					total += d
				}
				got := granted(gs)
				for k, d := range delta {
					exact := math.Min(st.All*float64(d)/float64(max(total, 1)), 20)
					if n := float64(got[k]); n > exact+1e-6 || n < exact-1-1e-6 {
						t.Fatalf("%v CNPs, the exact share is %v", n, exact)
					}
				}
			}
			if st.Flows > par.MaxFlows {
				t.Fatalf("%d flows in a table of %d", st.Flows, par.MaxFlows)
			}
		}
	})
}

func BenchmarkTick10000(b *testing.B) {
	p := newPort(b, paperParams(25*units.Gbps))
	flows := make([]cnpgen.FlowCount, 10_000)
	for i := range flows {
		flows[i].Key = key(i)
	}
	now := units.Time(0)
	tick := func(i int) {
		now += 80 * us
		for j := range flows {
			flows[j].Bytes = 10_000
			flows[j].Congested = uint64(1 + (i+j)%3)
		}
	}
	p.Tick(now, 0, flows)
	tick(0)
	p.Tick(now, 300*kb, flows)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		tick(i)
		b.StartTimer()
		p.Tick(now, 600*units.MB, flows)
	}
}

// The rows have a different order each time, so that each flow must be looked up.
func BenchmarkTick10000Shuffled(b *testing.B) {
	p := newPort(b, paperParams(25*units.Gbps))
	flows := make([]cnpgen.FlowCount, 10_000)
	for i := range flows {
		flows[i].Key = key(i)
	}
	now := units.Time(0)
	p.Tick(now, 0, flows)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		now += 80 * us
		for j := range flows {
			k := (j*7919 + i) % len(flows)
			flows[j], flows[k] = flows[k], flows[j]
		}
		for j := range flows {
			flows[j].Bytes = 10_000
			flows[j].Congested = 1
		}
		b.StartTimer()
		p.Tick(now, 600*units.MB, flows)
	}
}

func TestTickDoesNotAllocate(t *testing.T) {
	p := newPort(t, paperParams(25*units.Gbps))
	rows := counts(0, make([]uint64, 100)...)
	now := units.Time(0)
	tick := func() {
		now += 80 * us
		for i := range rows {
			rows[i].Bytes = 10_000
			rows[i].Congested = 10
		}
		p.Tick(now, 10*units.MB, rows)
	}
	tick()
	tick()
	if a := testing.AllocsPerRun(100, tick); a != 0 {
		t.Errorf("%v allocations per tick", a)
	}
}

func TestIPv6Flows(t *testing.T) {
	p := newPort(t, paperParams(25*units.Gbps))
	row := func(c uint64) []cnpgen.FlowCount {
		k := cnpgen.FlowKey{Src: netip.MustParseAddr("fd00::1"), Dst: netip.MustParseAddr("fd00::2")}
		// The order differs each time, so that flows must be looked up.
		rows := append(counts(80_000, 1), cnpgen.FlowCount{Key: k, Bytes: 80_000, Congested: 3})
		if c%2 == 0 {
			rows[0], rows[1] = rows[1], rows[0]
		}
		return rows
	}
	p.Tick(0, 225*kb, nil)
	for i := range uint64(4) {
		got := map[bool]int{}
		for _, g := range p.Tick(units.Time(i+1)*80*us, 285*kb, row(i+1)) {
			got[g.Key.Src.Is6()] = g.CNPs
		}
		if i > 0 && (got[true] != 6 || got[false] != 2) {
			t.Errorf("tick %d: %d CNPs for the IPv6 flow and %d for the other, want 6 and 2", i, got[true], got[false])
		}
	}
	p.Tick(400*us, 285*kb, nil)
	if n := p.Stats().Flows; n != 0 {
		t.Errorf("%d flows are left", n)
	}
}
