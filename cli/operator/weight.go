package operator

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/weights"
)

func parseFlow(text string) (*pb.FlowKey, error) {
	k, err := weights.ParseKey(text)
	if err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	return &pb.FlowKey{
		SrcIpv4: k.Src().Addr().String(), SrcPort: uint32(k.Src().Port()), DstIpv4: k.Dst().Addr().String(), DstPort: uint32(k.Dst().Port()),
	}, nil
}

// number parses a number. The controller checks its range, so that its audit log shows the attempt.
func number(field, text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is not allowed: want a finite number such as 1.5", field, text)
	}
	return v, nil
}

// setWeight sets the weight of a flow. With an empty application the flow keeps its application.
func setWeight(ctx context.Context, e *env, flow, application, value string) error {
	key, err := parseFlow(flow)
	if err != nil {
		return err
	}
	v, err := number("weight", value)
	if err != nil {
		return err
	}
	return show(ctx, e, e.weight().SetWeight, &pb.SetWeightRequest{Flow: key, Weight: v, Application: application}, func(w io.Writer, r *pb.SetWeightResponse) {
		if r.GetPrevious() == 0 {
			_, _ = fmt.Fprintf(w, "%s: weight %v (new)\n", flowText(key), r.GetWeight())
			return
		}
		_, _ = fmt.Fprintf(w, "%s: weight %v (was %v)\n", flowText(key), r.GetWeight(), r.GetPrevious())
	})
}

// deleteWeight deletes a flow's weight, which becomes free in the application's budget.
func deleteWeight(ctx context.Context, e *env, flow string) error {
	key, err := parseFlow(flow)
	if err != nil {
		return err
	}
	return show(ctx, e, e.weight().DeleteFlow, &pb.DeleteFlowRequest{Flow: key}, func(w io.Writer, r *pb.DeleteFlowResponse) { _, _ = fmt.Fprintf(w, "%s: deleted\n", flowText(key)) })
}

// setBudget sets the largest sum of weights of an application; 0 removes the limit.
func setBudget(ctx context.Context, e *env, application, value string) error {
	v, err := number("limit", value)
	if err != nil {
		return err
	}
	return show(ctx, e, e.weight().SetBudget, &pb.SetBudgetRequest{Application: application, Limit: v}, func(w io.Writer, r *pb.SetBudgetResponse) {
		_, _ = fmt.Fprintf(w, "application %s: budget %s\n", command.Clean(application), limit(v))
	})
}

var negative = regexp.MustCompile(`in (-[0-9.]\S*)$`)

// refuseNegative explains that a number is negative. Otherwise the error would be about an unknown
// flag.
func refuseNegative(field string) func(*cobra.Command, error) error {
	return func(_ *cobra.Command, err error) error {
		if m := negative.FindStringSubmatch(err.Error()); m != nil {
			return fmt.Errorf("%s: %s is not allowed: want a finite number above zero", field, m[1])
		}
		return err
	}
}
