package standalone

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	headgatev1 "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/units"
)

// immediately is a driver that calls functions at once.
type immediately struct{ a *agent.Agent }

func (d immediately) Do(_ context.Context, fn func(*agent.Agent, units.Time)) error {
	fn(d.a, units.Second)
	return nil
}

// attached is a host that was started with flags and has a controller.
func attached(t *testing.T, args ...string) (*Options, *fabric, *agent.Agent, *bytes.Buffer) {
	t.Helper()
	o, err := parse(t, append([]string{"--interface", "h1-eth0", "--ip", "10.0.1.1", "--flow", "dst=10.0.4.1,weight=2", "--controller", "unix:/s"}, args...)...)
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
	var log bytes.Buffer
	return o, newFabric(o, immediately{a}, slog.New(slog.NewTextHandler(&log, nil))), a, &log
}

// parameters are a law's parameters, in pairs of name and value.
func parameters(law string, pairs ...string) (list []*headgatev1.HostParameter) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, &headgatev1.HostParameter{Law: law, Name: pairs[i], Value: pairs[i+1]})
	}
	return list
}

var ofFabric = []string{"p", "12ms", "k", "160ms", "alpha", "10Mbps", "beta", "50Kbps", "m", "0.1", "maxqd-unit", "16us"}

func isKnown(f *fabric) bool {
	select {
	case <-f.known:
		return true
	default:
		return false
	}
}

