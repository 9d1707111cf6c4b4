package headroom

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/units"
)

// An explicit-state model check of one ingress port with two lossless queues, an upstream peer that
// obeys PFC, and lossy traffic that takes and frees shared memory at will. Time passes in slots of
// one packet at line rate. In each slot egress sends a packet of either queue, a lossy packet, or
// none; packets that the peer sent some slots ago arrive; PFC frames reach the peer after some
// slots; the peer sends a packet of a permitted class, or nothing. All choices are tried in all
// states. By default both the MMU and the model in exhaust_spec_test.go make every step of a port,
// and they must agree on everything.

// packet is the size of a packet. Φ and pools are whole packets.
const packet = 64

// link is the distance of the peer, in slots.
type link struct{ data, pfc int }

const mostDelay = 3

// state is the whole state. Its zero value is the initial state.
type state struct {
	accounts
	peer uint8             // classes that the peer has stopped
	data [mostDelay]uint8  // 1 + class of each packet on the wire, the next to arrive first
	pfc  [mostDelay]uint16 // up to three frames per slot
}

// The frames of a slot, 5 bits each; 16 marks a frame.
func encode(frames []frame) (code uint16) {
	for i, f := range frames {
		x := uint16(16) | uint16(f.classes)
		if f.pause {
			x |= 4
		}
		if f.all {
			x |= 8
		}
		code |= x << (5 * i)
	}
	return code
}

func decode(code uint16) (frames []frame) {
	for ; code != 0; code >>= 5 {
		frames = append(frames, frame{classes: uint8(code & 3), pause: code&4 != 0, all: code&8 != 0})
	}
	return frames
}

// choice is one combination of the events in a slot.
type choice struct {
	out    int8 // queue that sends a packet; 2 lossy, −1 none
	tick   bool // SPFC's period ends
	lossy  bool // a lossy packet arrives
	tau    uint8
	send   int8 // class; −1 nothing
	change bool // the next policy is in force from now on
	swap   bool // PFC frames of two slots are swapped
}

// checker is a check: a link and policies, of which the first is in force initially.
type checker struct {
	rules []rule
	link  link
	safe  safeguards
	mmus  []*MMU // of the rules; nil if the model is checked alone
	// unlocal says that the MMU is checked alone: it rechecks all queues at each departure (no
	// LocalResume), which the model does not do.
	unlocal bool

	nodes  []node
	index  map[state]int32
	drains [][2]int32 // steps without arrivals
	steps  int
}

type node struct {
	state
	from int32
	by   choice
}

// check explores all states and returns the index of the first wrong state with its fault, or −1. A
// state is wrong if it violates a rule, or if the peer never resumes from it even without further
// packets. The search is breadth first, so the way to the state is a shortest one.
func (m *checker) check() (at int32, wrong string) {
	m.index = map[state]int32{{}: 0}
	m.nodes = []node{{from: -1}}
	for i := int32(0); i < int32(len(m.nodes)); i++ {
		if wrong := m.wrong(&m.nodes[i].state); wrong != "" {
			return i, wrong
		}
		for _, c := range m.choices(&m.nodes[i].state) {
			next := m.nodes[i].state
			m.steps++
			if wrong := m.step(&next, c); wrong != "" {
				m.nodes = append(m.nodes, node{next, i, c})
				return int32(len(m.nodes) - 1), wrong
			}
			to, known := m.index[next]
			if !known {
				to = int32(len(m.nodes))
				m.index[next] = to
				m.nodes = append(m.nodes, node{next, i, c})
			}
			if c.send < 0 && !c.lossy && !c.change && !c.swap && to != i {
				m.drains = append(m.drains, [2]int32{i, to})
			}
		}
	}
	return m.stuck()
}

