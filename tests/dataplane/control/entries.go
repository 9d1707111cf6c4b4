package control

import (
	"net"
	"net/netip"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/canon"
	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tables/red"
)

// Class maps a DSCP to a traffic class and queue.
func Class(dscp, class, queue uint64) *p4v1.Update {
	return p4msg.Insert(p4msg.Entry(ids.TableDSCPToClass, 0, p4msg.Do(ids.ActionSetClass, class, queue), p4msg.Exact(ids.FieldDSCPToClassDSCP, dscp)))
}

// Member makes a next hop.
func Member(id uint32, port uint32, src, dst net.HardwareAddr) *p4v1.Update {
	return p4msg.Insert(&p4v1.ActionProfileMember{
		ActionProfileId: ids.ProfileECMP, MemberId: id,
		Action: p4msg.Action(ids.ActionSetNextHop, uint64(port), canon.Low64(src), canon.Low64(dst)),
	})
}

// Weight is a member of a group and its weight.
type Weight struct {
	Member uint32
	Weight int32
}

// Group makes a group of next hops.
func Group(id uint32, weights ...Weight) *p4v1.Update {
	g := &p4v1.ActionProfileGroup{ActionProfileId: ids.ProfileECMP, GroupId: id, MaxSize: ids.MaxGroupMembers}
	for _, w := range weights {
		g.Members = append(g.Members, &p4v1.ActionProfileGroup_Member{MemberId: w.Member, Weight: w.Weight})
	}
	return p4msg.Insert(g)
}

// Route sends a prefix to a group.
func Route(prefix netip.Prefix, group uint32) *p4v1.Update {
	table, field := uint32(ids.TableIPv4LPM), uint32(ids.FieldIPv4LPMDstAddr)
	if prefix.Addr().Is6() {
		table, field = ids.TableIPv6LPM, ids.FieldIPv6LPMDstAddr
	}
	e := p4msg.Entry(table, 0, &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileGroupId{ActionProfileGroupId: group}})
	if prefix.Bits() > 0 {
		e.Match = []*p4v1.FieldMatch{p4msg.LPM(field, prefix.Masked().Addr().AsSlice(), int32(prefix.Bits()))}
	}
	return p4msg.Insert(e)
}

// HashSeed sets the seed of the hash of five-tuples that chooses among next hops.
func HashSeed(seed uint32) []*p4v1.Update {
	return []*p4v1.Update{
		setDefault(ids.TableECMPHash, p4msg.Do(ids.ActionHashFiveTuple, uint64(seed))),
		setDefault(ids.TableECMPHashIPv6, p4msg.Do(ids.ActionHashFiveTupleIPv6, uint64(seed))),
	}
}

// HashQueuePair adds the queue pair to what is hashed of RoCE packets.
func HashQueuePair(seed uint32) []*p4v1.Update {
	return []*p4v1.Update{
		p4msg.Insert(p4msg.Entry(ids.TableECMPHash, 0, p4msg.Do(ids.ActionHashQueuePair, uint64(seed)), p4msg.Exact(ids.FieldECMPHashRoCE, 1))),
		p4msg.Insert(p4msg.Entry(ids.TableECMPHashIPv6, 0, p4msg.Do(ids.ActionHashQueuePairIPv6, uint64(seed)), p4msg.Exact(ids.FieldECMPHashIPv6RoCE, 1))),
	}
}

// PuntEtherType sends frames of an EtherType to the controller.
func PuntEtherType(etherType, reason uint64) *p4v1.Update {
	return punt(p4msg.Ternary(ids.FieldPuntTableEtherType, etherType, 0xffff), reason)
}

// PuntAddress sends packets to an IPv4 address to the controller.
func PuntAddress(addr netip.Addr, reason uint64) *p4v1.Update {
	return punt(p4msg.Ternary(ids.FieldPuntTableDstAddr, addr.AsSlice(), []byte{0xff, 0xff, 0xff, 0xff}), reason)
}

func punt(m *p4v1.FieldMatch, reason uint64) *p4v1.Update {
	return p4msg.Insert(p4msg.Entry(ids.TablePuntTable, 1, p4msg.Do(ids.ActionPuntToCPU, reason), m))
}

// QueueLimit bounds the bytes of a queue.
func QueueLimit(port uint32, queue uint64, bytes uint64) *p4v1.Update {
	return p4msg.Insert(p4msg.Entry(ids.TableQueueLimit, 0, p4msg.Do(ids.ActionSetQueueLimit, bytes),
		p4msg.Exact(ids.FieldQueueLimitEgressPort, uint64(port)), p4msg.Exact(ids.FieldQueueLimitQueue, queue)))
}

// DefaultQueueLimit bounds the bytes of every queue that has no limit of its own.
func DefaultQueueLimit(bytes uint64) *p4v1.Update {
	return setDefault(ids.TableQueueLimit, p4msg.Do(ids.ActionSetQueueLimit, bytes))
}

