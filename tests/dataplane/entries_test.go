package dataplane

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/cnpgen/flowtable"
	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tables/buffer"
	"github.com/headgate/headgate/tests/dataplane/control"
)

// hashSeed sets the seed of the five-tuple hash that chooses next hops.
func hashSeed(seed uint32) []*p4v1.Update {
	return []*p4v1.Update{
		control.SetDefault(ids.TableECMPHash, p4rtmsg.Do(ids.ActionHashFiveTuple, uint64(seed))),
		control.SetDefault(ids.TableECMPHashIPv6, p4rtmsg.Do(ids.ActionHashFiveTupleIPv6, uint64(seed))),
	}
}

// hashQueuePair adds the queue pair to the hash of RoCE packets.
func hashQueuePair(seed uint32) []*p4v1.Update {
	return []*p4v1.Update{
		p4rtmsg.Insert(p4rtmsg.Entry(ids.TableECMPHash, 0, p4rtmsg.Do(ids.ActionHashQueuePair, uint64(seed)), p4rtmsg.Exact(ids.FieldECMPHashRoCE, 1))),
		p4rtmsg.Insert(p4rtmsg.Entry(ids.TableECMPHashIPv6, 0, p4rtmsg.Do(ids.ActionHashQueuePairIPv6, uint64(seed)), p4rtmsg.Exact(ids.FieldECMPHashIPv6RoCE, 1))),
	}
}

// hashFlowLabel makes ECMP of IPv6 hash addresses and flow label.
func hashFlowLabel(seed uint32) *p4v1.Update {
	return control.SetDefault(ids.TableECMPHashIPv6, p4rtmsg.Do(ids.ActionHashFlowLabel, uint64(seed)))
}

// puntAddress sends packets to an IPv4 address to the controller.
func puntAddress(addr netip.Addr, reason uint64) *p4v1.Update {
	return control.Punt(p4rtmsg.Ternary(ids.FieldPuntTableDstAddr, addr.AsSlice(), []byte{0xff, 0xff, 0xff, 0xff}), reason)
}

// puntLimit lets a port send one frame per interval to the controller, or earlier by tolerance; both in
// microseconds.
func puntLimit(interval, tolerance uint64) *p4v1.Update {
	return control.SetDefault(ids.TablePuntLimit, p4rtmsg.Do(ids.ActionSetPuntLimit, interval, tolerance))
}

// defaultQueueLimit bounds the bytes of every queue without a limit of its own.
func defaultQueueLimit(bytes uint64) *p4v1.Update {
	return control.SetDefault(ids.TableQueueLimit, p4rtmsg.Do(ids.ActionSetQueueLimit, bytes))
}

// permitSource permits a source at a port. The zero address refuses all other IPv4 sources, :: all other IPv6
// sources.
func permitSource(port uint32, permitted netip.Addr) *p4v1.Update {
	if permitted.Is6() {
		return permitSourceIPv6(port, permitted)
	}
	e := p4rtmsg.Entry(ids.TableSourceCheck, 0, p4rtmsg.Do(ids.ActionRefuseSource), p4rtmsg.Exact(ids.FieldSourceCheckIngressPort, uint64(port)))
	if permitted.IsValid() {
		e.Match = append(e.Match, p4rtmsg.LPM(ids.FieldSourceCheckSrcAddr, permitted.AsSlice(), 32))
		e.Action = p4rtmsg.Do(ids.ActionPermitSource)
	}
	return p4rtmsg.Insert(e)
}

func permitSourceIPv6(port uint32, permitted netip.Addr) *p4v1.Update {
	e := p4rtmsg.Entry(ids.TableSourceCheckIPv6, 0, p4rtmsg.Do(ids.ActionRefuseSourceIPv6), p4rtmsg.Exact(ids.FieldSourceCheckIPv6IngressPort, uint64(port)))
	if !permitted.IsUnspecified() {
		e.Match = append(e.Match, p4rtmsg.LPM(ids.FieldSourceCheckIPv6SrcAddr, permitted.AsSlice(), 128))
		e.Action = p4rtmsg.Do(ids.ActionPermitSourceIPv6)
	}
	return p4rtmsg.Insert(e)
}

