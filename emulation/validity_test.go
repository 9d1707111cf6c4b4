package emulation

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/emulation/network"
	"github.com/headgate/headgate/internal/jsonfile"
	"github.com/headgate/headgate/units"
)

// dshPlay is a play of scenario dsh with invented measurements.
func dshPlay(variant string, pauses uint64, victimDuring float64) *Result {
	calm := PhaseResult{Name: "calm", Flows: []FlowPhase{{Name: "F0", Measured: 47e9}, {Name: "F1", Measured: 47e9}}}
	fanIn := PhaseResult{Name: "fan-in", Flows: []FlowPhase{{Name: "F0", Measured: victimDuring}, {Name: "F1", Measured: 9e9}, {Name: "fan-in", Measured: 80e9}}}
	return &Result{
		Variant: variant, Phases: []PhaseResult{calm, fanIn}, Victim: victim("F0", calm, fanIn), Queue: &Queue{},
		Flows:    []FlowTotal{{Name: "F0", Flows: 1, Delivered: 9}, {Name: "F1", Flows: 1, Delivered: 9}, {Name: "fan-in", Flows: 24, Done: 24, Delivered: 9, LastUS: 141}},
		Pause:    Pause{Frames: pauses, TimeUS: 10 * float64(pauses)},
		Pools:    map[string]Pools{"left": {Shared: 5}, "right": {Shared: 1500000, Headroom: 300000}},
		Series:   Curves{TimeUS: []float64{0, 10}, Rates: map[string][]float64{"F0": {47e9, 47e9}}, QueueKB: []float64{0, 5}, Pauses: []uint64{0, pauses}},
		MaxLagMS: 400,
	}
}

// reportOf judges invented plays of a scenario on its own fabric.
func reportOf(t *testing.T, name string, plays ...*Result) *Report {
	t.Helper()
	s, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Configure(s.Variants[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range plays {
		v.validate(&s)
	}
	return NewReport(&s, c, s.Times(0), plays)
}

// TestInvalidPlaysJudgeNothing disturbs the play of dsh. A victim that never sent must not count as
// protected.
func TestInvalidPlaysJudgeNothing(t *testing.T) {
	tests := []struct {
		name    string
		disturb func(v *Result)
		want    string // the reason; "" for none
	}{
		{"undisturbed", func(*Result) {}, ""},
		{"late, but not too late", func(v *Result) { v.WorstLagMS = 400 }, ""},
		{"congestion's own drop", func(v *Result) { v.Losses = network.Losses{Buffer: 3, Lossless: 3} }, ""},
		{"too late", func(v *Result) { v.WorstLagMS = 401 }, "the machine could not keep up"},
		{"lost without a route", func(v *Result) { v.Losses.Pipelines = 7894 }, "7894 in pipelines"},
		{"lost before a program", func(v *Result) { v.Losses.Switches = 1 }, "1 at switches that were down"},
		{"lost on a link", func(v *Result) { v.Losses.Links = 1 }, "1 on links"},
		{"lost in a traffic manager", func(v *Result) { v.Losses.Queues = 1 }, "1 in traffic managers"},
		{"an acknowledgement was dropped", func(v *Result) { v.Losses = network.Losses{Buffer: 4, Lossless: 3} }, "1 packet of lossy classes"},
		{"the victim never ran", func(v *Result) { v.Flows[0].Delivered = 0 }, "flow F0 never ran"},
		{"the victim had nothing to lose", func(v *Result) {
			v.Phases[0].Flows[0].Measured = 0
			v.Victim = victim("F0", v.Phases[0], v.Phases[1])
		}, `phase "calm": flow F0 did not run`},
		{"the burst never came", func(v *Result) { v.Flows[2].Delivered = 0 }, "flow fan-in never ran"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sih, dsh := dshPlay("sih", 30, 29e9), dshPlay("dsh", 2, 46e9)
			tt.disturb(dsh)
			r := reportOf(t, "dsh", sih, dsh)
			judged := len(r.Checks) > 0
			var table bytes.Buffer
			if err := r.WriteTable(&table); err != nil {
				t.Fatal(err)
			}
			if tt.want == "" {
				if !r.Valid || !judged || strings.Contains(table.String(), "INVALID") {
					t.Errorf("valid is %v, judged %v: %q", r.Valid, judged, dsh.Invalid)
				}
				return
			}
			if r.Valid || r.Within || judged {
				t.Errorf("valid is %v, within %v, judged %v", r.Valid, r.Within, judged)
			}
			if len(dsh.Invalid) != 1 || !strings.Contains(dsh.Invalid[0], tt.want) || len(sih.Invalid) > 0 {
				t.Errorf("the reasons are %q and of the other play %q, want one with %q and none", dsh.Invalid, sih.Invalid, tt.want)
			}
			if !strings.HasPrefix(table.String(), "INVALID dsh: ") || !strings.Contains(table.String(), tt.want) {
				t.Errorf("the table begins without the reason:\n%s", table.String())
			}
			var text bytes.Buffer
			var back struct {
				Valid    *bool
				Variants []struct{ Invalid []string }
			}
			if err := jsonfile.Encode(&text, r); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text.Bytes(), &back); err != nil || back.Valid == nil || *back.Valid || len(back.Variants[1].Invalid) != 1 {
				t.Errorf("the JSON reads back as %+v, %v", back, err)
			}
			late := strings.Contains(tt.want, "keep up")
			if r.Disturbed() != late || strings.Contains(table.String(), "Run it again") != late {
				t.Errorf("disturbed by the machine: %v, want %v:\n%s", !late, late, table.String())
			}
		})
	}
}

