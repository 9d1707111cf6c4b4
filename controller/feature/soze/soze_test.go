package soze

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/units"
)

// on returns leaf1's environment with another target, and with further keys.
func on(t *testing.T, target, keys string, edit func(string) string) *feature.Env {
	env := testenv.New(t, "../../..", func(s string) string {
		s = strings.Replace(s, `address: "127.0.0.1:9551", target: embedded`, `address: "127.0.0.1:9551", target: `+target+keys, 1)
		if edit != nil {
			s = edit(s)
		}
		return s
	}, New(nil))
	if chip := env.Config.Switch("leaf1").Target.Chip(); chip != "" {
		return testenv.WithPipeline(env, testenv.Tofino(t, chip))
	}
	return env
}

const runtime = `, bf_runtime: "127.0.0.1:50052"`

func TestDesired(t *testing.T) {
	tests := []struct{ target, keys, want string }{
		{"embedded", "", "egress.maxqd.maxqd_scale default → set_scale(shift=3)"},
		{"bmv2", "", "egress.maxqd.maxqd_scale default → set_scale(shift=3)"},
		{"tofino", runtime, "egress.maxqd.maxqd_scale default → set_scale(shift=13)"},
		{"tofino2", runtime, "egress.maxqd.maxqd_scale default → set_scale(shift=13)"},
	}
	for _, tt := range tests {
		env := on(t, tt.target, tt.keys, nil)
		if got := testenv.Lines(t, New(nil), env, "leaf1"); !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%s: %v, want %s", tt.target, got, tt.want)
		}
	}
}

// TestFilter: packets are not stamped while a chip's filter is not set up, because its output is
// then undefined.
func TestFilter(t *testing.T) {
	_, err := New(nil).Desired(on(t, "tofino1", "", nil))
	var refused yamlnode.Fault
	if !errors.As(err, &refused) || refused.Field != "soze" || !strings.Contains(refused.Text, "switches[0].bf_runtime") {
		t.Errorf("a section soze without BF Runtime: %v", err)
	}
	env := on(t, "tofino1", "", func(s string) string {
		i, j := strings.Index(s, "\nsoze:"), strings.Index(s, "\nprioplus:")
		return s[:i] + s[j:]
	})
	if got := testenv.Lines(t, New(nil), env, "leaf1"); !slices.Equal(got, []string{"egress.maxqd.maxqd_scale default → disable_stamping()"}) {
		t.Errorf("without a section soze: %v", got)
	}
	var c trafficmanager.Config
	env = on(t, "tofino1", runtime, nil)
	if err := shape(env, &c); err != nil || c.Filters[delayFilter] != 20*units.Millisecond {
		t.Errorf("time constant %v at scale 2000, %v; want 20ms", c.Filters, err)
	}
}

// TestSection: the defaults, and the unit that they give.
func TestSection(t *testing.T) {
	s := FromConfig(on(t, "embedded", "", nil).Config)
	// scale·(p + k) = 80 ms = 80 000 µs; four times that in 16 bits needs units of 8 µs.
	if s.Shift != 3 || s.Unit() != 8*units.Microsecond {
		t.Errorf("shift = %d", s.Shift)
	}
	c, err := config.Parse("f", []byte("name: f\nswitches: [{name: s1, device_id: 0, address: 'h:1'}]\n"), nil, New(nil).Section)
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		P: 3 * units.Microsecond, K: 37 * units.Microsecond, Alpha: units.Gbps, Beta: 10 * units.Mbps, M: 0.2, UDPPort: 50151, AckDSCP: 48,
	}
	if got := FromConfig(c); got != want {
		t.Errorf("soze = %+v, want %+v", got, want)
	}
}

// TestHostParameters: hosts get the switches' values and the file's values, with times as the
// emulated fabric runs.
func TestHostParameters(t *testing.T) {
	var got []string
	for _, p := range hostParameters(on(t, "embedded", "", nil).Config) {
		got = append(got, p.Law+" "+p.Name+" "+p.Value)
	}
	want := []string{"soze p 6ms", "soze k 74ms", "soze alpha 50Mbps", "soze beta 500Kbps", "soze m 0.2", "soze maxqd-unit 8us", " udp-port 50151"}
	if !slices.Equal(got, want) {
		t.Errorf("parameters %q, want %q", got, want)
	}
}
