package priority

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/state/outcome"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/units"
)

const us = units.Microsecond

// paper is a configuration with the paper's plan over a base of 12 µs.
func paper(t *testing.T, priorities int) *config.Config {
	p := channel.Paper(12 * us)
	return withNoise(t, p.Noise, priorities)
}

func withNoise(t *testing.T, noise units.Time, priorities int) *config.Config {
	return prioPlusConfig(t, 1, "100Gbps", fmt.Sprintf("prioplus: {base_rtt: 12us, fluctuation: %v, noise: %v, priorities: %d}", channel.Paper(12*us).Fluctuation, noise, priorities))
}

func configured(t *testing.T, cfg *config.Config) *Registry {
	t.Helper()
	r := New(nil)
	if _, err := r.Configure(cfg); err != nil {
		t.Fatal(err)
	}
	return r
}

// The paper's numbers: D_target = base + i * 4 us, D_limit = D_target + 2.4 us (§4.3.2, §6).
func TestAllocate(t *testing.T) {
	r := configured(t, paper(t, 4))
	p, err := r.Allocate(nil, "web", 2)
	if want := (Priority{2, "web", channel.Channel{Target: 20 * us, Limit: 22*us + 400*units.Nanosecond}}); err != nil || p != want {
		t.Fatalf("priority %+v, %v, want %+v", p, err, want)
	}
	for i, want := range []int{1, 3, 4} {
		if p, err := r.Allocate(nil, "", 0); err != nil || p.Number != want || p.Application != DefaultApplication {
			t.Fatalf("free priority %d: %+v, %v, want %d", i, p, err, want)
		}
	}
	if _, err := r.Allocate(nil, "web", 0); !errors.Is(err, ErrFull) {
		t.Errorf("a fifth priority: %v", err)
	}
	if p, err := r.Allocate(nil, "web", 2); err != nil || p.Number != 2 {
		t.Errorf("the same priority again: %+v, %v", p, err)
	}
	var taken *TakenError
	if _, err := r.Allocate(nil, "batch", 2); !errors.As(err, &taken) || taken.Owner != "web" {
		t.Errorf("another's priority: %v", err)
	}
	if err := r.Release(nil, "batch", 2); !errors.As(err, &taken) {
		t.Errorf("release of another's: %v", err)
	}
	if err := r.Release(nil, "web", 2); err != nil {
		t.Error(err)
	}
	if err := r.Release(nil, "web", 2); !errors.Is(err, ErrFree) {
		t.Errorf("release twice: %v", err)
	}
	if p, err := r.Allocate(nil, "batch", 0); err != nil || p.Number != 2 {
		t.Errorf("after the release: %+v, %v", p, err)
	}
}

func TestChannelOfAFlow(t *testing.T) {
	r := configured(t, paper(t, 3))
	if _, err := r.Allocate(nil, "web", 2); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		app    string
		number int
		want   string
	}{
		{"web", 2, ""}, {"batch", 1, ""}, {"", 3, ""},
		{"batch", 2, `priority 2 belongs to application "web"`},
		{"web", 4, "priority 4 is not allowed: want 1 to 3"},
		{"web", 0, "priority 0 is not allowed: want 1 to 3"},
	} {
		c, base, err := r.Channel(tt.app, tt.number)
		if tt.want == "" {
			if want, _ := channel.Paper(12 * us).Channel(tt.number); err != nil || c != want || base != 12*us {
				t.Errorf("%s at %d: %+v over %v, %v, want %+v", tt.app, tt.number, c, base, err, want)
			}
		} else if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s at %d: error %v, want %q", tt.app, tt.number, err, tt.want)
		}
	}
}

