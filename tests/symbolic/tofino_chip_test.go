// Package tofino runs the source of p4src/headgate_tna.p4 in an interpreter, by the public
// descriptions of the Tofino native architecture. The interpreter has the chip's registers, math
// unit, counters, checksums, digests and mirror copies. It is neither the compiler nor the chip:
// it shows what the program says, not how a chip behaves.
//
// It assumes four things. The caller supplies the traffic manager's numbers. The low-pass filter passes its input
// on. A parser that reaches the end of a packet leaves the header invalid. A route has only one next hop.
package symbolic

import (
	"embed"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"strings"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/p4src"
)

//go:embed prelude.p4
var prelude embed.FS

// Chip is a chip that runs the program. It has one owner.
type Chip struct {
	Draw      func() uint64 // random numbers; 0 at first
	Now       uint64        // ns, when packets arrive
	Undefined func() uint64 // value of a place that was never written; 0 initially

	prog      *parser
	info      *p4configv1.P4Info
	pipe      map[string]*instance
	registers map[string]*register
	counters  map[string]*counter
	tables    map[string]*entries
}

// entries are the entries of a table.
type entries struct {
	t     *table
	in    *instance
	list  []*entry
	deflt *entry // written by the controller
}

type entry struct {
	keys     []key
	priority int32
	action   *function // nil for NoAction
	args     []uint64
	counts   map[uint64]Count
}

// key is a match of any kind: low and high of a range, or a value under a mask with prefix bits.
type key struct {
	value, mask, high value
	ranged            bool
	prefix            int
}

// run is one packet's pass through a parser and the following controls.
type run struct {
	chip        *Chip
	prog        *parser
	accessed    map[*register]bool
	entry       *entry // the entry that matched last
	bytes       int    // length that counters count
	parserError uint64
	digest      []uint64
	mirrored    bool
	session     uint64
	mirror      value
	choice      uint32 // of a next hop: the hash of its selector's inputs
}

// Load reads the program from the folder p4src, for a chip of p4src.Chips.
func Load(files fs.FS, chip string) (c *Chip, err error) {
	defer caught(&err)
	program, err := p4src.Tofino(chip)
	if err != nil {
		return nil, err
	}
	info := new(p4configv1.P4Info)
	if err := prototext.Unmarshal(program.P4Info, info); err != nil {
		return nil, err
	}
	src := source{files: prelude, macros: map[string]macro{"__TARGET_TOFINO__": {body: lex(strings.TrimPrefix(chip, "tofino"), chip)}}}
	src.read("prelude.p4")
	src.files = files
	src.read("headgate_tna.p4")
	p := &parser{t: src.out, consts: map[string]*expr{}, units: map[string]*unit{},
		types: map[string]*typ{"bit": {name: "bit", kind: 'x'}, "int": {name: "int", kind: 'x'}, "bool": {name: "bool", kind: 'B', width: 1}}}
	p.program()
	for _, name := range parts {
		if p.units[name] == nil {
			return nil, fmt.Errorf("the program has no %s", name)
		}
	}
	c = &Chip{Draw: func() uint64 { return 0 }, Undefined: func() uint64 { return 0 }, prog: p, info: info}
	c.Restart()
	return c, nil
}

// parts are the controls and parsers of the program's pipeline.
var parts = []string{"IngressParser", "ingress", "IngressDeparser", "EgressParser", "egress", "EgressDeparser"}

// Restart empties all tables, registers and counters.
func (c *Chip) Restart() {
	c.pipe, c.registers, c.counters, c.tables = map[string]*instance{}, map[string]*register{}, map[string]*counter{}, map[string]*entries{}
	for _, name := range parts {
		c.pipe[name] = c.instantiate(c.prog.units[name], name, nil)
	}
}

func fullName(path, name, annotated string) string {
	if annotated != "" {
		name = annotated
	}
	if global, ok := strings.CutPrefix(name, "."); ok {
		return global
	}
	return path + "." + name
}

