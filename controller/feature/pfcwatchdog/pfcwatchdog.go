// Package pfcwatchdog is the feature that makes switches watch the PAUSEs that they receive: in a lossless fabric, a
// peer that pauses a class without end stops all traffic behind it. The watchdog is a part of the switch (package
// externs). The feature configures it, and reports storms. Package buffer handles the pauses that a switch sends.
package pfcwatchdog

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/units"
)

type feat struct {
	callbacks feature.Callbacks

	mu       sync.Mutex
	switches map[string]*state
}

// watchCapability is the watchdog of the target.
var watchCapability = feature.Capability{
	Name: "pfcwatchdog.received", Externs: []uint32{externs.SettingsID},
	Without: feature.EmbeddedOnly("neither P4Runtime nor BF Runtime has one; the switch's own system may"),
	Instead: "pfc_watchdog.detection_time must be off",
}

// New returns the feature.
func New(callbacks feature.Callbacks) *feature.Feature {
	f := &feat{callbacks: callbacks, switches: map[string]*state{}}
	return &feature.Feature{
		Name: "pfcwatchdog", Capabilities: []feature.Capability{watchCapability}, Section: section,
		Desired: desired, Attach: f.attach, Status: f.status, Probes: probes, Advise: advise,
	}
}

// probes implements feature.Feature.Probes. An embedded switch has the watchdog only if it obeys PFC.
func probes(s *config.Switch) []feature.Probe {
	if s.Target != config.Embedded {
		return nil
	}
	return []feature.Probe{{Name: "obey_pfc", Instead: "start it with --pfc", Request: pipeline.Extern(externs.StormsID)}}
}

// advise is feature.Feature.Advise: it compares the times with one PAUSE of 65535 quanta at the slowest port.
func advise(env *feature.Env, _ *config.Switch) (notes []string) {
	w := FromSwitch(env.Switch)
	var slowest *config.Link
	for i, l := range env.Config.Links {
		if (l.A.Node == env.Switch.Name || l.B.Node == env.Switch.Name) && (slowest == nil || l.Rate < slowest.Rate) {
			slowest = &env.Config.Links[i]
		}
	}
	if w.DetectionTime <= 0 || slowest == nil {
		return nil
	}
	one := slowest.Rate.PauseTime(65535).Duration()
	for _, x := range []struct {
		key  string
		time time.Duration
		then string
	}{
		{"detection_time", w.DetectionTime, "one ordinary PAUSE is a storm"},
		{"restoration_time", cmp.Or(w.RestorationTime, w.DetectionTime), "a storm ends while its last PAUSE still holds"},
	} {
		if x.time <= one {
			notes = append(notes, fmt.Sprintf("%s is %v, and one PAUSE of 65535 quanta lasts %v on %s (%v): %s",
				env.Config.Origin(env.Switch, "pfc_watchdog."+x.key), x.time, one, slowest.Name, slowest.Rate, x.then))
		}
	}
	return notes
}

// desired is feature.Feature.Desired. Without a detection time the switch's own flags hold.
func desired(env *feature.Env) ([]*p4v1.Entity, error) {
	settings, err := FromSwitch(env.Switch).settings(env)
	if err != nil || settings.Detection == 0 {
		return nil, err
	}
	if env.Provider(watchCapability) == pb.ByNothing {
		return nil, env.Refuse(env.Config.Origin(env.Switch, "pfc_watchdog.detection_time"), FromSwitch(env.Switch).DetectionTime.String(), watchCapability)
	}
	return []*p4v1.Entity{settings.Entity()}, nil
}

