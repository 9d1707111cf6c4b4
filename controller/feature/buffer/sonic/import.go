package sonic

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/controller/feature/buffer"
	"github.com/headgate/headgate/controller/feature/pfcwatchdog"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/units"
)

// Imported is the result of an Import.
type Imported struct {
	// Sections are buffer, qos and pfc_watchdog of a fabric file.
	Sections []byte
	// Ports is the list ports of the switch in that file, "" where ports do not differ.
	Ports string
	// Warnings name the values that the argument approximate of Import changed.
	Warnings []string
	// Left names the rows of buffer and class tables that are not imported, with the reason.
	Left []string
}

type importer struct {
	report
	db    DB
	sw    string
	taken map[string]bool // paths of values
	notes []string        // the notes in Imported.Left, which has values too

	groups map[string][headroom.Classes]string // keys of BUFFER_PG by port and priority group
	ports  []string                            // ports under PFC, sorted
	h      headroom.Config
	class  [dscps]qos.Class
	own    []uint8 // lossless classes of each port
	maps   []qos.PortMap
	weight externs.Weights
	ecn    []qos.ECN
	dog    pfcwatchdog.Config
}

// Import returns the sections of a fabric file that correspond to the tables of a CONFIG_DB: when each queue is
// paused or refuses a packet, at the ingress. A setting that the sections cannot express is an error, a
// *yamlnode.Error that names table, key and field; with approximate the nearest value is used, if there is one. Other
// settings of these tables are listed in Imported.Left. Tables for other purposes are ignored. The vendor's profiles
// (buffer.ParseProfiles) are put into the section buffer. sw is the switch's name in the fabric file.
func Import(file, sw string, text []byte, approximate bool, profiles ...buffer.HeadroomProfile) (*Imported, error) {
	r := newImporter(text, approximate)
	r.sw = sw
	for _, step := range []func(){r.links, r.classes, r.buffer, r.queues, r.schedulers, r.marks, r.watch} {
		if !r.broken {
			step()
		}
	}
	if err := yamlnode.NewError(file, merged(r.faults), maxFaults); err != nil {
		return nil, err
	}
	return &Imported{r.sections(profiles), r.portItems(), r.warnings, r.left()}, nil
}

func newImporter(text []byte, approximate bool) *importer {
	r := &importer{report: report{approximate: approximate, done: "imported", line: func(string) int { return 0 }}, taken: map[string]bool{}}
	r.db, r.faults = read(text, append(slices.Sorted(maps.Keys(known)), tablePort)...)
	r.broken = len(r.faults) > 0
	return r
}

// number returns a value as a number; low if it is not a number in range.
func (r *importer) number(low, high int64, table, key, field string) int64 {
	v, ok := r.get(table, key, field)
	n, err := strconv.ParseInt(v, 10, 64)
	allowed := fmt.Sprintf("%d to %d", low, high)
	if low == high {
		allowed = fmt.Sprint(low)
	}
	switch {
	case !ok:
		r.fault(path(table, key, field), "is missing, want %s", allowed)
	case err != nil || n < low || n > high:
		r.fault(path(table, key, field), "is %q, want %s", v, allowed)
	default:
		return n
	}
	return low
}

// maxBytes is the most that a section buffer takes.
const maxBytes = 2 * units.GB

func (r *importer) bytes(table, key, field string) units.Bytes {
	return units.Bytes(r.number(0, int64(maxBytes), table, key, field))
}

// at is a setting with its place.
type at[T any] struct {
	path string
	is   T
}

// same returns the value that all rows have, or pick's choice if they differ.
func same[T cmp.Ordered](r *importer, list []at[T], pick func([]T) T) T {
	var all []T
	for _, a := range list {
		all = append(all, a.is)
	}
	best := pick(all)
	where := list[slices.Index(all, best)].path
	for _, a := range list {
		if a.is != best {
			r.unlike(a.path, text(a.is), fmt.Sprintf("%s as %s: a switch has one", text(best), where), text(best))
			break
		}
	}
	return best
}

// text returns a value as a CONFIG_DB has it.
func text(v any) string {
	switch v := v.(type) {
	case units.Bytes:
		return amount(v)
	case time.Duration:
		return millis(v)
	}
	return fmt.Sprint(v)
}