func (c *Chip) instantiate(u *unit, path string, args []*slot) *instance {
	in := &instance{u: u, path: path, members: map[string]*slot{}}
	for i, p := range u.ctor {
		in.members[p.name] = args[i]
	}
	r := &run{chip: c, prog: c.prog}
	for i := range u.objects {
		o := &u.objects[i]
		s := &slot{t: o.typ}
		if inner := c.prog.units[o.typ.name]; inner != nil {
			s.obj = c.instantiate(inner, fullName(path, o.name, o.full), r.arguments(inner.ctor, o.args, &scope{of: in}))
		} else {
			s.obj = c.newExtern(in, o)
		}
		in.members[o.name] = s
	}
	for _, t := range u.tables {
		e := &entries{t: t, in: in}
		for _, row := range t.entries {
			f, args := c.bound(in, row[1])
			x := &entry{action: f, args: args, priority: int32(-len(e.list))} // the first that matches wins
			for _, k := range row[0].keys() {
				switch {
				case k.name == "_":
					x.keys = append(x.keys, key{})
				case k.op == "&&&":
					x.keys = append(x.keys, key{value: r.eval(k.a[0], &scope{of: in}), mask: r.eval(k.a[1], &scope{of: in})})
				default:
					x.keys = append(x.keys, key{value: value{n: r.eval(k, &scope{of: in}).n}, mask: all})
				}
			}
			e.list = append(e.list, x)
		}
		c.tables[fullName(path, t.name, t.full)] = e
	}
	return in
}

// all is the mask of an exact key, for any width.
var all = value{n: ^uint64(0), hi: ^uint64(0)}

// keys are the expressions of an entry's key.
func (x *expr) keys() []*expr {
	if x.op == "list" {
		return x.a
	}
	return []*expr{x}
}

// bound is the action that an expression calls, with its arguments.
func (c *Chip) bound(in *instance, x *expr) (*function, []uint64) {
	r := &run{chip: c, prog: c.prog}
	var args []uint64
	for _, a := range x.a[1:] {
		args = append(args, r.eval(a, &scope{of: in}).n)
	}
	return in.u.actions[x.a[0].name], args
}

// lookup finds the entry that a packet hits and runs its action, or the default action.
func (r *run) lookup(in *instance, t *table) (hit bool) {
	e := r.chip.tables[fullName(in.path, t.name, t.full)]
	var keys []value
	var chosenBy value
	for _, k := range t.keys {
		if v := r.eval(k.e, in.frame); k.kind == "selector" {
			chosenBy.list = append(chosenBy.list, v)
		} else {
			keys = append(keys, v)
		}
	}
	if chosenBy.list != nil {
		r.choice = crc32.ChecksumIEEE(flat(chosenBy))
	}
	var best *entry
	for _, x := range e.list {
		if x.matches(keys) && (best == nil || x.before(best)) {
			best = x
		}
	}
	hit = best != nil
	if best == nil {
		best = &entry{}
		if e.deflt != nil {
			best = e.deflt
		} else if t.deflt != nil {
			best.action, best.args = r.chip.bound(in, t.deflt)
		}
	}
	r.entry = best
	if best.action != nil {
		args := make([]*slot, len(best.args))
		for i, p := range best.action.params {
			args[i] = &slot{t: p.typ, n: mask(best.args[i], p.typ.width)}
		}
		r.invoke(best.action, in.frame, args)
	}
	return hit
}

func (x *entry) matches(keys []value) bool {
	for i, k := range x.keys {
		v := keys[i]
		if k.ranged && (v.n < k.value.n || v.n > k.high.n) || !k.ranged && ((v.n^k.value.n)&k.mask.n|(v.hi^k.value.hi)&k.mask.hi) != 0 {
			return false
		}
	}
	return true
}

// before reports whether x wins: by priority, and by the longest prefix.
func (x *entry) before(y *entry) bool {
	if x.priority != y.priority {
		return x.priority > y.priority
	}
	for i, k := range x.keys {
		if k.prefix != y.keys[i].prefix {
			return k.prefix > y.keys[i].prefix
		}
	}
	return false
}

