// Package cli is the operator's side of the command line: a client of the gRPC API and
// nothing more. The commands in cmd/headgate parse flags and call one function each here.
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

// maxAnswer bounds an answer of the controller, in bytes: a million flows fit.
const maxAnswer = 256 << 20

// Format is how results are written.
type Format string

// The formats.
const (
	Table Format = "table"
	JSON  Format = "json"
	YAML  Format = "yaml"
)

// AddServerFlag adds --server, which HEADGATE_SERVER sets too, to the root command.
func AddServerFlag(root *cobra.Command) {
	root.PersistentFlags().String("server", DefaultServer, "`host:port` of the controller's API; also HEADGATE_SERVER")
}

// AddOutputFlag adds -o to a command and its subcommands.
func AddOutputFlag(cmd *cobra.Command) {
	cmd.PersistentFlags().StringP("output", "o", string(Table), "`format` of the output: table, json or yaml; also HEADGATE_OUTPUT")
}

// Env is what an operator's command works with. Close it.
type Env struct {
	Server   string
	Format   Format
	In       io.Reader
	Out      io.Writer
	Terminal bool // Out is one: live tables are fine
	Now      func() time.Time

	conn *grpc.ClientConn
}

// NewEnv reads a command's flags and environment and prepares the connection, which is made
// with the first call.
func NewEnv(cmd *cobra.Command) (*Env, error) {
	v := viper.New()
	v.SetEnvPrefix("HEADGATE")
	v.AutomaticEnv()
	if err := v.BindPFlags(cmd.Flags()); err != nil {
		return nil, err
	}
	e := &Env{Server: v.GetString("server"), Format: Format(v.GetString("output")), In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Now: time.Now}
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
	host, port, err := net.SplitHostPort(e.Server)
	if n, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || n == 0 || host == "" {
		return nil, fmt.Errorf("--server: %q is not allowed: want host:port such as %s", e.Server, DefaultServer)
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

// Close ends the connection.
func (e *Env) Close() { _ = e.conn.Close() }

func (e *Env) fabric() pb.FabricServiceClient { return pb.NewFabricServiceClient(e.conn) }
func (e *Env) weight() pb.WeightServiceClient { return pb.NewWeightServiceClient(e.conn) }
func (e *Env) channel() pb.ChannelServiceClient {
	return pb.NewChannelServiceClient(e.conn)
}
func (e *Env) host() pb.HostServiceClient { return pb.NewHostServiceClient(e.conn) }

// Run is the body of an operator's command: it makes the Env, calls fn and names the server
// in what went wrong.
func Run(cmd *cobra.Command, fn func(ctx context.Context, e *Env) error) error {
	e, err := NewEnv(cmd)
	if err != nil {
		return err
	}
	defer e.Close()
	if err := fn(cmd.Context(), e); err != nil {
		return &callError{server: e.Server, err: err}
	}
	return nil
}

// OneOf is for a command that is only its subcommands: it refuses to do nothing.
func OneOf(cmd *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(subcommands...)
	var names []string
	for _, s := range subcommands {
		names = append(names, s.Name())
	}
	want := strings.Join(names, ", ")
	name := cmd.Name()
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("%s: %q is not allowed: want one of %s", name, args[0], want)
		}
		return fmt.Errorf("%s: nothing to do: want one of %s", name, want)
	}
	return cmd
}
