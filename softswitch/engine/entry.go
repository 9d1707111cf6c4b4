package engine

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/slots"
	"github.com/headgate/headgate/softswitch/engine/match"
	"github.com/headgate/headgate/units"
)

// table is the state of one table. The instance's lock guards it: packets read it, and control
// methods change it. Counters, meters and lastHit have their own synchronisation.
type table struct {
	spec    *tableSpec
	look    match.Index
	entries slots.List[entry] // by slot of their handles; a free slot's entry has no handle
	usages  slots.List[usage] // of the entries, if the table has them
	free    []int             // slots without an entry
	order   uint64            // order of the latest entry
	used    bool              // the table has entries
	miss    step              // the step if no entry matches: the default action
	deflt   *boundAction      // the default action; nil for none
	none    step              // the step if the entry's group is empty: no action
	missUse usage             // the default entry's direct counter and meter
	consts  []Handle
	probe   match.Entry      // scratch memory of Find
	few     [fewWords]uint64 // scratch memory of an update
}

// step says where the code continues after a lookup. An action's code is at pc, and the code after
// the action is at ret. Without an action both are equal.
type step struct {
	args    []uint64
	pc, ret uint32
}

// newStep returns the step that runs action b, if not nil, and continues at node next.
func newStep(b *boundAction, next *node) step {
	s := step{}
	if next != nil {
		s.ret = next.label.pc
	}
	s.pc = s.ret
	if b != nil && b.act != nil && !b.act.noop() {
		s.args, s.pc = b.args, b.act.pc
	}
	return s
}

// boundTarget is what an entry does: a bound action, or a member or group of a profile.
type boundTarget struct {
	act    boundAction // empty if member or group is set
	member *member
	group  *group
}

// entry is one entry of a table. Its Order is its handle, so among entries with equal priority the
// one with the lower handle wins.
type entry struct {
	match.Entry
	act    *action // its arguments are in step; nil if member or group is set
	step   step
	few    [fewWords]uint64 // memory of the arguments if they fit
	member *member
	group  *group
	*usage // nil in a table without counters, meter and idle timeouts
}

// usage is an entry's state that packets change: its direct counter and meter, and the time of its
// last hit.
type usage struct {
	ttl     units.Time
	lastHit atomic.Int64 // units.Time
	count   counterCell
	meter   *meterCell
}

func (e *entry) handle() Handle { return Handle(e.Order) }

func newTable(t *tableSpec) *table {
	x := &table{spec: t, look: match.NewIndex(t.key)}
	if t.meter != nil {
		x.missUse.meter = &meterCell{}
	}
	x.setDefault(t.deflt)
	return x
}

// Match looks the packet up and returns the step with which the code continues.
func (t *table) Match(p *Packet) *step {
	if !t.used {
		return t.Missed(p)
	}
	if t.spec.words == 1 {
		p.key[0] = t.spec.word(p)
		return t.Lookup(p, p.key[:1])
	}
	return t.Lookup(p, t.packed(p))
}

// packed returns the packed key of the packet, in the packet's memory.
func (t *table) packed(p *Packet) []uint64 {
	n := t.spec.words
	key := p.key[:]
	if n > len(key) {
		if cap(p.wide) < n {
			p.wide = make([]uint64, n)
		}
		key = p.wide
	}
	key = key[:n]
	t.spec.build(p, key)
	return key
}

// Lookup does what Match does, with the packed key.
func (t *table) Lookup(p *Packet, key []uint64) *step {
	if found := t.look.Find(key, &p.found); found != nil {
		return t.hit(p, found.Owner.(*entry))
	}
	return t.Missed(p)
}

// Missed counts and meters a packet that no entry matches under the default entry (P4Runtime 9.1:
// the default entry has direct resources like any other), and returns the next step. A meter
// without configuration leaves the packet's colour unchanged, as in BMv2.
func (t *table) Missed(p *Packet) *step {
	if t.spec.counters {
		t.missUse.count.Add(p.Bytes)
	}
	if s := t.spec.meter; s != nil && t.missUse.meter.get().Configured {
		p.W[s.target.Word()] = t.missUse.meter.run(p.Bytes, s, p.now) & s.target.F.Mask
	}
	return &t.miss
}

// hit counts a packet under its entry and returns the next step.
func (t *table) hit(p *Packet, e *entry) *step {
	s := t.spec
	if s.counters {
		e.count.Add(p.Bytes)
	}
	if s.timeout {
		e.lastHit.Store(int64(p.now))
	}
	if s.meter != nil {
		to := s.meter.target
		p.W[to.Word()] = e.meter.run(p.Bytes, s.meter, p.now) & to.F.Mask
	}
	if e.act != nil {
		return &e.step
	}
	return t.pick(e, p)
}