// Insert writes a table entry, or a table's default, in P4Runtime's form. A next hop is given as a set with one
// action.
func (c *Chip) Insert(te *p4v1.TableEntry) error {
	info := find(c.info.GetTables(), te.GetTableId())
	if info == nil {
		return fmt.Errorf("no table %#x", te.GetTableId())
	}
	e := c.tables[info.GetPreamble().GetName()]
	a := te.GetAction().GetAction()
	if set := te.GetAction().GetActionProfileActionSet().GetActionProfileActions(); len(set) == 1 {
		a = set[0].GetAction()
	}
	called := find(c.info.GetActions(), a.GetActionId())
	if e == nil || called == nil {
		return fmt.Errorf("table %s, action %#x: the program does not have both", info.GetPreamble().GetName(), a.GetActionId())
	}
	n := &entry{priority: te.GetPriority(), counts: map[uint64]Count{}}
	for _, f := range e.in.u.actions {
		if fullName(e.in.path, f.name, f.full) == called.GetPreamble().GetName() {
			n.action = f
		}
	}
	n.args = make([]uint64, len(called.GetParams()))
	for _, p := range a.GetParams() {
		n.args[p.GetParamId()-1] = bytestring.Low64(p.GetValue())
	}
	if te.GetIsDefaultAction() {
		e.deflt = n
		return nil
	}
	for _, f := range info.GetMatchFields() {
		n.keys = append(n.keys, matchOf(te, f))
	}
	e.list = append(e.list, n)
	return nil
}

func matchOf(te *p4v1.TableEntry, f *p4configv1.MatchField) (k key) {
	w := int(f.GetBitwidth())
	k.high, k.ranged = value{n: mask(^uint64(0), w)}, f.GetMatchType() == p4configv1.MatchField_RANGE
	for _, m := range te.GetMatch() {
		if m.GetFieldId() != f.GetId() {
			continue
		}
		switch x := m.GetFieldMatchType().(type) {
		case *p4v1.FieldMatch_Exact_:
			k.value, k.mask = wide(x.Exact.GetValue()), all
		case *p4v1.FieldMatch_Ternary_:
			k.value, k.mask = wide(x.Ternary.GetValue()), wide(x.Ternary.GetMask())
		case *p4v1.FieldMatch_Lpm:
			k.value, k.prefix = wide(x.Lpm.GetValue()), int(x.Lpm.GetPrefixLen())
			ones := make([]byte, w/8) // of a whole number of bytes
			for i := range k.prefix {
				ones[i/8] |= 0x80 >> (i % 8)
			}
			k.mask = wide(ones)
		case *p4v1.FieldMatch_Range_:
			k.value, k.high = wide(x.Range.GetLow()), wide(x.Range.GetHigh())
		}
	}
	return k
}

// wide converts up to 16 bytes to a number.
func wide(b []byte) value {
	if len(b) > 8 {
		return value{n: bytestring.Low64(b), hi: bytestring.Low64(b[:len(b)-8])}
	}
	return value{n: bytestring.Low64(b)}
}

func find[T interface {
	comparable
	GetPreamble() *p4configv1.Preamble
}](list []T, id uint32) (none T) {
	if i := slices.IndexFunc(list, func(x T) bool { return x.GetPreamble().GetId() == id }); i >= 0 {
		return list[i]
	}
	return none
}

// Missed returns the statements of each parser and control that no packet has reached since Load, by file and
// line.
func (c *Chip) Missed() map[string][]string {
	all := map[string][]string{}
	for name, u := range c.prog.units {
		var at []string
		var walk func(list []stmt)
		walk = func(list []stmt) {
			for _, s := range list {
				if s.op != "block" && !s.seen {
					at = append(at, s.at)
				}
				walk(s.body)
				walk(s.other)
			}
		}
		walk(u.apply)
		for _, s := range u.states {
			walk(s)
		}
		for _, f := range u.actions {
			walk(f.body)
		}
		for _, o := range u.objects {
			for _, f := range o.methods {
				walk(f.body)
			}
		}
		slices.Sort(at)
		all[name] = slices.Compact(at)
	}
	return all
}

// Has reports whether the program has a table.
func (c *Chip) Has(table uint32) bool { return find(c.info.GetTables(), table) != nil }
