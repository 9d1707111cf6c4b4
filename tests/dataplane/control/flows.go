package control

import (
	"fmt"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/cnpgen/flowtable"
	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/p4src/ids"
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

// FlowDigest switches the learning of flows on: lists of at most most flows, held back at
// most hold.
func FlowDigest(most int32, hold time.Duration) *p4v1.Update {
	return p4msg.Insert(&p4v1.DigestEntry{
		DigestId: ids.DigestFlowDigestT,
		Config:   &p4v1.DigestEntry_Config{MaxListSize: most, MaxTimeoutNs: hold.Nanoseconds(), AckTimeoutNs: int64(10 * time.Second)},
	})
}

// Learned returns the flows of the next digest, which it acknowledges, waiting for it for
// at most wait.
func (c *Client) Learned(wait time.Duration) ([]cnpgen.Flow, error) {
	d, err := next(c, c.digests, "digest", wait)
	if err != nil {
		return nil, err
	}
	if d.GetDigestId() != ids.DigestFlowDigestT {
		return nil, fmt.Errorf("digest %#x, want %#x", d.GetDigestId(), ids.DigestFlowDigestT)
	}
	var flows []cnpgen.Flow
	for _, v := range d.GetData() {
		f, ok := flowtable.DigestFlow(flowtable.Members(v))
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
		if e.GetTableId() != ids.TableFlow {
			return nil, fmt.Errorf("an idle entry of table %#x, want %#x", e.GetTableId(), ids.TableFlow)
		}
		f, _ := flowtable.ReadFlow(e)
		flows = append(flows, f)
	}
	return flows, nil
}

// Flows reads both tables in one request.
func (c *Client) Flows() (map[cnpgen.Flow]FlowCount, error) {
	entries, err := c.read(
		p4msg.Of(&p4v1.TableEntry{TableId: ids.TableFlow, CounterData: &p4v1.CounterData{}}),
		p4msg.Of(&p4v1.TableEntry{TableId: ids.TableCongestedFlow, CounterData: &p4v1.CounterData{}}),
	)
	flows := map[cnpgen.Flow]FlowCount{}
	for _, e := range entries {
		t := e.GetTableEntry()
		f, _ := flowtable.ReadFlow(t)
		d := t.GetCounterData()
		n, seen := flows[f]
		if !seen {
			n = FlowCount{-1, -1, -1, -1}
		}
		if t.GetTableId() == ids.TableFlow {
			n.Packets, n.Bytes = d.GetPacketCount(), d.GetByteCount()
		} else {
			n.Congested, n.CgBytes = d.GetPacketCount(), d.GetByteCount()
		}
		flows[f] = n
	}
	return flows, err
}
