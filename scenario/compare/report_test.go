package compare

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// dshReport is a report of sih and dsh with made-up measurements.
func dshReport(sihPauses, dshPauses uint64, dshLost float64, drops uint64) *Report {
	s, _ := Find("dsh")
	result := func(name string, pauses uint64, lost float64) *Result {
		return &Result{
			Variant: name, Victim: &Victim{Flow: "F0", Before: 47, During: 47 * (1 - lost/100), Lost: lost},
			Pause:  Pause{Frames: pauses, TimeUS: 10 * float64(pauses)},
			Flows:  []FlowResult{{Name: "F0", Flows: 1}, {Name: "F1", Flows: 1}, {Name: "fan-in", Flows: 24, Done: 24, Last: 141}},
			Pools:  map[string]Pools{"left": {Shared: 5}, "right": {Shared: 1500000, Headroom: 300000}},
			Series: Curves{TimeUS: []float64{0, 10}, Goodput: map[string][]float64{"F0": {47, 47}}, QueueKB: []float64{0, 5}, Pauses: []uint64{0, pauses}},
		}
	}
	r := newReport(&s, nil)
	r.Variants = []*Result{result("sih", sihPauses, 37), result("dsh", dshPauses, dshLost)}
	r.Variants[1].LosslessDrops = drops
	r.judge(&s)
	return r
}

func TestChecksOfDSH(t *testing.T) {
	tests := []struct {
		name                 string
		sihPauses, dshPauses uint64
		lost                 float64
		drops                uint64
		failed               string // part of the check that fails
	}{
		{"as it should be", 30, 2, 3, 0, ""},
		{"half is enough", 30, 15, 3, 0, ""},
		{"too many PAUSE frames", 30, 16, 3, 0, "at most half"},
		{"nothing happened", 0, 0, 0, 0, "at most half"},
		{"the victim suffers", 30, 2, 20, 0, "protects the victim"},
		{"a packet is lost", 30, 2, 3, 1, "no lossless packet"},
	}
	for _, tt := range tests {
		r := dshReport(tt.sihPauses, tt.dshPauses, tt.lost, tt.drops)
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

func TestChecksOfPACC(t *testing.T) {
	s, _ := Find("pacc")
	result := func(name string, kb float64, settled bool, us, a, b float64) *Result {
		return &Result{
			Variant: name, Queue: Queue{SettledKB: kb, Settled: settled, SettledUS: us},
			Flows: []FlowResult{{Name: "L1", During: a}, {Name: "L2", During: b}, {Name: "burst"}},
		}
	}
	tests := []struct {
		name        string
		pacc, dcqcn *Result
		want        []bool
	}{
		{"as it should be", result("pacc", 135, true, 4000, 11.8, 11.7), result("dcqcn", 300, false, 0, 11, 12), []bool{true, true, true}},
		{"too long a queue", result("pacc", 165, false, 0, 11.8, 11.7), result("dcqcn", 300, false, 0, 11, 12), []bool{false, true, false}},
		{"unfair", result("pacc", 130, true, 4000, 13, 11), result("dcqcn", 300, false, 0, 11, 12), []bool{true, false, true}},
		{"slower", result("pacc", 130, true, 4000, 12, 12), result("dcqcn", 130, true, 3000, 11, 12), []bool{true, true, false}},
	}
	for _, tt := range tests {
		r := newReport(&s, nil)
		r.Variants = []*Result{tt.dcqcn, tt.pacc}
		r.judge(&s)
		if len(r.Checks) != len(tt.want) {
			t.Fatalf("%s: %d checks, want %d", tt.name, len(r.Checks), len(tt.want))
		}
		for i, c := range r.Checks {
			if c.OK != tt.want[i] {
				t.Errorf("%s: %q (%s) is %v", tt.name, c.What, c.Measured, c.OK)
			}
		}
		var table bytes.Buffer
		if err := r.WriteTable(&table); err != nil || !strings.Contains(table.String(), "settled after") {
			t.Errorf("%s: table %q, %v", tt.name, table.String(), err)
		}
	}
}

func TestReportIsWritten(t *testing.T) {
	r := dshReport(30, 16, 3, 0)
	var table, text bytes.Buffer
	if err := r.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"PAUSE frames", "\nNO   DSH sends at most half of SIH's PAUSE frames: 16 of 30\n", "yes  no lossless packet", "1500"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
	if err := r.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(text.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if back.Within || len(back.Variants) != 2 || back.Variants[0].Pause.Frames != 30 || back.Variants[1].Pools["right"].Shared != 1500000 {
		t.Errorf("the JSON reads back as %+v", back)
	}
	for _, ext := range []string{"svg", "png", "pdf"} {
		file := filepath.Join(t.TempDir(), "run."+ext)
		if err := r.Plot(file); err != nil {
			t.Error(err)
		} else if st, err := os.Stat(file); err != nil || st.Size() < 1000 {
			t.Errorf("%s: %v, %v", file, st, err)
		}
	}
}

func TestFold(t *testing.T) {
	for text, want := range map[string]string{"": "", "one": "one", "one two three": "one two\nthree", "incomprehensible words": "incomprehensible\nwords"} {
		if got := fold(text, 7); got != want {
			t.Errorf("%q folds to %q, want %q", text, got, want)
		}
	}
}
