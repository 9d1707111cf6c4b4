package control

import (
	"net"
	"net/netip"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/cnpgen/flowtable"
	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tables/red"
	"github.com/headgate/headgate/units"
)

// Class maps a DSCP to a traffic class and queue.
func Class(dscp, class, queue uint64) *p4v1.Update {
	return p4rtmsg.Insert(p4rtmsg.Entry(ids.TableDSCPToClass, 0, p4rtmsg.Do(ids.ActionSetClass, class, queue), p4rtmsg.Exact(ids.FieldDSCPToClassDSCP, dscp)))
}

// PortClass maps a DSCP of packets from one ingress port to a traffic class and queue.
func PortClass(port uint32, dscp, class, queue uint64) *p4v1.Update {
	return p4rtmsg.Insert(p4rtmsg.Entry(ids.TableClassByPort, 0, p4rtmsg.Do(ids.ActionSetClass, class, queue),
		p4rtmsg.Exact(ids.FieldClassByPortIngressPort, uint64(port)), p4rtmsg.Exact(ids.FieldClassByPortDSCP, dscp)))
}

// Member makes a next hop.
func Member(id uint32, port uint32, src, dst net.HardwareAddr) *p4v1.Update {
	return p4rtmsg.Insert(&p4v1.ActionProfileMember{
		ActionProfileId: ids.ProfileECMP, MemberId: id,
		Action: p4rtmsg.Action(ids.ActionSetNextHop, uint64(port), bytestring.Low64(src), bytestring.Low64(dst)),
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
	return p4rtmsg.Insert(g)
}

// Route sends a prefix to a group.
func Route(prefix netip.Prefix, group uint32) *p4v1.Update {
	table, field := uint32(ids.TableIPv4LPM), uint32(ids.FieldIPv4LPMDstAddr)
	if prefix.Addr().Is6() {
		table, field = ids.TableIPv6LPM, ids.FieldIPv6LPMDstAddr
	}
	e := p4rtmsg.Entry(table, 0, &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileGroupId{ActionProfileGroupId: group}})
	if prefix.Bits() > 0 {
		e.Match = []*p4v1.FieldMatch{p4rtmsg.LPM(field, prefix.Masked().Addr().AsSlice(), int32(prefix.Bits()))}
	}
	return p4rtmsg.Insert(e)
}

// PuntEtherType sends frames of an EtherType to the controller.
func PuntEtherType(etherType, reason uint64) *p4v1.Update {
	return Punt(p4rtmsg.Ternary(ids.FieldPuntTableEtherType, etherType, 0xffff), reason)
}

// Punt sends matching packets to the controller.
func Punt(m *p4v1.FieldMatch, reason uint64) *p4v1.Update {
	return p4rtmsg.Insert(p4rtmsg.Entry(ids.TablePuntTable, 1, p4rtmsg.Do(ids.ActionPuntToCPU, reason), m))
}

// QueueLimit bounds the bytes of a queue.
func QueueLimit(port uint32, queue uint64, bytes uint64) *p4v1.Update {
	return p4rtmsg.Insert(p4rtmsg.Entry(ids.TableQueueLimit, 0, p4rtmsg.Do(ids.ActionSetQueueLimit, bytes),
		p4rtmsg.Exact(ids.FieldQueueLimitEgressPort, uint64(port)), p4rtmsg.Exact(ids.FieldQueueLimitQueue, queue)))
}

// Depth is the unit of depths in the program's table of marks: bytes.
var Depth = red.DepthOf(32)

// Marking returns the entries of a curve. By default a queue has the curve with the queue's number.
func Marking(curve uint64, entries []red.Entry) []*p4v1.Update {
	var updates []*p4v1.Update
	for _, e := range entries {
		match := []*p4v1.FieldMatch{p4rtmsg.Exact(ids.FieldECNREDCurve, curve)}
		if e.Low != 0 || e.High != Depth.Max {
			match = append(match, p4rtmsg.Range(ids.FieldECNREDDepth, uint64(e.Low), uint64(e.High)))
		}
		updates = append(updates, p4rtmsg.Insert(p4rtmsg.Entry(ids.TableECNRED, 1, p4rtmsg.Do(ids.ActionSetMarkProbability, uint64(e.P)), match...)))
	}
	return updates
}

// Curve gives a port's queue another curve than the one with the queue's number.
func Curve(port uint32, queue, curve uint64) *p4v1.Update {
	return p4rtmsg.Insert(p4rtmsg.Entry(ids.TableECNCurve, 0, p4rtmsg.Do(ids.ActionSetCurve, curve),
		p4rtmsg.Exact(ids.FieldECNCurveEgressPort, uint64(port)), p4rtmsg.Exact(ids.FieldECNCurveQueue, queue)))
}

// Scale sets the shift from clock ticks to maxQD units.
func Scale(shift uint64) *p4v1.Update {
	return SetDefault(ids.TableMaxQDScale, p4rtmsg.Do(ids.ActionSetScale, shift))
}

// DisableStamping leaves maxQD shims alone.
func DisableStamping() *p4v1.Update {
	return SetDefault(ids.TableMaxQDScale, p4rtmsg.Do(ids.ActionDisableStamping))
}

// SetDefault makes an action a table's default.
func SetDefault(table uint32, a *p4v1.TableAction) *p4v1.Update {
	return p4rtmsg.Modify(&p4v1.TableEntry{TableId: table, IsDefaultAction: true, Action: a})
}

// PollSession installs the clone session of poll reports.
func PollSession() *p4v1.Update { return CloneSession(ids.PollCloneSession, ids.CPUPort) }

// CloneSession installs a clone session with one port.
func CloneSession(id, port uint32) *p4v1.Update {
	return p4rtmsg.Insert(&p4v1.CloneSessionEntry{SessionId: id, Replicas: p4rtmsg.Replicas(port)})
}

// WatchQueue makes PACC watch a queue of a port; packets that find more than threshold
// bytes in it are congested.
func WatchQueue(port uint32, queue uint8, threshold units.Bytes) *p4v1.Update {
	return p4rtmsg.Insert(flowtable.Watched{Port: port, Queue: queue, Threshold: threshold}.Entry())
}

// LearnFlow puts a flow into both of PACC's tables; it ages after idle, 0 for never.
func LearnFlow(f cnpgen.Flow, idle time.Duration) []*p4v1.Update {
	both := flowtable.FlowEntries(f, idle)
	return []*p4v1.Update{p4rtmsg.Insert(both[0]), p4rtmsg.Insert(both[1])}
}
