package sonic

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/units"
)

// profile is a row of BUFFER_PROFILE of a priority group.
type profile struct {
	name, pool              string
	size, xon, offset, xoff units.Bytes
	lossless                bool
	field                   string // static_th or dynamic_th
	limit                   int64
}

func (p *profile) at(field string) string { return path(tableProfile, p.name, field) }

// profileOf reads the profile of a row of BUFFER_PG; nil if it has none.
func (r *importer) profileOf(key string) *profile {
	value, _ := r.get(tablePG, key, "profile")
	p := &profile{name: name(value)}
	row := r.db[tableProfile][p.name]
	if row == nil {
		allowed := "a row of BUFFER_PROFILE"
		if value == "NULL" {
			allowed += ": the switch computes it, and has it in its APPL_DB"
		}
		r.fault(path(tablePG, key, "profile"), "is %q, want %s", value, allowed)
		return nil
	}
	pool, _ := r.get(tableProfile, p.name, "pool")
	p.pool, p.size = name(pool), r.bytes(tableProfile, p.name, "size")
	if _, p.lossless = row["xoff"]; p.lossless {
		p.xoff = units.Bytes(r.number(1, int64(maxBytes), tableProfile, p.name, "xoff"))
	}
	for field, to := range map[string]*units.Bytes{"xon": &p.xon, "xon_offset": &p.offset} {
		if _, given := row[field]; given {
			*to = r.bytes(tableProfile, p.name, field)
		}
	}
	if _, static := row["static_th"]; static {
		p.field, p.limit = "static_th", r.number(0, int64(maxBytes), tableProfile, p.name, "static_th")
	} else {
		p.field, p.limit = "dynamic_th", r.number(int64(minAlpha), 7, tableProfile, p.name, "dynamic_th")
	}
	if r.db[tablePool][p.pool] == nil {
		r.fault(p.at("pool"), "is %q, want a row of BUFFER_POOL", pool)
	}
	for field, usual := range map[string]string{"packet_discard_action": "drop", "headroom_type": "static"} {
		if row[field] == usual {
			r.take(tableProfile, p.name, field)
		}
	}
	return p
}

// sums are the priority groups of all ports under PFC, in order.
type sums struct {
	lossless, lossy []*profile
	phi             []units.Bytes // largest xoff of each port's lossless groups
	xoff, size      units.Bytes   // sums over the lossless ones
	lossySize       units.Bytes
}

// buffer reads the priority groups and their pool.
func (r *importer) buffer() {
	g := r.readGroups()
	if r.broken {
		return
	}
	pools := map[string]bool{}
	for _, p := range g.lossless {
		if pools[p.pool] = true; p.pool != g.lossless[0].pool {
			r.fault(p.at("pool"), "is %q, want %q as %s: lossless queues share one pool", p.pool, g.lossless[0].pool, g.lossless[0].at("pool"))
			return
		}
	}
	r.limits(g)
	if r.broken {
		return
	}
	pool := g.lossless[0].pool
	size := r.pool(pool)
	for _, p := range g.lossy {
		if !pools[p.pool] {
			pools[p.pool] = true
			r.unlike(p.at("pool"), fmt.Sprintf("%q", p.pool), fmt.Sprintf("%q: all queues share one pool", pool), "one pool of both sizes")
			size += r.pool(p.pool)
		}
	}
	r.headroom(g)
	if r.broken {
		return
	}
	own := r.db[tablePool][pool]["xoff"]
	if own == "" || own == "0" { // the pool is the buffer less the sizes of profiles, as SONiC computes it
		r.take(tablePool, pool, "xoff")
		r.h.Buffer = size + g.size + g.lossySize
		r.reserve(g, func(p *profile) units.Bytes { return p.size - p.xoff })
	} else {
		r.reserve(g, func(p *profile) units.Bytes { return p.size })
		r.share(pool, size, g)
	}
	if r.h.Buffer > maxBytes {
		r.fault(path(tablePool, pool), "and the priority groups have %d B, want at most %d B", r.h.Buffer, maxBytes)
	}
	if !r.broken {
		if _, err := r.h.Layout(); err != nil {
			r.fault(tablePool, "and the profiles make no policy: %v", err)
		}
	}
}