// A new plan recomputes every channel and tells waiting readers. A plan that would remove an
// allocated priority is refused and changes nothing.
func TestConfigure(t *testing.T) {
	r := configured(t, paper(t, 4))
	if _, err := r.Allocate(nil, "web", 3); err != nil {
		t.Fatal(err)
	}
	_, changed := r.List()
	if _, err := r.Configure(paper(t, 4)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
		t.Error("the same plan was told as a change")
	default:
	}
	noisy := withNoise(t, 2*us, 3)
	undo, err := r.Configure(noisy)
	if err != nil {
		t.Fatal(err)
	}
	<-changed
	list, _ := r.List()
	if want := (Priority{3, "web", channel.Channel{Target: 12*us + 3*5200*units.Nanosecond, Limit: 12*us + 3*5200*units.Nanosecond + 3600*units.Nanosecond}}); len(list) != 3 || list[2] != want {
		t.Errorf("priorities %+v, want the last to be %+v", list, want)
	}
	for name, plan := range map[string]*config.Config{"two priorities": paper(t, 2), "no plan": {}} {
		if _, err := r.Configure(plan); err == nil || !strings.Contains(err.Error(), `application "web" has priority 3, release it first`) {
			t.Errorf("%s: %v", name, err)
		}
		if err := r.Check(plan); err == nil {
			t.Errorf("%s: Check has nothing against it", name)
		}
	}
	if p, ok := r.Plan(); !ok || p != *PlanOf(noisy) {
		t.Errorf("plan %+v, %v after refusals", p, ok)
	}
	_, changed = r.List()
	undo()
	<-changed
	if p, ok := r.Plan(); !ok || p != *PlanOf(paper(t, 4)) {
		t.Errorf("plan %+v, %v after the last one was taken back", p, ok)
	}
}

func TestWithoutPlan(t *testing.T) {
	r := New(nil)
	if _, err := r.Allocate(nil, "web", 1); !errors.Is(err, ErrNoPlan) {
		t.Errorf("Allocate: %v", err)
	}
	if _, _, err := r.Channel("web", 1); !errors.Is(err, ErrNoPlan) {
		t.Errorf("Channel: %v", err)
	}
	if list, _ := r.List(); len(list) != 0 {
		t.Errorf("List: %v", list)
	}
	if _, err := r.Configure(&config.Config{}); err != nil {
		t.Error(err)
	}
}

// Many applications allocate at the same time; no two get the same priority.
func TestConcurrentAllocation(t *testing.T) {
	r := configured(t, paper(t, 64))
	var mu sync.Mutex
	owners := map[int]string{}
	var wg sync.WaitGroup
	for app := range 8 {
		name := string(rune('a' + app))
		wg.Go(func() {
			for range 8 {
				p, err := r.Allocate(nil, name, 0)
				mu.Lock()
				if err != nil || owners[p.Number] != "" {
					t.Errorf("%s got %+v, %v, which %q has", name, p, err, owners[p.Number])
				}
				owners[p.Number] = name
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(owners) != 64 {
		t.Errorf("%d priorities were given, want 64", len(owners))
	}
}

// slowKeeper begins a write and ends it on a signal.
type slowKeeper struct{ began, end chan struct{} }

func (slowKeeper) Priorities() map[int]string { return map[int]string{} }

func (k slowKeeper) SavePriority(int, string, *outcome.Done) error {
	k.began <- struct{}{}
	<-k.end
	return nil
}

// TestReadersWaitForNoWrite: while an allocation is written to a slow store, hosts' streams still get their
// channels.
func TestReadersWaitForNoWrite(t *testing.T) {
	k := slowKeeper{make(chan struct{}), make(chan struct{})}
	r := New(k)
	if _, err := r.Configure(paper(t, 4)); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if p, err := r.Allocate(nil, "web", 2); err != nil || p.Application != "web" {
			t.Errorf("%+v, %v", p, err)
		}
	})
	<-k.began
	read := make(chan struct{})
	go func() {
		defer close(read)
		if _, _, err := r.Channel("batch", 2); err != nil {
			t.Errorf("a priority that is nobody's yet: %v", err)
		}
		r.Changed()
		r.List()
	}()
	select {
	case <-read:
	case <-time.After(5 * time.Second):
		t.Error("readers wait for the store")
	}
	close(k.end)
	wg.Wait()
	<-read
	if _, _, err := r.Channel("batch", 2); err == nil {
		t.Error("another application has a channel of a priority that is taken")
	}
}