// answerFor makes the switch answer for a prefix with a MAC address, as a proxy or for its own address.
func answerFor(prefix netip.Prefix, own bool, mac net.HardwareAddr) *p4v1.Update {
	table, field, action := uint32(ids.TableGatewayIPv4), uint32(ids.FieldGatewayIPv4Addr), uint32(ids.ActionProxyIPv4)
	switch six := prefix.Addr().Is6(); {
	case six && own:
		table, field, action = ids.TableGatewayIPv6, ids.FieldGatewayIPv6Addr, ids.ActionOwnIPv6
	case six:
		table, field, action = ids.TableGatewayIPv6, ids.FieldGatewayIPv6Addr, ids.ActionProxyIPv6
	case own:
		action = ids.ActionOwnIPv4
	}
	e := p4rtmsg.Entry(table, 0, p4rtmsg.Do(action, bytestring.Low64(mac)))
	if prefix.Bits() > 0 {
		e.Match = []*p4v1.FieldMatch{p4rtmsg.LPM(field, prefix.Masked().Addr().AsSlice(), int32(prefix.Bits()))}
	}
	return p4rtmsg.Insert(e)
}

// pfcSession installs the clone session of a port's PFC frames.
func pfcSession(port uint32) *p4v1.Update { return control.CloneSession(buffer.Session(port), port) }

// flowDigests switches learning of flows on: lists have at most most flows and wait at most hold.
func flowDigests(most int32, hold time.Duration) []*p4v1.Update {
	var updates []*p4v1.Update
	for _, of := range flowtable.Families() {
		updates = append(updates, p4rtmsg.Insert(&p4v1.DigestEntry{
			DigestId: of.FlowDigest,
			Config:   &p4v1.DigestEntry_Config{MaxListSize: most, MaxTimeoutNs: hold.Nanoseconds(), AckTimeoutNs: int64(10 * time.Second)},
		}))
	}
	return updates
}

// flowCount holds the direct counters of a flow, with -1 for a table without an entry for it.
type flowCount struct {
	Packets, Bytes     int64 // table flow
	Congested, CgBytes int64 // table congested_flow
}

// learnedOf returns the flows of the next digest and acknowledges it. It waits for at most wait.
func learnedOf(c *control.Client, wait time.Duration) ([]cnpgen.Flow, error) {
	d, err := c.Digest(wait)
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
	return flows, c.Acknowledge(d)
}

// agedOf returns the flows of the next idle notification.
func agedOf(c *control.Client, wait time.Duration) ([]cnpgen.Flow, error) {
	n, err := c.Idle(wait)
	if err != nil {
		return nil, err
	}
	var flows []cnpgen.Flow
	for _, e := range n.GetTableEntry() {
		f, _ := flowtable.ReadFlow(e)
		if want := flowtable.FamilyOf(f.FlowKey).Flow; e.GetTableId() != want {
			return nil, fmt.Errorf("an idle entry of table %#x, want %#x", e.GetTableId(), want)
		}
		flows = append(flows, f)
	}
	return flows, nil
}

// flowsOf reads all tables in one request.
func flowsOf(c *control.Client) (map[cnpgen.Flow]flowCount, error) {
	var requests []*p4v1.Entity
	for _, of := range flowtable.Families() {
		for _, table := range []uint32{of.Flow, of.Congested} {
			requests = append(requests, p4rtmsg.Entity(&p4v1.TableEntry{TableId: table, CounterData: &p4v1.CounterData{}}))
		}
	}
	entries, err := c.Read(requests...)
	flows := map[cnpgen.Flow]flowCount{}
	for _, e := range entries {
		t := e.GetTableEntry()
		f, _ := flowtable.ReadFlow(t)
		d := t.GetCounterData()
		n, seen := flows[f]
		if !seen {
			n = flowCount{-1, -1, -1, -1}
		}
		if t.GetTableId() == flowtable.FamilyOf(f.FlowKey).Flow {
			n.Packets, n.Bytes = d.GetPacketCount(), d.GetByteCount()
		} else {
			n.Congested, n.CgBytes = d.GetPacketCount(), d.GetByteCount()
		}
		flows[f] = n
	}
	return flows, err
}
