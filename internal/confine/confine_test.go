package confine

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestRead(t *testing.T) {
	top := t.TempDir()
	in, out := filepath.Join(top, "in"), filepath.Join(top, "out")
	for _, dir := range []string{in, out} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte(filepath.Base(dir)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"near": "file", "far": "../out/file", "root": filepath.Join(out, "file"), "zero": "/dev/zero"} {
		if err := os.Symlink(to, filepath.Join(in, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../out", filepath.Join(in, "folder")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(in, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(in, "large"), make([]byte, 101), 0o600); err != nil {
		t.Fatal(err)
	}
	dirs, err := New(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dirs       Dirs
		name, want string // the content, or after ! a part of the error
	}{
		{dirs, "file", "in"},
		{dirs, filepath.Join(in, "file"), "in"},
		{dirs, "near", "in"},
		{dirs, "../out/file", "!is not in " + in},
		{dirs, filepath.Join(out, "file"), "!is not in " + in},
		{dirs, in + "/../out/file", "!is not in " + in},
		{dirs, "/etc/passwd", "!is not in " + in},
		{dirs, "far", "!escapes"},
		{dirs, "root", "!escapes"},
		{dirs, "zero", "!escapes"},
		{dirs, "folder/file", "!escapes"},
		{dirs, "pipe", "!no regular file"},
		{dirs, ".", "!no regular file"},
		{dirs, "large", "!has 101 bytes, at most 100"},
		{dirs, "nothing", "!no such file"},
		{Dirs{out, in}, "near", "in"},
		{nil, filepath.Join(out, "file"), "out"},
		{nil, "/dev/zero", "!no regular file"},
	} {
		text, _, err := c.dirs.Read(c.name, 100)
		if part, refused := strings.CutPrefix(c.want, "!"); refused {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%v reads %s: %q, %v, want an error with %q", c.dirs, c.name, text, err, part)
			}
		} else if err != nil || string(text) != c.want {
			t.Errorf("%v reads %s: %q, %v, want %q", c.dirs, c.name, text, err, c.want)
		}
	}
}
