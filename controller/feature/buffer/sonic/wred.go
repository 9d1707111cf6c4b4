package sonic

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/tables/red"
	"github.com/headgate/headgate/units"
)

// colours of packets. All are green here: no meter colours them.
const green = "green"

// marks takes the ECN curves of the ports' queues.
func (e *exporter) marks() {
	q := qos.FromConfig(e.c)
	e.p.marks = make([][]qos.ECN, len(e.p.ports))
	for i, at := range e.p.ports {
		for _, k := range q.ECNAt(e.s.Name, at.number, e.p.mmu.Ports[i].Rate) {
			if percent := min(max(math.Round(k.PMax*100), 1), 100); math.Abs(percent-k.PMax*100) > 1e-9 {
				e.unlike(fmt.Sprintf("qos.ecn[%d].pmax", slices.IndexFunc(q.ECN, func(o qos.ECN) bool { return o == k })), fmt.Sprint(k.PMax), "whole percents", fmt.Sprint(percent/100))
				k.PMax = percent / 100
			}
			e.p.marks[i] = append(e.p.marks[i], k)
		}
	}
}

func (p *policy) mark(db DB, port string, curves []qos.ECN) {
	for _, k := range curves {
		percent := fmt.Sprintf("%.0f", k.PMax*100)
		name := "ecn_" + amount(k.KMin) + "_" + amount(k.KMax) + "_" + percent
		db.put(tableWRED, name, map[string]string{
			"ecn": "ecn_all", "wred_green_enable": "true", "green_min_threshold": amount(k.KMin), "green_max_threshold": amount(k.KMax), "green_drop_probability": percent,
		})
		key := port + "|" + num(k.Queue)
		if db[tableEgress][key] == nil {
			db.put(tableEgress, key, map[string]string{})
		}
		db[tableEgress][key]["wred_profile"] = name
	}
}

// marks reads the ECN curves of queues: the same at all ports, or at all of a speed.
func (r *importer) marks() {
	found := make([]map[uint8]qos.ECN, len(r.ports)) // each port's curves by queue
	for _, key := range slices.Sorted(maps.Keys(r.db[tableEgress])) {
		ports, low, high, ok := members(key)
		value, marked := r.db[tableEgress][key]["wred_profile"]
		if !ok || !marked || !slices.ContainsFunc(ports, r.has) {
			continue
		}
		curve, ok := r.curve(path(tableEgress, key, "wred_profile"), name(value))
		if r.broken || !ok {
			continue
		}
		r.get(tableEgress, key, "wred_profile")
		for _, port := range ports {
			i, ok := slices.BinarySearch(r.ports, port)
			if !ok {
				continue
			}
			if found[i] == nil {
				found[i] = map[uint8]qos.ECN{}
			}
			for queue := low; queue <= min(high, 7); queue++ {
				curve.Queue = uint8(queue)
				found[i][uint8(queue)] = curve
			}
		}
	}
	for queue := range uint8(8) {
		rates := map[units.Rate]qos.ECN{}
		all := map[qos.ECN]bool{}
		for i, at := range r.h.Ports {
			curve, ok := found[i][queue]
			if !ok {
				curve = qos.ECN{Queue: queue}
			}
			all[curve] = true
			first, known := rates[at.Rate]
			switch {
			case known && first != curve:
				r.unlike(path(tableEgress, fmt.Sprintf("%s|%d", r.ports[i], queue), "wred_profile"), fmt.Sprintf("marking from %d to %d", curve.KMin, curve.KMax),
					fmt.Sprintf("from %d to %d, as at another port of this speed", first.KMin, first.KMax), "the curve of the first port")
			case !known:
				rates[at.Rate] = curve
			}
		}
		for _, rate := range slices.Sorted(maps.Keys(rates)) {
			curve := rates[rate]
			if curve.KMax == 0 {
				continue
			}
			if len(all) > 1 && len(rates) > 1 {
				curve.Rate = rate
			}
			if !slices.Contains(r.ecn, curve) {
				r.ecn = append(r.ecn, curve)
			}
		}
	}
}

// curve reads a WRED_PROFILE; false if it marks nothing.
func (r *importer) curve(at, name string) (k qos.ECN, ok bool) {
	row := r.db[tableWRED][name]
	if row == nil {
		r.fault(at, "is %q, want a row of %s", name, tableWRED)
		return k, false
	}
	if !strings.Contains(row["ecn"], green) && row["ecn"] != "ecn_all" || row["wred_green_enable"] != "true" {
		return k, false // it drops instead, or has packets of other colours
	}
	low := red.Least
	k.KMin = units.Bytes(r.number(int64(low), int64(maxBytes), tableWRED, name, "green_min_threshold"))
	k.KMax = units.Bytes(r.number(int64(max(k.KMin, low)), int64(maxBytes), tableWRED, name, "green_max_threshold"))
	k.PMax = float64(r.number(1, 100, tableWRED, name, "green_drop_probability")) / 100
	r.take(tableWRED, name, "ecn", "wred_green_enable")
	for field, value := range row {
		colour, what, _ := strings.Cut(field, "_")
		switch {
		case field == "wred_yellow_enable" || field == "wred_red_enable":
			r.take(tableWRED, name, field)
		case (colour == "yellow" || colour == "red") && value == row[green+"_"+what]:
			r.take(tableWRED, name, field)
		}
	}
	return k, true
}
