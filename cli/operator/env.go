// Package operator has an operator's commands. Most consist of a verb and a noun, and are only clients
// of the gRPC API.
package operator

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
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/headgate/headgate/api/client"
	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/cli/command"
)

// defaultServer is the first address of this machine where a controller answers.
func defaultServer() string {
	for _, socket := range []string{command.OwnSocket(), command.RootSocket} {
		if conn, err := net.Dial("unix", socket); err == nil {
			_ = conn.Close()
			return "unix:" + socket
		}
	}
	return command.DefaultServer
}

type env struct {
	Server string
	Named  bool // Server was named by a flag or the environment
	command.Output
	In       io.Reader
	Terminal bool // Out is a terminal, so it can show live tables
	Now      func() time.Time

	conn *grpc.ClientConn
}

// newEnv reads a command's flags and environment variables and prepares the connection. The first
// call connects.
func newEnv(cmd *cobra.Command) (*env, error) {
	v, err := command.Settings(cmd)
	if err != nil {
		return nil, err
	}
	e := &env{Server: v.GetString("server"), In: cmd.InOrStdin(), Now: time.Now}
	if e.Output, err = command.OutputOf(cmd); err != nil {
		return nil, err
	}
	if f, ok := e.Out.(*os.File); ok {
		e.Terminal = term.IsTerminal(f.Fd())
	}
	_, e.Named = os.LookupEnv("HEADGATE_SERVER")
	if e.Named = e.Named || cmd.Flags().Changed("server"); !e.Named {
		e.Server = defaultServer()
	}
	if path, socket := strings.CutPrefix(e.Server, "unix:"); !socket || path == "" {
		for _, address := range strings.Split(e.Server, ",") {
			host, port, err := net.SplitHostPort(address)
			if n, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || n == 0 || host == "" || host == "unix" {
				return nil, fmt.Errorf("--server: %q is not allowed: want host:port such as %s, several of them with commas, or unix:PATH", address, command.DefaultServer)
			}
		}
	}
	e.conn, err = client.Dial(e.Server, command.Credentials(v), grpc.WithChainUnaryInterceptor(requestID(v.GetString("request-id"))))
	if err != nil {
		return nil, err
	}
	return e, nil
}

// requestID names changes that were asked for before; an empty id names none.
func requestID(id string) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if id != "" && pb.Changes(method) {
			ctx = metadata.AppendToOutgoingContext(ctx, pb.RequestIDKey, id)
		}
		return invoke(ctx, method, in, out, conn, opts...)
	}
}

func (e *env) fabric() pb.FabricServiceClient { return pb.NewFabricServiceClient(e.conn) }
func (e *env) weight() pb.WeightServiceClient { return pb.NewWeightServiceClient(e.conn) }
func (e *env) priority() pb.PriorityServiceClient {
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

// Commands returns the commands of this package.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		newStateCommand(), newAuditCommand(), newExplainCommand(), newDoctorCommand(), newPlanCommand(), newApplyCommand(),
		newConfirmCommand(), newHistoryCommand(), newRollbackCommand(), newGetCommand(), newWatchCommand(), newSetCommand(),
		newDeleteCommand(), newReplaceCommand(), newVersionCommand(),
	}
}

func fileFlag(cmd *cobra.Command, file *string) {
	command.AddOutputFlag(cmd)
	cmd.Flags().StringVarP(file, "file", "f", "", "configuration `file`, - for standard input")
	command.Require(cmd, "file")
}
