package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/pflag"

	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/units"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestGoldenFaults holds every message to testdata/faults.txtar.
func TestGoldenFaults(t *testing.T) {
	const name = "testdata/faults.txtar"
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	out := &txtar.Archive{Comment: archive.Comment}
	for _, f := range archive.Files {
		if base, ok := strings.CutSuffix(f.Name, ".err"); ok {
			want[base] = string(f.Data)
		}
	}
	for _, f := range archive.Files {
		base, ok := strings.CutSuffix(f.Name, ".yaml")
		if !ok {
			continue
		}
		t.Run(base, func(t *testing.T) {
			c, err := Parse(f.Name, f.Data)
			var faults *Error
			if !errors.As(err, &faults) || c != nil {
				t.Fatalf("Parse = %v, %v, want an *Error", c, err)
			}
			got := faults.Error() + "\n"
			out.Files = append(out.Files, f, txtar.File{Name: base + ".err", Data: []byte(got)})
			if diff := cmp.Diff(want[base], got); diff != "" && !*update {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
	if *update {
		if err := os.WriteFile(name, txtar.Format(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func example(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../../examples/leaf-spine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestExample(t *testing.T) {
	c, err := Parse("leaf-spine.yaml", example(t))
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
	// scale·(p + k) = 80 ms = 80 000 µs; four times that in 16 bits needs units of 8 µs.
	if c.Soze.Shift != 3 || c.Soze.Unit() != 8*units.Microsecond {
		t.Errorf("shift = %d", c.Soze.Shift)
	}
	if c.Switch("spine2").Port(1).QueueLimit != units.MB || c.Switch("spine2").Port(2) != (Port{Number: 2}) {
		t.Errorf("ports = %+v", c.Switch("spine2").Ports)
	}
}

// TestDefaults holds the defaults to what the types document.
func TestDefaults(t *testing.T) {
	c, err := Parse("f", []byte("name: f\nswitches: [{name: s1, device_id: 0, address: 'h:1'}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Controller{
		Listen: "127.0.0.1:9600", Metrics: "127.0.0.1:9601", ElectionID: 1,
		PollInterval: 100 * time.Millisecond, ProbeInterval: 500 * time.Millisecond, ProbeTimeout: 3 * time.Second,
		UnreachableAfter: 5 * time.Second, ResyncInterval: time.Minute,
	}
	if diff := cmp.Diff(want, c.Controller); diff != "" {
		t.Error(diff)
	}
	if s := c.Switches[0]; s.Target != BMv2 || s.CPUPort != 510 || s.PriorityQueues != 8 {
		t.Errorf("switch = %+v", s)
	}
	if c.Soze.AckDSCP != 48 || c.Soze.P != 3*units.Microsecond || c.Soze.K != 37*units.Microsecond || c.Soze.M != soze.DefaultM {
		t.Errorf("soze = %+v", c.Soze)
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
	o := Options{File: file, Flags: map[string]*pflag.Flag{"controller.metrics": flags.Lookup("metrics")}}
	c, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	if c.Controller.Listen != "127.0.0.1:8" || c.Controller.Metrics != "127.0.0.1:7" || c.Controller.PollInterval >= 0 {
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
	var faults *Error
	if !errors.As(err, &faults) || faults.List[0].Line == 0 {
		t.Errorf("error = %v, want a fault with its line", err)
	}
}

func FuzzParse(f *testing.F) {
	archive, err := txtar.ParseFile("testdata/faults.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range archive.Files {
		if strings.HasSuffix(file.Name, ".yaml") {
			f.Add(file.Data)
		}
	}
	for _, name := range []string{"leaf-spine", "lossless"} {
		text, err := os.ReadFile("../../examples/" + name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse("f.yaml", text)
		if err != nil {
			var faults *Error
			if !errors.As(err, &faults) || len(faults.List) == 0 || c != nil {
				t.Fatalf("Parse = %v, %v", c, err)
			}
			return
		}
		again, err := Parse("f.yaml", c.Source)
		if err != nil {
			t.Fatalf("parsed once, but then: %v", err)
		}
		if diff := cmp.Diff(c, again, cmp.AllowUnexported(Config{}), cmp.Comparer(func(a, b Host) bool { return a == b })); diff != "" {
			t.Fatal(diff)
		}
	})
}
