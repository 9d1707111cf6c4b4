package softswitch

import (
	"fmt"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/internal/ring"
	"github.com/headgate/headgate/units"
)

// Endpoint is one end of a Link: a switch port or a host's NIC. The loop's goroutine calls
// its methods.
type Endpoint interface {
	// Attach sets the Sender that receives the frames leaving by the endpoint.
	Attach(out Sender)
	// SetUp reports to the endpoint whether the cable works.
	SetUp(up bool)
	// Receive receives a frame whose last bit arrives now. The bytes are valid until it returns.
	Receive(frame []byte, now units.Time)
}

// LinkStats count the frames of one direction of a link.
type LinkStats struct {
	Frames, Bytes uint64 // delivered
	Lost          uint64 // sent or under way while the link was down
}

// Link is a cable between two endpoints on one loop. It delays frames and keeps their order; the
// sender sets the rate. The loop's goroutine owns it.
type Link struct {
	up   bool
	pipe [2]pipe // 0: from a to b
	ends [2]Endpoint
}

// Connect joins two endpoints by a cable with a propagation delay, and sets both up. Call it before
// the loop runs or on its goroutine.
func Connect(loop *clock.Loop, delay units.Time, a, b Endpoint) (*Link, error) {
	if delay < 0 {
		return nil, fmt.Errorf("link delay %v: want 0 or more", delay)
	}
	l := &Link{ends: [2]Endpoint{a, b}}
	for i := range l.pipe {
		p := &l.pipe[i]
		*p = pipe{link: l, loop: loop, delay: delay, to: l.ends[1-i]}
		p.timer = loop.NewTimer(p.deliver)
		l.ends[i].Attach(p)
	}
	l.SetUp(true)
	return l, nil
}

// Up reports whether the link works.
func (l *Link) Up() bool { return l.up }

// SetUp cuts or mends the cable. Cutting it loses the frames under way.
func (l *Link) SetUp(up bool) {
	if up == l.up {
		return
	}
	l.up = up
	for i := range l.pipe {
		if !up {
			l.pipe[i].cut()
		}
		l.ends[i].SetUp(up)
	}
}

// Stats returns the counters of both directions, from a to b first.
func (l *Link) Stats() [2]LinkStats {
	return [2]LinkStats{l.pipe[0].stats, l.pipe[1].stats}
}

// pipe is one direction of a link. It holds the frames under way in order of arrival, and one
// timer for the first of them.
type pipe struct {
	link    *Link
	loop    *clock.Loop
	delay   units.Time
	to      Endpoint
	timer   *clock.Timer
	flights ring.Ring[flight]
	free    [][]byte   // buffers of frames that have arrived
	last    units.Time // arrival of the last frame sent
	stats   LinkStats
}

type flight struct {
	frame []byte
	at    units.Time
}

// Send implements Sender.
func (p *pipe) Send(frame []byte, finish units.Time) {
	if !p.link.up {
		p.stats.Lost++
		return
	}
	var buf []byte
	if n := len(p.free); n > 0 {
		buf, p.free = p.free[n-1], p.free[:n-1]
	}
	p.last = max(p.last, finish+p.delay)
	*p.flights.Push() = flight{append(buf[:0], frame...), p.last}
	if p.flights.Len() == 1 {
		p.timer.Reset(p.last)
	}
}

func (p *pipe) deliver() {
	frame := p.flights.Pop().frame
	p.stats.Frames++
	p.stats.Bytes += uint64(len(frame))
	p.to.Receive(frame, p.loop.Now())
	p.free = append(p.free, frame) // only after Receive, which may have sent on this pipe
	if p.flights.Len() > 0 {
		p.timer.Reset(p.flights.Front().at)
	}
}

func (p *pipe) cut() {
	p.timer.Stop()
	for p.flights.Len() > 0 {
		p.stats.Lost++
		p.free = append(p.free, p.flights.Pop().frame)
	}
}
