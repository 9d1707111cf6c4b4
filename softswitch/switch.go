// Package softswitch is the embedded switch. It joins the engine that runs a P4 program, a traffic
// manager, ports and a P4Runtime server. NewOnLoop makes a switch that runs on a clock.Loop; Links
// join it to other switches and hosts in the same process. A Realtime runs on the wall clock with
// real interfaces.
//
// Start reading at Switch and at dataplane, which takes each frame from its port through ingress,
// queue and egress.
package softswitch

import (
	"bytes"
	"fmt"
	"log/slog"
	"sync"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/internal/gnmi"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/softswitch/engine"
	_ "github.com/headgate/headgate/softswitch/native/headgate" // runs Headgate's own program as Go
	"github.com/headgate/headgate/softswitch/p4rt"
	"github.com/headgate/headgate/softswitch/p4rt/entity"
	"github.com/headgate/headgate/softswitch/pacc"
	"github.com/headgate/headgate/softswitch/port"
	"github.com/headgate/headgate/softswitch/stages"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/units"
)

// DefaultDropPort is the port that means drop in BMv2.
const DefaultDropPort = 511

// maxPort is the highest port number: v1model's ports have nine bits.
const maxPort = 511

// noPort is the CPU port's number in a switch without one. Port 0 would not do, because it is an
// ordinary port.
const noPort = maxPort + 1

// Config configures a switch.
type Config struct {
	Name     string // used in logs
	DeviceID uint64 // P4Runtime's device_id
	CPUPort  uint32 // port of packet I/O over P4Runtime, 1 to 511; 0 means none
	DropPort uint32 // DefaultDropPort when zero
	Traffic  tm.Config
	PFC      PFC            // whether ports obey received PFC; off by default
	Tracer   *engine.Tracer // logs the path of packets; nil for none
	Times    *stages.Times  // adds up the time of each stage; nil for none
	Log      *slog.Logger   // slog.Default when nil
}

// Sender receives the frames that leave a port. The goroutine that runs the switch calls it.
type Sender interface {
	// Send receives a frame whose last bit leaves at time finish. The bytes are valid until Send
	// returns. Send must not call the switch.
	Send(frame []byte, finish units.Time)
}

// driver gives a switch its clock and its goroutine. It is a loop's (virtual time) or Run's (real
// time).
type driver interface {
	// post runs fn soon on the goroutine that runs the switch, and then the events that are due.
	// Any goroutine may call it.
	post(fn func())
	// time returns the switch's clock. Any goroutine may call it.
	time() units.Time
}

// Switch is an embedded switch. Any goroutine may call its methods unless they say otherwise. The
// lock guards the data plane. It is held during calls of Senders, of ports' drivers, and of the
// P4Runtime server's PacketIn and Digest.
type Switch struct {
	name   string
	log    *slog.Logger
	cpu    uint32
	driver driver
	server *p4rt.Server
	agent  *pacc.Agent
	shown  gnmi.Source
	grpc   grpcServer

	followers sync.Map // channels that wake gNMI's streams when a port changes

	watchdog *watchdog // nil without PFC
	lossless *setting[externs.Lossless]
	weights  *setting[externs.Weights]
	obeyed   *setting[externs.Obeyed]

	mu        sync.Mutex
	dataplane dataplane
}

