package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
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
)

// Main runs the root command until it ends or a signal arrives. It writes the error, if any, and
// returns the exit code. A second signal ends the process at once.
func Main(root *cobra.Command, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	root.SilenceErrors, root.SilenceUsage = true, true
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, operator.ErrChanges):
		return ExitChanges
	}
	for _, line := range strings.Split(strings.TrimRight(err.Error(), "\n"), "\n") {
		_, _ = fmt.Fprintf(stderr, "headgate: %s\n", command.Clean(line))
	}
	if errors.Is(err, emulation.ErrInvalid) {
		return ExitInvalid
	}
	return ExitError
}