func (f *feat) attach(env *feature.Env, sw feature.Switch) feature.Loop {
	l := &loop{feat: f, sw: sw, peers: map[uint32]string{}, between: map[uint32]bool{}}
	for _, p := range env.Graph.Ports(sw.Name()) {
		l.peers[p.Number], l.between[p.Number] = p.Peer, p.PeerPort != 0
	}
	settings, err := FromSwitch(env.Switch).settings(env)
	on := err == nil && settings.Detection != 0 && env.Provider(watchCapability) != pb.ByNothing
	if !on {
		l.see(time.Now(), nil)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !on {
		delete(f.switches, sw.Name())
		return nil
	}
	s := f.switches[sw.Name()] // storms of earlier loops stay
	if s == nil {
		s = &state{}
		f.switches[sw.Name()] = s
	}
	s.settings, s.graph = settings, env.Graph
	l.byDefault = settings.Default
	l.every = max(minPoll, min(settings.Detection.Duration()/2, maxPoll), env.Config.Controller.PollInterval)
	return feature.Every{Period: l.every, Do: l.tick}
}

// minDetection is SONiC's default.
const minDetection = 200 * units.Millisecond

// Bounds of how often storms are read, which is no more often than ports are polled. A shorter storm shows in the
// count.
const minPoll, maxPoll = 100 * time.Millisecond, time.Second

type loop struct {
	*feat
	sw      feature.Switch
	peers   map[uint32]string // by port
	between map[uint32]bool   // ports that lead to switches
	every   time.Duration

	byDefault bool // nobody has asked for the watchdog
}

func (l *loop) tick(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, max(time.Second, l.every))
	defer cancel()
	read, err := l.sw.Read(ctx, pipeline.Extern(externs.StormsID))
	if l.byDefault && status.Code(err) == codes.Unimplemented {
		return feature.ErrDone // the switch obeys no PFC, and nobody has asked for the watchdog
	}
	if err != nil {
		return fmt.Errorf("PFC storms: %w", err)
	}
	var storms []externs.Storm
	for _, e := range read {
		more, err := externs.ReadStorms(e.GetExternEntry())
		if err != nil {
			return err
		}
		storms = append(storms, more...)
	}
	l.see(now, storms)
	return nil
}

// see reports begins and ends of storms since the last call. Counters that run backwards mean a restart of the
// switch.
func (l *loop) see(now time.Time, storms []externs.Storm) {
	for _, e := range l.update(now, storms) {
		l.callbacks.Event(e)
	}
}

func (l *loop) update(now time.Time, storms []externs.Storm) (events []*pb.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.switches[l.sw.Name()]
	if s == nil {
		return nil
	}
	first := s.seen.IsZero()
	s.seen = now
	last := s.classes
	s.classes = make(map[class]seen, len(storms))
	begins := func(n *seen) {
		n.told = true
		events = append(events, l.began(now, *n, s))
	}
	for _, x := range storms {
		key := class{x.Port, x.Class}
		was := last[key]
		delete(last, key)
		n := seen{Storm: x, peer: l.peers[x.Port], since: was.since}
		began := x.Count != was.Count && !first || x.On && !was.On
		if !was.told && was.On {
			begins(&was)
		}
		n.told = was.told
		if was.On && (!x.On || x.Count != was.Count) {
			if x.Count == was.Count {
				was.Storm = x
			}
			events = append(events, l.over(now, was))
		}
		if began {
			// The event of a storm between switches waits a tick, so that the storms that may have caused it are read
			// first.
			n.since, n.told = now, false
			if !x.On || !l.between[x.Port] {
				begins(&n)
			}
			if !x.On {
				events = append(events, l.over(now, n))
			}
		}
		s.classes[key] = n
	}
	for _, was := range last {
		if was.On {
			if !was.told {
				begins(&was)
			}
			events = append(events, l.over(now, was))
		}
	}
	return events
}

func (l *loop) began(now time.Time, n seen, s *state) *pb.Event {
	what := map[externs.Action]string{
		externs.Drop: "what leaves for it is dropped", externs.Forward: "its pauses are ignored", externs.Alert: "the class stays paused",
	}[s.settings.Action]
	root := "the storms lead in a circle"
	if at := l.root(s.graph, l.sw.Name(), class{n.Port, n.Class}); at != "" {
		root = "it began at " + at
	}
	return l.event(now, pb.Event_SEVERITY_ERROR, StormAlarm, n, fmt.Sprintf("paused by its peer for %v %% of %v; %s until no PAUSE has come for %v; %s",
		100*s.settings.Share, s.settings.Detection, what, s.settings.Restoration, root))
}

