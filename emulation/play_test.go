package emulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/tests/lag"
	"github.com/headgate/headgate/tests/race"
	"github.com/headgate/headgate/units"
)

var loopback = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// onFreePorts returns the scenario with addresses that were free a moment ago.
func onFreePorts(t *testing.T, s Scenario) Scenario {
	t.Helper()
	free := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l.Addr().String()
	}
	var held []string
	for range 16 {
		held = append(held, free())
	}
	next := func() string { a := held[0]; held = held[1:]; return a }
	text := loopback.ReplaceAllStringFunc(string(s.Fabric), func(string) string { return next() })
	if !strings.Contains(text, "controller:") {
		text += fmt.Sprintf("\ncontroller: {listen: %q, metrics: %q}\n", next(), next())
	}
	s.Fabric = []byte(text)
	return s
}

// play plays the first phases of some variants, the last variant only up to a time, on the real
// pipeline and controller. If the machine disturbed the play, it is repeated once; then the test is
// skipped, because the result means nothing.
func play(t *testing.T, name string, phases int, until units.Time, variants ...string) *Report {
	t.Helper()
	race.SkipRealTime(t)
	s, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.Select(variants); err != nil {
		t.Fatal(err)
	}
	s.Phases = s.Phases[:phases]
	last := &s.Phases[phases-1]
	last.For = until - s.Times(0)[phases-1]
	var report *Report
	var lines bytes.Buffer
	invalid := lag.Repeat(t, 2, func() string {
		var logs, table bytes.Buffer
		lines.Reset()
		t.Run("free ports", func(t *testing.T) { s = onFreePorts(t, s) }) // they continue when it ends
		plain := NewPlain(&lines)
		var looking sync.WaitGroup
		show := func(e Event) {
			plain.Show(e)
			if e.Kind == PhaseBegun && e.Phase == phases-1 {
				looking.Go(func() { listed(t, e.Run) })
			}
		}
		var err error
		report, err = Play(t.Context(), Options{Scenario: s, Show: show, Log: slog.New(slog.NewTextHandler(&logs, nil))})
		looking.Wait()
		plain.Close()
		if err != nil {
			t.Fatalf("%v\n%s", err, logs.String())
		}
		if err := report.WriteTable(&table); err != nil {
			t.Fatal(err)
		}
		t.Logf("\n%s", table.String())
		if report.Disturbed() {
			return fmt.Sprint(report.Variants[0].Invalid)
		}
		return ""
	})
	if invalid != "" {
		t.Skip("the machine was too busy for a fabric in real time, twice: " + invalid)
	}
	for i, v := range report.Variants {
		if want := fmt.Sprintf("\nvariant %d of %d: %s\n", i+1, len(variants), variants[i]); !strings.Contains(lines.String(), want) {
			t.Errorf("the lines lack %q:\n%s", want, lines.String())
		}
		if n := len(v.Series.TimeUS); n != int(until/s.Sample)+1 {
			t.Errorf("%s has %d samples, want %d", v.Variant, n, until/s.Sample+1)
		}
		if len(v.Invalid) > 0 {
			t.Errorf("%s is invalid: %q", v.Variant, v.Invalid)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return report
}

// listed checks that, during a run, the controller lists the scenario's first flow with its law.
func listed(t *testing.T, r *Run) {
	track := r.recorder.tracks[0]
	var last []*pb.HostReport
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		list, err := r.control.Hosts.ListFlows(t.Context(), &pb.ListFlowsRequest{})
		if err != nil { // the run is over
			break
		}
		last = list.Hosts
		for _, h := range last {
			for _, f := range h.Flows {
				if h.Host == track.From[0] && f.Law == string(r.Scenario.Law) && f.AckedBytes > 0 {
					return
				}
			}
		}
	}
	t.Errorf("the controller does not list flow %s of %s with law %s: %v", track.Name, track.From[0], r.Scenario.Law, last)
}

// failures returns the checks that fail.
func failures(r *Report) (out []string) {
	for _, c := range r.Checks {
		if !c.OK {
			out = append(out, c.What+": "+c.Measured)
		}
	}
	return out
}

func TestDSHProtectsTheVictim(t *testing.T) {
	r := play(t, "dsh", 2, 400*units.Microsecond, "sih", "dsh")
	if f := failures(r); len(f) > 0 {
		t.Errorf("%q", f)
	}
	for _, v := range r.Variants {
		if b := v.burst(); b.Done != b.Flows {
			t.Errorf("%s: %d of %d flows of the fan-in were acknowledged", v.Variant, b.Done, b.Flows)
		}
		if v.Pause.Resumes == 0 || v.Pools["right"].Shared == 0 {
			t.Errorf("%s: %d RESUME frames and a shared pool of at most %d B, want more than 0", v.Variant, v.Pause.Resumes, v.Pools["right"].Shared)
		}
	}
	if sih := r.Variant("sih"); sih.Pools["right"].Headroom == 0 || sih.Pause.Links[0].Paused != "left:3" {
		t.Errorf("under SIH the headroom held %d B and %s was paused longest, want some and left:3", sih.Pools["right"].Headroom, sih.Pause.Links[0].Paused)
	}
}

func TestSPFCProtectsTheVictim(t *testing.T) {
	r := play(t, "spfc", 2, 600*units.Microsecond, "dt", "spfc")
	if f := failures(r); len(f) > 0 {
		t.Errorf("%q", f)
	}
	if v := r.Variant("dt"); v.Flows[1].CNPs == 0 || v.Flows[0].CNPs > 0 {
		t.Errorf("F2 got %d congestion notifications and F1, which meets no congestion, %d; want some and none", v.Flows[1].CNPs, v.Flows[0].CNPs)
	}
}

// TestPACCNotifies is too short for the queue to settle, which takes a whole run.
func TestPACCNotifies(t *testing.T) {
	r := play(t, "pacc", 2, 1200*units.Microsecond, "dcqcn", "pacc")
	for _, v := range r.Variants {
		a, b := v.Flows[0].CNPs, v.Flows[1].CNPs
		if a == 0 || b == 0 {
			t.Errorf("%s: %d and %d notifications for the long flows, want some", v.Variant, a, b)
		}
		if v.Queue.PeakKB < 300 || v.Losses.Dropped() > 0 {
			t.Errorf("%s: a queue of at most %.0f KB and %d lost packets, want a burst's queue and none", v.Variant, v.Queue.PeakKB, v.Losses.Dropped())
		}
		if v.Variant != "dcqcn" && (a > b+b/4+5 || b > a+a/4+5) {
			t.Errorf("%s: %d and %d notifications for two equal flows", v.Variant, a, b)
		}
	}
}

func TestInterrupted(t *testing.T) {
	s, _ := Find("dsh")
	t.Run("free ports", func(t *testing.T) { s = onFreePorts(t, s) })
	ctx, cancel := context.WithCancel(t.Context())
	stop := func(e Event) {
		if e.Kind == Ready {
			cancel()
		}
	}
	if _, err := Play(ctx, Options{Scenario: s, Show: stop}); err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("a run that was stopped ends with %v, want %v", err, context.Canceled)
	}
}

// TestInterruptedCommand: the command reports the interruption, whatever fails first because of it.
func TestInterruptedCommand(t *testing.T) {
	out, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (Command{Scenario: "soze", Plain: true}).Run(ctx, out); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want %v", err, context.Canceled)
	}
}
