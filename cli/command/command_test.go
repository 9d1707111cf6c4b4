package command

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/api/client"
	"github.com/spf13/cobra"
)

func root(run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	cmd := &cobra.Command{Use: "headgate", RunE: run}
	AddServerFlags(cmd)
	return cmd
}

func TestReadConfigRefuses(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"a: b\nc: \xff\n", "stdin:2: not UTF-8 text"},
		{strings.Repeat("#", MaxConfig+1), "bytes are too many"},
	} {
		if _, _, err := ReadConfig(strings.NewReader(tt.in), "-"); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error = %v, want %q", err, tt.want)
		}
	}
}

// TestCredentials: flags give a command's credentials; without flags, the environment does.
func TestCredentials(t *testing.T) {
	for name, value := range map[string]string{"TLS_CA": "ca", "TLS_CERT": "cert", "TLS_KEY": "key", "TOKEN_FILE": "token"} {
		t.Setenv("HEADGATE_"+name, value)
	}
	cmd := root(func(cmd *cobra.Command, _ []string) error {
		v, err := Settings(cmd)
		if err != nil {
			return err
		}
		if got, want := Credentials(v), (client.Options{CA: "mine", Cert: "cert", Key: "key", TokenFile: "token"}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		return nil
	})
	cmd.SetArgs([]string{"--tls-ca", "mine"})
	if err := cmd.Execute(); err != nil {
		t.Error(err)
	}
}
