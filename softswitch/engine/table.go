package engine

import (
	"slices"

	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine/match"
	"github.com/headgate/headgate/softswitch/engine/phv"
)

// tableSpec is a compiled table: how its key is built and where the pipeline goes.
type tableSpec struct {
	name     string
	index    int
	key      *match.Key
	words    int // length of the key
	moves    []keyMove
	actions  map[string]*action
	names    []string
	nexts    map[*action]*node
	hit      *node
	miss     *node
	base     *node
	hitMiss  bool // the next node depends on hit or miss and not on the action
	size     int
	counters bool
	timeout  bool
	meter    *meterSpec
	profile  *profileSpec
	user     int  // the table's index among the users of its profile
	fixed    bool // entries are immutable
	entries  []ConstEntry
	deflt    *boundAction // the program's default action, nil for none
	call     *ActionCall  // deflt as the control plane sees it
	fixedDef bool
}

// keyMove copies bits of the packet header vector into the packed key.
type keyMove struct {
	src   int
	right uint8
	mask  uint64
	dst   int
	left  uint8
	valid int // the bits count as 0 while this word is 0; −1 for none
}

func (c *compiler) declareTable(j *bmv2json.Table) {
	t := &tableSpec{name: j.Name, index: len(c.tables.list)}
	c.tables.add(c, j.Name, t)
	c.declareNode(j.Name).table = t
}

var matchKinds = map[string]MatchKind{"exact": Exact, "valid": Exact, "lpm": LPM, "ternary": Ternary, "range": Range, "optional": Optional}

func (c *compiler) wireTable(j *bmv2json.Table) {
	t := c.tables.named(c, j.Name)
	kind, ok := matchKinds[j.MatchType]
	if !ok || j.MatchType == "valid" || j.MatchType == "optional" {
		c.Fail("table %q has match_type %q, allowed are exact, lpm, ternary and range", j.Name, j.MatchType)
	}
	c.tableKey(t, kind, j.Key)
	t.counters, t.timeout = j.WithCounters, j.SupportTimeout
	switch {
	case j.Entries != nil:
		t.size, t.fixed = len(*j.Entries), true
	case j.MaxSize == nil:
		c.Fail("table %q has neither max_size nor entries", j.Name)
	default:
		t.size = *j.MaxSize
	}
	c.tableProfile(t, j)
	if j.DirectMeters != nil {
		t.meter = c.directMeters.named(c, *j.DirectMeters)
	}
	c.tableActions(t, j)
	if d := j.DefaultEntry; d != nil {
		c.In("default_entry", -1, func() {
			call := c.actionCall(t, d.ActionID, d.ActionData)
			t.call, t.deflt = &call, c.bound(t, call)
			t.fixedDef = d.ActionConst || d.EntryConst
		})
	}
	if j.Entries == nil {
		return
	}
	if t.profile != nil {
		c.Fail("table %q has an action profile and cannot have entries", j.Name)
	}
	// Entries are added here once as a test, so that New cannot fail.
	probe := newTable(t)
	for i := range *j.Entries {
		c.In("entries", i, func() {
			e := c.constEntry(t, &(*j.Entries)[i])
			if _, err := probe.insertConst(&e); err != nil {
				c.Fail("%v", err)
			}
			t.entries = append(t.entries, e)
		})
	}
}

// tableKey lays out the key and compiles the moves that build it.
func (c *compiler) tableKey(t *tableSpec, kind MatchKind, js []bmv2json.Key) {
	var fields []KeyField
	var refs []phv.Ref
	var masks [][]uint64
	for i := range js {
		c.In("key", i, func() {
			f, r, m := c.keyField(&js[i])
			fields, refs, masks = append(fields, f), append(refs, r), append(masks, m)
		})
	}
	var err error
	if t.key, err = match.NewKey(kind, fields); err != nil {
		c.Fail("table %q: %v", t.name, err)
	}
	t.words = t.key.Words
	for i, f := range fields {
		t.pack(refs[i], masks[i], t.key.At[i], f.Bits)
	}
}

