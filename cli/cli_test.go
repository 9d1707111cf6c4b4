package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
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
		{errors.New("unknown command \"gte\" for \"headgate\"\n\nDid you mean this?\n\tget\n\tset\n"), ExitError, "headgate: unknown command \"gte\" for \"headgate\": did you mean get or set?\n"},
		{command.Interrupted("nothing was measured"), ExitInterrupted, "headgate: interrupted: nothing was measured\n"},
		{cobra.ExactArgs(1)(nil, nil), ExitError, "headgate: accepts 1 arg(s), received 0: want headgate [flags]\n"},
		{context.Canceled, ExitInterrupted, ""},
	} {
		cmd := root(func(*cobra.Command, []string) error { return tt.err })
		cmd.SetArgs(nil)
		var out bytes.Buffer
		if code := Main(cmd, &out); code != tt.code || out.String() != tt.want {
			t.Errorf("%v: code %d, %q; want %d, %q", tt.err, code, out.String(), tt.code, tt.want)
		}
	}
}

// TestSignals: a command that a signal ends exits with 128 plus the signal's number. A daemon exits
// with 0.
func TestSignals(t *testing.T) {
	for _, tt := range []struct {
		signal      syscall.Signal
		annotations map[string]string
		err         error
		want        int
	}{
		{syscall.SIGINT, nil, nil, ExitInterrupted},
		{syscall.SIGTERM, nil, nil, ExitTerminated},
		{syscall.SIGINT, nil, errors.New("the stream broke"), ExitInterrupted},
		{syscall.SIGINT, map[string]string{command.Daemon: "true"}, nil, ExitOK},
		{syscall.SIGTERM, map[string]string{command.Daemon: "true"}, nil, ExitOK},
	} {
		cmd := root(func(cmd *cobra.Command, _ []string) error {
			if err := syscall.Kill(syscall.Getpid(), tt.signal); err != nil {
				t.Error(err)
			}
			<-cmd.Context().Done()
			return tt.err
		})
		cmd.Annotations = tt.annotations
		cmd.SetArgs(nil)
		if code := Main(cmd, io.Discard); code != tt.want {
			t.Errorf("%v, error %v, %v: code %d, want %d", tt.signal, tt.err, tt.annotations, code, tt.want)
		}
	}
}

// TestEveryCommandHasAnExample: each command has an example that the command line accepts.
func TestEveryCommandHasAnExample(t *testing.T) {
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.Example == "" {
				t.Errorf("%s has no example", sub.CommandPath())
			}
			for _, args := range calls(t, sub.CommandPath(), sub.Example) {
				err := checkCall(args)
				if err != nil && strings.HasPrefix(err.Error(), "invalid argument") {
					err = nil // the reader replaces it, such as a folder
				}
				if err != nil || !strings.HasPrefix(strings.Join(args, " "), sub.CommandPath()) {
					t.Errorf("%s: example %q: %v", sub.CommandPath(), args, err)
				}
			}
			visit(sub)
		}
	}
	visit(NewRoot())
	for path := range examples {
		if c, rest, err := NewRoot().Find(strings.Fields(path)); err != nil || len(rest) > 0 || c.Example == "" {
			t.Errorf("an example of %q, which is no command", path)
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
