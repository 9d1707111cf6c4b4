package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/internal/yamlnode"
)

// maxConfig is the largest size of a configuration in bytes, the same as for the daemon's own file.
const maxConfig = yamlnode.MaxText

// readConfig reads a configuration from a file, or from the input for "-". The controller checks it.
func (e *env) readConfig(name string) (file, text string, err error) {
	var data []byte
	if name == "-" {
		name = "stdin"
		data, err = io.ReadAll(io.LimitReader(e.In, maxConfig+1))
	} else {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return name, "", err
	}
	if len(data) > maxConfig {
		return name, "", fmt.Errorf("%s: %d bytes are too many: want at most %d", name, len(data), maxConfig)
	}
	if !utf8.Valid(data) {
		line := 1
		for l := range bytes.Lines(data) {
			if !utf8.Valid(l) {
				break
			}
			line++
		}
		return name, "", fmt.Errorf("%s:%d: not UTF-8 text", name, line)
	}
	return name, string(data), nil
}

// fileFlag adds -f and -o.
func fileFlag(cmd *cobra.Command, file *string) {
	addOutputFlag(cmd)
	cmd.Flags().StringVarP(file, "file", "f", "", "configuration `file`, - for standard input")
	require(cmd, "file")
}

// require marks a flag of a command as required.
func require(cmd *cobra.Command, flag string) {
	if err := cmd.MarkFlagRequired(flag); err != nil {
		panic(err) // the command has no such flag
	}
}
