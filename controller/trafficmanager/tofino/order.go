package tofino

import (
	"strings"

	"github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt"
)

// phase is a step of an Apply. The steps are ordered so that every lossless packet has headroom at
// each step: a step that frees memory for headroom precedes the step that needs it, and a step that
// takes memory from headroom follows the step that reduces the need. A falling threshold or a
// shrinking shared pool only pauses sooner.
type phase uint8

const (
	freeClasses    phase = iota // take classes from extra groups that hold them
	raiseCeiling                // raise the limits of ingress as a whole
	shrinkShared                // the shared pool gives cells to headroom; ports pause sooner
	shrinkLeast                 // guarantees give cells to headroom
	growHeadroom                // headroom of the pool grows
	growPorts                   // headroom of ports grows
	growGroups                  // headroom of groups grows; new groups get no class yet
	admitEgress                 // egress queues stop dropping lossless packets
	takeClasses                 // groups get their classes
	makeLossless                // groups get PFC
	setThresholds               // set the thresholds of all groups
	openMAC                     // MACs allow both forms of PAUSE while one replaces the other
	setFlowControl              // ports send the configured form of PAUSE
	closeMAC
	drained        // wait until headroom that will shrink is empty
	shrinkGroups   // headroom of groups shrinks
	shrinkPorts    // headroom of ports shrinks
	releaseGroups  // remove extra groups
	shrinkHeadroom // headroom of the pool shrinks
	growLeast      // guarantees grow by the cells that headroom and the shared pool gave up
	growShared     // the shared pool grows by the remaining cells
	lowerCeiling   // lower the limits of ingress as a whole
	boundQueues    // lossy queues, the scheduler and filters of the program
	phases         // number of phases
)

func (p phase) String() string {
	return [...]string{
		"free classes", "raise the bound of ingress", "shrink the shared pool", "shrink guarantees", "grow the headroom pool", "grow the headroom of ports",
		"grow the headroom of groups", "set egress queues", "give groups their classes", "make groups lossless", "set thresholds",
		"open MACs for PAUSE", "set flow control", "close MACs for PAUSE", "wait for headroom", "shrink the headroom of groups",
		"shrink the headroom of ports", "release groups", "shrink the headroom pool", "grow guarantees", "grow the shared pool", "lower the bound of ingress", "bound queues",
	}[p]
}

// batch holds the rows of one write.
type batch struct {
	phase   phase
	changes []bfrt.Change
	drain   []uint32 // ports whose headroom must be empty before the write
}

// part holds the fields of a row that one phase writes.
type part struct {
	phase  phase
	op     bfrt.Operation
	fields bfrt.Fields
}

