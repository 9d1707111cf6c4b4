package sonic

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/buffer"
	"github.com/headgate/headgate/controller/feature/pfcwatchdog"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/units"
)

// Options are how to export.
type Options struct {
	// Approximate exports the nearest value with a warning where SONiC lacks one. Otherwise that is an
	// error.
	Approximate bool
	// Lanes is the number of lanes of a port, 1 … 8: port n is Ethernet((n−1)·Lanes).
	Lanes int
	// Switch is the CONFIG_DB of the SONiC switch. Its table PORT gives names and lanes: port n is the
	// entry with index n. nil uses Lanes.
	Switch DB
}

type exporter struct {
	Options
	report
	c *config.Config
	s *config.Switch
	p policy
}

// Export returns the policy of a switch of the fabric as tables. Rates are line rates, delays become cables of 5 ns a
// metre, and times of the watchdog do not change. Warnings name the values that Options.Approximate has changed and the
// settings that the tables leave out. The error, a *yamlnode.Error, names each field that SONiC does not have.
func Export(c *config.Config, s *config.Switch, o Options) (db DB, warnings []string, err error) {
	e := &exporter{Options: o, report: report{approximate: o.Approximate, done: "exported", line: c.Line}, c: c, s: s}
	e.buffer()
	if !e.broken {
		e.links()
		e.queues()
		e.weights()
		e.marks()
		e.watchdog()
	}
	if !e.broken {
		if db, err = e.p.tables(); err != nil {
			e.fault(e.key("buffer.policy"), "is exported as %s, which this switch cannot have: %v", e.p.mmu.Policy, err)
		}
	}
	if err := yamlnode.NewError(c.File, e.faults, len(e.faults)); err != nil {
		return nil, nil, err
	}
	return db, append(e.warnings, buffer.LowHeadroom(c, s)...), nil
}

func (e *exporter) key(key string) string { return e.c.Origin(e.s, key) }

func (e *exporter) buffer() {
	b := buffer.FromSwitch(e.s)
	h, numbers, on := buffer.Headroom(e.c, e.s)
	if !on {
		e.fault(e.key("buffer.policy"), "is off on %s, want a policy: there is nothing to export", e.s.Name)
		return
	}
	at := func(key string) string { return e.key("buffer." + key) }
	policy := func(nearest headroom.Kind, what string) {
		e.unlike(at("policy"), string(b.Policy), "static, dt, sih, adaptive or oversubscribed, which SONiC has", what)
		h.Policy = nearest
	}
	switch {
	case b.Policy.Insured():
		policy(headroom.DSH, "a shared headroom pool: all lossless queues share a pool of headroom that has Φ for each port, and no port is paused as a whole")
	case b.Policy.Victims():
		policy(headroom.DT, "dt: no port has more than the threshold")
	}
	if h.Policy != headroom.Static && h.Alpha < minAlpha {
		e.unlike(at("alpha"), h.Alpha.String(), fmt.Sprintf("%v or more: dynamic_th is -8 or more", minAlpha), minAlpha.String())
		h.Alpha = minAlpha
	}
	if b.PauseQuanta != 65535 {
		e.unlike(at("pause_quanta"), fmt.Sprint(b.PauseQuanta), "65535: SONiC has no such setting", "what the switch has")
	}
	if h.MTU < minFrame || h.MTU > maxFrame {
		e.fault(at("mtu"), "is %v, want %v to %v, which SONiC's PORT takes", h.MTU, minFrame, maxFrame)
	}
	e.p.mmu = h
	names := own(e.Switch)
	for _, n := range numbers {
		name, lanes := fmt.Sprintf("Ethernet%d", int(n-1)*e.Lanes), ""
		for i := range e.Lanes {
			lanes += fmt.Sprintf(",%d", int(n-1)*e.Lanes+1+i)
		}
		p := port{n, fmt.Sprint(n), name, lanes[min(1, len(lanes)):], buffer.LosslessAt(e.s, n)}
		if e.Switch != nil {
			p.name = names[p.index]
			row := e.Switch[tablePort][p.name]
			if row == nil {
				e.fault("", "port %d of %s: the switch's CONFIG_DB has no PORT with lanes for it, want one with this index, or as many by their lanes where ports share an index", n, e.s.Name)
				continue
			}
			p.index, p.lanes = row["index"], row["lanes"]
		}
		e.p.ports = append(e.p.ports, p)
	}
}

