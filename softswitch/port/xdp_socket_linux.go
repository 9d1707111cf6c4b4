package port

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// xdpIn and xdpOut are the numbers of received and sent frames that fit in their rings and in
	// the frame memory; powers of two. So no ring can overflow. Received frames must wait while
	// other processes have the processor, and xdpIn lasts for some 20 ms at 200 000 packets per
	// second. Sent frames wait only for the system call that sends them.
	xdpIn, xdpOut = 4096, 1024
	// xdpQueue is the only queue of an interface that the driver uses.
	xdpQueue = 0
)

// xdpSockets are the two AF_XDP sockets of an interface. They share the frame memory (UMEM): its
// first xdpIn chunks hold received frames, the others sent ones. Because sending has a socket of
// its own, it wakes no reader and takes none of the reader's locks.
type xdpSockets struct {
	rx, tx     int // file descriptors, -1 when closed
	umem       []byte
	chunk      int // size of a chunk in bytes
	fill       xdpRing[uint64]
	received   xdpRing[unix.XDPDesc]
	send       xdpRing[unix.XDPDesc]
	completion xdpRing[uint64]
	zeroCopy   bool // the NIC's driver uses the frame memory itself
}

// xdpChunk returns the size of a chunk for frames of an MTU. It is a power of two of at least 2048
// and at most a page. The kernel reserves the head of a chunk when it receives a frame.
func xdpChunk(mtu int) (int, error) {
	page := unix.Getpagesize()
	for size := 2048; size <= page; size *= 2 {
		if mtu+linkHeader+2*vlanTag+unix.XDP_PACKET_HEADROOM <= size {
			return size, nil
		}
	}
	return 0, fmt.Errorf("MTU %d: AF_XDP takes at most %d; lower it or use the AF_PACKET driver", mtu, page-unix.XDP_PACKET_HEADROOM-linkHeader-2*vlanTag)
}

// open makes the sockets, bound to queue 0 of the interface.
func (s *xdpSockets) open(ifi *net.Interface, flags uint16) error {
	var err error
	s.rx, s.tx = -1, -1
	if s.chunk, err = xdpChunk(ifi.MTU); err != nil {
		return err
	}
	for _, fd := range []*int{&s.rx, &s.tx} {
		*fd, err = unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		switch {
		case errors.Is(err, unix.EAFNOSUPPORT):
			return fmt.Errorf("this kernel has no AF_XDP (CONFIG_XDP_SOCKETS): %w", err)
		case err != nil:
			return fmt.Errorf("an AF_XDP socket needs root or CAP_NET_RAW: %w", err)
		}
	}
	if err := s.memory(); err != nil {
		return err
	}
	if err := s.rings(); err != nil {
		return err
	}
	return s.bind(ifi, flags)
}

// memory makes the frame memory and registers it with the socket that receives.
func (s *xdpSockets) memory() error {
	size := (xdpIn + xdpOut) * s.chunk
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("%d bytes of frame memory: %w", size, err)
	}
	s.umem = mem
	reg := unix.XDPUmemReg{Addr: uint64(uintptr(unsafe.Pointer(&mem[0]))), Len: uint64(size), Size: uint32(s.chunk)}
	if err := xdpSetsockopt(s.rx, unix.XDP_UMEM_REG, &reg); err != nil {
		return fmt.Errorf("%d bytes of frame memory (locked: see ulimit -l): %w", size, err)
	}
	return nil
}

