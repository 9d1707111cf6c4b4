package cnpgen

import (
	"hash/crc32"

	"github.com/headgate/headgate/packet"
)

// cnpTTL is enough for any fabric of leaves and spines, and what NICs use.
const cnpTTL = 64

// CNPBuilder makes the frames of notifications. Its owner uses it from one goroutine.
type CNPBuilder struct {
	// DSCP of the notifications, 0 to 63.
	DSCP uint8
	note packet.Notification
}

// Append appends the CNP that the flow's destination would send to its source about a queue pair of
// the source. Queue pair 0 means that none is known: the CNP is then for everything that the source
// sends to the destination, and NICs may ignore it. The Ethernet addresses are 0, because the
// pipeline that routes the frame sets them. Both addresses of the flow must be IPv4.
func (b *CNPBuilder) Append(dst []byte, flow FlowKey, qp uint32) []byte {
	src, to := flow.Src.As4(), flow.Dst.As4()
	b.note.FlowSrc, b.note.FlowDst, b.note.DSCP, b.note.TTL, b.note.DestQP = flow.Src, flow.Dst, b.DSCP, cnpTTL, qp
	// The source port is entropy for ECMP, in the dynamic range of RFC 6335.
	b.note.SrcPort = 0xc000 | uint16(crc32.ChecksumIEEE(append(src[:], to[:]...)))&0x3fff
	return b.note.Append(dst)
}
