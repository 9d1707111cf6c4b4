package control

import (
	"fmt"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/cnpgen/flowtable"
	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/units"
)

// FlowCount is what the direct counters of a flow say; a flow that has no entry in a table
// has -1 there.
type FlowCount struct {
	Packets, Bytes     int64 // table flow
	Congested, CgBytes int64 // table congested_flow
}

// WatchQueue makes PACC watch a queue of a port; packets that find more than threshold
// bytes in it are congested.
func WatchQueue(port uint32, queue uint8, threshold units.Bytes) *p4v1.Update {
	return p4msg.Insert(flowtable.Watched{Port: port, Queue: queue, Threshold: threshold}.Entry())
}

// LearnFlow puts a flow into both of PACC's tables; it ages after idle, 0 for never.
func LearnFlow(f cnpgen.Flow, idle time.Duration) []*p4v1.Update {
	both := flowtable.FlowEntries(f, idle)
	return []*p4v1.Update{p4msg.Insert(both[0]), p4msg.Insert(both[1])}
}

// FlowDigests switches the learning of flows on: lists of at most most flows, held back at
// most hold.
func FlowDigests(most int32, hold time.Duration) []*p4v1.Update {
	var updates []*p4v1.Update
	for _, of := range flowtable.Families() {
		updates = append(updates, p4msg.Insert(&p4v1.DigestEntry{
			DigestId: of.FlowDigest,
			Config:   &p4v1.DigestEntry_Config{MaxListSize: most, MaxTimeoutNs: hold.Nanoseconds(), AckTimeoutNs: int64(10 * time.Second)},
		}))
	}
	return updates
}

// Learned returns the flows of the next digest, which it acknowledges, waiting for it for
// at most wait.
func (c *Client) Learned(wait time.Duration) ([]cnpgen.Flow, error) {
	d, err := next(c, c.digests, "digest", wait)
	if err != nil {
		return nil, err
	}
	of := &flowtable.IPv4
	if d.GetDigestId() != of.FlowDigest {
		if of = &flowtable.IPv6; d.GetDigestId() != of.FlowDigest {
			return nil, fmt.Errorf("digest %#x, want one of flows", d.GetDigestId())
		}
	}
	var flows []cnpgen.Flow
	for _, v := range d.GetData() {
		f, ok := of.ReadFlowDigest(flowtable.Members(v))
		if !ok {
			return nil, fmt.Errorf("the digest %v, want three members", v)
		}
		flows = append(flows, f)
	}
	return flows, c.stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_DigestAck{
		DigestAck: &p4v1.DigestListAck{DigestId: d.GetDigestId(), ListId: d.GetListId()}}})
}

// Idle returns the flows of the next idle notification.
func (c *Client) Idle(wait time.Duration) ([]cnpgen.Flow, error) {
	n, err := next(c, c.idle, "idle notification", wait)
	if err != nil {
		return nil, err
	}
	var flows []cnpgen.Flow
	for _, e := range n.GetTableEntry() {
		f, _ := flowtable.ReadFlow(e)
		if want := flowtable.Of(f.FlowKey).Flow; e.GetTableId() != want {
			return nil, fmt.Errorf("an idle entry of table %#x, want %#x", e.GetTableId(), want)
		}
		flows = append(flows, f)
	}
	return flows, nil
}

// Flows reads all tables in one request.
func (c *Client) Flows() (map[cnpgen.Flow]FlowCount, error) {
	var requests []*p4v1.Entity
	for _, of := range flowtable.Families() {
		for _, table := range []uint32{of.Flow, of.Congested} {
			requests = append(requests, p4msg.Of(&p4v1.TableEntry{TableId: table, CounterData: &p4v1.CounterData{}}))
		}
	}
	entries, err := c.read(requests...)
	flows := map[cnpgen.Flow]FlowCount{}
	for _, e := range entries {
		t := e.GetTableEntry()
		f, _ := flowtable.ReadFlow(t)
		d := t.GetCounterData()
		n, seen := flows[f]
		if !seen {
			n = FlowCount{-1, -1, -1, -1}
		}
		if t.GetTableId() == flowtable.Of(f.FlowKey).Flow {
			n.Packets, n.Bytes = d.GetPacketCount(), d.GetByteCount()
		} else {
			n.Congested, n.CgBytes = d.GetPacketCount(), d.GetByteCount()
		}
		flows[f] = n
	}
	return flows, err
}
