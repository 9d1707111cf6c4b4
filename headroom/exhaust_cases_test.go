package headroom

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/units"
)

// mmu returns the MMU of a rule.
func (r *rule) mmu(t *testing.T, local bool) *MMU {
	c := Config{
		Policy: SIH, Lossless: 3, MTU: packet, Alpha: 0, PortQueues: 2, LocalResume: local, AllowLoss: true,
		Headroom: units.Bytes(r.phi) * packet, ResumeGap: units.Bytes(r.gap) * packet, PortResumeGap: units.Bytes(r.gap) * packet,
		Private: units.Bytes(r.private) * packet, Buffer: units.Bytes(2*r.private+r.pool+r.reserve()) * packet, Ports: []Port{{Rate: units.Gbps}},
		SPFC: SPFCConfig{Period: units.Second, Packet: packet},
	}
	if r.apart {
		c.Lossless, c.PortQueues, c.Ports = 1, 1, append(c.Ports, c.Ports...)
	}
	switch {
	case r.fixed > 0:
		c.Policy, c.Threshold = Static, units.Bytes(r.fixed)*packet
	case r.insured && r.victims:
		c.Policy = DSHSPFC
	case r.insured:
		c.Policy = DSH
	case r.victims:
		c.Policy = SPFC
	}
	c.DSH.NoSharedHeadroom = true // the checker chooses τ
	c.DSH.NoInsurance = r.insured && r.phi == 0
	if c.Headroom == 0 {
		c.Headroom = 1
	}
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	m.perQueueThreshold = false
	if m.size != units.Bytes(r.pool)*packet || m.ports[0].phi != units.Bytes(r.phi)*packet {
		t.Fatalf("a pool of %d B and Φ of %d B, want %+v", m.size, m.ports[0].phi, r)
	}
	return m
}

var update = flag.Bool("update", false, "rewrite golden files")

// check is a model and a link. For the safe models, Φ is Required's bytes in packets: those on the
// wire until the peer has stopped, and the packet that caused the PAUSE.
type check struct {
	name  string
	rules []rule
	link  link
}

// lending is SPFC at two ports, which lend each other headroom.
var lending = rule{phi: 3, pool: 4, victims: true, apart: true, silence: 2}

var safe = []check{
	{"static", []rule{{phi: 4, pool: 6, fixed: 3, gap: 1}}, link{2, 2}},
	{"sih", []rule{{phi: 4, pool: 6}}, link{2, 2}},
	{"sih, a longer way back", []rule{{phi: 5, pool: 6, gap: 1}}, link{2, 3}},
	{"dsh", []rule{{insured: true, phi: 4, pool: 5, estimate: true}}, link{2, 2}},
	{"dsh, a longer way back", []rule{{insured: true, phi: 5, pool: 4, estimate: true}}, link{2, 3}},
	{"spfc", []rule{{phi: 3, pool: 4, victims: true}}, link{1, 2}},
	{"spfc, two ports", []rule{{phi: 2, pool: 3, victims: true, apart: true, silence: 1}}, link{1, 1}},
	{"spfc, two ports, a longer way back", []rule{lending}, link{1, 2}},
	{"dsh+spfc", []rule{{insured: true, phi: 3, pool: 4, estimate: true, victims: true}}, link{1, 2}},
	{"sih, private buffers", []rule{{phi: 4, private: 1, pool: 3}}, link{2, 2}},
	{"dsh, private buffers", []rule{{insured: true, phi: 3, private: 1, pool: 4, estimate: true}}, link{1, 2}},
	{"sih, then dsh", []rule{{phi: 2, pool: 3}, {insured: true, phi: 2, pool: 5}}, link{1, 1}},
	{"sih, then spfc", []rule{{phi: 2, pool: 4}, {phi: 2, pool: 4, victims: true}}, link{1, 1}},
	{"dsh, then dsh+spfc", []rule{{insured: true, phi: 2, pool: 4}, {insured: true, phi: 2, pool: 4, victims: true}}, link{1, 1}},
	{"spfc, then sih", []rule{{phi: 2, pool: 4, victims: true}, {phi: 2, pool: 4}}, link{1, 1}},
}

// explore runs the check. Package headroom has no change of policy under traffic and no switch for
// safeguards. A model with either is checked alone.
func (c *check) explore(t *testing.T, s safeguards, unlocal bool) (m *checker, at int32, wrong string) {
	m = &checker{rules: c.rules, link: c.link, safe: s, unlocal: unlocal}
	if len(c.rules) == 1 && s == allOn {
		m.mmus = []*MMU{c.rules[0].mmu(t, !unlocal)}
	}
	start := time.Now()
	at, wrong = m.check()
	t.Logf("%s: %d states, %d steps, %v", c.name, len(m.nodes), m.steps, time.Since(start).Round(time.Millisecond))
	return m, at, wrong
}

