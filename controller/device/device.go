// Package device looks after one switch: it keeps a session, and whenever the session
// becomes primary, the wanted state changes or time has passed, it brings the switch in
// line. A switch that was killed and restarted comes back whole by itself: its pipeline is
// missing and is pushed, its entries are missing and are written.
package device

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/controller/reconcile"
	"github.com/headgate/headgate/controller/session"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/controller/view"
)

// Options configure a device.
type Options struct {
	Switch     config.Switch
	ElectionID uint64
	Pipeline   *pipeline.Pipeline
	Features   []feature.Feature
	// Manager makes the driver of the switch's traffic manager; nil when it has none.
	Manager func() (Manager, error)
	// ManagerTime bounds one comparison of the traffic manager, its server out of reach
	// included; default 5 s.
	ManagerTime time.Duration
	// Dial says how to reach the switch; see session.Options.
	Dial []grpc.DialOption
	// RetryMin and RetryMax bound the waits between connections, and ten times each those
	// between attempts to bring a degraded switch in line; see session.Options.
	RetryMin, RetryMax time.Duration
	// Heartbeat is the session's.
	Heartbeat time.Duration
	// Events takes what happens; it must not wait.
	Events func(view.Event)
	Log    *slog.Logger
}

// Want is what a switch should be. It is immutable.
type Want struct {
	Env   *feature.Env
	State *reconcile.State
	// Manager is what the traffic manager should hold; nil where it is left alone.
	Manager *trafficmanager.Settings
	// Err says why there is no state for this switch; State is nil then.
	Err error
}

// Stats counts what a device did since it was made.
type Stats struct {
	Reconciles      uint64 // attempts
	Reads           uint64 // attempts that read the switch
	Updates         uint64 // entities written
	RefusedUpdates  uint64
	Pushes          uint64 // of the pipeline
	Overlays        uint64 // written by themselves
	Connects        uint64
	Messages        uint64 // from the switch
	DroppedMessages uint64 // that came faster than they could be handled
	LoopErrors      uint64 // failed ticks
	ManagerApplies  uint64 // times that the traffic manager was compared and brought in line
	ManagerRows     uint64 // written to it
	ManagerErrors   uint64 // times that it could not be
}

// Device is one switch. Three goroutines run it: the session, the reconciler and the
// loops. They share what is under mu; each change of it wakes those who wait.
type Device struct {
	opts    Options
	session *session.Session
	manager *manager // nil when the switch has none
	log     *slog.Logger

	kick     chan struct{} // something for the reconciler; holds one token
	reattach chan struct{} // something for the loops; holds one token
	messages chan message

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every change
	role     session.Role
	why      error
	reported bool // the session has said something
	epoch    uint64
	want     Want
	wantSeq  uint64
	done     outcome
	status   view.Switch
	attached *attachment
	stats    Stats
}

// outcome is how an attempt to reach a want ended.
type outcome struct {
	seq    uint64
	result view.Result
}

// attachment says with what the loops should run; nil for not at all. It is never changed,
// but for the loops' overlays, which are under the device's mu.
type attachment struct {
	env      *feature.Env
	epoch    uint64
	since    time.Time
	overlays overlays
}

// message is something from the switch, with the time of its arrival.
type message struct {
	at     time.Time
	packet *p4v1.PacketIn
	digest *p4v1.DigestList
	idle   *p4v1.IdleTimeoutNotification
}

// messageQueue is how many messages may wait for the loops.
const messageQueue = 4096

// New returns a device that does nothing until Run.
func New(o Options) *Device {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.ManagerTime <= 0 {
		o.ManagerTime = managerTime
	}
	if o.Events == nil {
		o.Events = func(view.Event) {}
	}
	d := &Device{
		opts: o, log: o.Log.With("switch", o.Switch.Name),
		kick: make(chan struct{}, 1), reattach: make(chan struct{}, 1),
		messages: make(chan message, messageQueue), changed: make(chan struct{}),
		status: view.Switch{
			Name: o.Switch.Name, DeviceID: o.Switch.DeviceID, Address: o.Switch.Address,
			State: view.Disconnected, Err: "not connected yet", Since: time.Now(),
		},
	}
	d.status.Capabilities = parts(o, nil)
	if o.Manager != nil {
		d.manager = newManager(o.Manager)
	}
	d.session = session.New(session.Options{
		Name: o.Switch.Name, DeviceID: o.Switch.DeviceID, Address: o.Switch.Address, ElectionID: o.ElectionID,
		Dial: o.Dial, RetryMin: o.RetryMin, RetryMax: o.RetryMax, Heartbeat: o.Heartbeat, Log: o.Log,
	}, handler{d})
	return d
}

