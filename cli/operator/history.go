package operator

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// newHistoryCommand shows what was applied.
func newHistoryCommand() *cobra.Command {
	cmd := askWith("history [GENERATION]", "Show which configurations were applied, by whom and why, or the text of one", cobra.MaximumNArgs(1), func(ctx context.Context, e *env, args []string) error {
		if len(args) == 0 {
			return listHistory(ctx, e)
		}
		c, err := applied(ctx, e, args[0])
		if err != nil {
			return err
		}
		_, err = io.WriteString(e.Out, c.GetConfig())
		return err
	})
	command.AddOutputFlag(cmd)
	return arguments(cmd, generations)
}

func listHistory(ctx context.Context, e *env) error {
	return show(ctx, e, e.fabric().ListHistory, &pb.ListHistoryRequest{}, func(w io.Writer, r *pb.ListHistoryResponse) {
		row(w, "GENERATION", "APPLIED", "BY", "FILE", "WHY", "CONFIRM UNTIL")
		for _, c := range r.GetConfigs() {
			until := ""
			if c.GetConfirmUntil() != nil {
				until = at(c.GetConfirmUntil())
			}
			row(w, c.GetGeneration(), at(c.GetApplied()), c.GetBy(), c.GetFile(), c.GetWhy(), until)
		}
	})
}

// generation reads an argument.
func generation(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("generation: %q is not allowed: want a number that `headgate history` shows", text)
	}
	return n, nil
}

// applied returns a configuration of the history with its text.
func applied(ctx context.Context, e *env, text string) (*pb.AppliedConfig, error) {
	n, err := generation(text)
	if err != nil {
		return nil, err
	}
	r, err := e.fabric().ListHistory(ctx, &pb.ListHistoryRequest{Generation: n})
	if err != nil {
		return nil, err
	}
	if len(r.GetConfigs()) != 1 {
		return nil, fmt.Errorf("the controller sends %d configurations for generation %d", len(r.GetConfigs()), n)
	}
	return r.GetConfigs()[0], nil
}

// newRollbackCommand applies a configuration of the history again.
func newRollbackCommand() *cobra.Command {
	var r pb.ApplyConfigRequest
	cmd := askWith("rollback GENERATION", "Apply a configuration of the history again, as a new generation", cobra.ExactArgs(1), func(ctx context.Context, e *env, args []string) error {
		c, err := applied(ctx, e, args[0])
		if err != nil {
			return err
		}
		r.File, r.Config = c.GetFile(), c.GetConfig()
		if r.Why == "" {
			r.Why = "rollback to generation " + strconv.FormatUint(c.GetGeneration(), 10)
		}
		return apply(ctx, e, &r)
	})
	command.AddOutputFlag(cmd)
	applyFlags(cmd, &r)
	return arguments(cmd, generations)
}

// newConfirmCommand lets a configuration stay that was applied with --confirm.
func newConfirmCommand() *cobra.Command {
	cmd := askWith("confirm [GENERATION]", "Let a configuration stay that was applied with --confirm", cobra.MaximumNArgs(1), func(ctx context.Context, e *env, args []string) error {
		var n uint64
		if len(args) > 0 {
			var err error
			if n, err = generation(args[0]); err != nil {
				return err
			}
		}
		return show(ctx, e, e.fabric().ConfirmConfig, &pb.ConfirmConfigRequest{Generation: n}, func(w io.Writer, r *pb.ConfirmConfigResponse) {
			_, _ = fmt.Fprintf(w, "generation %d stays\n", r.GetGeneration())
		})
	})
	command.AddOutputFlag(cmd)
	return arguments(cmd, generations)
}
