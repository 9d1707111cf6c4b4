package device

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/internal/fakeswitch"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/reconcile"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

// memoryManager is a traffic manager that takes everything, or nothing while it is broken.
type memoryManager struct {
	mu     sync.Mutex
	rows   []string
	broken bool
}

var errBroken = errors.New("broken")

func (m *memoryManager) Plan(_ context.Context, want *trafficmanager.Settings) ([]view.Change, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.Equal(m.rows, want.Rows()) {
		return nil, nil
	}
	return []view.Change{{Kind: view.Modify, Text: "rows"}}, nil
}

func (m *memoryManager) Apply(_ context.Context, want *trafficmanager.Settings) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken {
		return 0, errBroken
	}
	m.rows = want.Rows()
	return 1, nil
}

func (m *memoryManager) Change(ctx context.Context, _, want *trafficmanager.Settings) (int, error) {
	return m.Apply(ctx, want)
}

func (m *memoryManager) Pauses(context.Context, []uint32) (map[uint32]trafficmanager.PauseCounters, error) {
	return map[uint32]trafficmanager.PauseCounters{1: {Frames: 5}}, nil
}

func (*memoryManager) Close() error { return nil }

func (m *memoryManager) has(rows []string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Equal(m.rows, rows)
}

func (m *memoryManager) breaks(b bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = b
}

// TestVictims: what a loop says to the traffic manager is written at once, survives resyncs
// and failures, shows in no plan, and ends with the loop.
func TestVictims(t *testing.T) {
	env := testenv.New(t, "../..", nil)
	o := &overlayer{pipe: env.Pipeline}
	fake := fakeswitch.New(t, 1)
	fake.Start()
	m := &memoryManager{}
	d := New(Options{
		Switch: config.Switch{Name: "s1", DeviceID: 1, Address: fake.Address(), PriorityQueues: 8}, ElectionID: 1, Pipeline: env.Pipeline,
		Features: []feature.Feature{o}, Manager: func() (Manager, error) { return m, nil },
		RetryMin: time.Millisecond, RetryMax: 10 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	defer func() { cancel(); <-done }()
	shaped := func(alpha headroom.Alpha, victims ...uint32) *trafficmanager.Settings {
		t.Helper()
		ports := []headroom.Port{{Rate: 10 * units.Gbps}, {Rate: 10 * units.Gbps}}
		s, err := trafficmanager.Shape(trafficmanager.Config{
			Chip: trafficmanager.Tofino1, Ports: []trafficmanager.Port{{Number: 1}, {Number: 3}}, Victims: victims,
			MMU: &headroom.Config{Policy: headroom.SPFC, Buffer: 4 * units.MB, Ports: ports, Lossless: 8, Alpha: alpha},
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	want := func(env *feature.Env, alpha headroom.Alpha) Want {
		s := &reconcile.State{}
		list, _ := o.Desired(env, "s1")
		for _, e := range list {
			if err := s.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		return Want{Env: env, State: s, Manager: shaped(alpha)}
	}
	apply := func(w Want) {
		t.Helper()
		d.Want(w)
		if r := d.Settle(ctx); r.Err != "" {
			t.Fatal(r.Err)
		}
	}
	holds := func(what string, alpha headroom.Alpha, victims ...uint32) {
		t.Helper()
		rows := shaped(alpha, victims...).Rows()
		eventually(t, what, func() bool { return m.has(rows) })
	}
	first := want(env, 0)
	apply(first)
	holds("the shape", 0)
	sw := o.last(t, 1).(feature.Managed)
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

	// The same configuration again, settings of its own.
	apply(want(env, 0))
	holds("the victim under new settings", 0, 3)

	// What the traffic manager does not take degrades the switch, and is tried again.
	m.breaks(true)
	if err := sw.Victims([]uint32{1, 3}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "degraded", func() bool { return d.Status().State == view.Degraded })
	m.breaks(false)
	holds("the victims after all", 0, 1, 3)
	eventually(t, "ready", func() bool { return d.Status().State == view.Ready })

	// Another configuration ends the loop and what it has said.
	changed, err := config.Parse("other.yaml", env.Config.Source)
	if err != nil {
		t.Fatal(err)
	}
	other := *env
	other.Config = changed
	apply(want(&other, 0))
	holds("the shape again", 0)
	if err := sw.Victims([]uint32{3}); !errors.Is(err, errDropped) {
		t.Errorf("error = %v", err)
	}
}
