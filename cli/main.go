package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/cli/operator"
	"github.com/headgate/headgate/emulation"
)

// Exit codes. A plan that would change something ends with ExitChanges. A run that proves nothing
// ends with ExitInvalid.
const (
	ExitOK      = 0
	ExitError   = 1
	ExitChanges = 2
	ExitInvalid = 3
	// 128 and the number of the signal, as in shells.
	ExitInterrupted = 130
	ExitTerminated  = 143
)

// Main runs the root command until it ends or a signal arrives. It writes the error, if any, and
// returns the exit code. A second signal ends the process at once.
func Main(root *cobra.Command, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	root.SilenceErrors, root.SilenceUsage = true, true
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil && ctx.Err() != nil && cmd.Annotations[command.Daemon] == "" {
		err = context.Canceled // a signal ended a command that follows something without end
	}
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, operator.ErrChanges):
		return ExitChanges
	}
	if argsFault.MatchString(err.Error()) {
		err = fmt.Errorf("%w: want %s", err, cmd.UseLine())
	}
	if err != context.Canceled { //nolint:errorlint // wrapped, it has something to say
		for _, line := range strings.Split(suggested(err.Error()), "\n") {
			_, _ = fmt.Fprintf(stderr, "headgate: %s\n", command.Clean(line))
		}
	}
	switch {
	case errors.Is(err, emulation.ErrInvalid):
		return ExitInvalid
	case ctx.Err() != nil && strings.HasPrefix(context.Cause(ctx).Error(), syscall.SIGTERM.String()):
		return ExitTerminated
	case errors.Is(err, context.Canceled), ctx.Err() != nil:
		return ExitInterrupted
	}
	return ExitError
}

// argsFault matches cobra's errors about the number of arguments, which do not say what the arguments are.
var argsFault = regexp.MustCompile(`^(accepts|requires) .* arg\(s\)`)

// suggested puts cobra's suggestions, which stand below an error, into its line.
func suggested(text string) string {
	text, names, found := strings.Cut(strings.TrimRight(text, "\n"), "\n\nDid you mean this?\n")
	if found {
		text += ": did you mean " + strings.Join(strings.Fields(names), " or ") + "?"
	}
	return text
}
