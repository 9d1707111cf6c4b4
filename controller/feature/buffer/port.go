package buffer

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/p4src/pollreport"
	"github.com/headgate/headgate/units"
)

// totals are a port's counters as they were read last.
type totals struct {
	departed                   uint64
	pauses, resumes, refreshes uint64
	drops                      [headroom.Classes]uint64
	mac                        trafficmanager.PauseCounters // counters of a chip's MAC; zero elsewhere
}

// below reports whether a counter has fallen. No counter of a switch falls while the switch runs.
func (t totals) below(last totals) bool {
	for i, n := range t.drops {
		if n < last.drops[i] {
			return true
		}
	}
	for c, d := range t.mac.Time {
		if d < last.mac.Time[c] {
			return true
		}
	}
	return t.mac.Frames < last.mac.Frames || t.mac.PortFrames < last.mac.PortFrames ||
		t.departed < last.departed || t.pauses < last.pauses || t.resumes < last.resumes || t.refreshes < last.refreshes
}

// port is one ingress port of a switch. Its loop owns it.
type port struct {
	PortState
	rate units.Rate
	half time.Duration // half of a PAUSE's time, after which it is repeated

	// From counters. The meter is for a chip.
	limit   uint64 // SPFC's limit, bytes a period
	meter   headroom.Meter
	counted time.Time // zero before the first reading
	moved   time.Time // when a reading last showed departures, or reclaim last acted
	storm   []frames

	// From polls.
	polled time.Time // zero before the first report
	ticks  uint64    // the switch's clock at the last report
	age    time.Duration
	since  [headroom.Classes]time.Time // paused without a break; zero when not
	sent   time.Time                   // our last refresh
	probed time.Time                   // when the last probe came in
	lost   int                         // refreshes without effect since the PAUSE
	drop   [headroom.Classes]time.Time // last reading with new lossless drops
}

// frames is how many PAUSE frames a port had sent at a time.
type frames struct {
	at time.Time
	n  uint64
}

func newPort(number uint32, peer string, h headroom.Config, i int, quanta uint16) *port {
	rate := h.Ports[i].Rate
	limit := headroom.DepartLimit(rate, h.SPFC.Period, h.SPFC.K, 0)
	return &port{
		PortState: PortState{Number: number, Peer: peer, Lossless: h.Lossless}, rate: rate,
		half: rate.PauseTime(quanta).Duration() / 2, limit: limit, meter: headroom.NewMeter(limit),
	}
}

func (p *port) name() string { return fmt.Sprintf("port %d (%s)", p.Number, p.Peer) }

// observe takes a report of the port, which came just now. Ticks are microseconds.
func (p *port) observe(now time.Time, r *pollreport.Report) {
	b := &r.Buffer
	paused := b.Paused() & p.Lossless
	first := p.polled.IsZero() || r.Time < p.ticks
	step := time.Duration(0)
	if !first {
		step = time.Duration(r.Time-p.ticks) * time.Microsecond
	}
	for c := range p.since {
		is, was := paused>>c&1 != 0, p.Paused>>c&1 != 0 && !first
		switch {
		case is && was:
			p.PausedTime[c] += step
		case is != was:
			p.PausedTime[c] += step / 2 // it changed somewhere between
		}
		if !is {
			p.since[c] = time.Time{}
		} else if p.since[c].IsZero() {
			p.since[c] = now
		}
	}
	p.polled, p.ticks = now, r.Time
	p.Paused, p.PortPaused = paused, b.PortPaused
	p.age = 0
	if paused != 0 && r.Time > b.LastPause {
		p.age = time.Duration(r.Time-b.LastPause) * time.Microsecond
	}
	if !p.sent.IsZero() {
		if paused == 0 || p.age < now.Sub(p.sent) {
			p.lost, p.sent = 0, time.Time{} // something was sent since
		}
	}
	p.Private, p.Shared, p.Headroom, p.Insured = b.Private, b.Shared, b.Headroom, b.Insured
}

// pauseAge returns how long ago the port's PAUSE was sent last, as far as reports tell.
func (p *port) pauseAge(now time.Time) time.Duration { return p.age + now.Sub(p.polled) }

