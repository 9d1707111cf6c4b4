// Package device manages one switch. It keeps a session, and reconciles the switch when the session
// becomes primary, when the desired state changes, and periodically. A switch that was restarted needs
// no special case: reconciling pushes the missing pipeline and writes the missing entries.
package device

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/poll"
	"github.com/headgate/headgate/controller/p4runtime/reconcile"
	"github.com/headgate/headgate/controller/p4runtime/session"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/units"
)

// Options configure a device.
type Options struct {
	Switch     config.Switch
	ElectionID uint64
	Terms      session.Terms // terms of a cluster's leader; nil without a cluster
	Pipeline   *pipeline.Pipeline
	Features   []*feature.Feature
	// TrafficManager controls the switch's traffic manager; nil when the switch has none.
	// The device closes it at the end of Run.
	TrafficManager trafficmanager.Driver
	// TrafficManagerTime bounds one comparison of the traffic manager, also where its server
	// does not answer; default 5 s.
	TrafficManagerTime time.Duration
	// Reads bounds how many devices read their switches at one time; nil does not.
	Reads *ReadSemaphore
	// Dial says how to reach the switch; see session.Options.
	Dial []grpc.DialOption
	// RetryMin and RetryMax bound the waits between connections, default 100 ms and 5 s. The
	// waits between attempts to reconcile a degraded switch are ten times as long, because
	// an attempt reads all that the switch holds.
	RetryMin, RetryMax time.Duration
	// Heartbeat is the session's heartbeat. A switch that answers no poll for three heartbeats counts
	// as one that sends no packets.
	Heartbeat time.Duration
	// Events receives every event; it must not block.
	Events func(*pb.Event)
	// Ports receives the states of the switch's ports, by number, whenever they change; nil if the switch reports
	// none. It must not block, and not change the map.
	Ports func(map[uint32]pb.PortStatus_State)
	Log   *slog.Logger
}

// Desired is the desired state of a switch. It is immutable.
type Desired struct {
	Env   *feature.Env
	State *reconcile.State
	// TrafficManager is the desired state of the traffic manager; nil leaves it unchanged.
	TrafficManager *trafficmanager.Config
	// Err says why there is no state for this switch; State is nil then.
	Err error
}

// Stats are a device's counters since its start.
type Stats struct {
	Reconciles      uint64 // attempts
	Reads           uint64 // attempts that read the switch
	Updates         uint64 // entities written
	Pushes          uint64 // pushes of the pipeline
	DroppedMessages uint64 // messages, or pieces of them, that came faster than a loop handled them
}

// Device is one switch. A goroutine for the session, one for the reconciler and one for each loop run it. They
// share the fields that mu guards; each change wakes the waiting goroutines.
type Device struct {
	opts    Options
	session *session.Session
	poller  *poll.Poller
	log     *slog.Logger
	silence time.Duration // without an answer for poller.Patience times this, the switch counts as sending no packets

	kick     chan struct{}             // wakes the reconciler; holds one token
	reattach chan struct{}             // wakes the goroutine that starts the loops; holds one token
	running  atomic.Pointer[[]*runner] // the loops of the attachment; nil while there are none

	mu             sync.Mutex
	changed        chan struct{} // closed and replaced at every change
	role           session.Role
	why            error
	reported       bool // the session has reported its role
	reached        bool // the session was there once
	epoch          uint64
	desired        Desired
	desiredSeq     uint64
	done           outcome
	forwards       bool   // see Health
	refusesPackets string // why the switch accepts no packets; "" when it does
	sendsNone      string // evidence that the switch sends no packets; "" without
	slow           string // evidence that the switch is slow or hangs; "" without
	inLine         bool   // the switch had its desired state after the last attempt
	heard          bool   // the switch has sent a packet in this epoch
	status         *pb.SwitchStatus
	portState      *pb.Capability
	attached       *attachment
	stats          Stats
}

// outcome is the result of an attempt to reach a desired state.
type outcome struct {
	seq    uint64
	result *pb.SwitchResult
}