// links reads the ports that take part in PFC, to which the policy applies, the lossless classes, and the links.
func (r *importer) links() {
	r.rows()
	all, without := map[string]bool{}, map[string][]string{}
	for _, names := range []iter.Seq[string]{maps.Keys(r.db[tablePort]), maps.Keys(r.db[tablePortQoS]), maps.Keys(r.groups)} {
		for port := range names {
			all[port] = true
		}
	}
	delete(all, "global")
	for _, port := range slices.Sorted(maps.Keys(all)) {
		why := r.without(port)
		if why == "" {
			r.ports = append(r.ports, port)
			continue
		}
		without[why] = append(without[why], port)
		row, _ := r.cable(port)
		r.take(tablePortQoS, port)
		r.take(tablePFCWD, port)
		r.get(tableCable, row, port)
		for _, key := range r.groups[port] {
			r.take(tableProfile, name(r.db[tablePG][key]["profile"]))
		}
	}
	for _, table := range []string{tablePG, tableQueue} {
		for key := range r.db[table] {
			if ports, _, _, ok := members(key); ok && !slices.ContainsFunc(ports, r.has) {
				r.take(table, key)
			}
		}
	}
	var reasons []string
	for _, why := range slices.Sorted(maps.Keys(without)) {
		reasons = append(reasons, portList(without[why])+" ("+why+")")
	}
	if len(reasons) > 0 {
		r.notes = append(r.notes, "ports without PFC: "+strings.Join(reasons, ", ")+": the policy is that of the other ports")
	}
	if len(r.ports) == 0 {
		r.fault(tablePortQoS, "has no port with PFC: %s", cmp.Or(strings.Join(reasons, ", "), "it has no port"))
		return
	}
	if len(r.ports) > headroom.MaxPorts {
		r.fault(tablePortQoS, "has %d ports, want at most %d", len(r.ports), headroom.MaxPorts)
		return
	}
	var mtu []at[int64]
	var asym []string
	for _, port := range r.ports {
		value, _ := r.get(tablePortQoS, port, "pfc_enable")
		mask, ok := classList(value)
		if !ok {
			r.fault(path(tablePortQoS, port, "pfc_enable"), "is %q, want classes under PFC, such as 3,4", value)
		}
		r.own, r.h.Lossless = append(r.own, mask), r.h.Lossless|mask
		size := at[int64]{path(tablePort, port, "mtu"), defaultFrame}
		if _, given := r.db[tablePort][port]["mtu"]; given {
			size.is = r.number(int64(minFrame), int64(maxFrame), tablePort, port, "mtu")
		}
		mtu = append(mtu, size)
		r.h.Ports = append(r.h.Ports, headroom.Port{
			Rate: units.Rate(r.number(1, int64(maxSpeed/units.Mbps), tablePort, port, "speed")) * units.Mbps, Delay: r.delay(port),
		})
		if r.db[tablePort][port]["pfc_asym"] == "on" {
			asym = append(asym, port)
		}
	}
	if len(asym) > 0 {
		r.notes = append(r.notes, path(tablePort, portList(asym), "pfc_asym")+": is on, so the port obeys PAUSE of every priority: here a port obeys that of lossless classes only")
	}
	if !r.broken {
		r.h.MTU = units.Bytes(same(r, mtu, slices.Max))
	}
}

// without returns why a port takes no part in PFC, "" if it takes part.
func (r *importer) without(port string) string {
	mask, ok := classList(r.db[tablePortQoS][port]["pfc_enable"])
	_, cable := r.cable(port)
	switch {
	case r.db[tablePortQoS][port] == nil:
		return "no PORT_QOS_MAP"
	case ok && mask == 0:
		return "no pfc_enable"
	case r.db[tablePort][port]["admin_status"] == "down":
		return "admin_status down"
	case cable == "0m":
		return "cable 0m"
	}
	zero := 0
	for class, key := range r.groups[port] {
		if !has(mask, class) || key == "" {
			continue
		}
		row := r.db[tableProfile][name(r.db[tablePG][key]["profile"])]
		if row["size"] != "0" || row["xoff"] != "" {
			return ""
		}
		zero++
	}
	if zero > 0 {
		return "a profile of size 0"
	}
	return ""
}

// has tells whether a port takes part in PFC.
func (r *importer) has(port string) bool {
	_, ok := slices.BinarySearch(r.ports, port)
	return ok
}

// cable returns the row that has a port's cable, and its length.
func (r *importer) cable(port string) (row, length string) {
	for _, key := range slices.Sorted(maps.Keys(r.db[tableCable])) {
		if length := r.db[tableCable][key][port]; length != "" {
			return key, length
		}
	}
	return cables, ""
}