// setDefault sets the action for packets that no entry matches.
func (t *table) setDefault(act *boundAction) {
	t.deflt = act
	t.miss, t.none = newStep(act, t.spec.missed(act)), newStep(nil, t.spec.miss)
}

// missed returns the node that follows the default action.
func (s *tableSpec) missed(act *boundAction) *node {
	if act != nil && !s.hitMiss {
		return s.nexts[act.act]
	}
	return s.miss
}

// after returns the node that follows an action after a hit.
func (s *tableSpec) after(a *action) *node {
	if s.hitMiss {
		return s.hit
	}
	return s.nexts[a]
}

// pick does what hit does, for an entry that points to a member or a group.
func (t *table) pick(e *entry, p *Packet) *step {
	m := e.member
	if e.group != nil {
		if len(e.group.members) == 0 {
			return &t.none
		}
		m = e.group.members[0]
		if n := uint64(len(e.group.members)); n > 1 {
			m = e.group.members[t.spec.profile.selector.output(p)%n]
		}
	}
	return &m.steps[t.spec.user]
}

// newEntry checks and packs a key. The entry occupies a slot until it is dropped.
func (t *table) newEntry(key []Match, priority int) (*entry, error) {
	e := t.blank()
	if err := t.spec.key.Fill(&e.Entry, key, priority); err != nil {
		t.drop(e)
		return nil, fmt.Errorf("table %q: %w", t.spec.name, err)
	}
	e.Owner = e
	return e, nil
}

// blank returns an entry in a free slot.
func (t *table) blank() *entry {
	slot := t.entries.Len()
	usual := t.spec.counters || t.spec.timeout || t.spec.meter != nil
	if last := len(t.free) - 1; last >= 0 {
		slot, t.free = t.free[last], t.free[:last]
	} else {
		t.entries.Add()
		if usual {
			t.usages.Add()
		}
	}
	t.order++
	e := t.entries.At(slot)
	e.Order = t.order<<32 | uint64(slot)
	if usual {
		e.usage = t.usages.At(slot)
		*e.usage = usage{}
	}
	if t.spec.meter != nil {
		e.meter = &meterCell{}
	}
	return e
}

// drop frees the slot of an entry that is not in the index. The next entry reuses its memory.
func (t *table) drop(e *entry) {
	t.setTarget(e, boundTarget{})
	t.free = append(t.free, e.handle().Slot())
	*e = entry{}
	t.used = len(t.free) < t.entries.Len()
}

// insert adds an entry whose target is set. If that fails it drops the entry.
func (t *table) insert(e *entry) (Handle, error) {
	if t.look.Same(&e.Entry) != nil {
		t.drop(e)
		return 0, fmt.Errorf("table %q: entry %w", t.spec.name, ErrExists)
	}
	if t.entries.Len()-len(t.free) > t.spec.size {
		t.drop(e)
		return 0, fmt.Errorf("table %q: %d entries: %w", t.spec.name, t.spec.size, ErrFull)
	}
	t.used = true
	t.look.Add(&e.Entry)
	return e.handle(), nil
}

func (t *table) insertConst(c *ConstEntry) (Handle, error) {
	e, err := t.newEntry(c.Key, c.Priority)
	if err != nil {
		return 0, err
	}
	t.few = [fewWords]uint64{}
	act, err := bind(t.spec.actions, t.spec.name, &c.Action, t.few[:])
	if err != nil {
		t.drop(e)
		return 0, err
	}
	t.setTarget(e, boundTarget{act: act})
	h, err := t.insert(e)
	if err == nil {
		t.consts = append(t.consts, h)
	}
	return h, err
}

// AddEntry adds an entry. Priority counts only for keys with a ternary, range or optional field:
// the higher priority wins, and among equal priorities the older entry. An entry with ttl 0 never
// expires.
func (in *Instance) AddEntry(name string, key []Match, priority int, target Target, ttl time.Duration) (Handle, error) {
	var h Handle
	err := in.onMutable(name, func(t *table) error {
		e, err := t.newEntry(key, priority)
		if err != nil {
			return err
		}
		if err = in.setEntry(t, e, target, ttl); err != nil {
			t.drop(e)
			return err
		}
		h, err = t.insert(e)
		in.grown(t)
		return err
	})
	return h, err
}