// TestExhaust: in every reachable state, no lossless packet is dropped, each peer's PFC state is
// right, and no peer stays paused for ever.
func TestExhaust(t *testing.T) {
	for _, c := range safe {
		if m, at, wrong := c.explore(t, allOn, false); at >= 0 {
			t.Errorf("%s: %s:\n%s", c.name, wrong, m.trace(at))
		}
	}
}

// TestExhaustUnlocal does the same for an MMU that rechecks all queues at each departure, as the
// simulator's does.
func TestExhaustUnlocal(t *testing.T) {
	for _, c := range safe {
		if r := c.rules[0]; len(c.rules) > 1 || r.estimate && c.link.pfc > 2 || r.apart && c.link.pfc > 1 {
			continue
		}
		c.rules[0].estimate = false
		if m, at, wrong := c.explore(t, allOn, true); at >= 0 {
			t.Errorf("%s: %s:\n%s", c.name, wrong, m.trace(at))
		}
	}
}

// TestExhaustFindsEarlyLoans lets the MMU lend headroom of queues whose peers may still send. The model must disagree.
func TestExhaustFindsEarlyLoans(t *testing.T) {
	m := &checker{rules: []rule{lending}, link: link{1, 2}, safe: allOn, early: true, mmus: []*MMU{lending.mmu(t, true)}}
	if _, wrong := m.check(); !strings.Contains(wrong, "the MMU has") {
		t.Errorf("%q, want a difference between the MMU and the model", wrong)
	}
}

// TestCounterexamples removes one safeguard at a time. testdata/counterexamples.txt has the
// shortest way to the failure that the safeguard prevents.
func TestCounterexamples(t *testing.T) {
	off := func(change func(*safeguards)) safeguards {
		s := allOn
		change(&s)
		return s
	}
	sih, dsh := rule{phi: 2, pool: 4}, rule{insured: true, phi: 2, pool: 4, estimate: true}
	short := func(r rule) []rule {
		r.phi--
		return []rule{r}
	}
	near := link{1, 1}
	var b strings.Builder
	for _, tt := range []struct {
		check
		safe safeguards
	}{
		{check{"headroom of one packet less", short(sih), near}, allOn},
		{check{"insurance of one packet less", short(dsh), near}, allOn},
		{check{"no insurance", []rule{{insured: true, pool: 4, estimate: true}}, near}, allOn},
		{check{"a cable that is one packet longer than headroom is made for", []rule{sih}, link{2, 1}}, allOn},
		{check{"a peer that answers later than headroom is made for", []rule{dsh}, link{1, 2}}, allOn},
		{check{"a peer that does not obey port-level PAUSE", []rule{dsh}, near}, off(func(s *safeguards) { s.portPauseObeyed = false })},
		{check{"RESUME while headroom is in use", []rule{sih}, near}, off(func(s *safeguards) { s.drainFirst = false })},
		{check{"RESUME while insurance is in use", []rule{dsh}, near}, off(func(s *safeguards) { s.drainFirst = false })},
		{check{"no RESUME for what is empty", []rule{{phi: 2, pool: 4, gap: 1}}, near}, off(func(s *safeguards) { s.resumeEmpty = false })},
		{check{"the State Holder is not held at reset", []rule{{phi: 2, pool: 4, victims: true}}, near}, off(func(s *safeguards) { s.holdAtReset = false })},
		{check{"headroom is lent before the peer is silent", []rule{lending}, link{1, 2}}, off(func(s *safeguards) { s.awaitsSilence = false })},
		{check{"PFC frames overtake each other", []rule{{phi: 3, pool: 4}}, link{1, 2}}, off(func(s *safeguards) { s.inOrder = false })},
		{check{"a change from sih to dsh that forgets what headroom holds", []rule{{phi: 2, pool: 3}, {insured: true, phi: 2, pool: 5}}, near}, off(func(s *safeguards) { s.oldPoolCounts = false })},
		{check{"a change from dsh to sih while more is stored than its pool holds", []rule{{insured: true, phi: 2, pool: 5}, {phi: 2, pool: 3}}, near}, allOn},
	} {
		m, at, wrong := tt.explore(t, tt.safe, false)
		if at < 0 {
			t.Errorf("%s: nothing goes wrong", tt.name)
			continue
		}
		fmt.Fprintf(&b, "%s\n%s\n%s\n", tt.name, strings.TrimRight(m.trace(at), "\n"), "     so "+wrong)
		b.WriteString("\n")
	}
	const file = "testdata/counterexamples.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("counterexamples are not those of %s (-update rewrites it):\n%s", file, got)
	}
}
