package dataplane

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/tables/buffer"
	"github.com/headgate/headgate/tables/log2"
	"github.com/headgate/headgate/tests/race"
	"github.com/headgate/headgate/units"
)

// randomBuffer returns a random policy that is often at its limits.
func randomBuffer(kind headroom.Kind, rng *rand.Rand) buffer.Config {
	pick := func(list ...units.Bytes) units.Bytes { return list[rng.IntN(len(list))] }
	c := headroom.Config{
		Policy: kind, Lossless: uint8(1 + rng.IntN(255)), MTU: 1500, AllowLoss: true,
		Private: pick(0, 1000, 3000), LossyPrivate: pick(0, 500),
		Headroom: pick(3000, 9000, 20_000), Alpha: headroom.Alpha(rng.IntN(5) - 3),
		ResumeGap: pick(0, 0, 1500, 3000), PortResumeGap: pick(0, 3000),
		Share: 500, Buffer: 0,
	}
	c.DSH.Window = units.Time(1+rng.IntN(500)) * units.Microsecond
	c.DSH.Precision = log2.Precision{Log: uint(1 + rng.IntN(8)), Exp: uint(1 + rng.IntN(8)), Frac: uint(8 + rng.IntN(9))}
	c.DSH.Entries = 2 + rng.IntN(200)
	c.DSH.NoSharedHeadroom = rng.IntN(6) == 0
	c.DSH.NoInsurance = rng.IntN(6) == 0
	c.SPFC.Period = units.Time(20+rng.IntN(200)) * units.Microsecond
	b := buffer.Config{Quanta: uint16(1 + rng.IntN(65535))}
	for i := range 4 {
		rate := []units.Rate{100 * units.Mbps, units.Gbps, 10 * units.Gbps, 100 * units.Gbps}[rng.IntN(4)]
		c.Ports = append(c.Ports, headroom.Port{Rate: rate, Delay: units.Time(rng.IntN(3)) * units.Microsecond})
		b.Numbers = append(b.Numbers, uint32(1+3*i))
	}
	if kind == headroom.Adaptive {
		c.Headroom = 0
	}
	for c.Buffer = 60_000; ; c.Buffer += 5000 { // the smallest that works
		c.Threshold = c.Buffer / 40
		if _, err := c.Layout(); err == nil {
			break
		}
	}
	b.MMU = c
	return b
}

// versus is one trace through the Go MMU and the machine.
type versus struct {
	*machine
	c                          buffer.Config
	mmu                        *headroom.MMU
	pool                       units.Bytes // size of the shared pool
	refresh                    []refresher
	stored                     []storedPacket
	victims                    int // events after which a port was a victim
	disobeyed                  int // arrivals that caused a repeated PAUSE
	whole                      int // arrivals from victim ports
	early                      int // arrivals that left τ above 0
	lent                       int // arrivals after which victims hold what paused queues lend
	pauses, resumes, refreshes []uint64
}

type storedPacket struct {
	p     *engine.Packet
	port  int
	class uint8
	n     int
}

func newVersus(t testing.TB, m *machine, c buffer.Config) *versus {
	entries, err := buffer.Build(c)
	must(t, err)
	mmu, err := headroom.New(entries.MMU)
	must(t, err)
	layout, err := entries.MMU.Layout()
	must(t, err)
	n := len(c.Numbers)
	v := &versus{machine: m, c: c, mmu: mmu, pool: layout.Shared, pauses: make([]uint64, n), resumes: make([]uint64, n), refreshes: make([]uint64, n)}
	for _, p := range c.MMU.Ports {
		v.refresh = append(v.refresh, newRefresher(p.Rate.PauseTime(c.Quanta)))
	}
	return v
}

// arrive plays one arrival on both; both must decide the same.
func (v *versus) arrive(port int, class uint8, n int) {
	v.t.Helper()
	if v.c.MMU.Lossless>>class&1 != 0 && v.mmu.Victim(v.now, port) {
		v.whole++
	}
	told := v.mmu.Paused(port)
	p := v.machine.arrive(v.c.Numbers[port], class, n)
	ok, signals := v.mmu.Arrive(v.now, port, class, units.Bytes(n))
	if v.mmu.Usage().Shared > v.pool {
		v.lent++
	}
	if ok != (p != nil) {
		v.t.Fatalf("%d B of class %d at port %d: the MMU stored it: %v, the pipeline: %v", n, class, port, ok, p != nil)
	}
	if p != nil {
		v.stored = append(v.stored, storedPacket{p, port, class, n})
	}
	v.same("arrival", port, class, n, told&v.c.MMU.Lossless, signals)
	v.state("arrival", port, class)
	lossless := v.c.MMU.Lossless>>class&1 != 0
	if v.mmu.Tau(port, class) > 0 {
		v.early++
	}
	if got, want := v.tau(v.c.Numbers[port], class), v.mmu.Tau(port, class); lossless && got != want {
		v.t.Fatalf("%d B of class %d at port %d: τ is %d B, the MMU's %d B", n, class, port, got, want)
	}
}

