package sonic

import (
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/controller/feature/pfcwatchdog"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

// tables returns a policy as the tables of a CONFIG_DB. The error is that of headroom.Config.Layout.
func (p *policy) tables() (DB, error) {
	l, err := p.mmu.Layout()
	if err != nil {
		return nil, err
	}
	mode, limit := "dynamic", strconv.Itoa(int(p.mmu.Alpha))
	if p.mmu.Policy == headroom.Static {
		mode, limit = "static", amount(p.mmu.Threshold)
	}
	pauses, queues, groups := map[string]string{}, map[string]string{}, map[string]string{}
	for i, queue := range p.queue {
		class := strconv.Itoa(i)
		pauses[class], queues[class], groups[class] = strconv.Itoa(int(queue)), strconv.Itoa(int(queue)), class
	}
	for tc, k := range p.traffic {
		queues[strconv.Itoa(int(tc))], groups[strconv.Itoa(int(tc))] = strconv.Itoa(int(k.Queue)), strconv.Itoa(int(k.Class))
	}
	codes := map[string]string{}
	for dscp, tc := range p.tc {
		codes[strconv.Itoa(dscp)] = strconv.Itoa(int(tc))
	}
	db := DB{
		tablePool: {
			ingressPool: {"type": "ingress", "mode": mode, "size": amount(l.Private + l.Shared), "xoff": amount(l.Headroom + l.Insurance)},
			egressPool:  {"type": "egress", "mode": "static", "size": amount(p.mmu.Buffer)},
		},
		tableProfile: {
			ingressLossy:   {"pool": ingressPool, "size": amount(p.mmu.LossyPrivate), mode + "_th": limit},
			egressLossless: {"pool": egressPool, "size": "0", "static_th": amount(p.mmu.Buffer)},
			egressLossy:    {"pool": egressPool, "size": "0", "static_th": amount(p.mmu.Buffer)},
		},
		tableDSCP: {mapName: codes}, tableTCQueue: {mapName: queues}, tablePFC: {mapName: pauses}, tableTCPG: {mapName: groups},
		tablePG: {}, tableQueue: {}, tablePort: {}, tableCable: {cables: {}}, tablePortQoS: {},
	}
	for i, at := range p.ports {
		speed, cable, profile := p.link(i)
		db[tablePort][at.name] = map[string]string{"lanes": at.lanes, "speed": speed, "mtu": amount(p.mmu.MTU)}
		if at.index != "" {
			db[tablePort][at.name]["index"] = at.index
		}
		db[tableCable][cables][at.name] = cable
		db[tableProfile][profile] = map[string]string{
			"pool": ingressPool, "size": amount(p.mmu.Private), "xon": "0", "xon_offset": amount(p.mmu.ResumeGap), "xoff": amount(l.Phi[i]), mode + "_th": limit,
		}
		ranges(p.mmu.Lossless, func(r string, lossless bool) {
			row := map[string]string{"profile": ingressLossy}
			if lossless {
				row["profile"] = profile
			}
			db[tablePG][at.name+"|"+r] = row
		})
		ranges(p.losslessQueues(), func(r string, lossless bool) {
			row := map[string]string{"profile": egressLossy}
			if lossless {
				row["profile"] = egressLossless
			}
			db[tableQueue][at.name+"|"+r] = row
		})
		db[tablePortQoS][at.name] = map[string]string{
			"dscp_to_tc_map": mapName, "tc_to_queue_map": mapName, "tc_to_pg_map": mapName, "pfc_to_queue_map": mapName, "pfc_enable": list(p.mmu.Lossless),
		}
		p.mark(db, at.name, p.marks[i])
	}
	p.watch(db)
	return db, nil
}

// watch adds the PFC watchdog.
func (p *policy) watch(db DB) {
	w := p.watchdog
	if w.DetectionTime == 0 {
		return
	}
	db[tablePFCWD] = map[string]map[string]string{watchdogGlobal: {watchdogEvery: millis(every(w))}}
	for _, at := range p.ports {
		db[tablePortQoS][at.name]["pfcwd_sw_enable"] = list(p.mmu.Lossless)
		db[tablePFCWD][at.name] = map[string]string{
			"action": string(w.Action), "detection_time": millis(w.DetectionTime), "restoration_time": millis(w.RestorationTime),
		}
	}
}

// every returns how often the watchdog polls.
func every(w pfcwatchdog.Config) time.Duration {
	return min(w.DetectionTime, w.RestorationTime, maxPolls)
}

func amount(b units.Bytes) string    { return strconv.FormatInt(int64(b), 10) }
func millis(t time.Duration) string  { return strconv.FormatInt(t.Milliseconds(), 10) }
func has(mask uint8, class int) bool { return mask>>class&1 != 0 }

// list writes the bits of a mask, such as 3,4.
func list(mask uint8) string {
	var set []string
	for class := range headroom.Classes {
		if has(mask, class) {
			set = append(set, strconv.Itoa(class))
		}
	}
	return strings.Join(set, ",")
}

// ranges calls f for each longest run of equal bits, such as 0-2, as buffermgrd writes them.
func ranges(mask uint8, f func(run string, set bool)) {
	for low := 0; low < headroom.Classes; {
		high := low
		for high+1 < headroom.Classes && has(mask, high+1) == has(mask, low) {
			high++
		}
		run := strconv.Itoa(low)
		if high > low {
			run += "-" + strconv.Itoa(high)
		}
		f(run, has(mask, low))
		low = high + 1
	}
}
