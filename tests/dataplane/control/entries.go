package control

import (
	"encoding/binary"
	"net"
	"net/netip"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tables/red"
)

// number returns a value in P4Runtime's canonical form: big-endian without leading zeros,
// and one zero byte for 0.
func number(v uint64) []byte { return bytesOf(binary.BigEndian.AppendUint64(nil, v)) }

func bytesOf(b []byte) []byte {
	for len(b) > 1 && b[0] == 0 {
		b = b[1:]
	}
	return b
}

func insert(e *p4v1.Entity) *p4v1.Update {
	return &p4v1.Update{Type: p4v1.Update_INSERT, Entity: e}
}

func action(id uint32, args ...[]byte) *p4v1.Action {
	a := &p4v1.Action{ActionId: id}
	for i, arg := range args {
		a.Params = append(a.Params, &p4v1.Action_Param{ParamId: uint32(i + 1), Value: arg})
	}
	return a
}

func entry(e *p4v1.TableEntry) *p4v1.Entity {
	return &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: e}}
}

func direct(a *p4v1.Action) *p4v1.TableAction {
	return &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: a}}
}

func exact(field uint32, v uint64) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldId: field, FieldMatchType: &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: number(v)}}}
}

func ternary(field uint32, v, mask uint64) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldId: field, FieldMatchType: &p4v1.FieldMatch_Ternary_{
		Ternary: &p4v1.FieldMatch_Ternary{Value: number(v), Mask: number(mask)}}}
}

// Class maps a DSCP to a traffic class and queue.
func Class(dscp, class, queue uint64) *p4v1.Update {
	return insert(entry(&p4v1.TableEntry{
		TableId: ids.TableDSCPToClass,
		Match:   []*p4v1.FieldMatch{exact(ids.FieldDSCPToClassDSCP, dscp)},
		Action:  direct(action(ids.ActionSetClass, number(class), number(queue))),
	}))
}

// Member makes a next hop.
func Member(id uint32, port uint32, src, dst net.HardwareAddr) *p4v1.Update {
	return insert(&p4v1.Entity{Entity: &p4v1.Entity_ActionProfileMember{ActionProfileMember: &p4v1.ActionProfileMember{
		ActionProfileId: ids.ProfileECMP, MemberId: id,
		Action: action(ids.ActionSetNextHop, number(uint64(port)), bytesOf(src), bytesOf(dst)),
	}}})
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
	return insert(&p4v1.Entity{Entity: &p4v1.Entity_ActionProfileGroup{ActionProfileGroup: g}})
}

// Route sends a prefix to a group.
func Route(prefix netip.Prefix, group uint32) *p4v1.Update {
	e := &p4v1.TableEntry{
		TableId: ids.TableIPv4LPM,
		Action:  &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileGroupId{ActionProfileGroupId: group}},
	}
	if prefix.Bits() > 0 {
		e.Match = []*p4v1.FieldMatch{{FieldId: ids.FieldIPv4LPMDstAddr, FieldMatchType: &p4v1.FieldMatch_Lpm{
			Lpm: &p4v1.FieldMatch_LPM{Value: bytesOf(prefix.Masked().Addr().AsSlice()), PrefixLen: int32(prefix.Bits())}}}}
	}
	return insert(entry(e))
}

// PuntEtherType sends frames of an EtherType to the controller.
func PuntEtherType(etherType, reason uint64) *p4v1.Update {
	return punt(ternary(ids.FieldPuntTableEtherType, etherType, 0xffff), reason)
}

// PuntAddress sends packets to an IPv4 address to the controller.
func PuntAddress(addr netip.Addr, reason uint64) *p4v1.Update {
	return punt(ternary(ids.FieldPuntTableDstAddr, uint64(binary.BigEndian.Uint32(addr.AsSlice())), 0xffffffff), reason)
}

func punt(m *p4v1.FieldMatch, reason uint64) *p4v1.Update {
	return insert(entry(&p4v1.TableEntry{
		TableId: ids.TablePuntTable, Match: []*p4v1.FieldMatch{m}, Priority: 1,
		Action: direct(action(ids.ActionPuntToCPU, number(reason))),
	}))
}

