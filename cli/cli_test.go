package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/emulation"
	"github.com/headgate/headgate/internal/dial"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func root(run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	cmd := &cobra.Command{Use: "headgate", RunE: run}
	addServerFlags(cmd)
	addOutputFlag(cmd)
	return cmd
}

func TestMainWritesEachLineAndExits(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code int
		want string
	}{
		{nil, ExitOK, ""},
		{fmt.Errorf("plan: %w", errChanges), ExitChanges, ""},
		{emulation.ErrInvalid, ExitInvalid, "headgate: the run is invalid: see the top of its table\n"},
		{errors.New("one\ntwo \x1b[31m\n"), ExitError, "headgate: one\nheadgate: two ?[31m\n"},
		{&callError{"x:1", status.Error(codes.NotFound, "no such flow")}, ExitError, "headgate: no such flow\n"},
		{&callError{"x:1", status.Error(codes.Unimplemented, "unknown method")}, ExitError, "headgate: the server at x:1 is not a controller of this version: unknown method\n"},
		{&callError{"x:1", context.DeadlineExceeded}, ExitError, "headgate: context deadline exceeded\n"},
	} {
		cmd := root(func(*cobra.Command, []string) error { return tt.err })
		cmd.SetArgs(nil)
		var out bytes.Buffer
		if code := Main(cmd, &out); code != tt.code || out.String() != tt.want {
			t.Errorf("%v: code %d, %q; want %d, %q", tt.err, code, out.String(), tt.code, tt.want)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("HEADGATE_SERVER", "10.0.0.9:1")
	t.Setenv("HEADGATE_OUTPUT", "yaml")
	for _, tt := range []struct {
		args   []string
		server string
		format Format
	}{
		{nil, "10.0.0.9:1", YAML},
		{[]string{"--server", "10.0.0.8:2", "-o", "json"}, "10.0.0.8:2", JSON},
		{[]string{"--server", "unix:/run/x.sock"}, "unix:/run/x.sock", YAML},
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
		format Format
		print  string
		line   string
	}{
		{JSON, "{\n  \"application\": \"007\",\n  \"limit\": 1.5,\n  \"used\": 0\n}\n", `{"application":"007","limit":1.5,"used":0}` + "\n"},
		{YAML, "application: \"007\"\nlimit: 1.5\nused: 0\n", "---\napplication: \"007\"\nlimit: 1.5\nused: 0\n"},
		{Table, "a  b\n", `{"application":"007","limit":1.5,"used":0}` + "\n"},
	} {
		var out bytes.Buffer
		e := &env{Format: tt.format, Out: &out}
		if err := e.print(m, func(w io.Writer) { row(w, "a", "b") }); err != nil || out.String() != tt.print {
			t.Errorf("%s: print = %q, %v", tt.format, out.String(), err)
		}
		out.Reset()
		if err := e.line(m); err != nil || out.String() != tt.line {
			t.Errorf("%s: line = %q, %v", tt.format, out.String(), err)
		}
	}
}

func TestReadConfigRefuses(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"a: b\nc: \xff\n", "stdin:2: not UTF-8 text"},
		{strings.Repeat("#", maxConfig+1), "bytes are too many"},
	} {
		e := &env{In: strings.NewReader(tt.in)}
		if _, _, err := e.readConfig("-"); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error = %v, want %q", err, tt.want)
		}
	}
}

// samples is a stream of two budgets that then ends, or waits for the operator to leave.
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

// screenshot is a terminal that ends a command once it shows a text.
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
	e := &env{Format: Table, Terminal: true, In: strings.NewReader(""), Out: shot}
	seen := map[string]bool{}
	err := follow(ctx, e, &samples{ctx: ctx, hold: true}, follower[*pb.Budget]{
		record: func(b *pb.Budget) { seen[b.GetApplication()] = true },
		draw: func(w io.Writer) {
			if len(seen) == 2 { // of two pictures a terminal gets the difference
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
	err = follow(t.Context(), &env{Format: Table, Out: &out}, &samples{}, follower[*pb.Budget]{
		lines: func(b *pb.Budget) []string { return []string{b.GetApplication() + "\a"} },
	})
	if err != nil || out.String() != "app1?\napp2?\n" {
		t.Errorf("lines: %q, %v", out.String(), err)
	}
}

func TestScreen(t *testing.T) {
	s := &screen{picture: func() string { return "1234567890\n2\n3\n4\n5\n6\n" }}
	s.Update(tea.WindowSizeMsg{Width: 6, Height: 6})
	s.Update(tick{})
	if got, want := s.View().Content, "123456\n2\n3\n… 3 mo\n\nq to leave"; got != want {
		t.Errorf("view = %q, want %q", got, want)
	}
	if _, cmd := s.Update(tea.KeyPressMsg{Code: 'q', Text: "q"}); cmd == nil {
		t.Error("q does not leave")
	}
	if _, cmd := s.Update(tea.KeyPressMsg{Code: 'x', Text: "x"}); cmd != nil {
		t.Error("x does something")
	}
}

func TestAgo(t *testing.T) {
	e := &env{Now: func() time.Time { return time.Unix(1000, 0) }}
	if got := e.ago(nil); got != "" {
		t.Errorf("ago(nil) = %q", got)
	}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range NewRoot().Commands() {
		if seen[c.Name()] {
			t.Errorf("%s is there twice", c.Name())
		}
		seen[c.Name()] = true
		if c.Short == "" || !c.Runnable() && !c.HasSubCommands() {
			t.Errorf("%s: short text %q, runnable %v, subcommands %v", c.Name(), c.Short, c.Runnable(), c.HasSubCommands())
		}
	}
}

// TestCredentials: what a command calls with comes from flags, and else from the environment.
func TestCredentials(t *testing.T) {
	for name, value := range map[string]string{"TLS_CA": "ca", "TLS_CERT": "cert", "TLS_KEY": "key", "TOKEN_FILE": "token"} {
		t.Setenv("HEADGATE_"+name, value)
	}
	cmd := root(func(cmd *cobra.Command, _ []string) error {
		v, err := settings(cmd)
		if err != nil {
			return err
		}
		if got, want := credentials(v), (dial.Options{CA: "mine", Cert: "cert", Key: "key", TokenFile: "token"}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		return nil
	})
	cmd.SetArgs([]string{"--tls-ca", "mine"})
	if err := cmd.Execute(); err != nil {
		t.Error(err)
	}
}
