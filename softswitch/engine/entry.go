package engine

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/units"
)

// table is the state of one table. The instance's lock guards it: processing packets
// reads it, control methods change it; counters, meters and lastHit guard themselves.
type table struct {
	spec     *tableSpec
	look     lookup
	entries  map[Handle]*entry
	next     Handle
	used     bool // there are entries
	deflt    *boundAction
	missNode *node // what follows deflt
	missed   counterCell
	consts   []Handle
}

// entry is one entry. What it does is a bound action, a member or a group of a profile.
type entry struct {
	handle   Handle
	value    []uint64 // packed like the key
	mask     []uint64
	prefix   int
	ranges   []entryRange
	priority int

	act    *boundAction
	member *member
	group  *group
	node   *node // what follows act

	ttl     units.Time
	lastHit atomic.Int64 // units.Time
	count   counterCell
	meter   *meterCell
}

// entryRange is a range on one field of the key.
type entryRange struct {
	at, bits int
	lo, hi   []uint64
}

func (r entryRange) equal(o entryRange) bool {
	return r.at == o.at && slices.Equal(r.lo, o.lo) && slices.Equal(r.hi, o.hi)
}

func newTable(t *tableSpec) *table {
	x := &table{spec: t, look: newLookup(t), entries: map[Handle]*entry{}, next: 1}
	x.setDefault(t.deflt)
	return x
}

// match looks the packet up and returns the action to run and what follows it.
func (t *table) match(p *Packet) (*boundAction, *node) {
	s := t.spec
	var e *entry
	if t.used {
		key := p.key[:]
		if s.limbs > len(key) {
			if cap(p.tmp) < s.limbs {
				p.tmp = make([]uint64, s.limbs)
			}
			key = p.tmp
		}
		key = key[:s.limbs]
		s.build(p, key)
		e = t.look.find(p, key)
	}
	if e == nil {
		return t.matchMiss(p)
	}
	if s.counters {
		e.count.add(p.Bytes)
	}
	if s.timeout {
		e.lastHit.Store(int64(p.now))
	}
	if s.meter != nil {
		n := uint64(1)
		if s.meter.bytes {
			n = uint64(p.Bytes)
		}
		r := s.meter.target
		if r.f != nil {
			p.w[r.word()] = e.meter.run(n, s.meter.rates, p.now) & r.f.mask
		}
	}
	if e.act != nil {
		return e.act, e.node
	}
	act := t.pick(e, p)
	if act == nil {
		return nil, s.miss // an empty group does nothing
	}
	return act, s.after(act.act)
}

func (t *table) matchMiss(p *Packet) (*boundAction, *node) {
	s := t.spec
	if s.counters {
		t.missed.add(p.Bytes)
	}
	return t.deflt, t.missNode
}

// setDefault changes what happens to packets that no entry matches.
func (t *table) setDefault(act *boundAction) {
	t.deflt, t.missNode = act, t.spec.miss
	if act != nil && !t.spec.hitMiss {
		t.missNode = t.spec.nexts[act.act]
	}
}

// after is the node that follows an action after a hit.
func (s *tableSpec) after(a *action) *node {
	if s.hitMiss {
		return s.hit
	}
	return s.nexts[a]
}

// pick finds the action of an entry that points to a member or a group.
func (t *table) pick(e *entry, p *Packet) *boundAction {
	m := e.member
	if e.group != nil {
		if len(e.group.members) == 0 {
			return nil
		}
		m = e.group.members[0]
		if n := uint64(len(e.group.members)); n > 1 {
			m = e.group.members[t.spec.profile.selector.output(p)%n]
		}
	}
	if m == nil {
		return nil
	}
	return m.act
}

