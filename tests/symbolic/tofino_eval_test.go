package symbolic

import (
	"fmt"
	"slices"
	"strings"
)

// slot is a place that holds a value: a number, a header or struct of slots, or an extern.
type slot struct {
	t     *typ
	n, hi uint64 // hi is the upper half of a number of more than 64 bits
	valid bool   // of a header
	f     map[string]*slot
	obj   any // of an extern, a control or a packet
}

// value is an expression's result. A number without a width takes the other operand's width.
type value struct {
	n, hi  uint64 // as in slot
	w      int
	signed bool
	truth  bool // n is 0 or 1
	slot   *slot
	list   []value
}

// bits returns w bits from low on; w ≤ 64.
func (v value) bits(low, w int) uint64 {
	if low >= 64 {
		return mask(v.hi>>(low-64), w)
	}
	return mask(v.n>>low|v.hi<<(64-low), w)
}

func mask(n uint64, w int) uint64 {
	if w == 0 || w >= 64 {
		return n
	}
	return n & (1<<w - 1)
}

// signed returns n as a number in two's complement.
func (v value) int64() int64 {
	if !v.signed || v.w == 0 {
		return int64(v.n)
	}
	return int64(v.n<<(64-v.w)) >> (64 - v.w)
}

func truth(b bool) value {
	if b {
		return value{n: 1, truth: true}
	}
	return value{truth: true}
}

// instance is a control or parser with its declarations.
type instance struct {
	u       *unit
	path    string
	members map[string]*slot
	frame   *scope // of the apply that runs
}

// scope is the variables of a call.
type scope struct {
	vars map[string]*slot
	up   *scope
	of   *instance
}

func (s *scope) find(name string) *slot {
	for ; s != nil; s = s.up {
		if v, ok := s.vars[name]; ok {
			return v
		}
		if s.up == nil {
			return s.of.members[name]
		}
	}
	return nil
}

// make returns a place of a type. Its first value is the chip's Undefined.
func (c *Chip) place(t *typ) *slot {
	s := &slot{t: t}
	switch t.kind {
	case 's', 'h':
		s.f = make(map[string]*slot, len(t.fields))
		for _, v := range t.fields {
			s.f[v.name] = c.place(v.typ)
		}
	case 'b', 'i':
		s.n = mask(c.Undefined(), t.width)
		if t.width > 64 {
			s.hi = mask(c.Undefined(), t.width-64)
		}
	}
	return s
}

func fail(x *expr, format string, args ...any) {
	panic(fmt.Errorf("%s: %s", x.at, fmt.Sprintf(format, args...)))
}

// ref finds the place that an expression names, and the bits high to low of it.
func (r *run) ref(x *expr, s *scope) (p *slot, high, low int) {
	switch x.op {
	case "name":
		p = s.find(x.name)
	case "member":
		of, _, _ := r.ref(x.a[0], s)
		if of != nil {
			p = of.f[x.name]
			if p == nil {
				fail(x, "no field %s", x.name)
			}
		}
	case "slice":
		p, _, _ = r.ref(x.a[0], s)
		return p, int(r.eval(x.a[1], s).n), int(r.eval(x.a[2], s).n)
	}
	if p != nil && p.t != nil {
		high = p.t.width - 1
	}
	return p, high, low
}

func (r *run) assign(x *expr, s *scope, v value) {
	p, high, low := r.ref(x, s)
	if p == nil {
		fail(x, "nothing to assign to")
	}
	if v.slot != nil {
		copySlot(p, v.slot)
		return
	}
	if w := high - low + 1; p.t.kind != 'B' && v.w != 0 && v.w != w {
		fail(x, "%d bits for %d", v.w, w)
	}
	if p.t.width > 64 { // always the whole place
		p.n, p.hi = v.n, v.hi
		return
	}
	bits := mask(^uint64(0), high-low+1) << low
	if p.t.kind == 'B' {
		bits = 1
	}
	p.n = p.n&^bits | v.n<<low&bits
}

func copySlot(to, from *slot) {
	to.n, to.hi, to.valid = from.n, from.hi, from.valid
	for k, f := range from.f {
		copySlot(to.f[k], f)
	}
}

func (p *slot) value() value {
	switch p.t.kind {
	case 'b', 'i':
		return value{n: p.n, hi: p.hi, w: p.t.width, signed: p.t.kind == 'i'}
	case 'B':
		return truth(p.n == 1)
	}
	return value{slot: p}
}

