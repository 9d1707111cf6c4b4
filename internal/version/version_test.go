package version

import (
	"runtime/debug"
	"testing"
)

func TestOf(t *testing.T) {
	commit := []debug.BuildSetting{
		{Key: "-trimpath", Value: "true"}, {Key: "vcs", Value: "git"},
		{Key: "vcs.revision", Value: "b069c3002771888ea7b42ee43f062c101fb204a7"}, {Key: "vcs.time", Value: "2026-11-21T13:41:57Z"},
	}
	changed := append(commit[:4:4], debug.BuildSetting{Key: "vcs.modified", Value: "true"})
	for _, c := range []struct {
		module   string
		settings []debug.BuildSetting
		want     string
	}{
		{"", nil, "(devel)"},
		{"(devel)", nil, "(devel)"},
		{"v1.2.0", nil, "v1.2.0"},
		{"v1.2.0", commit, "v1.2.0 (commit b069c3002771 of 2026-11-21T13:41:57Z)"},
		{"(devel)", changed, "(devel) (commit b069c3002771 of 2026-11-21T13:41:57Z, with changes)"},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: c.module}, Settings: c.settings}
		if got := of(info); got != c.want {
			t.Errorf("%q %v: %q, want %q", c.module, c.settings, got, c.want)
		}
	}
}