// attachment is the environment of the loops, which do not run without one. It is immutable except
// for victims and overrun, which the device's mu guards.
type attachment struct {
	env     *feature.Env
	epoch   uint64
	since   time.Time
	victims []uint32 // ports that a loop wants to have the whole shared pool
	overrun bool     // messages were dropped, and an event said so
}

// silence is the default of a session's heartbeat.
const silence = 3 * time.Second

// New returns a device that does nothing until Run.
func New(o Options) *Device {
	o.Log, o.TrafficManagerTime = cmp.Or(o.Log, slog.Default()), cmp.Or(o.TrafficManagerTime, 5*time.Second)
	o.RetryMin, o.RetryMax = cmp.Or(o.RetryMin, 100*time.Millisecond), cmp.Or(o.RetryMax, 5*time.Second)
	if o.Events == nil {
		o.Events = func(*pb.Event) {}
	}
	if o.Ports == nil {
		o.Ports = func(map[uint32]pb.PortStatus_State) {}
	}
	d := &Device{
		opts: o, log: o.Log.With("switch", o.Switch.Name), silence: cmp.Or(o.Heartbeat, silence),
		kick: make(chan struct{}, 1), reattach: make(chan struct{}, 1),
		changed: make(chan struct{}),
		status: &pb.SwitchStatus{
			Name: o.Switch.Name, DeviceId: o.Switch.DeviceID, Address: o.Switch.Address,
			State: pb.SwitchStatus_STATE_DISCONNECTED, Error: "not connected yet", Since: timestamppb.Now(),
		},
	}
	d.status.Capabilities = parts(o, nil)
	d.poller = poll.New(o.Pipeline, d.packetOut)
	d.session = session.New(session.Options{
		Name: o.Switch.Name, DeviceID: o.Switch.DeviceID, Address: o.Switch.Address, ElectionID: o.ElectionID, Terms: o.Terms,
		Dial: o.Dial, RetryMin: o.RetryMin, RetryMax: o.RetryMax, Heartbeat: o.Heartbeat, Beside: d.followPorts, Log: o.Log,
	}, handler{d})
	return d
}

// Run manages the switch until the context ends. It leaves the switch's state as it is then.
func (d *Device) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { _ = d.session.Run(ctx) })
	wg.Go(func() { d.reconciler(ctx) })
	wg.Go(func() { d.loops(ctx) })
	wg.Wait()
	if d.opts.TrafficManager != nil {
		_ = d.opts.TrafficManager.Close()
	}
}

// SetDesired sets the desired state of the switch and returns at once.
func (d *Device) SetDesired(w Desired) {
	d.mu.Lock()
	d.desired = w
	d.desiredSeq++
	d.wake()
	d.mu.Unlock()
	signal(d.kick)
}

// Status returns the device's view of the switch; Ports are left empty.
func (d *Device) Status() *pb.SwitchStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := proto.Clone(d.status).(*pb.SwitchStatus)
	s.DroppedMessages, s.Program = d.stats.DroppedMessages, d.opts.Pipeline.Cookie()
	if d.portState != nil {
		s.Capabilities = append(s.Capabilities, d.portState)
	}
	if c, err := d.session.Client(); err == nil {
		s.ElectionId = c.Election()
	}
	return s
}

// Stats returns the device's counters.
func (d *Device) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stats
}

// Health is the state of a switch that routes depend on.
type Health struct {
	// Forwards says that routes may lead through the switch: it runs the program and has most of its
	// entries, or another controller is primary.
	Forwards bool
	// Known is false until a new session has checked this.
	Known bool
	// Gone is set if the switch's process has ended and the switch forwards no more: nothing listens at the address
	// of a switch whose P4Runtime server is in the forwarding process.
	Gone bool
	// Reached says that there was a session with the switch since the controller started.
	Reached bool
	// Attached is since when packets can be exchanged with the switch; zero when they cannot, or when
	// the switch has sent none yet. A missing probe then says nothing about a link.
	Attached time.Time
}