// Find returns the handle of the entry with the given key, and the given priority if the key has
// priorities.
func (in *Instance) Find(name string, key []Match, priority int) (h Handle, ok bool, err error) {
	in.locks[0].Lock() // guards probe
	defer in.locks[0].Unlock()
	t, err := in.table(name)
	if err != nil {
		return 0, false, err
	}
	t.probe = match.Entry{}
	if err := t.spec.key.Fill(&t.probe, key, priority); err != nil {
		return 0, false, fmt.Errorf("table %q: %w", name, err)
	}
	found := t.look.Same(&t.probe)
	if found == nil {
		return 0, false, nil
	}
	return found.Owner.(*entry).handle(), true, nil
}

// onMutable runs f on a table whose entries are not const, while no packet is processed.
func (in *Instance) onMutable(name string, f func(*table) error) error {
	in.lock()
	defer in.unlock()
	t, err := in.table(name)
	if err != nil {
		return err
	}
	if t.spec.fixed {
		return fmt.Errorf("table %q: its entries are %w", name, ErrImmutable)
	}
	return f(t)
}

// ModifyEntry replaces an entry's target and its time to live.
func (in *Instance) ModifyEntry(name string, h Handle, target Target, ttl time.Duration) error {
	return in.onMutable(name, func(t *table) error {
		e, err := t.entry(h)
		if err != nil {
			return err
		}
		return in.setEntry(t, e, target, ttl)
	})
}

// setEntry gives an entry a target and a time to live.
func (in *Instance) setEntry(t *table, e *entry, target Target, ttl time.Duration) error {
	t.few = [fewWords]uint64{}
	to, err := in.resolve(t, target, t.few[:])
	if err != nil {
		return err
	}
	t.setTarget(e, to)
	if e.usage != nil {
		e.ttl = units.FromDuration(ttl)
		e.lastHit.Store(int64(in.clock()))
	}
	return nil
}

// DeleteEntry removes an entry.
func (in *Instance) DeleteEntry(name string, h Handle) error {
	return in.onMutable(name, func(t *table) error {
		e, err := t.entry(h)
		if err != nil {
			return err
		}
		t.look.Remove(&e.Entry)
		t.drop(e)
		return nil
	})
}

// SetDefault sets the default entry of a table without an action profile. A nil target restores
// the program's default.
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
	r, err := in.resolve(t, *target, nil)
	if err != nil {
		return err
	}
	t.setDefault(&r.act)
	return nil
}

// ConstEntries returns the handles of the entries that the program declares, in the program's
// order.
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
	s, err := in.prog.tables.find(name)
	if err != nil {
		return nil, err
	}
	return in.tables[s.index], nil
}

func (t *table) entry(h Handle) (*entry, error) {
	if slot := h.Slot(); slot < t.entries.Len() {
		if e := t.entries.At(slot); h != 0 && e.handle() == h {
			return e, nil
		}
	}
	return nil, fmt.Errorf("table %q: entry %d: %w", t.spec.name, h, ErrNotFound)
}

// setTarget sets an entry's target and updates the use counts of members and groups. It copies
// arguments that fit into the entry.
func (t *table) setTarget(e *entry, to boundTarget) {
	if to.member != nil {
		to.member.uses++
	}
	if to.group != nil {
		to.group.uses++
	}
	if e.member != nil {
		e.member.uses--
	}
	if e.group != nil {
		e.group.uses--
	}
	e.act, e.member, e.group = to.act.act, to.member, to.group
	if e.act == nil {
		return
	}
	if n := len(to.act.args); n <= fewWords {
		to.act.args = e.few[:copy(e.few[:], to.act.args):n]
	}
	e.step = newStep(&to.act, t.spec.after(e.act))
}

// resolve checks a target against the table and binds it. It stores arguments in few if they fit
// there.
func (in *Instance) resolve(t *table, target Target, few []uint64) (r boundTarget, err error) {
	s := t.spec
	given := 0
	for _, set := range []bool{target.Call != nil, target.Member != nil, target.Group != nil} {
		if set {
			given++
		}
	}
	switch {
	case given != 1:
		err = errorf(ErrInvalid, "table %q: target has %d of action, member and group, want 1", s.name, given)
	case target.Call != nil && s.profile != nil:
		err = errorf(ErrInvalid, "table %q has an action profile and takes members or groups", s.name)
	case target.Call != nil:
		r.act, err = bind(s.actions, s.name, target.Call, few)
	case s.profile == nil:
		err = errorf(ErrInvalid, "table %q has no action profile", s.name)
	case target.Member != nil:
		r.member, err = in.profiles[s.profile.index].member(*target.Member)
	default:
		r.group, err = in.profiles[s.profile.index].group(*target.Group)
	}
	return r, err
}
