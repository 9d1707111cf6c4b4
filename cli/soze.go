package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/units"
)

// newSozeCommand analyses Söze's parameters.
func newSozeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "soze",
		Short: "Analyse the parameters of Söze, bandwidth by weight",
	}
	return oneOf(c, newSozeMarginCommand())
}

// sozeMSS is the payload of a packet, which matters for shares of less than one in a round trip.
const sozeMSS = 1000 * units.Byte

// sozeFlags are the flags of "soze margin". Times and rates are text.
type sozeFlags struct {
	rate, rtt, p, k, alpha, beta string
	m, weights                   float64
	asJSON                       bool
}

func newSozeMarginCommand() *cobra.Command {
	var f sozeFlags
	c := &cobra.Command{
		Use:   "margin",
		Short: "Say whether Söze's loop is stable where flows share a link",
		Long: `Say whether Söze's loop is stable where flows share a link.

The queue of a link answers its flows with G = RTT·(ln alpha − ln beta)/k, RTT taken with the
queue, and they see it a round trip later. The loop does not oscillate for m·G up to 1/e, and
is stable below π/2, a phase margin above 0. The law lowers m for flows for which m·G would
exceed 1. The paper's lemmas are for feedback without delay: 0 < m < 2, and k above
(ln alpha − ln beta) times the gap between two packets of a flow.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.OutOrStdout()) },
	}
	d := param.For[soze.Params](law.Flow{Rate: 100 * units.Gbps, MSS: sozeMSS})
	fl := c.Flags()
	fl.StringVar(&f.rate, "rate", "100Gbps", "rate of the link")
	fl.StringVar(&f.rtt, "rtt", "12us", "round trip of its flows without its queue")
	fl.Float64Var(&f.weights, "weights", 4, "sum of the weights of its flows")
	fl.StringVar(&f.p, "p", d.P.String(), "queueing delay at alpha")
	fl.StringVar(&f.k, "k", d.K.String(), "how far it rises until beta")
	fl.StringVar(&f.alpha, "alpha", "", "highest expected rate per unit of weight (default the rate)")
	fl.StringVar(&f.beta, "beta", "", "lowest expected rate per unit of weight (default alpha / 100)")
	fl.Float64Var(&f.m, "m", d.M, "exponent of a round trip")
	fl.BoolVar(&f.asJSON, "json", false, "print JSON")
	return c
}

// sozeReport is the JSON form of the answer.
type sozeReport struct {
	ShareBps   int64   `json:"share_bps_per_weight"`
	DelayUs    float64 `json:"queueing_delay_us"`
	RTTUs      float64 `json:"loaded_rtt_us"`
	Gain       float64 `json:"gain"`
	Asked      float64 `json:"asked_m_times_gain"`
	Applied    float64 `json:"applied_m_times_gain"`
	M          float64 `json:"applied_m"`
	Phase      float64 `json:"phase_margin_degrees"`
	AskedPhase float64 `json:"asked_phase_margin_degrees"`
	Within     bool    `json:"share_within_alpha_and_beta"`
	Lemma      bool    `json:"stable_by_the_papers_lemmas"`
	Stable     bool    `json:"stable"`
	Verdict    string  `json:"verdict"`
}

func (f *sozeFlags) run(out io.Writer) error {
	var rate units.Rate
	var rtt units.Time
	if err := parseFlag("rate", f.rate, units.ParseRate, &rate); err != nil {
		return err
	}
	p := param.For[soze.Params](law.Flow{Rate: rate, MSS: sozeMSS})
	for _, err := range []error{
		parseFlag("rtt", f.rtt, units.ParseTime, &rtt), parseFlag("p", f.p, units.ParseTime, &p.P), parseFlag("k", f.k, units.ParseTime, &p.K),
		parseFlag("alpha", f.alpha, units.ParseRate, &p.Alpha),
	} {
		if err != nil {
			return err
		}
	}
	p.Beta = soze.DefaultBeta(p.Alpha)
	if err := parseFlag("beta", f.beta, units.ParseRate, &p.Beta); err != nil {
		return err
	}
	p.M = f.m
	m, err := p.Margin(rate, rtt, f.weights)
	if err != nil {
		return err
	}
	if f.asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(sozeReport{
			ShareBps: int64(m.Share), DelayUs: m.Delay.Micros(), RTTUs: m.RTT.Micros(), Gain: m.Gain, Asked: m.Asked, Applied: m.Applied, M: m.M,
			Phase: m.Phase, AskedPhase: m.AskedPhase, Within: m.Within, Lemma: m.Lemma, Stable: m.Phase > 0, Verdict: m.Verdict(),
		})
	}
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "target\tp %v, k %v, alpha %v, beta %v, m %g\n", p.P, p.K, p.Alpha, p.Beta, p.M)
	fmt.Fprintf(tw, "link\t%v, weights %g: %v for a weight of 1, queueing delay %v, round trip %v\n", rate, f.weights, m.Share, m.Delay, m.RTT)
	if !m.Within {
		fmt.Fprintf(tw, "\tthis share is not between beta and alpha, where the delay says what the share is\n")
	}
	fmt.Fprintf(tw, "gain\tG %.2f, m·G %.2f as asked, %.2f as applied, with m %.3f\n", m.Gain, m.Asked, m.Applied, m.M)
	fmt.Fprintf(tw, "phase margin\t%+.1f° as applied, %+.1f° as asked\n", m.Phase, m.AskedPhase)
	fmt.Fprintf(tw, "paper's lemmas\t%s, for feedback without delay\n", map[bool]string{true: "hold", false: "do not hold"}[m.Lemma])
	fmt.Fprintf(tw, "verdict\t%s\n", m.Verdict())
	return tw.Flush()
}

// parseFlag reads a flag's text into a value; an empty one leaves it.
func parseFlag[T any](name, text string, parse func(string) (T, error), to *T) error {
	if text == "" {
		return nil
	}
	v, err := parse(text)
	if err != nil {
		return fmt.Errorf("--%s: %w", name, err)
	}
	*to = v
	return nil
}
