package buffer

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/p4src/ids"
)

// chipLoop decides which ports of a chip are victims'. The program counts departures, the
// MACs count pauses, and the traffic manager gives victims the whole shared pool.
//
// A port has triggered PAUSE in a period when a lossless class of it was paused for longer
// at the period's end than at its beginning, or when the port sent PFC or PAUSE frames. It is
// normal then and stays so until a period without either, which stands for RESUME. Where DSH
// has the port send PAUSE for all classes only frames tell; MACs repeat them before a PAUSE
// expires (335 µs at 100 Gb/s, 3.4 ms at 10 Gb/s), and periods are at least minPoll.
//
// This is less than the per-packet state of the paper (Fig. 10):
//
//   - A victim port that triggers PAUSE is normal up to a period later, plus the time of the
//     write; until then it may fill the whole pool, as the paper allows until the PAUSE.
//   - A port is normal up to two periods longer than it is paused: the one in which the last
//     frame went out has to end, and another to pass. A PAUSE that was over within a period
//     costs as much.
//   - A port that departs with C/K is a victim at the end of the period, not in it.
//   - Departures are those of all classes of the port; those of lossless classes are meant.
//     One with much other traffic may be a victim too soon.
//
// Counters that run backwards mean that the chip or its driver was restarted, or that
// somebody cleared them: the port is normal, its meter begins anew, and what has been counted
// since is taken as the beginning.
type chipLoop struct {
	base
	manager feature.Managed
	every   time.Duration
	next    time.Time // not before: reading has failed
	seen    time.Time // last reading
}

// Interval implements feature.Loop.
func (l *chipLoop) Interval() time.Duration { return l.every }

// backOff is how many times as long as a failed reading took there is none: other loops of
// the switch wait for it.
const backOff = 5

// Tick implements feature.Loop.
func (l *chipLoop) Tick(ctx context.Context, now time.Time) error {
	if now.Before(l.next) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, max(time.Second, l.every))
	defer cancel()
	began := time.Now()
	read, err := l.read(ctx)
	took := time.Since(began)
	if err != nil {
		l.next = now.Add(backOff * took)
		// Nobody knows who is paused, and so nobody is a victim.
		for _, p := range l.ports {
			p.restart()
		}
	} else {
		l.counted(now.Add(took/2), read)
		l.seen = now
	}
	if told := l.turned(l.manager.Victims); err == nil {
		err = told
	}
	l.show(&view.Buffer{Policy: string(l.buffer.Policy), Time: l.seen})
	return err
}

// Receive implements feature.Loop.
func (*chipLoop) Receive(time.Time, feature.Message) bool { return false }

// read reads both kinds of counters.
func (l *chipLoop) read(ctx context.Context) (map[uint32]totals, error) {
	list, err := l.sw.Read(ctx, cells(l.ports, ids.CounterIngressDepartures)...)
	if err != nil {
		return nil, fmt.Errorf("departures of ports: %w", err)
	}
	numbers := make([]uint32, len(l.ports))
	for i, p := range l.ports {
		numbers[i] = p.Number
	}
	pauses, err := l.manager.Pauses(ctx, numbers)
	if err != nil {
		return nil, err
	}
	read := make(map[uint32]totals, len(l.ports))
	for _, e := range list {
		take(read, e.GetCounterEntry())
	}
	for n, mac := range pauses {
		t := read[n]
		t.mac, t.pauses = mac, mac.Frames+mac.PortFrames
		read[n] = t
	}
	return read, nil
}
