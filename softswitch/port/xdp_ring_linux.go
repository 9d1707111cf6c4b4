package port

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// xdpRing is one of the four rings that an AF_XDP socket shares with the kernel. One side produces
// entries, the other consumes them. next is the index of this side; one goroutine owns it. Indices
// increase without bound and wrap at 2³².
//
// See Documentation/networking/af_xdp.rst in the Linux sources.
type xdpRing[T uint64 | unix.XDPDesc] struct {
	mem                []byte
	producer, consumer *uint32
	flags              *uint32
	entries            []T // their number is a power of two
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

// needsWakeup reports whether the kernel needs a system call to continue with the ring.
func (r *xdpRing[T]) needsWakeup() bool {
	return atomic.LoadUint32(r.flags)&unix.XDP_RING_NEED_WAKEUP != 0
}

// The switch produces the entries of fill and transmit rings. The caller must ensure that there is
// room.

func (r *xdpRing[T]) push(v T) {
	*r.at(r.next) = v
	r.next++
}

// publish passes the pushed entries to the kernel.
func (r *xdpRing[T]) publish() { atomic.StoreUint32(r.producer, r.next) }

// unpublished returns the number of entries that were pushed and not published. Only this side
// writes the producer index, so it needs no atomic load.
func (r *xdpRing[T]) unpublished() uint32 { return r.next - *r.producer }

// pending returns the number of published entries that the kernel has not consumed.
func (r *xdpRing[T]) pending() uint32 {
	return atomic.LoadUint32(r.producer) - atomic.LoadUint32(r.consumer)
}

// The kernel produces the entries of receive and completion rings.

// ready returns the number of entries that can be popped.
func (r *xdpRing[T]) ready() uint32 { return atomic.LoadUint32(r.producer) - r.next }

func (r *xdpRing[T]) pop() T {
	v := *r.at(r.next)
	r.next++
	return v
}

// done returns the places of the popped entries to the kernel.
func (r *xdpRing[T]) done() { atomic.StoreUint32(r.consumer, r.next) }
