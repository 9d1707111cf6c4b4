package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// newApplyCommand makes a configuration the desired one.
func newApplyCommand() *cobra.Command {
	var file string
	var lockout bool
	cmd := ask("apply -f FABRIC.yaml", "Make a configuration the desired one and reconcile every switch with it", func(ctx context.Context, e *env) error {
		return apply(ctx, e, file, lockout)
	})
	fileFlag(cmd, &file)
	cmd.Flags().BoolVar(&lockout, "allow-lockout", false, "take a policy too by which the caller may apply nothing any more")
	return cmd
}

// apply makes a configuration the desired one. If a switch does not have it afterwards, apply shows
// the switch and fails, while the controller keeps trying.
func apply(ctx context.Context, e *env, name string, lockout bool) error {
	file, text, err := e.readConfig(name)
	if err != nil {
		return err
	}
	r, err := e.fabric().ApplyConfig(ctx, &pb.ApplyConfigRequest{Config: text, File: file, AllowLockout: lockout})
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
		_, _ = fmt.Fprintf(w, "%s is generation %d.\n", file, r.GetGeneration())
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
		return fmt.Errorf("%s is the desired configuration, but %d of %s did not take it yet; the controller keeps trying", file, failed, switches(len(r.GetSwitches())))
	}
	return nil
}
