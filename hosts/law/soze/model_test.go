package soze

import (
	"container/heap"

	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/units"
)

// model is a packet-level network for the law. Its FIFO links have a rate and a propagation delay and stamp maxQD
// as the pipeline does. Flows have fixed paths and the transport's own sender, and acknowledgements are only
// delayed. Events run in (time, sequence) order, so every run is the same. The test that makes it owns it.
type model struct {
	now    units.Time
	seq    uint64
	events modelEvents
	links  []*modelLink
	flows  []*modelFlow
}

// Payload and frame of a full packet: Ethernet, IPv4, UDP, shim, BTH and ICRC around it.
const (
	modelMSS   units.Bytes = 1000
	modelFrame             = modelMSS + 62
)

type modelLink struct {
	rate  units.Rate
	delay units.Time
	queue []*modelPacket
	busy  bool
	sent  units.Bytes // payload
	peak  units.Time  // longest queueing delay seen
}

type modelPacket struct {
	flow *modelFlow
	i    uint64
	hop  int
	came units.Time // to the present hop
	qd   units.Time // maxQD so far
}

type modelFlow struct {
	net     *model
	law     *Law
	s       *transport.Sender
	r       transport.Receiver
	path    []int
	back    units.Time // from the receiver to the sender
	nic     units.Rate
	nicFree units.Time
	wakeAt  units.Time
	stopped bool
	qd      units.Time // last echo
}

type modelEvent struct {
	at  units.Time
	seq uint64
	fn  func()
}

type modelEvents []modelEvent

func (e modelEvents) Len() int { return len(e) }
func (e modelEvents) Less(i, j int) bool {
	return e[i].at < e[j].at || (e[i].at == e[j].at && e[i].seq < e[j].seq)
}
func (e modelEvents) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *modelEvents) Push(x any)   { *e = append(*e, x.(modelEvent)) }
func (e *modelEvents) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

func (m *model) at(t units.Time, fn func()) {
	m.seq++
	heap.Push(&m.events, modelEvent{max(t, m.now), m.seq, fn})
}

func (m *model) run(until units.Time) {
	for len(m.events) > 0 && m.events[0].at <= until {
		e := heap.Pop(&m.events).(modelEvent)
		m.now = e.at
		e.fn()
	}
	m.now = until
}

func (m *model) link(rate units.Rate, delay units.Time) int {
	m.links = append(m.links, &modelLink{rate: rate, delay: delay})
	return len(m.links) - 1
}

// flow adds an endless flow that starts at time at.
func (m *model) flow(at units.Time, l *Law, back units.Time, nic units.Rate, path ...int) *modelFlow {
	f := &modelFlow{net: m, law: l, path: path, back: back, nic: nic, wakeAt: units.MaxTime}
	m.flows = append(m.flows, f)
	s, err := transport.NewSender(transport.SenderConfig{
		Law: l, MSS: modelMSS, InitialRTO: 1000 * units.Second, MinRTO: 1000 * units.Second, MaxRTO: 1000 * units.Second,
	}, at)
	if err != nil {
		panic(err)
	}
	f.s = s
	m.at(at, f.pump)
	return f
}

// pump sends as much as it may and schedules itself for the time when it may send more.
func (f *modelFlow) pump() {
	for !f.stopped {
		at := f.s.Ready(f.net.now)
		if at == units.MaxTime {
			return
		}
		if at = max(at, f.nicFree); at > f.net.now {
			if at < f.wakeAt || f.wakeAt <= f.net.now {
				f.wakeAt = at
				f.net.at(at, f.pump)
			}
			return
		}
		p := &modelPacket{flow: f, i: f.s.Send(f.net.now).Index}
		f.nicFree = f.net.now + f.nic.TxTime(modelFrame)
		f.net.at(f.nicFree, func() { f.net.arrive(p) })
	}
}

func (m *model) arrive(p *modelPacket) {
	f := p.flow
	if p.hop == len(f.path) {
		_, _, psn := f.r.OnData(transport.PSN(p.i), false)
		m.at(m.now+f.back, func() {
			f.qd = p.qd
			f.s.OnFeedback(&transport.Feedback{PSN: psn, MaxQD: p.qd}, m.now)
			f.pump()
		})
		return
	}
	l := m.links[f.path[p.hop]]
	p.came = m.now
	l.queue = append(l.queue, p)
	if !l.busy {
		m.serve(l)
	}
}

func (m *model) serve(l *modelLink) {
	l.busy = len(l.queue) > 0
	if !l.busy {
		return
	}
	p := l.queue[0]
	l.queue = l.queue[1:]
	own := m.now - p.came
	l.peak = max(l.peak, own)
	l.sent += modelMSS
	p.qd = max(p.qd, own)
	p.hop++
	done := m.now + l.rate.TxTime(modelFrame)
	m.at(done, func() { m.serve(l) })
	m.at(done+l.delay, func() { m.arrive(p) })
}

// delivered returns the payload delivered so far.
func (f *modelFlow) delivered() units.Bytes { return units.Bytes(f.r.Next()) * modelMSS }
