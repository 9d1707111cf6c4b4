package standalone

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
	"github.com/vishvananda/netlink"

	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

func parse(t *testing.T, args ...string) (*Options, error) {
	t.Helper()
	o := NewOptions()
	fs := pflag.NewFlagSet("host", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	o.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	return o, o.Check()
}

func TestFlags(t *testing.T) {
	o, err := parse(t, "--interface", "h1-eth0", "--name", "h1", "--ip", "10.0.1.1", "--gateway-mac", "02:00:00:00:01:01",
		"--rate", "50Mbps", "--flow", "dst=10.0.4.1,weight=2", "--flow", "dst=10.0.3.1,size=5MB,sport=50000,app=search",
		"--controller", "127.0.0.1:9600", "--law", "soze", "--p", "6ms", "--k", "74ms", "--m", "0.15", "--maxqd-unit", "2us", "--for", "20s", "--json", "out.json")
	if err != nil {
		t.Fatal(err)
	}
	want := []agent.FlowSpec{
		{Dst: netip.MustParseAddr("10.0.4.1"), Weight: 2},
		{Dst: netip.MustParseAddr("10.0.3.1"), Weight: 1, Size: 5 * units.MB, SrcPort: 50000, App: "search"},
	}
	if diff := cmp.Diff(want, o.Flows, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error(diff)
	}
	if o.Soze.Alpha != 50*units.Mbps || o.Soze.Beta != 500*units.Kbps || o.Soze.MaxRate != 50*units.Mbps || o.Soze.M != 0.15 || o.Unit != 2*units.Microsecond {
		t.Errorf("law %+v, unit %v", o.Soze, o.Unit)
	}
	if o.Gateway != (packet.MAC{2, 0, 0, 0, 1, 1}) || o.IP != netip.MustParseAddr("10.0.1.1") || o.For != 20*time.Second {
		t.Errorf("options %+v", o)
	}
	cfg, err := o.agentConfig()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agent.New(cfg, func([]byte) {}); err != nil {
		t.Error(err)
	}
}

// Without a controller, a host uses the unit that switches have by default with this p and k.
func TestDefaultUnit(t *testing.T) {
	for k, want := range map[string]units.Time{"74ms": 8, "400us": 1, "1s": 64} {
		o, err := parse(t, "--interface", "h1-eth0", "--ip", "10.0.1.1", "--flow", "dst=10.0.4.1", "--k", k)
		if err != nil || o.Unit != want*units.Microsecond {
			t.Errorf("k %s: unit %v, %v; want %d µs", k, o.Unit, err, want)
		}
	}
}

func TestFlagsRefuse(t *testing.T) {
	good := []string{"--interface", "h1-eth0", "--ip", "10.0.1.1", "--flow", "dst=10.0.4.1"}
	if _, err := parse(t, good...); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--interface="}, "--interface"},
		{[]string{"--ip", "fe80::1"}, "want an IPv4 address"},
		{[]string{"--gateway-mac", "02:00"}, "want a MAC address"},
		{[]string{"--rate", "20"}, "is not a rate"},
		{[]string{"--rate", "0bps"}, "--rate"},
		{[]string{"--listen-only"}, "exclude each other"},
		{[]string{"--law", "reno"}, `--law "reno": want aimd, d2tcp, dcqcn, dcqcn-ns3, dcqcn-ns3-paper, dcqcn-vendor, dctcp, ledbat, none, prioplus, prioplus-ledbat, prioplus-swift, soze, swift, theta-powertcp, timely or timely-ns3`},
		{[]string{"--cnp-gap", "11s"}, "--cnp-gap 11s: want 0s (none) to 10s"},
		{[]string{"--scale", "0.5"}, "--scale 0.5: want 1 to 1e6"},
		{[]string{"--pfc-class", "64=1"}, "want DSCP=CLASS with a DSCP of 0 to 63"},
		{[]string{"--pfc-class", "26=8"}, "want DSCP=CLASS with a class of 0 to 7"},
		{[]string{"--flow", "dst=10.0.4.1,dscp=64"}, `dscp "64": want 1 to 63`},
		{[]string{"--flow", "dst=10.0.4.1,priority=0"}, `priority "0": want 1 to 65536`},
		{[]string{"--flow", "dst=10.0.4.1,deadline=0s"}, `deadline "0s": want more than 0`},
		{[]string{"--m", "2.5"}, "m 2.5"},
		{[]string{"--p", "-6ms"}, "is not a time"},
		{[]string{"--p", "0s"}, "p 0s"},
		{[]string{"--beta", "1Gbps"}, "beta"},
		{[]string{"--mss", "9KB"}, "--mss 9KB"},
		{[]string{"--maxqd-unit", "0s"}, "--maxqd-unit"},
		{[]string{"--for", "3s"}, "--warm-up"},
		{[]string{"--data-dscp", "64"}, "--data-dscp 64"},
		{[]string{"--ack-dscp", "0"}, "--ack-dscp 0"},
		{[]string{"--interval", "0s"}, "--interval"},
		{[]string{"--flow", "weight=2"}, "dst is missing"},
		{[]string{"--flow", "dst=10.0.4.1,weight=NaN"}, "weight NaN"},
		{[]string{"--flow", "dst=10.0.4.1,weight=0"}, "weight 0"},
		{[]string{"--flow", "dst=10.0.4.1,weight=two"}, `weight "two"`},
		{[]string{"--flow", "dst=10.0.4.1,dst=10.0.4.2"}, "dst is given twice"},
		{[]string{"--flow", "dst=10.0.4.1,size=0B"}, "size"},
		{[]string{"--flow", "dst=10.0.4.1,sport=70000"}, "sport"},
		{[]string{"--flow", "dst=10.0.4.1,colour=red"}, `key "colour"`},
		{[]string{"--flow", "10.0.4.1"}, "want key=value"},
		{[]string{"--flow", "dst=h4"}, "want an IPv4 address"},
	} {
		_, err := parse(t, append(append([]string{}, good...), tt.args...)...)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: error %v, want one with %q", tt.args, err, tt.want)
		}
	}
	// All errors are reported together.
	_, err := parse(t, "--rate", "0bps", "--law", "x")
	for _, want := range []string{"--interface", "--flow", "--rate", "--law"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
}

