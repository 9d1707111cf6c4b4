package lab

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/cnpgen/figure"
	"github.com/headgate/headgate/units"
)

func newPaccCommand() *cobra.Command {
	f := paccFlags{interval: cnpgen.PaperInterval, rate: cnpgen.PaperRate, r: cnpgen.VendorReaction()}
	c := &cobra.Command{
		Short: "Check PACC's controller for stability, and propose stable weights",
		Long: `The phase margin is the paper's (section IV): of an open loop with three integrators, a
delay of two periods and no number of flows. The spectral radius is of the closed loop as
the algorithm runs, with two integrators, the CNPs of a period cutting within it, each flow
getting its share, and DCQCN's own increase. A margin above 0 and a radius below 1 are
stable; the two do not always agree.`,
	}
	fl := c.Flags()
	fl.Float64Var(&f.beta1, "beta1", cnpgen.PaperBeta1, "weight of the queue's distance from the threshold, CNPs per KB")
	fl.Float64Var(&f.beta2, "beta2", cnpgen.PaperBeta2, "weight of the queue's change in a period, CNPs per KB")
	fl.Var(units.Flag{Value: &f.interval}, "interval", "period T of the controller")
	fl.Var(units.Flag{Value: &f.rate}, "rate", "line rate C of the port")
	fl.IntVar(&f.r.Flows, "flows", f.r.Flows, "flows that share the queue, for the spectral radius")
	fl.Var(units.Flag{Value: &f.r.Delay}, "delay", "time from sending a CNP to its effect on the queue, for the spectral radius")
	fl.Var(units.Flag{Value: &f.r.AlphaTimer}, "alpha-timer", "DCQCN's τ' at the hosts")
	fl.Var(units.Flag{Value: &f.r.IncreaseTimer}, "increase-timer", "DCQCN's T_i at the hosts")
	fl.StringVar(&f.plot, "plot", "", "draw the margin over both weights (the paper's figure 5) into an .svg or .png file")
	return newMarginTool("pacc", "Analyse the parameters of PACC, the switches' congestion notifications", c, func() (any, func(io.Writer), error) {
		return f.analyse(c.ErrOrStderr())
	})
}

type paccFlags struct {
	beta1, beta2 float64
	interval     units.Time
	rate         units.Rate
	r            cnpgen.Reaction
	plot         string
}

type marginReport struct {
	Beta1          float64  `json:"beta1_per_kb"`
	Beta2          float64  `json:"beta2_per_kb"`
	IntervalUs     float64  `json:"interval_us"`
	RateBps        int64    `json:"rate_bps"`
	ThresholdBytes int64    `json:"threshold_bytes"`
	BurstBytes     int64    `json:"burst_bytes"`
	Alpha          float64  `json:"alpha"`
	GainPerS3      float64  `json:"gain_per_s3"`
	ZeroRadPerS    float64  `json:"zero_rad_per_s"`
	Crossover      float64  `json:"crossover_rad_per_s"`
	PhaseMargin    float64  `json:"phase_margin_degrees"`
	MarginStable   bool     `json:"stable_by_margin"`
	SpectralRadius float64  `json:"spectral_radius"`
	Flows          int      `json:"flows"`
	LoopStable     bool     `json:"stable_as_it_runs"`
	FewestFlows    int      `json:"stable_from_flows"` // 0: with no number of flows
	Verdict        string   `json:"verdict"`
	Stable         bool     `json:"stable"`
	Proposed       proposal `json:"proposed"`
	Plot           string   `json:"plot,omitempty"`
}

type proposal struct {
	Beta1          float64 `json:"beta1_per_kb"`
	Beta2          float64 `json:"beta2_per_kb"`
	PhaseMargin    float64 `json:"phase_margin_degrees"`
	SpectralRadius float64 `json:"spectral_radius"`
}

func (f *paccFlags) analyse(errs io.Writer) (any, func(io.Writer), error) {
	p, err := f.params()
	if err != nil {
		return nil, nil, err
	}
	s, err := p.StabilityWith(f.rate, f.r)
	if unstable := (*cnpgen.UnstableError)(nil); err != nil && !errors.As(err, &unstable) {
		return nil, nil, err
	}
	proposed := p.Propose(f.rate, f.r)
	if f.plot != "" {
		if err := figure.Draw(f.plot, s, proposed, f.r); err != nil {
			return nil, nil, fmt.Errorf("--plot: %w", err)
		}
		fmt.Fprintf(errs, "wrote %s\n", f.plot)
	}
	return newMarginReport(s, proposed, f.plot), func(w io.Writer) { writeMargin(w, s, proposed) }, nil
}