// delay returns the delay of a port's cable.
func (r *importer) delay(port string) units.Time {
	row, text := r.cable(port)
	r.get(tableCable, row, port)
	n, err := strconv.ParseInt(strings.TrimSuffix(text, "m"), 10, 64)
	if most := int64(units.Second / metre); err != nil || n < 1 || n > most || !strings.HasSuffix(text, "m") {
		r.fault(path(tableCable, row, port), "is %q, want 1m to %dm", text, most)
		return metre
	}
	return units.Time(n) * metre
}

// row returns the row that a field of a port refers to, "" for none.
func (r *importer) row(port, field, table string) string {
	at := port
	if _, own := r.db[tablePortQoS][port][field]; !own && field == "dscp_to_tc_map" {
		at = "global"
	}
	value, ok := r.get(tablePortQoS, at, field)
	switch {
	case !ok:
		r.fault(path(tablePortQoS, port, field), "is missing, want a row of %s", table)
		return ""
	case r.db[table][name(value)] == nil:
		r.fault(path(tablePortQoS, at, field), "is %q, want a row of %s", value, table)
		return ""
	}
	return name(value)
}

// mapNames are the rows that a port's traffic classes come from.
type mapNames struct{ dscp, group, queue, pause string }

// classes reads the maps: a traffic class gives the class (its priority group) and the queue. The maps that most
// ports have become the switch's. The maps of another port become its own port map, if each class and queue in them
// is one of the switch's.
func (r *importer) classes() {
	var of []mapNames
	count, lists := map[mapNames]int{}, map[mapNames]*[dscps]qos.Class{}
	for _, port := range r.ports {
		at := mapNames{r.row(port, "dscp_to_tc_map", tableDSCP), r.row(port, "tc_to_pg_map", tableTCPG), r.row(port, "tc_to_queue_map", tableTCQueue), r.row(port, "pfc_to_queue_map", tablePFC)}
		r.pauseGroups(port)
		of = append(of, at)
		count[at]++
		if lists[at] == nil && !r.broken {
			lists[at] = r.classesOf(at)
		}
	}
	if r.broken {
		return
	}
	base := slices.MaxFunc(of, func(a, b mapNames) int { return cmp.Or(count[a]-count[b], len(b.dscp)-len(a.dscp)) })
	r.class = *lists[base]
	q := qos.Config{Classes: r.class[:]}
	for i, port := range r.ports {
		for dscp, k := range lists[of[i]] {
			if has(r.h.Lossless&^r.own[i], int(k.Class)) {
				r.fault(path(tablePortQoS, port, "pfc_enable"), "lacks %d, which DSCP %d has by the port's maps and other ports have, want it, or DSCPs of lossy classes alone: what comes in with a lossless class is so at all ports",
					k.Class, dscp)
				return
			}
			switch first := r.class[dscp]; {
			case k == first:
			case q.QueueOf(k.Class) != k.Queue || len(q.QueuesOf(k.Class)) > 1:
				r.fault(path(tablePortQoS, port, "dscp_to_tc_map"), "gives DSCP %d priority group %d and queue %d, want a priority group with its queue at the other ports: a class has one queue in a fabric",
					dscp, k.Class, k.Queue)
				return
			default:
				r.maps = append(r.maps, qos.PortMap{Switch: r.sw, Port: r.portNumber(port), DSCP: k.DSCP, Class: k.Class})
			}
		}
	}
	r.pauseQueues(base.pause)
}

func (r *importer) classesOf(at mapNames) *[dscps]qos.Class {
	var list [dscps]qos.Class
	for dscp := range list {
		tc := strconv.FormatInt(r.number(0, 15, tableDSCP, at.dscp, strconv.Itoa(dscp)), 10)
		list[dscp] = qos.Class{
			DSCP: uint8(dscp), Class: uint8(r.number(0, headroom.Classes-1, tableTCPG, at.group, tc)), Queue: uint8(r.number(0, headroom.Classes-1, tableTCQueue, at.queue, tc)),
		}
	}
	if name(r.db[tablePortQoS]["global"]["dscp_to_tc_map"]) == at.dscp {
		r.take(tablePortQoS, "global", "dscp_to_tc_map")
	}
	for table, key := range map[string]string{tableDSCP: at.dscp, tableTCPG: at.group, tableTCQueue: at.queue, tablePFC: at.pause} {
		r.take(table, key) // traffic classes that no DSCP has, and PFC of those that it is not enabled for
	}
	return &list
}

// portNumber returns the number that a port has in the fabric file.
func (r *importer) portNumber(port string) uint32 {
	for number, name := range own(r.db) {
		if n, err := strconv.ParseUint(number, 10, 9); name == port && err == nil {
			return uint32(n)
		}
	}
	return uint32(slices.Index(r.ports, port) + 1)
}

