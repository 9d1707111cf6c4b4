package lab

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

func newSpfcCommand() *cobra.Command {
	d := headroom.Config{}.WithDefaults()
	f := spfcFlags{c: headroom.SPFCConfig{K: d.SPFC.K, Period: d.SPFC.Period}, rate: 100 * units.Gbps, rtt: 24 * units.Microsecond, packet: d.MTU}
	c := &cobra.Command{
		Short: "Compute how far SPFC's port states are from being wrong",
		Long: `The flow model is the paper's (section IV-C): burst ports that send all they can to one
egress port, and a port of which a part ε of the traffic goes there, too, while the rest
would be victims. K tells them apart for N+1 > K > (N+1)/((1−ε)(N+1)+1). A count of a period is
off by a packet or two, so margins are in packets: within that a state may turn with every
period.`,
	}
	fl := c.Flags()
	fl.Var(units.Flag{Value: &f.rate}, "rate", "line rate C of the ports")
	fl.IntVar(&f.c.K, "k", d.SPFC.K, "K of C/K")
	fl.Var(units.Flag{Value: &f.c.Period}, "period", "the Timeout Clock TC")
	fl.Var(units.Flag{Value: &f.rtt}, "rtt", "round trip of the fabric, of which TC should have four")
	fl.IntVar(&f.bursts, "bursts", 29, "N, burst ports")
	fl.Float64Var(&f.congested, "congested", 0.5, "ε, part of the victim port's traffic that is congested")
	fl.Var(units.Flag{Value: &f.packet}, "packet", "size of a packet")
	return newMarginTool("spfc", "Analyse the parameters of SPFC, which spares victim ports PAUSEs", c, f.analyse)
}

type spfcFlags struct {
	c         headroom.SPFCConfig
	rate      units.Rate
	rtt       units.Time
	packet    units.Bytes
	bursts    int
	congested float64
}

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

func (f *spfcFlags) analyse() (any, func(io.Writer), error) {
	if f.rtt <= 0 {
		return nil, nil, fmt.Errorf("--rtt: %v is not allowed: want more than 0", f.rtt)
	}
	m, err := f.c.Margin(f.rate, f.bursts, f.congested, f.packet)
	if err != nil {
		return nil, nil, err
	}
	rtts := float64(f.c.Period) / float64(f.rtt)
	report := spfcReport{
		VictimBps: int64(m.Victim), BurstBps: int64(m.Burst), LimitBps: int64(m.Limit), KAbove: m.KAbove, KBelow: m.KBelow, Above: m.Above, Below: m.Below,
		FewestBursts: m.FewestBursts, MostCongested: m.MostCongested, PeriodRTTs: rtts, Right: m.VictimHolds() && m.BurstsHold(), Verdict: m.Verdict(),
	}
	return report, func(w io.Writer) {
		fmt.Fprintf(w, "departures\tthe victim's port %v, a burst port %v, C/K %v\n", m.Victim, m.Burst, m.Limit)
		fmt.Fprintf(w, "K\t%d, want more than %.2f and less than %.0f (Eq. 8)\n", f.c.K, m.KAbove, m.KBelow)
		fmt.Fprintf(w, "margins\t%+.1f packets a period for the victim's port, %+.1f for burst ports\n", m.Above, m.Below)
		fmt.Fprintf(w, "this K\tis right from N = %d on and, with N = %d, up to ε = %.3f\n", m.FewestBursts, f.bursts, m.MostCongested)
		fmt.Fprintf(w, "period\t%.1f RTT, want 4 or more (§V-B)\n", rtts)
		fmt.Fprintf(w, "verdict\t%s\n", m.Verdict())
	}, nil
}
