package compare

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/headgate/headgate/units"
)

var loopback = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// onFreePorts returns the scenario with addresses that nobody listened on a moment ago.
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
	s.Fabric = []byte(text + fmt.Sprintf("\ncontroller: {listen: %q, metrics: %q}\n", next(), next()))
	return s
}

// play plays some variants until a time, on the real pipeline and controller.
func play(t *testing.T, name string, until units.Time, variants ...string) *Report {
	t.Helper()
	if raceEnabled {
		t.Skip("with the race detector the pipeline is too slow for a burst in real time; make test runs this package without it too")
	}
	s, ok := Find(name)
	if !ok {
		t.Fatalf("there is no scenario %s", name)
	}
	s, err := s.Select(variants)
	if err != nil {
		t.Fatal(err)
	}
	s.End, s.During.To = until, min(s.During.To, until)
	var lines, logs bytes.Buffer
	t.Run("free ports", func(t *testing.T) { s = onFreePorts(t, s) }) // they are let go when it ends
	plain := NewPlain(&lines)
	defer plain.Close()
	report, err := Play(context.Background(), Options{Scenario: s, Show: plain, Log: slog.New(slog.NewTextHandler(&logs, nil))})
	if err != nil {
		t.Fatalf("%v\n%s", err, logs.String())
	}
	var table bytes.Buffer
	if err := report.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", table.String())
	for i, v := range variants {
		if want := fmt.Sprintf("\nvariant %d of %d: %s\n", i+1, len(variants), v); !strings.Contains(lines.String(), want) {
			t.Errorf("the lines lack %q:\n%s", want, lines.String())
		}
		if r := report.Variants[i]; len(r.Series.TimeUS) != int(until/s.Sample)+1 {
			t.Errorf("%s has %d samples, want %d", v, len(r.Series.TimeUS), until/s.Sample+1)
		}
	}
	return report
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
	r := play(t, "dsh", 400*units.Microsecond, "sih", "dsh")
	if f := failures(r); len(f) > 0 {
		t.Errorf("%q", f)
	}
	for _, v := range r.Variants {
		if b := v.Flows[2]; b.Done != b.Flows {
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
	r := play(t, "spfc", 600*units.Microsecond, "dt", "spfc")
	// SPFC's states follow the controller's clock: half a period too late, and a port that
	// sends at line rate may look as if it did not.
	if lag := r.Variant("spfc").WorstLagMS; lag > busyMS {
		t.Skipf("this machine was too busy for a fabric in real time: %.0f ms behind", lag)
	}
	if f := failures(r); len(f) > 0 {
		t.Errorf("%q", f)
	}
	if n := r.Variant("dt").CNPs; n.All == 0 || n.Strays > 0 {
		t.Errorf("%d congestion notifications, %d of no flow, want some of F2 and none of no flow", n.All, n.Strays)
	}
}

// TestPACCNotifies has too little time for the queue to settle; that takes a whole run.
func TestPACCNotifies(t *testing.T) {
	r := play(t, "pacc", 1200*units.Microsecond, "dcqcn", "pacc")
	for _, v := range r.Variants {
		long := v.Flows[0].CNPs + v.Flows[1].CNPs
		if long == 0 || v.CNPs.Strays > 0 {
			t.Errorf("%s: %d notifications for the long flows and %d for no flow, want some and none", v.Variant, long, v.CNPs.Strays)
		}
		if v.Queue.PeakKB < 300 || v.lostPackets() > 0 {
			t.Errorf("%s: a queue of at most %.0f KB and %d lost packets, want a burst's queue and none", v.Variant, v.Queue.PeakKB, v.lostPackets())
		}
		if a, b := v.Flows[0].CNPs, v.Flows[1].CNPs; v.Variant != "dcqcn" && (a > b+b/4+5 || b > a+a/4+5) {
			t.Errorf("%s: %d and %d notifications for two equal flows", v.Variant, a, b)
		}
	}
}

func TestInterrupted(t *testing.T) {
	s, _ := Find("dsh")
	t.Run("free ports", func(t *testing.T) { s = onFreePorts(t, s) })
	ctx, cancel := context.WithCancel(context.Background())
	show := &stopper{cancel: cancel}
	if _, err := Play(ctx, Options{Scenario: s, Show: show}); err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("a run that was stopped ends with %v, want %v", err, context.Canceled)
	}
}

// stopper ends a run as soon as traffic begins.
type stopper struct {
	silent
	cancel context.CancelFunc
}

func (s *stopper) Ready(*Run) { s.cancel() }
