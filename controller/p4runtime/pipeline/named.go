package pipeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/headgate/headgate/internal/bytestring"
)

// Named is an entity with names instead of ids. Its JSON is for programs, its String for people.
type Named struct {
	Kind     string  `json:"kind"`           // table, default, member, group, multicast, clone, digest, counter, meter, register or extern
	Name     string  `json:"name,omitempty"` // full name of the table, action profile, counter and so on
	ID       *uint64 `json:"id,omitempty"`   // of a member, group or session; the index in a counter, meter or register
	Match    Fields  `json:"match,omitempty"`
	Priority int32   `json:"priority,omitempty"`
	Action   string  `json:"action,omitempty"`
	Params   Fields  `json:"params,omitempty"`
	Use      string  `json:"use,omitempty"` // the member or group of an indirect table's entry: "member 3", "group 1"
	Members  []Share `json:"members,omitempty"`
	Ports    []Copy  `json:"ports,omitempty"`
	// Data are counts, rates in units per second, and other data of the switch about the entity.
	Data Fields `json:"data,omitempty"`
}

// Field is a name and a value as people write it.
type Field struct{ Name, Value string }

// Fields keep their order, in JSON as well.
type Fields []Field

// MarshalJSON implements json.Marshaler: an object with one member for each field.
func (f Fields) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, x := range f {
		name, err := json.Marshal(x.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(x.Value)
		if err != nil {
			return nil, err
		}
		b.WriteByte("{,"[min(i, 1)])
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// String returns the fields as NAME=VALUE with spaces between them.
func (f Fields) String() string { return f.join(" ") }

func (f Fields) join(sep string) string {
	text := make([]string, len(f))
	for i, x := range f {
		text[i] = x.Name + "=" + x.Value
	}
	return strings.Join(text, sep)
}

// Share is a member of a group.
type Share struct {
	Member uint32  `json:"member"`
	Weight int32   `json:"weight"`
	Watch  *uint64 `json:"watch_port,omitempty"` // the member takes part while this port is up
}

// Copy is a port that a multicast group or clone session sends to.
type Copy struct {
	Port     uint64 `json:"port"`
	Instance uint32 `json:"instance"`
}

// Describe returns an entity as one line for people.
func (p *Pipeline) Describe(e *p4v1.Entity) string { return p.Named(e).String() }

// String returns the entity as one line.
func (n Named) String() string {
	text, key := n.Place()
	if key != "" {
		text += " " + key
	}
	if value := n.Value(); value != "" {
		text += " → " + value
	}
	return text
}

// Place returns the entity's container, such as a table, and its key there.
func (n Named) Place() (table, key string) {
	keys := make([]string, 0, 3)
	switch table = n.Kind + " " + n.Name; n.Kind {
	case "table":
		table = n.Name
	case "default":
		table, keys = n.Name, append(keys, "default")
	case "member", "group":
		table, keys = n.Name, append(keys, fmt.Sprintf("%s %d", n.Kind, *n.ID))
	case "multicast":
		table, keys = "multicast group", append(keys, fmt.Sprint(*n.ID))
	case "clone":
		table, keys = "clone session", append(keys, fmt.Sprint(*n.ID))
	case "counter", "meter", "register":
		table = fmt.Sprintf("%s[%d]", n.Name, *n.ID)
	}
	if len(n.Match) > 0 {
		keys = append(keys, n.Match.String())
	}
	if n.Priority != 0 {
		keys = append(keys, fmt.Sprintf("priority %d", n.Priority))
	}
	return table, strings.Join(keys, " ")
}

// Value returns the entity's action or data; "" if it has neither.
func (n Named) Value() string {
	switch {
	case n.Action != "":
		return fmt.Sprintf("%s(%s)", short(n.Action), n.Params.join(", "))
	case n.Use != "":
		return n.Use
	}
	switch n.Kind {
	case "table", "default":
		return ""
	case "group":
		members, watched := make([]string, len(n.Members)), ""
		for i, m := range n.Members {
			members[i] = fmt.Sprint(m.Member)
			if m.Weight > 1 {
				members[i] += fmt.Sprintf("×%d", m.Weight)
			}
			if m.Watch != nil {
				watched = ", while their ports are up"
			}
		}
		return "members " + strings.Join(members, ", ") + watched
	case "multicast", "clone":
		ports := make([]string, len(n.Ports))
		for i, c := range n.Ports {
			ports[i] = fmt.Sprint(c.Port)
		}
		return "ports " + strings.Join(ports, ", ")
	}
	return n.Data.join(", ")
}

// Named returns an entity with names. An id that the program lacks stays a number.
func (p *Pipeline) Named(e *p4v1.Entity) Named {
	switch x := e.GetEntity().(type) {
	case *p4v1.Entity_TableEntry:
		return p.namedEntry(x.TableEntry)
	case *p4v1.Entity_ActionProfileMember:
		m := x.ActionProfileMember
		n := Named{Kind: "member", Name: p.profiles.name(m.GetActionProfileId()), ID: number(m.GetMemberId())}
		n.Action, n.Params = p.namedAction(m.GetAction())
		return n
	case *p4v1.Entity_ActionProfileGroup:
		g := x.ActionProfileGroup
		n := Named{Kind: "group", Name: p.profiles.name(g.GetActionProfileId()), ID: number(g.GetGroupId())}
		for _, m := range g.GetMembers() {
			s := Share{Member: m.GetMemberId(), Weight: max(m.GetWeight(), 1)}
			if w := m.GetWatchPort(); len(w) > 0 {
				s.Watch = number(bytestring.Low64(w))
			}
			n.Members = append(n.Members, s)
		}
		return n
	case *p4v1.Entity_PacketReplicationEngineEntry:
		if c := x.PacketReplicationEngineEntry.GetCloneSessionEntry(); c != nil {
			return Named{Kind: "clone", ID: number(c.GetSessionId()), Ports: copies(c.GetReplicas())}
		}
		m := x.PacketReplicationEngineEntry.GetMulticastGroupEntry()
		return Named{Kind: "multicast", ID: number(m.GetMulticastGroupId()), Ports: copies(m.GetReplicas())}
	case *p4v1.Entity_DigestEntry:
		n := Named{Kind: "digest", Name: p.digests.name(x.DigestEntry.GetDigestId())}
		if c := x.DigestEntry.GetConfig(); c != nil {
			n.Data = Fields{{"max_timeout", time.Duration(c.GetMaxTimeoutNs()).String()}, {"max_list_size", fmt.Sprint(c.GetMaxListSize())}, {"ack_timeout", time.Duration(c.GetAckTimeoutNs()).String()}}
		}
		return n
	case *p4v1.Entity_CounterEntry:
		c := x.CounterEntry
		return Named{Kind: "counter", Name: p.counters.name(c.GetCounterId()), ID: number(uint64(c.GetIndex().GetIndex())), Data: counts(c.GetData())}
	case *p4v1.Entity_MeterEntry:
		m := x.MeterEntry
		return Named{Kind: "meter", Name: p.meters.name(m.GetMeterId()), ID: number(uint64(m.GetIndex().GetIndex())), Data: rates(m.GetConfig())}
	case *p4v1.Entity_RegisterEntry:
		r := x.RegisterEntry
		return Named{Kind: "register", Name: p.regs.name(r.GetRegisterId()), ID: number(uint64(r.GetIndex().GetIndex())),
			Data: Fields{{"value", "0x" + fmt.Sprintf("%x", r.GetData().GetBitstring())}}}
	case *p4v1.Entity_ExternEntry:
		return Named{Kind: "extern", Name: fmt.Sprintf("0x%08x", x.ExternEntry.GetExternId()), Data: structure(x.ExternEntry)}
	}
	return Named{Kind: "entity", Name: fmt.Sprintf("%T", e.GetEntity())}
}

func number[N uint32 | uint64](n N) *uint64 {
	v := uint64(n)
	return &v
}

func copies(list []*p4v1.Replica) []Copy {
	out := make([]Copy, len(list))
	for i, r := range list {
		out[i] = Copy{Port: uint64(r.GetEgressPort()), Instance: r.GetInstance()}
	}
	return out
}

func counts(d *p4v1.CounterData) Fields {
	if d == nil {
		return nil
	}
	return Fields{{"packets", fmt.Sprint(d.GetPacketCount())}, {"bytes", fmt.Sprint(d.GetByteCount())}}
}

func rates(c *p4v1.MeterConfig) Fields {
	if c == nil {
		return nil
	}
	return Fields{{"cir", fmt.Sprint(c.GetCir())}, {"cburst", fmt.Sprint(c.GetCburst())}, {"pir", fmt.Sprint(c.GetPir())}, {"pburst", fmt.Sprint(c.GetPburst())}}
}

// structure returns the fields of contents that describe themselves, a google.protobuf.Struct.
func structure(e *p4v1.ExternEntry) Fields {
	var contents structpb.Struct
	if e.GetEntry().UnmarshalTo(&contents) != nil {
		return nil
	}
	var fields Fields
	for name, v := range contents.AsMap() {
		fields = append(fields, Field{name, fmt.Sprint(v)})
	}
	slices.SortFunc(fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	return fields
}

// name returns the name of an object, or the kind with the id where the program has no such object.
func (x *index[T]) name(id uint32) string {
	if v, ok := x.byID[id]; ok {
		return v.GetPreamble().GetName()
	}
	return fmt.Sprintf("%s 0x%08x", x.kind, id)
}

func (p *Pipeline) namedEntry(e *p4v1.TableEntry) Named {
	n := Named{Kind: "table", Name: p.tables.name(e.GetTableId()), Priority: e.GetPriority()}
	if e.GetIsDefaultAction() {
		n.Kind = "default"
	}
	for _, m := range e.GetMatch() {
		for _, f := range p.tables.byID[e.GetTableId()].GetMatchFields() {
			if f.GetId() == m.GetFieldId() {
				n.Match = append(n.Match, Field{f.GetName(), matchText(m, f)})
			}
		}
	}
	switch a := e.GetAction().GetType().(type) {
	case *p4v1.TableAction_Action:
		n.Action, n.Params = p.namedAction(a.Action)
	case *p4v1.TableAction_ActionProfileMemberId:
		n.Use = fmt.Sprintf("member %d", a.ActionProfileMemberId)
	case *p4v1.TableAction_ActionProfileGroupId:
		n.Use = fmt.Sprintf("group %d", a.ActionProfileGroupId)
	case *p4v1.TableAction_ActionProfileActionSet:
		n.Use = fmt.Sprintf("%d actions", len(a.ActionProfileActionSet.GetActionProfileActions()))
	}
	n.Data = append(counts(e.GetCounterData()), rates(e.GetMeterConfig())...)
	return n
}

func (p *Pipeline) namedAction(a *p4v1.Action) (string, Fields) {
	var args Fields
	for _, param := range a.GetParams() {
		for _, d := range p.actions.byID[a.GetActionId()].GetParams() {
			if d.GetId() == param.GetParamId() {
				args = append(args, Field{d.GetName(), valueText(param.GetValue(), d.GetName(), d.GetBitwidth())})
			}
		}
	}
	return p.actions.name(a.GetActionId()), args
}

func matchText(m *p4v1.FieldMatch, f *p4configv1.MatchField) string {
	show := func(v []byte) string { return valueText(v, f.GetName(), f.GetBitwidth()) }
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

// valueText writes a value for people; name and width decide its form.
func valueText(v []byte, name string, width int32) string {
	addr := strings.Contains(strings.ToLower(name), "addr")
	switch {
	case width == 0: // a translated type, whose values are text (P4Runtime 1.4, section 8.4.6)
		return string(v)
	case addr && width == 32:
		return netip.AddrFrom4([4]byte(padded(v, 32))).String()
	case addr && width == 128:
		return netip.AddrFrom16([16]byte(padded(v, 128))).String()
	case width == 48:
		b := padded(v, 48)
		return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4], b[5])
	case width <= 64:
		return fmt.Sprint(bytestring.Low64(v))
	}
	return fmt.Sprintf("0x%x", v)
}
