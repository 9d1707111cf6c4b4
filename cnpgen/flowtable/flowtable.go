// Package flowtable translates between package cnpgen and the tables and digests of the P4 program
// that PACC uses: the watched queues, which a controller writes, and the flows and queue pairs, which
// a loop learns. Each version of IP has its own tables and digests.
package flowtable

import (
	"net/netip"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/units"
)

// Family holds the program's tables for flows of one version of IP, and the digests that report unknown
// flows.
type Family struct {
	Flow, Congested, QueuePair             uint32
	FlowName, CongestedName, QueuePairName string

	FlowDigest, QueuePairDigest         uint32
	FlowDigestName, QueuePairDigestName string

	KnowQueuePairName, LearnQueuePairName    string // actions
	countFlow, countCongested, knowQueuePair uint32
	addressBytes                             int
}

// IPv4 and IPv6 are the families.
var (
	IPv4 = Family{
		Flow: ids.TableFlow, Congested: ids.TableCongestedFlow, QueuePair: ids.TableQueuePair,
		FlowName: ids.TableFlowName, CongestedName: ids.TableCongestedFlowName, QueuePairName: ids.TableQueuePairName,
		FlowDigest: ids.DigestFlowDigestT, QueuePairDigest: ids.DigestQueuePairDigestT,
		FlowDigestName: ids.DigestFlowDigestTName, QueuePairDigestName: ids.DigestQueuePairDigestTName,
		KnowQueuePairName: ids.ActionKnowQueuePairName, LearnQueuePairName: ids.ActionLearnQueuePairName,
		countFlow: ids.ActionCountFlow, countCongested: ids.ActionCountCongested, knowQueuePair: ids.ActionKnowQueuePair,
		addressBytes: 4,
	}
	IPv6 = Family{
		Flow: ids.TableFlowIPv6, Congested: ids.TableCongestedFlowIPv6, QueuePair: ids.TableQueuePairIPv6,
		FlowName: ids.TableFlowIPv6Name, CongestedName: ids.TableCongestedFlowIPv6Name, QueuePairName: ids.TableQueuePairIPv6Name,
		FlowDigest: ids.DigestFlowIPv6DigestT, QueuePairDigest: ids.DigestQueuePairIPv6DigestT,
		FlowDigestName: ids.DigestFlowIPv6DigestTName, QueuePairDigestName: ids.DigestQueuePairIPv6DigestTName,
		KnowQueuePairName: ids.ActionKnowQueuePairIPv6Name, LearnQueuePairName: ids.ActionLearnQueuePairIPv6Name,
		countFlow: ids.ActionCountFlowIPv6, countCongested: ids.ActionCountCongestedIPv6, knowQueuePair: ids.ActionKnowQueuePairIPv6,
		addressBytes: 16,
	}
)

// FamilyOf returns the family of a flow.
func FamilyOf(k cnpgen.FlowKey) *Family {
	if k.Src.Is4() {
		return &IPv4
	}
	return &IPv6
}

// Families returns both families, IPv4 and IPv6.
func Families() []*Family { return []*Family{&IPv4, &IPv6} }

// Learned returns the tables whose entries a loop writes.
func (f *Family) Learned() []uint32 { return []uint32{f.Flow, f.Congested, f.QueuePair} }

// Names returns the names of these tables.
func (f *Family) Names() []string { return []string{f.FlowName, f.CongestedName, f.QueuePairName} }

// Watched is an entry of the table of watched queues.
type Watched struct {
	Port      uint32
	Queue     uint8
	Threshold units.Bytes // Q_th
	// Settings is the output of cnpgen.Settings.Marshal if the loop runs in the switch. It is empty if the loop
	// runs elsewhere.
	Settings []byte
}

// Entry returns the table's entry.
func (w Watched) Entry() *p4v1.TableEntry {
	e := p4rtmsg.Entry(ids.TableWatchedQueue, 0, p4rtmsg.Do(ids.ActionWatch, uint64(w.Threshold)),
		p4rtmsg.Exact(ids.FieldWatchedQueueEgressPort, uint64(w.Port)), p4rtmsg.Exact(ids.FieldWatchedQueueQueue, uint64(w.Queue)))
	e.Metadata = w.Settings
	return e
}

