package port

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// xdpRing is one of the four rings that an AF_XDP socket shares with the kernel: one side
// produces entries, the other consumes them. Ours is the index next; one goroutine owns it.
// The rings' indices run freely and wrap at 2³².
//
// See Documentation/networking/af_xdp.rst in the Linux sources.
type xdpRing[T uint64 | unix.XDPDesc] struct {
	mem                []byte
	producer, consumer *uint32
	flags              *uint32
	entries            []T // a power of two
	next               uint32
}

// open maps the ring of n entries that the kernel made for a socket.
func (r *xdpRing[T]) open(fd int, at int64, off unix.XDPRingOffset, n int) error {
	var entry T
	mem, err := unix.Mmap(fd, at, int(off.Desc)+n*int(unsafe.Sizeof(entry)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("mapping an AF_XDP ring: %w", err)
	}
	r.mem = mem
	r.producer = (*uint32)(unsafe.Pointer(&mem[off.Producer]))
	r.consumer = (*uint32)(unsafe.Pointer(&mem[off.Consumer]))
	r.flags = (*uint32)(unsafe.Pointer(&mem[off.Flags]))
	r.entries = unsafe.Slice((*T)(unsafe.Pointer(&mem[off.Desc])), n)
	return nil
}

func (r *xdpRing[T]) close() error {
	if r.mem == nil {
		return nil
	}
	mem := r.mem
	*r = xdpRing[T]{}
	return unix.Munmap(mem)
}

func (r *xdpRing[T]) at(i uint32) *T { return &r.entries[i&uint32(len(r.entries)-1)] }

// needsWakeup reports whether the kernel wants a system call to go on with the ring.
func (r *xdpRing[T]) needsWakeup() bool {
	return atomic.LoadUint32(r.flags)&unix.XDP_RING_NEED_WAKEUP != 0
}

// What we produce: fill and transmit rings. The caller sees to it that there is room.

func (r *xdpRing[T]) push(v T) {
	*r.at(r.next) = v
	r.next++
}

// publish gives what was pushed to the kernel.
func (r *xdpRing[T]) publish() { atomic.StoreUint32(r.producer, r.next) }

// unpublished is how many entries were pushed and not published. The producer index is
// ours to write, so no atomic load is needed.
func (r *xdpRing[T]) unpublished() uint32 { return r.next - *r.producer }

// pending is how many published entries the kernel has not taken.
func (r *xdpRing[T]) pending() uint32 { return *r.producer - atomic.LoadUint32(r.consumer) }

// What the kernel produces: receive and completion rings.

// ready is how many entries there are to take.
func (r *xdpRing[T]) ready() uint32 { return atomic.LoadUint32(r.producer) - r.next }

func (r *xdpRing[T]) pop() T {
	v := *r.at(r.next)
	r.next++
	return v
}

// done gives the places of what was popped back to the kernel.
func (r *xdpRing[T]) done() { atomic.StoreUint32(r.consumer, r.next) }