// unknown reports whether a port's last PAUSE of all its paused classes is older than the peer's reaction time,
// in the switch's ticks.
func (v *versus) unknown(port int) bool {
	p := v.c.MMU.Ports[port]
	half := max(1, p.Rate.PauseTime(v.c.Quanta)/2)
	age := (v.now - (v.refresh[port].Next() - half)) / units.Microsecond
	obeys := p.Rate.TxTime(v.c.MMU.Link(port).Required())
	return age*units.Microsecond >= obeys
}

// depart removes stored packet i from both.
func (v *versus) depart(i int) {
	v.t.Helper()
	s := v.stored[i]
	v.stored = append(v.stored[:i], v.stored[i+1:]...)
	v.machine.depart(s.p)
	v.same("departure", s.port, s.class, s.n, 0, v.mmu.Depart(v.now, s.port, s.class, units.Bytes(s.n)))
	v.state("departure", s.port, s.class)
}

// state compares SPFC's state of a port after a packet of a lossless class. Packets of other classes do not
// advance the meter, and a paused port's State Holder stays reset.
func (v *versus) state(what string, port int, class uint8) {
	v.t.Helper()
	if v.c.MMU.Lossless>>class&1 == 0 {
		return
	}
	number := int(v.c.Numbers[port])
	victim := v.register(ids.RegisterSpfcVictimName, number) == 1 && v.register(ids.RegisterBufferPausedName, number) == 0
	if want := v.mmu.Victim(v.now, port); victim != want {
		v.t.Fatalf("%s at port %d: it is a victim: %v, by the MMU's meter: %v; %d B have departed in its period", what, port, victim, want, v.register(ids.RegisterSpfcCountName, number))
	}
	if victim {
		v.victims++
	}
}