// ReadWatched reads an entry of the table.
func ReadWatched(e *p4v1.TableEntry) Watched {
	w := Watched{Settings: e.GetMetadata()}
	for _, m := range e.GetMatch() {
		switch v := bytestring.Low64(m.GetExact().GetValue()); m.GetFieldId() {
		case ids.FieldWatchedQueueEgressPort:
			w.Port = uint32(v)
		case ids.FieldWatchedQueueQueue:
			w.Queue = uint8(v)
		}
	}
	for _, p := range e.GetAction().GetAction().GetParams() {
		w.Threshold = units.Bytes(bytestring.Low64(p.GetValue()))
	}
	return w
}

// FlowEntries returns a flow's two entries: one counts all its packets, the other the congested ones. Only the
// first entry ages; an ageing of 0 means never.
func FlowEntries(f cnpgen.Flow, ageing time.Duration) [2]*p4v1.TableEntry {
	match, of := key(f.FlowKey, f.Port), FamilyOf(f.FlowKey)
	all := p4rtmsg.Entry(of.Flow, 0, p4rtmsg.Do(of.countFlow), match...)
	all.IdleTimeoutNs = ageing.Nanoseconds()
	return [2]*p4v1.TableEntry{all, p4rtmsg.Entry(of.Congested, 0, p4rtmsg.Do(of.countCongested), match...)}
}

// QueuePairEntry returns the entry of a queue pair, which the switch then does not report.
func QueuePairEntry(q cnpgen.QueuePair, ageing time.Duration) *p4v1.TableEntry {
	of := FamilyOf(q.FlowKey)
	e := p4rtmsg.Entry(of.QueuePair, 0, p4rtmsg.Do(of.knowQueuePair), key(q.FlowKey, q.QP)...)
	e.IdleTimeoutNs = ageing.Nanoseconds()
	return e
}

// key is the key of the learned tables: two addresses, and a port or a queue pair.
func key(k cnpgen.FlowKey, last uint32) []*p4v1.FieldMatch {
	return []*p4v1.FieldMatch{
		p4rtmsg.Exact(ids.FieldFlowSrcAddr, k.Src.AsSlice()), p4rtmsg.Exact(ids.FieldFlowDstAddr, k.Dst.AsSlice()),
		p4rtmsg.Exact(ids.FieldFlowEgressPort, uint64(last)),
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
	of := &IPv4
	if t := e.GetTableId(); t == IPv6.Flow || t == IPv6.Congested || t == IPv6.QueuePair {
		of = &IPv6
	}
	for _, m := range e.GetMatch() {
		switch v := m.GetExact().GetValue(); m.GetFieldId() {
		case ids.FieldFlowSrcAddr:
			k.Src = of.address(v)
		case ids.FieldFlowDstAddr:
			k.Dst = of.address(v)
		case ids.FieldFlowEgressPort:
			last = uint32(bytestring.Low64(v))
		}
	}
	return k, last, k.Src.IsValid() && k.Dst.IsValid()
}

// ReadFlowDigest reads the members of a digest of flows. It returns false when there are not three.
func (f *Family) ReadFlowDigest(members [][]byte) (cnpgen.Flow, bool) {
	k, port, ok := f.digest(members)
	return cnpgen.Flow{FlowKey: k, Port: port}, ok
}

// ReadQueuePairDigest reads the members of a digest of queue pairs. It returns false when there are not
// three.
func (f *Family) ReadQueuePairDigest(members [][]byte) (cnpgen.QueuePair, bool) {
	k, qp, ok := f.digest(members)
	return cnpgen.QueuePair{FlowKey: k, QP: qp}, ok
}

func (f *Family) digest(members [][]byte) (k cnpgen.FlowKey, last uint32, ok bool) {
	if len(members) != 3 {
		return k, 0, false
	}
	return cnpgen.FlowKey{Src: f.address(members[0]), Dst: f.address(members[1])}, uint32(bytestring.Low64(members[2])), true
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
func (f *Family) address(b []byte) netip.Addr {
	var a [16]byte
	b = b[max(0, len(b)-f.addressBytes):]
	copy(a[len(a)-len(b):], b)
	if f.addressBytes == 4 {
		return netip.AddrFrom4([4]byte(a[12:]))
	}
	return netip.AddrFrom16(a)
}
