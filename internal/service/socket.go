package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
)

// ListenUnix listens on a Unix socket. It takes the place of a socket that a process left behind when it
// was killed. It fails when another process listens there, and when the path is anything but a socket,
// which stays as it is.
func ListenUnix(ctx context.Context, path string) (net.Listener, error) {
	if conn, err := net.Dial("unix", path); err == nil {
		_ = conn.Close()
		return nil, fmt.Errorf("%s: another process listens there", path)
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("%s: want a path where nothing is, or a socket: there is %v", path, info.Mode())
	default:
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}
