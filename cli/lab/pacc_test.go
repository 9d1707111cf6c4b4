package lab

import (
	"bytes"
	"encoding/json"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func pacc(t *testing.T, args ...string) (string, error) {
	t.Helper()
	c := newPaccCommand()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&bytes.Buffer{})
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(args)
	err := c.Execute()
	return out.String(), err
}

func TestMarginJSON(t *testing.T) {
	for _, tt := range []struct {
		rate   string
		margin float64
		stable bool
	}{{"25Gbps", 53, true}, {"100Gbps", -32, false}, {"400Gbps", -221, false}} {
		text, err := pacc(t, "margin", "--rate", tt.rate, "--json")
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Margin   float64 `json:"phase_margin_degrees"`
			Radius   float64 `json:"spectral_radius"`
			Stable   bool    `json:"stable"`
			Proposed struct {
				Beta1  float64 `json:"beta1_per_kb"`
				Beta2  float64 `json:"beta2_per_kb"`
				Margin float64 `json:"phase_margin_degrees"`
				Radius float64 `json:"spectral_radius"`
			} `json:"proposed"`
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.Margin-tt.margin) > 0.5 || got.Stable != tt.stable || (got.Radius < 1) != tt.stable {
			t.Errorf("%s: %+v, want a margin of %v°", tt.rate, got, tt.margin)
		}
		if got.Proposed.Margin < 30 || got.Proposed.Radius >= 1 || got.Proposed.Beta1 > 0.05 || tt.stable && got.Proposed.Beta1 != 0.05 {
			t.Errorf("%s: proposed %+v", tt.rate, got.Proposed)
		}
	}
}

// The proposed weights are stable when they are entered as printed.
func TestProposalHolds(t *testing.T) {
	text, err := pacc(t, "margin", "--rate", "100Gbps", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Proposed struct {
			Beta1 json.Number `json:"beta1_per_kb"`
			Beta2 json.Number `json:"beta2_per_kb"`
		} `json:"proposed"`
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	text, err = pacc(t, "margin", "--rate", "100Gbps", "--beta1", got.Proposed.Beta1.String(), "--beta2", got.Proposed.Beta2.String())
	if err != nil || !strings.Contains(text, "these weights") {
		t.Errorf("error %v:\n%s", err, text)
	}
}

func TestPaccPlot(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"f.png", "f.svg", "large.svg"} {
		file := filepath.Join(dir, name)
		args := []string{"margin", "--plot", file}
		if name == "large.svg" {
			args = append(args, "--beta1", "3", "--rate", "10Gbps")
		}
		if _, err := pacc(t, args...); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(name) == ".svg" {
			if !bytes.Contains(text, []byte("<svg")) || !bytes.Contains(text, []byte("PACC at")) {
				t.Errorf("%s is no figure", name)
			}
			continue
		}
		img, err := png.Decode(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		// Stable weights near the origin are blue, those far from it red.
		b := img.Bounds()
		r, _, blue, _ := img.At(b.Dx()*12/100, b.Dy()*85/100).RGBA()
		r2, _, blue2, _ := img.At(b.Dx()*70/100, b.Dy()*20/100).RGBA()
		if r >= blue || r2 <= blue2 {
			t.Errorf("colors %x/%x near the origin, %x/%x far from it", r, blue, r2, blue2)
		}
	}
}

func TestPaccRefuses(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--rate", "fast"}, `"fast" is not a rate`},
		{[]string{"--rate", "0bps"}, "--rate: 0bps is not allowed"},
		{[]string{"--interval", "0us"}, "--interval: 0s is not allowed"},
		{[]string{"--interval", "80"}, `"--interval" flag: "80"`},
		{[]string{"--beta1", "0"}, "beta1: 0, want more than 0"},
		{[]string{"--beta1", "-1"}, "beta1: -1, want more than 0"},
		{[]string{"--beta2", "-0.1"}, "beta2: -0.1, want 0 or more"},
		{[]string{"--beta2", "NaN"}, "beta2: NaN, want 0 or more"},
		{[]string{"--flows", "0"}, "flows: 0, want at least 1"},
		{[]string{"--plot", "f.jpg"}, `--plot: "f.jpg" is not allowed: want a file that ends in .svg or .png`},
		{[]string{"--plot", "/nowhere/f.svg"}, "--plot: open /nowhere/f.svg"},
	} {
		if _, err := pacc(t, append([]string{"margin"}, tt.args...)...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: error %v, want %q", tt.args, err, tt.want)
		}
	}
}
