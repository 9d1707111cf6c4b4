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
	if a := Of(c.Switch("leaf1")).Alpha; a != -4 {
		t.Errorf("leaf1 has α %v, want the fabric's 1/16", a)
	}
	if b := c.Section("buffer").(Config); b.Storm != 100 || b.StormWindow != time.Second || b.Stuck != 2*time.Second {
		t.Errorf("watchdog = %+v", b)
	}
}

// Every policy of the example is valid with the keys that are there.
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

// Defaults depend on the scale, and a switch's section on nothing but itself and the fabric's.
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
	b := Of(c.Switch("s1"))
	if b.MTU != 1500 || b.PauseQuanta != 65535 || b.Share != 800 || b.K != 5 || b.Period != 100*units.Microsecond ||
		b.Storm != 50 || b.StormWindow != time.Second || b.Stuck != 4*time.Second || b.Window != 10*units.Millisecond {
		t.Errorf("buffer = %+v", b)
	}
	if Of(c.Switch("s2")).On() || c.Section("buffer").(Config).On() {
		t.Error("another switch has the policy")
	}
	c, err = config.Parse("f", []byte(strings.Replace(text, "scale: 2000", "scale: 1", 1)), nil, New(nil).Section, qos.New(nil).Section)
	if err != nil {
		t.Fatal(err)
	}
	b = Of(c.Switch("s1"))
	if c.Scaled(b.Period).Duration() != MinPeriod || b.Storm != 100_000 || b.Stuck != 200*time.Millisecond {
		t.Errorf("at line rate: %+v", b)
	}
}