// newEntry checks and packs a key.
func (t *table) newEntry(key []Match, priority int) (*entry, error) {
	s := t.spec
	if len(s.key) == 0 {
		return nil, fmt.Errorf("table %q has no key, hence only a default entry: %w", s.name, ErrInvalid)
	}
	if len(key) != len(s.key) {
		return nil, fmt.Errorf("table %q: key has %d fields, want %d: %w", s.name, len(key), len(s.key), ErrInvalid)
	}
	e := &entry{value: make([]uint64, s.limbs), mask: make([]uint64, s.limbs)}
	if s.kind >= Ternary {
		e.priority = priority
	}
	for i := range key {
		k := &s.key[i]
		v, m, err := matchWords(KeyField{k.name, k.kind, k.bits}, &key[i])
		if err != nil {
			return nil, fmt.Errorf("table %q: %w", s.name, err)
		}
		switch {
		case k.kind == Range:
			e.ranges = append(e.ranges, entryRange{k.at, k.bits, v, m})
			continue
		case k.kind == LPM:
			e.prefix = key[i].Prefix
			if key[i].Any {
				e.prefix = 0
			}
		}
		place(e.value, v, k.at)
		place(e.mask, m, k.at)
	}
	if s.meter != nil {
		e.meter = &meterCell{}
	}
	return e, nil
}

// insert adds an entry whose target is set.
func (t *table) insert(e *entry) (Handle, error) {
	if t.look.same(e) != nil {
		return 0, fmt.Errorf("table %q: entry %w", t.spec.name, ErrExists)
	}
	if len(t.entries) >= t.spec.size {
		return 0, fmt.Errorf("table %q: %d entries: %w", t.spec.name, t.spec.size, ErrFull)
	}
	e.handle = t.next
	t.next++
	t.entries[e.handle] = e
	t.used = true
	t.look.add(e)
	return e.handle, nil
}

func (t *table) insertConst(c *constEntry) (Handle, error) {
	e, err := t.newEntry(c.key, c.priority)
	if err != nil {
		return 0, err
	}
	e.act, e.node = c.act, t.spec.after(c.act.act)
	h, err := t.insert(e)
	if err == nil {
		t.consts = append(t.consts, h)
	}
	return h, err
}

// AddEntry adds an entry. Priority counts for keys with a ternary, range or optional
// field: the higher one wins, and among equals the older one. A ttl of 0 never expires.
func (in *Instance) AddEntry(name string, key []Match, priority int, target Target, ttl time.Duration) (Handle, error) {
	in.lock()
	defer in.unlock()
	t, err := in.mutable(name)
	if err != nil {
		return 0, err
	}
	e, err := t.newEntry(key, priority)
	if err != nil {
		return 0, err
	}
	act, member, group, err := in.resolve(t, target)
	if err != nil {
		return 0, err
	}
	t.point(e, act, member, group)
	t.setTTL(e, ttl, in.clock())
	h, err := t.insert(e)
	if err != nil {
		t.point(e, nil, nil, nil)
	}
	return h, err
}

// ModifyEntry replaces what an entry does, and its time to live.
func (in *Instance) ModifyEntry(name string, h Handle, target Target, ttl time.Duration) error {
	in.lock()
	defer in.unlock()
	t, err := in.mutable(name)
	if err != nil {
		return err
	}
	e, err := t.entry(h)
	if err != nil {
		return err
	}
	act, member, group, err := in.resolve(t, target)
	if err != nil {
		return err
	}
	t.point(e, act, member, group)
	t.setTTL(e, ttl, in.clock())
	return nil
}

// DeleteEntry removes an entry.
func (in *Instance) DeleteEntry(name string, h Handle) error {
	in.lock()
	defer in.unlock()
	t, err := in.mutable(name)
	if err != nil {
		return err
	}
	e, err := t.entry(h)
	if err != nil {
		return err
	}
	t.look.remove(e)
	delete(t.entries, h)
	t.used = len(t.entries) > 0
	t.point(e, nil, nil, nil)
	return nil
}