// own returns the ports of the SONiC switch by their numbers. The number is the index, or, if ports share an index
// (the parts of a broken-out front-panel port do), the position among all ports in the order of their lanes.
func own(sw DB) map[string]string {
	rows := sw[tablePort]
	lane := func(name string) (int, error) {
		first, _, _ := strings.Cut(rows[name]["lanes"], ",")
		return strconv.Atoi(first)
	}
	var order []string
	byIndex, byLane := map[string]string{}, map[string]string{}
	for name, row := range rows {
		if _, err := lane(name); err != nil {
			continue // an internal port, for example
		}
		order = append(order, name)
		if row["index"] != "" {
			byIndex[row["index"]] = name
		}
	}
	if len(byIndex) == len(order) {
		return byIndex
	}
	slices.SortFunc(order, func(a, b string) int {
		x, _ := lane(a)
		y, _ := lane(b)
		return cmp.Or(x-y, len(a)-len(b), cmp.Compare(a, b))
	})
	for i, name := range order {
		byLane[num(i+1)] = name
	}
	return byLane
}

func (e *exporter) links() {
	for i, l := range e.c.Links {
		path := fmt.Sprintf("links[%d]", i)
		for _, end := range []config.Endpoint{l.A, l.B} {
			at := slices.IndexFunc(e.p.ports, func(p port) bool { return end == config.Endpoint{Node: e.s.Name, Port: p.number} })
			if at < 0 {
				continue
			}
			rate, ok := e.c.LineRate(l.Rate)
			if !ok || rate%units.Mbps != 0 || rate > maxSpeed {
				e.fault(path+".rate", "is %v, at line rate %v, want whole Mbps up to %v", l.Rate, rate, maxSpeed)
				continue
			}
			metres := max(1, (l.Delay+metre-1)/metre)
			if metres*metre != l.Delay {
				e.unlike(path+".delay", l.Delay.String(), fmt.Sprintf("a multiple of %v, which is a metre of cable, and not 0", metre), fmt.Sprintf("%dm", metres))
			}
			e.p.mmu.Ports[at].Rate, e.p.mmu.Ports[at].Delay = rate, metres*metre
			speed, _, _ := e.p.link(at)
			if own := e.Switch[tablePort][e.p.ports[at].name]["speed"]; own != "" && own != speed {
				e.warnings = append(e.warnings, fmt.Sprintf("%s.rate: is %v, at line rate %v, and %s of the switch has a speed of %s: exported as the link's", path, l.Rate, rate, e.p.ports[at].name, own))
			}
			if own := e.s.Port(end.Port); own.Rate != 0 && own.Rate != l.Rate {
				e.unlike(fmt.Sprintf("%s.ports[%d].rate", e.c.Path(e.s), slices.Index(e.s.Ports, own)), own.Rate.String(),
					fmt.Sprintf("the link's %v: these tables shape no egress", l.Rate), "the link's")
			}
		}
	}
}

// pair is the class and queue of a traffic class.
type pair struct{ class, queue uint8 }

// queues exports the classes and queues of DSCPs: a traffic class for each pair. It has the queue's number if that is
// free, as in SONiC's own maps. No queue limit is below the buffer: package buffer refuses that.
func (e *exporter) queues() {
	q := qos.FromConfig(e.c)
	e.p.traffic = map[uint8]qos.Class{}
	known := map[pair]uint8{}
	add := func(k qos.Class, tc uint8) {
		if _, used := e.p.traffic[tc]; !used && tc < trafficClasses {
			known[pair{k.Class, k.Queue}], e.p.traffic[tc] = tc, k
		}
	}
	of := func(k qos.Class) (tc uint8, ok bool) {
		for tc := k.Queue; tc < trafficClasses; tc++ {
			if _, ok := known[pair{k.Class, k.Queue}]; !ok {
				add(k, tc)
			}
		}
		if tc, ok = known[pair{k.Class, k.Queue}]; !ok {
			e.fault("qos.classes", "has more than %d pairs of class and queue, which SONiC's traffic classes are, at DSCP %d", trafficClasses, k.DSCP)
		}
		return tc, ok
	}
	for dscp := range uint8(dscps) { // first the classes whose queue has their number
		if k := q.ClassOf(dscp); k.Class == k.Queue {
			add(k, k.Queue)
		}
	}
	var used uint8
	for i := range e.p.queue {
		e.p.queue[i] = uint8(i)
	}
	for dscp := range uint8(dscps) {
		k := q.ClassOf(dscp)
		tc, ok := of(k)
		if !ok {
			return
		}
		e.p.tc[dscp] = tc
		switch other := e.p.queue[k.Class]; {
		case !has(used, int(k.Class)):
			used |= 1 << k.Class
			e.p.queue[k.Class] = k.Queue
		case other != k.Queue && has(e.p.mmu.Lossless, int(k.Class)):
			path := "qos.classes"
			if i := slices.Index(q.Classes, k); i >= 0 {
				path = fmt.Sprintf("qos.classes[%d].queue", i)
			}
			e.fault(path, "is %d for DSCP %d, and other DSCPs of the lossless class %d have queue %d, want one: SONiC's MAP_PFC_PRIORITY_TO_QUEUE has one queue for a class",
				k.Queue, dscp, k.Class, other)
			return
		}
	}
	e.p.own = map[uint32]*[dscps]uint8{}
	for _, m := range q.PortMaps {
		if m.Switch != e.s.Name {
			continue
		}
		tc, ok := of(qos.Class{DSCP: m.DSCP, Class: m.Class, Queue: q.QueueOf(m.Class)})
		if !ok {
			return
		}
		if e.p.own[m.Port] == nil {
			codes := e.p.tc
			e.p.own[m.Port] = &codes
		}
		e.p.own[m.Port][m.DSCP] = tc
	}
}

