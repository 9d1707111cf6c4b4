package sonic

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/pfcwd"
)

// row returns the row that a field of a port refers to, "" where there is none.
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

// classes reads the maps: a class is the priority group of a DSCP's traffic class, its queue that of
// the traffic class. All ports have the same.
func (r *importer) classes() {
	type names struct{ dscp, group, queue, pause string }
	seen := map[names]bool{}
	for i, port := range r.ports {
		at := names{r.row(port, "dscp_to_tc_map", tableDSCP), r.row(port, "tc_to_pg_map", tableTCPG), r.row(port, "tc_to_queue_map", tableTCQueue), r.row(port, "pfc_to_queue_map", tablePFC)}
		r.pauseGroups(port)
		if seen[at] || r.broken {
			continue
		}
		seen[at] = true
		var list [dscps]qos.Class
		for dscp := range list {
			tc := strconv.FormatInt(r.number(0, 15, tableDSCP, at.dscp, strconv.Itoa(dscp)), 10)
			list[dscp] = qos.Class{
				DSCP: uint8(dscp), Class: uint8(r.number(0, headroom.Classes-1, tableTCPG, at.group, tc)), Queue: uint8(r.number(0, headroom.Classes-1, tableTCQueue, at.queue, tc)),
			}
		}
		if i == 0 {
			r.class = list
		}
		for dscp, k := range list {
			if first := r.class[dscp]; k != first {
				r.fault(path(tablePortQoS, port, "dscp_to_tc_map"), "gives DSCP %d priority group %d and queue %d, and %s gives it %d and %d, want the same: a DSCP has one class in a fabric",
					dscp, k.Class, k.Queue, r.ports[0], first.Class, first.Queue)
				return
			}
		}
		r.pauseQueues(at.pause)
		if name(r.db[tablePortQoS]["global"]["dscp_to_tc_map"]) == at.dscp {
			r.take(tablePortQoS, "global", "dscp_to_tc_map")
		}
		for table, key := range map[string]string{tableDSCP: at.dscp, tableTCPG: at.group, tableTCQueue: at.queue, tablePFC: at.pause} {
			r.take(table, key) // traffic classes that no DSCP has, and PFC of those that it is not enabled for
		}
	}
}

// pauseQueues holds the queues that PFC pauses against those of the lossless classes.
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

// pauseGroups holds the priority groups for which PFC is sent, on switches that map them.
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

// watch reads the PFC watchdog, which all ports have or none.
func (r *importer) watch() {
	var detect, restore []at[time.Duration]
	var action []at[pfcwd.Action]
	for _, port := range r.ports {
		if r.db[tablePFCWD][port] == nil {
			continue
		}
		wait := func(field string, most time.Duration) at[time.Duration] {
			return at[time.Duration]{path(tablePFCWD, port, field), time.Duration(r.number(minWatch.Milliseconds(), most.Milliseconds(), tablePFCWD, port, field)) * time.Millisecond}
		}
		detect, restore = append(detect, wait("detection_time", maxDetect)), append(restore, wait("restoration_time", maxRestore))
		value, _ := r.get(tablePFCWD, port, "action")
		if a := pfcwd.Action(value); a != pfcwd.Drop && a != pfcwd.Forward && a != pfcwd.Alert {
			r.fault(path(tablePFCWD, port, "action"), "is %q, want drop, forward or alert", value)
		} else {
			action = append(action, at[pfcwd.Action]{path(tablePFCWD, port, "action"), a})
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
	for _, port := range r.ports {
		value, _ := r.get(tablePortQoS, port, "pfcwd_sw_enable")
		if mask, ok := classList(value); !ok || mask != r.h.Lossless {
			r.unlike(path(tablePortQoS, port, "pfcwd_sw_enable"), fmt.Sprintf("%q", value), fmt.Sprintf("%q, all lossless classes", list(r.h.Lossless)), "these")
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