// SetDefault sets the default entry of a table without an action profile; nil resets it
// to the program's.
func (in *Instance) SetDefault(name string, target *Target) error {
	in.lock()
	defer in.unlock()
	t, err := in.table(name)
	if err != nil {
		return err
	}
	if t.spec.fixedDef {
		return fmt.Errorf("table %q: default entry is %w", name, ErrImmutable)
	}
	if target == nil {
		t.setDefault(t.spec.deflt)
		return nil
	}
	if t.spec.profile != nil {
		return fmt.Errorf("table %q: a table with an action profile has no settable default entry: %w", name, ErrInvalid)
	}
	act, _, _, err := in.resolve(t, *target)
	if err != nil {
		return err
	}
	t.setDefault(act)
	return nil
}

// ConstEntries returns the entries that the program declares, in its order.
func (in *Instance) ConstEntries(name string) []Handle {
	in.lock()
	defer in.unlock()
	t, err := in.table(name)
	if err != nil {
		return nil
	}
	return slices.Clone(t.consts)
}

func (in *Instance) table(name string) (*table, error) {
	s := in.prog.tableBy[name]
	if s == nil {
		return nil, fmt.Errorf("table %q: %w", name, ErrNotFound)
	}
	return in.tables[s.index], nil
}

func (in *Instance) mutable(name string) (*table, error) {
	t, err := in.table(name)
	if err == nil && t.spec.fixed {
		return nil, fmt.Errorf("table %q: its entries are %w", name, ErrImmutable)
	}
	return t, err
}

func (t *table) entry(h Handle) (*entry, error) {
	e := t.entries[h]
	if e == nil {
		return nil, fmt.Errorf("table %q: entry %d: %w", t.spec.name, h, ErrNotFound)
	}
	return e, nil
}

func (t *table) setTTL(e *entry, ttl time.Duration, now units.Time) {
	e.ttl = units.FromDuration(ttl)
	e.lastHit.Store(int64(now))
}

// point makes an entry do what the arguments say and keeps the use counts of members and
// groups.
func (t *table) point(e *entry, act *boundAction, m *member, g *group) {
	if m != nil {
		m.uses++
	}
	if g != nil {
		g.uses++
	}
	if e.member != nil {
		e.member.uses--
	}
	if e.group != nil {
		e.group.uses--
	}
	e.act, e.member, e.group = act, m, g
	if act != nil {
		e.node = t.spec.after(act.act)
	}
}

// resolve checks a target against the table.
func (in *Instance) resolve(t *table, target Target) (*boundAction, *member, *group, error) {
	s := t.spec
	given := 0
	for _, set := range []bool{target.Call != nil, target.Member != nil, target.Group != nil} {
		if set {
			given++
		}
	}
	if given != 1 {
		return nil, nil, nil, fmt.Errorf("table %q: target has %d of action, member and group, want 1: %w", s.name, given, ErrInvalid)
	}
	if target.Call != nil {
		if s.profile != nil {
			return nil, nil, nil, fmt.Errorf("table %q has action profile %q and takes members or groups: %w", s.name, s.profile.name, ErrInvalid)
		}
		b, err := bind(s.actions, s.name, target.Call)
		return b, nil, nil, err
	}
	if s.profile == nil {
		return nil, nil, nil, fmt.Errorf("table %q has no action profile: %w", s.name, ErrInvalid)
	}
	pr := in.profiles[s.profile.index]
	if target.Member != nil {
		m := pr.members[*target.Member]
		if m == nil {
			return nil, nil, nil, fmt.Errorf("action profile %q: member %d: %w", s.profile.name, *target.Member, ErrNotFound)
		}
		return nil, m, nil, nil
	}
	g := pr.groups[*target.Group]
	if g == nil {
		return nil, nil, nil, fmt.Errorf("action profile %q: group %d: %w", s.profile.name, *target.Group, ErrNotFound)
	}
	return nil, nil, g, nil
}
