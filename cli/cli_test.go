package cli

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/cli/operator"
	"github.com/headgate/headgate/emulation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func root(run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	cmd := &cobra.Command{Use: "headgate", RunE: run}
	command.AddServerFlags(cmd)

	return cmd
}

func TestMainWritesEachLineAndExits(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code int
		want string
	}{
		{nil, ExitOK, ""},
		{fmt.Errorf("plan: %w", operator.ErrChanges), ExitChanges, ""},
		{emulation.ErrInvalid, ExitInvalid, "headgate: the run is invalid: see the top of its table\n"},
		{errors.New("one\ntwo \x1b[31m\n"), ExitError, "headgate: one\nheadgate: two ?[31m\n"},
	} {
		cmd := root(func(*cobra.Command, []string) error { return tt.err })
		cmd.SetArgs(nil)
		var out bytes.Buffer
		if code := Main(cmd, &out); code != tt.code || out.String() != tt.want {
			t.Errorf("%v: code %d, %q; want %d, %q", tt.err, code, out.String(), tt.code, tt.want)
		}
	}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range NewRoot().Commands() {
		if seen[c.Name()] {
			t.Errorf("%s is there twice", c.Name())
		}
		seen[c.Name()] = true
		if c.Short == "" || !c.Runnable() && !c.HasSubCommands() {
			t.Errorf("%s: short text %q, runnable %v, subcommands %v", c.Name(), c.Short, c.Runnable(), c.HasSubCommands())
		}
	}
}
