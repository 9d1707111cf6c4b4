package config

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/units"
)

func example(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../../examples/leaf-spine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	from, to := bytes.Index(text, []byte("\nsoze:")), bytes.Index(text, []byte("\napplications:")) // others' sections
	return append(text[:from:from], text[to:]...)
}

// marker is a section of the example. It records which parts were set when it was read.
var marker = Section{
	Key: "qos",
	Read: func(m *yamlnode.Map, c *Config) any {
		m.AllowUnknown()
		return len(c.Links)
	},
	Check: func(c *Config, d *yamlnode.Doc) {
		if c.Section("qos") == 0 {
			d.Fault("qos", "has no links")
		}
	},
}

// TestSection: a section is read after the rest of the file, and then checked. Without the
// section's reader its key is unknown.
func TestSection(t *testing.T) {
	if _, err := Parse("f", example(t), nil); err == nil || !strings.Contains(err.Error(), "qos: unknown key") {
		t.Errorf("without the section: %v", err)
	}
	const alone = "name: f\nswitches: [{name: s1, device_id: 0, address: 'h:1'}]\n"
	if _, err := Parse("f", []byte(alone), nil, marker); err == nil || err.Error() != "f: qos: has no links" {
		t.Errorf("check: %v", err)
	}
	if c, err := Parse("f", example(t), nil, marker); err != nil || c.Section("qos") != 16 || c.Section("pacc") != nil {
		t.Errorf("read: %v", err)
	}
}

func TestExample(t *testing.T) {
	c, err := Parse("leaf-spine.yaml", example(t), nil, marker)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Switches) != 6 || len(c.Hosts) != 8 || len(c.Links) != 16 {
		t.Errorf("%d switches, %d hosts, %d links", len(c.Switches), len(c.Hosts), len(c.Links))
	}
	if got := c.Scaled(c.Links[0].Delay); got != 2*units.Millisecond {
		t.Errorf("delay in this fabric = %v, want 2ms", got)
	}
	if c.Hosts[0].MAC != [6]byte{6, 0, 10, 0, 1, 1} {
		t.Errorf("MAC = %x", c.Hosts[0].MAC)
	}
	if c.Switch("spine2").Port(1).QueueLimit != units.MB || c.Switch("spine2").Port(2) != (Port{Number: 2}) {
		t.Errorf("ports = %+v", c.Switch("spine2").Ports)
	}
}

// TestDefaults compares the defaults with the documentation of the types.
func TestDefaults(t *testing.T) {
	c, err := Parse("f", []byte("name: f\nswitches: [{name: s1, device_id: 0, address: 'h:1'}]\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Controller{
		Listen: "127.0.0.1:9600", Metrics: "127.0.0.1:9601", ElectionID: 1,
		PollInterval: 100 * time.Millisecond, ProbeInterval: 300 * time.Millisecond, ProbeTimeout: 900 * time.Millisecond, FlapHold: time.Second, FlapHoldMax: time.Minute,
		UnreachableAfter: 5 * time.Second, ResyncInterval: time.Minute, Comparisons: 16,
	}
	if diff := cmp.Diff(want, c.Controller); diff != "" {
		t.Error(diff)
	}
	if s := c.Switches[0]; s.Target != BMv2 || s.CPUPort != 510 || s.PriorityQueues != 8 {
		t.Errorf("switch = %+v", s)
	}
}

func TestOverrides(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fabric.yaml")
	if err := os.WriteFile(file, example(t), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.String("metrics", "", "")
	if err := flags.Parse([]string{"--metrics", "127.0.0.1:7"}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HEADGATE_CONTROLLER_LISTEN", "127.0.0.1:8")
	t.Setenv("HEADGATE_CONTROLLER_METRICS", "127.0.0.1:9")
	t.Setenv("HEADGATE_CONTROLLER_POLL_INTERVAL", "off")
	o := Options{File: file, Flags: map[string]*pflag.Flag{"controller.metrics": flags.Lookup("metrics")}, Sections: []Section{marker}}
	c, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	if c.Controller.Listen != "127.0.0.1:8" || c.Controller.Metrics != "127.0.0.1:7" || c.Controller.PollInterval != 0 {
		t.Errorf("controller = %+v", c.Controller)
	}
	t.Setenv("HEADGATE_CONTROLLER_ELECTION_ID", "minus one")
	if _, err = Load(o); err == nil || !strings.Contains(err.Error(), `HEADGATE_CONTROLLER_ELECTION_ID: is "minus one"`) {
		t.Errorf("error = %v", err)
	}
}

func TestFind(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := Load(Options{}); err == nil {
		t.Fatal("no error without a file")
	}
	if err := os.WriteFile("fabric.yaml", []byte("name: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(Options{})
	var faults *yamlnode.Error
	if !errors.As(err, &faults) || faults.Faults[0].Line == 0 {
		t.Errorf("error = %v, want a fault with its line", err)
	}
}
