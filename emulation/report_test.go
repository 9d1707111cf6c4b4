package emulation

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/emulation/network"
	"github.com/headgate/headgate/internal/jsonfile"
)

func TestChecksOfDSH(t *testing.T) {
	tests := []struct {
		name                 string
		sihPauses, dshPauses uint64
		during               float64
		drops                uint64
		failed               string // part of the failing check's text
	}{
		{"as it should be", 30, 2, 46e9, 0, ""},
		{"half is enough", 30, 15, 46e9, 0, ""},
		{"too many PAUSE frames", 30, 16, 46e9, 0, "at most half"},
		{"nothing happened", 0, 0, 46e9, 0, "at most half"},
		{"the victim suffers", 30, 2, 40e9, 0, "protects the victim"},
		{"a packet is lost", 30, 2, 46e9, 1, "no lossless packet"},
	}
	for _, tt := range tests {
		sih, dsh := dshPlay("sih", tt.sihPauses, 20e9), dshPlay("dsh", tt.dshPauses, tt.during)
		dsh.Losses = network.Losses{Buffer: tt.drops, Lossless: tt.drops}
		r := reportOf(t, "dsh", sih, dsh)
		if r.Within != (tt.failed == "") {
			t.Errorf("%s: within is %v: %+v", tt.name, r.Within, r.Checks)
		}
		for _, c := range r.Checks {
			if fails := tt.failed != "" && strings.Contains(c.What, tt.failed); c.OK == fails {
				t.Errorf("%s: %q (%s) is %v", tt.name, c.What, c.Measured, c.OK)
			}
		}
	}
}

// TestLossesOfTheTableAreJudged: the verdict on losses and the table's column count the same
// packets, those of lossless classes.
func TestLossesOfTheTableAreJudged(t *testing.T) {
	sih, dsh := dshPlay("sih", 30, 20e9), dshPlay("dsh", 2, 46e9)
	sih.Losses = network.Losses{Buffer: 5, Lossless: 5}
	r := reportOf(t, "dsh", sih, dsh)
	if c := r.Checks[0]; c.OK || c.Measured != "5" {
		t.Errorf("5 lossless packets were dropped, and the check says %+v", c)
	}
	var table bytes.Buffer
	if err := r.WriteTable(&table); err != nil || !strings.Contains(table.String(), "  5\n") {
		t.Errorf("the table's column lacks the 5 drops (%v):\n%s", err, table.String())
	}
}

// TestChecksOfPACC judges the default (carry: false) and compares each law with its own steady
// level.
func TestChecksOfPACC(t *testing.T) {
	us := func(v float64) *float64 { return &v }
	play := func(variant string, kb float64, settled, steady *float64, a, b float64) *Result {
		flows := []FlowPhase{{Name: "L1", Measured: a}, {Name: "L2", Measured: b}, {Name: "burst", Measured: 1e9}}
		return &Result{
			Variant: variant, Queue: &Queue{SettledKB: kb, SettledUS: settled, SteadyUS: steady}, MaxLagMS: 100,
			Phases: []PhaseResult{{Name: "calm", Flows: flows[:2]}, {Name: "burst", Flows: flows}},
			Flows:  []FlowTotal{{Name: "L1", Delivered: 1}, {Name: "L2", Delivered: 1}, {Name: "burst", Delivered: 1, LastUS: 230}},
		}
	}
	dcqcn := func(steady *float64) *Result { return play("dcqcn", 300, nil, steady, 11.55e9, 11.55e9) }
	tests := []struct {
		name  string
		plays []*Result
		want  []bool
	}{
		{"as it should be", []*Result{dcqcn(nil), play("pacc-paper", 135, us(4000), us(3000), 11.8e9, 11.7e9)}, []bool{true, true, true}},
		{"too long a queue", []*Result{dcqcn(nil), play("pacc-paper", 165, nil, us(3000), 11.8e9, 11.7e9)}, []bool{false, true, true}},
		{"unfair", []*Result{dcqcn(nil), play("pacc-paper", 130, us(4000), us(3000), 13e9, 11e9)}, []bool{true, false, true}},
		{"steady later than DCQCN", []*Result{dcqcn(us(2000)), play("pacc-paper", 130, us(1000), us(3000), 12e9, 12e9)}, []bool{true, true, false}},
		{"another variant is not the default", []*Result{dcqcn(nil), play("pacc", 130, us(4000), us(3000), 12e9, 12e9)}, nil},
	}
	for _, tt := range tests {
		r := reportOf(t, "pacc", tt.plays...)
		if len(r.Checks) != len(tt.want) {
			t.Fatalf("%s: %d checks, want %d", tt.name, len(r.Checks), len(tt.want))
		}
		for i, c := range r.Checks {
			if c.OK != tt.want[i] {
				t.Errorf("%s: %q (%s) is %v", tt.name, c.What, c.Measured, c.OK)
			}
		}
		var table bytes.Buffer
		if err := r.WriteTable(&table); err != nil || !strings.Contains(table.String(), "steady after") {
			t.Errorf("%s: table %q, %v", tt.name, table.String(), err)
		}
	}
}

func TestReportIsWritten(t *testing.T) {
	r := reportOf(t, "dsh", dshPlay("sih", 30, 20e9), dshPlay("dsh", 16, 46e9))
	var table, text bytes.Buffer
	if err := r.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"PAUSE frames", "\nNO   DSH sends at most half of SIH's PAUSE frames: 0.53333, want below 0.501\n", "yes  no lossless packet", "1500", "measured at 20 Mb/s", "57.447"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
	if err := jsonfile.Encode(&text, r); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(text.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if back.Within || len(back.Variants) != 2 || back.Variants[0].Pause.Frames != 30 || back.Variants[1].Pools["right"].Shared != 1500000 {
		t.Errorf("the JSON reads back as %+v", back)
	}
	file := filepath.Join(t.TempDir(), "run.svg")
	if err := r.Plot(file); err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile(file)
	for _, want := range []string{"payload of F0 (Gb/s)", "queue of right:3 (KB)", ">SIH<", ">DSH<"} {
		if err != nil || !strings.Contains(string(picture), want) {
			t.Errorf("the picture lacks %q (%v)", want, err)
		}
	}
}

// TestWithoutAQueue: a scenario that records no queue is plotted and measured without one.
func TestWithoutAQueue(t *testing.T) {
	r := reportOf(t, "dsh", dshPlay("sih", 30, 20e9))
	r.scenario.Port = config.Endpoint{}
	for _, v := range r.Variants {
		v.Series.QueueKB, v.Queue = nil, nil
		for _, m := range r.scenario.values(v, false) {
			if m.Name == "queue" && !math.IsNaN(m.Value) {
				t.Errorf("a queue of %v KB, want none", m.Value)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "run.svg")
	if err := r.Plot(file); err != nil {
		t.Fatal(err)
	}
	if picture, err := os.ReadFile(file); err != nil || strings.Contains(string(picture), "queue") {
		t.Errorf("the picture has a queue (%v)", err)
	}
}
