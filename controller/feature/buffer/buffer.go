// Package buffer is the feature that gives each switch its buffer policy and looks after it: it writes the policy's
// entries, repeats PAUSEs before they expire, and watches for PFC that goes wrong. The program runs SPFC's state
// machine for every ingress port. A chip's program cannot, so there the feature runs it from departure counters.
//
// # A policy that changes while traffic runs
//
// The policy is the default entry of buffer_policy; its parameters are entries of other tables. Package reconcile
// writes entries first, then default entries, and deletes last. So a new policy finds its headroom. When a policy is
// switched off, accounted bytes are still subtracted as they leave, and RESUMEs are still sent, because their clone
// sessions always exist. Between two policies the old one runs for one write with the new headroom, which suffices
// for the link as well. Bytes held under the old policy take room from the new one: with none left T(t) is 0, which
// pauses until they have drained.
//
// SPFC's victim states are registers of the program. On a chip the loop sets them in the traffic manager
// (feature.TrafficManager), and they end with the loop.
package buffer

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
	"github.com/headgate/headgate/units"
)

// feat is the feature. mu guards the memories; each is owned by the loop of its switch.
type feat struct {
	callbacks feature.Callbacks
	latest    feature.LastValue[*State]
	pausers   pausers

	mu       sync.Mutex
	memories map[string]*memory
}

// The capabilities.
var (
	accountCapability = feature.Capability{
		Name: "buffer.policy",
		Objects: pipeline.Objects{
			Tables:   []string{ids.TableBufferPolicyName, ids.TableBufferPortName},
			Counters: []string{ids.CounterLosslessDropsName},
		},
		TrafficManager: "holds the pools, thresholds and headroom", Instead: "buffer.policy must be off",
	}
	pauseCapability = feature.Capability{
		Name: "buffer.pfc",
		Objects: pipeline.Objects{
			Tables:   []string{ids.TablePFCPortName},
			Counters: []string{ids.CounterPFCPausesName, ids.CounterPFCResumesName, ids.CounterPFCRefreshesName},
		},
		Queues:         ids.HighestQueue + 1, // by which PFC frames leave
		TrafficManager: "has the ports send PAUSE and RESUME", Instead: "it sends no PFC frames, and buffer.policy must be off",
	}
	estimateCapability = feature.Capability{
		Name:    "buffer.dsh_estimate",
		Objects: pipeline.Objects{Tables: []string{ids.TableBufferPolicyName, ids.TableLog2BytesName, ids.TableLog2TicksName, ids.TableExp2Name, ids.TableHeadroomForName}},
		Instead: "the policies dsh and dsh+spfc pause at their thresholds, not before by DSH's estimate",
	}
	victimCapability = feature.Capability{
		Name: "buffer.spfc_victims", Objects: pipeline.Objects{Tables: []string{ids.TableBufferPolicyName}},
		TrafficManager: "gives a victim port the whole shared pool", Instead: "the policies spfc and dsh+spfc are not available",
	}
	obeyCapability = feature.Capability{
		Name: "buffer.obeyed", Externs: []uint32{externs.LosslessID, externs.ObeyedID},
		Without: feature.EmbeddedOnly("P4Runtime cannot say which classes obey PFC"),
		Instead: "a class under PFC has the queue of its number",
	}
	departCapability = feature.Capability{
		Name: "buffer.spfc_departures", Objects: pipeline.Objects{Counters: []string{ids.CounterIngressDeparturesName}},
		Instead: "the policies spfc and dsh+spfc are not available",
	}
)

// New returns the feature.
func New(callbacks feature.Callbacks) *feature.Feature { return newFeat(callbacks).feature() }

func newFeat(callbacks feature.Callbacks) *feat {
	return &feat{callbacks: callbacks, memories: map[string]*memory{}}
}

func (f *feat) feature() *feature.Feature {
	return &feature.Feature{
		Name:         "buffer",
		Capabilities: []feature.Capability{accountCapability, pauseCapability, estimateCapability, victimCapability, departCapability, obeyCapability},
		Section:      config.Section{Key: "buffer", Read: read, ReadSwitch: readSwitch, Check: check},
		Desired:      desired, Attach: f.attach, Status: f.status, Shape: shape, ShapedBy: shapedBy, Advise: f.advise, Validate: validate,
		HostParameters: hostParameters,
	}
}

