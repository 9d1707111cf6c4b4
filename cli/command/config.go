package command

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/yamlnode"
)

// MaxConfig is the largest size of a configuration in bytes, the same as for the daemon's own file.
const MaxConfig = yamlnode.MaxText

// ReadConfig reads a configuration from a file, or from the input for "-". The controller checks it.
func ReadConfig(in io.Reader, name string) (file, text string, err error) {
	var data []byte
	if name == "-" {
		name = "stdin"
		data, err = io.ReadAll(io.LimitReader(in, MaxConfig+1))
	} else {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return name, "", err
	}
	if len(data) > MaxConfig {
		return name, "", fmt.Errorf("%s: %d bytes are too many: want at most %d", name, len(data), MaxConfig)
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

// Require marks a flag of a command as required.
func Require(cmd *cobra.Command, flag string) {
	if err := cmd.MarkFlagRequired(flag); err != nil {
		panic(err) // the command has no such flag
	}
}

// ParseConfig reads a fabric file with the sections of all features.
func ParseConfig(file, text string) (*config.Config, error) {
	return config.Parse(file, []byte(text), nil, controller.Sections()...)
}
