package port

import (
	"context"
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	// transmitAhead bounds the frames of a port that wait for the txWorker. If more wait, the
	// switch itself makes the kernel send them, so that no frame waits long, least of all a PAUSE
	// frame.
	transmitAhead = 2 * batchFrames
	// transmitLooks is the number of times that a txWorker looks for frames before it waits to be
	// woken, some 30 µs.
	transmitLooks = 1000
)

// txWorker makes the kernel send the frames of AF_XDP ports on a core of its own. On veth the
// sending system call does all the work up to the receiver, which takes longer than a P4 program.
// A reader uses a txWorker only while it cannot keep up; otherwise waking the worker would cost
// more than it saves.
type txWorker struct {
	busy   atomic.Bool // the reader's last batch was full
	parked atomic.Bool
	wake   chan struct{}
	ports  []*xdpPort
	tried  []uint32 // for each port, the producer index at the last attempt that left frames in the ring
}

// startTxWorker starts a txWorker for the AF_XDP ports among inputs. It runs until stop is called.
// t is nil if there is no core for it.
func startTxWorker(inputs []input) (t *txWorker, stop func()) {
	t = &txWorker{wake: make(chan struct{}, 1)}
	for _, in := range inputs {
		switch q := in.(type) {
		case *xdpPort:
			t.ports = append(t.ports, q)
		case *bestPort:
			if q.xdp != nil {
				t.ports = append(t.ports, q.xdp)
			}
		}
	}
	if len(t.ports) == 0 || runtime.GOMAXPROCS(0) == 1 {
		return nil, func() {}
	}
	t.tried = make([]uint32, len(t.ports))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		t.run(ctx)
		close(ended)
	}()
	for _, q := range t.ports {
		q.txWorker.Store(t)
	}
	return t, func() {
		for _, q := range t.ports {
			q.txWorker.Store(nil)
		}
		cancel()
		<-ended
	}
}

// takes reports whether the txWorker sends the frames that a port has published.
func (t *txWorker) takes(q *xdpPort) bool {
	if t == nil || !t.busy.Load() || q.sockets.send.pending() > transmitAhead {
		return false
	}
	if t.parked.CompareAndSwap(true, false) {
		t.wake <- struct{}{}
	}
	return true
}

func (t *txWorker) run(ctx context.Context) {
	for looks := 0; ctx.Err() == nil; looks++ {
		if t.send() {
			looks = 0
		}
		if looks < transmitLooks {
			continue
		}
		t.parked.Store(true)
		if t.send() && t.parked.CompareAndSwap(true, false) { // a port published frames before the worker was parked
			looks = 0
			continue
		}
		select {
		case <-t.wake:
			looks = 0
		case <-ctx.Done():
		}
	}
}

// send makes one system call for each port with published frames, and reports whether any port had
// new ones. Frames that the kernel leaves in a ring wait for the port's next Flush.
func (t *txWorker) send() bool {
	did := false
	for i, q := range t.ports {
		r := &q.sockets.send
		published := atomic.LoadUint32(r.producer)
		if published == t.tried[i] || r.pending() == 0 || !r.needsWakeup() {
			continue
		}
		did = true
		before := r.pending()
		if errno := q.submit(); refused(errno) {
			q.txErrors.Add(1)
		}
		if r.pending() >= before {
			t.tried[i] = published
		}
	}
	return did
}

// submit makes the kernel send the frames in the ring, or a part of them.
func (q *xdpPort) submit() unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(q.sockets.tx), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return errno
}

// refused reports whether an error of submit means that the kernel refused a frame. That frame is the last one that the
// kernel took.
func refused(errno unix.Errno) bool {
	switch errno {
	case 0, unix.EAGAIN, unix.EINTR, unix.ENETDOWN, unix.ENXIO:
		return false
	}
	return true
}
