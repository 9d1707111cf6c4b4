package control

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/canon"
	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/p4src/ids"
)

// Flow is a key of PACC's flow table.
type Flow struct {
	Src, Dst netip.Addr
	Port     uint32
}

// FlowCount is what the direct counters of a flow say; a flow that has no entry in a table
// has -1 there.
type FlowCount struct {
	Packets, Bytes     int64 // table flow
	Congested, CgBytes int64 // table congested_flow
}

func (f Flow) match() []*p4v1.FieldMatch {
	// Both tables have the same keys.
	return []*p4v1.FieldMatch{
		p4msg.Exact(ids.FieldFlowSrcAddr, f.Src.AsSlice()), p4msg.Exact(ids.FieldFlowDstAddr, f.Dst.AsSlice()), p4msg.Exact(ids.FieldFlowEgressPort, uint64(f.Port)),
	}
}

// WatchQueue makes PACC watch a queue of a port; packets that find more than threshold
// bytes in it are congested.
func WatchQueue(port uint32, queue, threshold uint64) *p4v1.Update {
	return p4msg.Insert(p4msg.Entry(ids.TableWatchedQueue, 0, p4msg.Do(ids.ActionWatch, threshold),
		p4msg.Exact(ids.FieldWatchedQueueEgressPort, uint64(port)), p4msg.Exact(ids.FieldWatchedQueueQueue, queue)))
}

// LearnFlow puts a flow into both of PACC's tables; it ages after idle, 0 for never.
func LearnFlow(f Flow, idle time.Duration) []*p4v1.Update {
	all := p4msg.Entry(ids.TableFlow, 0, p4msg.Do(ids.ActionCountFlow), f.match()...)
	all.IdleTimeoutNs = idle.Nanoseconds()
	return []*p4v1.Update{
		p4msg.Insert(all), p4msg.Insert(p4msg.Entry(ids.TableCongestedFlow, 0, p4msg.Do(ids.ActionCountCongested), f.match()...)),
	}
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
func (c *Client) Learned(wait time.Duration) ([]Flow, error) {
	d, err := next(c, c.digests, "digest", wait)
	if err != nil {
		return nil, err
	}
	if d.GetDigestId() != ids.DigestFlowDigestT {
		return nil, fmt.Errorf("digest %#x, want %#x", d.GetDigestId(), ids.DigestFlowDigestT)
	}
	var flows []Flow
	for _, v := range d.GetData() {
		m := v.GetStruct().GetMembers()
		if len(m) != 3 {
			return nil, fmt.Errorf("a digest of %d members, want 3", len(m))
		}
		flows = append(flows, Flow{
			Src: addrOf(m[0].GetBitstring()), Dst: addrOf(m[1].GetBitstring()), Port: uint32(canon.Low64(m[2].GetBitstring())),
		})
	}
	return flows, c.stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_DigestAck{
		DigestAck: &p4v1.DigestListAck{DigestId: d.GetDigestId(), ListId: d.GetListId()}}})
}

// Idle returns the flows of the next idle notification.
func (c *Client) Idle(wait time.Duration) ([]Flow, error) {
	n, err := next(c, c.idle, "idle notification", wait)
	if err != nil {
		return nil, err
	}
	var flows []Flow
	for _, e := range n.GetTableEntry() {
		if e.GetTableId() != ids.TableFlow {
			return nil, fmt.Errorf("an idle entry of table %#x, want %#x", e.GetTableId(), ids.TableFlow)
		}
		flows = append(flows, flowOf(e))
	}
	return flows, nil
}

// Flows reads both tables in one request.
func (c *Client) Flows() (map[Flow]FlowCount, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	stream, err := c.stub.Read(ctx, &p4v1.ReadRequest{DeviceId: c.device, Entities: []*p4v1.Entity{
		p4msg.Of(&p4v1.TableEntry{TableId: ids.TableFlow, CounterData: &p4v1.CounterData{}}),
		p4msg.Of(&p4v1.TableEntry{TableId: ids.TableCongestedFlow, CounterData: &p4v1.CounterData{}}),
	}})
	if err != nil {
		return nil, err
	}
	flows := map[Flow]FlowCount{}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return flows, nil
		}
		if err != nil {
			return nil, err
		}
		for _, e := range m.GetEntities() {
			t := e.GetTableEntry()
			f, d := flowOf(t), t.GetCounterData()
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
	}
}

func flowOf(e *p4v1.TableEntry) Flow {
	var f Flow
	for _, m := range e.GetMatch() {
		switch v := m.GetExact().GetValue(); m.GetFieldId() {
		case ids.FieldFlowSrcAddr:
			f.Src = addrOf(v)
		case ids.FieldFlowDstAddr:
			f.Dst = addrOf(v)
		case ids.FieldFlowEgressPort:
			f.Port = uint32(canon.Low64(v))
		}
	}
	return f
}

func addrOf(b []byte) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(canon.Low64(b)))))
}
