// Package flowtable translates between package cnpgen and the tables and digests of the P4 program
// that PACC uses: the watched queues, which a controller writes, and the flows and queue pairs, which
// a loop learns. Addresses are IPv4.
package flowtable

import (
	"encoding/binary"
	"net/netip"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/internal/canon"
	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/units"
)

// Learned are the tables whose entries a loop writes.
var Learned = []uint32{ids.TableFlow, ids.TableCongestedFlow, ids.TableQueuePair}

// Watched is an entry of the table of watched queues.
type Watched struct {
	Port      uint32
	Queue     uint8
	Threshold units.Bytes // Q_th
	// Settings are cnpgen.Settings.Marshal's for a loop in the switch; none for one elsewhere.
	Settings []byte
}

// Entry returns the table's entry.
func (w Watched) Entry() *p4v1.TableEntry {
	e := p4msg.Entry(ids.TableWatchedQueue, 0, p4msg.Do(ids.ActionWatch, uint64(w.Threshold)),
		p4msg.Exact(ids.FieldWatchedQueueEgressPort, uint64(w.Port)), p4msg.Exact(ids.FieldWatchedQueueQueue, uint64(w.Queue)))
	e.Metadata = w.Settings
	return e
}

// ReadWatched reads an entry of the table.
func ReadWatched(e *p4v1.TableEntry) Watched {
	w := Watched{Settings: e.GetMetadata()}
	for _, m := range e.GetMatch() {
		switch v := canon.Low64(m.GetExact().GetValue()); m.GetFieldId() {
		case ids.FieldWatchedQueueEgressPort:
			w.Port = uint32(v)
		case ids.FieldWatchedQueueQueue:
			w.Queue = uint8(v)
		}
	}
	for _, p := range e.GetAction().GetAction().GetParams() {
		w.Threshold = units.Bytes(canon.Low64(p.GetValue()))
	}
	return w
}

// FlowEntries returns a flow's two entries: one counts all its packets, the other the congested ones.
// The first ages, 0 for never.
func FlowEntries(f cnpgen.Flow, ageing time.Duration) [2]*p4v1.TableEntry {
	match := key(f.FlowKey, f.Port)
	all := p4msg.Entry(ids.TableFlow, 0, p4msg.Do(ids.ActionCountFlow), match...)
	all.IdleTimeoutNs = ageing.Nanoseconds()
	return [2]*p4v1.TableEntry{all, p4msg.Entry(ids.TableCongestedFlow, 0, p4msg.Do(ids.ActionCountCongested), match...)}
}

// QueuePairEntry returns the entry of a queue pair, which the switch then does not report.
func QueuePairEntry(q cnpgen.QueuePair, ageing time.Duration) *p4v1.TableEntry {
	e := p4msg.Entry(ids.TableQueuePair, 0, p4msg.Do(ids.ActionKnowQueuePair), key(q.FlowKey, q.QP)...)
	e.IdleTimeoutNs = ageing.Nanoseconds()
	return e
}

// key is the key of the three learned tables: two addresses, and a port or a queue pair.
func key(k cnpgen.FlowKey, last uint32) []*p4v1.FieldMatch {
	return []*p4v1.FieldMatch{
		p4msg.Exact(ids.FieldFlowSrcAddr, k.Src.AsSlice()), p4msg.Exact(ids.FieldFlowDstAddr, k.Dst.AsSlice()),
		p4msg.Exact(ids.FieldFlowEgressPort, uint64(last)),
	}
}

// ReadFlow reads an entry of either table of flows. It returns false when it lacks an address.
func ReadFlow(e *p4v1.TableEntry) (cnpgen.Flow, bool) {
	k, port, ok := readKey(e)
	return cnpgen.Flow{FlowKey: k, Port: port}, ok
}

// ReadQueuePair reads an entry of the table of queue pairs. It returns false when it lacks an address.
func ReadQueuePair(e *p4v1.TableEntry) (cnpgen.QueuePair, bool) {
	k, qp, ok := readKey(e)
	return cnpgen.QueuePair{FlowKey: k, QP: qp}, ok
}

func readKey(e *p4v1.TableEntry) (k cnpgen.FlowKey, last uint32, ok bool) {
	for _, m := range e.GetMatch() {
		switch v := m.GetExact().GetValue(); m.GetFieldId() {
		case ids.FieldFlowSrcAddr:
			k.Src = address(v)
		case ids.FieldFlowDstAddr:
			k.Dst = address(v)
		case ids.FieldFlowEgressPort:
			last = uint32(canon.Low64(v))
		}
	}
	return k, last, k.Src.IsValid() && k.Dst.IsValid()
}

// DigestFlow reads the members of flow_digest_t. It returns false when there are not three.
func DigestFlow(members [][]byte) (cnpgen.Flow, bool) {
	k, port, ok := digest(members)
	return cnpgen.Flow{FlowKey: k, Port: port}, ok
}

// DigestQueuePair reads the members of queue_pair_digest_t. It returns false when there are not three.
func DigestQueuePair(members [][]byte) (cnpgen.QueuePair, bool) {
	k, qp, ok := digest(members)
	return cnpgen.QueuePair{FlowKey: k, QP: qp}, ok
}

func digest(members [][]byte) (k cnpgen.FlowKey, last uint32, ok bool) {
	if len(members) != 3 {
		return k, 0, false
	}
	return cnpgen.FlowKey{Src: address(members[0]), Dst: address(members[1])}, uint32(canon.Low64(members[2])), true
}

// Members returns the members of a digest as P4Runtime sends it.
func Members(d *p4v1.P4Data) [][]byte {
	var list [][]byte
	for _, m := range d.GetStruct().GetMembers() {
		list = append(list, m.GetBitstring())
	}
	return list
}

// address reads a canonical byte string, which has no leading zeros.
func address(b []byte) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(canon.Low64(b)))))
}