func (r *importer) rows() {
	r.groups = map[string][headroom.Classes]string{}
	for _, key := range slices.Sorted(maps.Keys(r.db[tablePG])) {
		ports, low, high, ok := members(key)
		if !ok {
			r.fault(path(tablePG, key), "is no priority group of a port, want such as Ethernet0|3-4")
			continue
		}
		for _, port := range ports {
			row := r.groups[port]
			for class := low; class <= min(high, headroom.Classes-1); class++ {
				if row[class] != "" {
					r.fault(path(tablePG, key), "has priority group %d, which %q has as well, want one", class, row[class])
				}
				row[class] = key
			}
			r.groups[port] = row
		}
	}
}

// readGroups reads the profile of each priority group.
func (r *importer) readGroups() sums {
	var g sums
	var used uint8
	for _, k := range r.class {
		used |= 1 << k.Class
	}
	known := map[string]*profile{}
	for i, port := range r.ports {
		phi := units.Bytes(0)
		for class, key := range r.groups[port] {
			lossless, at := has(r.own[i], class), path(tablePG, port+"|"+strconv.Itoa(class), "profile")
			if key == "" {
				switch {
				case lossless:
					r.fault(at, "is missing, want a profile with xoff; the switch adds it when the port comes up, and config save then has it")
				case has(used, class):
					r.notes = append(r.notes, at+": is missing, so what the switch has for this priority group is not known; taken like the other ones without PFC")
				}
				continue
			}
			p, ok := known[key]
			if !ok {
				p = r.profileOf(key)
				known[key] = p
			}
			switch {
			case p == nil:
			case lossless && !p.lossless:
				r.fault(p.at("xoff"), "is missing, want the headroom of priority group %d of %s, which pfc_enable has", class, port)
			case !lossless && p.lossless:
				r.fault(p.at("xoff"), "is %d, want none: priority group %d of %s is not in its pfc_enable", p.xoff, class, port)
			case lossless:
				g.lossless = append(g.lossless, p)
				if phi > 0 && p.xoff != phi {
					r.unlike(p.at("xoff"), amount(p.xoff), fmt.Sprintf("%d, which another priority group of %s has", phi, port), "the larger")
				}
				phi = max(phi, p.xoff)
				g.xoff, g.size = g.xoff+p.xoff, g.size+p.size
			default:
				g.lossy = append(g.lossy, p)
				g.lossySize += p.size
			}
		}
		g.phi = append(g.phi, phi)
	}
	return g
}

func (r *importer) pool(key string) units.Bytes {
	if kind, _ := r.get(tablePool, key, "type"); kind != "ingress" && kind != "both" {
		r.fault(path(tablePool, key, "type"), "is %q, want ingress or both", kind)
	}
	if mode, _ := r.get(tablePool, key, "mode"); mode != "dynamic" && mode != "static" {
		r.fault(path(tablePool, key, "mode"), "is %q, want dynamic or static", mode)
	}
	return r.bytes(tablePool, key, "size")
}

// limits reads thresholds, and when queues resume. PAUSE begins no later than in the tables.
func (r *importer) limits(g sums) {
	first := g.lossless[0]
	var limit []at[int64]
	var offset []at[units.Bytes]
	for _, p := range g.lossless {
		if p.field != first.field {
			r.fault(p.at(p.field), "is a threshold, and %s is another kind, want one", first.at(first.field))
			return
		}
		limit, offset = append(limit, at[int64]{p.at(p.field), p.limit}), append(offset, at[units.Bytes]{p.at("xon_offset"), p.offset})
	}
	threshold := same(r, limit, slices.Min)
	r.h.ResumeGap = same(r, offset, slices.Max)
	switch r.h.Policy = headroom.SIH; {
	case first.field == "static_th":
		r.h.Policy, r.h.Threshold = headroom.Static, units.Bytes(threshold)
	case threshold > int64(headroom.MaxAlpha):
		r.unlike(first.at("dynamic_th"), strconv.FormatInt(threshold, 10), fmt.Sprintf("%d or less, which is an alpha of %v", headroom.MaxAlpha, headroom.MaxAlpha), strconv.Itoa(int(headroom.MaxAlpha)))
		r.h.Alpha = headroom.MaxAlpha
	default:
		r.h.Alpha = headroom.Alpha(threshold)
	}
	for _, p := range g.lossy {
		if p.field != first.field || p.limit != threshold {
			r.unlike(p.at(p.field), strconv.FormatInt(p.limit, 10), fmt.Sprintf("%s %d, which lossless queues have: a switch has one threshold", first.field, threshold), "that")
			return
		}
	}
}

