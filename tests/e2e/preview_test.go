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
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/emulation/network"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/agent/remote"
	"github.com/headgate/headgate/tests/race"
	"github.com/headgate/headgate/units"
)

// TestSilentHostIsPreviewed: three hosts report, and the fourth sends to one of them without a report. The preview
// includes its traffic, and says so in a line that begins with !.
func TestSilentHostIsPreviewed(t *testing.T) {
	cfg := pair(t, "")
	reporting := []string{"h1", "h2", "h3"}
	l := playFlows(t, cfg, reporting, map[string]string{"h2": "h3", "h4": "h1"})
	// Wait until the controller has h2's flow, and h4 has sent much.
	l.wait(func() string {
		seen, err := l.control.Hosts.ListFlows(l.ctx, &pb.ListFlowsRequest{})
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
		if err := l.f.Hosts["h4"].Do(l.ctx, func(a *agent.Agent, _ units.Time) { sent = a.Report()[0].Acked }); err != nil {
			return err.Error()
		}
		if sent < 100*units.KB {
			return "h4 has sent " + sent.String()
		}
		return ""
	})
	out := l.preview(cfg)
	for _, want := range []string{"\nrunning ", "\nunreported ", "\n! hosts that do not report are h4: the bytes to "} {
		if !strings.Contains(out, want) {
			t.Errorf("the preview has no %q", want)
		}
	}
}

// TestCountedHostsArePreviewed: no host reports, and the switches count by source and destination, wherever PACC's loop
// runs. The preview has each sending pair once, although three switches are on the way of one pair, and needs no guess.
func TestCountedHostsArePreviewed(t *testing.T) {
	for _, at := range []string{"controller", "switch"} {
		t.Run(at, func(t *testing.T) {
			cfg := pair(t, "pacc: {enabled: true, force: true, at: "+at+"}\n")
			l := playFlows(t, cfg, nil, map[string]string{"h2": "h3", "h4": "h1", "h3": "h4"})
			want := []string{"h2→h3 at leaf1", "h3→h4 at leaf2", "h4→h1 at leaf2"}
			l.wait(func() string {
				seen, err := l.control.Hosts.GetTraffic(l.ctx, &pb.GetTrafficRequest{})
				if err != nil {
					return err.Error()
				}
				var got []string
				for _, h := range seen.GetCounted() {
					for _, p := range h.GetPairs() {
						if p.GetRunningBytes() > 500_000 { // acknowledgements take long
							got = append(got, p.GetSrc()+"→"+p.GetDst()+" at "+h.GetSwitch())
						}
					}
				}
				slices.Sort(got)
				if !slices.Equal(got, want) {
					return "counted is " + strings.Join(got, ", ")
				}
				return ""
			})
			out := l.preview(cfg)
			for _, want := range []string{"\ncounted ", "\n! hosts that do not report are h1, h2, h3, h4: 3 pairs, "} {
				if !strings.Contains(out, want) {
					t.Errorf("the preview has no %q", want)
				}
			}
			if strings.Contains(out, "unreported") {
				t.Error("the preview guesses what is counted")
			}
		})
	}
}

// live is a running fabric with traffic.
type live struct {
	*testing.T
	ctx     context.Context
	f       *network.Fabric
	control *network.Control
}

// playFlows starts a fabric and endless flows between hosts. Only the hosts in reporting report. A tap sees, and may
// change, the frames on the wires.
func playFlows(t *testing.T, cfg *config.Config, reporting []string, flows map[string]string, tap ...func(wire int, frame []byte, now units.Time)) *live {
	t.Helper()
	race.SkipRealTime(t)
	l := &live{T: t}
	var err error
	o := network.Options{Log: slog.New(slog.DiscardHandler)}
	if len(tap) > 0 {
		o.Tap = tap[0]
	}
	if l.f, err = network.Build(cfg, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.f.Close)
	if err := l.f.Serve(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	group, ctx := errgroup.WithContext(ctx)
	l.ctx = ctx
	t.Cleanup(func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
	if l.control, err = l.f.Start(ctx, group); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.control.Conn.Close() })
	if err := l.control.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	for _, name := range reporting {
		group.Go(func() error {
			return network.IgnoreCancel(ctx, remote.Run(ctx, l.control.Hosts, remote.Options{Host: name, Do: remote.DoFrom(l.f.Hosts[name].Do), Interval: 250 * time.Millisecond}))
		})
	}
	for from, to := range flows {
		if err := l.f.Hosts[from].Do(ctx, func(a *agent.Agent, now units.Time) {
			if _, err := a.StartFlow(now, agent.FlowSpec{Dst: cfg.Host(to).IPv4}); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// wait waits until the preview no longer waits for data.
func (l *live) wait(what func() string) {
	l.Helper()
	if waiting, err := l.control.Poll(l.ctx, network.ReadyWithin, func([]*pb.SwitchStatus) string { return what() }); err != nil || waiting != "" {
		l.Fatalf("%s: %v", waiting, err)
	}
}

// preview returns the output of `headgate plan --preview` for the running configuration, once there is traffic to
// play. After a stall of the machine the last count is 0.
func (l *live) preview(cfg *config.Config) string {
	l.Helper()
	file := filepath.Join(l.TempDir(), "pair.yaml")
	if err := os.WriteFile(file, cfg.Source, 0o600); err != nil {
		l.Fatal(err)
	}
	var out bytes.Buffer
	l.wait(func() string {
		out.Reset()
		root := cli.NewRoot()
		root.SetArgs([]string{"plan", "-f", file, "--preview", "--seeds", "1", "--server", cfg.Controller.Listen})
		root.SetOut(&out)
		root.SetErr(io.Discard)
		if err := root.ExecuteContext(l.ctx); err != nil {
			return err.Error()
		}
		return ""
	})
	l.Log("\n" + out.String())
	return out.String()
}
