package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

// newSpfcCommand analyses SPFC's parameters.
func newSpfcCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "spfc",
		Short: "Analyse the parameters of SPFC, which spares victim ports PAUSEs",
	}
	return oneOf(c, newSpfcMarginCommand())
}

// spfcFlags are the flags of "spfc margin". Times, rates and amounts are text.
type spfcFlags struct {
	rate, period, packet, rtt string
	k, bursts                 int
	congested                 float64
	asJSON                    bool
}

func newSpfcMarginCommand() *cobra.Command {
	var f spfcFlags
	c := &cobra.Command{
		Use:   "margin",
		Short: "Say how far SPFC's judgement of ports is from being wrong",
		Long: `Say how far SPFC's judgement of ports is from being wrong.

The flow model is the paper's (section IV-C): burst ports that send all they can to one
egress port, and a port of which a part ε of the traffic goes there, too, while the rest
would be victims. K tells them apart for N+1 > K > (N+1)/((1−ε)(N+1)+1). A count of a period is
off by a packet or two, so margins are in packets: within that a state may turn with every
period.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.OutOrStdout()) },
	}
	d := headroom.Config{}.WithDefaults()
	fl := c.Flags()
	fl.StringVar(&f.rate, "rate", "100Gbps", "line rate C of the ports")
	fl.IntVar(&f.k, "k", d.SPFC.K, "K of C/K")
	fl.StringVar(&f.period, "period", d.SPFC.Period.String(), "the Timeout Clock TC")
	fl.StringVar(&f.rtt, "rtt", "24us", "round trip of the fabric, of which TC should have four")
	fl.IntVar(&f.bursts, "bursts", 29, "N, burst ports")
	fl.Float64Var(&f.congested, "congested", 0.5, "ε, part of the victim port's traffic that is congested")
	fl.StringVar(&f.packet, "packet", d.MTU.String(), "size of a packet")
	fl.BoolVar(&f.asJSON, "json", false, "print JSON")
	return c
}

// spfcReport is the JSON form of the answer.
type spfcReport struct {
	VictimBps     int64   `json:"victim_departs_bps"`
	BurstBps      int64   `json:"burst_departs_bps"`
	LimitBps      int64   `json:"limit_bps"`
	KAbove        float64 `json:"k_above"`
	KBelow        float64 `json:"k_below"`
	Above         float64 `json:"victim_margin_packets"`
	Below         float64 `json:"burst_margin_packets"`
	FewestBursts  int     `json:"fewest_bursts"`
	MostCongested float64 `json:"most_congested"`
	PeriodRTTs    float64 `json:"period_rtts"`
	Right         bool    `json:"right"`
	Verdict       string  `json:"verdict"`
}

func (f *spfcFlags) run(out io.Writer) error {
	var (
		rate   units.Rate
		rtt    units.Time
		packet units.Bytes
		c      = headroom.SPFCConfig{K: f.k}
	)
	for _, err := range []error{
		parseFlag("rate", f.rate, units.ParseRate, &rate), parseFlag("period", f.period, units.ParseTime, &c.Period),
		parseFlag("rtt", f.rtt, units.ParseTime, &rtt), parseFlag("packet", f.packet, units.ParseBytes, &packet),
	} {
		if err != nil {
			return err
		}
	}
	if rtt <= 0 {
		return fmt.Errorf("--rtt: %v is not allowed: want more than 0", rtt)
	}
	m, err := c.Margin(rate, f.bursts, f.congested, packet)
	if err != nil {
		return err
	}
	rtts := float64(c.Period) / float64(rtt)
	if f.asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(spfcReport{
			VictimBps: int64(m.Victim), BurstBps: int64(m.Burst), LimitBps: int64(m.Limit), KAbove: m.KAbove, KBelow: m.KBelow, Above: m.Above, Below: m.Below,
			FewestBursts: m.FewestBursts, MostCongested: m.MostCongested, PeriodRTTs: rtts, Right: m.VictimHolds() && m.BurstsHold(), Verdict: m.Verdict(),
		})
	}
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "departures\tthe victim's port %v, a burst port %v, C/K %v\n", m.Victim, m.Burst, m.Limit)
	fmt.Fprintf(tw, "K\t%d, want more than %.2f and less than %.0f (Eq. 8)\n", c.K, m.KAbove, m.KBelow)
	fmt.Fprintf(tw, "margins\t%+.1f packets a period for the victim's port, %+.1f for burst ports\n", m.Above, m.Below)
	fmt.Fprintf(tw, "this K\tis right from N = %d on and, with N = %d, up to ε = %.3f\n", m.FewestBursts, f.bursts, m.MostCongested)
	fmt.Fprintf(tw, "period\t%.1f RTT, want 4 or more (§V-B)\n", rtts)
	fmt.Fprintf(tw, "verdict\t%s\n", m.Verdict())
	return tw.Flush()
}