// reserve reads each queue's guarantee; of returns it for a lossless queue. SONiC resumes a queue below xon or below
// threshold minus xon_offset, whichever is more; Headgate only uses the offset. The two agree if xon is within the
// queue's guarantee.
func (r *importer) reserve(g sums, of func(*profile) units.Bytes) {
	var private, lossy []at[units.Bytes]
	for _, p := range g.lossless {
		if of(p) < 0 {
			r.fault(p.at("size"), "is %d, want at least xoff, which is %d: the pool has no xoff that headroom could come from", p.size, p.xoff)
			return
		}
		private = append(private, at[units.Bytes]{p.at("size"), of(p)})
	}
	r.h.Private = same(r, private, slices.Max)
	for _, p := range g.lossless {
		if most := max(0, of(p)-p.offset); p.xon > most {
			r.unlike(p.at("xon"), amount(p.xon), fmt.Sprintf("at most %d, what the queue has for itself less xon_offset", most), fmt.Sprintf("resume_gap %d alone", r.h.ResumeGap))
			break
		}
	}
	for _, p := range g.lossy {
		lossy = append(lossy, at[units.Bytes]{p.at("size"), p.size})
	}
	if len(lossy) == 0 {
		return
	}
	r.h.LossyPrivate = same(r, lossy, slices.Max)
	if all := len(r.ports)*headroom.Classes - len(g.lossless); r.h.LossyPrivate > 0 && len(lossy) < all {
		r.unlike(lossy[0].path, amount(r.h.LossyPrivate), fmt.Sprintf("0, or a BUFFER_PG for each of the %d priority groups without PFC, of which %d have one", all, len(lossy)), "the same for all of them")
	}
}

// headroom reads Φ. All ports have one value, or each has the headroom that its link requires, or the same part of it.
// Otherwise ports have their own values, and the most frequent one becomes the switch's.
func (r *importer) headroom(g sums) {
	h := &r.h
	required := make([]units.Bytes, len(h.Ports))
	enough := true
	for i := range h.Ports {
		required[i] = h.Link(i).Required()
		enough = enough && g.phi[i] >= h.Least(i)
	}
	fits := func() bool {
		for i := range required {
			if g.phi[i] != required[i]*units.Bytes(h.Share)/1000 {
				return false
			}
		}
		return true
	}
	switch h.Share = 1000; {
	case slices.Min(g.phi) == slices.Max(g.phi):
		h.Headroom = g.phi[0]
	case fits():
		return
	default:
		for h.Share = 999; h.Share > 0 && !fits(); h.Share-- {
		}
		if enough = enough && h.Share == 0; h.Share == 0 {
			h.Share = 1000
			count := map[units.Bytes]int{}
			for _, phi := range g.phi {
				count[phi]++
			}
			h.Headroom = slices.MaxFunc(g.phi, func(a, b units.Bytes) int { return cmp.Or(count[a]-count[b], cmp.Compare(b, a)) })
			for i, phi := range g.phi {
				if phi != h.Headroom {
					h.Ports[i].Headroom = phi
				}
			}
		}
	}
	if !enough {
		if h.Policy == headroom.Static {
			r.fault(tableProfile, "has xoff %v with a static threshold, want what speed and cable require", g.phi)
		}
		h.Policy = headroom.Oversubscribed
	}
}

