package engine

import (
	"slices"
)

// tableSpec is a compiled table: how its key is built and where the pipeline goes.
type tableSpec struct {
	name     string
	index    int
	kind     MatchKind // Exact, LPM, Ternary or Range: of the lookup structure
	key      []keySpec
	limbs    int // 64-bit words of the packed key
	moves    []keyMove
	lpm      int // index of the LPM field in a table of kind LPM
	actions  map[string]*action
	names    []string
	nexts    map[*action]*node
	hit      *node
	miss     *node
	base     *node
	hitMiss  bool // hit and miss decide where to go, not the action
	size     int
	counters bool
	timeout  bool
	meter    *meterSpec
	profile  *profileSpec
	fixed    bool // entries are immutable
	entries  []constEntry
	deflt    *boundAction // of the program, nil for none
	fixedDef bool
}

// keySpec is one field of a key, packed at bit at of the key, from the least significant.
type keySpec struct {
	name string
	kind MatchKind
	bits int
	at   int
	ref  fieldRef
	mask []uint64 // static mask, nil for none
}

// keyMove copies bits of the packet header vector into the packed key.
type keyMove struct {
	src   int
	right uint8
	mask  uint64
	dst   int
	left  uint8
	valid int // word that must not be 0 for the field to count, −1 for none
}

type constEntry struct {
	key      []Match
	priority int
	act      *boundAction
}

func (c *compiler) declareTable(j *jsonTable) {
	t := &tableSpec{name: j.Name, index: len(c.tables), lpm: -1}
	if c.tableBy[j.Name] != nil {
		c.fail("table %q is declared twice", j.Name)
	}
	c.tables, c.tableBy[j.Name] = append(c.tables, t), t
	c.declareNode(j.Name).table = t
}

var matchKinds = map[string]MatchKind{"exact": Exact, "valid": Exact, "lpm": LPM, "ternary": Ternary, "range": Range, "optional": Optional}

func (c *compiler) wireTable(j *jsonTable) {
	t := c.tableBy[j.Name]
	kind, ok := matchKinds[j.MatchType]
	if !ok || j.MatchType == "valid" || j.MatchType == "optional" {
		c.fail("table %q has match_type %q, allowed are exact, lpm, ternary and range", j.Name, j.MatchType)
	}
	t.kind = kind
	for i := range j.Key {
		c.in("key", i, func() { t.key = append(t.key, c.keySpec(&j.Key[i])) })
	}
	t.packKey(c)
	t.counters, t.timeout = j.WithCounters, j.SupportTimeout
	switch {
	case j.Entries != nil:
		t.size, t.fixed = len(*j.Entries), true
	case j.MaxSize == nil:
		c.fail("table %q has neither max_size nor entries", j.Name)
	default:
		t.size = *j.MaxSize
	}
	c.tableProfile(t, j)
	if j.DirectMeters != nil {
		m := c.meterBy[*j.DirectMeters]
		if m == nil || !m.direct {
			c.fail("table %q names direct meter %q, which is not declared", j.Name, *j.DirectMeters)
		}
		t.meter = m
	}
	c.tableActions(t, j)
	if j.DefaultEntry != nil {
		c.in("default_entry", -1, func() {
			d := j.DefaultEntry
			t.deflt = c.bindHex(c.tableAction(t, d.ActionID), d.ActionData)
			t.fixedDef = d.ActionConst || d.EntryConst
		})
	}
	if j.Entries != nil {
		if t.profile != nil {
			c.fail("table %q has an action profile and cannot have entries", j.Name)
		}
		for i := range *j.Entries {
			c.in("entries", i, func() { c.constEntry(t, &(*j.Entries)[i]) })
		}
		// They are added once here, so that New cannot fail.
		probe := newTable(t)
		for i := range t.entries {
			c.in("entries", i, func() {
				if _, err := probe.insertConst(&t.entries[i]); err != nil {
					c.fail("%v", err)
				}
			})
		}
	}
}