func (s *xdpSockets) rings() error {
	in, out := uint32(xdpIn), uint32(xdpOut)
	for _, ring := range []struct {
		fd, option int
		frames     *uint32
	}{
		{s.rx, unix.XDP_UMEM_FILL_RING, &in}, {s.rx, unix.XDP_RX_RING, &in},
		{s.rx, unix.XDP_UMEM_COMPLETION_RING, &out}, {s.tx, unix.XDP_TX_RING, &out},
	} {
		if err := xdpSetsockopt(ring.fd, ring.option, ring.frames); err != nil {
			return fmt.Errorf("AF_XDP ring of %d frames: %w", *ring.frames, err)
		}
	}
	// Since Linux 6.17 a system call may send more than 32 frames.
	_ = xdpSetsockopt(s.tx, unix.XDP_MAX_TX_SKB_BUDGET, &out)
	setBuffer(s.tx, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, sendBuffer)
	var rx, tx unix.XDPMmapOffsets
	if err := errors.Join(xdpGetsockopt(s.rx, unix.XDP_MMAP_OFFSETS, &rx), xdpGetsockopt(s.tx, unix.XDP_MMAP_OFFSETS, &tx)); err != nil {
		return fmt.Errorf("AF_XDP ring offsets (Linux 5.4 or later): %w", err)
	}
	return errors.Join(
		s.fill.open(s.rx, unix.XDP_UMEM_PGOFF_FILL_RING, rx.Fr, xdpIn),
		s.completion.open(s.rx, unix.XDP_UMEM_PGOFF_COMPLETION_RING, rx.Cr, xdpOut),
		s.received.open(s.rx, unix.XDP_PGOFF_RX_RING, rx.Rx, xdpIn),
		s.send.open(s.tx, unix.XDP_PGOFF_TX_RING, tx.Tx, xdpOut),
	)
}

// bindPatience bounds the time for which open waits for a queue that is in use. The kernel frees a
// queue only some time after the sockets of an earlier run have closed; on a busy machine that
// takes over a second.
const bindPatience = 10 * time.Second

func (s *xdpSockets) bind(ifi *net.Interface, flags uint16) error {
	deadline := time.Now().Add(bindPatience)
	for {
		err := unix.Bind(s.rx, &unix.SockaddrXDP{Flags: flags | unix.XDP_USE_NEED_WAKEUP, Ifindex: uint32(ifi.Index), QueueID: xdpQueue})
		switch {
		case err == nil:
			shared := unix.SockaddrXDP{Flags: unix.XDP_SHARED_UMEM, Ifindex: uint32(ifi.Index), QueueID: xdpQueue, SharedUmemFD: uint32(s.rx)}
			if err := unix.Bind(s.tx, &shared); err != nil {
				return fmt.Errorf("bind to send: %w", err)
			}
			var options uint32 // struct xdp_options
			s.zeroCopy = xdpGetsockopt(s.rx, unix.XDP_OPTIONS, &options) == nil && options&unix.XDP_OPTIONS_ZEROCOPY != 0
			return nil
		case !errors.Is(err, unix.EBUSY):
			return fmt.Errorf("bind: %w", err)
		case time.Now().After(deadline):
			return fmt.Errorf("bind: another AF_XDP socket has queue %d: %w", xdpQueue, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// close closes the sockets first and then unmaps their rings and the frame memory.
func (s *xdpSockets) close() error {
	var err error
	for _, fd := range []*int{&s.tx, &s.rx} {
		if *fd >= 0 {
			err = errors.Join(err, unix.Close(*fd))
			*fd = -1
		}
	}
	err = errors.Join(err, s.fill.close(), s.completion.close(), s.received.close(), s.send.close())
	if s.umem != nil {
		mem := s.umem
		s.umem = nil
		err = errors.Join(err, unix.Munmap(mem))
	}
	return err
}

func xdpSetsockopt[T any](fd, option int, v *T) error {
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(option), uintptr(unsafe.Pointer(v)), unsafe.Sizeof(*v), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// xdpGetsockopt reads an option. It fails if the kernel's value is shorter than T, as in old
// kernels.
func xdpGetsockopt[T any](fd, option int, v *T) error {
	size := uint32(unsafe.Sizeof(*v))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(option), uintptr(unsafe.Pointer(v)), uintptr(unsafe.Pointer(&size)), 0)
	switch {
	case errno != 0:
		return errno
	case size != uint32(unsafe.Sizeof(*v)):
		return fmt.Errorf("%d bytes, want %d: %w", size, unsafe.Sizeof(*v), unix.EOPNOTSUPP)
	}
	return nil
}

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
