package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// go generate removes the old translation first, because it may not compile any more.
//
//go:generate rm -f translated.go
//go:generate go test -run ^TestTranslationIsCurrent$ . -update

// translation is a program in Go, as a translator writes it. It works on the tables, operations and
// arguments of the program that runs it.
type translation struct {
	exec  func(p *Packet, pc uint32) uint64
	parse func(p *Packet) // nil where the parser is interpreted
}

// translations are those that are linked in, by the digest of their source.
var translations = map[string]translation{}

// translated links a translation in.
func translated(digest string, t translation) bool {
	translations[digest] = t
	return true
}

// translator writes a program in Go: its list of instructions and its parser, with all operands,
// masks and constants in place, and the keys of its tables. A program runs a translation if it is
// translated to the same source, so nothing else has to know what a translation depends on.
type translator struct {
	prog    *Program
	b       bytes.Buffer
	reached []bool   // by instruction: it can be run
	target  []bool   // by instruction: another one jumps to it
	entries []uint16 // by instruction: its number among those that exec dispatches to by pc, 0 for others
	ops     []parseOp
}

// translate writes the program in Go, not formatted.
func (prog *Program) translate() *translator {
	n := len(prog.code.list)
	t := &translator{prog: prog, reached: make([]bool, n), target: make([]bool, n), entries: make([]uint16, n)}
	t.out("package engine\n")
	t.out("import \"encoding/binary\"\n")
	t.exec(t.findEntries())
	t.parse()
	return t
}

func (t *translator) out(format string, args ...any) { fmt.Fprintf(&t.b, format+"\n", args...) }

// findEntries numbers the instructions at which code begins, or goes on after a table, and follows
// the code from them.
func (t *translator) findEntries() []uint32 {
	c := &t.prog.code
	at := map[uint32]bool{0: true, c.ingress: true, c.egress: true}
	for _, pc := range c.fragments {
		at[pc] = true
	}
	for _, s := range t.prog.tables.list {
		for _, n := range s.followers() {
			if n != nil {
				at[n.label.pc] = true
			}
		}
		for _, a := range s.actions {
			at[a.pc] = true
		}
	}
	list := slices.Sorted(maps.Keys(at))
	for i, pc := range list {
		t.entries[pc] = uint16(i + 1)
		t.reach(pc)
	}
	return list
}

// reach follows the code from an instruction on.
func (t *translator) reach(pc uint32) {
	for todo := []uint32{pc}; len(todo) > 0; {
		pc, todo = todo[len(todo)-1], todo[:len(todo)-1]
		for !t.reached[pc] {
			t.reached[pc] = true
			i := &t.prog.code.list[pc]
			if i.op == opJump || i.op >= opJumpEQ && i.op <= opJumpGEK {
				t.target[i.d] = true
				todo = append(todo, i.d)
			}
			if i.op == opEnd || i.op == opRet || i.op == opJump || i.op == opTable {
				break
			}
			pc++
		}
	}
}

// exec writes the instructions.
func (t *translator) exec(entries []uint32) {
	c := &t.prog.code
	t.out("func translatedExec(p *Packet, pc uint32) uint64 {")
	t.out("in := p.in\nc := &in.prog.code\nw := (*[%d]uint64)(p.W)\nvar s *step\nret := uint32(0)\np.exit = false", int(c.base)+c.temps)
	t.out("dispatch:\nswitch c.entries[pc] {")
	for i, pc := range entries {
		t.out("case %d:\ngoto l%d", i+1, pc)
	}
	t.out("}\nreturn p.interpret(pc)")
	for pc := range c.list {
		if !t.reached[pc] {
			continue
		}
		if t.entries[pc] != 0 || t.target[pc] {
			t.out("l%d:", pc)
		}
		t.out("%s", t.instruction(&c.list[pc]))
	}
	t.out("}\n")
}

// operators are those of Go, for opcodes with two words.
var operators = map[opcode]string{
	opAdd: "+", opSub: "-", opMul: "*", opAnd: "&", opOr: "|", opXor: "^", opShl: "<<", opShr: ">>", opDiv: "/", opMod: "%",
	opJumpEQ: "==", opJumpNE: "!=", opJumpLT: "<", opJumpGE: ">=",
}

func word64(i uint32) string { return fmt.Sprintf("w[%d]", i) }

// masked returns an expression under a mask.
func under(e string, mask uint64) string {
	if mask == allBits {
		return e
	}
	return fmt.Sprintf("(%s) & %#x", e, mask)
}

