package operator

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/units"
)

func getFabric(ctx context.Context, e *env, config bool) error {
	r, err := e.fabric().GetFabric(ctx, &pb.GetFabricRequest{})
	if err != nil {
		return err
	}
	if config {
		_, err := io.WriteString(e.Out, r.GetConfig())
		return err
	}
	leader := ""
	if m := r.GetMember(); m != "" {
		leader = ", led by " + command.Clean(m)
	}
	return e.print(r, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "fabric %s, generation %d, links up: %s%s\n\n", command.Clean(r.GetName()), r.GetGeneration(), countUp(r.GetLinks()), leader)
		row(w, "SWITCH", "DEVICE", "ADDRESS")
		for _, s := range r.GetSwitches() {
			row(w, s.GetName(), s.GetDeviceId(), s.GetAddress())
		}
		_, _ = fmt.Fprintln(w)
		six := slices.ContainsFunc(r.GetHosts(), func(h *pb.Host) bool { return h.GetIpv6() != "" })
		if six {
			row(w, "HOST", "IPV4", "IPV6", "MAC")
		} else {
			row(w, "HOST", "IPV4", "MAC")
		}
		for _, h := range r.GetHosts() {
			if six {
				row(w, h.GetName(), h.GetIpv4(), cmp.Or(h.GetIpv6(), "-"), h.GetMac())
			} else {
				row(w, h.GetName(), h.GetIpv4(), h.GetMac())
			}
		}
	})
}

func getLinks(ctx context.Context, e *env) error {
	r, err := e.fabric().GetFabric(ctx, &pb.GetFabricRequest{})
	if err != nil {
		return err
	}
	only := &pb.GetFabricResponse{Name: r.GetName(), Links: r.GetLinks(), Generation: r.GetGeneration()}
	addresses := map[string]string{}
	for _, s := range r.GetSwitches() {
		addresses[s.GetName()] = s.GetAddress()
	}
	for _, h := range r.GetHosts() {
		addresses[h.GetName()] = h.GetIpv4()
	}
	return e.print(only, func(w io.Writer) {
		head := []any{"A", "B", "RATE", "DELAY", "STATE"}
		if e.Wide {
			head = append(head, "ADDRESS A", "ADDRESS B")
		}
		row(w, append(head, "REASON")...)
		for _, l := range r.GetLinks() {
			cells := []any{endpoint(l.GetA()), endpoint(l.GetB()), units.Rate(l.GetRateBps()), duration(l.GetDelay()), pb.Word(l.GetState())}
			if e.Wide {
				cells = append(cells, addresses[l.GetA().GetNode()], addresses[l.GetB().GetNode()])
			}
			row(w, append(cells, l.GetReason())...)
		}
	})
}

func getSwitches(ctx context.Context, e *env) error {
	return show(ctx, e, e.fabric().ListSwitches, &pb.ListSwitchesRequest{}, func(w io.Writer, r *pb.ListSwitchesResponse) {
		head := []any{"SWITCH", "DEVICE", "ADDRESS", "STATE", "FOR", "ENTRIES", "RECONCILES", "PORTS UP", "ERROR"}
		if e.Wide {
			head = append(head, "ELECTION", "PROGRAM", "FULLEST TABLE")
		}
		row(w, head...)
		for _, s := range r.GetSwitches() {
			cells := []any{
				s.GetName(), s.GetDeviceId(), s.GetAddress(), pb.Word(s.GetState()), e.ago(s.GetSince()), s.GetEntries(), s.GetReconciles(),
				countUp(s.GetPorts()), s.GetError(),
			}
			if e.Wide {
				cells = append(cells, s.GetElectionId(), program(s), fullest(s.GetTables()))
			}
			row(w, cells...)
		}
		drawMatrix(w, r.GetSwitches())
	})
}

// countUp summarises the states of ports or links, as in "2/4, 2 unknown".
func countUp[P interface{ GetState() pb.PortStatus_State }](ports []P) string {
	n := map[pb.PortStatus_State]int{}
	for _, p := range ports {
		n[p.GetState()]++
	}
	switch unknown := n[pb.PortStatus_STATE_UNKNOWN]; {
	case unknown == 0:
		return fmt.Sprintf("%d/%d", n[pb.PortStatus_STATE_UP], len(ports))
	case unknown == len(ports):
		return "unknown"
	default:
		return fmt.Sprintf("%d/%d, %d unknown", n[pb.PortStatus_STATE_UP], len(ports), unknown)
	}
}

func getFlows(ctx context.Context, e *env) error {
	return show(ctx, e, e.host().ListFlows, &pb.ListFlowsRequest{}, func(w io.Writer, r *pb.ListFlowsResponse) {
		flowHead(w, e.Wide)
		for _, h := range r.GetHosts() {
			flowRows(w, h, e.Wide)
		}
	})
}

// flowRow writes a line of the table of flows; the last columns only if wide.
func flowRow(w io.Writer, wide bool, cells ...any) {
	if !wide {
		cells = cells[:len(cells)-2]
	}
	row(w, cells...)
}

func flowHead(w io.Writer, wide bool) {
	flowRow(w, wide, "HOST", "FLOW", "APPLICATION", "WEIGHT", "RATE", "MAXQD", "RTT", "ACKED", "RETRANSMITS", "LAW", "PRIORITY")
}

func flowRows(w io.Writer, h *pb.HostReport, wide bool) {
	for _, f := range h.GetFlows() {
		flowRow(w, wide, h.GetHost(), flowText(f.GetFlow()), f.GetApplication(), f.GetWeight(), units.Rate(f.GetRateBps()),
			duration(f.GetMaxQd()), duration(f.GetRtt()), units.Bytes(f.GetAckedBytes()), f.GetRetransmits(), cmp.Or(f.GetLaw(), "-"), limit(float64(f.GetVirtualPriority())))
	}
}