// A host takes its fabric's parameters, keeps those given by flags, reports where they differ, and starts no
// flows before.
func TestAdopt(t *testing.T) {
	o, fab, a, log := attached(t, "--k", "74ms", "--m", "0.1")
	if isKnown(fab) {
		t.Error("flows start before the fabric's parameters are known")
	}
	list := append(parameters("soze", ofFabric...), parameters("prioplus", "base-rtt", "9ms")...)
	if err := fab.adopt(t.Context(), append(list, parameters("other", "interface", "x")...)); err != nil {
		t.Fatal(err)
	}
	want := soze.Params{
		P: 12 * ms, K: 74 * ms, Alpha: 10 * units.Mbps, Beta: 50 * units.Kbps, M: 0.1,
		MaxRate: o.Rate, MSS: o.MSS,
	}
	if o.Soze != want || a.Config().Unit.Time() != 16*units.Microsecond || o.BaseRTT != 0 || o.Interface != "h1-eth0" {
		t.Errorf("law %+v, want %+v; unit %v, base %v", o.Soze, want, a.Config().Unit.Time(), o.BaseRTT)
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "flag=--k given=74ms fabric=160ms") {
		t.Errorf("log %q", got)
	}
	if !isKnown(fab) || fab.err != nil {
		t.Errorf("flows do not start: %v", fab.err)
	}

	// Parameters that are applied later reach running flows.
	key, err := a.StartFlow(units.Second, o.Flows[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := a.SetWeight(units.Second, key, 3); err != nil {
		t.Fatal(err)
	}
	if err := fab.adopt(t.Context(), parameters("soze", "alpha", "5Mbps", "maxqd-unit", "32us")); err != nil {
		t.Fatal(err)
	}
	if r := a.Report()[0]; a.Config().Unit.Time() != 32*units.Microsecond || o.Soze.Alpha != 5*units.Mbps || r.Weight != 3 {
		t.Errorf("unit %v, alpha %v, report %+v", a.Config().Unit.Time(), o.Soze.Alpha, r)
	}
	// Unchanged parameters make no new laws, which would have to learn their paths again.
	o.Law = "none such"
	if err := fab.adopt(t.Context(), parameters("soze", "alpha", "5Mbps")); err != nil {
		t.Errorf("unchanged parameters make laws: %v", err)
	}
}

// Parameters that no law accepts give an error, and the flows do not start.
func TestAdoptRefuses(t *testing.T) {
	for want, list := range map[string][]*headgatev1.HostParameter{
		`the fabric's --p: "soon" is not a time`: parameters("soze", "p", "soon"),
		"beta":                                   parameters("soze", "alpha", "1Mbps", "beta", "2Mbps"),
		"unit":                                   parameters("soze", "maxqd-unit", "0s"),
	} {
		_, fab, _, _ := attached(t)
		if err := fab.adopt(t.Context(), list); err == nil || !strings.Contains(err.Error(), want) || fab.err == nil {
			t.Errorf("%v: %v, %v, want %q", list, err, fab.err, want)
		}
	}
	_, fab, _, _ := attached(t, "--law", "prioplus", "--priority", "2")
	if err := fab.adopt(t.Context(), parameters("soze", ofFabric...)); err == nil || !strings.Contains(err.Error(), "--base-rtt 0s") {
		t.Errorf("a fabric without virtual priorities: %v", err)
	}
}

// Flows wait for the parameters that they need from the controller, and for nothing else.
func TestAwaits(t *testing.T) {
	for _, tt := range []struct {
		args  string
		known bool
	}{
		{"", false},
		{"--p 6ms --k 74ms --alpha 20Mbps --beta 200Kbps --m 0.2 --maxqd-unit 8us", false},
		{"--p 6ms --k 74ms --alpha 20Mbps --beta 200Kbps --m 0.2 --maxqd-unit 8us --udp-port 4000", true},
		{"--law dcqcn", false},
		{"--law dcqcn --udp-port 50151", true},
		{"--law prioplus --priority 2", false},
		{"--law prioplus --priority 2 --base-rtt 9ms --udp-port 4000", true},
	} {
		_, fab, _, _ := attached(t, strings.Fields(tt.args)...)
		if isKnown(fab) != tt.known {
			t.Errorf("%q: known %v, want %v", tt.args, !tt.known, tt.known)
		}
	}
	o, fab, a, _ := attached(t, "--law", "prioplus", "--priority", "2")
	if err := fab.adopt(t.Context(), parameters("prioplus", "base-rtt", "9ms")); err != nil || o.BaseRTT != 9*ms {
		t.Fatalf("base %v, %v", o.BaseRTT, err)
	}
	spec, err := o.withChannel(o.Flows[0])
	if err == nil {
		_, err = a.StartFlow(0, spec)
	}
	if err != nil {
		t.Error(err)
	}
}

// The UDP port concerns every law. A host with flows keeps its port and reports the difference.
func TestAdoptPort(t *testing.T) {
	o, fab, a, log := attached(t, "--law", "dcqcn")
	if err := fab.adopt(t.Context(), parameters("", "udp-port", "4000")); err != nil {
		t.Fatal(err)
	}
	key, err := a.StartFlow(units.Second, o.Flows[0])
	if err != nil || key.DstPort != 4000 || log.Len() != 0 {
		t.Errorf("flow %v, %v; log %q", key, err, log)
	}
	if err := fab.adopt(t.Context(), parameters("", "udp-port", "4001")); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); o.UDPPort != 4000 || a.Config().ShimPort != 4000 || !strings.Contains(got, "until the process is restarted\" flows=4000 fabric=4001") {
		t.Errorf("port %d and %d, log %q", o.UDPPort, a.Config().ShimPort, got)
	}
	for port, want := range map[string]string{"4791": "UDP port 4791 with the maxQD shim: want 1 to 65535 but not 4791", "70000": "value out of range"} {
		_, fab, a, _ = attached(t)
		if err := fab.adopt(t.Context(), parameters("", "udp-port", port)); err == nil || !strings.Contains(err.Error(), want) || a.Config().ShimPort != 50151 {
			t.Errorf("port %s: %v, want %q", port, err, want)
		}
	}
	_, fab, a, log = attached(t, "--udp-port", "4000")
	if err := fab.adopt(t.Context(), parameters("", "udp-port", "4001")); err != nil || a.Config().ShimPort != 4000 || !strings.Contains(log.String(), "flag=--udp-port given=4000 fabric=4001") {
		t.Errorf("a flag against the fabric: %v, port %d, log %q", err, a.Config().ShimPort, log)
	}
}
