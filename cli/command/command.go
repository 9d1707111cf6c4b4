// Package command holds the common parts of the commands of an operator, a node and the lab: the flags that
// name a controller, the reading of files, the line that shows progress.
package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/viper"

	"github.com/headgate/headgate/api/client"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/yamlnode"
)

// OneOf adds subcommands to a command that does nothing itself. Without a subcommand it fails.
func OneOf(cmd *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(subcommands...)
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		var names []string
		for _, s := range subcommands {
			names = append(names, s.Name())
		}
		want := strings.Join(names, ", ")
		if len(args) > 0 {
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				want += ": did you mean " + strings.Join(near, " or ") + "?"
			}
			return fmt.Errorf("%s: %q is not allowed: want one of %s", cmd.Name(), args[0], want)
		}
		return fmt.Errorf("%s: nothing to do: want one of %s", cmd.Name(), want)
	}
	return cmd
}

// Matching returns the words that begin with typed, each once, in their order.
func Matching(words []string, typed string) (list []string) {
	for _, w := range words {
		if strings.HasPrefix(w, typed) && !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	return list
}

// CompleteFlag completes a flag of a command by words.
func CompleteFlag(cmd *cobra.Command, flag string, words ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the command has no such flag
	}
}

// Daemon is an annotation of commands that run until a signal ends them. They end well then.
const Daemon = "daemon"

// Interrupted is the error of a command that Ctrl-C ended. Its text says what that means for the command's
// results. It is a context.Canceled.
type Interrupted string

// Error implements error.
func (e Interrupted) Error() string { return "interrupted: " + string(e) }

// Is implements errors.Is.
func (Interrupted) Is(target error) bool { return target == context.Canceled }

// Clean replaces control characters in names and messages of others. They could control the terminal
// or break columns.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, s)
}

// DefaultServer is where `headgate run` answers, and a controller with TLS.
const DefaultServer = "127.0.0.1:9600"

// RootSocket is where a controller of root answers.
const RootSocket = "/run/headgate/headgate.sock"

// OwnSocket is where a controller of this user answers, empty for nowhere.
func OwnSocket() string {
	if os.Geteuid() == 0 {
		return RootSocket
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "headgate", "headgate.sock")
	}
	return ""
}

// AddServerFlags adds --server and the flags for TLS and tokens. Environment variables such as
// HEADGATE_SERVER and HEADGATE_TLS_CA set their defaults.
func AddServerFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.String("server", DefaultServer, "`host:port` or unix:PATH of the controller's API, or several host:port of a cluster with commas; also HEADGATE_SERVER. If neither is given, a controller's Unix socket on this machine is tried first")
	f.String("tls-ca", "", "`file` of PEM certificates that may sign the controller's; also HEADGATE_TLS_CA")
	f.String("tls-cert", "", "`file` with the caller's certificate; also HEADGATE_TLS_CERT")
	f.String("tls-key", "", "`file` with its key; also HEADGATE_TLS_KEY")
	f.String("token-file", "", "`file` with a bearer token, in place of a certificate; also HEADGATE_TOKEN_FILE")
	f.String("request-id", "", "`id` of the change, to repeat it after an unknown outcome (default: a new id)")
}

// Settings returns a command's flags and the variables of the environment.
func Settings(cmd *cobra.Command) (*viper.Viper, error) {
	v := viper.New()
	v.SetEnvPrefix("HEADGATE")
	v.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	v.AutomaticEnv()
	return v, v.BindPFlags(cmd.Flags())
}

// Credentials returns a command's credentials.
func Credentials(v *viper.Viper) client.Options {
	return client.Options{CA: v.GetString("tls-ca"), Cert: v.GetString("tls-cert"), Key: v.GetString("tls-key"), TokenFile: v.GetString("token-file")}
}

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
