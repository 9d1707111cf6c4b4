package headroom

import (
	"errors"
	"fmt"
	"testing"

	"github.com/headgate/headgate/units"
)

// lender has packets of 1000 B go through an MMU with a victim, port 0, and two burst ports, on a link of 1 Gb/s.
type lender struct {
	*MMU
	t   *testing.T
	now units.Time
}

func newLender(t *testing.T, local bool) *lender {
	t.Helper()
	c := Config{Policy: SPFC, Lossless: 1, Buffer: 120_000, Headroom: 20_000, Alpha: 0, LocalResume: local}
	for range 3 {
		c.Ports = append(c.Ports, Port{Rate: units.Gbps})
	}
	c.Ports[0].Victim = true
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	l := &lender{m, t, 0}
	l.arrive(0, 1)
	l.depart(0, 1) // a victim is one from its first departure on
	return l
}

// arrive has n packets arrive, of which none may be dropped, and returns after how many the port was paused, 0 for none.
func (l *lender) arrive(port, n int) (paused int) {
	l.t.Helper()
	for i := range n {
		l.now += units.Microsecond
		ok, _ := l.Arrive(l.now, port, 0, 1000)
		if !ok {
			l.t.Fatalf("packet %d of port %d is dropped: %+v in use", i+1, port, l.Usage())
		}
		l.check()
		if paused == 0 && l.Paused(port) != 0 {
			paused = i + 1
		}
	}
	return paused
}

func (l *lender) depart(port, n int) {
	l.t.Helper()
	for range n {
		l.now += units.Microsecond
		l.Depart(l.now, port, 0, 1000)
		l.check()
	}
}

func (l *lender) check() {
	l.t.Helper()
	if err := errors.Join(l.Audit(), promised(l.MMU, l.now)); err != nil {
		l.t.Fatal(err)
	}
}

// promised returns an error if a queue whose peer may still send has not got all of its headroom.
func promised(m *MMU, now units.Time) error {
	if !m.lends {
		return nil
	}
	var want units.Bytes
	for i := range m.queues {
		port := i / Classes
		if silent := m.queues[i].off && now-m.spfc.loans[i].heard > m.spfc.ports[port].quiet; m.lossless>>(i%Classes)&1 != 0 && !silent {
			want += m.ports[port].phi - m.queues[i].headroom
		}
	}
	if free := m.free + m.config.layout().Headroom - m.totals.Headroom; free < want {
		return fmt.Errorf("%v of memory are free, and queues whose peers may send need %v", free, want)
	}
	return nil
}

// silent lets every peer that has been told to stop fall silent.
func (l *lender) silent() { l.now += l.config.Silence(0) + 1 }

// Victims fill the pool and what paused queues lend. Then every peer, victims' too, sends as long after its PAUSE as its
// headroom allows, and no packet is dropped.
func TestVictimsFillTheMemory(t *testing.T) {
	for _, local := range []bool{false, true} {
		l := newLender(t, local)
		// 60 KB of pool: with α = 1 a port is paused by the packet that reaches what is free. It then sends another 15 KB.
		first, second := l.arrive(1, 46), l.arrive(2, 31)
		if first != 31 || second != 16 {
			t.Fatalf("local %v: burst ports are paused after %d and %d packets, want 31 and 16", local, first, second)
		}
		l.silent()
		l.depart(1, 1) // leaves 15 KB in headroom and 30 KB in the pool
		l.depart(2, 6) // leaves 10 KB in headroom and 15 KB in the pool
		if got := l.spfc.total; got != 5000+10_000 {
			t.Fatalf("local %v: paused queues lend %v, want the 5 KB and 10 KB of headroom that they do not use", local, got)
		}
		// The pool has 60 − 30 − 15 = 15 KB left.
		if got := l.arrive(0, 31); got != 31 {
			t.Fatalf("local %v: the victim is paused after %d packets, want 31, which is one more than 15 KB and the loans of 15 KB", local, got)
		}
		l.arrive(0, 19) // all of its headroom
		if used := l.Usage().Total(); used != l.config.Buffer {
			t.Fatalf("local %v: %v are in use, want the whole buffer of %v", local, used, l.config.Buffer)
		}
		l.depart(2, 25)
		l.depart(1, 45)
		l.depart(0, 50)
		for port := range 3 {
			if l.Paused(port) != 0 {
				t.Errorf("local %v: port %d is paused, and nothing is left", local, port)
			}
		}
		if s := l.Stats(); l.spfc.total != 0 || l.Usage() != (Usage{}) || s.LosslessDrops != 0 {
			t.Errorf("local %v: %v lent, %+v in use, %+v", local, l.spfc.total, l.Usage(), s)
		}
	}
}

