package buffer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
)

// loop looks after one switch's buffer where the program keeps the policy. It owns what it
// last published.
type loop struct {
	base
	pipe *pipeline.Pipeline
	size pollreport.Pools

	drain   time.Duration // in which any queue of the switch empties whatever happens; 0 where one may be held
	silence time.Duration // of a port, after which a probe says that its link works again; 0 for never
	failed  error         // of what was sent since the last tick

	every, count time.Duration // between polls, and between readings of counters
	next         time.Time     // reading of counters
	polled       time.Time
	used, peak   pollreport.Pools
}

// etherTypeLLDP is the EtherType of probes (IEEE 802.1AB clause 7).
const etherTypeLLDP = 0x88cc

// Interval implements feature.Loop.
func (l *loop) Interval() time.Duration { return l.every }

// Tick implements feature.Loop.
func (l *loop) Tick(ctx context.Context, now time.Time) error {
	err := l.sw.Poll(now, l.every*3/4, l.numbers()...)
	if !now.Before(l.next) {
		l.next = now.Add(l.count - l.every/2)
		err = errors.Join(err, l.read(ctx, now))
	}
	err = errors.Join(err, l.failed, l.refresh(now), l.reclaim(now))
	l.failed = nil
	l.monitor(now)
	l.publish()
	return err
}

// Receive implements feature.Loop.
func (l *loop) Receive(now time.Time, m feature.Message) {
	if m.Packet != nil {
		l.returns(now, m.Packet)
	}
	if m.Report == nil {
		return
	}
	r := &m.Report.Report
	if p := l.by[r.Port]; p != nil {
		p.observe(now, r)
		p.out.observe(m.Report)
		p.setVictim(r.Buffer.Victim)
		l.polled, l.used, l.peak = now, r.Buffer.Used, r.Buffer.Peak
	}
}

// returns handles a packet of a link's probes. The first one after a silence shows that the link works
// again. The port's peer then gets the state of all classes at once, because a peer that was reset has
// forgotten its PAUSE, and another one may have missed a RESUME.
func (l *loop) returns(now time.Time, in *pipeline.PacketIn) {
	if len(in.Payload) < 14 || binary.BigEndian.Uint16(in.Payload[12:]) != etherTypeLLDP || l.silence <= 0 {
		return
	}
	p := l.by[uint32(in.Fields["ingress_port"])]
	if p == nil {
		return
	}
	if now.Sub(p.probed) > l.silence {
		l.failed = errors.Join(l.failed, l.repeat(p))
	}
	p.probed = now
}

// refresh repeats the PAUSEs that are half over.
func (l *loop) refresh(now time.Time) error {
	var errs error
	for _, p := range l.ports {
		if p.Paused == 0 || p.half < minRefresh || now.Sub(p.polled) > 2*p.half {
			continue
		}
		age := p.pauseAge(now)
		if age < p.half || now.Sub(p.sent) < p.half/2 {
			continue
		}
		if !p.sent.IsZero() {
			p.lost++
		}
		p.sent, p.Late = now, age-p.half
		p.MostLate = max(p.MostLate, p.Late)
		errs = errors.Join(errs, l.repeat(p))
	}
	return errs
}

// repeat has a port send its PAUSE again.
func (l *loop) repeat(p *port) error { return l.ask(p, "refresh", ids.PacketOutRefresh) }

// ask sends a port a packet-out that its egress acts on.
func (l *loop) ask(p *port, what string, mode uint64) error {
	out, err := l.pipe.PacketOut([]byte(what),
		pipeline.Arg{Name: "egress_port", Value: p4msg.Uint(uint64(p.Number))},
		pipeline.Arg{Name: "queue", Value: p4msg.Uint(ids.HighestQueue)},
		pipeline.Arg{Name: "mode", Value: p4msg.Uint(mode)},
	)
	if err == nil {
		err = l.sw.PacketOut(out)
	}
	if err != nil {
		return fmt.Errorf("%s of port %d: %w", what, p.Number, err)
	}
	return nil
}

// read reads all counters in one request.
func (l *loop) read(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, max(time.Second, l.count))
	defer cancel()
	began := time.Now()
	list, err := l.sw.Read(ctx, l.requests()...)
	if err != nil {
		return fmt.Errorf("counters of the buffer: %w", err)
	}
	read := make(map[uint32]totals, len(l.ports))
	for _, e := range list {
		addCounter(read, e.GetCounterEntry())
	}
	l.counted(now.Add(time.Since(began)/2), read)
	return nil
}

// portCounters are the buffer's counters that are indexed by port.
var portCounters = [...]uint32{ids.CounterIngressDepartures, ids.CounterPFCPauses, ids.CounterPFCResumes, ids.CounterPFCRefreshes}

// requests returns the polls of the switch's ports and lossless classes.
func (l *loop) requests() []*p4v1.Entity {
	list := cells(l.ports, portCounters[:]...)
	for _, p := range l.ports {
		for c := range int64(headroom.Classes) {
			if l.mmu.Lossless>>c&1 != 0 {
				list = append(list, cell(ids.CounterLosslessDrops, int64(p.Number)*headroom.Classes+c))
			}
		}
	}
	return list
}

// cells asks for counters that are indexed by port.
func cells(ports []*port, counters ...uint32) []*p4v1.Entity {
	var list []*p4v1.Entity
	for _, p := range ports {
		for _, id := range counters {
			list = append(list, cell(id, int64(p.Number)))
		}
	}
	return list
}

func cell(counter uint32, i int64) *p4v1.Entity {
	return p4msg.Of(&p4v1.CounterEntry{CounterId: counter, Index: &p4v1.Index{Index: i}})
}

// addCounter puts a counter into the totals of its port.
func addCounter(read map[uint32]totals, c *p4v1.CounterEntry) {
	index, n := c.GetIndex().GetIndex(), uint64(c.GetData().GetPacketCount())
	number, class := index, int64(0)
	if c.GetCounterId() == ids.CounterLosslessDrops {
		number, class = index/headroom.Classes, index%headroom.Classes
	}
	t := read[uint32(number)]
	switch c.GetCounterId() {
	case ids.CounterIngressDepartures:
		t.departed = uint64(c.GetData().GetByteCount())
	case ids.CounterPFCPauses:
		t.pauses = n
	case ids.CounterPFCResumes:
		t.resumes = n
	case ids.CounterPFCRefreshes:
		t.refreshes = n
	case ids.CounterLosslessDrops:
		t.drops[class] = n
	default:
		return
	}
	read[uint32(number)] = t
}

// publish shows what is known.
func (l *loop) publish() {
	b := &State{
		Policy: string(l.buffer.Policy), Time: l.polled, Size: l.size, Used: l.used, Peak: l.peak,
		Threshold: l.threshold(l.used.Shared), Alarms: l.alarms(),
	}
	l.show(b)
}
