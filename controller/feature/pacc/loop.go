package pacc

import (
	"context"
	"fmt"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/cnpgen/flowtable"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/preview/observed"
	"github.com/headgate/headgate/units"
)

type loop struct {
	*cnpgen.Loop
	callbacks feature.Callbacks
	latest    *feature.LastValue[state]
	sw        *overP4Runtime
	began     time.Time
	gap       time.Duration

	full    bool      // an event has reported evicted or refused flows, and none their end
	pressed uint64    // flows that were evicted or refused
	last    time.Time // when pressed last grew
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
	l.reportFull(now, s)
	return err
}

// A flow table counts as full until it has evicted and refused no flow for quiet.
const quiet = time.Minute

// reportFull publishes one event when the flow table is full, and one when it has room again.
func (l *loop) reportFull(now time.Time, s cnpgen.LoopStats) {
	event := &pb.Event{Time: pb.Stamp(now), Subject: l.sw.sw.Name(), Severity: pb.Event_SEVERITY_WARNING, Kind: "pacc.full"}
	pressed := s.Evicted + s.Refused
	switch {
	case pressed != l.pressed && !l.full:
		event.Message = fmt.Sprintf("the flow table, or the share of a port or of a source in it, is full with %s: "+
			"the one that has sent nothing for longest makes room, and new ones get no notifications where none does", units.Count(s.Flows, "flow"))
	case pressed == l.pressed && l.full && now.Sub(l.last) > quiet:
		event.Kind, event.Severity, event.Message = "pacc.full_over", pb.Event_SEVERITY_INFO, fmt.Sprintf("flows find room: %d had made it for others so far, %d were refused", s.Evicted, s.Refused)
	}
	if event.Message != "" {
		l.full = !l.full
		l.callbacks.Event(event)
	}
	if pressed != l.pressed {
		l.pressed, l.last = pressed, now
	}
}

func failed(sw string, err error) *pb.Event {
	return &pb.Event{Time: pb.Stamp(time.Now()), Severity: pb.Event_SEVERITY_ERROR, Subject: sw, Kind: "pacc.failed", Message: err.Error()}
}

// Receives implements feature.Loop.
func (l *loop) Receives() feature.Kinds { return feature.Reports | feature.Idles | feature.Others }

// Receive implements feature.Loop. It gets reports of ports, and new or idle flows and queue pairs.
func (l *loop) Receive(now time.Time, m feature.Message) {
	switch {
	case m.Report != nil:
		l.Polled(l.clock(now), l.clock(m.Report.Asked), m.Report.Port, units.Bytes(m.Report.QueueBytes[l.sw.queue]))
	case m.Digest != nil:
		for _, of := range l.sw.families {
			l.receiveDigest(of, m.Digest)
		}
	case m.Idle != nil:
		for _, e := range m.Idle.GetTableEntry() {
			l.receiveIdle(e)
		}
	}
}

func (l *loop) receiveDigest(of *flowtable.Family, list *p4v1.DigestList) {
	for _, d := range list.GetData() {
		switch list.GetDigestId() {
		case of.FlowDigest:
			if f, ok := of.ReadFlowDigest(flowtable.Members(d)); ok {
				l.Learned(f)
			}
		case of.QueuePairDigest:
			if q, ok := of.ReadQueuePairDigest(flowtable.Members(d)); ok {
				l.LearnedQueuePairs(q)
			}
		}
	}
}

func (l *loop) receiveIdle(e *p4v1.TableEntry) {
	for _, of := range l.sw.families {
		switch e.GetTableId() {
		case of.Flow:
			if f, ok := flowtable.ReadFlow(e); ok {
				l.Aged(f)
			}
		case of.QueuePair:
			if q, ok := flowtable.ReadQueuePair(e); ok {
				l.AgedQueuePairs(q)
			}
		}
	}
}

// reader reads the counters of flows of a switch that runs its loop itself.
type reader struct {
	sw    *overP4Runtime
	meter *cnpgen.Meter
	table *observed.Table
	buf   []cnpgen.Counters
	due   time.Time
}

// counted is feature.Feature.Counted: packets of the queue that PACC watches, false until counters were read.
func (f *feat) counted(sw string) (observed.Traffic, bool) {
	t, ok := f.tables.Get(sw)
	if !ok {
		return observed.Traffic{}, false
	}
	traffic := t.Traffic()
	return traffic, time.Since(traffic.Read) < max(stale, 3*t.Together)
}

// stale is the least time for which the last counters of a switch remain valid if it does not answer.
const stale = time.Minute

// readEvery is how often the counters are read, as often as hosts report. After a reading the pause is at least
// readShare times as long as the reading took.
const (
	readEvery = observed.Together
	readShare = 50
)

func (r *reader) tick(ctx context.Context, now time.Time) (err error) {
	if now.Before(r.due) {
		return nil
	}
	r.sw.ctx = ctx
	began := time.Now()
	r.buf, err = r.sw.Counters(r.buf[:0])
	r.due = now.Add(readShare * time.Since(began))
	if err == nil {
		r.table.Counted(now, r.meter.Read(r.buf))
	}
	return err
}

// sweeper removes learned entries from a switch that no longer has a loop; no desired state contains them.
type sweeper struct {
	sw     feature.Switch
	tables []uint32
	done   bool
}

// sweepInterval is how often a switch that cannot be read is tried again.
const sweepInterval = time.Second

const sweepMost = 512

func (s *sweeper) tick(ctx context.Context, _ time.Time) error {
	if s.done {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var requests []*p4v1.Entity
	for _, table := range s.tables {
		requests = append(requests, p4rtmsg.Entity(&p4v1.TableEntry{TableId: table}))
	}
	list, err := s.sw.Read(ctx, requests...)
	if err != nil {
		return err
	}
	var updates []*p4v1.Update
	for _, e := range list {
		updates = append(updates, p4rtmsg.Delete(&p4v1.TableEntry{TableId: e.GetTableEntry().GetTableId(), Match: e.GetTableEntry().GetMatch()}))
	}
	if len(updates) == 0 {
		s.done = true
		return nil
	}
	return s.sw.Write(ctx, updates[:min(len(updates), sweepMost)])
}

type state struct {
	cnpgen.LoopStats
	ports []cnpgen.PortStats
}

// status is feature.Feature.Status; there is none if the switch runs the loop itself.
func (f *feat) status(sw string, out *pb.FeatureStatus) {
	s, ok := f.latest.Get(sw)
	if !ok {
		return
	}
	out.Pacc = &pb.PACCStatus{Loop: &pb.PACCLoop{
		Ticks: s.Ticks, Late: s.Late, Missed: s.Missed, Lateness: pb.Duration(s.Lateness.Duration()),
		MostLate: pb.Duration(s.WorstLateness.Duration()), Unanswered: s.Unanswered, ReadErrors: s.ReadErrors,
		Cnps: s.CNPs, CnpErrors: s.CNPErrors, Flows: uint64(s.Flows), Learned: s.Learned, Aged: s.Aged, Evicted: s.Evicted,
		Refused: s.Refused, QueuePairs: uint64(s.QueuePairs),
	}}
	for _, p := range s.ports {
		out.Pacc.Ports = append(out.Pacc.Ports, &pb.PACCPort{
			Port: p.Port, QueueBytes: uint64(p.Queue), AverageBytes: uint64(p.QueueAvg), All: p.All, Granted: p.Stats.CNPs, Filtered: p.Filtered,
		})
	}
}
