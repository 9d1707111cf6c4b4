package service

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestListenUnix(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(path("file"), []byte("state"), 0o600); err != nil {
		t.Fatal(err)
	}
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path("stale")})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close()
	if err := os.Symlink(path("file"), path("link")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, want string }{
		{"new", ""},
		{"new", "another process listens there"},
		{"stale", ""},
		{"file", "want a path where nothing is, or a socket: there is -rw-------"},
		{"link", "want a path where nothing is, or a socket"},
		{".", "want a path where nothing is, or a socket: there is drwx"},
	} {
		l, err := ListenUnix(t.Context(), path(tt.name))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
		if err == nil {
			defer l.Close()
		}
	}
	if text, err := os.ReadFile(path("file")); string(text) != "state" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}
