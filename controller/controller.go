// Package controller is Headgate's daemon: it owns the configuration that was applied last, computes the desired
// state of every switch from it, and keeps a device for each switch that reconciles the switch with it. Interfaces to
// the outside (API, metrics, command line) are other packages on top of this one.
package controller

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/conduct"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/device"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/session"
	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/controller/state/outcome"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/internal/confine"
)

// Options configure a controller. The zero value is good.
type Options struct {
	// Pipelines returns the pipeline that a switch runs; default the programs that are built in, with the device
	// configuration of the switch. A yamlnode.Fault names the field at fault.
	Pipelines func(cfg *config.Config, s config.Switch) (*pipeline.Pipeline, error)
	// TrafficManagers returns the driver for a switch with a traffic manager. The caller closes it. The default is
	// package tofino's driver.
	TrafficManagers func(s config.Switch) (trafficmanager.Driver, error)
	// Dial returns how to reach a switch, for tests and switches in the same process;
	// default session.Credentials.
	Dial func(s config.Switch) ([]grpc.DialOption, error)
	// Flags override keys of the configuration; see config.Options.
	Flags map[string]*pflag.Flag
	// Terms is set for the leader of a cluster; see session.Options.
	Terms session.Terms
	// Generation is the generation of the last saved configuration.
	Generation uint64
	// CheckCaller returns why the caller of ctx may not apply a configuration; a yamlnode.Fault names the field at
	// fault. A nil CheckCaller allows everyone.
	CheckCaller func(ctx context.Context, cfg *config.Config) error
	// Files are where device_config and the files of switches' TLS are read; nil: anywhere.
	Files confine.Dirs
	// Fixed are keys that a running process cannot change, such as controller.listen: a participant refuses other
	// values, and a plan leaves the keys out.
	Fixed []string
	// Participants take part in every apply, in this order.
	Participants []Participant
	// Save stores an applied configuration with the context's note (history.NoteFromContext). If it fails, nothing is
	// applied.
	Save func(ctx context.Context, cfg *config.Config, generation uint64) error
	// Pending has the changes in progress; nil if nobody waits for them.
	Pending *outcome.Pending
	// Links stores the links that an operator took out of service; nil stores nothing.
	Links LinkKeeper
	// RetryMin, RetryMax and Heartbeat are passed to each session; see session.Options.
	RetryMin, RetryMax, Heartbeat time.Duration
	// ApplyTimeout is how long Apply waits for switches that can be reached; default 15 s. A
	// traffic manager has a third of it for one comparison.
	ApplyTimeout time.Duration
	// Events and Samples are the buses to publish on; by default the controller makes its own.
	Events  *events.Bus[*pb.Event]
	Samples *events.Bus[feature.Sample]
	Log     *slog.Logger
}

// Controller is the daemon. Apply and SetLink change it one at a time, under applying, which is held while the change
// is stored. Routes follow links meanwhile, under routing; what readers see is under mu.
type Controller struct {
	opts     Options
	features []*feature.Feature
	events   *events.Bus[*pb.Event]
	samples  *events.Bus[feature.Sample]
	links    *linkMonitor
	log      *slog.Logger
	reads    *device.ReadSemaphore
	conduct  *conduct.Judge

	alarmsMu sync.Mutex
	alarms   map[conduct.HostAlarm]uint64 // guarded by alarmsMu

	applying sync.Mutex // locked before routing

	routing sync.Mutex
	risk    string // warning about the routes; guarded by routing

	mu         sync.RWMutex
	running    context.Context // nil until Run
	wg         sync.WaitGroup  // the devices' goroutines
	generation uint64
	current    *applied // nil until the first Apply
}

// applied is a configuration with its devices.
type applied struct {
	*inputs
	devices map[string]*unit
	desired desired                         // the last state that the devices got; routing guards it
	routes  atomic.Pointer[topology.Routes] // the routes of desired
}

// unit is a device with the function that ends it.
type unit struct {
	*device.Device
	spec    spec
	cancel  context.CancelFunc
	started bool
	ended   chan struct{} // closed when Run has ended
}

// spec holds the settings of a switch that need a new device when they change.
type spec struct {
	name     string
	deviceID uint64
	address  string
	target   config.Target
	cpuPort  uint32
	manager  string // address of its traffic manager
	queues   int
	tls      config.TLS
	election uint64
	cookie   uint64 // cookie of the pipeline
}

