package port

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// txBatch gathers frames that are sent by one system call (sendmmsg(2)).
type txBatch struct {
	frames []mmsghdr
	vecs   []unix.Iovec
	slab   []byte
}

// mmsghdr is struct mmsghdr of <sys/socket.h>.
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
	_   [(unsafe.Sizeof(uintptr(0)) - 4)]byte
}

func (t *txBatch) init() {
	t.frames = make([]mmsghdr, 0, batchFrames)
	t.vecs = make([]unix.Iovec, batchFrames)
	t.slab = make([]byte, 0, 2*batchBytes)
}

// add copies a frame into the batch. It returns false if the batch is full. A frame that is larger
// than an empty batch is cut.
func (t *txBatch) add(frame []byte) bool {
	if len(frame) == 0 {
		return true
	}
	if len(t.frames) == cap(t.frames) || len(t.slab)+len(frame) > cap(t.slab) && len(t.frames) > 0 {
		return false
	}
	start := len(t.slab)
	t.slab = append(t.slab, frame[:min(len(frame), cap(t.slab))]...)
	v := &t.vecs[len(t.frames)]
	v.Base = &t.slab[start]
	v.SetLen(len(t.slab) - start)
	m := mmsghdr{}
	m.hdr.Iov = v
	m.hdr.SetIovlen(1)
	t.frames = append(t.frames, m)
	return true
}

// flush sends the batch and returns how many frames the kernel refused.
func (t *txBatch) flush(fd int) (refused int) {
	left := t.frames
	for len(left) > 0 {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&left[0])), uintptr(len(left)), unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == unix.EINTR:
		case errno != 0:
			// The kernel refused the first remaining frame: too long, buffers full, or interface
			// down.
			refused++
			left = left[1:]
		default:
			left = left[n:]
		}
	}
	t.frames, t.slab = t.frames[:0], t.slab[:0]
	return refused
}