func TestInvalidShares(t *testing.T) {
	play := func(share *Share, measured float64, faults ...string) *Result {
		return &Result{
			MaxLagMS: 100, Faults: faults, Flows: []FlowTotal{{Name: "A", Flows: 1, Delivered: 9}},
			Phases: []PhaseResult{{Name: "one", Flows: []FlowPhase{{Name: "A", Measured: measured, Share: share}}}},
		}
	}
	tests := []struct {
		name   string
		play   *Result
		want   string
		within bool
	}{
		{"at its share", play(&Share{Error: -4.9}, 9e6), "", true},
		{"away from it", play(&Share{Error: -5.1}, 9e6), "", false},
		{"no packet seen", play(nil, 9e6), "none of flow A's packets was seen", false},
		{"did not run", play(&Share{Error: -100}, 0), "flow A did not run", false},
		{"did not run, by the operator's fault", play(&Share{Error: -100}, 0, "s restarted"), "", false},
	}
	for _, tt := range tests {
		s, _ := Find("soze")
		tt.play.validate(&s)
		r := NewReport(&s, leafSpine(t), s.Times(20*units.Second), []*Result{tt.play})
		if r.Within != tt.within || r.Valid != (tt.want == "") || !r.Valid && (len(r.Checks) > 0 || !strings.Contains(tt.play.Invalid[0], tt.want)) {
			t.Errorf("%s: valid is %v, within %v: %q, %+v", tt.name, r.Valid, r.Within, tt.play.Invalid, r.Checks)
		}
		var table bytes.Buffer
		if err := r.WriteTable(&table); err != nil || strings.HasPrefix(table.String(), "INVALID: ") == r.Valid {
			t.Errorf("%s: %v\n%s", tt.name, err, table.String())
		}
	}
	if r := reportOf(t, "dsh", dshPlay("sih", 30, 29e9)); !r.Valid {
		t.Errorf("one variant alone is invalid: %q", r.Variants[0].Invalid)
	}
}

// TestMaxLag takes half of the controller's shortest timeout.
func TestMaxLag(t *testing.T) {
	want := map[string]units.Time{
		"pacc dcqcn":           450 * units.Millisecond,    // probe timeout of links: 900 ms
		"pacc pacc-controller": 32 * units.Millisecond,     // 80 µs at 1/800
		"spfc spfc":            312500 * units.Microsecond, // 100 µs at 1/6250
		"bursts spfc":          100 * units.Millisecond,    // and at 1/2000
		"dsh sih":              419424 * units.Microsecond, // 65535 quanta at 20 Mb/s, half of their time
	}
	for _, s := range All() {
		for _, v := range s.Variants {
			name := s.Name + " " + v.Name
			if at, ok := want[name]; ok {
				delete(want, name)
				c, err := s.Configure(v)
				if err != nil {
					t.Fatal(err)
				}
				if got := maxLag(c); got != at {
					t.Errorf("%s may be %v late, want %v", name, got, at)
				}
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("there are no %v", want)
	}
}

func TestWhatTheControllerSaysInvalidates(t *testing.T) {
	began := time.Unix(1000, 0)
	sw := func(name string, state pb.SwitchStatus_State, since time.Duration) *pb.SwitchStatus {
		return &pb.SwitchStatus{Name: name, State: state, Since: timestamppb.New(began.Add(since))}
	}
	const ready = pb.SwitchStatus_STATE_READY
	list := []*pb.SwitchStatus{sw("left", ready, -time.Second), sw("right", ready, time.Second), sw("top", pb.SwitchStatus_STATE_DISCONNECTED, -time.Second)}
	s, _ := Find("dsh")
	v := dshPlay("dsh", 2, 46e9)
	v.validate(&s, append(unsteady(list, began), "no poll of left's buffer came back after the end")...)
	want := []string{"the controller did not hold right ready all the time", "the controller did not hold top ready all the time", "no poll of left's buffer came back after the end"}
	if !slices.Equal(v.Invalid, want) {
		t.Errorf("the play is invalid for %q, want %q", v.Invalid, want)
	}
}
