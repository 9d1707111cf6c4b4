package sim

import (
	"testing"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/none"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// TestPACCCutsPairs: PACC counts by source and destination, so eight connections of one host together get about
// as much as a single connection of another host.
func TestPACCCutsPairs(t *testing.T) {
	const ms, connections = units.Millisecond, 8
	g := must[*topo.Graph](t)(topo.Star(3, line25))
	s := must[*Sim](t)(New(Config{Graph: g, Groups: 2, PACC: &PACC{Params: paperParams}}))
	flows := []FlowSpec{{Src: 1, Dst: 2, Stop: 40 * ms, Group: 1, Law: vendor{}}}
	for range connections {
		flows = append(flows, FlowSpec{Src: 0, Dst: 2, Stop: 40 * ms, Law: vendor{}})
	}
	if err := s.AddFlows(flows); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(20 * ms); err != nil {
		t.Fatal(err)
	}
	many, one := s.Delivered(0), s.Delivered(1)
	if err := s.Run(40 * ms); err != nil {
		t.Fatal(err)
	}
	many, one = s.Delivered(0)-many, s.Delivered(1)-one
	t.Logf("eight connections %.1f Gb/s, one %.1f Gb/s, %d CNPs", float64(many)*8/20e6, float64(one)*8/20e6, s.Stats().CNPs)
	if ratio := float64(many) / float64(one); ratio > 1.5 || ratio < 0.67 {
		t.Errorf("eight connections get %.1f times what one gets", ratio)
	}
}

// TestPACCPortsTickApart: ports tick at different phases, which are the same in every run with one seed.
func TestPACCPortsTickApart(t *testing.T) {
	phases := func(seed uint64) map[units.Time]bool {
		g := must[*topo.Graph](t)(topo.Star(16, line25))
		s := must[*Sim](t)(New(Config{Graph: g, Seed: seed, PACC: &PACC{Params: paperParams}}))
		seen := map[units.Time]bool{}
		for _, p := range s.paccs {
			if p != nil {
				seen[p.phase] = true
			}
		}
		return seen
	}
	a, b, c := phases(1), phases(1), phases(2)
	if len(a) != 16 {
		t.Errorf("16 ports have %d phases", len(a))
	}
	for at := range a {
		if !b[at] || c[at] {
			t.Errorf("phase %v: in the same seed's run %v, in another's %v", at, b[at], c[at])
		}
	}
}

// counting is a law at half of the line rate. It counts its CNPs and keeps the time of the first.
type counting struct {
	law.Law
	cnps  *int
	first *units.Time
}

func (c counting) OnEvent(e law.Event, now units.Time) {
	if e == law.CNP {
		if *c.cnps++; *c.cnps == 1 && c.first != nil {
			*c.first = now
		}
	}
	c.Law.OnEvent(e, now)
}

func (c counting) NewLaw(f FlowInfo) (law.Law, error) {
	l, err := none.New(f.Rate/2, 0)
	return counting{l, c.cnps, c.first}, err
}

// TestNotificationPointOwes marks all packets of a burst of 20 µs: one CNP is sent at once, and one at the end of
// the gap of 50 µs for the rest of the burst (DCQCN §3.1).
func TestNotificationPointOwes(t *testing.T) {
	g := must[*topo.Graph](t)(topo.Star(3, line25))
	cnps := 0
	s := must[*Sim](t)(New(Config{Graph: g, CNPGap: 50 * units.Microsecond, ECN: [NumClasses]*RED{0: {KMin: 1, KMax: 1, PMax: 1}}}))
	if err := s.AddFlows([]FlowSpec{
		{Src: 0, Dst: 2, Size: 60 * units.KB, Law: lineRate{}},
		{Src: 1, Dst: 2, Stop: units.Millisecond, Law: counting{cnps: &cnps}},
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(40 * units.Microsecond); err != nil {
		t.Fatal(err)
	}
	first := cnps
	if err := s.Run(70 * units.Microsecond); err != nil {
		t.Fatal(err)
	}
	if first != 1 || cnps != 2 {
		t.Errorf("%d CNPs within the gap and %d by 70 µs, want 1 and 2", first, cnps)
	}
}

// TestCNPDelay: every CNP, also a deferred one, is late by the time that the receiver's NIC needs to make it.
func TestCNPDelay(t *testing.T) {
	run := func(delay units.Time) (cnps int, first units.Time) {
		g := must[*topo.Graph](t)(topo.Star(3, line25))
		s := must[*Sim](t)(New(Config{Graph: g, CNPGap: 50 * units.Microsecond, CNPDelay: delay, ECN: [NumClasses]*RED{0: {KMin: 1, KMax: 1, PMax: 1}}}))
		if err := s.AddFlows([]FlowSpec{
			{Src: 0, Dst: 2, Size: 60 * units.KB, Law: lineRate{}},
			{Src: 1, Dst: 2, Stop: units.Millisecond, Law: counting{cnps: &cnps, first: &first}},
		}); err != nil {
			t.Fatal(err)
		}
		if err := s.Run(70*units.Microsecond + delay); err != nil {
			t.Fatal(err)
		}
		return cnps, first
	}
	cnps, first := run(0)
	const late = 13 * units.Microsecond
	// ACKs ahead of a CNP at the receiver's NIC may delay it by a frame of 64 B, 20 ns at most.
	if n, at := run(late); n != cnps || at < first+late || at > first+late+25*units.Nanosecond {
		t.Errorf("%d CNPs, the first at %v, want %d and %v later than %v", n, at, cnps, late, first)
	}
	if _, err := New(Config{Graph: must[*topo.Graph](t)(topo.Star(2, line25)), CNPDelay: -1}); err == nil {
		t.Error("a CNP before its cause")
	}
}