// keyField reads a field of a key and its static mask.
func (c *compiler) keyField(j *bmv2json.Key) (f KeyField, r phv.Ref, mask []uint64) {
	kind, ok := matchKinds[j.MatchType]
	if !ok {
		c.Fail("unknown match_type %q", j.MatchType)
	}
	if j.MatchType == "valid" {
		h := c.headerNamed(c.Str(j.Target))
		r = phv.Ref{H: h, F: &h.Validity}
		f.Name = h.Name
	} else {
		r = c.fieldValue(j.Target)
		f.Name = r.H.Name + "." + r.F.Name
	}
	f.Kind, f.Bits = kind, r.F.Bits
	if j.Name != nil {
		f.Name = *j.Name
	}
	if r.F.Variable || f.Bits < 1 {
		c.Fail("field %q in a key has no fixed length, or no bits", f.Name)
	}
	mask = make([]uint64, phv.Words(f.Bits))
	for i := range mask {
		mask[i] = phv.LastMask(min(64, f.Bits-64*i))
	}
	if j.Mask != nil {
		b := c.Fixed(*j.Mask, padded(f.Bits)/8)
		phv.ReadField(mask, b, 8*len(b)-f.Bits, f.Bits)
	}
	return f, r, mask
}

// pack compiles the moves of a field to bit at of the key.
func (t *tableSpec) pack(r phv.Ref, mask []uint64, at, bits int) {
	valid := -1
	if !r.IsValidity() && !r.H.Metadata {
		valid = r.H.Valid
	}
	for w, m := range mask {
		dst, left := at/64+w, uint8(at%64)
		src := r.Word() + w
		t.moves = append(t.moves, keyMove{src, 0, m, dst, left, valid})
		if int(left)+min(64, bits-64*w) > 64 {
			t.moves = append(t.moves, keyMove{src, 64 - left, m >> (64 - left), dst + 1, 0, valid})
		}
	}
}

func (c *compiler) tableProfile(t *tableSpec, j *bmv2json.Table) {
	switch j.Type {
	case "simple", "":
		return
	case "indirect", "indirect_ws":
	default:
		c.Fail("table %q has type %q, allowed are simple, indirect and indirect_ws", j.Name, j.Type)
	}
	name := j.Profile
	if name == "" && j.OldProfile != "" { // before version 2.1, the profile was declared with the table
		name = j.OldProfile
		if _, ok := c.profiles.get(name); !ok {
			c.declareProfile(&bmv2json.Profile{Named: bmv2json.Named{Name: name}, Selector: j.Selector})
		}
	}
	t.profile = c.profiles.named(c, name)
	t.user = len(t.profile.users)
	t.profile.users = append(t.profile.users, t)
	if j.Type == "indirect_ws" && t.profile.selector == nil {
		c.Fail("table %q wants a selector, and action profile %q has none", j.Name, name)
	}
}

func (c *compiler) tableActions(t *tableSpec, j *bmv2json.Table) {
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
			a := c.actionBy[name]
			if a == nil {
				c.Fail("table %q has unknown action %q", j.Name, name)
			}
			add(a)
		}
	}
	hit, isHit := j.NextTables["__HIT__"]
	miss, isMiss := j.NextTables["__MISS__"]
	if isHit != isMiss || isHit && len(j.NextTables) != 2 {
		c.Fail("next_tables of table %q has __HIT__ or __MISS__ but not just these two", j.Name)
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
			c.Fail("next_tables of table %q lacks action %q", j.Name, name)
		}
		if ok {
			t.nexts[a] = c.nodeNamed(next)
		}
		if t.profile != nil {
			t.profile.actions[name] = a
		}
	}
}

// actionCall reads a call of one of the table's actions. It cuts arguments that are too wide, as
// BMv2 does.
func (c *compiler) actionCall(t *tableSpec, id int, data []string) ActionCall {
	a := c.actionByID(id)
	if t.actions[a.name] != a {
		c.Fail("table %q does not have action %q with id %d", t.name, a.name, id)
	}
	if len(data) != len(a.params) {
		c.Fail("action %q takes %d arguments, not %d", a.name, len(a.params), len(data))
	}
	call := ActionCall{Name: a.name, Args: make([][]byte, len(data))}
	for i, s := range data {
		c.In("action_data", i, func() { call.Args[i] = c.masked(s, a.params[i].Bits) })
	}
	return call
}

