package dataplane

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/headgate/headgate/p4src/ids"
)

// testMaxQDForeign sends packets without a shim to the shim's UDP port through a queue. Each leaves unchanged,
// whatever its content, and none is dropped.
func testMaxQDForeign(r *rig) {
	var frames [][]byte
	add := func(payload []byte) {
		f := newFrame(1, 2)
		f.udpChecksum, f.dstPort, f.payload = true, ids.UDPPortMaxQD, payload
		frames = append(frames, f.bytes(r.T))
	}
	// Of every length up to a shim with transport header, both as on a cable and without Ethernet's padding.
	ours := newFrame(1, 2).shim(ids.MaxQDVersion, false, 0).payload
	for n := range 20 {
		add(ours[:n])
	}
	for n := range 4 {
		f := frames[n]
		frames = append(frames, append(bytes.Clone(f), ours[:60-len(f)]...)) // a shim in the padding
	}
	// With one of the constant bits of our packets changed.
	for bit := range 16 * 8 {
		constant := bit < 4 || bit >= 5 && bit < 16 || bit >= 44 && bit < 64 || bit >= 66 && bit < 72 || bit >= 97 && bit < 104
		if b := bytes.Clone(ours); constant {
			b[bit/8] ^= 0x80 >> (bit % 8)
			add(b)
		}
	}
	add(binary.BigEndian.AppendUint32(nil, 0xfffffffe))
	for i, got := range burstWithShims(r, 2, frames).frames {
		if !bytes.Equal(got.data[34:], frames[i][34:]) {
			r.Errorf("frame %d changed from %x to %x", i, frames[i][34:], got.data[34:])
		}
	}
	for reason := range int64(ids.DropReasonCells) {
		if n := r.drops(reason); n != 0 {
			r.Errorf("%d frames were dropped: %s", n, fmt.Sprint(ids.DropReason(int(reason))))
		}
	}
	// Our packets are still stamped.
	last := burstWithShims(r, 2, repeat(r.T, newFrame(1, 2).shim(ids.MaxQDVersion, false, 0), 4, 1)).frames[3]
	if last.maxQD() == 0 {
		r.Errorf("a shim of ours is not stamped: %x", last.data)
	}
}
