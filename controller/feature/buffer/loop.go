package buffer

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
)

// loop looks after one switch's buffer where the program keeps the policy.
type loop struct {
	base
	pipe *pipeline.Pipeline
	size pollreport.Pools

	drain   time.Duration // time after which every queue of the switch is empty; 0 if PFC may stop one for ever
	silence time.Duration // silence of a port after which a probe means that its link works again; 0 for never
	failed  error         // error of a write since the last tick

	every, count time.Duration // interval of polls, and interval of readings of counters
	next         time.Time     // time of the next reading of counters
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
	l.show(&State{
		Policy: string(l.buffer.Policy), Time: l.polled, Size: l.size, Used: l.used, Peak: l.peak,
		Threshold: l.threshold(l.used.Shared), Alarms: l.alarms(),
	})
	return err
}

// Receives implements feature.Loop.
func (l *loop) Receives() feature.Kinds { return feature.Probes | feature.Reports }

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

// returns handles a link probe. After a silence it sends the port's peer the state of all classes at once: the peer
// may have been reset and forgotten its PAUSE, or have missed a RESUME.
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

func (l *loop) repeat(p *port) error { return l.ask(p, "refresh", ids.PacketOutRefresh) }

// ask sends a packet-out with a mode to a port. The program acts on the mode in the port's egress.
func (l *loop) ask(p *port, what string, mode uint64) error {
	if err := feature.Send(l.pipe, l.sw, []byte(what), p.Number, ids.HighestQueue, mode); err != nil {
		return fmt.Errorf("%s of port %d: %w", what, p.Number, err)
	}
	return nil
}

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

func cells(ports []*port, counters ...uint32) (list []*p4v1.Entity) {
	for _, p := range ports {
		for _, id := range counters {
			list = append(list, cell(id, int64(p.Number)))
		}
	}
	return list
}

func cell(counter uint32, i int64) *p4v1.Entity {
	return p4rtmsg.Entity(&p4v1.CounterEntry{CounterId: counter, Index: &p4v1.Index{Index: i}})
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

// drainTime returns a time after which every queue of a switch is empty: twice the time at the ports' rates, and at
// least the time after which a pause counts as stuck. It is 0 on targets that obey PAUSE frames, which can stop a
// queue for ever; simple_switch ignores them.
func drainTime(env *feature.Env) time.Duration {
	s, b := env.Switch, FromSwitch(env.Switch)
	if s.Target != config.BMv2 {
		return 0
	}
	longest := b.Stuck
	for _, p := range env.Graph.Ports(s.Name) {
		longest = max(longest, 2*p.Rate.TxTime(min(qos.FromConfig(env.Config).QueueLimit, b.Size)).Duration())
	}
	return longest
}

// reclaim clears the accounts of ports that count packets that the switch no longer has. simple_switch drops packets
// at full queues without telling the pipeline; the peer would stay paused for ever.
func (l *loop) reclaim(now time.Time) error {
	var errs error
	for _, p := range l.ports {
		if l.drain <= 0 || p.Paused == 0 || p.moved.IsZero() || now.Sub(p.polled) > stalePolls*l.every {
			continue
		}
		since := p.moved
		for _, at := range p.since {
			if at.After(since) {
				since = at
			}
		}
		if now.Sub(since) <= l.drain {
			continue
		}
		p.moved = now // waits before it acts again if this had no effect
		errs = errors.Join(errs, l.ask(p, "forget", ids.PacketOutForget))
		l.callbacks.Event(&pb.Event{
			Time: pb.Stamp(now), Severity: pb.Event_SEVERITY_WARNING, Subject: l.sw.Name(), Kind: "buffer.reclaimed", Port: p.Number,
			Message: fmt.Sprintf("%s: paused, and none of its packets has left for %v, longer than any queue needs to drain: the switch has lost packets that are still accounted, so the port's accounts are cleared; give its queues more room (simple_switch_CLI: set_queue_depth)",
				p.name(), now.Sub(since).Round(roundedTime)),
		})
	}
	return errs
}

// chipLoop decides which ports of a chip are victims. The program counts departures, the MACs count pauses, and the
// traffic manager gives victims the whole shared pool.
//
// A port has triggered PAUSE in a period when a lossless class was paused for longer at its end than at its
// beginning, or when the port sent PFC or PAUSE frames, which MACs repeat before a PAUSE expires (335 µs at 100 Gb/s,
// 3.4 ms at 10 Gb/s). It is normal until a period without either, which counts as RESUME.
//
// This is coarser than the paper's state per packet (Fig. 10), because states change only at the end of a period. A
// victim that triggers PAUSE may fill the pool for a period and the time of a write. A port stays normal up to two
// periods longer than it is paused. Departures are counted over all classes of the port, so other traffic may make it a
// victim too soon. If counters run backwards, because the chip or its driver was restarted, the port becomes normal and
// its meter starts again.
type chipLoop struct {
	base
	manager feature.TrafficManager
	every   time.Duration
	next    time.Time // time of the next reading, after one failed
	seen    time.Time // last reading
	victims []uint32  // victims that the traffic manager was last given
}

// backOff bounds how often a failing switch is read, because other loops wait for a reading: after a failure the
// pause is backOff times as long as the reading took.
const backOff = 5

func (l *chipLoop) tick(ctx context.Context, now time.Time) error {
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
	var victims []uint32
	for _, p := range l.ports {
		if p.Victim {
			victims = append(victims, p.Number)
		}
	}
	if !slices.Equal(victims, l.victims) {
		refused := l.manager.Victims(victims)
		if refused == nil {
			l.victims = victims
		}
		err = cmp.Or(err, refused)
	}
	l.show(&State{Policy: string(l.buffer.Policy), Time: l.seen})
	return err
}

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