func (l *loop) over(now time.Time, n seen) *pb.Event {
	return l.event(now, pb.Event_SEVERITY_INFO, StormAlarm+"_over", n, fmt.Sprintf("over; %s so far, which dropped %s", units.Count(n.Count, "storm"), units.Count(n.Dropped, "frame")))
}

func (l *loop) event(now time.Time, severity pb.Event_Severity, kind string, n seen, text string) *pb.Event {
	return &pb.Event{
		Time: pb.Stamp(now), Severity: severity, Subject: l.sw.Name(), Kind: kind, Port: n.Port, Class: proto.Uint32(uint32(n.Class)), Since: pb.Stamp(n.since),
		Message: fmt.Sprintf("port %d (%s) class %d: %s", n.Port, n.peer, n.Class, text),
	}
}

// StormAlarm is the kind of a storm's event; with the suffix "_over" it reports the end.
const StormAlarm = "pfc.received_storm"

// Config is the section pfc_watchdog, by the names of SONiC's pfcwd. The fabric has one, and a switch may override
// any of its keys in its own section. Times are wall-clock times.
type Config struct {
	// DetectionTime is how long a peer may pause a class before that counts as a storm, 1 ms … 1 h, or off. By
	// default the watchdog only raises an alarm. The time is then twice that of a PAUSE of 65535 quanta at the
	// switch's slowest port, at least SONiC's 200 ms: one PAUSE lasts 335 ms at 100 Mb/s and need not be a storm. A
	// switch whose flags set a watchdog keeps it.
	DetectionTime time.Duration
	// Share is the part of DetectionTime for which a class is paused in a storm, above 0 to 1; default 0.98. A port
	// that up to 49 senders share pauses each for less than that. With 1 only a pause without a break is a storm.
	Share float64
	// RestorationTime is the time without a PAUSE after which a storm is over, 1 ms … 1 h; default DetectionTime.
	RestorationTime time.Duration
	// Action is taken on the class's packets in a storm: drop, forward or alert; default drop.
	Action externs.Action
}

// byDefault is the DetectionTime of a file that sets none.
const byDefault = -1

// settings returns the watchdog's settings of a switch, by default an alarm; Detection is 0 to watch nothing.
func (c Config) settings(env *feature.Env) (externs.Settings, error) {
	if c.DetectionTime == byDefault {
		s := externs.Settings{Detection: minDetection, Action: externs.Alert, Default: true}
		for _, p := range env.Graph.Ports(env.Switch.Name) {
			s.Detection = max(s.Detection, 2*p.Rate.PauseTime(65535))
		}
		if env.Provider(watchCapability) == pb.ByNothing {
			s.Detection = 0
		}
		return s.WithDefaults()
	}
	return externs.Settings{
		Detection: units.FromDuration(c.DetectionTime), Restoration: units.FromDuration(c.RestorationTime), Share: c.Share, Action: c.Action,
	}.WithDefaults()
}

// FromSwitch returns the section of a switch.
func FromSwitch(s *config.Switch) Config { return config.SectionOf[Config](s, "pfc_watchdog") }

var section = config.Overridable("pfc_watchdog", func(*config.Config) Config {
	return Config{DetectionTime: byDefault, Share: externs.DefaultShare, Action: externs.Drop}
}, readOver)

func readOver(m *yamlnode.Map, c Config) Config {
	const low, high = time.Millisecond, time.Hour
	m.Computed("detection_time")
	c.DetectionTime = m.WallOrOff("detection_time", c.DetectionTime, low, high)
	c.Share = m.Above("share", c.Share, 0, 1)
	c.RestorationTime = m.Wall("restoration_time", c.RestorationTime, low, high)
	c.Action = externs.Action(m.OneOf("action", string(c.Action), string(externs.Drop), string(externs.Forward), string(externs.Alert)))
	if c.DetectionTime <= 0 && (m.Has("restoration_time") || m.Has("share") || m.Has("action")) {
		m.Fault("", "has restoration_time, share or action, want detection_time with them: without it the watchdog is off, or only alarms")
	}
	return c
}
