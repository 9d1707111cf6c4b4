package port

import (
	"encoding/binary"
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
	perBlock  int // frames per block
	blocks    int
	block     int // block of the next frame
	next      int // index of the next frame in its block

	fd      int
	long    []byte   // buffer for a frame that exceeds a slot; nil until there is one
	cut     [][]byte // the frames of the last long frame
	parts   []byte   // bytes of these frames
	waiting [][]byte // frames of cut that are not in a batch yet
}

const (
	// ringFrames is the number of frames in a ring, unless ringBytes allows fewer. It is enough
	// for several milliseconds of a busy port, and small enough for a core's cache.
	ringFrames = 2048
	ringBytes  = 8 << 20
	ringBlock  = 64 << 10
	// ringHeader is the space in front of a frame: the kernel's header, a link-layer address and
	// padding.
	ringHeader = 128
	// vnetHeader is the size of struct virtio_net_hdr, which stands in front of a frame. Its second
	// byte says how the frame was merged, 0 if it was not (VIRTIO_NET_HDR_GSO_NONE). The fifth and
	// sixth byte hold the length of the merged segments.
	vnetHeader = 10
	// longest exceeds the largest frame of an interface without segmentation (GSO_MAX_SIZE, 64
	// KiB).
	longest = 128 << 10
	// longBuffer bounds the bytes of such frames that wait in the kernel.
	longBuffer = 8 << 20
)

// open makes the ring of a socket. Its slots fit frames of the interface's present MTU. Longer
// frames come through the socket's own queue: those of segmentation offload, and those of an MTU
// that was raised later.
func (r *rxRing) open(fd, mtu int) error {
	r.fd = fd
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_COPY_THRESH, 1); err != nil {
		return fmt.Errorf("frames longer than the packet ring's: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		return fmt.Errorf("how frames were merged (PACKET_VNET_HDR): %w", err)
	}
	setBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, longBuffer)
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
	start, err := unix.MmapPtr(fd, 0, nil, uintptr(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("mapping the packet ring: %w", err)
	}
	mem := unsafe.Slice((*byte)(start), bytes)
	r.mem, r.frameSize, r.perBlock, r.blocks = mem, size, perBlock, blocks
	return nil
}

// frameSize returns the size of a slot for frames of an MTU. It is an odd number of cache lines,
// because frames whose starts are a power of two apart compete for the same few places of a cache.
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
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem))) // unix.Munmap handles one ring at a time
}

// receive moves the next frame of the ring into b. It returns false if there is none or b has no
// room for it.
func (r *rxRing) receive(b *Batch, port uint32, c *counters) bool {
	if len(r.waiting) > 0 {
		if !b.Add(port, r.waiting[0]) {
			return false
		}
		r.waiting = r.waiting[1:]
		return true
	}
	start := r.block*ringBlock + r.next*r.frameSize
	slot := r.mem[start : start+r.frameSize]
	h := (*unix.Tpacket2Hdr)(unsafe.Pointer(&slot[0]))
	status := atomic.LoadUint32(&h.Status) // the kernel sets it last
	if status&unix.TP_STATUS_USER == 0 {
		return false
	}
	length := int(h.Snaplen)
	address := (*unix.RawSockaddrLinklayer)(unsafe.Pointer(&slot[tpacketAlign(int(unsafe.Sizeof(*h)))]))
	var whole []byte
	if status&unix.TP_STATUS_COPY != 0 {
		whole = r.takeLong()
	}
	switch {
	case address.Pkttype == unix.PACKET_OUTGOING:
	case h.Snaplen != h.Len:
		if int(h.Len) != len(whole)-vnetHeader || !r.divide(h, status, whole, c) {
			c.rxTruncated.Add(1)
		}
	case slot[int(h.Mac)-vnetHeader+1] != 0:
		if !r.divide(h, status, slot[int(h.Mac)-vnetHeader:int(h.Mac)+length], c) {
			c.rxTruncated.Add(1)
		}
	default:
		frame := slot[h.Mac : int(h.Mac)+length]
		tagged := status&unix.TP_STATUS_VLAN_VALID != 0 && length >= linkHeader
		if !tagged {
			if !b.Add(port, frame) {
				return false // the frame stays in the ring for the next batch
			}
			if status&unix.TP_STATUS_CSUMNOTREADY != 0 {
				finishChecksum(b.Frames[len(b.Frames)-1].Data, c)
			}
			break
		}
		dst := b.reserve(port, length+vlanTag)
		if dst == nil {
			return false
		}
		insertTag(dst, frame, tpid(h, status), h.Vlan_tci)
		if status&unix.TP_STATUS_CSUMNOTREADY != 0 {
			finishChecksum(dst, c)
		}
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

// tpid returns the tag protocol of a frame's VLAN tag.
func tpid(h *unix.Tpacket2Hdr, status uint32) uint16 {
	if status&unix.TP_STATUS_VLAN_TPID_VALID == 0 {
		return 0x8100 // IEEE 802.1Q C-tag
	}
	return h.Vlan_tpid
}

// takeLong returns the frame that exceeds its slot, with its virtio_net header in front. The bytes
// are valid until the next call. It returns nil if there is no such frame.
func (r *rxRing) takeLong() []byte {
	if r.long == nil {
		r.long = make([]byte, longest)
	}
	n, _, err := unix.Recvfrom(r.fd, r.long, unix.MSG_DONTWAIT)
	if err != nil {
		return nil
	}
	return r.long[:n]
}

// divide handles a frame that exceeds its slot, or that is merged. It cuts a merged frame into those
// that its sender merged. The frame has its virtio_net header in front.
// divide returns false if the frame must be dropped: it is merged, and neither TCP nor UDP.
func (r *rxRing) divide(h *unix.Tpacket2Hdr, status uint32, frame []byte, c *counters) bool {
	merged, size := frame[1], int(binary.NativeEndian.Uint16(frame[4:]))
	frame = frame[vnetHeader:]
	if status&unix.TP_STATUS_VLAN_VALID != 0 {
		tagged := make([]byte, len(frame)+vlanTag)
		insertTag(tagged, frame, tpid(h, status), h.Vlan_tci)
		frame = tagged
	}
	if merged == 0 { // not merged: the MTU was raised after the ring was made
		if status&unix.TP_STATUS_CSUMNOTREADY != 0 {
			finishChecksum(frame, c)
		}
		r.waiting = [][]byte{frame}
		return true
	}
	t, ok := transportOf(frame)
	if !ok {
		return false
	}
	r.cut, r.parts = t.split(r.cut[:0], r.parts[:0], frame, size)
	if r.waiting = r.cut; len(r.cut) == 0 {
		return false
	}
	c.rxSplit.Add(1)
	if t.protocol == protocolTCP && !longSegments.Load() {
		longSegments.Store(true)
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