// Run looks after the switch until the context ends. The switch keeps what it holds.
func (d *Device) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { _ = d.session.Run(ctx) })
	wg.Go(func() { d.reconciler(ctx) })
	wg.Go(func() { d.loops(ctx) })
	wg.Wait()
	if d.manager != nil {
		d.manager.close()
	}
}

// Want sets what the switch should be, and returns at once.
func (d *Device) Want(w Want) {
	d.mu.Lock()
	d.want = w
	d.wantSeq++
	d.wake()
	d.mu.Unlock()
	signal(d.kick)
}

// Status returns what the device knows of the switch; Ports are left empty.
func (d *Device) Status() view.Switch {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.status
}

// Stats returns the device's counters.
func (d *Device) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stats
}

// Attached returns since when the features' loops run, the zero time while they do not.
func (d *Device) Attached() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.attached == nil {
		return time.Time{}
	}
	return d.attached.since
}

// Settle waits until the last Want is reached, has failed, or cannot be reached for now
// because the session is not primary, and says which.
func (d *Device) Settle(ctx context.Context) view.Result {
	d.mu.Lock()
	seq := d.wantSeq
	for {
		switch {
		case d.done.seq >= seq:
			defer d.mu.Unlock()
			return d.done.result
		case d.reported && d.role != session.Primary:
			defer d.mu.Unlock()
			return view.Result{Switch: d.opts.Switch.Name, Err: d.pending()}
		}
		changed := d.changed
		d.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return view.Result{Switch: d.opts.Switch.Name, Err: "still being applied"}
		}
		d.mu.Lock()
	}
}

func (d *Device) pending() string {
	text := d.role.String()
	if d.why != nil {
		text += ": " + d.why.Error()
	}
	return text + "; it gets its configuration when it is back"
}

// wake tells those who wait that something changed. The caller holds mu.
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

// state moves the status and publishes an event when it changed. The caller holds mu.
func (d *Device) state(s view.SwitchState, why string) {
	if d.status.State == s && d.status.Err == why {
		return
	}
	moved := d.status.State != s
	d.status.Err = why
	if !moved {
		d.wake()
		return
	}
	d.status.State, d.status.Since = s, time.Now()
	d.wake()
	e := view.Event{Time: d.status.Since, Severity: view.Info, Subject: d.opts.Switch.Name}
	switch s {
	case view.Disconnected:
		e.Severity, e.Kind, e.Message = view.Warning, "session.disconnected", why
	case view.Backup:
		e.Severity, e.Kind, e.Message = view.Warning, "session.backup", why
	case view.Reconciling:
		e.Kind, e.Message = "session.primary", "this controller is primary"
	case view.Ready:
		e.Kind, e.Message = "session.ready", fmt.Sprintf("the switch holds what it should: %d entries", d.status.Entries)
	case view.Degraded:
		e.Severity, e.Kind, e.Message = view.Error, "session.degraded", why
	}
	d.opts.Events(e)
}

// handler takes what the session says.
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
	d.attached = nil
	switch r {
	case session.Disconnected:
		if errors.Is(why, session.ErrStopped) {
			d.status.State, d.status.Err = view.Disconnected, text // nothing to tell
			break
		}
		d.state(view.Disconnected, text)
	case session.Backup:
		d.state(view.Backup, text)
	case session.Primary:
		d.stats.Connects++
		d.state(view.Reconciling, "")
	}
	d.wake()
	d.mu.Unlock()
	signal(d.kick)
	signal(d.reattach)
}

// PacketIn implements session.Handler.
func (h handler) PacketIn(p *p4v1.PacketIn) { h.enqueue(message{packet: p}) }

// Digest implements session.Handler.
func (h handler) Digest(l *p4v1.DigestList) { h.enqueue(message{digest: l}) }

// Idle implements session.Handler.
func (h handler) Idle(n *p4v1.IdleTimeoutNotification) { h.enqueue(message{idle: n}) }

// enqueue hands a message to the loops; the newest are dropped when they lag behind.
func (d *Device) enqueue(m message) {
	m.at = time.Now()
	dropped := uint64(0)
	select {
	case d.messages <- m:
	default:
		dropped = 1
	}
	d.mu.Lock()
	d.stats.Messages++
	d.stats.DroppedMessages += dropped
	d.mu.Unlock()
}
