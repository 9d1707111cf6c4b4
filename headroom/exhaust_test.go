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
//
// With rule.apart each queue has a port, a link, a peer and an egress of its own. Then any of the
// queues may send in a slot, and so may each peer.

// packet is the size of a packet. Φ and pools are whole packets.
const packet = 64

// link is the distance of the peer, in slots.
type link struct{ data, pfc int }

const mostDelay = 3

// lossyOut is the bit of a lossy packet in choice.out.
const lossyOut = 4

// state is the whole state. Its zero value is the initial state.
type state struct {
	accounts
	peer uint8             // classes that the peer has stopped
	data [mostDelay]uint8  // the queues of the packets on the wires, a bit each, the next to arrive first
	pfc  [mostDelay]uint32 // up to six frames per slot
}

// The frames of a slot, 5 bits each; 16 marks a frame.
func encode(frames []frame) (code uint32) {
	for i, f := range frames {
		x := uint32(16) | uint32(f.classes)
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

func decode(code uint32) (frames []frame) {
	for ; code != 0; code >>= 5 {
		frames = append(frames, frame{classes: uint8(code & 3), pause: code&4 != 0, all: code&8 != 0})
	}
	return frames
}

// choice is one combination of the events in a slot.
type choice struct {
	out    uint8 // the queues that send a packet, a bit each; bit 2 for a lossy packet
	tick   bool  // SPFC's period ends
	lossy  bool  // a lossy packet arrives
	tau    uint8
	send   uint8 // the queues of the packets that peers send, a bit each
	change bool  // the next policy is in force from now on
	swap   bool  // PFC frames of two slots are swapped
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
	// early is a fault to find: the MMU does not await a peer's silence before its queue lends headroom.
	early bool

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
			if c.send == 0 && !c.lossy && !c.change && !c.swap && to != i {
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
		if s := &m.nodes[i].state; s.peer == 0 && s.off == 0 && s.private == [2]uint8{} && s.shared == [2]uint8{} && s.head == [2]uint8{} && s.pfc == [mostDelay]uint32{} {
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
	outs, sends := []uint8{0}, []uint8{0, 1, 2} // a packet of a stopped class is not sent
	for q := range 2 {
		if s.length(q) > 0 {
			outs = append(outs, 1<<q)
		}
	}
	if s.lossy > 0 {
		outs = append(outs, lossyOut)
	}
	if r.apart {
		sends = append(sends, 3)
		if s.length(0) > 0 && s.length(1) > 0 {
			outs = append(outs, 3)
		}
	}
	bools := func(both bool) []bool { return []bool{false, true}[:1+btoi(both)] }
	for _, out := range outs {
		for _, send := range sends {
			for _, tick := range bools(r.victims) {
				for _, lossy := range bools(out != lossyOut) {
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
	s.slot(r)
	if c.tick {
		s.tick()
	}
	switch {
	case c.out == lossyOut && m.unlocal:
		mmu := m.load(s)
		frames = m.take(mmu, s, mmu.Depart(now, 0, 2, packet))
	case c.out == lossyOut:
		s.lossy--
	}
	for q := range 2 {
		if c.out>>q&1 == 0 || wrong != "" {
			continue
		}
		// A packet leaves under the policy that admitted it (p4src, LeavePool).
		by := r
		if s.old[q] > 0 {
			by = &m.rules[s.policy-1]
			s.old[q]--
		}
		var more []frame
		more, wrong = m.leave(s, by, q)
		frames = append(frames, more...)
	}
	for q := range 2 {
		if s.data[0]>>q&1 == 1 && wrong == "" {
			var more []frame
			more, wrong = m.arrive(s, r, q, c.tau)
			frames = append(frames, more...)
		}
	}
	switch {
	case c.lossy && m.unlocal:
		mmu := m.load(s)
		_, signals := mmu.Arrive(now, 0, 2, packet)
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
	s.data[m.link.data-1] = c.send &^ s.peer
	return wrong
}

// wrong returns the rule that a state violates, "" for none.
func (m *checker) wrong(s *state) string {
	quiet := s.pfc == [mostDelay]uint32{} && s.data == [mostDelay]uint8{}
	r := &m.rules[s.policy]
	switch {
	case quiet && s.peer != s.told()&3 && m.safe.portPauseObeyed:
		return fmt.Sprintf("no frame is on its way, but the peer has stopped %02b, and was last told to stop %02b", s.peer, s.told())
	case r.victims && (s.off&r.classes(0) != 0 && s.victim[0] || s.off&r.classes(1) != 0 && s.victim[1]):
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
		port, class := r.place(q)
		ok, signals := mmu.Arrive(now, port, class, packet)
		if !ok {
			wrong = fmt.Sprintf("a lossless packet of queue %d is dropped", q)
		}
		return m.take(mmu, s, signals), wrong
	}
	ok, frames := s.arrive(r, m.safe, q, tau)
	if mmu != nil {
		port, class := r.place(q)
		if r.estimate {
			mmu.queues[q].tau = units.Bytes(tau) * packet
		}
		stored, signals := mmu.Arrive(now, port, class, packet)
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
	port, class := r.place(q)
	if m.unlocal {
		return m.take(mmu, s, mmu.Depart(now, port, class, packet)), ""
	}
	frames = s.leave(r, m.safe, q)
	if mmu != nil {
		wrong = m.differs(mmu, s, frames, mmu.Depart(now, port, class, packet))
	}
	return frames, wrong
}

// now is the time of every step of an MMU. Time tells an MMU only how long a queue has had no packet, which accounts.quiet
// has in slots.
const now = units.Millisecond

// slot is the length of a slot.
const slot = units.Microsecond

// place returns a queue's port and class in the MMU.
func (r *rule) place(q int) (port int, class uint8) {
	if r.apart {
		return q, 0
	}
	return 0, uint8(q)
}

// queue returns the MMU's account of a queue.
func (m *MMU) queue(port int, class uint8) *queue { return &m.queues[port*Classes+int(class)] }

// load puts the MMU of a state's policy into this state; nil if the model is checked alone.
func (m *checker) load(s *state) *MMU {
	if m.mmus == nil {
		return nil
	}
	r, mmu := &m.rules[s.policy], m.mmus[s.policy]
	mmu.totals = Usage{Private: units.Bytes(s.private[0]+s.private[1]) * packet, Headroom: units.Bytes(s.head[0]+s.head[1]) * packet, Insurance: units.Bytes(s.insured) * packet}
	mmu.free = mmu.size - units.Bytes(s.used())*packet
	for p := range mmu.ports {
		mmu.ports[p] = port{phi: mmu.ports[p].phi, insured: units.Bytes(s.insured) * packet, off: s.off&portOff != 0}
		mmu.pausedPorts.remove(int32(p))
	}
	for q := range s.shared {
		n, class := r.place(q)
		*mmu.queue(n, class) = queue{
			private: units.Bytes(s.private[q]) * packet, shared: units.Bytes(s.shared[q]) * packet, headroom: units.Bytes(s.head[q]) * packet,
			tau: units.Bytes(s.tau[q]) * packet, off: s.off>>q&1 == 1,
		}
		p := &mmu.ports[n]
		p.shared += units.Bytes(s.shared[q]) * packet
		p.classes |= s.off >> q & 1 << class
		p.before = p.paused()
		mmu.pausedQueues.remove(int32(n*Classes + int(class)))
		if spfc := mmu.rules.spfc; spfc != nil {
			spfc.ports[n].Meter = Meter{limit: depart, count: uint64(s.count[n]), victim: s.victim[n], paused: p.paused() != 0}
			spfc.loans[n*Classes+int(class)].heard = now - units.Time(s.quiet[q])*slot
			spfc.loan(n*Classes+int(class), units.Bytes(s.lent[q])*packet)
			if spfc.ports[n].quiet = units.Time(r.silence) * slot; m.early {
				spfc.ports[n].quiet = -1
			}
		}
	}
	mmu.queues[2] = queue{shared: units.Bytes(s.lossy) * packet}
	for q := range s.shared {
		mmu.updateWaiting(r.place(q))
	}
	return mmu
}

// held returns the accounts of an MMU, combined with the parts of a state that the MMU does not keep.
func (m *checker) held(mmu *MMU, s *state) accounts {
	r := &m.rules[s.policy]
	got := accounts{policy: s.policy, old: s.old, lossy: uint8(mmu.queues[2].shared / packet)}
	for q := range got.shared {
		n, class := r.place(q)
		x := mmu.queue(n, class)
		got.private[q], got.shared[q], got.head[q], got.tau[q] = uint8(x.private/packet), uint8(x.shared/packet), uint8(x.headroom/packet), uint8(x.tau/packet)
		got.off |= uint8(btoi(x.off)) << q
		if spfc := mmu.rules.spfc; spfc != nil {
			got.count[n], got.victim[n] = uint8(min(spfc.ports[n].count, depart)), spfc.ports[n].victim
			loan := spfc.loans[n*Classes+int(class)]
			got.quiet[q], got.lent[q] = uint8((now-loan.heard)/slot), uint8(loan.bytes/packet)
		}
	}
	got.insured = uint8(mmu.ports[0].insured / packet)
	got.off |= uint8(btoi(mmu.ports[0].off)) * portOff
	return got
}

// frames returns the PFC frames of signals.
func (r *rule) frames(signals []Signal) (frames []frame) {
	for _, g := range signals {
		f := frame{classes: g.Classes & 3, pause: g.Pause, all: g.Classes == 0xFF && g.Pause}
		if r.apart {
			f.classes = g.Classes & 1 << g.Port
		}
		frames = append(frames, f)
	}
	return frames
}

// take copies the MMU's accounts into the state.
func (m *checker) take(mmu *MMU, s *state, signals []Signal) []frame {
	s.accounts = m.held(mmu, s)
	return m.rules[s.policy].frames(signals)
}

// differs returns the first difference between the MMU and the model after a step.
func (m *checker) differs(mmu *MMU, s *state, frames []frame, signals []Signal) string {
	got, sent := m.held(mmu, s), m.rules[s.policy].frames(signals)
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
	say(n.by.out == lossyOut, "lossy leaves")
	for q := range 2 {
		say(n.by.out>>q&1 == 1, "q%d leaves", q)
	}
	for q := range 2 {
		say(before.data[0]>>q&1 == 1, "q%d arrives", q)
	}
	say(n.by.lossy && n.lossy > before.lossy, "lossy arrives")
	say(n.by.swap, "PFC frames swap")
	say(n.peer&^before.peer != 0, "the peer stops %02b", n.peer&^before.peer)
	say(before.peer&^n.peer != 0, "the peer goes on with %02b", before.peer&^n.peer)
	for q := range 2 {
		say(n.by.send&^n.peer>>q&1 == 1, "q%d is sent", q)
	}
	if len(what) == 0 {
		what = []string{"nothing"}
	}
	text := fmt.Sprintf("%-50s shared %v headroom %v insured %d lossy %d off %03b victim %v", strings.Join(what, ", "), n.shared, n.head, n.insured, n.lossy, n.off, n.victim[0])
	if n.victim[1] {
		text += ", the other port too"
	}
	if n.lent != [2]uint8{} {
		text += fmt.Sprintf(", lent %v", n.lent)
	}
	return text
}