// masked reads a number modulo 2^bits, padded to whole bytes.
func (c *compiler) masked(s string, bits int) []byte {
	words := make([]uint64, phv.Words(bits))
	phv.PutWords(words, c.Hex(s), bits)
	return fieldBytes(words, bits)
}

// fieldBytes returns a number as big-endian bytes.
func fieldBytes(words []uint64, bits int) []byte {
	b := make([]byte, padded(bits)/8)
	phv.WriteField(b, 8*len(b)-bits, words, bits)
	return b
}

func (c *compiler) constEntry(t *tableSpec, j *bmv2json.Entry) ConstEntry {
	if len(j.MatchKey) != len(t.key.Fields) {
		c.Fail("match_key has %d fields, the table has %d", len(j.MatchKey), len(t.key.Fields))
	}
	// In BMv2 the lower number wins; in this package the higher one does.
	e := ConstEntry{Priority: -j.Priority}
	for i := range j.MatchKey {
		c.In("match_key", i, func() { e.Key = append(e.Key, c.constMatch(&j.MatchKey[i], t.key.Fields[i])) })
	}
	c.In("action_entry", -1, func() { e.Action = c.actionCall(t, j.ActionEntry.ActionID, j.ActionEntry.ActionData) })
	return e
}

func (c *compiler) constMatch(j *bmv2json.Match, f KeyField) Match {
	if kind, ok := matchKinds[j.MatchType]; !ok || kind != f.Kind {
		c.Fail("match_type is %q, which is not that of the key field", j.MatchType)
	}
	switch {
	case f.Kind == Range:
		return Match{Value: c.masked(j.Start, f.Bits), Mask: c.masked(j.End, f.Bits)}
	case j.MatchType == "valid":
		var valid bool
		if c.Decode(j.Key, &valid); valid {
			return Match{Value: []byte{1}}
		}
		return Match{}
	}
	m := Match{Value: c.masked(c.Str(j.Key), f.Bits), Prefix: j.PrefixLength}
	if f.Kind == Ternary || f.Kind == Optional {
		m.Mask = c.masked(j.Mask, f.Bits)
	}
	value, _, err := f.Words(&m)
	if err != nil {
		c.Fail("%v", err)
	}
	m.Value = fieldBytes(value, f.Bits)
	return m
}

func (t *tableSpec) info() TableInfo {
	i := TableInfo{Name: t.name, Key: t.key.Fields, Actions: slices.Clone(t.names), Size: t.size, HasCounters: t.counters,
		HasMeters: t.meter != nil, IdleTimeout: t.timeout, ConstEntries: t.fixed, ConstDefault: t.fixedDef,
		Default: t.call, Entries: t.entries}
	if t.profile != nil {
		i.Profile = t.profile.name
	}
	return i
}

// followers returns the nodes that may follow a table; some are nil.
func (t *tableSpec) followers() []*node {
	list := []*node{t.hit, t.miss, t.base}
	for _, name := range t.names {
		list = append(list, t.nexts[t.actions[name]])
	}
	return list
}

// word packs the key of p. The key must have a single word.
func (t *tableSpec) word(p *Packet) (key uint64) {
	for i := range t.moves {
		if m := &t.moves[i]; m.valid < 0 || p.W[m.valid] != 0 {
			key |= p.W[m.src] >> (m.right & 63) & m.mask << (m.left & 63)
		}
	}
	return key
}

// build packs the key of p into dst.
func (t *tableSpec) build(p *Packet, dst []uint64) {
	clear(dst)
	for i := range t.moves {
		m := &t.moves[i]
		if m.valid >= 0 && p.W[m.valid] == 0 {
			continue
		}
		dst[m.dst] |= p.W[m.src] >> m.right & m.mask << m.left
	}
}
