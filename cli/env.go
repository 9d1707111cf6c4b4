package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
	"github.com/spf13/viper"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// DefaultServer is where a controller on this machine answers.
const DefaultServer = "127.0.0.1:9600"

// maxAnswer is the largest answer of the controller in bytes. A million flows fit.
const maxAnswer = 256 << 20

// Format is the format of results.
type Format string

// The formats.
const (
	Table Format = "table"
	JSON  Format = "json"
	YAML  Format = "yaml"
)

// addServerFlag adds --server to the root command. HEADGATE_SERVER sets its default.
func addServerFlag(root *cobra.Command) {
	root.PersistentFlags().String("server", DefaultServer, "`host:port` or unix:PATH of the controller's API; also HEADGATE_SERVER")
}

// addOutputFlag adds -o to a command and its subcommands.
func addOutputFlag(cmd *cobra.Command) {
	cmd.PersistentFlags().StringP("output", "o", string(Table), "`format` of the output: table, json or yaml; also HEADGATE_OUTPUT")
}

// env is the environment of an operator's command.
type env struct {
	Server   string
	Format   Format
	In       io.Reader
	Out      io.Writer
	Terminal bool // Out is a terminal, so it can show live tables
	Now      func() time.Time

	conn *grpc.ClientConn
}

// newEnv reads a command's flags and environment variables and prepares the connection. The first
// call connects.
func newEnv(cmd *cobra.Command) (*env, error) {
	v := viper.New()
	v.SetEnvPrefix("HEADGATE")
	v.AutomaticEnv()
	if err := v.BindPFlags(cmd.Flags()); err != nil {
		return nil, err
	}
	e := &env{Server: v.GetString("server"), Format: Format(v.GetString("output")), In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Now: time.Now}
	if f, ok := e.Out.(*os.File); ok {
		e.Terminal = term.IsTerminal(f.Fd())
	}
	switch e.Format {
	case Table, JSON, YAML:
	case "":
		e.Format = Table
	default:
		return nil, fmt.Errorf("--output: %q is not allowed: want table, json or yaml", e.Format)
	}
	path, socket := strings.CutPrefix(e.Server, "unix:")
	host, port, err := net.SplitHostPort(e.Server)
	if n, perr := strconv.ParseUint(port, 10, 16); path == "" || !socket && (err != nil || perr != nil || n == 0 || host == "") {
		return nil, fmt.Errorf("--server: %q is not allowed: want host:port such as %s, or unix:PATH", e.Server, DefaultServer)
	}
	e.conn, err = grpc.NewClient(e.Server,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: 5 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
	)
	if err != nil {
		return nil, fmt.Errorf("--server %q: %w", e.Server, err)
	}
	return e, nil
}

func (e *env) fabric() pb.FabricServiceClient { return pb.NewFabricServiceClient(e.conn) }
func (e *env) weight() pb.WeightServiceClient { return pb.NewWeightServiceClient(e.conn) }
func (e *env) channel() pb.PriorityServiceClient {
	return pb.NewPriorityServiceClient(e.conn)
}
func (e *env) host() pb.HostServiceClient { return pb.NewHostServiceClient(e.conn) }

// ask returns an operator's command that has no arguments.
func ask(use, short string, fn func(ctx context.Context, e *env) error) *cobra.Command {
	return askWith(use, short, cobra.NoArgs, func(ctx context.Context, e *env, _ []string) error { return fn(ctx, e) })
}

// askWith returns an operator's command. It makes the env, calls fn and adds the server's name to
// errors.
func askWith(use, short string, args cobra.PositionalArgs, fn func(ctx context.Context, e *env, args []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args, RunE: func(cmd *cobra.Command, args []string) error {
		e, err := newEnv(cmd)
		if err != nil {
			return err
		}
		defer e.conn.Close()
		if err := fn(cmd.Context(), e, args); err != nil {
			return &callError{server: e.Server, err: err}
		}
		return nil
	}}
}