func (c *compiler) keySpec(j *jsonKey) keySpec {
	kind, ok := matchKinds[j.MatchType]
	if !ok {
		c.fail("unknown match_type %q", j.MatchType)
	}
	var k keySpec
	if j.MatchType == "valid" {
		k = keySpec{kind: Exact, ref: fieldRef{c.headerNamed(c.str(j.Target)), nil}}
		k.name = k.ref.h.name
	} else {
		k = keySpec{kind: kind, ref: c.fieldValue(j.Target)}
		k.name = k.ref.h.name + ".$valid$"
		if k.ref.f != nil {
			k.name = k.ref.h.name + "." + k.ref.f.name
			if k.ref.f.vl {
				c.fail("variable-length field %q in a key", k.name)
			}
		}
	}
	if j.Name != nil {
		k.name = *j.Name
	}
	if k.bits = k.ref.bits(); k.bits < 1 {
		c.fail("field %q in a key has no bits", k.name)
	}
	if j.Mask != nil {
		b := c.fixed(*j.Mask, (k.bits+7)/8)
		k.mask = make([]uint64, (k.bits+63)/64)
		readField(k.mask, b, 8*len(b)-k.bits, k.bits)
	}
	return k
}

// packKey lays the fields out in the packed key, the first one most significant, and
// compiles the moves that build it.
func (t *tableSpec) packKey(c *compiler) {
	total := 0
	for i := len(t.key) - 1; i >= 0; i-- {
		t.key[i].at = total
		total += t.key[i].bits
		if t.key[i].kind == LPM {
			if t.lpm >= 0 {
				c.fail("table %q has two lpm fields", t.name)
			}
			t.lpm = i
		}
		if k := t.key[i].kind; k > t.kind && (k != LPM || t.kind != Ternary) && k != Optional {
			c.fail("table %q of match_type %v has a key field of a wider kind", t.name, t.kind)
		}
	}
	if t.kind == LPM && t.lpm < 0 {
		t.kind = Exact
	}
	t.limbs = max(1, (total+63)/64)
	for i := range t.key {
		t.key[i].pack(t)
	}
}

func (k *keySpec) pack(t *tableSpec) {
	valid := -1
	if k.ref.f != nil && !k.ref.h.metadata {
		valid = k.ref.h.valid
	}
	words := (k.bits + 63) / 64
	for w := range words {
		n := min(64, k.bits-64*w)
		mask := lastMask(n)
		if k.mask != nil {
			mask &= k.mask[w]
		}
		at := k.at + 64*w
		dst, left := at/64, uint8(at%64)
		src := k.ref.word() + w
		t.moves = append(t.moves, keyMove{src, 0, mask, dst, left, valid})
		if int(left)+n > 64 {
			t.moves = append(t.moves, keyMove{src, 64 - left, mask >> (64 - left), dst + 1, 0, valid})
		}
	}
}

func (c *compiler) tableProfile(t *tableSpec, j *jsonTable) {
	switch j.Type {
	case "simple", "":
		return
	case "indirect", "indirect_ws":
	default:
		c.fail("table %q has type %q, allowed are simple, indirect and indirect_ws", j.Name, j.Type)
	}
	name := j.Profile
	if name == "" && j.OldProfile != "" { // programs before 2.1 declare it with the table
		name = j.OldProfile
		if c.profileBy[name] == nil {
			c.declareProfile(&jsonProfile{Name: name, Selector: j.Selector})
		}
	}
	if t.profile = c.profileBy[name]; t.profile == nil {
		c.fail("table %q has unknown action_profile %q", j.Name, name)
	}
	if j.Type == "indirect_ws" && t.profile.selector == nil {
		c.fail("table %q wants a selector, and action profile %q has none", j.Name, name)
	}
}

func (c *compiler) tableActions(t *tableSpec, j *jsonTable) {
	t.actions, t.nexts = map[string]*action{}, map[*action]*node{}
	add := func(a *action) {
		t.actions[a.name] = a
		t.names = append(t.names, a.name)
	}
	if j.ActionIDs != nil {
		for _, id := range j.ActionIDs {
			add(c.actionByID(id))
		}
	} else {
		for _, name := range j.Actions {
			i := slices.IndexFunc(c.actionBy, func(a *action) bool { return a.name == name })
			if i < 0 {
				c.fail("table %q has unknown action %q", j.Name, name)
			}
			add(c.actionBy[i])
		}
	}
	hit, isHit := j.NextTables["__HIT__"]
	miss, isMiss := j.NextTables["__MISS__"]
	if isHit != isMiss || isHit && len(j.NextTables) != 2 {
		c.fail("next_tables of table %q has __HIT__ or __MISS__ but not just these two", j.Name)
	}
	t.hitMiss = isHit
	t.base = c.nodeNamed(j.BaseDefaultNext)
	if isHit {
		t.hit, t.miss = c.nodeNamed(hit), c.nodeNamed(miss)
	} else {
		t.miss = t.base
	}
	for name, a := range t.actions {
		next, ok := j.NextTables[name]
		if !ok && !isHit {
			c.fail("next_tables of table %q lacks action %q", j.Name, name)
		}
		if ok {
			t.nexts[a] = c.nodeNamed(next)
		}
		if t.profile != nil {
			t.profile.actions[name] = a
		}
	}
}

