package buffer

import (
	"slices"
	"strings"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/p4runtime/reconcile"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/p4src/ids"
)

func has(t *testing.T, lines []string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, w) }) {
			t.Errorf("no %s in %d lines such as\n%s", w, len(lines), strings.Join(lines[:min(12, len(lines))], "\n"))
		}
	}
}

func TestDesired(t *testing.T) {
	always := []string{
		"clone session 1025 → ports 1", "clone session 1028 → ports 4",
		"egress.pfc.pfc_port default → set_pfc_port(src_mac=00:00:00:00:00:00, quanta=65535)",
		"egress.pfc.pfc_port egress_port=4 → set_pfc_port(src_mac=02:00:00:01:00:04, quanta=65535)",
	}
	off := testenv.Lines(t, New(nil), environment(t, "policy: dsh ", `policy: "off" `), "leaf1")
	has(t, off, append(always, "ingress.buffer.buffer_policy default → disable_buffer()")...)
	if len(off) != 4+1+4+1 {
		t.Errorf("%d entries without a policy:\n%s", len(off), strings.Join(off, "\n"))
	}
	// 16 MB minus 4 · 60 KB insurance minus 4 · 3 KB private memory are shared; α = 1/16, δ = 3 KB,
	// window 10 s.
	dsh := testenv.Lines(t, New(nil), environment(t), "leaf1")
	has(t, dsh, append(always,
		"ingress.buffer.buffer_policy default → set_buffer_policy(flags=7, lossless=8, shared=15664000, private_pool=12000, headroom_pool=0, insurance_pool=324000, private=3000, lossy_private=0, threshold=0, alpha_up=0, alpha_down=4, resume_gap=3000, port_resume_gap=3000, port_queues=1, window=10000000, period=0)",
		"ingress.buffer.buffer_port ingress_port=1 → set_buffer_port(headroom=81000, refresh=167",
		"ingress.buffer.exp2 ", "ingress.buffer.log2_bytes ", "ingress.buffer.log2_ticks ", "ingress.buffer.headroom_for ",
	)...)
	// SIH reserves headroom for its one lossless queue, and needs no tables.
	sih := testenv.Lines(t, New(nil), environment(t, "policy: dsh ", "policy: sih "), "leaf1")
	has(t, sih, append(always, "ingress.buffer.buffer_policy default → set_buffer_policy(flags=1, lossless=8, shared=15664000,")...)
	has(t, sih, "extern 0x81000003 → class_3=[3]")
	if len(sih) != len(off)+4+1 {
		t.Errorf("%d entries for SIH, want a port's more for each port and the lossless classes than %d", len(sih), len(off))
	}
	// The embedded switch gets the queues. BMv2, which obeys no PAUSE, does not.
	has(t, testenv.Lines(t, New(nil), environment(t, "class: 3, queue: 3}", "class: 3, queue: 4}"), "leaf1"), "extern 0x81000003 → class_3=[4]")
	bmv2 := testenv.Lines(t, New(nil), environment(t, `9551", target: embedded`, `9551", target: bmv2`), "leaf1")
	if i := slices.IndexFunc(bmv2, func(l string) bool { return strings.HasPrefix(l, "extern") }); i >= 0 {
		t.Errorf("bmv2 wants %s", bmv2[i])
	}
}

// PFC frames use the highest queue if the target supports a class of service.
func TestPriority(t *testing.T) {
	for _, tt := range []struct {
		edits []string
		want  uint32
	}{
		{nil, ids.HighestQueue},
		{[]string{`9551", target: embedded`, `9551", target: bmv2`}, 0},
		{[]string{`9551", target: embedded`, `9551", target: embedded, priority_queues: 7, buffer: {policy: "off"}`, "policy: dsh ", "allow_class_change: true\n  policy: dsh "}, 6},
	} {
		list, err := New(nil).Desired(environment(t, tt.edits...))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if c := e.GetPacketReplicationEngineEntry().GetCloneSessionEntry(); c != nil && c.GetClassOfService() != tt.want {
				t.Errorf("class of service %d, want %d", c.GetClassOfService(), tt.want)
			}
		}
	}
}