// A queue lends nothing while its peer may still send, and stops lending when the peer sends all the same.
func TestLoanNeedsSilence(t *testing.T) {
	l := newLender(t, true)
	l.arrive(1, 46)
	l.depart(1, 1)
	if l.spfc.total != 0 {
		t.Errorf("%v lent although the peer may still send", l.spfc.total)
	}
	l.silent()
	l.depart(1, 1)
	if l.spfc.total == 0 {
		t.Error("a silent peer's headroom is not lent")
	}
	l.arrive(1, 1)
	if l.spfc.total != 0 {
		t.Errorf("%v lent although the peer sends", l.spfc.total)
	}
}

// Only the policy spfc lends: DSH has no headroom of each queue, and the public simulator's MMU does not hold to its memory.
func TestOnlySPFCLends(t *testing.T) {
	for _, c := range []Config{{Policy: SPFC}, {Policy: DT}, {Policy: DSHSPFC}, {Policy: SPFC, Counted: true, AllowLoss: true}} {
		c.Lossless, c.Buffer, c.Headroom, c.Ports = 1, 200_000, 20_000, []Port{{Rate: units.Gbps}}
		m, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		if want := c.Policy == SPFC && !c.Counted; m.lends != want {
			t.Errorf("%s, counted %v: lends %v, want %v", c.Policy, c.Counted, m.lends, want)
		}
	}
}

// Peers stop as late as their headroom allows. A victim fills what is lent while they still send: that loses packets if
// queues lend before their peers are silent, and none as they do.
func TestLendingTooSoonDrops(t *testing.T) {
	for _, soon := range []bool{true, false} {
		l := newLender(t, true)
		if soon {
			for i := range l.spfc.ports {
				l.spfc.ports[i].quiet = 0
			}
		}
		l.arrive(1, 31)
		l.arrive(2, 16)
		l.depart(1, 1)
		for l.Paused(0) == 0 {
			l.Arrive(l.now, 0, 0, 1000)
		}
		for _, late := range []struct{ port, n int }{{0, 19}, {1, 15}, {2, 15}} {
			for range late.n {
				l.Arrive(l.now, late.port, 0, 1000)
			}
		}
		if n := l.Stats().LosslessDrops; (n > 0) != soon {
			t.Errorf("lent too soon: %v, and %d packets are dropped", soon, n)
		}
	}
}

// Random traffic over victims and others, whose peers stop as late as their headroom allows: every queue that may receive
// has all of its headroom at any time (promised), no packet is dropped, and all go on in the end.
func TestLendersKeepTheirPromise(t *testing.T) {
	for seed := range uint64(40) {
		c := Config{Policy: SPFC, Lossless: 0x11, MTU: 1500, LocalResume: seed%2 == 0}
		for i := range 5 {
			c.Ports = append(c.Ports, Port{Rate: 100 * units.Gbps, Delay: 2 * units.Microsecond, Victim: i < 2})
		}
		c.SPFC.Period = 24 * units.Microsecond
		w, err := newWorld(fit(c, 60_000), seed, 600*c.MTU)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.run(); err != nil || w.lent == 0 || w.m.Stats().LosslessDrops > 0 {
			t.Errorf("seed %d: %v lent at most, %d lossless drops, %v", seed, w.lent, w.m.Stats().LosslessDrops, err)
		}
	}
}
