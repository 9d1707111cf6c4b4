package lawtest

import (
	"math/rand/v2"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/units"
)

// Sizes of a full packet's payload, its frame, and a probe's frame.
const (
	MSS   units.Bytes = 1000
	Frame units.Bytes = 1054
	Probe units.Bytes = 64
)

// Net is the network; the test that makes it owns it.
type Net struct {
	Now    units.Time
	Links  []*Link
	Flows  []*Flow
	Rand   *rand.Rand
	seq    uint64
	events []event
	free   []*packet
}

// New returns an empty network.
func New() *Net { return &Net{Rand: rand.New(rand.NewPCG(1, 2))} }

// Link is an output queue and the link behind it.
type Link struct {
	Rate  units.Rate
	Delay units.Time // propagation
	// ECN: data that finds more than KMin bytes waiting is marked with a probability that
	// rises to PMax at KMax and is 1 beyond. KMax = 0 marks nothing.
	KMin, KMax units.Bytes
	PMax       float64

	Queue, Peak units.Bytes // waiting, without the packet being sent
	Sent        units.Bytes // frames

	net  *Net
	fifo []*packet
	head int
	busy bool
}

// Link adds a link.
func (n *Net) Link(rate units.Rate, delay units.Time) *Link {
	l := &Link{Rate: rate, Delay: delay, net: n}
	n.Links = append(n.Links, l)
	return l
}

type packet struct {
	flow  *Flow
	psn   uint32
	size  units.Bytes
	sent  units.Time
	hop   int
	ce    bool
	probe bool
	last  bool
	came  units.Time
	maxQD units.Time
	int   [4]law.Hop
	nak   bool
	delay units.Time
}

type kind uint8

const (
	evPump kind = iota
	evArrive
	evServe
	evAck
	evTimer
	evCNP
	evFunc
)

type event struct {
	at   units.Time
	seq  uint64
	kind kind
	flow *Flow
	link *Link
	pkt  *packet
	fn   func()
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

func (n *Net) push(e event) {
	n.seq++
	e.seq, e.at = n.seq, max(e.at, n.Now)
	h := append(n.events, e)
	i := len(h) - 1
	for i > 0 && h[i].before(&h[(i-1)/2]) {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
		i = (i - 1) / 2
	}
	n.events = h
}

func (n *Net) pop() event {
	h := n.events
	top, last := h[0], len(h)-1
	h[0] = h[last]
	h[last] = event{}
	h = h[:last]
	for i := 0; ; {
		c := 2*i + 1
		if c >= last {
			break
		}
		if c+1 < last && h[c+1].before(&h[c]) {
			c++
		}
		if !h[c].before(&h[i]) {
			break
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
	n.events = h
	return top
}

// At calls fn at a time.
func (n *Net) At(at units.Time, fn func()) { n.push(event{at: at, kind: evFunc, fn: fn}) }

// Every calls fn now and after each interval, until the test stops running the network.
func (n *Net) Every(interval units.Time, fn func()) {
	fn()
	n.At(n.Now+interval, func() { n.Every(interval, fn) })
}

// Run runs the network until a time.
func (n *Net) Run(until units.Time) {
	for len(n.events) > 0 && n.events[0].at <= until {
		e := n.pop()
		n.Now = e.at
		switch e.kind {
		case evPump:
			e.flow.pump()
		case evArrive:
			n.arrive(e.pkt)
		case evServe:
			e.link.serve()
		case evAck:
			e.flow.acked(e.pkt)
		case evTimer:
			e.flow.timer()
		case evCNP:
			e.flow.cnp()
		case evFunc:
			e.fn()
		}
	}
	n.Now = until
}

func (n *Net) packet() *packet {
	if k := len(n.free); k > 0 {
		p := n.free[k-1]
		n.free = n.free[:k-1]
		*p = packet{}
		return p
	}
	return &packet{}
}

func (n *Net) arrive(p *packet) {
	f := p.flow
	if p.hop == len(f.Path) {
		f.received(p)
		return
	}
	l := f.Path[p.hop]
	if f.Drop != nil && p.hop == 0 && f.Drop(p.psn, p.probe) {
		n.free = append(n.free, p)
		return
	}
	p.came = n.Now
	if !p.probe {
		p.ce = p.ce || l.mark()
	}
	l.fifo = append(l.fifo, p)
	l.Queue += p.size
	l.Peak = max(l.Peak, l.Queue)
	if !l.busy {
		l.serve()
	}
}

func (l *Link) mark() bool {
	switch {
	case l.KMax == 0 || l.Queue <= l.KMin:
		return false
	case l.Queue > l.KMax:
		return true
	}
	return l.net.Rand.Float64() < l.PMax*float64(l.Queue-l.KMin)/float64(max(l.KMax-l.KMin, 1))
}

func (l *Link) serve() {
	l.busy = l.head < len(l.fifo)
	if !l.busy {
		l.fifo, l.head = l.fifo[:0], 0
		return
	}
	p := l.fifo[l.head]
	l.fifo[l.head] = nil
	l.head++
	if l.head > 1024 && 2*l.head > len(l.fifo) {
		l.fifo = l.fifo[:copy(l.fifo, l.fifo[l.head:])]
		l.head = 0
	}
	l.Queue -= p.size
	p.maxQD = max(p.maxQD, l.net.Now-p.came)
	if p.hop < len(p.int) {
		p.int[p.hop] = law.Hop{Rate: l.Rate, Time: l.net.Now, TxBytes: l.Sent, Queue: l.Queue}
	}
	l.Sent += p.size
	p.hop++
	done := l.net.Now + l.Rate.TxTime(p.size)
	l.net.push(event{at: done, kind: evServe, link: l})
	l.net.push(event{at: done + l.Delay, kind: evArrive, pkt: p})
}
