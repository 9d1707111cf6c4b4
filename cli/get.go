package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/units"
)

// GetFabric shows the running configuration's switches and hosts, or, with config, its YAML.
func GetFabric(ctx context.Context, e *Env, config bool) error {
	r, err := e.fabric().GetFabric(ctx, &pb.GetFabricRequest{})
	if err != nil {
		return err
	}
	if config {
		_, err := io.WriteString(e.Out, r.GetConfig())
		return err
	}
	return e.print(r, func(w io.Writer) {
		up := 0
		for _, l := range r.GetLinks() {
			if l.GetUp() {
				up++
			}
		}
		_, _ = fmt.Fprintf(w, "fabric %s, generation %d, %d of %s up\n\n", clean(r.GetName()), r.GetGeneration(), up, plural(len(r.GetLinks()), "link"))
		row(w, "SWITCH", "DEVICE", "ADDRESS")
		for _, s := range r.GetSwitches() {
			row(w, s.GetName(), s.GetDeviceId(), s.GetAddress())
		}
		_, _ = fmt.Fprintln(w)
		row(w, "HOST", "IPV4", "MAC")
		for _, h := range r.GetHosts() {
			row(w, h.GetName(), h.GetIpv4(), h.GetMac())
		}
	})
}

// GetLinks shows the links with their state.
func GetLinks(ctx context.Context, e *Env) error {
	r, err := e.fabric().GetFabric(ctx, &pb.GetFabricRequest{})
	if err != nil {
		return err
	}
	only := &pb.GetFabricResponse{Name: r.GetName(), Links: r.GetLinks(), Generation: r.GetGeneration()}
	return e.print(only, func(w io.Writer) {
		row(w, "A", "B", "RATE", "DELAY", "STATE")
		for _, l := range r.GetLinks() {
			row(w, endpoint(l.GetA()), endpoint(l.GetB()), units.Rate(l.GetRateBps()), nanoseconds(l.GetDelayNs()), upDown(l.GetUp()))
		}
	})
}

// GetSwitches shows each switch's session, and what each can do.
func GetSwitches(ctx context.Context, e *Env) error {
	r, err := e.fabric().ListSwitches(ctx, &pb.ListSwitchesRequest{})
	if err != nil {
		return err
	}
	return e.print(r, func(w io.Writer) {
		row(w, "SWITCH", "DEVICE", "ADDRESS", "STATE", "FOR", "ENTRIES", "RECONCILES", "PORTS UP", "ERROR")
		for _, s := range r.GetSwitches() {
			up := 0
			for _, p := range s.GetPorts() {
				if p.GetUp() {
					up++
				}
			}
			row(w, s.GetName(), s.GetDeviceId(), s.GetAddress(), state(s.GetState()), e.ago(s.GetSince()), s.GetEntries(), s.GetReconciles(),
				fmt.Sprintf("%d/%d", up, len(s.GetPorts())), s.GetError())
		}
		drawMatrix(w, r.GetSwitches())
	})
}

func state(s pb.SwitchStatus_State) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "STATE_"))
}

// GetFlows shows what the hosts last reported.
func GetFlows(ctx context.Context, e *Env) error {
	r, err := e.host().ListFlows(ctx, &pb.ListFlowsRequest{})
	if err != nil {
		return err
	}
	return e.print(r, func(w io.Writer) {
		flowHead(w)
		for _, h := range r.GetHosts() {
			flowRows(w, h)
		}
	})
}

func flowHead(w io.Writer) {
	row(w, "HOST", "FLOW", "APPLICATION", "WEIGHT", "RATE", "MAXQD", "RTT", "ACKED", "RETRANSMITS")
}

func flowRows(w io.Writer, h *pb.HostReport) {
	for _, f := range h.GetFlows() {
		row(w, h.GetHost(), flowText(f.GetFlow()), f.GetApplication(), f.GetWeight(), units.Rate(f.GetRateBps()),
			nanoseconds(f.GetMaxQdNs()), nanoseconds(f.GetRttNs()), units.Bytes(f.GetAckedBytes()), f.GetRetransmits())
	}
}

// GetWeights shows the flows' weights and the budgets of an application, "" for all.
func GetWeights(ctx context.Context, e *Env, application string) error {
	r, err := e.weight().ListWeights(ctx, &pb.ListWeightsRequest{Application: application})
	if err != nil {
		return err
	}
	return e.print(r, func(w io.Writer) { drawWeights(w, r.GetFlows(), r.GetBudgets()) })
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

// GetAudit shows the newest n entries of the log, oldest first.
func GetAudit(ctx context.Context, e *Env, application string, n uint32) error {
	r, err := e.weight().ListAudit(ctx, &pb.ListAuditRequest{Application: application, Limit: n})
	if err != nil {
		return err
	}
	return e.print(r, func(w io.Writer) {
		row(w, "TIME", "PEER", "WHAT", "APPLICATION", "FLOW", "FROM", "TO", "RESULT")
		for _, a := range r.GetEntries() {
			result := "granted"
			if a.GetRefused() != "" {
				result = "refused: " + a.GetRefused()
			}
			row(w, at(a.GetTime()), a.GetPeer(), a.GetWhat(), a.GetApplication(), flowText(a.GetFlow()), a.GetPrevious(), a.GetValue(), result)
		}
	})
}
