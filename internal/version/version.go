// Package version returns the version and commit of this binary.
package version

import (
	"cmp"
	"runtime/debug"
)

// String returns the version, and the commit with its time, as the Go toolchain wrote them into this binary:
// "v1.2.0 (commit 0123456789ab of 2026-11-22T07:00:00Z)". A binary that was built outside a clone of the
// repository, or with -buildvcs=false, has no commit.
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(devel)"
	}
	return of(info)
}

func of(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	out := cmp.Or(info.Main.Version, "(devel)")
	if commit := settings["vcs.revision"]; commit != "" {
		out += " (commit " + commit[:min(12, len(commit))] + " of " + settings["vcs.time"]
		if settings["vcs.modified"] == "true" {
			out += ", with changes"
		}
		out += ")"
	}
	return out
}
