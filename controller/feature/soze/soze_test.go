package soze

import (
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller/internal/testenv"
)

func TestDesired(t *testing.T) {
	tests := []struct{ target, want string }{
		{"embedded", "egress.maxqd.maxqd_scale default → set_scale(shift=3)"},
		{"bmv2", "egress.maxqd.maxqd_scale default → set_scale(shift=3)"},
		{"tofino", "egress.maxqd.maxqd_scale default → set_scale(shift=13)"},
	}
	for _, tt := range tests {
		env := testenv.New(t, "../../..", func(s string) string { return strings.ReplaceAll(s, "target: embedded", "target: "+tt.target) })
		if got := testenv.Lines(t, New(nil), env, "leaf1"); !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%s: %v, want %s", tt.target, got, tt.want)
		}
	}
}
