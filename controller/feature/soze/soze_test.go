package soze

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/units"
)

// on returns the environment of leaf1 with another target, and more keys if any.
func on(t *testing.T, target, keys string, edit func(string) string) *feature.Env {
	env := testenv.New(t, "../../..", func(s string) string {
		s = strings.Replace(s, `address: "127.0.0.1:9551", target: embedded`, `address: "127.0.0.1:9551", target: `+target+keys, 1)
		if edit != nil {
			s = edit(s)
		}
		return s
	})
	if chip := env.Config.Switch("leaf1").Target.Chip(); chip != "" {
		return testenv.On(env, testenv.Tofino(t, chip))
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

// TestFilter: the output of a chip's filter that nobody has set up must not be stamped.
func TestFilter(t *testing.T) {
	_, err := New(nil).Desired(on(t, "tofino1", "", nil), "leaf1")
	var refused *feature.Refused
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
	if err := New(nil).(feature.Shaper).Shape(env, "leaf1", &c); err != nil || c.MaxQDSample != 20*units.Millisecond {
		t.Errorf("time constant %v at scale 2000, %v; want 20ms", c.MaxQDSample, err)
	}
}