// New returns a controller without a configuration; it does nothing until Run.
func New(o Options) (*Controller, error) {
	o.Log, o.ApplyTimeout = cmp.Or(o.Log, slog.Default()), cmp.Or(o.ApplyTimeout, 15*time.Second)
	if o.Dial == nil {
		o.Dial = func(s config.Switch) ([]grpc.DialOption, error) {
			creds, err := session.Credentials(s.TLS, o.Files)
			return []grpc.DialOption{creds}, err
		}
	}
	if o.Pipelines == nil {
		p, err := newPrograms(o.Files)
		if err != nil {
			return nil, err
		}
		o.Pipelines = p.of
	}
	if o.TrafficManagers == nil {
		o.TrafficManagers = trafficManagers(o.Log)
	}
	if o.Events == nil {
		o.Events = events.NewNumberedBus(1000, func(e *pb.Event, cursor string) {
			e.Cursor = cursor
			pb.Clean(e)
		})
	}
	if o.Samples == nil {
		o.Samples = events.NewBus[feature.Sample](0)
	}
	c := &Controller{
		opts: o, log: o.Log, generation: o.Generation,
		events: o.Events, samples: o.Samples, reads: device.NewReadSemaphore(config.Comparisons),
	}
	c.links = newLinkMonitor(c.event, o.Links)
	c.conduct, c.alarms = conduct.New(c.event, c.Counted, c.Path), map[conduct.HostAlarm]uint64{}
	for _, construct := range features() {
		c.features = append(c.features, construct(callbacks{c}))
	}
	return c, nil
}

// Run keeps the switches in the desired state until the context ends. The switches keep their entries afterwards.
// It may be called once.
func (c *Controller) Run(ctx context.Context) error {
	c.mu.Lock()
	if c.running != nil {
		c.mu.Unlock()
		return errors.New("the controller was run already")
	}
	c.running = ctx
	if c.current != nil {
		for _, u := range c.current.devices {
			c.start(u)
		}
	}
	c.mu.Unlock()
	tick := time.NewTicker(healthInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			c.wg.Wait()
			return ctx.Err()
		case <-tick.C:
		case <-c.links.reported:
		}
		c.checkHealth(time.Now())
	}
}

// healthInterval is how often links and switches are evaluated.
const healthInterval = 100 * time.Millisecond

// start runs a device once the earlier devices of its switch have ended, because they use the same election id. The
// caller holds mu.
func (c *Controller) start(u *unit, before ...*unit) {
	if c.running == nil || u.started {
		return
	}
	ctx, cancel := context.WithCancel(c.running)
	u.cancel, u.started, u.ended = cancel, true, make(chan struct{})
	c.wg.Go(func() {
		defer close(u.ended)
		for _, b := range before {
			if b.spec.address == u.spec.address {
				<-b.ended
			}
		}
		u.Run(ctx)
	})
}

// Events returns the bus of events.
func (c *Controller) Events() *events.Bus[*pb.Event] { return c.events }

// Samples returns the bus of telemetry samples.
func (c *Controller) Samples() *events.Bus[feature.Sample] { return c.samples }

// event publishes and logs.
func (c *Controller) event(e *pb.Event) {
	if e.Time == nil {
		e.Time = timestamppb.Now()
	}
	level := slog.LevelInfo
	switch e.Severity {
	case pb.Event_SEVERITY_WARNING:
		level = slog.LevelWarn
	case pb.Event_SEVERITY_ERROR:
		level = slog.LevelError
	}
	c.countAlarm(e)
	c.log.Log(context.Background(), level, e.Message, "event", e.Kind, "subject", e.Subject)
	c.events.Publish(e)
}

// snapshot returns the running configuration with its devices, nil before the first Apply.
func (c *Controller) snapshot() *applied {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.current
}

// callbacks are the controller's functions for features.
type callbacks struct{ c *Controller }

// Sample implements feature.Callbacks.
func (h callbacks) Sample(s feature.Sample) {
	h.c.conduct.Sampled(s)
	h.c.samples.Publish(s)
}

// LinkSeen implements feature.Callbacks.
func (h callbacks) LinkSeen(link, at string) { h.c.links.seen(link, at, time.Now()) }

// Event implements feature.Callbacks.
func (h callbacks) Event(e *pb.Event) { h.c.event(e) }
