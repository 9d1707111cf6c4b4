package port

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// LinkEvents reports when a network interface may have gone up or down, or may have gained or lost
// an address, a queueing discipline or an interface above it. It covers the network namespace of
// the thread that opened it.
type LinkEvents struct{ file *os.File }

// OpenLinkEvents subscribes to the kernel's events about interfaces (rtnetlink).
func OpenLinkEvents() (*LinkEvents, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("link events: %w", err)
	}
	const groups = unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR | unix.RTMGRP_TC
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		return nil, errors.Join(fmt.Errorf("link events: %w", err), unix.Close(fd))
	}
	return &LinkEvents{os.NewFile(uintptr(fd), "rtnetlink")}, nil
}

// Run calls changed after each change, and when the kernel reports that it lost events, until ctx
// ends. It does not say what has changed; ask Port.Up. It closes the events when it returns.
func (e *LinkEvents) Run(ctx context.Context, changed func()) error {
	cancel := context.AfterFunc(ctx, func() { _ = e.file.Close() })
	defer func() {
		if cancel() {
			_ = e.file.Close()
		}
	}()
	for message := make([]byte, 1<<16); ; {
		_, err := e.file.Read(message)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !errors.Is(err, unix.ENOBUFS):
			return fmt.Errorf("link events: %w", err)
		}
		changed()
	}
}
