package pipeline

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/headgate/headgate/internal/canon"
)

// Describe returns an entity as one line for people, with names instead of ids.
func (p *Pipeline) Describe(e *p4v1.Entity) string {
	switch x := e.GetEntity().(type) {
	case *p4v1.Entity_TableEntry:
		return p.describeEntry(x.TableEntry)
	case *p4v1.Entity_ActionProfileMember:
		m := x.ActionProfileMember
		return fmt.Sprintf("%s member %d → %s", p.profileName(m.GetActionProfileId()), m.GetMemberId(), p.describeAction(m.GetAction()))
	case *p4v1.Entity_ActionProfileGroup:
		return p.describeGroup(x.ActionProfileGroup)
	case *p4v1.Entity_PacketReplicationEngineEntry:
		if c := x.PacketReplicationEngineEntry.GetCloneSessionEntry(); c != nil {
			return fmt.Sprintf("clone session %d → ports %s", c.GetSessionId(), ports(c.GetReplicas()))
		}
		m := x.PacketReplicationEngineEntry.GetMulticastGroupEntry()
		return fmt.Sprintf("multicast group %d → ports %s", m.GetMulticastGroupId(), ports(m.GetReplicas()))
	case *p4v1.Entity_DigestEntry:
		name := fmt.Sprintf("0x%08x", x.DigestEntry.GetDigestId())
		if d, err := p.digests.id(x.DigestEntry.GetDigestId()); err == nil {
			name = d.GetPreamble().GetName()
		}
		return "digest " + name
	case *p4v1.Entity_ExternEntry:
		return describeExtern(x.ExternEntry)
	}
	return fmt.Sprintf("%T", e.GetEntity())
}

// describeExtern shows the fields of contents that describe themselves, a google.protobuf.Struct.
func describeExtern(e *p4v1.ExternEntry) string {
	text := fmt.Sprintf("extern 0x%08x", e.GetExternId())
	var contents structpb.Struct
	if e.GetEntry().UnmarshalTo(&contents) != nil {
		return text
	}
	var fields []string
	for name, v := range contents.AsMap() {
		fields = append(fields, fmt.Sprintf("%s=%v", name, v))
	}
	slices.Sort(fields)
	return text + " → " + strings.Join(fields, ", ")
}

func ports(list []*p4v1.Replica) string {
	text := make([]string, len(list))
	for i, r := range list {
		text[i] = fmt.Sprint(r.GetEgressPort())
	}
	return strings.Join(text, ", ")
}

func (p *Pipeline) profileName(id uint32) string {
	if prof, err := p.profiles.id(id); err == nil {
		return prof.GetPreamble().GetName()
	}
	return fmt.Sprintf("action profile 0x%08x", id)
}

func (p *Pipeline) describeGroup(g *p4v1.ActionProfileGroup) string {
	members := make([]string, len(g.GetMembers()))
	for i, m := range g.GetMembers() {
		members[i] = fmt.Sprint(m.GetMemberId())
		if m.GetWeight() > 1 {
			members[i] += fmt.Sprintf("×%d", m.GetWeight())
		}
	}
	watched := ""
	if slices.ContainsFunc(g.GetMembers(), func(m *p4v1.ActionProfileGroup_Member) bool { return len(m.GetWatchPort()) > 0 }) {
		watched = ", while their ports are up"
	}
	return fmt.Sprintf("%s group %d → members %s%s", p.profileName(g.GetActionProfileId()), g.GetGroupId(), strings.Join(members, ", "), watched)
}

func (p *Pipeline) describeEntry(e *p4v1.TableEntry) string {
	t, err := p.tables.id(e.GetTableId())
	if err != nil {
		return fmt.Sprintf("table 0x%08x", e.GetTableId())
	}
	var b strings.Builder
	b.WriteString(t.GetPreamble().GetName())
	if e.GetIsDefaultAction() {
		b.WriteString(" default")
	}
	for _, m := range e.GetMatch() {
		for _, f := range t.GetMatchFields() {
			if f.GetId() == m.GetFieldId() {
				fmt.Fprintf(&b, " %s=%s", f.GetName(), describeMatch(m, f))
			}
		}
	}
	if e.GetPriority() != 0 {
		fmt.Fprintf(&b, " priority %d", e.GetPriority())
	}
	b.WriteString(" → ")
	switch a := e.GetAction().GetType().(type) {
	case *p4v1.TableAction_Action:
		b.WriteString(p.describeAction(a.Action))
	case *p4v1.TableAction_ActionProfileMemberId:
		fmt.Fprintf(&b, "member %d", a.ActionProfileMemberId)
	case *p4v1.TableAction_ActionProfileGroupId:
		fmt.Fprintf(&b, "group %d", a.ActionProfileGroupId)
	case *p4v1.TableAction_ActionProfileActionSet:
		fmt.Fprintf(&b, "%d actions", len(a.ActionProfileActionSet.GetActionProfileActions()))
	default:
		b.WriteString("nothing")
	}
	return b.String()
}

func describeMatch(m *p4v1.FieldMatch, f *p4configv1.MatchField) string {
	show := func(v []byte) string { return describeValue(v, f.GetName(), f.GetBitwidth()) }
	switch x := m.GetFieldMatchType().(type) {
	case *p4v1.FieldMatch_Exact_:
		return show(x.Exact.GetValue())
	case *p4v1.FieldMatch_Optional_:
		return show(x.Optional.GetValue())
	case *p4v1.FieldMatch_Lpm:
		return fmt.Sprintf("%s/%d", show(x.Lpm.GetValue()), x.Lpm.GetPrefixLen())
	case *p4v1.FieldMatch_Ternary_:
		return fmt.Sprintf("0x%x&0x%x", x.Ternary.GetValue(), x.Ternary.GetMask())
	case *p4v1.FieldMatch_Range_:
		return show(x.Range.GetLow()) + ".." + show(x.Range.GetHigh())
	}
	return "?"
}

// describeValue guesses from name and width what people call a value.
func describeValue(v []byte, name string, width int32) string {
	switch {
	case width == 32 && strings.Contains(name, "addr"):
		return netip.AddrFrom4([4]byte(padded(v, 32))).String()
	case width == 48:
		b := padded(v, 48)
		return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4], b[5])
	case width <= 64:
		return fmt.Sprint(canon.Low64(v))
	}
	return fmt.Sprintf("0x%x", v)
}

func (p *Pipeline) describeAction(a *p4v1.Action) string {
	info, err := p.actions.id(a.GetActionId())
	if err != nil {
		return fmt.Sprintf("action 0x%08x", a.GetActionId())
	}
	var args []string
	for _, param := range a.GetParams() {
		for _, d := range info.GetParams() {
			if d.GetId() == param.GetParamId() {
				args = append(args, fmt.Sprintf("%s=%s", d.GetName(), describeValue(param.GetValue(), d.GetName(), d.GetBitwidth())))
			}
		}
	}
	return fmt.Sprintf("%s(%s)", short(info.GetPreamble().GetName()), strings.Join(args, ", "))
}