// Marking marks packets of a queue by a curve's entries.
func Marking(queue uint64, entries []red.Entry) []*p4v1.Update {
	var updates []*p4v1.Update
	for _, e := range entries {
		match := []*p4v1.FieldMatch{p4msg.Exact(ids.FieldECNREDQueue, queue)}
		if e.Low != 0 || e.High != ids.Saturated16 {
			match = append(match, p4msg.Range(ids.FieldECNREDDepth, uint64(e.Low), uint64(e.High)))
		}
		updates = append(updates, p4msg.Insert(p4msg.Entry(ids.TableECNRED, 1, p4msg.Do(ids.ActionSetMarkProbability, uint64(e.P)), match...)))
	}
	return updates
}

// Scale sets the shift from clock ticks to maxQD units.
func Scale(shift uint64) *p4v1.Update {
	return setDefault(ids.TableMaxQDScale, p4msg.Do(ids.ActionSetScale, shift))
}

// DisableStamping leaves maxQD shims alone.
func DisableStamping() *p4v1.Update {
	return setDefault(ids.TableMaxQDScale, p4msg.Do(ids.ActionDisableStamping))
}

// Source permits a source at a port, or refuses all others there; the zero address is those
// of IPv4, :: those of IPv6.
func Source(port uint32, permitted netip.Addr) *p4v1.Update {
	if permitted.Is6() {
		return sourceIPv6(port, permitted)
	}
	e := p4msg.Entry(ids.TableSourceCheck, 0, p4msg.Do(ids.ActionRefuseSource), p4msg.Exact(ids.FieldSourceCheckIngressPort, uint64(port)))
	if permitted.IsValid() {
		e.Match = append(e.Match, p4msg.LPM(ids.FieldSourceCheckSrcAddr, permitted.AsSlice(), 32))
		e.Action = p4msg.Do(ids.ActionPermitSource)
	}
	return p4msg.Insert(e)
}

func sourceIPv6(port uint32, permitted netip.Addr) *p4v1.Update {
	e := p4msg.Entry(ids.TableSourceCheckIPv6, 0, p4msg.Do(ids.ActionRefuseSourceIPv6), p4msg.Exact(ids.FieldSourceCheckIPv6IngressPort, uint64(port)))
	if !permitted.IsUnspecified() {
		e.Match = append(e.Match, p4msg.LPM(ids.FieldSourceCheckIPv6SrcAddr, permitted.AsSlice(), 128))
		e.Action = p4msg.Do(ids.ActionPermitSourceIPv6)
	}
	return p4msg.Insert(e)
}

// Gateway makes the switch answer for a prefix with a MAC address, as a proxy or for an address of its own.
func Gateway(prefix netip.Prefix, own bool, mac net.HardwareAddr) *p4v1.Update {
	table, field, action := uint32(ids.TableGatewayIPv4), uint32(ids.FieldGatewayIPv4Addr), uint32(ids.ActionProxyIPv4)
	switch six := prefix.Addr().Is6(); {
	case six && own:
		table, field, action = ids.TableGatewayIPv6, ids.FieldGatewayIPv6Addr, ids.ActionOwnIPv6
	case six:
		table, field, action = ids.TableGatewayIPv6, ids.FieldGatewayIPv6Addr, ids.ActionProxyIPv6
	case own:
		action = ids.ActionOwnIPv4
	}
	e := p4msg.Entry(table, 0, p4msg.Do(action, canon.Low64(mac)))
	if prefix.Bits() > 0 {
		e.Match = []*p4v1.FieldMatch{p4msg.LPM(field, prefix.Masked().Addr().AsSlice(), int32(prefix.Bits()))}
	}
	return p4msg.Insert(e)
}

// HashFlowLabel makes ECMP of IPv6 hash addresses and flow label.
func HashFlowLabel(seed uint32) *p4v1.Update {
	return setDefault(ids.TableECMPHashIPv6, p4msg.Do(ids.ActionHashFlowLabel, uint64(seed)))
}

// PuntLimit lets a port send the controller a frame each interval, or by tolerance earlier, in
// microseconds.
func PuntLimit(interval, tolerance uint64) *p4v1.Update {
	return setDefault(ids.TablePuntLimit, p4msg.Do(ids.ActionSetPuntLimit, interval, tolerance))
}

func setDefault(table uint32, a *p4v1.TableAction) *p4v1.Update {
	return p4msg.Modify(&p4v1.TableEntry{TableId: table, IsDefaultAction: true, Action: a})
}

// PollSession installs the clone session of poll reports.
func PollSession() *p4v1.Update { return cloneSession(ids.PollCloneSession, ids.CPUPort) }

func cloneSession(id, port uint32) *p4v1.Update {
	return p4msg.Insert(&p4v1.CloneSessionEntry{SessionId: id, Replicas: p4msg.Replicas(port)})
}
