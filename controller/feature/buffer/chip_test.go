package buffer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/p4src/ids"
)

// managed is a switch with a traffic manager.
type managed struct {
	testenv.Switch
	pauses  map[uint32]trafficmanager.PauseCounters
	victims []uint32
	told    int
	err     error // of Pauses
}

func (m *managed) Pauses(_ context.Context, ports []uint32) (map[uint32]trafficmanager.PauseCounters, error) {
	read := map[uint32]trafficmanager.PauseCounters{}
	for _, p := range ports {
		read[p] = m.pauses[p]
	}
	return read, m.err
}

func (m *managed) Victims(ports []uint32) error {
	m.victims, m.told = ports, m.told+1
	return nil
}

// chipRig is a loop for leaf1 as a chip, with its own clock and counters.
type chipRig struct {
	*rig
	m *managed
}

func newChipRig(t *testing.T, edits ...string) *chipRig {
	t.Helper()
	callbacks := &testenv.Callbacks{}
	r := &chipRig{rig: &rig{T: t, f: newFeat(callbacks), callbacks: callbacks, now: time.Unix(1000, 0), counters: map[[2]int64]int64{}}}
	r.m = &managed{pauses: map[uint32]trafficmanager.PauseCounters{}}
	r.m.Switch = testenv.Switch{Switch: "leaf1", Answer: r.read}
	r.sw = &r.m.Switch
	env := testenv.WithPipeline(environment(t, append([]string{"policy: dsh ", "policy: spfc "}, edits...)...), testenv.Tofino(t, "tofino1"))
	if r.loop = r.f.attach(env, r.m); r.loop == nil {
		t.Fatal("no loop")
	}
	return r
}

// paused adds to the counters of port 1's MAC.
func (r *chipRig) paused(d time.Duration, frames, portFrames uint64) {
	c := r.m.pauses[1]
	c.Time[3] += d
	c.Frames += frames
	c.PortFrames += portFrames
	r.m.pauses[1] = c
}

// SPFC's state machine fed from a chip's counters, with K = 5 and a period of 100 ms.
func TestChipVictims(t *testing.T) {
	r := newChipRig(t)
	steps := []struct {
		what     string
		share    float64
		time     time.Duration // paused time per period
		pfc, all uint64        // frames per period
		want     string
		paused   uint8
	}{
		{"idle", 0, 0, 0, 0, "[]", 0},
		{"just below C/K", 0.19, 0, 0, 0, "[]", 0},
		{"above C/K", 0.22, 0, 0, 0, "[1]", 0},
		{"much above", 0.9, 0, 0, 0, "[1]", 0},
		{"it pauses", 0.9, 20 * time.Millisecond, 2, 0, "[]", 1 << 3},
		{"without PFC frames", 0.9, 100 * time.Millisecond, 0, 0, "[]", 1 << 3},
		{"resumed", 0.9, 0, 0, 0, "[1]", 0},
		{"for less than a microsecond", 0.9, 0, 2, 0, "[]", 1 << 3},
		{"resumed again", 0.9, 0, 0, 0, "[1]", 0},
		{"the port as a whole", 0.9, 0, 0, 2, "[]", 1 << 3},
		{"below", 0.1, 0, 0, 0, "[]", 0},
	}
	for _, s := range steps {
		for range 3 { // the first period after a PAUSE does not count
			r.run(r.loop.Interval(), func(step time.Duration) {
				r.departing(s.share)(step)
				r.paused(s.time, s.pfc, s.all)
			})
		}
		p := r.state()
		if got := fmt.Sprint(r.m.victims); got != s.want || p.Victim != (s.want != "[]") || p.Paused != s.paused || p.PortPaused != (s.all > 0) {
			t.Errorf("%s: victims %s, want %s; state %+v", s.what, got, s.want, p)
		}
	}
	if p := r.state(); p.Turns != 6 || r.m.told != 6 || p.PausedTime[3] != 360*time.Millisecond || p.Pauses != 18 || p.Departed == 0 {
		t.Errorf("told %d times; port %+v", r.m.told, p)
	}
	if b := r.shown(); b.Policy != "spfc" || b.Time.IsZero() || r.events() != "" {
		t.Errorf("shown is %+v", b)
	}
}

// A PAUSE ends the victim state at the reading that shows it. After a RESUME, the state returns one
// period without a PAUSE later.
func TestChipDelays(t *testing.T) {
	r := newChipRig(t)
	tick := func(paused time.Duration) bool {
		t.Helper()
		r.run(r.loop.Interval(), func(step time.Duration) {
			r.departing(0.5)(step)
			r.paused(paused, 0, 0)
		})
		return r.state().Victim
	}
	var got []bool
	for _, paused := range []time.Duration{0, 0, time.Microsecond, time.Microsecond, 0} {
		got = append(got, tick(paused))
	}
	if want := []bool{false, true, false, false, true}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("a victim: %v, want %v", got, want)
	}
}

// A counter of either kind that runs backwards means a restart: the port is normal and its state
// machine starts again.
func TestChipRestart(t *testing.T) {
	r := newChipRig(t)
	for _, back := range []func(){
		func() { clear(r.m.pauses) },
		func() { clear(r.counters) },
	} {
		r.paused(time.Millisecond, 1, 0)
		r.run(500*time.Millisecond, r.departing(0.5))
		if !r.state().Victim {
			t.Fatalf("no victim: %+v", r.state())
		}
		back()
		r.run(r.loop.Interval(), r.departing(0.5))
		if r.state().Victim || len(r.m.victims) != 0 || r.events() != "buffer.restarted" {
			t.Errorf("after the restart: %+v", r.state())
		}
		r.callbacks.Events = nil
		r.run(500*time.Millisecond, r.departing(0.5))
		if !r.state().Victim {
			t.Error("the state machine does not run again")
		}
	}
	if r.counters[[2]int64{int64(ids.CounterIngressDepartures), 1}] == 0 {
		t.Error("nothing departed")
	}
}

// While pause counters cannot be read, no port is a victim, and other loops do not wait.
func TestChipUnread(t *testing.T) {
	r := newChipRig(t)
	r.run(500*time.Millisecond, r.departing(0.5))
	if len(r.m.victims) != 1 {
		t.Fatal("no victim")
	}
	r.m.err = errors.New("gone")
	r.now = r.now.Add(r.loop.Interval())
	if err := r.loop.Tick(t.Context(), r.now); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("error = %v", err)
	}
	if len(r.m.victims) != 0 || r.state().Victim {
		t.Errorf("victims %v", r.m.victims)
	}
	r.m.err = nil
	r.run(500*time.Millisecond, r.departing(0.5))
	if len(r.m.victims) != 1 {
		t.Error("no victim once they can be read again")
	}
}

// Only a policy with victims has a loop, and only on a switch with a traffic manager.
func TestChipWithoutLoop(t *testing.T) {
	callbacks := &testenv.Callbacks{}
	f, chip := newFeat(callbacks), testenv.Tofino(t, "tofino2")
	if l := f.attach(testenv.WithPipeline(environment(t), chip), &managed{Switch: testenv.Switch{Switch: "leaf1"}}); l != nil {
		t.Error("a loop for dsh")
	}
	if l := f.attach(testenv.WithPipeline(environment(t, spfc...), chip), &testenv.Switch{Switch: "leaf1"}); l != nil {
		t.Error("a loop without a traffic manager")
	}
	if b := f.State("leaf1"); b == nil || b.Policy != "spfc" || len(b.Ports) != 0 {
		t.Errorf("shown is %+v", b)
	}
}
