package operator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/cli/command"
	"github.com/spf13/cobra"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func root(run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	cmd := &cobra.Command{Use: "headgate", RunE: run}
	command.AddServerFlags(cmd)
	command.AddOutputFlag(cmd)
	return cmd
}

func TestCallErrorNamesTheServer(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{status.Error(codes.NotFound, "no such flow"), "no such flow"},
		{status.Error(codes.Unimplemented, "unknown method"), "the server at x:1 is not a controller of this version: unknown method"},
		{status.Error(codes.Unavailable, "outcome unknown: x: dial tcp"), "outcome unknown: x: dial tcp (--request-id)"},
		{context.DeadlineExceeded, "context deadline exceeded"},
	} {
		if got := (&callError{"x:1", tt.err}).Error(); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("HEADGATE_SERVER", "10.0.0.9:1")
	t.Setenv("HEADGATE_OUTPUT", "yaml")
	for _, tt := range []struct {
		args   []string
		server string
		format command.Format
	}{
		{nil, "10.0.0.9:1", command.YAML},
		{[]string{"--server", "10.0.0.8:2", "-o", "json"}, "10.0.0.8:2", command.JSON},
		{[]string{"--server", "unix:/run/x.sock"}, "unix:/run/x.sock", command.YAML},
	} {
		cmd := root(func(cmd *cobra.Command, _ []string) error {
			e, err := newEnv(cmd)
			if err != nil {
				return err
			}
			defer e.conn.Close()
			if e.Server != tt.server || e.Format != tt.format || e.Terminal {
				t.Errorf("%v: env = %+v", tt.args, e)
			}
			return nil
		})
		cmd.SetArgs(append([]string{}, tt.args...))
		cmd.SetOut(io.Discard)
		if err := cmd.Execute(); err != nil {
			t.Error(err)
		}
	}
}

func TestServerMustBeHostAndPort(t *testing.T) {
	for _, s := range []string{"", "x", ":9600", "x:", "x:0", "x:70000", "x:y", "dns:///x", "unix:"} {
		cmd := root(func(cmd *cobra.Command, _ []string) error { _, err := newEnv(cmd); return err })
		cmd.SetArgs([]string{"--server", s})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "want host:port such as 127.0.0.1:9600") {
			t.Errorf("%q: error = %v", s, err)
		}
	}
}

func TestFormats(t *testing.T) {
	m := &pb.Budget{Application: "007", Limit: 1.5}
	for _, tt := range []struct {
		format command.Format
		print  string
		line   string
	}{
		{command.JSON, "{\n  \"application\": \"007\",\n  \"limit\": 1.5,\n  \"used\": 0\n}\n", `{"application":"007","limit":1.5,"used":0}` + "\n"},
		{command.YAML, "application: \"007\"\nlimit: 1.5\nused: 0\n", "---\napplication: \"007\"\nlimit: 1.5\nused: 0\n"},
		{command.Table, "a  b\n", `{"application":"007","limit":1.5,"used":0}` + "\n"},
	} {
		var out bytes.Buffer
		e := &env{Output: command.Output{Format: tt.format, Out: &out}}
		if err := e.print(m, func(w io.Writer) { row(w, "a", "b") }); err != nil || out.String() != tt.print {
			t.Errorf("%s: print = %q, %v", tt.format, out.String(), err)
		}
		out.Reset()
		if err := e.line(m); err != nil || out.String() != tt.line {
			t.Errorf("%s: line = %q, %v", tt.format, out.String(), err)
		}
	}
}

// samples is a stream of two budgets. It then ends, or stays until the operator leaves.
type samples struct {
	grpc.ClientStream
	ctx  context.Context
	sent int
	hold bool
}

func (s *samples) Recv() (*pb.Budget, error) {
	s.sent++
	switch {
	case s.sent <= 2:
		return &pb.Budget{Application: fmt.Sprint("app", s.sent)}, nil
	case s.hold:
		<-s.ctx.Done()
		return nil, status.FromContextError(s.ctx.Err()).Err()
	}
	return nil, io.EOF
}

// screenshot is a terminal that ends a command once it has shown a text.
type screenshot struct {
	bytes.Buffer
	want string
	end  func()
}

func (s *screenshot) Write(b []byte) (int, error) {
	n, err := s.Buffer.Write(b)
	if strings.Contains(s.String(), s.want) {
		s.end()
	}
	return n, err
}

func TestLiveTable(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	shot := &screenshot{want: "applications  2", end: cancel}
	e := &env{Output: command.Output{Format: command.Table, Out: shot}, Terminal: true, In: strings.NewReader("")}
	seen := map[string]bool{}
	err := follow(ctx, e, &samples{ctx: ctx, hold: true}, follower[*pb.Budget]{
		record: func(b *pb.Budget) { seen[b.GetApplication()] = true },
		draw: func(w io.Writer) {
			if len(seen) == 2 { // a terminal gets only the difference between two pictures
				row(w, "applications", len(seen))
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(shot.String(), shot.want) {
		t.Errorf("drawn: %q", shot)
	}
	var out bytes.Buffer
	err = follow(t.Context(), &env{Output: command.Output{Format: command.Table, Out: &out}}, &samples{}, follower[*pb.Budget]{
		lines: func(b *pb.Budget) []string { return []string{b.GetApplication() + "\a"} },
	})
	if err != nil || out.String() != "app1?\napp2?\n" {
		t.Errorf("lines: %q, %v", out.String(), err)
	}
}

func TestAgo(t *testing.T) {
	e := &env{Now: func() time.Time { return time.Unix(1000, 0) }}
	if got := e.ago(nil); got != "" {
		t.Errorf("ago(nil) = %q", got)
	}
}

// newRoot returns a command with this package's commands.
func newRoot() *cobra.Command {
	cmd := &cobra.Command{Use: "headgate"}
	command.AddServerFlags(cmd)
	cmd.AddCommand(Commands()...)
	return cmd
}
