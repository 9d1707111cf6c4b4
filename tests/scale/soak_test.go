package scale

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/controller/state/store"
	"github.com/headgate/headgate/plotting"
	"github.com/headgate/headgate/tests/lag"
)

var (
	long  = flag.Duration("for", time.Hour, "how long the soak takes")
	seed  = flag.Uint64("seed", 1, "of the soak's faults")
	most  = flag.Duration("late", 10*time.Second, "a soak in which a timer was later than this is invalid")
	small = flag.Int("switches", 40, "of the soak's fabric")
)

// sample is the controller process's memory and resources.
type sample struct {
	at, heap, goroutines, files float64 // seconds since the soak began, bytes, numbers
}

// TestSoak applies random events to a fabric one after the other: a switch restarts empty, a cable is cut for a
// moment, an operator takes a link out of service, a configuration is applied, weights change. It measures the
// controller while nothing is broken. It fails if the controller grows: if the regression line over all samples
// rises by more than a tenth of its start, and by more than neighbouring samples differ. Everything that the
// controller keeps up to a bound has reached the bound before: the test begins with the state of a long run, and
// kills the controller once. At the end all switches must be ready, and the plan empty.
func TestSoak(t *testing.T) {
	if os.Getenv("HEADGATE_SOAK") == "" {
		t.Skip("needs HEADGATE_SOAK=1: it takes an hour by default")
	}
	late := lag.Watch()
	s := &soak{t: t, random: rand.New(rand.NewPCG(*seed, 0)), done: map[string]int{}, dir: t.TempDir()}
	s.farm = newFarm(t, newFabric(*small, 20*(*small)))
	s.yaml = string(s.farm.yaml(s.farm.addresses(), fmt.Sprintf("  poll_interval: 1s\n  probe_interval: 300ms\n  flap_hold_max: 2s\n  state: %s/state.db\n", s.dir)))
	s.prepare()
	s.start()
	s.fault("controller", s.controller) // only once, so that all samples are from one process
	began := time.Now()
	for n := 0; time.Since(began) < *long; n++ {
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
	if *plot != "" {
		if err := s.draw(*plot); err != nil {
			t.Error(err)
		}
	}
	worst := late()
	t.Logf("a timer was late by %v at most", worst)
	if worst > *most {
		t.Skipf("invalid: a timer was late by %v, more than %v", worst, *most)
	}
	s.judge()
}

// The contents that the controller keeps in memory up to a bound: configurations with their text, and audit log
// lines, in package store. It also keeps 1000 events, which are small.
const (
	keptConfigs = 100
	keptAudit   = audit.DefaultLimit
)

// prepare writes the state of a controller that has run for long.
func (s *soak) prepare() {
	db, err := store.Open(filepath.Join(s.dir, "state.db"), store.Options{NoSync: true})
	if err != nil {
		s.t.Fatal(err)
	}
	now := time.Now()
	for i := range uint64(keptConfigs) {
		if err := db.SaveConfig(history.Entry{File: "fabric.yaml", YAML: s.yaml, Generation: i + 1, Applied: now, By: "uid 0"}, nil); err != nil {
			s.t.Fatal(err)
		}
	}
	lines := make([]audit.Entry, keptAudit)
	for i := range lines {
		lines[i] = audit.Entry{Time: now, Identity: "uid 0", Peer: "@", Flow: fmt.Sprintf("10.1.0.0:%d>10.1.0.1:50151/17", i), Value: 1, What: audit.Weight}
	}
	if err := db.CommitAudit(lines); err != nil {
		s.t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		s.t.Fatal(err)
	}
}

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

// any applies one random event.
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

// cut breaks a cable for a moment, or for long enough that probes detect it.
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
		s.set(a, b, up)
		s.pause(time.Second)
	}
}

func (s *soak) set(a, b string, up bool) {
	if _, err := s.d.api.SetLink(s.t.Context(), &pb.SetLinkRequest{A: a, B: b, Up: up}); err != nil {
		s.t.Fatal(err)
	}
}