func (r *run) eval(x *expr, s *scope) value {
	switch x.op {
	case "num":
		if x.typ != nil {
			return value{n: mask(x.n, x.typ.width), w: x.typ.width}
		}
		return value{n: x.n}
	case "str":
		return value{}
	case "name", "member", "slice":
		return r.named(x, s)
	case "list":
		var v value
		for _, e := range x.a {
			v.list = append(v.list, r.eval(e, s))
		}
		return v
	case "cast":
		v := r.eval(x.a[0], s)
		if x.typ.kind == 'x' {
			fail(x, "a cast to %s", x.typ.name)
		}
		return value{n: mask(uint64(v.int64()), x.typ.width), w: x.typ.width, signed: x.typ.kind == 'i', truth: x.typ.kind == 'B'}
	case "call":
		return r.call(x, s)
	case "?":
		if r.eval(x.a[0], s).n == 1 {
			return r.eval(x.a[1], s)
		}
		return r.eval(x.a[2], s)
	case "unary!":
		return truth(r.eval(x.a[0], s).n == 0)
	case "unary-", "unary~":
		v := r.eval(x.a[0], s)
		if x.op == "unary-" {
			v.n = -v.n
		} else {
			v.n = ^v.n
		}
		v.n = mask(v.n, v.w)
		return v
	case "&&", "||":
		v := r.eval(x.a[0], s)
		if (v.n == 1) == (x.op == "||") {
			return v
		}
		return r.eval(x.a[1], s)
	}
	return r.binary(x, r.eval(x.a[0], s), r.eval(x.a[1], s))
}

// named evaluates a name: a place, a constant, or an enum's word, which has no value by itself.
func (r *run) named(x *expr, s *scope) value {
	if x.op == "member" && x.a[0].op == "call" { // table.apply().hit
		return r.eval(x.a[0], s)
	}
	if p, high, low := r.ref(x, s); p != nil {
		v := p.value()
		if x.op == "slice" {
			return value{n: v.bits(low, high-low+1), w: high - low + 1}
		}
		return v
	}
	switch {
	case x.op == "name" && r.prog.consts[x.name] != nil:
		return r.eval(r.prog.consts[x.name], s)
	case x.op == "slice":
		v, high, low := r.eval(x.a[0], s), int(r.eval(x.a[1], s).n), int(r.eval(x.a[2], s).n)
		return value{n: mask(v.n>>low, high-low+1), w: high - low + 1}
	case x.name == "true" || x.name == "false":
		return truth(x.name == "true")
	case x.op == "member" && strings.HasSuffix(x.a[0].name, "_t"):
		return value{}
	}
	fail(x, "nothing is called %s", x.name)
	return value{}
}

func (r *run) binary(x *expr, a, b value) value {
	if x.op == "++" {
		return value{n: a.n<<b.w | b.n, w: a.w + b.w}
	}
	w, signed := a.w, a.signed
	if w == 0 {
		w, signed = b.w, b.signed
	}
	shift := x.op == "<<" || x.op == ">>"
	if !shift {
		if b.w != 0 && b.w != w || a.truth != b.truth || a.w != 0 && b.w != 0 && a.signed != b.signed {
			fail(x, "%s of %d and %d bits", x.op, a.w, b.w)
		}
		a.n, b.n = mask(a.n, w), mask(b.n, w)
	}
	a.w, a.signed, b.w, b.signed = w, signed, w, signed
	n, hi := uint64(0), uint64(0)
	switch x.op {
	case "+":
		n = a.n + b.n
	case "-":
		n = a.n - b.n
	case "*":
		n = a.n * b.n
	case "&":
		n, hi = a.n&b.n, a.hi&b.hi
	case "|":
		n, hi = a.n|b.n, a.hi|b.hi
	case "^":
		n, hi = a.n^b.n, a.hi^b.hi
	case "<<":
		n = a.n << b.n
	case ">>":
		n = uint64(a.int64() >> b.n)
		if !signed {
			n = a.n >> b.n
		}
	case "|-|":
		n = a.n - min(a.n, b.n)
	case "==":
		return truth(a.n == b.n && a.hi == b.hi)
	case "!=":
		return truth(a.n != b.n || a.hi != b.hi)
	case "<":
		return truth(a.less(b))
	case ">":
		return truth(b.less(a))
	case "<=":
		return truth(!b.less(a))
	case ">=":
		return truth(!a.less(b))
	default:
		fail(x, "operator %s", x.op)
	}
	if (x.op == "|-|") && signed {
		fail(x, "%s of signed numbers", x.op)
	}
	return value{n: mask(n, w), hi: hi, w: w, signed: signed}
}

func (a value) less(b value) bool {
	if a.signed {
		return a.int64() < b.int64()
	}
	return a.n < b.n
}

// exec runs statements. In a parser it returns the next state.
func (r *run) exec(list []stmt, s *scope) (next string) {
	for i := range list {
		st := &list[i]
		st.seen = true
		switch st.op {
		case "=":
			r.assign(st.to, s, r.eval(st.e, s))
		case "call":
			r.eval(st.e, s)
		case "var":
			p := r.chip.place(st.v.typ)
			s.vars[st.v.name] = p
			if st.v.init != nil {
				r.assign(&expr{op: "name", at: st.at, name: st.v.name}, s, r.eval(st.v.init, s))
			}
		case "block":
			next = r.exec(st.body, s)
		case "if":
			body := st.other
			if r.eval(st.e, s).n == 1 {
				body = st.body
			}
			next = r.exec(body, s)
		case "transition":
			return r.choose(st, s)
		}
	}
	return next
}

