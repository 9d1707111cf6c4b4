package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/cnpgen/figure"
	"github.com/headgate/headgate/internal/jsonfile"
	"github.com/headgate/headgate/units"
)

// newPaccCommand analyses PACC's parameters.
func newPaccCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "pacc",
		Short: "Analyse the parameters of PACC, the switches' congestion notifications",
	}
	return oneOf(c, newMarginCommand())
}

// marginFlags are the flags of "pacc margin". Times and rates are text.
type marginFlags struct {
	beta1, beta2          float64
	interval, rate, delay string
	alphaTimer, increase  string
	flows                 int
	plot                  string
	asJSON                bool
}

func newMarginCommand() *cobra.Command {
	var f marginFlags
	c := &cobra.Command{
		Use:   "margin",
		Short: "Say whether PACC's controller is stable, and propose weights that are",
		Long: `Say whether PACC's controller is stable with some weights, and propose weights that are.

The phase margin is the paper's (section IV): of an open loop with three integrators, a
delay of two periods and no number of flows. The spectral radius is of the closed loop as
the algorithm runs, with two integrators, the CNPs of a period cutting within it, each flow
getting its share, and DCQCN's own increase. A margin above 0 and a radius below 1 are
stable; the two do not always agree.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.OutOrStdout(), c.ErrOrStderr()) },
	}
	r := cnpgen.VendorReaction()
	fl := c.Flags()
	fl.Float64Var(&f.beta1, "beta1", cnpgen.PaperBeta1, "weight of the queue's distance from the threshold, CNPs per KB")
	fl.Float64Var(&f.beta2, "beta2", cnpgen.PaperBeta2, "weight of the queue's change in a period, CNPs per KB")
	fl.StringVar(&f.interval, "interval", cnpgen.PaperInterval.String(), "period T of the controller")
	fl.StringVar(&f.rate, "rate", cnpgen.PaperRate.String(), "line rate C of the port")
	fl.IntVar(&f.flows, "flows", r.Flows, "flows that share the queue, for the spectral radius")
	fl.StringVar(&f.delay, "delay", r.Delay.String(), "from a CNP's leaving until the queue sees it, for the spectral radius")
	fl.StringVar(&f.alphaTimer, "alpha-timer", r.AlphaTimer.String(), "DCQCN's τ' at the hosts")
	fl.StringVar(&f.increase, "increase-timer", r.IncreaseTimer.String(), "DCQCN's T_i at the hosts")
	fl.StringVar(&f.plot, "plot", "", "draw the margin over both weights (the paper's figure 5) into an .svg or .png file")
	fl.BoolVar(&f.asJSON, "json", false, "print JSON")
	return c
}

// marginReport is the JSON form of the answer.
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

func (f *marginFlags) run(out, errs io.Writer) error {
	p, r, rate, err := f.parse()
	if err != nil {
		return err
	}
	s, err := p.StabilityWith(rate, r)
	if unstable := (*cnpgen.UnstableError)(nil); err != nil && !errors.As(err, &unstable) {
		return err
	}
	proposed := p.Propose(rate, r)
	if f.plot != "" {
		if err := figure.Draw(f.plot, s, proposed, r); err != nil {
			return fmt.Errorf("--plot: %w", err)
		}
		fmt.Fprintf(errs, "wrote %s\n", f.plot)
	}
	if f.asJSON {
		return jsonfile.Encode(out, newMarginReport(s, proposed, f.plot))
	}
	return writeMargin(out, s, proposed)
}

func (f *marginFlags) parse() (p cnpgen.Params, r cnpgen.Reaction, rate units.Rate, err error) {
	var interval units.Time
	r = cnpgen.VendorReaction()
	r.Flows = f.flows
	for _, t := range []struct {
		name, text string
		to         *units.Time
	}{
		{"interval", f.interval, &interval}, {"delay", f.delay, &r.Delay},
		{"alpha-timer", f.alphaTimer, &r.AlphaTimer}, {"increase-timer", f.increase, &r.IncreaseTimer},
	} {
		if *t.to, err = units.ParseTime(t.text); err != nil {
			return p, r, 0, fmt.Errorf("--%s: %w", t.name, err)
		}
	}
	if rate, err = units.ParseRate(f.rate); err != nil {
		return p, r, 0, fmt.Errorf("--rate: %w", err)
	}
	switch ext := strings.ToLower(filepath.Ext(f.plot)); {
	case interval <= 0:
		err = fmt.Errorf("--interval: %v is not allowed: want more than 0", interval)
	case rate <= 0:
		err = fmt.Errorf("--rate: %v is not allowed: want more than 0", rate)
	case f.plot != "" && ext != ".svg" && ext != ".png":
		err = fmt.Errorf("--plot: %q is not allowed: want a file that ends in .svg or .png", f.plot)
	default:
		p = cnpgen.ParamsFor(rate, interval)
		p.Beta1, p.Beta2 = f.beta1, f.beta2
		if p.Threshold <= p.Burst { // the period is too short for the paper's rules
			p.Burst = p.Threshold / 2
		}
		err = p.Validate(rate)
	}
	return p, r, rate, err
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

func writeMargin(out io.Writer, s, proposed cnpgen.Stability) error {
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "weights\tbeta1 %g, beta2 %g CNPs per KB\n", s.Params.Beta1, s.Params.Beta2)
	fmt.Fprintf(tw, "port\t%v, interval %v, threshold %v, burst %v\n", s.Rate, s.Params.Interval, s.Params.Threshold, s.Params.Burst)
	fmt.Fprintf(tw, "open loop\tα* %.5f, K %.4g 1/s³, z %.0f rad/s, crossover %.0f rad/s\n", s.Alpha, s.K, s.Z, s.Crossover)
	fmt.Fprintf(tw, "phase margin\t%+.1f° (%s by the paper's criterion)\n", s.Phase, stableWord(s.MarginStable()))
	fmt.Fprintf(tw, "spectral radius\t%.3f with %d flows (%s as the algorithm runs)\n", s.Radius, s.Flows, stableWord(s.LoopStable()))
	switch n := s.FewestFlows; n {
	case 0:
		fmt.Fprintf(tw, "\tthe loop settles with no number of flows\n")
	case 1:
		fmt.Fprintf(tw, "\tthe loop settles with any number of flows\n")
	default:
		fmt.Fprintf(tw, "\tthe loop settles with %d flows or more\n", n)
	}
	fmt.Fprintf(tw, "verdict\t%s\n", s.Verdict())
	if proposed.Params == s.Params {
		fmt.Fprintf(tw, "proposed\tthese weights\n")
	} else {
		fmt.Fprintf(tw, "proposed\tbeta1 %g, beta2 %g: phase margin %+.1f°, spectral radius %.3f\n",
			round(proposed.Params.Beta1), round(proposed.Params.Beta2), proposed.Phase, proposed.Radius)
	}
	return tw.Flush()
}

func stableWord(stable bool) string {
	if stable {
		return "stable"
	}
	return "unstable"
}
