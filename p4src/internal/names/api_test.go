package names

import (
	"fmt"
	"strings"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
)

// object is a named object of a P4Info with its properties by aspect: for a table its id, each field of its key
// and each action.
type object map[string]string

// api lists the objects of a P4Info by kind and name, such as "table ingress.routing.ipv4_lpm". It leaves out
// annotations, scopes of actions that the compiler adds, and initial entries, because none of them affects what a
// controller may write.
func api(info *p4configv1.P4Info) map[string]object {
	all := map[string]object{}
	byID := map[uint32]string{}
	add := func(kind string, p *p4configv1.Preamble) object {
		o := object{"id": fmt.Sprintf("%#08x", p.GetId())}
		all[kind+" "+p.GetName()] = o
		byID[p.GetId()] = p.GetName()
		return o
	}
	for _, a := range info.GetActions() {
		if a.GetPreamble().GetName() == "NoAction" { // the compiler's own object, with an id of the compiler's choice
			byID[a.GetPreamble().GetId()] = "NoAction"
			continue
		}
		o := add("action", a.GetPreamble())
		for _, p := range a.GetParams() {
			o["parameter "+p.GetName()] = fmt.Sprintf("number %d, %d bits", p.GetId(), p.GetBitwidth())
		}
	}
	for _, p := range info.GetActionProfiles() {
		o := add("action profile", p.GetPreamble())
		o["size"] = fmt.Sprint(p.GetSize())
		o["selector"] = fmt.Sprint(p.GetWithSelector())
		o["largest group"] = fmt.Sprint(p.GetMaxGroupSize())
	}
	for _, c := range info.GetCounters() {
		o := add("counter", c.GetPreamble())
		o["unit"], o["size"] = unit(c.GetSpec()), fmt.Sprint(c.GetSize())
	}
	for _, c := range info.GetDirectCounters() {
		add("direct counter", c.GetPreamble())["unit"] = unit(c.GetSpec())
	}
	for _, r := range info.GetRegisters() {
		add("register", r.GetPreamble())["size"] = fmt.Sprint(r.GetSize())
	}
	for _, d := range info.GetDigests() {
		o := add("digest", d.GetPreamble())
		for name, width := range structFields(info, d.GetTypeSpec()) {
			o["field "+name] = width
		}
	}
	for _, h := range info.GetControllerPacketMetadata() {
		o := add("header", h.GetPreamble())
		for _, m := range h.GetMetadata() {
			o["field "+m.GetName()] = fmt.Sprintf("number %d, %d bits", m.GetId(), m.GetBitwidth())
		}
	}
	for _, t := range info.GetTables() {
		describe(add("table", t.GetPreamble()), t, byID)
	}
	return all
}

func describe(o object, t *p4configv1.Table, byID map[uint32]string) {
	o["size"] = fmt.Sprint(t.GetSize())
	for _, f := range t.GetMatchFields() {
		o["key "+f.GetName()] = fmt.Sprintf("number %d, %s, %d bits", f.GetId(), strings.ToLower(f.GetMatchType().String()), f.GetBitwidth())
	}
	for _, a := range t.GetActionRefs() {
		if name := byID[a.GetId()]; name != "NoAction" {
			o["action "+name] = "yes"
		}
	}
	if t.GetImplementationId() != 0 {
		o["implementation"] = byID[t.GetImplementationId()]
	}
	for _, id := range t.GetDirectResourceIds() {
		o["direct resource "+byID[id]] = "yes"
	}
	if t.GetIdleTimeoutBehavior() != p4configv1.Table_NO_TIMEOUT {
		o["idle timeout"] = "yes"
	}
}

func unit(s *p4configv1.CounterSpec) string { return strings.ToLower(s.GetUnit().String()) }

// structFields returns the widths of a digest's members. One compiler writes them as a struct, another as a tuple
// with numbered members.
func structFields(info *p4configv1.P4Info, spec *p4configv1.P4DataTypeSpec) map[string]string {
	fields := map[string]string{}
	width := func(s *p4configv1.P4DataTypeSpec) string {
		return fmt.Sprintf("%d bits", s.GetBitstring().GetBit().GetBitwidth())
	}
	for _, m := range info.GetTypeInfo().GetStructs()[spec.GetStruct().GetName()].GetMembers() {
		fields[m.GetName()] = width(m.GetTypeSpec())
	}
	for i, m := range spec.GetTuple().GetMembers() {
		fields[fmt.Sprint(i+1)] = width(m)
	}
	return fields
}
