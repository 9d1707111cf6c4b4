package pollreport

import (
	"encoding/binary"

	"github.com/headgate/headgate/p4src/ids"
)

// estimateSize is the length of the header estimate_report_t of p4src/shared/headers.p4.
const estimateSize = 2 + 3*4

// Estimate is DSH's estimate (DSH §IV-C, Algorithm 3) of one egress queue, as of the last
// pair of its packets. Gradients are in bytes per 2^12 ns. All are 0 while the chip's
// tables are empty. Every other packet is left out, so Headroom can be far below what
// Algorithm 3 has (see package tables/estimate): it is for looking at, not a safe headroom.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------+-----+---------------+-------------------------------+
//	|    0    |queue|    profile    |        g_avg (32)             |
//	+---------+-----+---------------+-------------------------------+
//	|                               |        ĝ (32)                 |
//	+-------------------------------+-------------------------------+
//	|                               |        φ̂ in bytes (32)        |
//	+-------------------------------+-------------------------------+
//	|                               |
//	+-------------------------------+
type Estimate struct {
	Queue    uint8  // 0 … 7: the one that the poll asked about
	Profile  uint8  // of the port's link: which thresholds Headroom is from
	Average  int32  // g_avg
	Gradient int32  // ĝ
	Headroom uint32 // φ̂ in bytes, 0 … Φ: by how much the queue is estimated to grow until a PAUSE takes effect
}

// parse decodes estimateSize bytes.
func (e *Estimate) parse(p []byte) {
	be := binary.BigEndian
	e.Queue, e.Profile = p[0]%ids.QueuesPerPort, p[1]
	e.Average, e.Gradient, e.Headroom = int32(be.Uint32(p[2:])), int32(be.Uint32(p[6:])), be.Uint32(p[10:])
}

func (e *Estimate) append(p []byte) []byte {
	be := binary.BigEndian
	p = append(p, e.Queue%ids.QueuesPerPort, e.Profile)
	p = be.AppendUint32(p, uint32(e.Average))
	p = be.AppendUint32(p, uint32(e.Gradient))
	return be.AppendUint32(p, e.Headroom)
}
