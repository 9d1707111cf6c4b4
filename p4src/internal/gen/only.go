package main

import (
	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// kinds are the fields of a P4Info that hold its objects.
func kinds() []protoreflect.Name {
	return []protoreflect.Name{"actions", "tables", "action_profiles", "counters", "direct_counters", "digests", "registers", "controller_packet_metadata"}
}

// objectsOf returns a field of a P4Info that holds objects, to read or to append to.
func objectsOf(info *p4configv1.P4Info, kind protoreflect.Name) protoreflect.List {
	m := info.ProtoReflect()
	return m.Mutable(m.Descriptor().Fields().ByName(kind)).List()
}

// each visits the objects of a kind but the compiler's own NoAction, whose id is of its
// choice.
func each(info *p4configv1.P4Info, kind protoreflect.Name, visit func(*p4configv1.Preamble, protoreflect.Value)) {
	for list, i := objectsOf(info, kind), 0; i < list.Len(); i++ {
		p := list.Get(i).Message().Interface().(interface{ GetPreamble() *p4configv1.Preamble }).GetPreamble()
		if p.GetName() != "NoAction" {
			visit(p, list.Get(i))
		}
	}
}

// preambles returns those of the objects of some kinds, of all when none is named.
func preambles(info *p4configv1.P4Info, of ...protoreflect.Name) []*p4configv1.Preamble {
	if len(of) == 0 {
		of = kinds()
	}
	var list []*p4configv1.Preamble
	for _, k := range of {
		each(info, k, func(p *p4configv1.Preamble, _ protoreflect.Value) { list = append(list, p) })
	}
	return list
}

// onlyIn returns the objects of the P4Infos that base lacks, by name, each once. An object
// that base has too is left out whole.
func onlyIn(infos []*p4configv1.P4Info, base *p4configv1.P4Info) *p4configv1.P4Info {
	seen := map[string]bool{}
	for _, p := range preambles(base) {
		seen[p.GetName()] = true
	}
	only := &p4configv1.P4Info{}
	for _, info := range infos {
		for _, k := range kinds() {
			each(info, k, func(p *p4configv1.Preamble, object protoreflect.Value) {
				if !seen[p.GetName()] {
					seen[p.GetName()] = true
					objectsOf(only, k).Append(object)
				}
			})
		}
	}
	return only
}
