package lawtest

import (
	"math/rand/v2"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/internal/ring"
	"github.com/headgate/headgate/units"
)

// Sizes of a full packet's payload, its frame, and a probe's frame.
const (
	MSS   units.Bytes = 1000
	Frame units.Bytes = 1054
	Probe units.Bytes = 64
)

// Net is the network. The test that makes it owns it.
type Net struct {
	*clock.Loop
	Links []*Link
	Flows []*Flow
	Rand  *rand.Rand
}

// New returns an empty network.
func New() *Net { return &Net{Loop: clock.NewLoop(), Rand: rand.New(rand.NewPCG(1, 2))} }

// Link is an output queue and the link behind it.
type Link struct {
	Rate  units.Rate
	Delay units.Time // propagation
	// ECN: data that finds more than KMin bytes queued is marked with a probability that rises to
	// PMax at KMax and is 1 beyond. KMax = 0 marks nothing.
	KMin, KMax units.Bytes
	PMax       float64

	Queue, Peak units.Bytes // bytes queued, without the packet being sent
	Sent        units.Bytes // frames

	net  *Net
	fifo ring.Ring[*packet]
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

// Every calls fn now and after each interval, until the test stops running the network.
func (n *Net) Every(interval units.Time, fn func()) {
	fn()
	n.Schedule(n.Now()+interval, func() { n.Every(interval, fn) })
}

// arrive is a packet at the end of a link, or of its host's link.
func (n *Net) arrive(p *packet) {
	f := p.flow
	if p.hop == len(f.Path) {
		f.received(p)
		return
	}
	l := f.Path[p.hop]
	if f.Drop != nil && p.hop == 0 && f.Drop(p.psn, p.probe) {
		return
	}
	p.came = n.Now()
	if !p.probe {
		p.ce = p.ce || l.mark()
	}
	*l.fifo.Push() = p
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
	l.busy = l.fifo.Len() > 0
	if !l.busy {
		return
	}
	p := l.fifo.Pop()
	l.Queue -= p.size
	p.maxQD = max(p.maxQD, l.net.Now()-p.came)
	if p.hop < len(p.int) {
		p.int[p.hop] = law.Hop{Rate: l.Rate, Time: l.net.Now(), TxBytes: l.Sent, Queue: l.Queue}
	}
	l.Sent += p.size
	p.hop++
	done := l.net.Now() + l.Rate.TxTime(p.size)
	l.net.Schedule(done, l.serve)
	l.net.Schedule(done+l.Delay, func() { l.net.arrive(p) })
}
