package buffer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
	"github.com/headgate/headgate/tables/buffer"
)

// loop looks after one switch's buffer where the program keeps the policy. It owns what it
// last published.
type loop struct {
	base
	pipe *pipeline.Pipeline
	size view.Pools

	every, count time.Duration // between polls, and between readings of counters
	next         time.Time     // reading of counters
	seq          uint64
	polled       time.Time
	used, peak   view.Pools
}

// Interval implements feature.Loop.
func (l *loop) Interval() time.Duration { return l.every }

// Tick implements feature.Loop.
func (l *loop) Tick(ctx context.Context, now time.Time) error {
	err := l.poll()
	if !now.Before(l.next) {
		l.next = now.Add(l.count - l.every/2)
		err = errors.Join(err, l.read(ctx, now))
	}
	err = errors.Join(err, l.refresh(now))
	l.watch(now)
	l.publish()
	return err
}

// payload tells our polls from those of others, who are not to wait for ours.
const payload = "buffer"

// poll asks every port for its registers.
func (l *loop) poll() error {
	l.seq++
	return l.each("poll", ids.PacketOutPoll, binary.BigEndian.AppendUint64([]byte(payload), l.seq), l.ports)
}

// each sends a packet-out of a mode for each of some ports.
func (l *loop) each(what string, mode uint64, payload []byte, ports []*port) error {
	var errs error
	for _, p := range ports {
		out, err := l.pipe.PacketOut(payload,
			pipeline.Arg{Name: "egress_port", Value: pipeline.Uint(uint64(p.Number))},
			pipeline.Arg{Name: "queue", Value: pipeline.Uint(ids.HighestQueue)},
			pipeline.Arg{Name: "mode", Value: pipeline.Uint(mode)},
		)
		if err == nil {
			err = l.sw.PacketOut(out)
		}
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("%s of port %d: %w", what, p.Number, err))
		}
	}
	return errs
}

// Receive implements feature.Loop: every report of a port is welcome, only ours are taken.
func (l *loop) Receive(now time.Time, m feature.Message) bool {
	if m.Packet == nil || m.Packet.Fields["reason"] != ids.PacketInPoll {
		return false
	}
	r, rest, err := pollreport.Parse(m.Packet.Payload)
	if err != nil {
		return false
	}
	for _, p := range l.ports {
		if p.Number == r.Port {
			p.observe(now, &r)
			l.polled, l.used, l.peak = now, pools(r.Buffer.Used), pools(r.Buffer.Peak)
		}
	}
	return bytes.HasPrefix(rest, []byte(payload))
}

func pools(p pollreport.Pools) view.Pools {
	return view.Pools{Private: uint64(p.Private), Shared: uint64(p.Shared), Headroom: uint64(p.Headroom), Insurance: uint64(p.Insurance)}
}

// refresh repeats the PAUSEs that are half over.
func (l *loop) refresh(now time.Time) error {
	var due []*port
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
		due = append(due, p)
	}
	return l.each("refresh", ids.PacketOutRefresh, []byte(payload), due)
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
		take(read, e.GetCounterEntry())
	}
	l.counted(now.Add(time.Since(began)/2), read)
	return l.overlay()
}

// portCounters are the buffer's counters that are indexed by port.
var portCounters = [...]uint32{ids.CounterIngressDepartures, ids.CounterPFCPauses, ids.CounterPFCResumes, ids.CounterPFCRefreshes}

// requests asks for what belongs to the switch's ports and lossless classes.
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
	return &p4v1.Entity{Entity: &p4v1.Entity_CounterEntry{CounterEntry: &p4v1.CounterEntry{CounterId: counter, Index: &p4v1.Index{Index: i}}}}
}

// take puts a counter where it belongs.
func take(read map[uint32]totals, c *p4v1.CounterEntry) {
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

// overlay tells the switch which ports are victims', when that has changed.
func (l *loop) overlay() error {
	return l.turned(func(victims []uint32) error {
		var c feature.Collect
		for _, n := range victims {
			c.Add(entry(l.pipe, buffer.Victim(n)))
		}
		list, err := c.Result()
		if err != nil {
			return err
		}
		return l.sw.Overlay(list)
	})
}

// publish shows what is known.
func (l *loop) publish() {
	b := &view.Buffer{
		Policy: string(l.buffer.Policy), Time: l.polled, Size: l.size, Used: l.used, Peak: l.peak,
		Threshold: l.threshold(l.used.Shared), Alarms: l.alarms(),
	}
	l.show(b)
}