func (f *paccFlags) params() (cnpgen.Params, error) {
	switch ext := strings.ToLower(filepath.Ext(f.plot)); {
	case f.interval <= 0:
		return cnpgen.Params{}, fmt.Errorf("--interval: %v is not allowed: want more than 0", f.interval)
	case f.rate <= 0:
		return cnpgen.Params{}, fmt.Errorf("--rate: %v is not allowed: want more than 0", f.rate)
	case f.plot != "" && ext != ".svg" && ext != ".png":
		return cnpgen.Params{}, fmt.Errorf("--plot: %q is not allowed: want a file that ends in .svg or .png", f.plot)
	}
	p := cnpgen.ParamsFor(f.rate, f.interval)
	p.Beta1, p.Beta2 = f.beta1, f.beta2
	if p.Threshold <= p.Burst { // the period is too short for the paper's rules
		p.Burst = p.Threshold / 2
	}
	return p, p.Validate(f.rate)
}

func newMarginReport(s, proposed cnpgen.Stability, file string) marginReport {
	return marginReport{
		Beta1: s.Params.Beta1, Beta2: s.Params.Beta2, IntervalUs: s.Params.Interval.Micros(), RateBps: int64(s.Rate),
		ThresholdBytes: int64(s.Params.Threshold), BurstBytes: int64(s.Params.Burst),
		Alpha: s.Alpha, GainPerS3: s.K, ZeroRadPerS: s.Z, Crossover: s.Crossover,
		PhaseMargin: s.Phase, MarginStable: s.MarginStable(), SpectralRadius: s.Radius, Flows: s.Flows,
		LoopStable: s.LoopStable(), FewestFlows: s.FewestFlows, Verdict: s.Verdict(),
		Stable: s.MarginStable() && s.LoopStable(),
		Proposed: proposal{
			Beta1: round(proposed.Params.Beta1), Beta2: round(proposed.Params.Beta2),
			PhaseMargin: proposed.Phase, SpectralRadius: proposed.Radius,
		},
		Plot: file,
	}
}

// round rounds to four significant digits, as in the table. It rounds towards 0, which is the stable
// side.
func round(v float64) float64 {
	scale := math.Pow(10, 3-math.Floor(math.Log10(v)))
	return math.Floor(v*scale) / scale
}

func writeMargin(w io.Writer, s, proposed cnpgen.Stability) {
	fmt.Fprintf(w, "weights\tbeta1 %g, beta2 %g CNPs per KB\n", s.Params.Beta1, s.Params.Beta2)
	fmt.Fprintf(w, "port\t%v, interval %v, threshold %v, burst %v\n", s.Rate, s.Params.Interval, s.Params.Threshold, s.Params.Burst)
	fmt.Fprintf(w, "open loop\tα* %.5f, K %.4g 1/s³, z %.0f rad/s, crossover %.0f rad/s\n", s.Alpha, s.K, s.Z, s.Crossover)
	fmt.Fprintf(w, "phase margin\t%+.1f° (%s by the paper's criterion)\n", s.Phase, stableWord(s.MarginStable()))
	fmt.Fprintf(w, "spectral radius\t%.3f with %s (%s as the algorithm runs)\n", s.Radius, units.Count(s.Flows, "flow"), stableWord(s.LoopStable()))
	switch n := s.FewestFlows; n {
	case 0:
		fmt.Fprintf(w, "\tthe loop settles with no number of flows\n")
	case 1:
		fmt.Fprintf(w, "\tthe loop settles with any number of flows\n")
	default:
		fmt.Fprintf(w, "\tthe loop settles with %s or more\n", units.Count(n, "flow"))
	}
	fmt.Fprintf(w, "verdict\t%s\n", s.Verdict())
	if proposed.Params == s.Params {
		fmt.Fprintf(w, "proposed\tthese weights\n")
	} else {
		fmt.Fprintf(w, "proposed\tbeta1 %g, beta2 %g: phase margin %+.1f°, spectral radius %.3f\n",
			round(proposed.Params.Beta1), round(proposed.Params.Beta2), proposed.Phase, proposed.Radius)
	}
}

func stableWord(stable bool) string {
	if stable {
		return "stable"
	}
	return "unstable"
}