// LosslessAnywhere returns the classes that are under PFC on some switch, a bit for each.
func LosslessAnywhere(c *config.Config) (classes uint8) {
	for i := range c.Switches {
		if b := FromSwitch(&c.Switches[i]); b.On() {
			classes |= b.Lossless
		}
	}
	return classes
}

// hostParameters returns the classes whose PAUSE hosts must obey. Without a policy hosts keep their own
// configuration.
func hostParameters(c *config.Config) []*pb.HostParameter {
	if classes := units.Classes(LosslessAnywhere(c)); classes != 0 {
		return []*pb.HostParameter{{Name: "lossless", Value: classes.String()}}
	}
	return nil
}

// memory is the state of a switch that outlives its loops, which end with every session and configuration. It has a
// lock, because a switch that changes its address may have two loops for a moment.
type memory struct {
	sync.Mutex
	totals map[uint32]totals // by port
	sums   map[uint32]sums   // by port
	alarms map[alarmKey]Alarm
}

// sums are a port's totals that the controller itself adds up.
type sums struct {
	paused   [headroom.Classes]time.Duration
	turns    uint64
	mostLate time.Duration
}

func (f *feat) memory(sw string) *memory {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.memories[sw]
	if m == nil {
		m = &memory{totals: map[uint32]totals{}, sums: map[uint32]sums{}, alarms: map[alarmKey]Alarm{}}
		f.memories[sw] = m
	}
	return m
}

// clear forgets the counters, when the switch is no longer followed.
func (m *memory) clear() {
	m.Lock()
	defer m.Unlock()
	clear(m.totals)
}

// Periods of a loop.
const (
	// defaultPoll is how often ports are polled where nothing needs more.
	defaultPoll = 100 * time.Millisecond
	// minPoll bounds how often they are.
	minPoll = MinPeriod
	// minRefresh is the shortest PAUSE refresh interval that the controller can keep.
	minRefresh = 2 * minPoll
)

func (f *feat) attach(env *feature.Env, sw feature.Switch) feature.Loop {
	s := env.Switch
	b := base{callbacks: f.callbacks, latest: &f.latest, sw: sw, buffer: FromSwitch(s), memory: f.memory(sw.Name()), pausers: &f.pausers, env: env}
	h, numbers, on := Headroom(env.Config, s)
	if !accountCapability.InProgram(env.Pipeline) || !pauseCapability.InProgram(env.Pipeline) {
		// Nothing of the buffer but departures can be seen over P4Runtime.
		f.latest.Set(sw.Name(), &State{Policy: string(FromSwitch(s).Policy)})
		manager, managed := sw.(feature.TrafficManager)
		if !managed || !on || !FromSwitch(s).Policy.Victims() {
			b.memory.clear()
			return nil
		}
		b.macs = true
		b.open(h, numbers, env.Graph.Ports(sw.Name()))
		l := &chipLoop{base: b, manager: manager, every: max(minPoll, h.SPFC.Period.Duration())}
		return feature.Every{Period: l.every, Do: l.tick}
	}
	l := &loop{base: b, pipe: env.Pipeline, silence: 3 * env.Config.Controller.ProbeInterval / 2}
	if !on {
		l.clear(time.Now())
		f.latest.Set(sw.Name(), &State{Policy: string(Off)})
		return nil
	}
	layout, err := h.Layout()
	if err != nil {
		return nil // Desired has said so
	}
	l.size = pollreport.Pools{
		Private: uint32(layout.Private), Shared: uint32(layout.Shared), Headroom: uint32(layout.Headroom), Insurance: uint32(layout.Insurance),
	}
	l.open(h, numbers, env.Graph.Ports(sw.Name()))
	l.drain = drainTime(env)
	l.schedule(env.Config.Controller.PollInterval)
	l.adopt(time.Now())
	l.announce(time.Now())
	return l
}

// schedule chooses how often ports are polled and counters read.
func (l *loop) schedule(poll time.Duration) {
	poll = cmp.Or(max(poll, 0), defaultPoll)
	l.count = max(poll, defaultPoll)
	l.every = min(poll, l.count)
	for _, p := range l.ports {
		if p.half >= minRefresh {
			// Often enough that a report shows a lost refresh while there is time for another.
			l.every = min(l.every, p.half/4)
		}
	}
	// The polling interval divides the time between readings, so that no reading comes early.
	l.every = max(minPoll, l.count/((l.count+l.every-1)/l.every))
}