func FuzzParseFlow(f *testing.F) {
	f.Add("dst=10.0.4.1,weight=2")
	f.Add("dst=10.0.4.1,size=5MB,sport=50000,app=search")
	f.Add(",=")
	f.Fuzz(func(t *testing.T, s string) {
		spec, err := ParseFlow(s)
		if err == nil && (!spec.Dst.Is4() || !(spec.Weight > 0) || math.IsInf(spec.Weight, 0) || spec.Size < 0) {
			t.Fatalf("%q became %+v", s, spec)
		}
	})
}

func TestMeter(t *testing.T) {
	key := agent.FlowKey{Src: netip.MustParseAddr("10.0.1.1"), Dst: netip.MustParseAddr("10.0.4.1"), SrcPort: 1, DstPort: 2}
	m := newMeter(2 * units.Second)
	for s := range 6 {
		// Slow for two seconds, then 1 MB a second; done after 5 s.
		r := agent.FlowReport{Key: key, Weight: 3, Started: units.Second, SenderStats: transport.SenderStats{
			Acked: units.Bytes(max(s-2, 0)) * units.MB, SRTT: 20 * units.Millisecond, MaxQD: units.Millisecond, Retransmits: 4,
		}}
		if s == 5 {
			r.Finished = 6 * units.Second
		}
		r.CNPs = uint64(s)
		st := agent.Stats{BytesDelivered: units.Bytes(s) * units.KB}
		st.PFC.Frames, st.PFC.Classes[3].Time, st.PFC.Classes[3].Until = 2, 5*units.Second, 7*units.Second
		m.add(units.Time(s+1)*units.Second, []agent.FlowReport{r}, st)
	}
	var line bytes.Buffer
	m.print(&line)
	for _, want := range []string{"5.0s", "10.0.4.1", "w=3", "8Mbps", "rtt=20ms", "maxqd=1ms", "retx=4", "cnps=5", "done", "received 8Kbps"} {
		if !strings.Contains(line.String(), want) {
			t.Errorf("line %q does not have %q", line.String(), want)
		}
	}
	s := m.summary(&Options{Name: "h1", IP: key.Src})
	if f := s.Flows[0]; f.GoodputBPS != 8e6 || f.MeasuredFor != 3 || f.AckedBytes != 3e6 || !f.Finished || f.Weight != 3 {
		t.Errorf("summary %+v", f)
	}
	if s.PFC.Frames != 2 || s.PFC.PausedMicros[3] != 4e6 || s.PFC.PausedMicros[0] != 0 {
		t.Errorf("PFC %+v, want class 3 paused for 4 of 5 s", s.PFC)
	}
	if s.Received.GoodputBPS != 8000 || s.Seconds != 5 {
		t.Errorf("summary %+v", s)
	}
}

