// Package smalldisk gives tests a disk that can be full.
package smalldisk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Disk is a tmpfs for one test.
type Disk struct{ Dir string }

// New mounts a tmpfs of size bytes, which is unmounted when the test ends. It skips the test where mounts are not allowed.
func New(t testing.TB, size int) Disk {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("needs root and a tmpfs of its own: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return Disk{dir}
}

func (d Disk) filling() string { return filepath.Join(d.Dir, "filling") }

// Fill fills the disk.
func (d Disk) Fill(t testing.TB) {
	t.Helper()
	f, err := os.Create(d.filling())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// Free undoes Fill.
func (d Disk) Free(t testing.TB) {
	t.Helper()
	if err := os.Remove(d.filling()); err != nil {
		t.Fatal(err)
	}
}
