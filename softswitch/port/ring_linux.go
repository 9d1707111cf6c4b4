package port

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rxRing is a receive ring shared with the kernel (TPACKET_V2), which saves a system call for each
// frame. Version 3 would need less memory, but it delays a lone frame until its block is full or a
// millisecond has passed.
//
// See Documentation/networking/packet_mmap.rst in the Linux sources.
type rxRing struct {
	mem       []byte
	frameSize int
	perBlock  int // frames
	blocks    int
	block     int // of the next frame
	next      int // in its block
}

const (
	// ringFrames is how many frames a ring has, unless ringBytes allows only fewer: enough
	// for several milliseconds of a busy port, and few enough for a core's cache.
	ringFrames = 2048
	ringBytes  = 8 << 20
	ringBlock  = 64 << 10
	// ringHeader is what the kernel puts before a frame: its header, a link-layer address
	// and room to align.
	ringHeader = 128
	// vlanTag and linkHeader are the sizes of a VLAN tag and an Ethernet header.
	vlanTag    = 4
	linkHeader = 14
)

// open makes the ring of a socket, with frames large enough for an interface's MTU.
func (r *rxRing) open(fd, mtu int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2); err != nil {
		return fmt.Errorf("packet ring version 2: %w", err)
	}
	size := frameSize(mtu)
	perBlock := ringBlock / size
	blocks := min((ringFrames+perBlock-1)/perBlock, ringBytes/ringBlock)
	bytes := blocks * ringBlock
	req := unix.TpacketReq{
		Block_size: ringBlock,
		Block_nr:   uint32(blocks),
		Frame_size: uint32(size),
		Frame_nr:   uint32(blocks * perBlock),
	}
	if err := unix.SetsockoptTpacketReq(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &req); err != nil {
		return fmt.Errorf("packet ring of %d bytes: %w", bytes, err)
	}
	mem, err := unix.Mmap(fd, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("mapping the packet ring: %w", err)
	}
	r.mem, r.frameSize, r.perBlock, r.blocks = mem, size, perBlock, blocks
	return nil
}

// frameSize is the room for a frame of an MTU in the ring: an odd number of cache lines, because frames
// whose heads are a power of two apart compete for the same few places of a cache.
func frameSize(mtu int) int {
	const line = 64
	lines := (mtu + linkHeader + 2*vlanTag + ringHeader + line - 1) / line
	return min(lines|1, ringBlock/line-1) * line
}

func (r *rxRing) close() error {
	if r.mem == nil {
		return nil
	}
	mem := r.mem
	r.mem = nil
	return unix.Munmap(mem)
}

// receive moves the next frame of the ring into b; false when there is none, or when b has no
// room for it.
func (r *rxRing) receive(b *Batch, port uint32, c *counters) bool {
	start := r.block*ringBlock + r.next*r.frameSize
	slot := r.mem[start : start+r.frameSize]
	h := (*unix.Tpacket2Hdr)(unsafe.Pointer(&slot[0]))
	status := atomic.LoadUint32(&h.Status) // the kernel sets it last
	if status&unix.TP_STATUS_USER == 0 {
		return false
	}
	length := int(h.Snaplen)
	address := (*unix.RawSockaddrLinklayer)(unsafe.Pointer(&slot[tpacketAlign(int(unsafe.Sizeof(*h)))]))
	switch {
	case address.Pkttype == unix.PACKET_OUTGOING:
	case h.Snaplen != h.Len:
		c.rxTruncated.Add(1)
	default:
		frame := slot[h.Mac : int(h.Mac)+length]
		tagged := status&unix.TP_STATUS_VLAN_VALID != 0 && length >= linkHeader
		if !tagged {
			if !b.Add(port, frame) {
				return false // the frame stays in the ring for the next batch
			}
			break
		}
		dst := b.reserve(port, length+vlanTag)
		if dst == nil {
			return false
		}
		tpid := h.Vlan_tpid
		if status&unix.TP_STATUS_VLAN_TPID_VALID == 0 {
			tpid = 0x8100 // IEEE 802.1Q C-tag
		}
		insertTag(dst, frame, tpid, h.Vlan_tci)
	}
	atomic.StoreUint32(&h.Status, unix.TP_STATUS_KERNEL)
	if r.next++; r.next == r.perBlock {
		r.next = 0
		if r.block++; r.block == r.blocks {
			r.block = 0
		}
	}
	return true
}

// insertTag copies frame to dst, which is longer by four bytes, and inserts a VLAN tag after the
// addresses. Linux removes tags before packet sockets see a frame.
func insertTag(dst, frame []byte, tpid, tci uint16) {
	copy(dst, frame[:12])
	dst[12], dst[13] = byte(tpid>>8), byte(tpid)
	dst[14], dst[15] = byte(tci>>8), byte(tci)
	copy(dst[16:], frame[12:])
}

func tpacketAlign(n int) int {
	return (n + unix.TPACKET_ALIGNMENT - 1) &^ (unix.TPACKET_ALIGNMENT - 1)
}
