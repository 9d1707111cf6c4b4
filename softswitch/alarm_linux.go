package softswitch

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// alarm wakes the goroutine that runs a switch at a set time. It uses a kernel timer
// (timerfd_create(2)), because Go's timers are up to a millisecond late on an idle machine. That
// is too late for a port that sends a frame every hundred microseconds.
type alarm struct {
	C    chan struct{} // receives a value when the alarm goes off
	file *os.File
	raw  syscall.RawConn
	done chan struct{}
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timer: %w", err)
	}
	a := &alarm{C: make(chan struct{}, 1), file: os.NewFile(uintptr(fd), "timerfd"), done: make(chan struct{})}
	if a.raw, err = a.file.SyscallConn(); err != nil {
		return nil, fmt.Errorf("timer: %w", err)
	}
	go a.run()
	return a, nil
}

func (a *alarm) run() {
	defer close(a.done)
	var expirations [8]byte
	for {
		if _, err := a.file.Read(expirations[:]); err != nil {
			return // closed
		}
		signal(a.C)
	}
}

// set makes the alarm go off after d. It replaces an earlier setting.
func (a *alarm) set(d time.Duration) {
	// A value of zero would disarm the timer.
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, 1)))}
	_ = a.raw.Control(func(fd uintptr) { _ = unix.TimerfdSettime(int(fd), 0, &spec, nil) })
}

func (a *alarm) close() {
	_ = a.file.Close()
	<-a.done
}
