package buffer

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/tables/log2"
	"github.com/headgate/headgate/units"
)

func lossless(t *testing.T, edits ...string) *config.Config {
	t.Helper()
	text, err := os.ReadFile("../../../examples/lossless.yaml")
	if err != nil {
		t.Fatal(err)
	}
	yaml := string(text)
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(yaml, edits[i]) {
			t.Fatalf("the example has no %q", edits[i])
		}
		yaml = strings.Replace(yaml, edits[i], edits[i+1], 1)
	}
	c, err := config.Parse("lossless.yaml", []byte(yaml), nil, New(nil).Section, qos.New(nil).Section)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLosslessExample(t *testing.T) {
	c := lossless(t)
	h, ports, on := Headroom(c, c.Switch("leaf2"))
	if !on || len(ports) != 4 || ports[0] != 1 || ports[3] != 4 {
		t.Fatalf("ports = %v, on %v", ports, on)
	}
	want := headroom.Config{
		Policy: headroom.DSH, Buffer: 16 * units.MB, Lossless: 1 << 3, MTU: 1500, Private: 3 * units.KB,
		Headroom: 81 * units.KB, Method: headroom.Standard, Cell: 1, SmallPackets: 100, Alpha: -3, ResumeGap: 3 * units.KB, PortResumeGap: 3 * units.KB, PortQueues: 1, Share: 800,
		DSH:         headroom.DSHConfig{Window: 10 * units.Second, Precision: log2.Default(), Entries: 64},
		SPFC:        headroom.SPFCConfig{K: 5, Period: 100 * units.Millisecond},
		LocalResume: true,
	}
	for range 4 {
		want.Ports = append(want.Ports, headroom.Port{Rate: 100 * units.Mbps, Delay: 2 * units.Millisecond, Response: 394 * headroom.Quantum})
	}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("headroom (-want +got):\n%s", diff)
	}
	if a := FromSwitch(c.Switch("leaf1")).Alpha; a != -4 {
		t.Errorf("leaf1 has α %v, want the fabric's 1/16", a)
	}
	if b := c.Section("buffer").(Config); b.Storm != 100 || b.StormWindow != time.Second || b.Stuck != 2*time.Second {
		t.Errorf("watchdog = %+v", b)
	}
}

// Every policy is valid with the example's keys.
func TestPolicies(t *testing.T) {
	for _, k := range headroom.Kinds() {
		edits := []string{"policy: dsh ", "policy: " + string(k) + " "}
		if k == headroom.Static {
			edits = append(edits, "# threshold", "threshold")
		}
		c := lossless(t, edits...)
		h, _, on := Headroom(c, c.Switch("leaf1"))
		if !on || h.Policy != k {
			t.Errorf("%s: %+v", k, h)
		}
		if _, err := headroom.New(h); err != nil {
			t.Errorf("%s: %v", k, err)
		}
	}
	c := lossless(t, "policy: dsh ", `policy: "off" `)
	if _, _, on := Headroom(c, c.Switch("leaf1")); on || c.Section("buffer").(Config).On() {
		t.Error("off is on")
	}
}

// TestHostParameters: hosts obey PAUSE for every class that is lossless at some port, and for all classes
// without a policy.
func TestHostParameters(t *testing.T) {
	if got := hostParameters(lossless(t)); len(got) != 1 || got[0].Name != "lossless" || got[0].Value != "3" {
		t.Errorf("%+v", got)
	}
	if got := hostParameters(lossless(t, "policy: dsh ", `policy: "off" `)); got != nil {
		t.Errorf("without a policy: %+v", got)
	}
}

