package operator

import (
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/controller/config/reference"
	"github.com/headgate/headgate/internal/jsonfile"
	"github.com/headgate/headgate/internal/version"
)

func newExplainCommand() *cobra.Command {
	var schema bool
	c := &cobra.Command{
		Use:   "explain [KEY]",
		Short: "Explain a key of the fabric file or of a policy: meaning, allowed values and default",
		Long: "Explains a key such as links.rate and the keys below it: allowed values, default and effect. Without a key\n" +
			"it lists the sections. Keys of a policy begin with policy., as in policy.grants.who. docs/reference/keys.md\n" +
			"has all keys. With --schema it prints a JSON schema of the fabric file, or, with the key policy, of a policy,\n" +
			"for editors and for checks before a file reaches a controller.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := newEnv(cmd)
			if err != nil {
				return err
			}
			defer e.conn.Close()
			if schema {
				return explainSchema(e, strings.Join(args, ""))
			}
			return explainKey(e, strings.Join(args, ""))
		},
	}
	command.AddOutputFlag(c)
	arguments(c, keyPaths)
	c.Flags().BoolVar(&schema, "schema", false, "print a JSON schema of the fabric file, or of a policy for the key policy")
	return c
}

func explainSchema(e *env, of string) error {
	if of != "" && of != reference.Policy {
		return fmt.Errorf("--schema: want no key, or %s", reference.Policy)
	}
	keys, err := reference.Keys()
	if err != nil {
		return err
	}
	return jsonfile.Encode(e.Out, reference.Schema(keys, of))
}

func explainKey(e *env, path string) error {
	keys, err := reference.Keys()
	if err != nil {
		return err
	}
	return command.Explain(e.Output, keys, path, "the fabric file")
}

func newVersionCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Print the version of Headgate", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
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