// Health returns the switch's health as it is now.
func (d *Device) Health() Health {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := Health{
		Forwards: d.forwards, Known: d.status.State != pb.SwitchStatus_STATE_RECONCILING,
		Reached: d.reached,
		Gone:    d.role == session.Disconnected && d.opts.Switch.Target.Chip() == "" && errors.Is(d.why, session.ErrRefused),
	}
	if d.attached != nil && d.heard && d.refusesPackets == "" && d.sendsNone == "" {
		h.Attached = d.attached.since
	}
	return h
}

// Wait waits until the last desired state is reached, has failed, or cannot be reached for now because the session is
// not primary, and returns which.
func (d *Device) Wait(ctx context.Context) *pb.SwitchResult {
	d.mu.Lock()
	seq := d.desiredSeq
	for {
		switch {
		case d.done.seq >= seq:
			defer d.mu.Unlock()
			return d.done.result
		case d.reported && d.role != session.Primary:
			defer d.mu.Unlock()
			return &pb.SwitchResult{Name: d.opts.Switch.Name, Error: d.pending()}
		}
		changed := d.changed
		d.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return &pb.SwitchResult{Name: d.opts.Switch.Name, Error: "still being applied"}
		}
		d.mu.Lock()
	}
}

func (d *Device) pending() string {
	text := d.role.String()
	if d.why != nil {
		text += ": " + d.why.Error()
	}
	if !d.reached {
		return text + "; the switch was never reached, and gets its configuration when it is"
	}
	return text + "; it gets its configuration when it is back"
}

