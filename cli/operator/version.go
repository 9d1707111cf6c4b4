package operator

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/internal/version"
)

// newVersionCommand says which Headgate this is. No controller is asked.
func newVersionCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Say which version of Headgate this is", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		v := struct {
			Version  string `json:"version"`
			Go       string `json:"go"`
			Platform string `json:"platform"`
		}{version.String(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
		return command.Print(cmd, v, func(w io.Writer) { _, _ = fmt.Fprintf(w, "headgate %s, %s %s\n", v.Version, v.Go, v.Platform) })
	}}
	command.AddOutputFlag(cmd)
	return cmd
}
