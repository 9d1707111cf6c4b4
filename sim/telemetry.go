package sim

import (
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/units"
)

// maxHops bounds the hops of in-band telemetry; HPCC has five, a fat-tree's longest path
// has five switches.
const maxHops = 8

// teleRecord is what the switches on a packet's path wrote about themselves.
type teleRecord struct {
	hop  [maxHops]law.Hop
	n    int32
	next int32
}

// telePool owns the records of all packets in the fabric. Record 0 stands for none.
type telePool struct {
	records []teleRecord
	free    int32
	live    int
}

func newTelePool() telePool { return telePool{records: make([]teleRecord, 1)} }

func (t *telePool) get() int32 {
	t.live++
	if i := t.free; i != 0 {
		t.free = t.records[i].next
		t.records[i].n = 0
		return i
	}
	t.records = append(t.records, teleRecord{})
	return int32(len(t.records) - 1)
}

func (t *telePool) put(i int32) {
	t.live--
	t.records[i].next = t.free
	t.free = i
}

func (t *telePool) hops(i int32) []law.Hop {
	r := &t.records[i]
	return r.hop[:r.n]
}

// record adds the hop of an egress port that starts to send a packet (HPCC, SIGCOMM 2019,
// §3.1 and Figure 7: what is queued behind the packet, and the bytes sent before it).
func (s *partition) record(tele int32, p *port, class uint8) {
	r := &s.tele.records[tele]
	if int(r.n) == len(r.hop) {
		return
	}
	r.hop[r.n] = law.Hop{
		Rate: p.rate, Time: s.now, TxBytes: units.Bytes(p.txBytes), Queue: p.queues[class].bytes,
	}
	r.n++
}
