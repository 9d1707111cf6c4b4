package command

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/viper"

	"github.com/headgate/headgate/api/client"
)

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
	f.String("server", DefaultServer, "`host:port` or unix:PATH of the controller's API, or several host:port of a cluster with commas; also HEADGATE_SERVER. Where neither is given, a controller's Unix socket on this machine comes first")
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

// Credentials returns what a command authenticates with.
func Credentials(v *viper.Viper) client.Options {
	return client.Options{CA: v.GetString("tls-ca"), Cert: v.GetString("tls-cert"), Key: v.GetString("tls-key"), TokenFile: v.GetString("token-file")}
}
