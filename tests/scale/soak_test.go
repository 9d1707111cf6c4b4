package scale

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/tests/lag"
)

var (
	long  = flag.Duration("for", time.Hour, "how long the soak takes")
	seed  = flag.Uint64("seed", 1, "of the soak's faults")
	most  = flag.Duration("late", 10*time.Second, "a soak in which a timer was later than this is invalid")
	small = flag.Int("switches", 40, "of the soak's fabric")
)

// sample is what the controller's process holds; of one process, as a restart begins anew.
type sample struct {
	at, heap, goroutines, files float64 // seconds since the soak began, bytes, numbers
}

// TestSoak does to a fabric, one after the other at random, what happens to one: a switch that loses its
// process and comes back empty, a cable that is cut for a moment, a link that an operator takes out, a
// configuration that is applied, weights, a controller that is killed. It measures the controller while
// nothing is broken, and fails when that grows: when the regression line over all samples since the last
// restart rises by more than a tenth of what it began with, and by more than what one sample
// differs from the next. At the end all must be ready, and the plan empty.
func TestSoak(t *testing.T) {
	if os.Getenv("HEADGATE_SOAK") == "" {
		t.Skip("needs HEADGATE_SOAK=1: it takes an hour by default")
	}
	late := lag.Watch()
	s := &soak{t: t, random: rand.New(rand.NewPCG(*seed, 0)), done: map[string]int{}, dir: t.TempDir()}
	s.farm = newFarm(t, newFabric(*small, 20*(*small)))
	s.yaml = string(s.farm.yaml(s.farm.addresses(), fmt.Sprintf("  poll_interval: 1s\n  probe_interval: 300ms\n  flap_hold_max: 2s\n  state: %s/state.db\n", s.dir)))
	s.start()
	for range kept/2 + 1 {
		s.apply()
	}
	began := time.Now()
	restart := began.Add(*long / 10) // the only one, so that the rest is of one process
	for n := 0; time.Since(began) < *long; n++ {
		if restarts := s.done["controller"]; restarts == 0 && time.Now().After(restart) {
			s.fault("controller", s.controller)
			s.samples = nil
		}
		s.any()
		s.settle()
		if n%5 == 4 {
			s.measure(time.Since(began))
		}
	}
	changes, err := s.d.plan(t.Context())
	if err != nil || changes != 0 {
		t.Errorf("at the end the plan has %d changes, want none: %v", changes, err)
	}
	t.Logf("faults: %v; %d samples", s.done, len(s.samples))
	worst := late()
	t.Logf("a timer was late by %v at most", worst)
	if worst > *most {
		t.Skipf("invalid: a timer was late by %v, more than %v", worst, *most)
	}
	s.judge()
}

// kept is how many configurations the history keeps (package store), with all their text: that is no
// growth.
const kept = 100

// soak is a run; one goroutine owns it.
type soak struct {
	t       *testing.T
	random  *rand.Rand
	farm    *farm
	d       *daemon
	dir     string
	yaml    string
	samples []sample
	done    map[string]int
}

func (s *soak) start() {
	s.d = newDaemon(s.t, s.dir, []byte(s.yaml))
	s.settle()
}

// settle waits until all switches are ready and no link is down.
func (s *soak) settle() {
	s.t.Helper()
	lag.Await(s.t, "a fabric in order", func() bool {
		time.Sleep(100 * time.Millisecond)
		r, err := s.d.api.GetFabric(s.t.Context(), &pb.GetFabricRequest{})
		if err != nil {
			return false
		}
		for _, l := range r.GetLinks() {
			if l.State == pb.PortStatus_STATE_DOWN {
				return false
			}
		}
		return s.d.states(s.t.Context())[pb.SwitchStatus_STATE_READY] == len(s.farm.list)
	})
}

func (s *soak) fault(name string, do func()) {
	s.done[name]++
	do()
}

// any does one thing at random.
func (s *soak) any() {
	faults := []struct {
		name string
		do   func()
	}{{"switch", s.kill}, {"cable", s.cut}, {"link", s.link}, {"apply", s.apply}, {"weights", s.weights}}
	f := faults[s.random.IntN(len(faults))]
	s.fault(f.name, f.do)
}