// weights takes the weights of queues, which SCHEDULER has up to maxWeight.
func (e *exporter) weights() {
	e.p.weights = qos.FromConfig(e.c).ByQueue()
	most, divisor := uint16(0), uint16(0)
	for _, w := range e.p.weights {
		most = max(most, w)
		for a := w; a != 0; { // Euclid
			divisor, a = a, divisor%a
		}
	}
	if most <= maxWeight {
		return
	}
	exact := most/divisor <= maxWeight
	for q, w := range e.p.weights {
		switch {
		case w == 0:
		case exact:
			e.p.weights[q] = w / divisor
		default:
			e.p.weights[q] = max(1, uint16(math.Round(float64(w)*maxWeight/float64(most))))
		}
	}
	if !exact {
		of := func(w externs.Weights) string { return fmt.Sprint(w[:headroom.Classes]) }
		e.unlike("qos.weights", of(qos.FromConfig(e.c).ByQueue()), fmt.Sprintf("weights in a proportion of numbers up to %d", maxWeight), of(e.p.weights))
	}
}

// watchdog takes the section pfc_watchdog.
func (e *exporter) watchdog() {
	w := pfcwatchdog.FromSwitch(e.s)
	if w.DetectionTime <= 0 {
		return
	}
	w.RestorationTime = cmp.Or(w.RestorationTime, w.DetectionTime)
	fit := func(key string, t *time.Duration, most time.Duration) {
		near := min(max((*t).Round(time.Millisecond), minWatch), most)
		if near != *t {
			e.unlike(e.key("pfc_watchdog."+key), t.String(), fmt.Sprintf("whole milliseconds from %v to %v", minWatch, most), near.String())
			*t = near
		}
	}
	fit("detection_time", &w.DetectionTime, maxDetect)
	fit("restoration_time", &w.RestorationTime, maxRestore)
	if w.Share != externs.DefaultShare {
		e.unlike(e.key("pfc_watchdog.share"), fmt.Sprint(w.Share), fmt.Sprintf("%v, as PFC_WD has none", externs.DefaultShare), "the chip's")
	}
	for class, queue := range e.p.queue {
		if has(e.p.mmu.Lossless, class) && int(queue) != class {
			e.fault(e.key("pfc_watchdog.detection_time"), "is %v, and class %d has queue %d, want queue %d or no watchdog: SONiC's watches the queue of the class's number",
				w.DetectionTime, class, queue, class)
		}
	}
	e.p.watchdog = w
}