// share reads the headroom that a pool reserves, its xoff. Priority groups never use more than the sum of their own
// xoff, so a larger pool counts as one with that sum. In a smaller pool the groups share the headroom, and no policy
// of Headgate does exactly that. If the groups fit policy SIH, the nearest policy is DSH for several lossless classes
// and SIH for one. If the switch cannot have it, or the groups fit another policy, each group gets the same part of
// its xoff (policy oversubscribed).
func (r *importer) share(pool string, size units.Bytes, g sums) {
	xoff := r.bytes(tablePool, pool, "xoff")
	field := path(tablePool, pool, "xoff")
	if xoff >= g.xoff {
		if xoff > g.xoff {
			r.notes = append(r.notes, fmt.Sprintf("%s: of %d only %d are taken, the xoff of all priority groups, which is all that they can use", field, xoff, g.xoff))
		}
		r.h.Buffer = size + g.xoff
		return
	}
	unlike := func(h headroom.Config, nearest string) {
		r.unlike(field, amount(xoff), fmt.Sprintf("%d, the xoff of all priority groups, so the groups share it; no policy of Headgate does exactly that", g.xoff), nearest)
		r.h = h
	}
	h := r.h
	h.Buffer = size + xoff
	classes := bits.OnesCount8(h.Lossless)
	shared, text := h, "policy sih: each has its xoff"
	if classes > 1 {
		shared.Policy, text = headroom.DSH, "policy dsh: they share headroom of one xoff for each port, which is paused as a whole before it has more"
	}
	if h.Policy == headroom.SIH {
		if _, err := shared.Layout(); err == nil {
			unlike(shared, text)
			return
		}
	}
	full := units.Bytes(0)
	for i := range h.Ports {
		full += cmp.Or(h.Ports[i].Headroom, h.Headroom, h.Link(i).Required()) * units.Bytes(classes)
	}
	h.Policy, h.Share = headroom.Oversubscribed, int(xoff*1000/full)
	if h.Share == 0 || r.h.Policy == headroom.Static {
		r.fault(field, "is %d, want %d, the xoff of all priority groups, or a thousandth of it and dynamic thresholds", xoff, g.xoff)
		return
	}
	text = fmt.Sprintf("policy oversubscribed: each has %d thousandths of its xoff", h.Share)
	if h.Headroom > 0 { // a fixed part of a headroom that all ports share is a smaller headroom
		part := units.Bytes(h.Share)
		h.Share, h.Headroom = 1000, max(h.Headroom*part/1000, 1)
		h.Ports = slices.Clone(h.Ports)
		for i := range h.Ports {
			h.Ports[i].Headroom = h.Ports[i].Headroom * part / 1000
		}
	}
	unlike(h, text)
}

// queues looks for egress queues without a limit below the buffer; queues with a limit stay in the rest.
func (r *importer) queues() {
	for _, key := range slices.Sorted(maps.Keys(r.db[tableQueue])) {
		ports, _, _, ok := members(key)
		if !ok || !slices.ContainsFunc(ports, r.has) {
			continue
		}
		profile := name(r.db[tableQueue][key]["profile"])
		row := r.db[tableProfile][profile]
		pool := r.db[tablePool][name(row["pool"])]
		size, err := strconv.ParseInt(pool["size"], 10, 64)
		limit, err2 := strconv.ParseInt(row["static_th"], 10, 64)
		if err != nil || err2 != nil || pool["type"] != "egress" || limit < min(size, int64(r.h.Buffer)) {
			continue
		}
		r.take(tableQueue, key, "profile")
		r.take(tableProfile, profile, "pool", "size", "static_th")
		r.take(tablePool, name(row["pool"]), "type", "mode", "size")
	}
}

// Kinds of schedulers.
const strict, dwrr = "STRICT", "DWRR"

// schedulers reads the weights by which queues share a port; they must be the same at all ports.
func (r *importer) schedulers() {
	found := make([]externs.Weights, len(r.ports))
	for _, key := range slices.Sorted(maps.Keys(r.db[tableEgress])) {
		ports, low, high, ok := members(key)
		value, scheduled := r.db[tableEgress][key]["scheduler"]
		if !ok || !scheduled || !slices.ContainsFunc(ports, r.has) {
			continue
		}
		sched := name(value)
		weight, kind := uint16(0), r.db[tableSched][sched]["type"]
		switch at := path(tableSched, sched, "type"); kind {
		case dwrr, "WRR":
			if kind != dwrr {
				r.unlike(at, kind, strict+" or "+dwrr, dwrr)
			}
			weight = uint16(r.number(1, maxWeight, tableSched, sched, "weight"))
		case strict:
		default:
			r.fault(at, "is %q, want %s or %s", kind, strict, dwrr)
		}
		r.get(tableEgress, key, "scheduler")
		r.get(tableSched, sched, "type")
		for _, port := range ports {
			if i, ok := slices.BinarySearch(r.ports, port); ok {
				for queue := low; queue <= min(high, headroom.Classes-1); queue++ {
					found[i][queue] = weight
				}
			}
		}
	}
	r.weight = found[0]
	for i, w := range found {
		if w != r.weight {
			r.unlike(tableEgress, fmt.Sprintf("weights %v at %s", w[:headroom.Classes], r.ports[i]), fmt.Sprintf("%v as at %s: a switch has one", r.weight[:headroom.Classes], r.ports[0]), "these")
			break
		}
	}
}
