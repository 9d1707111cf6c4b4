package operator

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"

	"github.com/headgate/headgate/controller/config/reference"
	"github.com/headgate/headgate/internal/jsonfile"
)

// newExplainCommand is "explain", which says what the keys of the fabric file and of a policy are.
func newExplainCommand() *cobra.Command {
	var schema bool
	c := &cobra.Command{
		Use:   "explain [KEY]",
		Short: "Say what a key of the fabric file or of a policy is, what it may be and what it is by default",
		Long: "Explains a key such as links.rate, with those below it: what may stand there, what does by default, and\n" +
			"what it does. Without a key it lists the sections. Keys of a policy have policy. before them, as in\n" +
			"policy.grants.who. docs/reference/keys.md has all of them. With --schema it prints a JSON schema of the fabric file, or with\n" +
			"the key policy of a policy, for editors and for checks before a file reaches a controller.",
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
	key, below, ok := reference.Find(keys, path)
	if !ok && path != "" {
		parent, name := "", path
		if i := strings.LastIndexByte(path, '.'); i >= 0 {
			parent, name = path[:i], path[i+1:]
		}
		if _, near, _ := reference.Find(keys, parent); len(near) > 0 {
			return fmt.Errorf("%q is no key: %s has no %q, want one of %s", path, orFile(parent), name, names(near))
		}
		_, top, _ := reference.Find(keys, "")
		return fmt.Errorf("%q is no key: want one of %s, or one below them", path, names(top))
	}
	if e.Format != command.Table {
		list := below
		if ok {
			list = append([]reference.Key{key}, below...)
		}
		text, err := json.Marshal(list)
		if err != nil {
			return err
		}
		return e.Raw(text)
	}
	if ok {
		_, _ = fmt.Fprintf(e.Out, "%s: %s", key.Path, key.Allowed)
		if !key.Holds {
			_, _ = fmt.Fprintf(e.Out, "\ndefault: %s", key.Default)
		}
		_, _ = fmt.Fprintf(e.Out, "\n\n%s\n", ansi.Wordwrap(strings.Join(strings.Fields(key.Description), " "), 100, ""))
	}
	if len(below) == 0 {
		return nil
	}
	if ok {
		_, _ = fmt.Fprintln(e.Out)
	}
	return e.Tabs(func(w io.Writer) {
		row(w, "KEY", "DEFAULT", "ALLOWED")
		for _, k := range below {
			value := k.Default
			if k.Holds {
				value = ""
			}
			row(w, k.Path, value, k.Allowed)
		}
	})
}

func orFile(path string) string {
	if path == "" {
		return "the fabric file"
	}
	return path
}

// names lists keys by the last parts of their paths.
func names(keys []reference.Key) string {
	var list []string
	for _, k := range keys {
		list = append(list, k.Path[strings.LastIndexByte(k.Path, '.')+1:])
	}
	return strings.Join(list, ", ")
}