// order sorts diffs into batches, in the order of phases.
func order(diffs []diff) []batch {
	all := make([]batch, phases)
	for i := range all {
		all[i].phase = phase(i)
	}
	for i := range diffs {
		d := &diffs[i]
		for _, p := range d.parts() {
			s := &all[p.phase]
			row := d.Row
			row.Data = p.fields
			if p.op == bfrt.Delete {
				row.Action, row.Data = "", nil
			}
			s.changes = append(s.changes, bfrt.Change{Operation: p.op, Row: row})
			if !d.lossy && (p.phase == shrinkGroups || p.phase == shrinkPorts) {
				all[drained].drain = append(all[drained].drain, d.portNumber())
			}
		}
	}
	var out []batch
	for _, s := range all {
		if len(s.changes)+len(s.drain) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// portNumber returns the port of a row of a group or port.
func (d *diff) portNumber() uint32 {
	if d.Table == tableGroup {
		return d.port
	}
	return uint32(d.Key.Uint("dev_port"))
}

// parts splits a diff by phase.
func (d *diff) parts() []part {
	switch {
	case d.remove && d.first:
		return []part{{freeClasses, bfrt.Delete, nil}}
	case d.remove:
		return []part{{shrinkLeast, bfrt.Modify, bfrt.Fields{number("guaranteed_cells", 0)}}, {releaseGroups, bfrt.Delete, nil}}
	case d.Table == tableFlow:
		return []part{{setFlowControl, bfrt.Modify, d.Data}} // all fields: the chip needs them with the map of classes
	case d.filter:
		return []part{{boundQueues, bfrt.Modify, d.Data}} // all of its fields are mandatory
	case d.Table == tableGroup && !d.exist:
		return d.insert()
	case d.Table == tableMAC:
		return d.mac()
	}
	var parts []part
	for _, f := range d.fields {
		at := d.phaseOf(f)
		if n := len(parts); n > 0 && parts[n-1].phase == at {
			parts[n-1].fields = append(parts[n-1].fields, bfrt.Named{Name: f.name, Value: f.new})
			continue
		}
		parts = append(parts, part{at, bfrt.Modify, bfrt.Fields{{Name: f.name, Value: f.new}}})
	}
	return parts
}

// insert creates a group with its headroom and thresholds, then gives it its class, and then PFC. PFC comes last
// because the chip enables it for the classes that the group has at that moment.
func (d *diff) insert() []part {
	first := bfrt.Fields{number("dev_port", uint64(d.port))}
	var class, pfc, least bfrt.Fields
	for _, n := range d.Data {
		switch {
		case n.Name == "pfc_enable":
			pfc = append(pfc, n)
		case n.Name == "guaranteed_cells":
			least = append(least, n)
		case !strings.HasPrefix(n.Name, "icos_"):
			first = append(first, n)
		case n.Value == true:
			class = append(class, n)
		}
	}
	return []part{{growGroups, bfrt.Insert, first}, {takeClasses, bfrt.Modify, class}, {makeLossless, bfrt.Modify, pfc}, {growLeast, bfrt.Modify, least}}
}

// mac enables PFC for the desired classes before flow control changes, and disables it for the others afterwards.
func (d *diff) mac() []part {
	open, shut := part{openMAC, bfrt.Modify, nil}, part{closeMAC, bfrt.Modify, nil}
	for _, f := range d.fields {
		both := f.new
		if x, ok := f.new.(uint64); ok {
			have, _ := f.have.(uint64)
			both = x | have
		} else if f.have == true {
			both = f.have
		}
		if both != f.have {
			open.fields = append(open.fields, bfrt.Named{Name: f.name, Value: both})
		}
		if both != f.new {
			shut.fields = append(shut.fields, bfrt.Named{Name: f.name, Value: f.new})
		}
	}
	var parts []part
	for _, p := range []part{open, shut} {
		if len(p.fields) > 0 {
			parts = append(parts, p)
		}
	}
	return parts
}

// phaseOf returns the phase in which a field is written.
func (d *diff) phaseOf(f field) phase {
	either := func(grow, shrink phase) phase {
		if f.grows() {
			return grow
		}
		return shrink
	}
	switch d.Table {
	case tableChip:
		return either(raiseCeiling, lowerCeiling)
	case tablePool:
		switch d.Key.Text("pool") {
		case minPool:
			return either(raiseCeiling, lowerCeiling)
		case skidPool:
			return either(growHeadroom, shrinkHeadroom)
		}
		return either(growShared, shrinkShared)
	case tableAppPFC:
		return either(growShared, shrinkShared)
	case tablePort:
		return either(growPorts, shrinkPorts)
	case tableDefault, tableGroup:
		switch {
		case f.name == "guaranteed_cells":
			return either(growLeast, shrinkLeast)
		case f.name == "pfc_skid_max_cells":
			return either(growGroups, shrinkGroups)
		case f.name == "pfc_enable":
			return makeLossless
		case strings.HasPrefix(f.name, "icos_"):
			return takeClasses
		}
		return setThresholds
	case tableQueue:
		return admitEgress
	case tableEgress:
		if f.name == "tail_drop_enable" && f.new == false {
			return admitEgress
		}
	}
	return boundQueues
}
