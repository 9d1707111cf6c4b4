package pacc

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
	"github.com/headgate/headgate/pacc"
	"github.com/headgate/headgate/units"
)

// loop is PACC on one switch.
type loop struct {
	*pacc.Loop
	hub   feature.Hub
	sw    *overP4Runtime
	began time.Time
	gap   time.Duration

	evicted uint64    // when it was last told
	told    time.Time // of evictions
}

// Interval implements feature.Loop: CNPs are due more often than ticks.
func (l *loop) Interval() time.Duration { return l.gap }

// Tick implements feature.Loop.
func (l *loop) Tick(ctx context.Context, now time.Time) error {
	if at := l.clock(now); l.Next() > at && !l.Pending() {
		return nil
	}
	l.sw.ctx = ctx
	err := l.Run(l.clock(now))
	s := l.Stats()
	l.hub.PACC(view.PACC{Switch: l.sw.sw.Name(), Stats: s, PortLoops: l.Ports()})
	l.tellEvictions(now, s)
	return err
}

// tellEvery bounds the events about one thing.
const tellEvery = 10 * time.Second

// tellEvictions publishes that the table is too small, once in a while.
func (l *loop) tellEvictions(now time.Time, s pacc.Stats) {
	if s.Evicted == l.evicted || now.Sub(l.told) < tellEvery {
		return
	}
	l.hub.Event(view.Event{
		Time: now, Severity: view.Warning, Subject: l.sw.sw.Name(), Kind: "pacc.evicted",
		Message: fmt.Sprintf("the flow table is full with %d flows: %d left it for others, the least congested first", s.Flows, s.Evicted-l.evicted),
	})
	l.evicted, l.told = s.Evicted, now
}

func failed(sw string, err error) view.Event {
	return view.Event{Time: time.Now(), Severity: view.Error, Subject: sw, Kind: "pacc.failed", Message: err.Error()}
}

// payload begins our polls; the tick follows.
const payload = "pacc"

// Receive implements feature.Loop: answers to our polls, new flows, idle flows.
func (l *loop) Receive(now time.Time, m feature.Message) bool {
	switch {
	case m.Packet != nil:
		return l.polled(now, m.Packet)
	case m.Digest != nil && m.Digest.GetDigestId() == ids.DigestFlowDigestT:
		for _, d := range m.Digest.GetData() {
			if f, ok := flowOfDigest(d); ok {
				l.Learned(f)
			}
		}
		return true
	case m.Idle != nil:
		return l.idle(m)
	}
	return false
}

func (l *loop) idle(m feature.Message) bool {
	ours := false
	for _, e := range m.Idle.GetTableEntry() {
		if e.GetTableId() == ids.TableFlow {
			ours = true
			if f, ok := flowOfEntry(e); ok {
				l.Aged(f)
			}
		}
	}
	return ours
}

func (l *loop) polled(now time.Time, p *pipeline.PacketIn) bool {
	if p.Fields["reason"] != ids.PacketInPoll {
		return false
	}
	r, rest, err := pollreport.Parse(p.Payload)
	if err != nil || len(rest) < len(payload)+8 || string(rest[:len(payload)]) != payload {
		return false // somebody else's
	}
	at := l.clock(now)
	l.Polled(at, r.Port, binary.BigEndian.Uint64(rest[len(payload):]), units.Bytes(r.QueueBytes[l.sw.queue]))
	return true
}