func state(t *testing.T, env *feature.Env) *reconcile.State {
	t.Helper()
	list, err := New(nil).Desired(env)
	if err != nil {
		t.Fatal(err)
	}
	s := &reconcile.State{}
	for _, e := range list {
		if err := s.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestLiveChange follows the writes of every change of policy. After each write, the switch has all
// that the policy in force needs: for each port at least the smaller of the two policies'
// headrooms, and the tables of Algorithm 3.
func TestLiveChange(t *testing.T) {
	states := map[string]*reconcile.State{}
	names := []string{"off"}
	for _, k := range headroom.Kinds() {
		names = append(names, string(k))
	}
	for _, n := range names {
		edits := []string{"policy: dsh ", `policy: "` + n + `" `}
		if n == string(headroom.Static) {
			edits = append(edits, "# threshold", "threshold")
		}
		states[n] = state(t, environment(t, edits...))
	}
	full := newPlay(t, "dsh")
	for _, e := range states["dsh"].Entities() {
		full.least = 0
		full.put(e)
	}
	for _, table := range estimateTables {
		if full.count[table] == 0 {
			t.Fatalf("table 0x%08x of DSH has no entries", table)
		}
	}
	for _, from := range names {
		for _, to := range names {
			sw := newPlay(t, from+" → "+to)
			sw.bound(states[from])
			sw.bound(states[to])
			for _, e := range states[from].Entities() {
				sw.put(e)
			}
			for _, batch := range reconcile.Diff(states[from], states[to], nil).Batches {
				for _, u := range batch {
					if u.GetType() == p4v1.Update_DELETE {
						sw.remove(u.GetEntity())
					} else {
						sw.put(u.GetEntity())
					}
					sw.check(full.count)
				}
			}
		}
	}
}

// play is a switch that receives the entries of a change.
type play struct {
	t       *testing.T
	what    string
	entries map[reconcile.Key]*p4v1.Entity
	count   map[uint32]int // entries by table; clone sessions are under 0
	policy  *p4v1.Entity
	least   uint64 // headroom
}

func newPlay(t *testing.T, what string) *play {
	return &play{t: t, what: what, entries: map[reconcile.Key]*p4v1.Entity{}, count: map[uint32]int{}, least: 1 << 62}
}

func (p *play) put(e *p4v1.Entity) {
	k, err := reconcile.KeyOf(e)
	if err != nil {
		p.t.Fatal(err)
	}
	table := tableOf(e)
	if p.entries[k] == nil {
		p.count[table]++
	}
	if table == ids.TableBufferPolicy {
		p.policy = e
	}
	if table == ids.TableBufferPort && param(e, ids.ParamSetBufferPortHeadroom) < p.least {
		p.t.Fatalf("%s: a port has too little headroom", p.what)
	}
	p.entries[k] = e
}

func (p *play) remove(e *p4v1.Entity) {
	k, err := reconcile.KeyOf(e)
	if err != nil || p.entries[k] == nil {
		p.t.Fatalf("%s: delete of what is not there: %v", p.what, err)
	}
	p.count[tableOf(e)]--
	delete(p.entries, k)
}

// tableOf returns the table or extern of an entry.
func tableOf(e *p4v1.Entity) uint32 {
	return e.GetTableEntry().GetTableId() | e.GetExternEntry().GetExternId()
}

func param(e *p4v1.Entity, id uint32) uint64 {
	for _, x := range e.GetTableEntry().GetAction().GetAction().GetParams() {
		if x.GetParamId() == id {
			return bytestring.Low64(x.GetValue())
		}
	}
	return 0
}

func (p *play) bound(s *reconcile.State) {
	for _, e := range s.Entities() {
		if e.GetTableEntry().GetTableId() == ids.TableBufferPort {
			p.least = min(p.least, param(e, ids.ParamSetBufferPortHeadroom))
		}
	}
}

// check compares the switch's entries with the policy in force.
func (p *play) check(full map[uint32]int) {
	p.t.Helper()
	if p.count[0] != 4 {
		p.t.Fatalf("%s: %d ports can send PFC frames", p.what, p.count[0])
	}
	on := p.policy.GetTableEntry().GetAction().GetAction().GetActionId() == ids.ActionSetBufferPolicy
	if on && p.count[ids.TableBufferPort] != 4 {
		p.t.Fatalf("%s: the policy is on and %d ports have headroom", p.what, p.count[ids.TableBufferPort])
	}
	for _, table := range estimateTables {
		if on && param(p.policy, ids.ParamSetBufferPolicyFlags)&ids.BufferEstimate != 0 && p.count[table] != full[table] {
			p.t.Fatalf("%s: Algorithm 3 runs with %d of %d entries in table 0x%08x", p.what, p.count[table], full[table], table)
		}
	}
}

// estimateTables are those of Algorithm 3.
var estimateTables = []uint32{ids.TableLog2Bytes, ids.TableLog2Ticks, ids.TableExp2, ids.TableHeadroomFor}
