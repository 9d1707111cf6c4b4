package cnpgen_test

import (
	"errors"
	"math"
	"math/cmplx"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/units"
)

func paper(rate units.Rate) cnpgen.Params {
	p := paperParams(rate)
	p.Beta1, p.Beta2 = cnpgen.PaperBeta1, cnpgen.PaperBeta2
	return p
}

// §IV-C and §V-A.
func TestRules(t *testing.T) {
	p := paperParams(25 * units.Gbps)
	if p.Threshold != 125*kb || p.Burst != 4*kb || p.Interval != 80*us || p.CNPGap != 4*us || p.MaxPerFlow() != 20 {
		t.Errorf("parameters %+v", p)
	}
	if p.Beta1 != 0.05 || p.Beta2 != 0.1 || p.FilterWeight != 0.9 {
		t.Errorf("weights %+v", p)
	}
	if p := paperParams(100 * units.Gbps); p.Threshold != 500*kb || p.Burst != 16*kb || math.Abs(p.Beta1-0.0125) > 1e-12 || math.Abs(p.Beta2-0.025) > 1e-12 {
		t.Errorf("parameters at 100 Gb/s %+v", p)
	}
}

// The appendix, and the paper's criterion at its defaults.
func TestPaperMargin(t *testing.T) {
	r := cnpgen.VendorReaction()
	if a := r.Alpha(); math.Abs(a-0.04714) > 5e-6 {
		t.Errorf("α* = %.5f, want 0.04714", a)
	}
	for _, tt := range []struct{ rate, degrees float64 }{{25, 53}, {100, -32}, {400, -221}} {
		rate := units.Rate(tt.rate) * units.Gbps
		m := paper(rate).PhaseMargin(rate, r)
		if math.Abs(m.Phase-tt.degrees) > 0.5 {
			t.Errorf("%v: margin %.2f°, want %v°", rate, m.Phase, tt.degrees)
		}
	}
}

// The computed crossover and phase agree with G itself.
func TestMarginIsOfG(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := units.Rate(rapid.Int64Range(int64(units.Mbps), int64(800*units.Gbps)).Draw(t, "rate"))
		p := paper(rate)
		p.Beta1 = rapid.Float64Range(1e-3, 1).Draw(t, "beta1")
		p.Beta2 = rapid.Float64Range(0, 1).Draw(t, "beta2")
		m := p.PhaseMargin(rate, cnpgen.VendorReaction())
		s := complex(0, m.Crossover)
		g := -complex(m.K, 0) * (1 + s/complex(m.Z, 0)) / (s * s * s)
		if math.Abs(cmplx.Abs(g)-1) > 1e-6 {
			t.Fatalf("|G| = %v at the crossover", cmplx.Abs(g))
		}
		g *= cmplx.Exp(-2 * s * complex(p.Interval.Seconds(), 0))
		diff := math.Mod(cmplx.Phase(g)*180/math.Pi+180-m.Phase, 360)
		if diff < 0 {
			diff += 360
		}
		if min(diff, 360-diff) > 1e-3 {
			t.Fatalf("phase differs by %v°", diff)
		}
	})
}

// β·C·T determines the margin: weights rescaled to another rate and period have the same margin.
func TestRescaleKeepsMargin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := units.Rate(rapid.Int64Range(int64(units.Gbps), int64(800*units.Gbps)).Draw(t, "rate"))
		interval := units.Time(rapid.Int64Range(int64(5*us), int64(500*us)).Draw(t, "interval"))
		m := cnpgen.ParamsFor(rate, interval).PhaseMargin(rate, cnpgen.VendorReaction())
		if math.Abs(m.Phase-53.09) > 0.01 {
			t.Fatalf("margin %v° at %v and %v, want 53.09°", m.Phase, rate, interval)
		}
	})
}

