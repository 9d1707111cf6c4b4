package buffer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/headgate/headgate/controller/feature"
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
	manager feature.TrafficManager
	every   time.Duration
	next    time.Time // not before: reading has failed
	seen    time.Time // last reading
	victims []uint32  // as the traffic manager was told
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
		// Without pause counters no port is a victim, because nobody knows who is paused.
		for _, p := range l.ports {
			p.restart()
		}
	} else {
		l.counted(now.Add(took/2), read)
		l.seen = now
	}
	if refused := l.applyVictims(); err == nil {
		err = refused
	}
	l.show(&State{Policy: string(l.buffer.Policy), Time: l.seen})
	return err
}

// applyVictims gives the traffic manager the ports that are victims, when these have changed.
func (l *chipLoop) applyVictims() error {
	var victims []uint32
	for _, p := range l.ports {
		if p.Victim {
			victims = append(victims, p.Number)
		}
	}
	if slices.Equal(victims, l.victims) {
		return nil
	}
	if err := l.manager.Victims(victims); err != nil {
		return err
	}
	l.victims = victims
	return nil
}

// Receive implements feature.Loop.
func (*chipLoop) Receive(time.Time, feature.Message) {}

// read reads both kinds of counters.
func (l *chipLoop) read(ctx context.Context) (map[uint32]totals, error) {
	list, err := l.sw.Read(ctx, cells(l.ports, ids.CounterIngressDepartures)...)
	if err != nil {
		return nil, fmt.Errorf("departures of ports: %w", err)
	}
	pauses, err := l.manager.Pauses(ctx, l.numbers())
	if err != nil {
		return nil, err
	}
	read := make(map[uint32]totals, len(l.ports))
	for _, e := range list {
		addCounter(read, e.GetCounterEntry())
	}
	for n, mac := range pauses {
		t := read[n]
		t.mac, t.pauses = mac, mac.Frames+mac.PortFrames
		read[n] = t
	}
	return read, nil
}
