package port

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// busyBatch is the size of a batch from which on its reader sleeps for rest before it
	// waits to be woken. To wake the reader for every few frames would cost their sender more
	// than they cost the switch. Lone packets are not delayed.
	busyBatch = 16
	// rest is how long the reader sleeps; the kernel may add 50 µs (timer slack). NICs do the
	// same under the name of interrupt moderation.
	rest = 20 * time.Microsecond
	// errorPause is how long a reader waits before it reads again from a socket that reports
	// only an error, such as that its interface went down. The interface may come up again.
	errorPause = 50 * time.Millisecond
)

// read passes batches to deliver until ctx ends. fill moves frames from the socket into a batch and
// reports whether there were any. read calls failed after an error of the socket.
//
// It waits on the goroutine's own thread. Go's poller would keep the socket registered, so the
// kernel would notify the poller of every frame, although the reader waits only when it finds none.
func (p pool) read(ctx context.Context, fd int, fill func(*Batch) bool, failed func(), deliver func(*Batch)) error {
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	woken := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		_, _ = unix.Write(stop, binary.NativeEndian.AppendUint64(nil, 1))
		close(woken)
	})
	defer func() {
		if !cancel() {
			<-woken
		}
		_ = unix.Close(stop)
	}()
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(stop), Events: unix.POLLIN}}
	pause := unix.NsecToTimespec(rest.Nanoseconds())
	last := 0 // frames of the last batch
	for ctx.Err() == nil {
		b := p.get(ctx)
		if b == nil {
			return nil
		}
		for ctx.Err() == nil && !fill(b) {
			if last >= busyBatch {
				last = 0
				_ = unix.Nanosleep(&pause, nil)
				continue
			}
			switch _, err := unix.Poll(fds, -1); {
			case errors.Is(err, unix.EINTR):
			case err != nil:
				b.Release()
				return fmt.Errorf("waiting for frames: %w", err)
			case fds[0].Revents&^unix.POLLIN != 0:
				failed()
				_, _ = unix.Poll(fds[1:], int(errorPause.Milliseconds()))
			}
		}
		if last = len(b.Frames); last == 0 {
			b.Release()
		} else {
			deliver(b)
		}
	}
	return nil
}