// busy is an agent on a machine that never answers in time: every deadline expires.
type busy struct {
	a      *agent.Agent
	now    units.Time
	calls  int
	cancel func()
}

func (b *busy) Do(ctx context.Context, fn func(*agent.Agent, units.Time)) error {
	if _, deadline := ctx.Deadline(); deadline {
		return context.DeadlineExceeded
	}
	if b.calls++; b.calls > 5 {
		b.cancel()
		return ctx.Err()
	}
	b.now += units.Second
	fn(b.a, b.now)
	return nil
}

// A slow report ends nothing: the host continues and writes its summary.
func TestBusyMachine(t *testing.T) {
	o, err := parse(t, "--interface", "h1-eth0", "--ip", "10.0.1.1", "--flow", "dst=10.0.4.1", "--interval", "1ms", "--json", "-")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := o.agentConfig()
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(cfg, func([]byte) {})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	if err := watch(ctx, o, newFabric(o, &busy{a: a, cancel: cancel}, slog.New(slog.DiscardHandler)), &out); err != nil {
		t.Errorf("the host ended: %v", err)
	}
	if !strings.Contains(out.String(), "no report within 5s") || !strings.Contains(out.String(), `"flows"`) {
		t.Errorf("printed %s", out.String())
	}
}

// The watchdog is notified while the loop runs, and not when it is stuck.
func TestTurned(t *testing.T) {
	b := &busy{cancel: func() {}}
	if err := turned(t.Context(), b); err != nil || b.calls != 1 {
		t.Errorf("%d calls, %v", b.calls, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := turned(ctx, b); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an agent that never answers: %v", err)
	}
}

// Two host processes at the ends of a veth pair.
func TestRun(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make a veth pair and open packet sockets")
	}
	a, b := "hgstda", "hgstdb"
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: a}, PeerName: b}
	if err := netlink.LinkAdd(veth); err != nil {
		t.Skipf("cannot make a veth pair here: %v", err)
	}
	t.Cleanup(func() {
		if err := netlink.LinkDel(veth); err != nil {
			t.Error(err)
		}
	})
	macs := map[string]string{}
	for _, name := range []string{a, b} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := netlink.LinkSetUp(link); err != nil {
			t.Fatal(err)
		}
		macs[name] = link.Attrs().HardwareAddr.String()
	}
	file := filepath.Join(t.TempDir(), "out.json")
	sender, err := parse(t, "--interface", a, "--ip", "192.0.2.1", "--gateway-mac", macs[b], "--rate", "20Mbps",
		"--flow", "dst=192.0.2.2,weight=1", "--flow", "dst=192.0.2.2,weight=3", "--for", "1500ms", "--warm-up", "500ms", "--interval", "250ms", "--json", file)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := parse(t, "--interface", b, "--ip", "192.0.2.2", "--gateway-mac", macs[a], "--listen-only", "--json", "-")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var heard, lines bytes.Buffer
	log := slog.New(slog.DiscardHandler)
	wg.Go(func() {
		if err := Run(ctx, listener, &heard, log); err != nil {
			t.Error(err)
		}
	})
	if err := Run(ctx, sender, &lines, log); err != nil {
		t.Error(err)
	}
	cancel()
	wg.Wait()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var s Summary
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s%s", lines.String(), text)
	if len(s.Flows) != 2 || s.Flows[0].AckedBytes == 0 || s.Flows[1].GoodputBPS < 2*s.Flows[0].GoodputBPS || s.Flows[1].GoodputBPS > 4*s.Flows[0].GoodputBPS {
		t.Errorf("summary %+v", s)
	}
	if !strings.Contains(heard.String(), `"delivered_bytes"`) {
		t.Errorf("the listener wrote %s", heard.String())
	}
}