// A fabric that runs 1250 times slower has the same margins.
func TestStretchKeepsStability(t *testing.T) {
	fast, err := paperParams(25 * units.Gbps).Stability(25 * units.Gbps)
	if err != nil {
		t.Fatal(err)
	}
	p := paperParams(25 * units.Gbps).Stretch(1250)
	slow, err := p.Stability(20 * units.Mbps)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(fast.Phase-slow.Phase) > 1e-6 || math.Abs(fast.Radius-slow.Radius) > 1e-6 {
		t.Errorf("%.4f°, %.6f at full speed, %.4f°, %.6f stretched", fast.Phase, fast.Radius, slow.Phase, slow.Radius)
	}
	if p.Interval != 100*units.Millisecond || p.CNPGap != 5*units.Millisecond || p.Threshold != 125*kb || p.MaxPerFlow() != 20 {
		t.Errorf("stretched %+v", p)
	}
}

func TestUnstable(t *testing.T) {
	st, err := paper(25 * units.Gbps).Stability(25 * units.Gbps)
	if err != nil || !st.MarginStable() || !st.LoopStable() {
		t.Errorf("the paper's defaults at 25 Gb/s: %v, %v", st, err)
	}
	_, err = paper(100 * units.Gbps).Stability(100 * units.Gbps)
	var unstable *cnpgen.UnstableError
	if !errors.As(err, &unstable) {
		t.Fatalf("the paper's defaults at 100 Gb/s: error %v, want an UnstableError", err)
	}
	for _, part := range []string{"beta1 0.05", "beta2 0.1", "100Gbps", "-32.2°", "spectral radius"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if _, err := unstable.Proposed.Params.Stability(100 * units.Gbps); err != nil {
		t.Errorf("the proposal: %v", err)
	}
	if b := unstable.Proposed.Params; math.Abs(b.Beta2/b.Beta1-2) > 1e-9 || b.Beta1 > 0.05 || b.Beta1 < 0.0125 {
		t.Errorf("proposed (%v, %v): not near", b.Beta1, b.Beta2)
	}
}

// For any weights, the proposal is stable by both criteria, and stable weights are their own
// proposal.
func TestProposal(t *testing.T) {
	r := cnpgen.VendorReaction()
	rapid.Check(t, func(t *rapid.T) {
		rate := units.Rate(rapid.SampledFrom([]int{10, 25, 100, 400}).Draw(t, "rate")) * units.Gbps
		p := paper(rate)
		p.Beta1 = rapid.Float64Range(1e-3, 1).Draw(t, "beta1")
		p.Beta2 = rapid.Float64Range(0, 1).Draw(t, "beta2")
		s := p.Propose(rate, r)
		if !s.LoopStable() || s.Phase < cnpgen.ProposedMargin {
			t.Fatalf("proposed (%v, %v): %v", s.Params.Beta1, s.Params.Beta2, s.Verdict())
		}
		if again := s.Params.Propose(rate, r); again.Params != s.Params {
			t.Fatalf("the proposal is not its own: %+v", again.Params)
		}
	})
}

// The linear loop, stepped by hand without matrices, grows or decays as the spectral radius
// predicts.
func TestSpectralRadiusIsTheLoops(t *testing.T) {
	for _, gbps := range []float64{10, 25, 60, 100, 200, 400} {
		for _, n := range []float64{1, 2, 4, 10} {
			rate := units.Rate(gbps) * units.Gbps
			r := cnpgen.VendorReaction()
			r.Flows, r.Delay = int(n), 0
			p := paper(rate)
			radius := p.SpectralRadius(rate, r)
			c, alpha := gbps*1e6/8*80e-6, r.Alpha()
			q, old, dr, da := 1.0, 0.0, 0.0, 0.0
			growth, steps := 0.0, 4000
			for range steps {
				cnps := (0.05*q + 0.1*(q-old)) / n
				u := -c / 2 * (alpha*cnps + alpha*80*da)
				forget := 1 - math.Pow(1-1.0/256, 80)
				da += forget * (cnps/80 - da)
				q, old = q+dr+u/2, q
				dr += u - (1.0/3+1.0/2)*80/300*dr
				norm := math.Abs(q) + math.Abs(old) + math.Abs(dr) + math.Abs(da)
				growth += math.Log(norm)
				q, old, dr, da = q/norm, old/norm, dr/norm, da/norm
			}
			if got := math.Exp(growth / float64(steps)); math.Abs(got-radius) > 0.002 {
				t.Errorf("%v Gb/s, %v flows: grows by %.4f per period, spectral radius %.4f", gbps, n, got, radius)
			}
		}
	}
}

// If the two criteria disagree, the verdict says so. The paper's margin does not depend on the
// number of flows; at 100 Gb/s with ten flows the real loop settles.
func TestVerdict(t *testing.T) {
	r := cnpgen.VendorReaction()
	r.Flows = 10
	s, err := paper(100*units.Gbps).StabilityWith(100*units.Gbps, r)
	if err == nil || s.MarginStable() || !s.LoopStable() || !strings.HasPrefix(s.Verdict(), "the two disagree") {
		t.Errorf("verdict %q, error %v", s.Verdict(), err)
	}
	if s.FewestFlows < 3 || s.FewestFlows > 10 {
		t.Errorf("settles with %d flows or more, want 3 to 10", s.FewestFlows)
	}
	r.Flows = 1
	s, err = paper(25*units.Gbps).StabilityWith(25*units.Gbps, r)
	if err == nil || !s.MarginStable() || s.LoopStable() || !strings.HasPrefix(s.Verdict(), "the two disagree") {
		t.Errorf("verdict %q, error %v", s.Verdict(), err)
	}
}

func TestValidate(t *testing.T) {
	for name, bad := range map[string]func(*cnpgen.Params){
		"interval":      func(p *cnpgen.Params) { p.Interval = 0 },
		"beta1":         func(p *cnpgen.Params) { p.Beta1 = 0 },
		"beta2":         func(p *cnpgen.Params) { p.Beta2 = math.NaN() },
		"threshold":     func(p *cnpgen.Params) { p.Threshold = 0 },
		"burst":         func(p *cnpgen.Params) { p.Burst = p.Threshold },
		"filter weight": func(p *cnpgen.Params) { p.FilterWeight = 1.1 },
		"cnp gap":       func(p *cnpgen.Params) { p.CNPGap = p.Interval + 1 },
		"max flows":     func(p *cnpgen.Params) { p.MaxFlows = 0 },
		"scale":         func(p *cnpgen.Params) { p.Scale = -1 },
	} {
		p := paperParams(25 * units.Gbps)
		bad(&p)
		if err := p.Validate(25 * units.Gbps); err == nil || !strings.HasPrefix(err.Error(), name+":") {
			t.Errorf("%s: error %v, want one that names it", name, err)
		}
		if _, err := cnpgen.NewPort(p); err == nil {
			t.Errorf("%s: a port is made", name)
		}
		if _, err := p.Stability(25 * units.Gbps); err == nil {
			t.Errorf("%s: is analysed", name)
		}
	}
	if err := paperParams(25 * units.Gbps).Validate(0); err == nil || !strings.HasPrefix(err.Error(), "rate:") {
		t.Errorf("no rate: error %v", err)
	}
	for name, bad := range map[string]func(*cnpgen.Reaction){
		"alpha timer":    func(r *cnpgen.Reaction) { r.AlphaTimer = 0 },
		"increase timer": func(r *cnpgen.Reaction) { r.IncreaseTimer = r.AlphaTimer },
		"gain":           func(r *cnpgen.Reaction) { r.Gain = 1 },
		"delay":          func(r *cnpgen.Reaction) { r.Delay = -1 },
		"flows":          func(r *cnpgen.Reaction) { r.Flows = 0 },
	} {
		r := cnpgen.VendorReaction()
		bad(&r)
		if _, err := paperParams(25*units.Gbps).StabilityWith(25*units.Gbps, r); err == nil || !strings.HasPrefix(err.Error(), "reaction point: "+name) {
			t.Errorf("%s: error %v, want one that names it", name, err)
		}
	}
}

// paperParams are the paper's parameters for a line rate, with its period.
func paperParams(rate units.Rate) cnpgen.Params { return cnpgen.ParamsFor(rate, cnpgen.PaperInterval) }