// tables returns a policy as the tables of a CONFIG_DB. The error is that of headroom.Config.Layout.
func (p *policy) tables() (DB, error) {
	l, err := p.mmu.Layout()
	if err != nil {
		return nil, err
	}
	mode, limit := "dynamic", num(p.mmu.Alpha)
	if p.mmu.Policy == headroom.Static {
		mode, limit = "static", amount(p.mmu.Threshold)
	}
	pauses, queues, groups := map[string]string{}, map[string]string{}, map[string]string{}
	for class, queue := range p.queue {
		pauses[num(class)], queues[num(class)], groups[num(class)] = num(queue), num(queue), num(class)
	}
	for tc, k := range p.traffic {
		queues[num(tc)], groups[num(tc)] = num(k.Queue), num(k.Class)
	}
	xoff := units.Bytes(0) // sum over the lossless classes that the ports have
	for i, at := range p.ports {
		classes := bits.OnesCount8(at.lossless)
		if l.Insurance > 0 {
			classes = min(classes, 1)
		}
		xoff += l.Phi[i] * units.Bytes(classes)
	}
	db := DB{
		tablePool: {
			ingressPool: {"type": "ingress", "mode": mode, "size": amount(p.mmu.Buffer - xoff), "xoff": amount(xoff)},
			egressPool:  {"type": "egress", "mode": "static", "size": amount(p.mmu.Buffer)},
		},
		tableProfile: {
			ingressLossy:   {"pool": ingressPool, "size": amount(p.mmu.LossyPrivate), mode + "_th": limit},
			egressLossless: {"pool": egressPool, "size": "0", "static_th": amount(p.mmu.Buffer)},
			egressLossy:    {"pool": egressPool, "size": "0", "static_th": amount(p.mmu.Buffer)},
		},
		tableDSCP: {mapName: codes(p.tc)}, tableTCQueue: {mapName: queues}, tablePFC: {mapName: pauses}, tableTCPG: {mapName: groups},
		tablePG: {}, tableQueue: {}, tablePort: {}, tableCable: {cables: {}}, tablePortQoS: {},
	}
	phi := map[string]units.Bytes{} // headroom of buffermgrd's profiles, by name
	for i, at := range p.ports {
		speed, cable, profile := p.link(i)
		db[tablePort][at.name] = map[string]string{"lanes": at.lanes, "speed": speed, "mtu": amount(p.mmu.MTU)}
		if at.index != "" {
			db[tablePort][at.name]["index"] = at.index
		}
		db[tableCable][cables][at.name] = cable
		if first, ok := phi[profile]; ok && first != l.Phi[i] {
			profile = mapName + "_" + speed + "_" + cable + "_" + amount(l.Phi[i])
		}
		phi[profile] = l.Phi[i]
		db[tableProfile][profile] = map[string]string{
			"pool": ingressPool, "size": amount(p.mmu.Private), "xon": "0", "xon_offset": amount(p.mmu.ResumeGap), "xoff": amount(l.Phi[i]), mode + "_th": limit,
		}
		runs(db[tablePG], at.name, at.lossless, profile, ingressLossy)
		runs(db[tableQueue], at.name, p.losslessQueues(), egressLossless, egressLossy)
		dscps := mapName
		if own := p.own[at.number]; own != nil {
			dscps += "_" + at.name
			db[tableDSCP][dscps] = codes(*own)
		}
		db[tablePortQoS][at.name] = map[string]string{
			"dscp_to_tc_map": dscps, "tc_to_queue_map": mapName, "tc_to_pg_map": mapName, "pfc_to_queue_map": mapName, "pfc_enable": list(at.lossless),
		}
		p.schedule(db, at.name)
		p.mark(db, at.name, p.marks[i])
	}
	p.watch(db)
	return db, nil
}

func codes(tc [dscps]uint8) map[string]string {
	row := map[string]string{}
	for dscp, tc := range tc {
		row[num(dscp)] = num(tc)
	}
	return row
}

// schedule writes how a port's queues share it. Without weights the switch keeps its own schedulers.
func (p *policy) schedule(db DB, port string) {
	if p.weights == (externs.Weights{}) {
		return
	}
	for queue, w := range p.weights[:headroom.Classes] {
		name, row := mapName+"_strict", map[string]string{"type": strict}
		if w > 0 {
			name, row = mapName+"_weight_"+num(w), map[string]string{"type": dwrr, "weight": num(w)}
		}
		db.put(tableSched, name, row)
		db.put(tableEgress, port+"|"+num(queue), map[string]string{"scheduler": name})
	}
}

func (p *policy) watch(db DB) {
	w := p.watchdog
	if w.DetectionTime == 0 {
		return
	}
	db[tablePFCWD] = map[string]map[string]string{watchdogGlobal: {watchdogEvery: millis(every(w))}}
	for _, at := range p.ports {
		db[tablePortQoS][at.name]["pfcwd_sw_enable"] = list(at.lossless)
		db[tablePFCWD][at.name] = map[string]string{
			"action": string(w.Action), "detection_time": millis(w.DetectionTime), "restoration_time": millis(w.RestorationTime),
		}
	}
}

// every returns how often the watchdog polls.
func every(w pfcwatchdog.Config) time.Duration {
	return min(w.DetectionTime, w.RestorationTime, maxPolls)
}

// num writes a number as a CONFIG_DB has it.
func num[T ~int | ~int8 | ~int64 | ~uint8 | ~uint16](n T) string {
	return strconv.FormatInt(int64(n), 10)
}

func amount(b units.Bytes) string    { return num(b) }
func millis(t time.Duration) string  { return num(t.Milliseconds()) }
func has(mask uint8, class int) bool { return mask>>class&1 != 0 }

func list(mask uint8) string {
	if mask == 0 {
		return ""
	}
	return units.Classes(mask).String()
}

// runs adds a row with the profile for each longest run of a port's equal bits, such as 0-2, as buffermgrd writes them.
func runs(rows map[string]map[string]string, port string, mask uint8, set, clear string) {
	for low := 0; low < headroom.Classes; {
		high, profile := low, clear
		for high+1 < headroom.Classes && has(mask, high+1) == has(mask, low) {
			high++
		}
		if has(mask, low) {
			profile = set
		}
		run := num(low)
		if high > low {
			run += "-" + num(high)
		}
		rows[port+"|"+run] = map[string]string{"profile": profile}
		low = high + 1
	}
}