// instruction returns one instruction in Go.
func (t *translator) instruction(i *instr) string {
	op, d, l, r := i.op, word64(i.d), word64(i.a), word64(i.b)
	switch {
	case op >= opAddK && op <= opSubNatK:
		op, r = op-arithToK, fmt.Sprintf("%#x", i.k)
	case op >= opJumpEQK && op <= opJumpGEK:
		op, r = op-jumpToK, fmt.Sprintf("%#x", i.k)
	}
	switch op {
	case opEnd:
		return fmt.Sprintf("return %d", i.k)
	case opRet:
		return "if p.exit {\nreturn 0\n}\npc = ret\ngoto dispatch"
	case opLeave:
		return "if p.exit {\nreturn 0\n}"
	case opJump:
		return fmt.Sprintf("goto l%d", i.d)
	case opTable:
		return t.lookup(t.prog.tables.list[i.a]) + "\np.Args, pc, ret = s.args, s.pc, s.ret\ngoto dispatch"
	case opArgs:
		return fmt.Sprintf("p.Args = c.args[%d]", i.a)
	case opCall:
		return fmt.Sprintf("c.ops[%d](p)", i.a)
	case opConst:
		return fmt.Sprintf("%s = %#x", d, i.k)
	case opMove:
		return fmt.Sprintf("%s = %s", d, under(l, i.mask))
	case opParam:
		return fmt.Sprintf("%s = %s", d, under(fmt.Sprintf("p.Args[%d]", i.a), i.mask))
	case opDiv, opMod:
		return fmt.Sprintf("if %s != 0 {\n%s = %s\n} else {\n%s = 0\n}", r, d, under(l+operators[op]+r, i.mask), d)
	case opMin:
		return fmt.Sprintf("%s = %s", d, under(fmt.Sprintf("min(%s, %s)", l, r), i.mask))
	case opSubNat:
		return fmt.Sprintf("%s = %s", d, under(fmt.Sprintf("%s - min(%s, %s)", l, l, r), i.mask))
	case opJumpEQ, opJumpNE, opJumpLT, opJumpGE:
		return fmt.Sprintf("if %s %s %s {\ngoto l%d\n}", l, operators[op], r, i.d)
	case opLock:
		return fmt.Sprintf("in.registers[%d].mu.Lock()", i.a)
	case opUnlock:
		return fmt.Sprintf("in.registers[%d].mu.Unlock()", i.a)
	case opRegRead:
		return fmt.Sprintf("if r := in.registers[%d].cells; %s < uint64(len(r)) {\n%s = %s\n}", i.a, r, d, under(fmt.Sprintf("r[%s]", r), i.mask))
	case opRegWrite:
		return fmt.Sprintf("if r := in.registers[%d].cells; %s < uint64(len(r)) {\nr[%s] = %s\n}", i.a, r, r, under(d, i.mask))
	case opCount:
		return fmt.Sprintf("if n := in.counters[%d]; %s < uint64(len(n)) {\nn[%s].add(p.Bytes)\n}", i.a, r, r)
	}
	return fmt.Sprintf("%s = %s", d, under(fmt.Sprintf("(%s %s %s)", l, operators[op], r), i.mask))
}

// lookup writes the lookup in a table, with its key in place.
func (t *translator) lookup(s *tableSpec) string {
	if s.words > len(Packet{}.key) {
		return fmt.Sprintf("s = in.tables[%d].match(p)", s.index)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "if t := in.tables[%d]; t.used {\nvar key [%d]uint64\n", s.index, s.words)
	for i := range s.moves {
		m := &s.moves[i]
		e := word64(uint32(m.src))
		if m.right > 0 {
			e += fmt.Sprintf(" >> %d", m.right)
		}
		e = "(" + under(e, m.mask) + ")"
		if m.left > 0 {
			e += fmt.Sprintf(" << %d", m.left)
		}
		if m.valid >= 0 {
			fmt.Fprintf(&b, "if w[%d] != 0 {\nkey[%d] |= %s\n}\n", m.valid, m.dst, e)
		} else {
			fmt.Fprintf(&b, "key[%d] |= %s\n", m.dst, e)
		}
	}
	fmt.Fprintf(&b, "copy(p.key[:], key[:])\ns = t.lookup(p, p.key[:%d])\n} else {\ns = t.missed(p)\n}", s.words)
	return b.String()
}

// link makes the program run its translation, if there is one.
func (prog *Program) link() {
	t := prog.translate()
	if native, ok := translations[t.digest()]; ok {
		prog.code.native, prog.code.entries, prog.code.parseOps = native, t.entries, t.ops
	}
}

func (t *translator) digest() string {
	sum := sha256.Sum256(t.b.Bytes())
	return hex.EncodeToString(sum[:])
}
