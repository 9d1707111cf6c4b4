package port

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/headgate/headgate/softswitch/stages"
)

const (
	// busyBatch is the batch size from which on the reader sleeps for rest before it waits for
	// more. Waking the reader for every few frames would cost their sender more than the frames
	// cost the switch. Lone packets are not delayed.
	busyBatch = 16
	// rest is the time for which the reader sleeps; the kernel may add 50 µs (timer slack). In
	// NICs this is called interrupt moderation.
	rest = 20 * time.Microsecond
	// errorPause is the time for which a reader ignores a socket that reports an error, for
	// example because its interface went down.
	errorPause = 50 * time.Millisecond
	// held is the longest time for which a reader that waits keeps its place among the goroutines that
	// run (GOMAXPROCS). It does so after lone frames that follow one another within that time. A reader
	// that gave up its place wakes the monitor thread of Go's runtime with each frame, and that thread
	// takes the core from the reader for some 20 µs.
	held = 10 * time.Millisecond
)

// input is an interface that a reader reads. The reader's goroutine calls its methods.
type input interface {
	// descriptors returns the sockets that become readable when frames arrive.
	descriptors() []int
	// fill moves frames into a batch until it is full, and reports whether there were any.
	fill(b *Batch) bool
	// failed is called after an error of a socket.
	failed()
}

// reader is the Source of one or several interfaces. It gathers the frames of all of them in one
// batch, so that one batch pays for the wake-up, for the switch's lock and for one system call per
// sending port.
type reader struct {
	inputs []input
	pool   pool
	first  int           // index of the input that is read first next time
	busy   time.Duration // after a frame, for how long the reader looks for more before it waits
	times  *stages.Times
}

// Measure makes the reader add the time that receiving takes to t. Call it before Run.
func (r *reader) Measure(t *stages.Times) { r.times = t }

func newReader(inputs ...input) *reader {
	return &reader{inputs: inputs, pool: newPool(batches, batchFrames, batchBytes)}
}

// Gather divides interfaces among n readers, at least one. Each reader is the Source of several
// interfaces. After a frame it looks for more for the time busy before it waits to be woken. Sources
// that are not network interfaces are returned unchanged.
func Gather(sources []Source, n int, busy time.Duration) []Source {
	var all []Source
	var inputs []input
	for _, s := range sources {
		if r, ok := s.(*reader); ok {
			inputs = append(inputs, r.inputs...)
		} else {
			all = append(all, s)
		}
	}
	for n = min(n, len(inputs)); n > 0; n-- {
		share := len(inputs) / n
		r := newReader(inputs[:share]...)
		r.busy = busy
		all = append(all, r)
		inputs = inputs[share:]
	}
	return all
}

// fill moves frames of all interfaces into a batch. If the batch gets full, it begins with another
// interface next time.
func (r *reader) fill(b *Batch) bool {
	if r.times == nil {
		return r.read(b)
	}
	begin := r.times.Now()
	some := r.read(b)
	if some {
		r.times.Add(stages.Receive, len(b.Frames), begin)
	}
	return some
}

func (r *reader) read(b *Batch) bool {
	n := len(r.inputs)
	for i := range n {
		r.inputs[(r.first+i)%n].fill(b)
	}
	r.first = (r.first + 1) % n
	return len(b.Frames) > 0
}

// Run passes batches to deliver until ctx ends.
//
// It waits on the goroutine's own thread. Go's poller would keep the sockets registered, and the
// kernel would then notify the poller of every frame, although the reader waits only if it finds
// no frame.
func (r *reader) Run(ctx context.Context, deliver func(*Batch)) error {
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
	w := newWaiter(stop, r.inputs)
	t, ended := startTxWorker(r.inputs)
	defer ended()
	pause := unix.NsecToTimespec(rest.Nanoseconds())
	cores := runtime.GOMAXPROCS(0)
	last := 0 // frames in the last batch
	var came time.Time
	soon := false // the last batch came within the time held after the one before
	for ctx.Err() == nil {
		b := r.pool.get(ctx)
		if b == nil {
			return nil
		}
		hold := soon && cores > 1
		for ctx.Err() == nil && !r.fill(b) {
			if last >= busyBatch {
				last = 0
				_ = unix.Nanosleep(&pause, nil)
				continue
			}
			if r.busy > 0 && time.Since(came) < r.busy {
				continue
			}
			if err := w.wait(hold); err != nil {
				b.Release()
				return err
			}
			hold = false
		}
		last = len(b.Frames)
		if t != nil {
			t.busy.Store(last == cap(b.Frames))
		}
		if last == 0 {
			b.Release()
		} else {
			deliver(b)
			soon = false
			if last < busyBatch || r.busy > 0 {
				now := time.Now()
				soon, came = last < busyBatch && now.Sub(came) < held, now
			}
		}
	}
	return nil
}

type waiter struct {
	fds   []unix.PollFd // the first one is readable when the reader must stop
	of    []input       // the input of each of fds but the first
	muted time.Time     // when the first of the muted sockets was muted; zero for none
}

func newWaiter(stop int, inputs []input) *waiter {
	w := &waiter{fds: []unix.PollFd{{Fd: int32(stop), Events: unix.POLLIN}}}
	for _, in := range inputs {
		for _, fd := range in.descriptors() {
			w.fds = append(w.fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
			w.of = append(w.of, in)
		}
	}
	return w
}

// wait waits until a socket is readable. If hold is set, it waits for the time held at most. It mutes
// a socket that reports an error for errorPause, so that the socket does not wake the reader over and
// over. The interface may come up again.
func (w *waiter) wait(hold bool) error {
	timeout := -1
	if !w.muted.IsZero() {
		timeout = int(max(0, time.Until(w.muted.Add(errorPause)).Milliseconds()))
	}
	poll := unix.Poll
	if hold && timeout < 0 {
		poll, timeout = pollHeld, int(held.Milliseconds())
	}
	n, err := poll(w.fds, timeout)
	switch {
	case errors.Is(err, unix.EINTR):
		return nil
	case err != nil:
		return fmt.Errorf("waiting for frames: %w", err)
	case n == 0 || timeout == 0:
		w.muted = time.Time{}
		for i := range w.fds {
			if f := &w.fds[i]; f.Fd < 0 {
				f.Fd = ^f.Fd
			}
		}
	}
	for i := range w.of {
		if f := &w.fds[i+1]; f.Fd >= 0 && f.Revents&^unix.POLLIN != 0 {
			w.of[i].failed()
			if f.Fd = ^f.Fd; w.muted.IsZero() { // poll(2) ignores negative ones
				w.muted = time.Now()
			}
		}
	}
	return nil
}

// pollHeld does what unix.Poll does, but the goroutine counts as running. A signal of Go's runtime, which
// stops goroutines by it, ends the call with EINTR.
func pollHeld(fds []unix.PollFd, milliseconds int) (int, error) {
	timeout := unix.NsecToTimespec(int64(milliseconds) * 1e6)
	n, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)), uintptr(unsafe.Pointer(&timeout)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