func getWeights(ctx context.Context, e *env, application string) error {
	return show(ctx, e, e.weight().ListWeights, &pb.ListWeightsRequest{Application: application}, func(w io.Writer, r *pb.ListWeightsResponse) { drawWeights(w, r.GetFlows(), r.GetBudgets()) })
}

func drawWeights(w io.Writer, flows []*pb.FlowWeight, budgets []*pb.Budget) {
	row(w, "FLOW", "APPLICATION", "WEIGHT", "REGISTERED BY")
	for _, f := range flows {
		by := "operator"
		if f.GetHost() != "" {
			by = "host " + f.GetHost()
		}
		row(w, flowText(f.GetFlow()), f.GetApplication(), f.GetWeight(), by)
	}
	_, _ = fmt.Fprintln(w)
	row(w, "APPLICATION", "USED", "BUDGET")
	for _, b := range budgets {
		row(w, b.GetApplication(), b.GetUsed(), limit(b.GetLimit()))
	}
}

func limit(v float64) string {
	if v == 0 {
		return "none"
	}
	return fmt.Sprint(v)
}

// getAudit shows the newest n entries of the log, oldest first.
func getAudit(ctx context.Context, e *env, application string, n uint32) error {
	return show(ctx, e, e.weight().ListAudit, &pb.ListAuditRequest{Application: application, Limit: n}, func(w io.Writer, r *pb.ListAuditResponse) {
		row(w, "TIME", "WHO", "FROM", "WHAT", "APPLICATION", "ABOUT", "BEFORE", "AFTER", "RESULT")
		for _, a := range r.GetEntries() {
			result := "granted"
			if a.GetRefused() != "" {
				result = "refused: " + a.GetRefused()
			}
			row(w, at(a.GetTime()), a.GetIdentity(), a.GetPeer(), a.GetWhat(), a.GetApplication(), cmp.Or(flowText(a.GetFlow()), a.GetSubject()), cmp.Or(brief(a.GetBefore()), fmt.Sprint(a.GetPrevious())), cmp.Or(brief(a.GetAfter()), fmt.Sprint(a.GetValue())), result)
		}
	})
}

// brief is the beginning of an old or new value.
func brief(s string) string {
	const most = 24
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

func getPredictions(ctx context.Context, e *env) error {
	return show(ctx, e, e.fabric().GetPredictions, &pb.GetPredictionsRequest{}, func(w io.Writer, r *pb.GetPredictionsResponse) {
		row(w, "GENERATION", "APPLIED", "UNTIL", "MEASURE", "UNIT", "PREDICTED", "MEASURED", "ERROR")
		for _, c := range r.GetChanges() {
			until := "now"
			if c.GetOver() {
				until = at(c.GetUntil())
			}
			for _, p := range c.GetPredictions() {
				measured, miss := "–", "–"
				if p.Measured != nil {
					measured = fmt.Sprintf("%.5g", p.GetMeasured())
					if p.GetMeasured() != 0 {
						miss = fmt.Sprintf("%+.0f %%", 100*(p.GetMean()/p.GetMeasured()-1))
					}
				}
				row(w, c.GetGeneration(), at(c.GetApplied()), until, p.GetMeasure(), p.GetUnit(), fmt.Sprintf("%.5g (%.5g…%.5g)", p.GetMean(), p.GetLow(), p.GetHigh()), measured, miss)
			}
		}
	})
}

func newGetCommand() *cobra.Command {
	var config bool
	fabric := ask("fabric", "The running configuration's switches and hosts", func(ctx context.Context, e *env) error {
		return getFabric(ctx, e, config)
	})
	fabric.Flags().BoolVar(&config, "config", false, "write the configuration as it was applied")

	var app string
	weights := ask("weights", "The flows' weights and the applications' budgets", func(ctx context.Context, e *env) error {
		return getWeights(ctx, e, app)
	})
	var last uint32
	audit := ask("audit", "Who changed which weight or budget, and what was refused", func(ctx context.Context, e *env) error {
		return getAudit(ctx, e, app, last)
	})
	for _, c := range []*cobra.Command{weights, audit} {
		c.Flags().StringVar(&app, "app", "", "only this `application`")
		completeFlag(c, "app", applicationNames)
	}
	audit.Flags().Uint32VarP(&last, "last", "n", 100, "`number` of entries")

	var feature string
	status := ask("status", "The status of each switch by feature", func(ctx context.Context, e *env) error {
		return getStatus(ctx, e, feature)
	})
	status.Flags().StringVar(&feature, "feature", "", "only this `feature`, such as buffer")
	completeFlag(status, "feature", featureNames)

	var recent uint32
	one := askWith("switch NAME", "The complete status of one switch", cobra.ExactArgs(1), func(ctx context.Context, e *env, args []string) error {
		return getSwitch(ctx, e, args[0], recent)
	})
	arguments(one, switchNames)
	one.Flags().Uint32Var(&recent, "recent", 10, "`number` of its last events to show")

	cmd := &cobra.Command{Use: "get", Short: "Show the fabric, its switches and their status, links, flows, weights, priorities or the audit log"}
	command.AddOutputFlag(cmd)
	return command.OneOf(cmd, fabric,
		ask("switches", "Each switch's session, ports and what its target cannot do", getSwitches),
		one, status,
		ask("links", "The links with rate, delay and state", getLinks),
		ask("flows", "The last reports of the attached hosts", getFlows),
		weights, audit,
		ask("predictions", "The predictions for applied configurations, and the measurements", getPredictions),
		ask("priorities", "PrioPlus' virtual priorities with their channels and owners", getPriorities),
	)
}
