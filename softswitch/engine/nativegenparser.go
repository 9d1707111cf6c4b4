package engine

import (
	"fmt"

	"github.com/headgate/headgate/softswitch/engine/phv"
)

// parse writes the parser of ingress and returns true. It writes nothing and returns false if a state holds a
// lock, or chooses the next state by a wide key or a value set.
func (t *nativeWriter) parse() bool {
	var list []*parseState
	number := map[*parseState]int{}
	for todo := []*parseState{t.prog.passes[Ingress].parser.start}; len(todo) > 0; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if _, ok := number[s]; ok || s == nil {
			continue
		}
		if s.lock >= 0 || len(s.key) > 0 && !s.narrow {
			return false
		}
		number[s] = len(list)
		list = append(list, s)
		todo = append(todo, s.next)
		for i := range s.cases {
			if s.cases[i].vset != nil {
				return false
			}
			todo = append(todo, s.cases[i].next)
		}
	}
	t.out("func parse(p *engine.Packet) {")
	t.out("w := (*[%d]uint64)(p.W)\nvisited := 0", int(t.prog.code.base)+t.prog.code.temps)
	next := func(s *parseState) string {
		if s == nil {
			return "return"
		}
		return fmt.Sprintf("goto s%d", number[s])
	}
	t.out("%s", next(t.prog.passes[Ingress].parser.start))
	for i, s := range list {
		t.out("s%d:\nif visited++; visited > engine.MaxParserStates+1 {\np.Timeout()\nreturn\n}", i)
		for k := range s.steps {
			t.parseStep(&s.steps[k])
		}
		if len(s.key) > 0 && len(s.cases) > 0 {
			t.transition(s, next)
		}
		t.out("%s", next(s.next))
	}
	t.out("}\n")
	return true
}

// transition writes the choice of the next state.
func (t *nativeWriter) transition(s *parseState, next func(*parseState) string) {
	v := word64(uint32(s.key[0].word))
	for _, k := range s.key[1:] {
		v = fmt.Sprintf("(%s)<<%d | w[%d]", v, padded(k.bits), k.word)
	}
	t.out("{\nv := %s", v)
	for i := range s.cases {
		k := &s.cases[i]
		t.out("if %s == %#x {\n%s\n}", under("v", k.m|^phv.LastMask(s.keyBits)), k.v, next(k.next))
	}
	t.out("}")
}

// parseStep writes one step of a state.
func (t *nativeWriter) parseStep(o *parseStep) {
	switch {
	case o.pc != 0 && t.straight(o.pc):
		for i := o.pc; t.prog.code.list[i].op != opEnd; i++ {
			t.out("%s", t.instruction(&t.prog.code.list[i]))
		}
		return
	case o.pc != 0:
		t.out("exec(p, %d)", o.pc)
		return
	case o.op != nil:
		t.out("if !p.Machine().ParserOp(%d)(p) {\nreturn\n}", o.number)
		return
	}
	t.out("if p.Left() < %d {\np.TooShort()\nreturn\n}", o.bytes)
	t.out("if p.HasPlace() {")
	if len(o.loads) > 0 {
		t.out("b := (*[%d]byte)(p.Rest())", o.bytes+phv.Slack)
	}
	for i := range o.loads {
		l := &o.loads[i]
		e := fmt.Sprintf("binary.BigEndian.Uint64(b[%d:])", l.Off)
		if l.Shift > 0 {
			e += fmt.Sprintf(">>%d", l.Shift)
		}
		t.out("w[%d] = %s", l.Word, under(e, l.Mask|^(allBits>>l.Shift)))
	}
	t.out("p.Place(%d)", o.h.Index)
	t.out("} else {\np.ExtractUnplaced(%d)\n}", o.h.Index)
	t.out("w[%d] = 1\np.Advance(%d)", o.valid, o.bytes)
}

// straight reports whether the code at pc runs to its end without a jump or a call.
func (t *nativeWriter) straight(pc uint32) bool {
	for ; ; pc++ {
		switch op := t.prog.code.list[pc].op; {
		case op == opEnd:
			return true
		case op < opConst || op >= opJumpEQ:
			return false
		}
	}
}