// heard notes which classes a chip's MAC has paused since the last reading. The counters of PFC frames show pauses
// shorter than a microsecond too, but not their class.
func (p *port) heard(now, last totals) {
	p.Paused, p.PortPaused = 0, now.mac.PortFrames > last.mac.PortFrames
	for c, d := range now.mac.Time {
		if p.Lossless>>c&1 != 0 && d > last.mac.Time[c] {
			p.Paused |= 1 << c
			p.PausedTime[c] += d - last.mac.Time[c]
		}
	}
	if p.PortPaused || p.Paused == 0 && now.mac.Frames > last.mac.Frames {
		p.Paused = p.Lossless
	}
}

// count takes the port's counters and the last ones, of this loop or another, and returns the time between, 0 for no
// last ones.
func (p *port) count(at time.Time, now, last totals) (elapsed time.Duration) {
	p.Departed, p.Pauses, p.Resumes, p.Refreshes, p.LosslessDrops = now.departed, now.pauses, now.resumes, now.refreshes, now.drops
	p.storm = append(p.storm, frames{at, now.pauses})
	for c, n := range now.drops {
		if n > last.drops[c] {
			p.drop[c] = at
		}
	}
	if now.resumes > last.resumes && bits.OnesCount8(p.Lossless) == 1 {
		c := bits.TrailingZeros8(p.Lossless)
		if !p.since[c].IsZero() {
			p.since[c] = at // it was not paused for a moment
		}
	}
	if p.counted.IsZero() || now.departed != last.departed {
		p.moved = at
	}
	if !p.counted.IsZero() {
		elapsed = at.Sub(p.counted)
	}
	p.counted = at
	return elapsed
}

// judge runs SPFC's state machine for a chip's port on the bytes that departed.
func (p *port) judge(now, last totals, elapsed, period time.Duration) {
	// A late reading covers more than a period, so scale it to one.
	departed := float64(now.departed-last.departed) * float64(period) / float64(elapsed)
	if now.pauses > last.pauses || p.Paused != 0 {
		p.meter.Pause()
	}
	if p.Paused == 0 {
		p.meter.Resume()
	}
	p.meter.Depart(uint64(departed))
	p.meter.Tick()
	p.setVictim(p.meter.Victim())
}

// setVictim records whether SPFC makes the port a victim, and counts the changes.
func (p *port) setVictim(victim bool) {
	if victim != p.Victim {
		p.Victim = victim
		p.Turns++
	}
}

// restart forgets the state that a restarted switch has lost.
func (p *port) restart() {
	p.meter = headroom.NewMeter(p.limit)
	p.counted, p.storm = time.Time{}, nil
	p.setVictim(false)
}

// State is the state of a switch's buffer: its policy, the last poll of each port, and the active alarms. Policy is
// as in the configuration; if it is "off", the other fields are empty.
type State struct {
	Policy           string
	Time             time.Time        // time of the last poll that was answered; zero if none was
	Size, Used, Peak pollreport.Pools // bytes under the policy, at the last poll, and at most since the switch started
	Threshold        uint64           // T(t) at the last poll, in bytes
	Ports            []PortState
	Alarms           []Alarm
}

// PortState is one ingress port. Counts begin at the start of the switch; Turns, PausedTime and MostLate begin when
// the controller begins to follow the port. Package api has more (BufferPort, BufferClass).
type PortState struct {
	Number                     uint32
	Peer                       string
	Lossless                   uint8 // a bit for each class under PFC
	Victim                     bool  // SPFC lets the port have the whole shared pool
	Turns                      uint64
	Paused                     uint8 // the classes that the peer was told to stop, a bit for each
	PortPaused                 bool  // DSH has paused the port as a whole
	PausedTime                 [8]time.Duration
	Pauses, Resumes, Refreshes uint64        // PFC frames; Refreshes repeat a PAUSE
	Late, MostLate             time.Duration // delay of a refresh after half of a PAUSE's time
	Private, Shared, Headroom  [8]uint32     // bytes of each class
	Insured                    uint32        // part of Shared that is insurance headroom, bytes
	Departed                   uint64        // bytes of lossless classes that have left the switch
	LosslessDrops              [8]uint64     // packets: an error

	out egress
}