func newSwitch(c Config, r driver) (*Switch, error) {
	if c.DropPort == 0 {
		c.DropPort = DefaultDropPort
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.CPUPort > maxPort {
		return nil, fmt.Errorf("CPU port %d: want 1 to %d, or 0 for none", c.CPUPort, maxPort)
	}
	if c.CPUPort == c.DropPort {
		return nil, fmt.Errorf("CPU port %d is the drop port: give one of them another number", c.CPUPort)
	}
	m, err := tm.New(c.Traffic)
	if err != nil {
		return nil, err
	}
	s := &Switch{name: c.Name, log: c.Log, cpu: c.CPUPort, driver: r}
	s.shown = openConfig{s}
	if s.cpu == 0 {
		s.cpu = noPort
	}
	pfc, err := newFlowControl(c.PFC, m.Queues(), s.cpu)
	if err != nil {
		return nil, err
	}
	s.dataplane = dataplane{tm: m, pfc: pfc, old: map[uint32]*pipeline{}, stormAt: units.MaxTime, stormed: func(port uint32, class int, begins bool) {
		s.log.Warn("PFC storm", "switch", s.name, "port", port, "class", class, "begins", begins, "action", s.dataplane.watch.Action)
	}}
	var dog entity.Watchdog
	s.lossless = &setting[externs.Lossless]{Switch: s, apply: s.dataplane.setLossless}
	s.obeyed = &setting[externs.Obeyed]{Switch: s, apply: s.dataplane.setObeyed}
	s.weights = &setting[externs.Weights]{Switch: s, apply: s.dataplane.setWeights}
	if pfc != nil {
		s.dataplane.watch, s.dataplane.lossless, s.lossless.initial = pfc.Watch, pfc.queues, pfc.queues
		s.watchdog = &watchdog{setting[externs.Settings]{Switch: s, initial: pfc.Watch, apply: func(w externs.Settings, now units.Time) {
			if w.Default && pfc.Watch.Detection > 0 {
				w = pfc.Watch
			}
			s.dataplane.setWatch(w, now)
			s.log.Info("PFC watchdog", "switch", s.name, "settings", &w)
		}}}
		dog = s.watchdog
	}
	s.server = p4rt.New(p4rt.Options{
		DeviceID: c.DeviceID,
		Options:  entity.Options{CPUPort: c.CPUPort, DropPort: c.DropPort, Queues: m.Queues(), Watchdog: dog, Lossless: s.lossless, Weights: s.weights, Obeyed: s.obeyed},
		Tracer:   c.Tracer,
		Times:    c.Times,
		Log:      c.Log,
	}, s)
	s.agent = pacc.New(agentHost{s}, c.Log.With("switch", c.Name))
	s.dataplane.control = learning{s.server, s.agent}
	if c.CPUPort != 0 {
		if err := s.addPort(c.CPUPort, "cpu", 0, cpuSender{s.server}); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// cpuSender passes frames that leave on the CPU port to the P4Runtime server.
type cpuSender struct{ control }

func (c cpuSender) Send(frame []byte, _ units.Time) { c.PacketIn(frame) }

// Server returns the P4Runtime server. It lives as long as the switch, whether it is being served
// or not.
func (s *Switch) Server() *p4rt.Server { return s.server }

// addPort adds a port that sends to out. If out is nil the port waits for a cable.
func (s *Switch) addPort(n uint32, name string, rate units.Rate, out Sender) error {
	if n > maxPort {
		return fmt.Errorf("port %d: want 0 to %d", n, maxPort)
	}
	if n == s.cpu && name != "cpu" {
		return fmt.Errorf("port %d is the CPU port: give the port another number", n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.dataplane.tm.AddPort(n, rate); err != nil {
		return err
	}
	s.dataplane.ports[n] = &portState{out: out, up: out != nil, info: PortStats{Port: n, Name: name}}
	return nil
}

// SetPortRate changes a port's rate, also while the port sends; 0 is unlimited. BMv2's Thrift
// service has it as set_queue_rate, in packets per second.
func (s *Switch) SetPortRate(n uint32, r units.Rate) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.dataplane.tm.SetRate(n, r, s.driver.time()); err != nil {
		return err
	}
	s.reschedule()
	return nil
}

// AllQueues stands for every queue of a port.
const AllQueues = -1

// SetQueueLimit changes the limit of one queue of a port, or of AllQueues. BMv2's Thrift service
// has it as set_queue_depth.
func (s *Switch) SetQueueLimit(n uint32, queue int, l tm.Limit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, last := queue, queue
	if queue == AllQueues {
		first, last = 0, s.dataplane.tm.Queues()-1
	}
	var err error
	for q := first; q <= last && err == nil; q++ {
		err = s.dataplane.tm.SetLimit(n, q, l)
	}
	return err
}

// Stats returns the counters that belong to no port.
func (s *Switch) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dataplane.stats
}

// PortStats returns the counters of all ports in order of their numbers, the CPU port included.
// Pause times count up to now.
func (s *Switch) PortStats() []PortStats {
	var all []PortStats
	var drivers []port.Port // of each port, nil for none
	s.mu.Lock()
	now := s.driver.time()
	for i, p := range s.dataplane.ports {
		if p == nil {
			continue
		}
		st := p.info
		st.Up, st.PFC.Storming = p.up, p.stormMask()
		s.dataplane.tm.Stats(uint32(i), &st.Queues)
		for q := range st.Queues.Queues {
			st.Queues.Queues[q].Paused.Time = st.Queues.Queues[q].Paused.Total(now)
		}
		drivers = append(drivers, p.driver())
		all = append(all, st)
	}
	s.mu.Unlock()
	for i, d := range drivers { // without the lock, because drivers make system calls
		if d != nil {
			all[i].Driver, all[i].Up = d.Counters(), d.Up()
		}
	}
	return all
}

// The P4Runtime server calls the methods in this file. They only post functions to the driver, so
// any goroutine may call them, even within PacketIn and Digest.
var _ p4rt.Device = (*Switch)(nil)

// Commit implements p4rt.Device. The next packet is the first that cfg processes.
func (s *Switch) Commit(cfg *p4rt.Pipeline) {
	s.driver.post(func() {
		s.mu.Lock()
		s.dataplane.install(cfg.Instance)
		s.mu.Unlock()
		s.log.Debug("pipeline runs", "switch", s.name)
	})
}

// PacketOut implements p4rt.Device. The frame enters the switch by the CPU port.
func (s *Switch) PacketOut(frame []byte) {
	frame = bytes.Clone(frame)
	s.driver.post(func() {
		s.mu.Lock()
		s.dataplane.receive(s.cpu, frame, s.driver.time())
		s.mu.Unlock()
	})
}

// reschedule makes the driver compute the time of the next event again.
func (s *Switch) reschedule() { s.driver.post(func() {}) }

// signal wakes the receiver of a channel with a buffer of one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Now implements p4rt.Device.
func (s *Switch) Now() units.Time { return s.driver.time() }

// portState reports to the P4Runtime server that port n went up or down. The server updates the
// action selector groups whose members watch the port, and gNMI streams report the change. The
// call waits for a write in progress, so the caller must not hold the lock.
func (s *Switch) portState(n uint32, up bool) {
	if !up {
		s.mu.Lock()
		s.dataplane.lostCarrier(n, s.driver.time())
		s.mu.Unlock()
		s.reschedule()
	}
	s.tellFollowers()
	if err := s.server.SetPortState(n, up); err != nil {
		s.log.Error("groups do not follow the port's state", "switch", s.name, "port", n, "up", up, "err", err)
	}
}

// agentHost is the switch as PACC's agent sees it. Only the goroutine that runs the switch uses
// it, without holding the switch's lock.
type agentHost struct{ s *Switch }

// TryControl implements pacc.Host. The CPU port's number is part of the program. If the switch has
// another CPU port, the agent could not inject notifications, so it sleeps.
func (h agentHost) TryControl(use func(*entity.State, *engine.Instance)) bool {
	return h.s.cpu == ids.CPUPort && h.s.server.TryControl(use)
}

// Inject implements pacc.Host.
func (h agentHost) Inject(frame []byte, now units.Time) {
	h.s.mu.Lock()
	h.s.dataplane.receive(h.s.cpu, frame, now)
	h.s.mu.Unlock()
}

// learning passes each digest first to the agent and then to control.
type learning struct {
	control
	agent *pacc.Agent
}

// Digest implements control.
func (l learning) Digest(name string, fields [][]byte) {
	l.agent.Digest(name, fields)
	l.control.Digest(name, fields)
}

// PACC returns the counters of the switch's PACC loop. It returns false while no loop runs. The
// loop starts when a controller writes settings to the table of watched queues.
func (s *Switch) PACC() (cnpgen.LoopStats, []cnpgen.PortStats, bool) { return s.agent.Stats() }
