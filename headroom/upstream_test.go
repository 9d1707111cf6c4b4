package headroom

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/headgate/headgate/units"
)

// world is an MMU between senders and a drain. The senders obey PFC as late as the Config's method
// allows, and the drain works against the MMU. world checks the MMU's accounts at each step.
type world struct {
	m      *MMU
	c      Config
	now    units.Time
	seq    int
	events events
	peers  []peer
	stored [][]units.Bytes // per queue, in order of arrival
	rng    *rand.Rand
	// ignore drops PFC frames before they reach a peer.
	ignore func(Signal) bool
	steps  int
	lent   units.Bytes // the most that queues have lent
	fault  error
}

// peer sends to one port at line rate, of any class that it may send.
type peer struct {
	budget  units.Bytes
	paused  uint8
	busy    bool
	class   uint8 // the one it prefers
	focused bool  // it changes class only when it must
}

type eventKind uint8

// The order of events at the same time: a sender that may start a packet just before a PAUSE takes
// effect does so.
const (
	evSent eventKind = iota
	evArrive
	evDrain
	evObey
)

type event struct {
	at    units.Time
	kind  eventKind
	seq   int
	port  int
	class uint8
	n     units.Bytes
	sig   Signal
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	a, b := e[i], e[j]
	if a.at != b.at {
		return a.at < b.at
	}
	if a.kind != b.kind {
		return a.kind < b.kind
	}
	return a.seq < b.seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

func newWorld(c Config, seed uint64, budget units.Bytes) (*world, error) {
	m, err := New(c)
	if err != nil {
		return nil, err
	}
	w := &world{m: m, c: m.Config(), rng: rand.New(rand.NewPCG(seed, 1)), stored: make([][]units.Bytes, len(c.Ports)*Classes)}
	w.peers = make([]peer, len(c.Ports))
	for i := range w.peers {
		w.peers[i] = peer{budget: budget, class: uint8(w.rng.IntN(Classes)), focused: w.rng.IntN(2) == 0}
	}
	return w, nil
}

func (w *world) schedule(e event) {
	w.seq++
	e.seq = w.seq
	heap.Push(&w.events, e)
}

// run sends all budgets through the MMU and drains it. It returns an error if the accounts are
// wrong, if the MMU does not end empty, or if it leaves a queue paused without need.
func (w *world) run() error {
	for i := range w.peers {
		w.schedule(event{at: units.Time(w.rng.Int64N(int64(units.Microsecond))), kind: evSent, port: i})
	}
	w.schedule(event{at: 0, kind: evDrain})
	for {
		if len(w.events) == 0 && !w.drainOne() {
			break
		}
		if len(w.events) > 0 {
			e := heap.Pop(&w.events).(event)
			w.now = e.at
			w.step(e)
		}
		if w.steps++; w.steps%8 == 0 {
			if err := errors.Join(w.m.Audit(), promised(w.m, w.now)); err != nil {
				return err
			}
		}
		if w.m.lends {
			w.lent = max(w.lent, w.m.spfc.total)
		}
	}
	return w.finish()
}

// overdue returns an error if a queue or port is still paused although its threshold allows it to
// resume.
func (w *world) overdue() error {
	m := w.m
	if m.local {
		return nil
	}
	t := m.Threshold()
	for i := range m.queues {
		if q := &m.queues[i]; q.off && q.headroom == 0 && q.shared < t-q.tau-m.gap {
			return fmt.Errorf("queue %d holds %d B and is paused below Xon = %d − %d − %d B", i, q.shared, t, q.tau, m.gap)
		}
	}
	for i := range m.ports {
		if p := &m.ports[i]; p.off && p.insured == 0 && p.shared < m.nq*t-m.portGap {
			return fmt.Errorf("port %d holds %d B and is paused below Xpon = %d·%d − %d B", i, p.shared, m.nq, t, m.portGap)
		}
	}
	return nil
}

func (w *world) finish() error {
	if w.fault != nil {
		return w.fault
	}
	if err := w.m.Audit(); err != nil {
		return err
	}
	if u := w.m.Usage(); u != (Usage{}) {
		return fmt.Errorf("all has departed, but %+v are in use", u)
	}
	for i := range w.peers {
		if p := &w.peers[i]; w.m.Paused(i) != 0 || p.budget > 0 && w.ignore == nil {
			return fmt.Errorf("port %d has classes %08b paused and %d B unsent, with nothing left to depart", i, w.m.Paused(i), p.budget)
		}
	}
	if s := w.m.Stats(); s.Underflows != 0 || s.QueuePauses != s.QueueResumes || s.PortPauses != s.PortResumes {
		return fmt.Errorf("unbalanced: %+v", s)
	}
	return nil
}

func (w *world) step(e event) {
	switch e.kind {
	case evSent:
		w.peers[e.port].busy = false
		w.send(e.port)
	case evArrive:
		ok, signals := w.m.Arrive(w.now, e.port, e.class, e.n)
		w.signal(signals)
		if ok {
			q := e.port*Classes + int(e.class)
			w.stored[q] = append(w.stored[q], e.n)
		}
	case evObey:
		if e.sig.Pause {
			w.peers[e.port].paused |= e.sig.Classes
		} else {
			w.peers[e.port].paused &^= e.sig.Classes
		}
		w.send(e.port)
	case evDrain:
		w.drain()
	}
}

// send starts a packet, if the peer is idle and has a class that may send.
func (w *world) send(port int) {
	p := &w.peers[port]
	if p.busy || p.budget <= 0 || p.paused == 0xFF {
		return
	}
	if !p.focused || p.paused>>p.class&1 != 0 {
		for p.class = uint8(w.rng.IntN(Classes)); p.paused>>p.class&1 != 0; p.class = (p.class + 1) % Classes {
		}
	}
	n := w.c.MTU
	switch w.rng.IntN(8) {
	case 0:
		n = 64
	case 1:
		n = 64 + units.Bytes(w.rng.Int64N(int64(w.c.MTU-63)))
	}
	p.budget -= n
	p.busy = true
	link := w.c.Ports[port]
	end := w.now + link.Rate.TxTime(n)
	w.schedule(event{at: end, kind: evSent, port: port})
	w.schedule(event{at: end + link.Delay, kind: evArrive, port: port, class: p.class, n: n})
}

// signal delivers PFC frames after the waiting, propagation and processing delays of Config.Method;
// the response delay and the last packet's propagation are the peer's.
func (w *world) signal(signals []Signal) {
	for _, s := range signals {
		if w.ignore != nil && w.ignore(s) {
			continue
		}
		link := w.c.Ports[s.Port]
		at := w.now + link.Rate.TxTime(w.c.MTU) + link.Rate.TxTime(FrameWire) + link.Delay + link.Rate.TxTime(w.c.Link(s.Port).Response)
		w.schedule(event{at: at, kind: evObey, port: s.Port, sig: s})
	}
}

// drain removes a random number of packets, most often none, and reschedules itself while there is
// traffic.
func (w *world) drain() {
	if w.rng.IntN(4) == 0 {
		for range w.rng.IntN(30) {
			if !w.drainOne() {
				break
			}
		}
	}
	if len(w.events) > 0 {
		w.schedule(event{at: w.now + units.Time(w.rng.Int64N(int64(8*units.Microsecond))), kind: evDrain})
	}
}

// drainOne removes a packet of a random queue.
func (w *world) drainOne() bool {
	first := w.rng.IntN(len(w.stored))
	for i := range w.stored {
		q := (first + i) % len(w.stored)
		if fifo := w.stored[q]; len(fifo) > 0 {
			w.stored[q] = fifo[1:]
			w.signal(w.m.Depart(w.now, q/Classes, uint8(q%Classes), fifo[0]))
			if w.fault == nil {
				w.fault = w.overdue()
			}
			return true
		}
	}
	return false
}