// wake wakes the goroutines that wait for a change. The caller holds mu.
func (d *Device) wake() {
	close(d.changed)
	d.changed = make(chan struct{})
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// setState sets the state and the error in the status, and publishes an event when the state has
// changed. The caller holds mu.
func (d *Device) setState(s pb.SwitchStatus_State, why string) {
	if d.status.State == s && d.status.Error == why {
		return
	}
	moved := d.status.State != s
	d.status.Error = why
	if !moved {
		d.wake()
		return
	}
	d.status.State, d.status.Since = s, timestamppb.Now()
	d.wake()
	e := &pb.Event{Time: d.status.Since, Severity: pb.Event_SEVERITY_INFO, Subject: d.opts.Switch.Name}
	switch s {
	case pb.SwitchStatus_STATE_DISCONNECTED:
		e.Severity, e.Kind, e.Message = pb.Event_SEVERITY_WARNING, "session.disconnected", why
	case pb.SwitchStatus_STATE_BACKUP:
		e.Severity, e.Kind, e.Message = pb.Event_SEVERITY_WARNING, "session.backup", why
	case pb.SwitchStatus_STATE_RECONCILING:
		e.Kind, e.Message = "session.primary", "this controller is primary"
	case pb.SwitchStatus_STATE_READY:
		e.Kind, e.Message = "session.ready", fmt.Sprintf("the switch holds what it should: %s", units.Count(d.status.Entries, "entry"))
	case pb.SwitchStatus_STATE_DEGRADED:
		e.Severity, e.Kind, e.Message = pb.Event_SEVERITY_ERROR, "session.degraded", why
	}
	d.opts.Events(e)
}

// handler receives the session's messages.
type handler struct{ *Device }

// Role implements session.Handler.
func (h handler) Role(r session.Role, why error) {
	d := h.Device
	d.mu.Lock()
	text := ""
	if why != nil {
		text = why.Error()
	}
	d.role, d.why, d.reported = r, why, true
	d.epoch++
	d.refusesPackets, d.sendsNone, d.slow, d.heard, d.inLine = "", "", "", false, false
	d.attached, d.forwards = nil, r == session.Backup
	if d.reached = d.reached || r != session.Disconnected; !d.reached && text != "" {
		text = "never reached: " + text
	}
	switch r {
	case session.Disconnected:
		if errors.Is(why, session.ErrStopped) {
			d.status.State, d.status.Error = pb.SwitchStatus_STATE_DISCONNECTED, text // a stopped session is no event
			break
		}
		d.setState(pb.SwitchStatus_STATE_DISCONNECTED, text)
	case session.Backup:
		d.setState(pb.SwitchStatus_STATE_BACKUP, text)
	case session.Primary:
		d.setState(pb.SwitchStatus_STATE_RECONCILING, "")
	}
	d.wake()
	d.mu.Unlock()
	signal(d.kick)
	signal(d.reattach)
}

// Message implements session.Handler. It passes the message to the loops. A loop with too many waiting messages
// does not get it.
func (h handler) Message(m *p4v1.StreamMessageResponse) {
	dropped := uint64(0)
	if running := h.running.Load(); running != nil {
		lane, list := h.sort(m, time.Now())
		for _, r := range *running {
			for _, x := range list {
				if r.Receives()&(1<<lane) != 0 && !r.inbox.offer(lane, x) {
					dropped++
				}
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = h.heard || m.GetPacket() != nil
	if h.stats.DroppedMessages += dropped; dropped > 0 && h.attached != nil && !h.attached.overrun {
		h.attached.overrun = true
		h.opts.Events(&pb.Event{
			Time: pb.Stamp(time.Now()), Severity: pb.Event_SEVERITY_WARNING, Subject: h.opts.Switch.Name, Kind: "session.messages_dropped",
			Message: "the switch sends more than the controller can handle: the least urgent messages, digests and idle timeouts, are dropped and counted",
		})
	}
}

// PacketRefused implements session.Handler. A switch that cannot be polled or probed is degraded,
// even if it has all its entries.
func (h handler) PacketRefused(why error) {
	d := h.Device
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.attached == nil || d.refusesPackets != "" {
		return // the switch may have no program yet, or it is recorded and every poll and probe is refused
	}
	d.refusesPackets = "the switch takes no packets from the controller, so its ports are not polled and its links not probed: " + why.Error()
	d.updateHealth()
}

// packetOut sends a packet of a loop. It returns session.ErrDisconnected until the switch of this
// session has been reconciled: one without its program would refuse the packet.
func (d *Device) packetOut(p *p4v1.PacketOut) error {
	d.mu.Lock()
	reconciled := d.attached != nil
	d.mu.Unlock()
	if !reconciled {
		return session.ErrDisconnected
	}
	return d.session.PacketOut(p)
}

// setSilent records whether the switch answers no polls although it should. simple_switch_grpc without --cpu-port
// accepts packets, drops them and reports no error. If the switch has sent a packet before, it is slow or hangs: its
// links are still judged by probes, and the session's keepalive finds out whether it lives.
func (d *Device) setSilent(silent bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if silent == (d.sendsNone+d.slow != "") || d.attached == nil {
		return
	}
	d.sendsNone, d.slow = "", ""
	unanswered := fmt.Sprintf("no poll of its ports was answered for %v", poll.Patience*d.silence)
	switch {
	case silent && d.heard:
		d.slow = unanswered + ": it is slow, or hangs"
	case silent:
		d.sendsNone = fmt.Sprintf("%s, so neither its queues nor its links are monitored: want a switch with the CPU port %d", unanswered, d.opts.Switch.CPUPort)
		if d.opts.Switch.Target.Chip() == "" {
			d.sendsNone += fmt.Sprintf(" (--cpu-port %d)", d.opts.Switch.CPUPort)
		}
	}
	d.updateHealth()
}

// ails returns the fault of a switch that has its desired state, "" for none. The caller holds mu.
func (d *Device) ails() string { return cmp.Or(d.refusesPackets, d.sendsNone, d.slow) }

// updateHealth updates the state of a switch that has its desired state: ready if it accepts and sends
// packets, and degraded otherwise. The caller holds mu.
func (d *Device) updateHealth() {
	why := d.ails()
	switch {
	case d.status.State == pb.SwitchStatus_STATE_READY && why != "":
		d.setState(pb.SwitchStatus_STATE_DEGRADED, why)
	case d.status.State == pb.SwitchStatus_STATE_DEGRADED && d.inLine:
		if why == "" {
			d.setState(pb.SwitchStatus_STATE_READY, "")
		} else {
			d.setState(pb.SwitchStatus_STATE_DEGRADED, why)
		}
	}
}