// stuck returns the first state from which draining never leads to a peer that may send everything.
func (m *checker) stuck() (at int32, wrong string) {
	before := make([][]int32, len(m.nodes))
	for _, d := range m.drains {
		before[d[1]] = append(before[d[1]], d[0])
	}
	free := make([]bool, len(m.nodes))
	var queue []int32
	for i := range m.nodes {
		if s := &m.nodes[i].state; s.peer == 0 && s.off == 0 && s.private == [2]uint8{} && s.shared == [2]uint8{} && s.head == [2]uint8{} && s.pfc == [mostDelay]uint16{} {
			free[i] = true
			queue = append(queue, int32(i))
		}
	}
	for len(queue) > 0 {
		for _, i := range before[queue[0]] {
			if !free[i] {
				free[i] = true
				queue = append(queue, i)
			}
		}
		queue = queue[1:]
	}
	for i := range free {
		if !free[i] {
			return int32(i), "what is paused here stays so, though all that is stored leaves and nothing is sent"
		}
	}
	return -1, ""
}

// choices returns all choices in a slot.
func (m *checker) choices(s *state) (list []choice) {
	r := &m.rules[s.policy]
	outs, sends := []int8{-1}, []int8{-1}
	for q := range int8(2) {
		if s.length(int(q)) > 0 {
			outs = append(outs, q)
		}
		sends = append(sends, q) // dropped in the step in which it is stopped
	}
	if s.lossy > 0 {
		outs = append(outs, 2)
	}
	bools := func(both bool) []bool { return []bool{false, true}[:1+btoi(both)] }
	for _, out := range outs {
		for _, send := range sends {
			for _, tick := range bools(r.victims) {
				for _, lossy := range bools(out != 2) {
					for tau := range uint8(1 + btoi(r.estimate && s.data[0] != 0)) {
						for _, change := range bools(int(s.policy)+1 < len(m.rules)) {
							for _, swap := range bools(!m.safe.inOrder) {
								list = append(list, choice{out, tick, lossy, tau, send, change, swap})
							}
						}
					}
				}
			}
		}
	}
	return list
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// step advances the state by a slot and returns the first fault in it.
func (m *checker) step(s *state, c choice) (wrong string) {
	var frames []frame
	if c.change {
		s.policy++
		for q := range s.old {
			s.old[q] = s.length(q)
		}
	}
	r := &m.rules[s.policy]
	if c.tick {
		s.tick()
	}
	switch {
	case c.out == 2 && m.unlocal:
		mmu := m.load(s)
		frames = m.take(mmu, s, mmu.Depart(0, 0, 2, packet))
	case c.out == 2:
		s.lossy--
	case c.out >= 0:
		// A packet leaves under the policy that admitted it (p4src, LeavePool).
		by := r
		if s.old[c.out] > 0 {
			by = &m.rules[s.policy-1]
			s.old[c.out]--
		}
		frames, wrong = m.leave(s, by, int(c.out))
	}
	if arrives := s.data[0]; arrives != 0 && wrong == "" {
		var more []frame
		more, wrong = m.arrive(s, r, int(arrives-1), c.tau)
		frames = append(frames, more...)
	}
	switch {
	case c.lossy && m.unlocal:
		mmu := m.load(s)
		_, signals := mmu.Arrive(0, 0, 2, packet)
		frames = append(frames, m.take(mmu, s, signals)...)
	case c.lossy:
		s.lossyArrives(r, m.safe)
	}
	copy(s.data[:], s.data[1:m.link.data])
	s.data[m.link.data-1] = 0
	due := s.pfc[0]
	copy(s.pfc[:], s.pfc[1:m.link.pfc])
	s.pfc[m.link.pfc-1] = encode(frames)
	if c.swap && due != 0 && s.pfc[0] != 0 && m.link.pfc > 1 {
		due, s.pfc[0] = s.pfc[0], due
	}
	for _, f := range decode(due) {
		switch {
		case f.all && f.pause && !m.safe.portPauseObeyed:
		case f.pause:
			s.peer |= f.classes
		default:
			s.peer &^= f.classes
		}
	}
	if c.send >= 0 && s.peer>>c.send&1 == 0 {
		s.data[m.link.data-1] = uint8(c.send) + 1
	}
	return wrong
}

// wrong returns the rule that a state violates, "" for none.
func (m *checker) wrong(s *state) string {
	quiet := s.pfc == [mostDelay]uint16{} && s.data == [mostDelay]uint8{}
	r := &m.rules[s.policy]
	switch {
	case quiet && s.peer != s.told()&3 && m.safe.portPauseObeyed:
		return fmt.Sprintf("no frame is on its way, but the peer has stopped %02b, and was last told to stop %02b", s.peer, s.told())
	case r.victims && s.off != 0 && s.victim:
		return "a paused port is a victim"
	case m.unlocal:
		return ""
	}
	// Paused queues hold packets, which fair egress takes, so they are checked again.
	for q := range s.shared {
		if s.off>>q&1 == 1 && s.length(q) == 0 {
			return fmt.Sprintf("queue %d is paused and holds nothing, so that no departure ever resumes it", q)
		}
	}
	if s.off&portOff != 0 && s.shared[0]+s.shared[1] == 0 {
		return "the port is paused and holds nothing, so that no departure ever resumes it"
	}
	return ""
}

// arrive plays the arrival of a packet on the model and the MMU.
func (m *checker) arrive(s *state, r *rule, q int, tau uint8) (frames []frame, wrong string) {
	mmu := m.load(s)
	if m.unlocal {
		ok, signals := mmu.Arrive(0, 0, uint8(q), packet)
		if !ok {
			wrong = fmt.Sprintf("a lossless packet of queue %d is dropped", q)
		}
		return m.take(mmu, s, signals), wrong
	}
	ok, frames := s.arrive(r, m.safe, q, tau)
	if mmu != nil {
		if r.estimate {
			mmu.queues[q].tau = units.Bytes(tau) * packet
		}
		stored, signals := mmu.Arrive(0, 0, uint8(q), packet)
		if wrong = m.differs(mmu, s, frames, signals); wrong == "" && stored != ok {
			wrong = fmt.Sprintf("the MMU stores the packet: %v, the model: %v", stored, ok)
		}
	}
	if !ok && wrong == "" {
		wrong = fmt.Sprintf("a lossless packet of queue %d is dropped", q)
	}
	return frames, wrong
}

// leave plays the departure of a packet on the model and the MMU.
func (m *checker) leave(s *state, r *rule, q int) (frames []frame, wrong string) {
	mmu := m.load(s)
	if m.unlocal {
		return m.take(mmu, s, mmu.Depart(0, 0, uint8(q), packet)), ""
	}
	frames = s.leave(r, m.safe, q)
	if mmu != nil {
		wrong = m.differs(mmu, s, frames, mmu.Depart(0, 0, uint8(q), packet))
	}
	return frames, wrong
}

// load puts the MMU of a state's policy into this state; nil if the model is checked alone.
func (m *checker) load(s *state) *MMU {
	if m.mmus == nil {
		return nil
	}
	mmu := m.mmus[s.policy]
	p := &mmu.ports[0]
	*p = port{shared: units.Bytes(s.shared[0]+s.shared[1]) * packet, insured: units.Bytes(s.insured) * packet, phi: p.phi, classes: s.off & 3, off: s.off&portOff != 0}
	p.before = p.paused()
	mmu.totals = Usage{Private: units.Bytes(s.private[0]+s.private[1]) * packet, Headroom: units.Bytes(s.head[0]+s.head[1]) * packet, Insurance: units.Bytes(s.insured) * packet}
	mmu.free = mmu.size - units.Bytes(s.used())*packet
	for q := range s.shared {
		mmu.queues[q] = queue{
			private: units.Bytes(s.private[q]) * packet, shared: units.Bytes(s.shared[q]) * packet, headroom: units.Bytes(s.head[q]) * packet,
			tau: units.Bytes(s.tau[q]) * packet, off: s.off>>q&1 == 1,
		}
	}
	mmu.queues[2] = queue{shared: units.Bytes(s.lossy) * packet}
	if spfc := mmu.rules.spfc; spfc != nil {
		spfc.ports[0].Meter = Meter{limit: depart, count: uint64(s.count), victim: s.victim, paused: s.off != 0}
	}
	mmu.pausedPorts.remove(0)
	for q := range s.shared {
		mmu.pausedQueues.remove(int32(q))
		mmu.updateWaiting(0, uint8(q))
	}
	return mmu
}

// held returns the accounts of an MMU, combined with the parts of a state that the MMU does not keep.
func held(mmu *MMU, s *state) accounts {
	got := accounts{policy: s.policy, old: s.old, lossy: uint8(mmu.queues[2].shared / packet)}
	for q := range got.shared {
		x := mmu.queues[q]
		got.private[q], got.shared[q], got.head[q], got.tau[q] = uint8(x.private/packet), uint8(x.shared/packet), uint8(x.headroom/packet), uint8(x.tau/packet)
		got.off |= uint8(btoi(x.off)) << q
	}
	got.insured = uint8(mmu.ports[0].insured / packet)
	got.off |= uint8(btoi(mmu.ports[0].off)) * portOff
	if spfc := mmu.rules.spfc; spfc != nil {
		got.count, got.victim = uint8(min(spfc.ports[0].count, depart)), spfc.ports[0].victim
	}
	return got
}

func framesOf(signals []Signal) (frames []frame) {
	for _, g := range signals {
		frames = append(frames, frame{classes: g.Classes & 3, pause: g.Pause, all: g.Classes == 0xFF && g.Pause})
	}
	return frames
}

// take copies the MMU's accounts into the state.
func (m *checker) take(mmu *MMU, s *state, signals []Signal) []frame {
	s.accounts = held(mmu, s)
	return framesOf(signals)
}

// differs returns the first difference between the MMU and the model after a step.
func (m *checker) differs(mmu *MMU, s *state, frames []frame, signals []Signal) string {
	got, sent := held(mmu, s), framesOf(signals)
	if got != s.accounts || !slices.Equal(sent, frames) {
		return fmt.Sprintf("the MMU has %+v and sends %v, the model %+v and %v", got, sent, s.accounts, frames)
	}
	return ""
}

// trace prints the way to a state, one slot per line.
func (m *checker) trace(at int32) string {
	var lines []string
	for i := at; i > 0; i = m.nodes[i].from {
		n := &m.nodes[i]
		lines = append(lines, describe(&m.nodes[n.from].state, n))
	}
	var b strings.Builder
	for i := len(lines) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "%3d  %s\n", len(lines)-i, lines[i])
	}
	return b.String()
}

func describe(before *state, n *node) string {
	var what []string
	say := func(yes bool, text string, args ...any) {
		if yes {
			what = append(what, fmt.Sprintf(text, args...))
		}
	}
	say(n.by.change, "the policy changes")
	say(n.by.tick, "tick")
	say(n.by.out == 2, "lossy leaves")
	say(n.by.out == 0 || n.by.out == 1, "q%d leaves", n.by.out)
	say(before.data[0] != 0, "q%d arrives", before.data[0]-1)
	say(n.by.lossy && n.lossy > before.lossy, "lossy arrives")
	say(n.by.swap, "PFC frames swap")
	say(n.peer&^before.peer != 0, "the peer stops %02b", n.peer&^before.peer)
	say(before.peer&^n.peer != 0, "the peer goes on with %02b", before.peer&^n.peer)
	say(n.by.send >= 0 && n.peer>>max(n.by.send, 0)&1 == 0, "q%d is sent", n.by.send)
	if len(what) == 0 {
		what = []string{"nothing"}
	}
	return fmt.Sprintf("%-50s shared %v headroom %v insured %d lossy %d off %03b victim %v", strings.Join(what, ", "), n.shared, n.head, n.insured, n.lossy, n.off, n.victim)
}
