//go:build linux

package kernel

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// netnsCookie returns the cookie of a network namespace. It locks its thread for good if it enters
// another namespace.
func netnsCookie(path string) (uint64, error) {
	if path != "" {
		runtime.LockOSThread()
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return 0, fmt.Errorf("network namespace %s: %w", path, err)
		}
		defer unix.Close(fd)
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			return 0, fmt.Errorf("network namespace %s: %w", path, err)
		}
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(s)
	return unix.GetsockoptUint64(s, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
}
