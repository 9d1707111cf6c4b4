package device

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/reconcile"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tests/lag"
	"github.com/headgate/headgate/tests/switchtest"
	"github.com/headgate/headgate/units"
)

// attacher is a feature with one desired limit. It records the switches to which it was attached.
type attacher struct {
	pipe *pipeline.Pipeline

	mu       sync.Mutex
	switches []feature.Switch // one for each attachment
}

func limit(p *pipeline.Pipeline, port, bytes uint64) *p4v1.Entity {
	e, err := p.Entry(ids.TableQueueLimitName).Exact("egress_port", p4rtmsg.Uint(port)).Exact("queue", p4rtmsg.Uint(0)).
		Action(ids.ActionSetQueueLimitName, pipeline.Arg{Name: "bytes", Value: p4rtmsg.Uint(bytes)}).Entity()
	if err != nil {
		panic(err)
	}
	return e
}

func (a *attacher) feature() *feature.Feature {
	return &feature.Feature{Name: "attacher", Desired: a.Desired, Attach: a.Attach}
}

func (a *attacher) Desired(*feature.Env) ([]*p4v1.Entity, error) {
	return []*p4v1.Entity{limit(a.pipe, 1, 100)}, nil
}

func (a *attacher) Attach(_ *feature.Env, sw feature.Switch) feature.Loop {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.switches = append(a.switches, sw)
	return nil
}

// last waits for n attachments and returns the last one.
func (a *attacher) last(t *testing.T, n int) feature.Switch {
	t.Helper()
	var sw feature.Switch
	eventually(t, "attachment", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.switches) >= n {
			sw = a.switches[len(a.switches)-1]
		}
		return sw != nil
	})
	return sw
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	lag.Await(t, what, cond)
}

// memoryManager is a traffic manager that takes everything, or nothing while it is broken.
type memoryManager struct {
	mu     sync.Mutex
	held   *trafficmanager.Config
	broken bool
}

var errBroken = errors.New("broken")

func (m *memoryManager) Plan(_ context.Context, want *trafficmanager.Config) ([]*pb.Change, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held.Equal(want) {
		return nil, nil
	}
	return []*pb.Change{{Kind: pb.Change_KIND_MODIFY, Table: "rows"}}, nil
}

func (m *memoryManager) Apply(_ context.Context, _, want *trafficmanager.Config) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken {
		return 0, errBroken
	}
	m.held = want
	return 1, nil
}

func (m *memoryManager) Pauses(context.Context, []uint32) (map[uint32]trafficmanager.PauseCounters, error) {
	return map[uint32]trafficmanager.PauseCounters{1: {Frames: 5}}, nil
}

func (*memoryManager) Check(*trafficmanager.Config) error { return nil }

func (*memoryManager) Close() error { return nil }

func (m *memoryManager) has(want *trafficmanager.Config) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held.Equal(want)
}

func (m *memoryManager) breaks(b bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = b
}

// TestVictims: a loop's settings for the traffic manager are written at once, survive resyncs and
// failures, appear in no plan, and end with the loop.
func TestVictims(t *testing.T) {
	env := testenv.New(t, "../../..", nil)
	o := &attacher{pipe: env.Pipeline}
	fake := switchtest.New(t, 1)
	fake.Start()
	m := &memoryManager{}
	d := New(Options{
		Switch: config.Switch{Name: "s1", DeviceID: 1, Address: fake.Address(), PriorityQueues: 8}, ElectionID: 1, Pipeline: env.Pipeline,
		Features: []*feature.Feature{o.feature()}, TrafficManager: m,
		RetryMin: time.Millisecond, RetryMax: 10 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	defer func() { cancel(); <-done }()
	shaped := func(alpha headroom.Alpha, victims ...uint32) *trafficmanager.Config {
		ports := []headroom.Port{{Rate: 10 * units.Gbps}, {Rate: 10 * units.Gbps}}
		return &trafficmanager.Config{
			Ports: []trafficmanager.Port{{Number: 1}, {Number: 3}}, Victims: victims,
			MMU: &headroom.Config{Policy: headroom.SPFC, Buffer: 4 * units.MB, Ports: ports, Lossless: 8, Alpha: alpha},
		}
	}
	want := func(env *feature.Env, alpha headroom.Alpha) Desired {
		s := &reconcile.State{}
		list, _ := o.Desired(env)
		for _, e := range list {
			if err := s.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		return Desired{Env: env, State: s, TrafficManager: shaped(alpha)}
	}
	apply := func(w Desired) {
		t.Helper()
		d.SetDesired(w)
		if r := d.Wait(ctx); r.Error != "" {
			t.Fatal(r.Error)
		}
	}
	holds := func(what string, alpha headroom.Alpha, victims ...uint32) {
		t.Helper()
		want := shaped(alpha, victims...)
		eventually(t, what, func() bool { return m.has(want) })
	}
	first := want(env, 0)
	apply(first)
	holds("the shape", 0)
	sw := o.last(t, 1).(feature.TrafficManager)
	if got, err := sw.Pauses(ctx, []uint32{1}); err != nil || got[1].Frames != 5 {
		t.Errorf("pauses = %v, %v", got, err)
	}
	if err := sw.Victims([]uint32{2}); err == nil {
		t.Error("a victim that is no port")
	}
	if err := sw.Victims([]uint32{3}); err != nil {
		t.Fatal(err)
	}
	holds("the victim", 0, 3)
	for alpha, changes := range map[headroom.Alpha]int{0: 0, 1: 1} {
		if p := d.Plan(ctx, want(env, alpha)); len(p.Changes) != changes || p.Unreachable != "" {
			t.Errorf("plan of α %v = %+v", alpha, p)
		}
	}

	// The same configuration again, with other settings of its own.
	apply(want(env, 0))
	holds("the victim under new settings", 0, 3)

	// Settings that the traffic manager refuses degrade the switch and are tried again.
	m.breaks(true)
	if err := sw.Victims([]uint32{1, 3}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "degraded", func() bool { return d.Status().State == pb.SwitchStatus_STATE_DEGRADED })
	m.breaks(false)
	holds("the victims after all", 0, 1, 3)
	eventually(t, "ready", func() bool { return d.Status().State == pb.SwitchStatus_STATE_READY })

	// Another configuration ends the loop and its settings.
	other := *env
	other.Config = testenv.New(t, "../../..", func(text string) string { return text + "# another\n" }).Config
	apply(want(&other, 0))
	holds("the shape again", 0)
	if err := sw.Victims([]uint32{3}); !errors.Is(err, errDropped) {
		t.Errorf("error = %v", err)
	}
	// A restart of the switch ends them, too.
	sw = o.last(t, 2).(feature.TrafficManager)
	if err := sw.Victims([]uint32{1}); err != nil {
		t.Fatal(err)
	}
	holds("the victim of the new loop", 0, 1)
	fake.Stop()
	eventually(t, "disconnected", func() bool { return d.Status().State == pb.SwitchStatus_STATE_DISCONNECTED })
	fake.Start()
	holds("the shape after the restart", 0)
}