func (s *soak) pause(most time.Duration) { time.Sleep(time.Duration(s.random.Int64N(int64(most)))) }

// kill ends a switch's process and starts it again, empty.
func (s *soak) kill() {
	sw := s.farm.list[s.random.IntN(len(s.farm.list))]
	sw.stop()
	s.pause(3 * time.Second)
	if err := sw.start(); err != nil {
		s.t.Fatal(err)
	}
}

// cut breaks a cable for a moment, or for so long that probes find it.
func (s *soak) cut() {
	cable := &s.farm.cut[s.random.IntN(len(s.farm.cut))]
	cable.Store(true)
	s.pause(3 * time.Second)
	cable.Store(false)
}

// link takes a link out of service and puts it back.
func (s *soak) link() {
	a, b := s.farm.link(s.random.IntN(len(s.farm.links)))
	for _, up := range []bool{false, true} {
		if _, err := s.d.api.SetLink(s.t.Context(), &pb.SetLinkRequest{A: a, B: b, Up: up}); err != nil {
			s.t.Fatal(err)
		}
		s.pause(time.Second)
	}
}

// apply applies the configuration with marks of congestion, and without.
func (s *soak) apply() {
	for _, edit := range []string{"\nqos: {ecn: [{queue: 1, kmin: 10KB, kmax: 100KB, pmax: 0.5}]}\n", ""} {
		if _, err := s.d.api.ApplyConfig(s.t.Context(), &pb.ApplyConfigRequest{File: "fabric.yaml", Config: s.yaml + edit}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// weights sets a hundred flows' weights and deletes them.
func (s *soak) weights() {
	api := pb.NewWeightServiceClient(s.d.conn)
	for i := range 100 {
		flow := &pb.FlowKey{SrcIpv4: "10.1.0.0", DstIpv4: "10.1.0.1", SrcPort: uint32(1000 + i), DstPort: 50151}
		if _, err := api.SetWeight(s.t.Context(), &pb.SetWeightRequest{Flow: flow, Weight: float64(1 + s.random.IntN(8))}); err != nil {
			s.t.Fatal(err)
		}
		if _, err := api.DeleteFlow(s.t.Context(), &pb.DeleteFlowRequest{Flow: flow}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// controller kills the controller and starts another one with its state.
func (s *soak) controller() {
	s.d.kill()
	s.start()
}

func (s *soak) measure(at time.Duration) {
	x := sample{at.Seconds(), float64(s.d.heap()), float64(s.d.goroutines()), float64(s.d.files())}
	s.samples = append(s.samples, x)
	s.t.Logf("%5.0f s: heap %.1f MB, %.0f goroutines, %.0f files; %v", x.at, x.heap/1e6, x.goroutines, x.files, s.done)
}

// judge compares what the regression line gains over the run with what it began with and with the noise.
func (s *soak) judge() {
	if len(s.samples) < 10 {
		s.t.Skipf("invalid: only %d samples, want 10 or more: make it longer with -for", len(s.samples))
	}
	settled := s.samples[2:] // caches and the history of events fill first
	var at []float64
	for _, x := range settled {
		at = append(at, x.at)
	}
	for name, of := range map[string]func(sample) float64{
		"heap":       func(x sample) float64 { return x.heap },
		"goroutines": func(x sample) float64 { return x.goroutines },
		"files":      func(x sample) float64 { return x.files },
	} {
		var y []float64
		for _, x := range settled {
			y = append(y, of(x))
		}
		from, slope := stat.LinearRegression(at, y, nil, false)
		first := from + slope*at[0]
		gain, noise := slope*(at[len(at)-1]-at[0]), stat.StdDev(y, nil)
		s.t.Logf("%s: %.3g at first, %+.3g over the run, which is %+.1f %%; standard deviation %.3g", name, first, gain, 100*gain/first, noise)
		if gain > first/10 && gain > noise {
			s.t.Errorf("%s grows: by %.3g over %.0f s, from %.3g", name, gain, at[len(at)-1]-at[0], first)
		}
	}
}
