package e2e

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/cli"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/agent/remote"
	"github.com/headgate/headgate/scenario/inproc"
	"github.com/headgate/headgate/tests/race"
	"github.com/headgate/headgate/units"
)

// TestSilentHostIsPreviewed: three hosts report, the fourth sends to one of them without a word. The preview has its traffic
// beside what is reported, and says so in a line that begins with !.
func TestSilentHostIsPreviewed(t *testing.T) {
	race.SkipRealTime(t)
	cfg := pair(t)
	f, err := inproc.Build(cfg, inproc.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Serve(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	group, ctx := errgroup.WithContext(ctx)
	defer func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	}()
	control, err := f.Start(ctx, group)
	if err != nil {
		t.Fatal(err)
	}
	defer control.Conn.Close()
	if err := control.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	reporting := []string{"h1", "h2", "h3"}
	for _, name := range reporting {
		group.Go(func() error {
			return inproc.IgnoreCancel(ctx, remote.Run(ctx, control.Hosts, remote.Options{Host: name, Do: f.Hosts[name].Do, Interval: 250 * time.Millisecond}))
		})
	}
	for from, to := range map[string]string{"h2": "h3", "h4": "h1"} {
		if err := f.Hosts[from].Do(ctx, func(a *agent.Agent, now units.Time) {
			if _, err := a.StartFlow(now, agent.FlowSpec{Dst: cfg.Host(to).IPv4}); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	// Until the controller has seen h2's flow, and h4's has sent much.
	waiting, err := control.Poll(ctx, inproc.ReadyWithin, func([]*pb.SwitchStatus) string {
		seen, err := control.Hosts.ListFlows(ctx, &pb.ListFlowsRequest{})
		if err != nil {
			return err.Error()
		}
		for _, name := range reporting {
			i := slices.IndexFunc(seen.GetHosts(), func(r *pb.HostReport) bool { return r.GetHost() == name })
			if i < 0 || name == "h2" && (len(seen.GetHosts()[i].GetFlows()) == 0 || seen.GetHosts()[i].GetFlows()[0].GetRateBps() == 0) {
				return "no report of " + name
			}
		}
		sent := units.Bytes(0)
		if err := f.Hosts["h4"].Do(ctx, func(a *agent.Agent, _ units.Time) { sent = a.Report()[0].Acked }); err != nil {
			return err.Error()
		}
		if sent < 100*units.KB {
			return "h4 has sent " + sent.String()
		}
		return ""
	})
	if err != nil || waiting != "" {
		t.Fatalf("%s: %v", waiting, err)
	}

	file := filepath.Join(t.TempDir(), "pair.yaml")
	if err := os.WriteFile(file, cfg.Source, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	root := cli.NewRoot()
	root.SetArgs([]string{"plan", "-f", file, "--preview", "--seeds", "1", "--server", cfg.Controller.Listen})
	root.SetOut(&out)
	root.SetErr(io.Discard)
	if err := root.ExecuteContext(ctx); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
	for _, want := range []string{"\nrunning ", "\nunreported ", "\n! hosts that do not report are h4: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the preview has no %q", want)
		}
	}
}