// Defaults depend on the scale. A switch's section depends only on itself and on the fabric's
// section.
func TestBufferDefaults(t *testing.T) {
	text := `
name: f
scale: 2000
switches:
  - {name: s1, device_id: 1, address: "h:1", buffer: {policy: spfc, size: 1MB, lossless: [0]}}
  - {name: s2, device_id: 2, address: "h:2"}
buffer: {allow_class_change: true}
hosts: [{name: h1, ipv4: 10.0.0.1}]
links:
  - {a: "s1:1", b: h1, rate: 50Mbps, delay: 1us}
  - {a: "s1:2", b: "s2:1", rate: 50Mbps, delay: 1us}
`
	c, err := config.Parse("f", []byte(text), nil, New(nil).Section, qos.New(nil).Section)
	if err != nil {
		t.Fatal(err)
	}
	b := FromSwitch(c.Switch("s1"))
	if b.MTU != 1500 || b.PauseQuanta != 65535 || b.Share != 800 || b.K != 5 || b.Period != 100*units.Microsecond ||
		b.Storm != 50 || b.StormWindow != time.Second || b.Stuck != 4*time.Second || b.Window != 10*units.Millisecond {
		t.Errorf("buffer = %+v", b)
	}
	if FromSwitch(c.Switch("s2")).On() || c.Section("buffer").(Config).On() {
		t.Error("another switch has the policy")
	}
	c, err = config.Parse("f", []byte(strings.Replace(text, "scale: 2000", "scale: 1", 1)), nil, New(nil).Section, qos.New(nil).Section)
	if err != nil {
		t.Fatal(err)
	}
	b = FromSwitch(c.Switch("s1"))
	if c.Scaled(b.Period).Duration() != MinPeriod || b.Storm != 100_000 || b.Stuck != 200*time.Millisecond {
		t.Errorf("at line rate: %+v", b)
	}
}

// TestLosslessByPort: a port may have fewer lossless classes than its switch if no DSCP maps to the missing classes at
// that port.
func TestLosslessByPort(t *testing.T) {
	file := func(buffer, ports, qos string) string {
		return "name: f\nswitches:\n  - {name: s, device_id: 1, address: \"h:1\", target: embedded" + buffer + ", ports: [" + ports + "]}\n" +
			"hosts: [{name: h, ipv4: 10.0.0.1}, {name: i, ipv4: 10.0.0.2}]\nlinks: [{a: \"s:1\", b: h, rate: 1Gbps}, {a: \"s:2\", b: i, rate: 1Gbps}]\n" +
			"qos: {classes: [{dscp: 26, class: 3}, {dscp: 8, class: 1}]" + qos + "}\n"
	}
	const on = ", buffer: {policy: dt, size: 4MB, lossless: [3]}"
	for _, tt := range []struct{ buffer, ports, qos, want string }{
		{on, "{number: 2, lossless: [3]}", "", ""},
		{on, "{number: 2, lossless: []}", ", port_maps: [{switch: s, port: 2, dscp: 26, class: 1}]", ""},
		{on, "{number: 2, lossless: []}", "", "switches[0].ports[0].lossless: lacks class 3 on the switch \"s\", want it, or DSCP 26 of port 2 in a lossy class by qos.port_maps: " +
			"it comes in with that class, which is lossless on the switch"},
		{on, "{number: 2, lossless: []}", ", port_maps: [{switch: s, port: 1, dscp: 26, class: 1}]", "DSCP 26 of port 2 in a lossy class"},
		{on, "{number: 2, lossless: [1, 3]}", "", "switches[0].ports[0].lossless: has class 1 on the switch \"s\", want classes of the switch's buffer.lossless alone, class 3"},
		{on, "{number: 2, lossless: [8]}", "", "switches[0].ports[0].lossless[0]: is \"8\", want an integer from 0 to 7"},
		{on, "{number: 2, lossless: [3, 3]}", "", "switches[0].ports[0].lossless: has 3 twice"},
		{"", "{number: 2, lossless: []}", "", "switches[0].ports[0].lossless: is given without a buffer.policy on the switch \"s\", want it with a policy only: no class is lossless"},
	} {
		_, err := config.Parse("f", []byte(file(tt.buffer, tt.ports, tt.qos)), nil, New(nil).Section, qos.New(nil).Section)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s%s: %v, want %s", tt.ports, tt.qos, err, tt.want)
		}
	}
}

// TestObeyedByPort: the embedded switch learns which ports obey fewer classes than the switch.
func TestObeyedByPort(t *testing.T) {
	env := environment(t, `device_id: 1, address: "127.0.0.1:9551", target: embedded`, `device_id: 1, address: "127.0.0.1:9551", target: embedded, ports: [{number: 2, lossless: []}]`,
		"  classes:\n", "  port_maps: [{switch: leaf1, port: 2, dscp: 24, class: 0}]\n  classes:\n")
	list, err := New(nil).Desired(env)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if x := e.GetExternEntry(); x.GetExternId() == externs.ObeyedID {
			if got, err := externs.ReadObeyed(x); err != nil || !cmp.Equal(got, externs.Obeyed{2: 0}) {
				t.Errorf("the switch gets %v, %v", got, err)
			}
			return
		}
	}
	t.Error("the switch does not learn which classes port 2 obeys")
}
