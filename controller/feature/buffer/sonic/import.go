package sonic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/pfcwd"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/units"
)

// maxFaults bounds a report.
const maxFaults = 100

// read reads some tables of a CONFIG_DB. Of PORT, which has much that is not asked for, it takes what
// is a string.
func read(text []byte, tables []string) (db DB, faults []yamlnode.Fault) {
	db = DB{}
	fault := func(field, format string, args ...any) {
		faults = append(faults, yamlnode.Fault{Field: field, Text: fmt.Sprintf(format, args...)})
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil || all == nil {
		fault("", "is no JSON object of tables: %v", err)
		return nil, faults
	}
	for _, table := range tables {
		if all[table] == nil {
			continue
		}
		var rows map[string]map[string]json.RawMessage
		if err := json.Unmarshal(all[table], &rows); err != nil {
			fault(table, "is not an object of rows, each an object of fields: %v", err)
			continue
		}
		db[table] = map[string]map[string]string{}
		for _, key := range slices.Sorted(maps.Keys(rows)) {
			row := map[string]string{}
			db[table][key] = row
			for _, field := range slices.Sorted(maps.Keys(rows[key])) {
				value := rows[key][field]
				var s string
				switch err := json.Unmarshal(value, &s); {
				case err == nil && !bytes.Equal(value, []byte("null")):
					row[field] = s
				case table != tablePort:
					fault(path(table, key, field), "is %.40s, want a string, as all values of a CONFIG_DB are", value)
				}
			}
		}
	}
	return db, faults
}

func path(parts ...string) string { return strings.Join(parts, "|") }

// importer makes a policy of tables.
type importer struct {
	db     DB
	p      policy
	faults []yamlnode.Fault
}

// Import returns the sections buffer, qos and pfc_watchdog of a fabric file that say what the tables
// of a CONFIG_DB do; other tables are not looked at. What no such sections say is an error, a
// *yamlnode.Error that names table, key and field.
func Import(file string, text []byte) (sections []byte, err error) {
	r := importer{}
	r.db, r.faults = read(text, owned)
	r.policy()
	if len(r.faults) == 0 {
		r.compare()
	}
	if err := yamlnode.NewError(file, r.faults, maxFaults); err != nil {
		return nil, err
	}
	return r.p.yaml(), nil
}

func (r *importer) fault(field, format string, args ...any) {
	r.faults = append(r.faults, yamlnode.Fault{Field: field, Text: fmt.Sprintf(format, args...)})
}

// text returns a value, which must be there.
func (r *importer) text(table, key, field string) string {
	v, ok := r.db[table][key][field]
	if !ok {
		r.fault(path(table, key, field), "is missing")
	}
	return v
}

// number returns a value as a number; low where it is none in range.
func (r *importer) number(low, high int64, table, key, field string) int64 {
	v, ok := r.db[table][key][field]
	n, err := strconv.ParseInt(v, 10, 64)
	switch {
	case !ok:
		r.fault(path(table, key, field), "is missing, want %d to %d", low, high)
	case err != nil || n < low || n > high:
		r.fault(path(table, key, field), "is %q, want %d to %d", v, low, high)
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

// policy reads what a policy needs to know. Whether the rest agrees with it is for compare to say.
func (r *importer) policy() {
	h := headroom.Config{Policy: headroom.SIH, Buffer: r.bytes(tablePool, ingressPool, "size") + r.bytes(tablePool, ingressPool, "xoff")}
	if h.Buffer > maxBytes {
		r.fault(path(tablePool, ingressPool), "has size and xoff of %d B, want at most %d B", h.Buffer, maxBytes)
	}
	h.LossyPrivate = r.bytes(tableProfile, ingressLossy, "size")
	if r.db[tablePool][ingressPool]["mode"] == "static" {
		h.Policy, h.Threshold = headroom.Static, r.bytes(tableProfile, ingressLossy, "static_th")
	} else {
		h.Alpha = headroom.Alpha(r.number(int64(minAlpha), int64(headroom.MaxAlpha), tableProfile, ingressLossy, "dynamic_th"))
	}
	names := slices.Sorted(maps.Keys(r.db[tablePortQoS]))
	if len(names) == 0 {
		r.fault(tablePortQoS, "has no port")
		return
	}
	h.MTU = units.Bytes(r.number(int64(minFrame), int64(maxFrame), tablePort, names[0], "mtu"))
	for _, class := range strings.Split(r.text(tablePortQoS, names[0], "pfc_enable"), ",") {
		if n, err := strconv.ParseUint(class, 10, 3); err == nil {
			h.Lossless |= 1 << n
		}
	}
	if h.Lossless == 0 {
		r.fault(path(tablePortQoS, names[0], "pfc_enable"), "is %q, want classes under PFC, such as 3,4", r.db[tablePortQoS][names[0]]["pfc_enable"])
	}
	for _, name := range names {
		r.p.ports = append(r.p.ports, port{uint32(r.number(1, 509, tablePort, name, "index")), name, r.text(tablePort, name, "lanes")})
	}
	slices.SortStableFunc(r.p.ports, func(a, b port) int { return int(a.number) - int(b.number) })
	for _, at := range r.p.ports {
		h.Ports = append(h.Ports, headroom.Port{
			Rate: units.Rate(r.number(1, int64(maxSpeed/units.Mbps), tablePort, at.name, "speed")) * units.Mbps, Delay: r.delay(at.name),
		})
	}
	r.p.mmu = h
	r.classes()
	r.watchdog()
	if len(r.faults) == 0 {
		r.headroom()
	}
}

// delay returns that of a port's cable.
func (r *importer) delay(port string) units.Time {
	text := r.text(tableCable, cables, port)
	n, err := strconv.ParseInt(strings.TrimSuffix(text, "m"), 10, 64)
	if most := int64(units.Second / metre); err != nil || n < 1 || n > most {
		r.fault(path(tableCable, cables, port), "is %q, want 1m to %dm", text, most)
		return metre
	}
	return units.Time(n) * metre
}

// classes reads the maps.
func (r *importer) classes() {
	for i := range r.p.queue {
		r.p.queue[i] = uint8(i)
	}
	for dscp := range r.p.class {
		class := r.number(0, headroom.Classes-1, tableDSCP, mapName, strconv.Itoa(dscp))
		r.p.class[dscp] = uint8(class)
		r.p.queue[class] = uint8(r.number(0, headroom.Classes-1, tableTCQueue, mapName, strconv.FormatInt(class, 10)))
	}
}

// watchdog reads that of the first port.
func (r *importer) watchdog() {
	if len(r.db[tablePFCWD]) == 0 {
		return
	}
	first := r.p.ports[0].name
	time := func(field string, most time.Duration) time.Duration {
		return time.Duration(r.number(minWatch.Milliseconds(), most.Milliseconds(), tablePFCWD, first, field)) * time.Millisecond
	}
	w := &r.p.watchdog
	w.DetectionTime, w.RestorationTime = time("detection_time", maxDetect), time("restoration_time", maxRestore)
	switch w.Action = pfcwd.Action(r.text(tablePFCWD, first, "action")); w.Action {
	case pfcwd.Drop, pfcwd.Forward, pfcwd.Alert:
	default:
		r.fault(path(tablePFCWD, first, "action"), "is %q, want drop, forward or alert", w.Action)
	}
}

// headroom reads the profiles of the lossless queues. Ports have the same headroom, or what their links
// require, or the same part of it.
func (r *importer) headroom() {
	h := &r.p.mmu
	var phi []units.Bytes
	same, enough := true, true
	for i, at := range h.Ports {
		_, _, profile := r.p.link(i)
		phi = append(phi, r.bytes(tableProfile, profile, "xoff"))
		h.Private, h.ResumeGap = r.bytes(tableProfile, profile, "size"), r.bytes(tableProfile, profile, "xon_offset")
		same = same && phi[i] == phi[0]
		enough = enough && phi[i] >= headroom.Required(at.Rate, at.Delay, h.MTU)
	}
	fits := func() bool {
		for i, at := range h.Ports {
			if phi[i] != headroom.Required(at.Rate, at.Delay, h.MTU)*units.Bytes(h.Share)/1000 {
				return false
			}
		}
		return true
	}
	switch h.Share = 1000; {
	case same:
		h.Headroom = phi[0]
	case fits():
		return
	default:
		for h.Share = 999; h.Share > 0 && !fits(); h.Share-- {
		}
		if h.Share == 0 {
			r.fault(tableProfile, "has xoff %v on the ports, want the same on all, or what the speed and cable of each require, or one part of that", phi)
		}
	}
	if !enough {
		if h.Policy == headroom.Static {
			r.fault(tableProfile, "has xoff %v with a static pool, want what speed and cable require", phi)
		}
		h.Policy = headroom.Oversubscribed
	}
}

// compare holds the tables against those of the policy that was found.
func (r *importer) compare() {
	want, err := r.p.tables()
	if err != nil {
		r.fault(tablePool, "and the profiles make no policy: %v", err)
		return
	}
	for _, table := range owned {
		rows := r.db[table]
		for _, key := range union(rows, want[table]) {
			has, should := rows[key], want[table][key]
			if table == tablePort && should == nil {
				continue // not a port of the policy
			}
			for _, field := range union(has, should) {
				v, given := has[field]
				w, wanted := should[field]
				switch {
				case !wanted && table != tablePort:
					r.fault(path(table, key, field), "is %q, want none: the sections cannot say it", v)
				case wanted && !given:
					r.fault(path(table, key, field), "is missing, want %q, which follows from the rest", w)
				case wanted && v != w:
					r.fault(path(table, key, field), "is %q, want %q, which follows from the rest", v, w)
				}
			}
			if should == nil && len(has) == 0 {
				r.fault(path(table, key), "is not wanted: the sections cannot say it")
			}
		}
	}
}

// union returns the keys of two maps in order.
func union[V any](a, b map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}