// pauseQueues compares the queues that PFC pauses with the queues of the lossless classes.
func (r *importer) pauseQueues(key string) {
	for class := range headroom.Classes {
		if !has(r.h.Lossless, class) {
			continue
		}
		queue := r.number(0, headroom.Classes-1, tablePFC, key, strconv.Itoa(class))
		i := slices.IndexFunc(r.class[:], func(k qos.Class) bool { return int(k.Class) == class })
		if i < 0 {
			r.fault(tableDSCP, "leads no DSCP to priority group %d, which is lossless, want one", class)
			continue
		}
		for _, k := range r.class {
			if int(k.Class) == class && int64(k.Queue) != queue {
				r.fault(path(tablePFC, key, strconv.Itoa(class)), "is %d, and DSCP %d has queue %d, want that: PFC pauses all queues of a class", queue, k.DSCP, k.Queue)
				break
			}
		}
	}
}

// pauseGroups checks that pfc_to_pg_map, if the port has one, maps each lossless class to the priority group of
// the same number.
func (r *importer) pauseGroups(port string) {
	value, ok := r.get(tablePortQoS, port, "pfc_to_pg_map")
	if !ok {
		return
	}
	key := name(value)
	for class := range headroom.Classes {
		if has(r.h.Lossless, class) {
			r.number(int64(class), int64(class), tablePFCPG, key, strconv.Itoa(class))
		}
	}
	r.take(tablePFCPG, key)
}

// watch reads the PFC watchdog, which must be on at all ports or at none.
func (r *importer) watch() {
	var detect, restore []at[time.Duration]
	var action []at[externs.Action]
	for _, port := range r.ports {
		if r.db[tablePFCWD][port] == nil {
			continue
		}
		wait := func(field string, most time.Duration) at[time.Duration] {
			return at[time.Duration]{path(tablePFCWD, port, field), time.Duration(r.number(minWatch.Milliseconds(), most.Milliseconds(), tablePFCWD, port, field)) * time.Millisecond}
		}
		detect, restore = append(detect, wait("detection_time", maxDetect)), append(restore, wait("restoration_time", maxRestore))
		value, _ := r.get(tablePFCWD, port, "action")
		if a := externs.Action(value); a != externs.Drop && a != externs.Forward && a != externs.Alert {
			r.fault(path(tablePFCWD, port, "action"), "is %q, want drop, forward or alert", value)
		} else {
			action = append(action, at[externs.Action]{path(tablePFCWD, port, "action"), a})
		}
	}
	if len(detect) == 0 {
		var idle []string
		for _, port := range r.ports {
			if _, ok := r.get(tablePortQoS, port, "pfcwd_sw_enable"); ok {
				idle = append(idle, port)
			}
		}
		if len(idle) > 0 {
			r.notes = append(r.notes, path(tablePortQoS, strings.Join(idle, " "), "pfcwd_sw_enable")+": PFC_WD has no times for it")
		}
	}
	if len(detect) == 0 || r.broken {
		return
	}
	for _, port := range r.ports {
		if r.db[tablePFCWD][port] == nil {
			r.unlike(path(tablePFCWD, port), "missing", "a watchdog at all ports of PORT_QOS_MAP, or at none", "one at all")
			break
		}
	}
	for i, port := range r.ports {
		value, _ := r.get(tablePortQoS, port, "pfcwd_sw_enable")
		if mask, ok := classList(value); !ok || mask != r.own[i] {
			r.unlike(path(tablePortQoS, port, "pfcwd_sw_enable"), fmt.Sprintf("%q", value), fmt.Sprintf("%q, all lossless classes", list(r.own[i])), "these")
			break
		}
	}
	for _, k := range r.class {
		if has(r.h.Lossless, int(k.Class)) && k.Queue != k.Class {
			r.fault(path(tablePFCWD, r.ports[0]), "watches queue %d, and class %d has queue %d, want that: SONiC's watches the queue of the class's number", k.Class, k.Class, k.Queue)
			break
		}
	}
	r.dog.DetectionTime = same(r, detect, slices.Min)
	r.dog.RestorationTime = same(r, restore, slices.Max)
	r.dog.Action = same(r, action, slices.Min)
	if value := r.db[tablePFCWD][watchdogGlobal][watchdogEvery]; value == millis(every(r.dog)) {
		r.take(tablePFCWD, watchdogGlobal, watchdogEvery)
	}
}