// announce reports the policy's demands that the controller cannot meet.
func (l *loop) announce(now time.Time) {
	for _, p := range l.ports {
		if p.half < minRefresh {
			l.callbacks.Event(&pb.Event{
				Time: pb.Stamp(now), Severity: pb.Event_SEVERITY_WARNING, Subject: l.sw.Name(), Kind: "pfc.refresh_off", Port: p.Number,
				Message: fmt.Sprintf("%s: a PAUSE of %d quanta lasts %v at %v, too short for the controller to repeat it; only packets that come and go make the switch repeat it",
					p.name(), l.buffer.PauseQuanta, units.FromDuration(2*p.half), p.rate),
			})
		}
	}
}

// threshold returns T(t) for bytes in use of the shared pool.
func (l *loop) threshold(used uint32) uint64 {
	if l.mmu.Policy == headroom.Static {
		return uint64(l.mmu.Threshold)
	}
	return uint64(l.mmu.Alpha.Threshold(units.Bytes(l.size.Shared) - units.Bytes(used)))
}

// base is the common part of loop and chipLoop. The loop owns the ports.
type base struct {
	callbacks feature.Callbacks
	latest    *feature.LastValue[*State]
	sw        feature.Switch
	buffer    Config
	memory    *memory
	pausers   *pausers
	env       *feature.Env
	mmu       headroom.Config
	ports     []*port
	by        map[uint32]*port // ports by number
	macs      bool             // the switch is a chip: only the MAC counters show the ports' pauses
}

// open gives the base its ports. They continue with the sums of the previous loop.
func (b *base) open(h headroom.Config, numbers []uint32, ports []topology.Port) {
	b.mmu, b.by = h, map[uint32]*port{}
	b.memory.Lock()
	defer b.memory.Unlock()
	for i, at := range ports {
		p := newPort(numbers[i], at.Peer, h, i, b.buffer.PauseQuanta)
		s := b.memory.sums[p.Number]
		p.PausedTime, p.Turns, p.MostLate = s.paused, s.turns, s.mostLate
		b.ports = append(b.ports, p)
		b.by[p.Number] = p
	}
}

func (b *base) numbers() []uint32 {
	list := make([]uint32, len(b.ports))
	for i, p := range b.ports {
		list[i] = p.Number
	}
	return list
}

// counted passes the counters to their ports. A counter that ran backwards means that the switch was restarted: then
// the ports' states are reset.
func (b *base) counted(at time.Time, read map[uint32]totals) {
	b.memory.Lock()
	defer b.memory.Unlock()
	var back []string
	for _, p := range b.ports {
		now, ok := read[p.Number]
		if !ok {
			continue
		}
		last, known := b.memory.totals[p.Number]
		if !known {
			last = now
		}
		if now.below(last) {
			back = append(back, fmt.Sprintf("port %d had %d B departed and now has %d B", p.Number, last.departed, now.departed))
			p.restart()
			last = totals{drops: now.drops}
		}
		b.memory.totals[p.Number] = now
		if b.macs {
			p.heard(now, last)
		}
		if elapsed := p.count(at, now, last); b.macs && elapsed > 0 {
			p.judge(now, last, elapsed, b.mmu.SPFC.Period.Duration())
		}
	}
	if len(back) > 0 {
		b.callbacks.Event(&pb.Event{
			Time: pb.Stamp(at), Severity: pb.Event_SEVERITY_WARNING, Subject: b.sw.Name(), Kind: "buffer.restarted",
			Message: "counters ran backwards, so the switch was restarted: its port states are reset; " + strings.Join(back, ", "),
		})
	}
}

// show publishes the ports with the other values, and remembers their sums.
func (b *base) show(v *State) {
	b.memory.Lock()
	for _, p := range b.ports {
		v.Ports = append(v.Ports, p.PortState)
		b.memory.sums[p.Number] = sums{p.PausedTime, p.Turns, p.MostLate}
	}
	b.memory.Unlock()
	b.latest.Set(b.sw.Name(), v)
}