// choose finds the state that a transition leads to.
func (r *run) choose(st *stmt, s *scope) string {
	if st.e == nil {
		return st.cases[0].next
	}
	of := r.eval(st.e, s).list
	for _, b := range st.cases {
		match := true
		for i, k := range b.keys {
			match = match && mask(r.eval(k, s).n, of[i].w) == of[i].n
		}
		if match {
			return b.next
		}
	}
	return "reject"
}

// apply runs a control, or a parser up to accept.
func (r *run) apply(in *instance, args []*slot) {
	s := &scope{vars: map[string]*slot{}, of: in}
	for i, p := range in.u.params {
		s.vars[p.name] = args[i]
	}
	for _, v := range in.u.vars {
		s.vars[v.name] = r.chip.place(v.typ)
	}
	in.frame = s
	if in.u.apply != nil {
		r.exec(in.u.apply, s)
		return
	}
	for state := "start"; state != "accept"; {
		body, ok := in.u.states[state]
		if !ok {
			panic(fmt.Errorf("the parser %s has no state %q", in.path, state))
		}
		state = r.exec(body, s)
		if r.parserError != 0 {
			return
		}
	}
}

// invoke runs an action, or an abstract method, within the frame of its control.
func (r *run) invoke(f *function, frame *scope, args []*slot) {
	s := &scope{vars: map[string]*slot{}, up: frame, of: frame.of}
	for i, p := range f.params {
		s.vars[p.name] = args[i]
	}
	r.exec(f.body, s)
}

func (r *run) call(x *expr, s *scope) value {
	to, args := x.a[0], x.a[1:]
	if to.op == "name" {
		switch f := s.of.u.actions[to.name]; {
		case f != nil:
			r.invoke(f, s.of.frame, r.arguments(f.params, args, s))
		case to.name == "sizeInBytes":
			return value{n: uint64(size(r.eval(args[0], s).slot.t) / 8), w: 32}
		case to.name != "NoAction":
			fail(x, "no action %s", to.name)
		}
		return value{}
	}
	on, method := to.a[0], to.name
	if on.op == "name" {
		if t := s.of.u.tables[on.name]; t != nil && method == "apply" {
			return truth(r.lookup(s.of, t))
		}
	}
	p, _, _ := r.ref(on, s)
	if p == nil {
		fail(x, "nothing is called %s", on.name)
	}
	switch obj := p.obj.(type) {
	case *instance:
		places := r.arguments(obj.u.params, args, s)
		r.apply(obj, places)
		for i, v := range obj.u.params { // a slice of a field is copied, and copied back
			if v.out && args[i].op == "slice" {
				r.assign(args[i], s, places[i].value())
			}
		}
		return value{}
	case nil:
	default:
		return r.extern(x, obj, method, args, s)
	}
	switch method {
	case "isValid":
		return truth(p.valid)
	case "setValid", "setInvalid":
		p.valid = method == "setValid"
		return value{}
	}
	fail(x, "no method %s", method)
	return value{}
}

// arguments returns the places of parameters: an out parameter is the caller's own place.
func (r *run) arguments(params []variable, args []*expr, s *scope) []*slot {
	out := make([]*slot, len(params))
	for i, v := range params {
		p, high, low := r.ref(args[i], s)
		if p != nil && args[i].op != "slice" && (v.out || p.f != nil || p.obj != nil) {
			if p.t.kind == 'b' && v.typ.width != high-low+1 {
				fail(args[i], "%d bits for %d", high-low+1, v.typ.width)
			}
			out[i] = p
			continue
		}
		out[i] = &slot{t: v.typ, n: mask(r.eval(args[i], s).n, v.typ.width)}
	}
	return out
}

// size is the length, in bits, of a header.
func size(t *typ) (n int) {
	for _, f := range t.fields {
		n += f.typ.width
	}
	return n
}

// flat returns a list's or a header's values as one row of bits, the first on the left.
func flat(v value) (out []byte) {
	var n int
	add := func(e value, w int) {
		for i := w - 1; i >= 0; i-- {
			if n%8 == 0 {
				out = append(out, 0)
			}
			out[n/8] |= byte(e.bits(i, 1)) << (7 - n%8)
			n++
		}
	}
	if v.slot != nil {
		for _, f := range v.slot.t.fields {
			add(v.slot.f[f.name].value(), f.typ.width)
		}
	}
	for _, e := range v.list {
		add(e, e.w)
	}
	return slices.Clip(out)
}