// same compares the PFC frames of one event one by one. told are the lossless classes that the peer should have
// stopped.
func (v *versus) same(what string, port int, class uint8, n int, told uint8, want []headroom.Signal) {
	v.t.Helper()
	r := &v.refresh[port]
	if len(want) > 0 {
		r.Sent(v.now, want[0].Classes, want[0].Pause)
		if want[0].Pause {
			v.pauses[port]++
		} else {
			v.resumes[port]++
		}
	} else if due := r.Due(v.now); due != 0 {
		want = []headroom.Signal{{Port: port, Classes: due, Pause: true}}
		v.refreshes[port]++
	} else if told>>class&1 != 0 && v.unknown(port) {
		paused := v.mmu.Paused(port)
		r.Sent(v.now, paused, true)
		want = []headroom.Signal{{Port: port, Classes: paused, Pause: true}}
		v.refreshes[port]++
		v.disobeyed++
	}
	var got []headroom.Signal
	for _, f := range v.pfc {
		pause, err := f.pause(v.c.Quanta)
		must(v.t, err)
		s := headroom.Signal{Port: -1, Classes: f.classes, Pause: pause}
		for i, number := range v.c.Numbers {
			if number == f.port {
				s.Port = i
			}
		}
		got = append(got, s)
	}
	v.pfc = v.pfc[:0]
	if v.c.MMU.Policy == headroom.SPFC && v.c.MMU.Lossless>>class&1 != 0 && v.mmu.Victim(v.now, port) {
		// A victim's limit is the pool and what paused queues lend.
		if got, want := units.Bytes(v.register(ids.RegisterBufferPoolsName, ids.PoolLent)), v.mmu.Limit(v.now, port, class)-v.pool; got != want {
			v.t.Fatalf("%s of %d B of class %d at port %d: paused queues lend %d B, the MMU's %d B", what, n, class, port, got, want)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		v.t.Fatalf("%s of %d B of class %d at port %d: frames %+v, the MMU's %+v", what, n, class, port, got, want)
	}
}

// accounts compares all pools.
func (v *versus) accounts() {
	v.t.Helper()
	must(v.t, v.mmu.Audit())
	pools := func(u headroom.Usage) pollreport.Pools {
		return pollreport.Pools{Private: uint32(u.Private), Shared: uint32(u.Shared), Headroom: uint32(u.Headroom), Insurance: uint32(u.Insurance)}
	}
	for i, number := range v.c.Numbers {
		got := v.poll(number).Buffer
		want := pollreport.Buffer{
			Victim: got.Victim, PortPaused: v.mmu.PortPaused(i), LastPause: got.LastPause, Insured: uint32(v.mmu.Insured(i)),
			PausedQueues: got.PausedQueues, Used: pools(v.mmu.Usage()), Peak: pools(v.mmu.Stats().Peak),
		}
		for class := range uint8(8) {
			q := v.mmu.Queue(i, class)
			want.Private[class], want.Shared[class], want.Headroom[class] = uint32(q.Private), uint32(q.Shared), uint32(q.Headroom)
			if v.c.MMU.Lossless>>class&1 != 0 {
				want.PortShared += uint32(q.Shared)
			}
		}
		if got != want || got.Paused() != v.mmu.Paused(i) {
			v.t.Fatalf("port %d reports %+v\nthe MMU has %+v, paused %08b", number, got, want, v.mmu.Paused(i))
		}
	}
	v.counters()
}

func (v *versus) counters() {
	v.t.Helper()
	s := v.mmu.Stats()
	var pauses, resumes, lossless uint64
	for i, number := range v.c.Numbers {
		got := [3]uint64{v.counter(ids.CounterPFCPausesName, int(number)), v.counter(ids.CounterPFCResumesName, int(number)), v.counter(ids.CounterPFCRefreshesName, int(number))}
		if want := [3]uint64{v.pauses[i], v.resumes[i], v.refreshes[i]}; got != want {
			v.t.Fatalf("port %d counts %d PAUSE, RESUME and refresh frames, want %d", number, got, want)
		}
		pauses, resumes = pauses+got[0], resumes+got[1]
		for class := range 8 {
			lossless += v.counter(ids.CounterLosslessDropsName, int(number)<<3|class)
		}
	}
	drops := v.counter(ids.CounterDropsName, ids.DropBuffer)
	if pauses != s.PauseFrames || resumes != s.ResumeFrames || lossless != s.LosslessDrops || drops != s.LosslessDrops+s.LossyDrops {
		v.t.Fatalf("%d PAUSE, %d RESUME, %d lossless of %d drops, the MMU has %+v", pauses, resumes, lossless, drops, s)
	}
}

// play gives both a random trace: phases with more or less load, some with one class and port, with peers that
// obey and some that do not.
func (v *versus) play(rng *rand.Rand, events int) {
	v.t.Helper()
	ports, load, stubborn, class := len(v.c.Numbers), 50, 0, -1
	unit := []int{1, 500}[rng.IntN(2)] // packets of round sizes reach limits exactly
	for i := range events {
		if i%60 == 0 {
			load, stubborn, class = 20+rng.IntN(70), rng.IntN(3)*10, rng.IntN(16)-8
		}
		v.now += units.Time(rng.IntN(3)*rng.IntN(4)) * units.Microsecond
		if rng.IntN(300) == 0 {
			v.now += units.Time(rng.IntN(3000)) * units.Microsecond
		}
		if rng.IntN(100) < load || len(v.stored) == 0 {
			port, c := rng.IntN(ports), uint8(rng.IntN(8))
			if class >= 0 {
				c = uint8(class)
			}
			if v.mmu.Paused(port)>>c&1 != 0 && rng.IntN(100) >= stubborn+5 {
				continue
			}
			v.arrive(port, c, max(60, unit*(1+rng.IntN(1500/unit))))
		} else {
			v.depart(rng.IntN(len(v.stored)))
		}
		if i%200 == 0 {
			v.accounts()
		}
	}
	v.accounts()
	for len(v.stored) > 0 {
		v.now += units.Microsecond
		v.depart(rng.IntN(len(v.stored)))
	}
	v.accounts()
	if u := v.mmu.Usage(); u.Total() != 0 {
		v.t.Fatalf("empty, and in use are %+v", u)
	}
}

// TestBufferDecisions sends random traces through headroom.MMU and the pipeline. Both must store or drop the same
// packets and send the same PFC frames, so all accounts and counters agree.
func TestBufferDecisions(t *testing.T) {
	race.SkipSequential(t)
	program := loadProgram(t)
	for _, kind := range headroom.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			var total headroom.Stats
			whole, early, victims, disobeyed, lent := 0, 0, 0, 0, 0
			for seed := range uint64(8) {
				rng := rand.New(rand.NewPCG(seed, 7))
				c := randomBuffer(kind, rng)
				m := newMachine(t, program)
				m.install(c)
				v := newVersus(t, m, c)
				v.play(rng, 1200)
				s := v.mmu.Stats()
				whole, early, victims, disobeyed, lent = whole+v.whole, early+v.early, victims+v.victims, disobeyed+v.disobeyed, lent+v.lent
				total.PauseFrames += s.PauseFrames
				total.ResumeFrames += s.ResumeFrames
				total.LosslessDrops += s.LosslessDrops
				total.LossyDrops += s.LossyDrops
				total.PortPauses += s.PortPauses
				for _, n := range v.refreshes {
					total.QueuePauses += n
				}
			}
			t.Logf("%d PAUSE, %d RESUME, %d refreshes, %d ports paused, %d lossless and %d lossy drops",
				total.PauseFrames, total.ResumeFrames, total.QueuePauses, total.PortPauses, total.LosslessDrops, total.LossyDrops)
			if total.PauseFrames < 100 || total.ResumeFrames < 100 || total.QueuePauses == 0 || total.LossyDrops == 0 || disobeyed == 0 {
				t.Errorf("the traces are too tame: %+v", total)
			}
			if (kind == headroom.SPFC) != (lent > 10) || kind.Victims() != (whole > 50 && victims > 50) || kind.Insured() != (early > 50 && total.PortPauses > 10) {
				t.Errorf("the traces are too tame: %d packets came from victims, %d found them with loans, %d left τ above 0, %d ports paused", whole, lent, early, total.PortPauses)
			}
		})
	}
}
