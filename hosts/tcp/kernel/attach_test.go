//go:build linux

package kernel

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// TestAttach: the next process adopts attached programs, replaces those with another configuration, and Detach
// removes them.
func TestAttach(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("loading eBPF needs root")
	}
	if err := Supported(); err != nil {
		t.Skip(err)
	}
	top := "/sys/fs/cgroup"
	var fs unix.Statfs_t
	if unix.Statfs(top, &fs) != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC {
		top += "/unified"
	}
	cgroup, err := os.MkdirTemp(top, "headgate-test-")
	if err != nil {
		t.Skipf("no cgroup v2: %v", err)
	}
	defer os.Remove(cgroup)
	c := Config{Name: fmt.Sprintf("t%d", os.Getpid()), Cgroups: []Cgroup{{Path: cgroup}}}
	start := time.Now()
	for _, adopted := range []bool{false, true} {
		k, err := Open(c)
		if err != nil {
			t.Fatal(err)
		}
		if k.Adopted != adopted {
			t.Errorf("adopted %v, want %v", k.Adopted, adopted)
		}
		if list, err := k.Flows(); err != nil || len(list) != 0 {
			t.Errorf("flows %v, %v", list, err)
		}
	}
	t.Logf("attached in %v", time.Since(start))
	for _, law := range laws { // one program per operation; otherwise another law's program would be taken
		spec, err := part(nil, law, func(s *ebpf.CollectionSpec) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		for name := range spec.Programs {
			if !strings.HasPrefix(law, name[:4]) && name[:4] != "law_" {
				t.Errorf("%s has program %s", law, name)
			}
		}
		spec.Close()
	}
	c.Cgroups[0].Class = 1
	if k, err := Open(c); err != nil || k.Adopted {
		t.Errorf("another configuration: %v", err)
	}
	if err := Detach(c.Name); err != nil {
		t.Error(err)
	}
	if Detach(c.Name) == nil {
		t.Error("detached twice")
	}
}