// tableAction finds an action of the table by id.
func (c *compiler) tableAction(t *tableSpec, id int) *action {
	a := c.actionByID(id)
	if t.actions[a.name] != a {
		c.fail("table %q does not have action %q with id %d", t.name, a.name, id)
	}
	return a
}

func (c *compiler) constEntry(t *tableSpec, j *jsonEntry) {
	if len(j.MatchKey) != len(t.key) {
		c.fail("match_key has %d fields, the table has %d", len(j.MatchKey), len(t.key))
	}
	// In BMv2 the lower number wins, in this package the higher one.
	e := constEntry{priority: -j.Priority}
	for i := range j.MatchKey {
		c.in("match_key", i, func() { e.key = append(e.key, c.constMatch(&j.MatchKey[i], &t.key[i])) })
	}
	c.in("action_entry", -1, func() {
		e.act = c.bindHex(c.tableAction(t, j.ActionEntry.ActionID), j.ActionEntry.ActionData)
	})
	t.entries = append(t.entries, e)
}

func (c *compiler) constMatch(j *jsonMatch, k *keySpec) Match {
	if kind, ok := matchKinds[j.MatchType]; !ok || kind != k.kind {
		c.fail("match_type is %q, which is not that of the key field", j.MatchType)
	}
	n := (k.bits + 7) / 8
	trim := func(s string) []byte { // BMv2 masks what is too wide
		z := c.hex(s)
		return z.And(z, constMask(k.bits)).FillBytes(make([]byte, n))
	}
	switch k.kind {
	case LPM:
		if j.PrefixLength < 0 || j.PrefixLength > k.bits {
			c.fail("prefix_length is %d, allowed are 0 to %d", j.PrefixLength, k.bits)
		}
		return Match{Value: trim(c.str(j.Key)), Prefix: j.PrefixLength}
	case Ternary, Optional:
		return Match{Value: trim(c.str(j.Key)), Mask: trim(j.Mask)}
	case Range:
		return Match{Value: trim(j.Start), Mask: trim(j.End)}
	}
	if j.MatchType == "valid" {
		var b bool
		c.decode(j.Key, &b)
		if b {
			return Match{Value: []byte{1}}
		}
		return Match{Value: []byte{0}}
	}
	return Match{Value: trim(c.str(j.Key))}
}

func (t *tableSpec) info() TableInfo {
	i := TableInfo{Name: t.name, Actions: slices.Clone(t.names), Size: t.size, HasCounters: t.counters,
		HasMeters: t.meter != nil, IdleTimeout: t.timeout, ConstEntries: t.fixed, ConstDefault: t.fixedDef}
	for _, k := range t.key {
		i.Key = append(i.Key, KeyField{k.name, k.kind, k.bits})
	}
	if t.profile != nil {
		i.Profile = t.profile.name
	}
	return i
}

// bits is the width of the packed key.
func (t *tableSpec) bits() (n int) {
	for i := range t.key {
		n += t.key[i].bits
	}
	return n
}

// build packs the key of p into dst.
func (t *tableSpec) build(p *Packet, dst []uint64) {
	if len(dst) == 1 {
		var k uint64
		for i := range t.moves {
			m := &t.moves[i]
			if m.valid < 0 || p.w[m.valid] != 0 {
				k |= p.w[m.src] >> (m.right & 63) & m.mask << (m.left & 63)
			}
		}
		dst[0] = k
		return
	}
	clear(dst)
	for i := range t.moves {
		m := &t.moves[i]
		if m.valid >= 0 && p.w[m.valid] == 0 {
			continue
		}
		dst[m.dst] |= p.w[m.src] >> m.right & m.mask << m.left
	}
}