// Kinds of alarms.
const (
	StormAlarm = "pfc.storm"            // more PAUSE frames than section buffer.watchdog allows
	StuckAlarm = "pfc.stuck"            // paused for longer than section buffer.watchdog allows
	LateAlarm  = "pfc.refresh_late"     // a PAUSE expired before it was repeated
	DropAlarm  = "buffer.lossless_drop" // a packet of a lossless class was dropped
)

var alarmKinds = []string{StormAlarm, StuckAlarm, LateAlarm, DropAlarm}

// Alarm is a lasting fault of PFC. An event with the same Kind reports its begin, and one with the suffix "_over" its
// end.
type Alarm struct {
	Kind   string
	Port   uint32
	Class  int // under PFC; −1 if the alarm is about the port
	Since  time.Time
	Text   string
	pauser string // the host whose PAUSEs cause the alarm, "" for none
}

// State returns the state of a switch's buffer, nil if it is unknown.
func (f *feat) State(sw string) *State {
	s, _ := f.latest.Get(sw)
	return s
}

// status is feature.Feature.Status. Without a policy it sets only the policy.
func (f *feat) status(sw string, out *pb.FeatureStatus) {
	s := f.State(sw)
	if s == nil {
		return
	}
	b := &pb.BufferStatus{Switch: &pb.BufferSwitch{Policy: s.Policy}}
	out.Buffer = b
	if len(s.Ports) == 0 {
		return
	}
	b.Switch.ThresholdBytes, b.Switch.Polled = &s.Threshold, pb.Stamp(s.Time)
	of := func(p pollreport.Pools) [4]uint32 { return [4]uint32{p.Private, p.Shared, p.Headroom, p.Insurance} }
	size, used, peak := of(s.Size), of(s.Used), of(s.Peak)
	for i, name := range []string{"private", "shared", "headroom", "insurance"} {
		b.Pools = append(b.Pools, &pb.BufferPool{Policy: s.Policy, Pool: name, SizeBytes: uint64(size[i]), UsedBytes: uint64(used[i]), PeakBytes: uint64(peak[i])})
	}
	for i := range s.Ports {
		s.Ports[i].status(b)
	}
	on := map[string]uint64{}
	for _, a := range s.Alarms {
		on[a.Kind]++
		alarm := &pb.BufferAlarm{Alarm: a.Kind, Port: a.Port, Since: pb.Stamp(a.Since), Detail: a.Text}
		if a.Class >= 0 {
			alarm.Class = proto.Uint32(uint32(a.Class))
		}
		b.Alarms = append(b.Alarms, alarm)
	}
	for _, kind := range alarmKinds {
		b.Watchdog = append(b.Watchdog, &pb.BufferAlarmCount{Kind: kind, On: on[kind]})
	}
}

// status adds the port and its classes, except lossy classes that hold nothing.
func (p *PortState) status(b *pb.BufferStatus) {
	var paused []string
	for c := range headroom.Classes {
		lossless, stopped := p.Lossless>>c&1 != 0, p.Paused>>c&1 != 0
		if stopped {
			paused = append(paused, strconv.Itoa(c))
		}
		if !lossless && p.Private[c]+p.Shared[c] == 0 {
			continue
		}
		class := &pb.BufferClass{
			Port: p.Number, Peer: p.Peer, Class: uint32(c),
			PrivateBytes: uint64(p.Private[c]), SharedBytes: uint64(p.Shared[c]), HeadroomBytes: uint64(p.Headroom[c]),
		}
		if lossless {
			class.Paused, class.PausedTime, class.LosslessDrops = &stopped, pb.Duration(p.PausedTime[c]), &p.LosslessDrops[c]
		}
		b.Classes = append(b.Classes, class)
	}
	if p.PortPaused {
		paused = []string{"port"}
	}
	b.Ports = append(b.Ports, &pb.BufferPort{
		Port: p.Number, Peer: p.Peer, Paused: strings.Join(paused, ","), Pauses: p.Pauses, Resumes: p.Resumes, Refreshes: p.Refreshes,
		Late: pb.Duration(p.Late), MostLate: pb.Duration(p.MostLate), DepartedBytes: p.Departed, Victim: p.Victim, Turns: p.Turns,
	})
}
