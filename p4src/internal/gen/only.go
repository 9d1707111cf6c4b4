package main

import (
	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
)

// onlyIn returns the objects of the P4Infos that base lacks, by name, each once. An object
// that base has too is left out whole.
func onlyIn(infos []*p4configv1.P4Info, base *p4configv1.P4Info) *p4configv1.P4Info {
	seen := map[string]bool{}
	for _, p := range preambles(base) {
		seen[p.GetName()] = true
	}
	fresh := func(p *p4configv1.Preamble) bool {
		known := seen[p.GetName()]
		seen[p.GetName()] = true
		return !known
	}
	only := &p4configv1.P4Info{}
	for _, info := range infos {
		keep(&only.Tables, info.GetTables(), fresh)
		keep(&only.Actions, info.GetActions(), fresh)
		keep(&only.ActionProfiles, info.GetActionProfiles(), fresh)
		keep(&only.Counters, info.GetCounters(), fresh)
		keep(&only.DirectCounters, info.GetDirectCounters(), fresh)
		keep(&only.Digests, info.GetDigests(), fresh)
		keep(&only.Registers, info.GetRegisters(), fresh)
		keep(&only.ControllerPacketMetadata, info.GetControllerPacketMetadata(), fresh)
	}
	return only
}

// named is an object of a P4Info.
type named interface{ GetPreamble() *p4configv1.Preamble }

func keep[T named](to *[]T, from []T, fresh func(*p4configv1.Preamble) bool) {
	for _, x := range from {
		if fresh(x.GetPreamble()) {
			*to = append(*to, x)
		}
	}
}

// preambles returns the preamble of every object of a P4Info but the compiler's own
// NoAction, whose id is of its choice.
func preambles(info *p4configv1.P4Info) []*p4configv1.Preamble {
	var list []*p4configv1.Preamble
	for _, x := range info.GetActions() {
		if x.GetPreamble().GetName() != "NoAction" {
			list = append(list, x.GetPreamble())
		}
	}
	list = add(list, info.GetTables())
	list = add(list, info.GetActionProfiles())
	list = add(list, info.GetCounters())
	list = add(list, info.GetDirectCounters())
	list = add(list, info.GetDigests())
	list = add(list, info.GetRegisters())
	return add(list, info.GetControllerPacketMetadata())
}

func add[T named](list []*p4configv1.Preamble, objects []T) []*p4configv1.Preamble {
	for _, x := range objects {
		list = append(list, x.GetPreamble())
	}
	return list
}
