package lab

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/units"
)

// sozeMSS is the payload of a packet, which matters for shares of less than one in a round trip.
const sozeMSS = 1000 * units.Byte

func newSozeCommand() *cobra.Command {
	f := sozeFlags{rate: 100 * units.Gbps, rtt: 12 * units.Microsecond}
	d := param.For[soze.Params](law.Flow{Rate: f.rate, MSS: sozeMSS})
	f.own.P, f.own.K = d.P, d.K
	c := &cobra.Command{
		Short: "Check whether Söze's loop is stable for flows that share a link",
		Long: `The queue of a link answers its flows with G = RTT·(ln alpha − ln beta)/k, RTT taken with the
queue, and they see it a round trip later. The loop does not oscillate for m·G up to 1/e, and
is stable below π/2, a phase margin above 0. The law lowers m for flows for which m·G would
exceed 1. The paper's lemmas are for feedback without delay: 0 < m < 2, and k above
(ln alpha − ln beta) times the gap between two packets of a flow.`,
	}
	fl := c.Flags()
	fl.Var(units.Flag{Value: &f.rate}, "rate", "rate of the link")
	fl.Var(units.Flag{Value: &f.rtt}, "rtt", "round trip of the link's flows, without its queue")
	fl.Float64Var(&f.weights, "weights", 4, "sum of the weights of the link's flows")
	fl.Var(units.Flag{Value: &f.own.P}, "p", "queueing delay at alpha")
	fl.Var(units.Flag{Value: &f.own.K}, "k", "rise of the queueing delay from alpha to beta")
	fl.Var(units.Flag{Value: &f.own.Alpha}, "alpha", "highest expected rate per unit of weight (default the rate)")
	fl.Var(units.Flag{Value: &f.own.Beta}, "beta", "lowest expected rate per unit of weight (default alpha / 100)")
	fl.Float64Var(&f.own.M, "m", d.M, "exponent of a round trip")
	return newMarginTool("soze", "Analyse the parameters of Söze, bandwidth by weight", c, f.analyse)
}

// sozeFlags are the flags of "soze margin"; Alpha and Beta may be 0 in own.
type sozeFlags struct {
	rate    units.Rate
	rtt     units.Time
	weights float64
	own     soze.Params
}

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

func (f *sozeFlags) analyse() (any, func(io.Writer), error) {
	p := param.For[soze.Params](law.Flow{Rate: f.rate, MSS: sozeMSS})
	p.P, p.K, p.M, p.Alpha = f.own.P, f.own.K, f.own.M, cmp.Or(f.own.Alpha, p.Alpha)
	p.Beta = cmp.Or(f.own.Beta, soze.DefaultBeta(p.Alpha))
	m, err := p.Margin(f.rate, f.rtt, f.weights)
	if err != nil {
		return nil, nil, err
	}
	report := sozeReport{
		ShareBps: int64(m.Share), DelayUs: m.Delay.Micros(), RTTUs: m.RTT.Micros(), Gain: m.Gain, Asked: m.Asked, Applied: m.Applied, M: m.M,
		Phase: m.Phase, AskedPhase: m.AskedPhase, Within: m.Within, Lemma: m.Lemma, Stable: m.Phase > 0, Verdict: m.Verdict(),
	}
	return report, func(w io.Writer) {
		fmt.Fprintf(w, "target\tp %v, k %v, alpha %v, beta %v, m %g\n", p.P, p.K, p.Alpha, p.Beta, p.M)
		fmt.Fprintf(w, "link\t%v, weights %g: %v for a weight of 1, queueing delay %v, round trip %v\n", f.rate, f.weights, m.Share, m.Delay, m.RTT)
		if !m.Within {
			fmt.Fprintf(w, "\tthis share is outside beta to alpha, where the delay determines the share\n")
		}
		fmt.Fprintf(w, "gain\tG %.2f, m·G %.2f as asked, %.2f as applied, with m %.3f\n", m.Gain, m.Asked, m.Applied, m.M)
		fmt.Fprintf(w, "phase margin\t%+.1f° as applied, %+.1f° as asked\n", m.Phase, m.AskedPhase)
		fmt.Fprintf(w, "paper's lemmas\t%s, for feedback without delay\n", map[bool]string{true: "hold", false: "do not hold"}[m.Lemma])
		fmt.Fprintf(w, "verdict\t%s\n", m.Verdict())
	}, nil
}
