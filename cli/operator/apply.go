package operator

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/units"
)

func newApplyCommand() *cobra.Command {
	var (
		file    string
		r       pb.ApplyConfigRequest
		require []string
		keep    bool
		p       previewFlags
		cmd     *cobra.Command
	)
	cmd = ask("apply -f FABRIC.yaml", "Make a configuration the desired one and reconcile every switch with it", func(ctx context.Context, e *env) error {
		if err := p.check(cmd.Flags(), keep || len(require) > 0, "--require or --preview"); err != nil {
			return err
		}
		var err error
		if r.File, r.Config, err = command.ReadConfig(e.In, file); err != nil {
			return err
		}
		if keep || len(require) > 0 {
			err = p.require(ctx, e, &r, require)
		}
		if err != nil {
			return err
		}
		return apply(ctx, e, &r)
	})
	fileFlag(cmd, &file)
	applyFlags(cmd, &r)
	cmd.Flags().StringArrayVar(&require, "require", nil, "apply only if the prediction meets this, such as 'pause_time<1%'; repeatable; docs/operate/preview.md lists the measures")
	cmd.Flags().BoolVar(&keep, "preview", false, "predict the effect of the change and keep the prediction for get predictions; --require implies it")
	p.add(cmd.Flags())
	return cmd
}

// applyFlags adds the flags of commands that apply a configuration. They are read when the command
// runs.
func applyFlags(cmd *cobra.Command, r *pb.ApplyConfigRequest) {
	var expect uint64
	var confirm time.Duration
	f := cmd.Flags()
	f.BoolVar(&r.AllowLockout, "allow-lockout", false, "accept a policy under which the caller may apply nothing any more")
	f.StringVarP(&r.Why, "message", "m", "", "`why`, for the history")
	f.Uint64Var(&expect, "expect-generation", 0, "apply only if this `generation` is in force")
	f.DurationVar(&confirm, "confirm", 0, "revert the configuration unless headgate confirm comes within this `time`, such as 5m")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if f.Changed("expect-generation") {
			r.ExpectGeneration = &expect
		}
		if confirm < 0 || f.Changed("confirm") && confirm == 0 {
			return fmt.Errorf("--confirm: %v is not allowed: want a time such as 5m", confirm)
		}
		r.Confirm = durationpb.New(confirm)
		return nil
	}
}

// apply makes a configuration the desired one. If a switch does not have it afterwards, apply shows
// the switch and fails, while the controller keeps trying.
func apply(ctx context.Context, e *env, request *pb.ApplyConfigRequest) error {
	file := request.GetFile()
	r, err := e.fabric().ApplyConfig(ctx, request)
	if err != nil {
		return err
	}
	err = e.print(r, func(w io.Writer) {
		row(w, "SWITCH", "INSERTED", "MODIFIED", "DELETED", "RESULT")
		for _, s := range r.GetSwitches() {
			result := s.GetError()
			if result == "" {
				result = "ok"
			}
			row(w, s.GetName(), s.GetInserted(), s.GetModified(), s.GetDeleted(), result)
		}
		_, _ = fmt.Fprintf(w, "%s is generation %d.\n", command.Clean(file), r.GetGeneration())
		if d := request.GetConfirm().AsDuration(); d > 0 {
			_, _ = fmt.Fprintf(w, "It goes in %v unless it is confirmed: headgate confirm\n", d)
		}
	})
	if err != nil {
		return err
	}
	failed := 0
	for _, s := range r.GetSwitches() {
		if s.GetError() != "" {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%s is the desired configuration, but %d of %s have not applied it yet; the controller keeps trying", command.Clean(file), failed, units.Count(len(r.GetSwitches()), "switch"))
	}
	return nil
}

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

func newConfirmCommand() *cobra.Command {
	cmd := askWith("confirm [GENERATION]", "Keep a configuration that was applied with --confirm", cobra.MaximumNArgs(1), func(ctx context.Context, e *env, args []string) error {
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
