package pacc

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/cnpgen/flowtable"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/units"
)

// loop is PACC on one switch.
type loop struct {
	*cnpgen.Loop
	callbacks feature.Callbacks
	latest    *feature.LastValue[state]
	sw        *overP4Runtime
	began     time.Time
	gap       time.Duration

	evicted  uint64    // when it was last told
	reported time.Time // of evictions
}

// Interval implements feature.Loop: CNPs are due more often than ticks.
func (l *loop) Interval() time.Duration { return l.gap }

// Tick implements feature.Loop.
func (l *loop) Tick(ctx context.Context, now time.Time) error {
	if at := l.clock(now); l.Next() > at && !l.Pending() {
		return nil
	}
	l.sw.ctx, l.sw.now = ctx, now
	err := l.Run(l.clock(now))
	s := l.Stats()
	l.latest.Set(l.sw.sw.Name(), state{s, l.Ports()})
	l.reportEvictions(now, s)
	return err
}

// reportEvery bounds the events about one thing.
const reportEvery = 10 * time.Second

// reportEvictions publishes that the table is too small, once in a while.
func (l *loop) reportEvictions(now time.Time, s cnpgen.LoopStats) {
	if s.Evicted == l.evicted || now.Sub(l.reported) < reportEvery {
		return
	}
	l.callbacks.Event(view.Event{
		Time: now, Severity: view.Warning, Subject: l.sw.sw.Name(), Kind: "pacc.evicted",
		Message: fmt.Sprintf("the flow table is full with %s: %d left it for others, the least congested first", units.Count(s.Flows, "flow"), s.Evicted-l.evicted),
	})
	l.evicted, l.reported = s.Evicted, now
}

func failed(sw string, err error) view.Event {
	return view.Event{Time: time.Now(), Severity: view.Error, Subject: sw, Kind: "pacc.failed", Message: err.Error()}
}

// Receive implements feature.Loop: reports of ports, and what is new or idle of flows and
// queue pairs.
func (l *loop) Receive(now time.Time, m feature.Message) {
	switch {
	case m.Report != nil:
		l.Polled(l.clock(now), l.clock(m.Report.Asked), m.Report.Port, units.Bytes(m.Report.QueueBytes[l.sw.queue]))
	case m.Digest != nil && m.Digest.GetDigestId() == ids.DigestFlowDigestT:
		for _, d := range m.Digest.GetData() {
			if f, ok := flowtable.DigestFlow(flowtable.Members(d)); ok {
				l.Learned(f)
			}
		}
	case m.Digest != nil && m.Digest.GetDigestId() == ids.DigestQueuePairDigestT:
		for _, d := range m.Digest.GetData() {
			if q, ok := flowtable.DigestQueuePair(flowtable.Members(d)); ok {
				l.LearnedQueuePairs(q)
			}
		}
	case m.Idle != nil:
		for _, e := range m.Idle.GetTableEntry() {
			switch e.GetTableId() {
			case ids.TableFlow:
				if f, ok := flowtable.ReadFlow(e); ok {
					l.Aged(f)
				}
			case ids.TableQueuePair:
				if q, ok := flowtable.ReadQueuePair(e); ok {
					l.AgedQueuePairs(q)
				}
			}
		}
	}
}