// apply applies the configuration with and without ECN marking.
func (s *soak) apply() {
	for _, edit := range []string{"\nqos: {ecn: [{queue: 1, kmin: 10KB, kmax: 100KB, pmax: 0.5}]}\n", ""} {
		if _, err := s.d.api.ApplyConfig(s.t.Context(), &pb.ApplyConfigRequest{File: "fabric.yaml", Config: s.yaml + edit}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// weights sets a hundred flows' weights and deletes them.
func (s *soak) weights() {
	for i := range uint32(100) {
		if err := s.weight(1000+i, float64(1+s.random.IntN(8))); err != nil {
			s.t.Fatal(err)
		}
	}
}

// weight sets the weight of the flow from a port, and deletes the flow.
func (s *soak) weight(port uint32, weight float64) error {
	api := pb.NewWeightServiceClient(s.d.conn)
	flow := &pb.FlowKey{SrcIpv4: "10.1.0.0", DstIpv4: "10.1.0.1", SrcPort: port, DstPort: 50151}
	if _, err := api.SetWeight(s.t.Context(), &pb.SetWeightRequest{Flow: flow, Weight: weight}); err != nil {
		return err
	}
	_, err := api.DeleteFlow(s.t.Context(), &pb.DeleteFlowRequest{Flow: flow})
	return err
}

// controller kills the controller and starts another one with its state.
func (s *soak) controller() {
	s.d.kill()
	s.start()
}

func (s *soak) measure(at time.Duration) {
	heap := s.d.heap()
	for range 2 { // memory that was in use for a moment does not count as kept
		heap = min(heap, s.d.heap())
	}
	x := sample{at.Seconds(), float64(heap), float64(s.d.goroutines()), float64(s.d.files())}
	s.samples = append(s.samples, x)
	s.d.keep(fmt.Sprintf("%06.0f", x.at))
	s.t.Logf("%5.0f s: heap %.1f MB, %.0f goroutines, %.0f files; %v", x.at, x.heap/1e6, x.goroutines, x.files, s.done)
}

// judge compares the regression line's rise over the run with its start and with the noise.
func (s *soak) judge() {
	if len(s.samples) < 10 {
		s.t.Skipf("invalid: only %d samples, want 10 or more: make it longer with -for", len(s.samples))
	}
	at := s.of(func(x sample) float64 { return x.at })
	for name, of := range map[string]func(sample) float64{
		"heap":       func(x sample) float64 { return x.heap },
		"goroutines": func(x sample) float64 { return x.goroutines },
		"files":      func(x sample) float64 { return x.files },
	} {
		y := s.of(of)
		from, slope := stat.LinearRegression(at, y, nil, false)
		first := from + slope*at[0]
		gain, noise := slope*(at[len(at)-1]-at[0]), stat.StdDev(y, nil)
		s.t.Logf("%s: %.3g at first, %+.3g over the run, which is %+.1f %%; standard deviation %.3g", name, first, gain, 100*gain/first, noise)
		if gain > first/10 && gain > noise {
			s.t.Errorf("%s grows: by %.3g over %.0f s, from %.3g", name, gain, at[len(at)-1]-at[0], first)
		}
	}
}

// of returns one number of every sample.
func (s *soak) of(f func(sample) float64) (list []float64) {
	for _, x := range s.samples {
		list = append(list, f(x))
	}
	return list
}

// draw plots the samples over time.
func (s *soak) draw(file string) error {
	minutes := s.of(func(x sample) float64 { return x.at / 60 })
	panel := func(title, unit string, f func(sample) float64) plotting.Panel {
		return plotting.Panel{Title: title, X: "minutes", Y: unit, Lines: []plotting.Line{{Name: title, X: minutes, Y: s.of(f)}}}
	}
	return plotting.Save(file,
		panel("live heap", "MB", func(x sample) float64 { return x.heap / 1e6 }),
		panel("goroutines", "", func(x sample) float64 { return x.goroutines }),
	)
}