// QueueLimit bounds the bytes of a queue.
func QueueLimit(port uint32, queue uint64, bytes uint64) *p4v1.Update {
	return insert(entry(&p4v1.TableEntry{
		TableId: ids.TableQueueLimit,
		Match:   []*p4v1.FieldMatch{exact(ids.FieldQueueLimitEgressPort, uint64(port)), exact(ids.FieldQueueLimitQueue, queue)},
		Action:  direct(action(ids.ActionSetQueueLimit, number(bytes))),
	}))
}

// DefaultQueueLimit bounds the bytes of every queue that has no limit of its own.
func DefaultQueueLimit(bytes uint64) *p4v1.Update {
	return setDefault(ids.TableQueueLimit, action(ids.ActionSetQueueLimit, number(bytes)))
}

// Marking marks packets of a queue by a curve's entries.
func Marking(queue uint64, entries []red.Entry) []*p4v1.Update {
	var updates []*p4v1.Update
	for _, e := range entries {
		match := []*p4v1.FieldMatch{exact(ids.FieldECNREDQueue, queue)}
		if e.Low != 0 || e.High != ids.Saturated16 {
			match = append(match, &p4v1.FieldMatch{FieldId: ids.FieldECNREDDepth, FieldMatchType: &p4v1.FieldMatch_Range_{
				Range: &p4v1.FieldMatch_Range{Low: number(uint64(e.Low)), High: number(uint64(e.High))}}})
		}
		updates = append(updates, insert(entry(&p4v1.TableEntry{
			TableId: ids.TableECNRED, Match: match, Priority: 1,
			Action: direct(action(ids.ActionSetMarkProbability, number(uint64(e.P)))),
		})))
	}
	return updates
}

// Scale sets the shift from clock ticks to maxQD units.
func Scale(shift uint64) *p4v1.Update {
	return setDefault(ids.TableMaxQDScale, action(ids.ActionSetScale, number(shift)))
}

// DisableStamping leaves maxQD shims alone.
func DisableStamping() *p4v1.Update {
	return setDefault(ids.TableMaxQDScale, action(ids.ActionDisableStamping))
}

// Source permits a source at a port, or refuses all others there; the zero address is those.
func Source(port uint32, permitted netip.Addr) *p4v1.Update {
	e := &p4v1.TableEntry{TableId: ids.TableSourceCheck, Match: []*p4v1.FieldMatch{exact(ids.FieldSourceCheckIngressPort, uint64(port))}, Action: direct(action(ids.ActionRefuseSource))}
	if permitted.IsValid() {
		e.Match = append(e.Match, &p4v1.FieldMatch{FieldId: ids.FieldSourceCheckSrcAddr, FieldMatchType: &p4v1.FieldMatch_Lpm{
			Lpm: &p4v1.FieldMatch_LPM{Value: permitted.AsSlice(), PrefixLen: 32}}})
		e.Action = direct(action(ids.ActionPermitSource))
	}
	return insert(entry(e))
}

// PuntLimit lets a port send the controller a frame each interval, or by tolerance earlier, in
// microseconds.
func PuntLimit(interval, tolerance uint64) *p4v1.Update {
	return setDefault(ids.TablePuntLimit, action(ids.ActionSetPuntLimit, number(interval), number(tolerance)))
}

func setDefault(table uint32, a *p4v1.Action) *p4v1.Update {
	return &p4v1.Update{Type: p4v1.Update_MODIFY, Entity: entry(&p4v1.TableEntry{TableId: table, IsDefaultAction: true, Action: direct(a)})}
}

// PollSession installs the clone session of poll reports.
func PollSession() *p4v1.Update { return cloneSession(ids.PollCloneSession, ids.CPUPort) }

func cloneSession(id, port uint32) *p4v1.Update {
	return insert(&p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{
		PacketReplicationEngineEntry: &p4v1.PacketReplicationEngineEntry{
			Type: &p4v1.PacketReplicationEngineEntry_CloneSessionEntry{CloneSessionEntry: &p4v1.CloneSessionEntry{
				SessionId: id, Replicas: []*p4v1.Replica{{EgressPort: port, Instance: 1}},
			}}}}})
}
