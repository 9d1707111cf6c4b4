package sim

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// remembering makes laws that record their calls; it keeps the last law.
type remembering struct {
	law.Law
	starts int
	ticks  []units.Time
	seqs   []uint64
}

type rememberingMaker struct{ made []*remembering }

func (m *rememberingMaker) NewLaw(f FlowInfo) (law.Law, error) {
	under, err := lineRate{}.NewLaw(f)
	m.made = append(m.made, &remembering{Law: under})
	return m.made[len(m.made)-1], err
}

const tickEvery = 50 * units.Microsecond

func (r *remembering) Timer() units.Time { return units.Time(len(r.ticks)+1) * tickEvery }

func (r *remembering) OnEvent(e law.Event, now units.Time) {
	switch e {
	case law.Start:
		r.starts++
	case law.Tick:
		r.ticks = append(r.ticks, now)
	}
	r.Law.OnEvent(e, now)
}

func (r *remembering) OnAck(a *law.Ack) {
	r.seqs = append(r.seqs, a.AckedSeq)
	r.Law.OnAck(a)
}

// TestMessagesOfAConnection: one connection has three messages of 10 packets. The second arrives with the first
// and waits for it; the third comes later. One law serves all three, its timer runs between them, and its byte
// numbers continue.
func TestMessagesOfAConnection(t *testing.T) {
	g := must[*topo.Graph](t)(topo.LeafSpine(2, 8, 2, line100, line100))
	s := must[*Sim](t)(New(Config{Graph: g}))
	m := &rememberingMaker{}
	spec := FlowSpec{Src: 0, Dst: 2, Size: 10 * units.KB, Law: m, Conn: 7}
	later := spec
	later.Start = 220 * units.Microsecond
	if err := s.AddFlows([]FlowSpec{spec, spec, later}); err != nil {
		t.Fatal(err)
	}
	if err := s.RunFlows(units.Second); err != nil {
		t.Fatal(err)
	}
	r := s.Results()
	if len(r) != 3 || len(m.made) != 1 || m.made[0].starts != 1 {
		t.Fatalf("%d messages, %d laws, %+v", len(r), len(m.made), m.made)
	}
	ideal := r[0].Ideal
	if r[0].FCT != ideal || r[1].FCT != 2*ideal || r[2].FCT != ideal || s.StartOf(1) != 0 || s.StartOf(2) != later.Start {
		t.Errorf("completion times %v, %v, %v, want once, twice and once %v", r[0].FCT, r[1].FCT, r[2].FCT, ideal)
	}
	l := m.made[0]
	var want []units.Time
	for i := range 4 {
		want = append(want, units.Time(i+1)*tickEvery)
	}
	if d := cmp.Diff(want, l.ticks); d != "" {
		t.Error("ticks while there was nothing to send: ", d)
	}
	if len(l.seqs) != 30 || !slices.IsSorted(l.seqs) || l.seqs[29] != 30_000 {
		t.Errorf("acknowledged bytes %v, want 1000 to 30000", l.seqs)
	}
	for _, bad := range []struct {
		spec FlowSpec
		want string
	}{
		{FlowSpec{Src: 1, Dst: 2, Size: 1, Law: m, Conn: 7}, "joins h0 and h2"},
		{FlowSpec{Src: 0, Dst: 2, Law: m, Conn: 7, Stop: units.Second}, "want a size and no stop"},
	} {
		if err := s.AddFlows([]FlowSpec{bad.spec}); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%+v: error %v, want %q", bad.spec, err, bad.want)
		}
	}
}
