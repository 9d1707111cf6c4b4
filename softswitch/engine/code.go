package engine

// The pipelines are lowered to a list of instructions, so that a packet's way through
// conditions, tables and actions is one loop over a flat array. Operands are words of the
// packet header vector; behind its fields stand temporaries.

type opcode uint8

const (
	opEnd   opcode = iota // the pipeline is done; instruction 0 is one
	opRet                 // the action is done
	opLeave               // the pipeline is done if an action said exit
	opJump
	opTable // look up table a, run its action, go on where the table says
	opArgs  // make args[a] the parameters
	opCall  // ops[a]

	opConst // d = k
	opMove  // d = a & mask
	opParam // d = parameter a & mask
	opWord  // d = words[a]() & mask

	opAdd // d = (a + b) & mask, and so on; the second row has k in place of b
	opSub
	opMul
	opAnd
	opOr
	opXor
	opShl
	opShr
	opMin
	opAddK
	opSubK
	opMulK
	opAndK
	opOrK
	opXorK
	opShlK
	opShrK
	opMinK

	opJumpEQ // to d if a == b, and so on, unsigned; the second row has k in place of b
	opJumpNE
	opJumpLT
	opJumpGE
	opJumpGT
	opJumpLE
	opJumpEQK
	opJumpNEK
	opJumpLTK
	opJumpGEK
	opJumpGTK
	opJumpLEK
	opJumpIf    // to d if tests[a]()
	opJumpIfNot // to d if not tests[a]()

	opLock     // of register a
	opUnlock   // of register a
	opRegRead  // d = register a at index b & mask; d stays beyond the end
	opRegWrite // register a at index b = d & mask
	opCount    // counter a at index b
)

// toK is the distance between the two rows.
const (
	arithToK = opAddK - opAdd
	jumpToK  = opJumpEQK - opJumpEQ
)

// instr is one instruction.
type instr struct {
	op      opcode
	a, b, d uint32
	k, mask uint64
}

// code is the lowered pipelines of a program.
type code struct {
	list    []instr
	ops     []opFn
	words   []wordFn
	tests   []boolFn
	args    [][]uint64
	temps   int // words of temporaries
	ingress uint32
	egress  uint32
}

// exec runs a pipeline from instruction pc to its end, or to exit.
func (p *Packet) exec(pc uint32) {
	in := p.in
	c := &in.prog.code
	list, w := c.list, p.w
	ret := uint32(0) // where an action of a table returns to
	p.exit = false
	for {
		i := &list[pc]
		pc++
		switch i.op {
		case opEnd:
			return
		case opRet:
			if p.exit {
				return
			}
			pc = ret
		case opLeave:
			if p.exit {
				return
			}
		case opJump:
			pc = i.d
		case opTable:
			act, next := in.tables[i.a].match(p)
			pc = 0
			if next != nil {
				pc = next.pc
			}
			if act != nil && act.act != nil && !act.act.noop {
				p.args = act.args
				ret, pc = pc, act.act.pc
			}
		case opArgs:
			p.args = c.args[i.a]
		case opCall:
			c.ops[i.a](p)

		case opConst:
			w[i.d] = i.k
		case opMove:
			w[i.d] = w[i.a] & i.mask
		case opParam:
			w[i.d] = p.args[i.a] & i.mask
		case opWord:
			w[i.d] = c.words[i.a](p) & i.mask

		case opAdd:
			w[i.d] = (w[i.a] + w[i.b]) & i.mask
		case opSub:
			w[i.d] = (w[i.a] - w[i.b]) & i.mask
		case opMul:
			w[i.d] = (w[i.a] * w[i.b]) & i.mask
		case opAnd:
			w[i.d] = w[i.a] & w[i.b] & i.mask
		case opOr:
			w[i.d] = (w[i.a] | w[i.b]) & i.mask
		case opXor:
			w[i.d] = (w[i.a] ^ w[i.b]) & i.mask
		case opShl:
			w[i.d] = (w[i.a] << w[i.b]) & i.mask
		case opShr:
			w[i.d] = (w[i.a] >> w[i.b]) & i.mask
		case opMin:
			w[i.d] = min(w[i.a], w[i.b]) & i.mask
		case opAddK:
			w[i.d] = (w[i.a] + i.k) & i.mask
		case opSubK:
			w[i.d] = (w[i.a] - i.k) & i.mask
		case opMulK:
			w[i.d] = (w[i.a] * i.k) & i.mask
		case opAndK:
			w[i.d] = w[i.a] & i.k & i.mask
		case opOrK:
			w[i.d] = (w[i.a] | i.k) & i.mask
		case opXorK:
			w[i.d] = (w[i.a] ^ i.k) & i.mask
		case opShlK:
			w[i.d] = (w[i.a] << i.k) & i.mask
		case opShrK:
			w[i.d] = (w[i.a] >> i.k) & i.mask
		case opMinK:
			w[i.d] = min(w[i.a], i.k) & i.mask

		case opJumpEQ:
			if w[i.a] == w[i.b] {
				pc = i.d
			}
		case opJumpNE:
			if w[i.a] != w[i.b] {
				pc = i.d
			}
		case opJumpLT:
			if w[i.a] < w[i.b] {
				pc = i.d
			}
		case opJumpGE:
			if w[i.a] >= w[i.b] {
				pc = i.d
			}
		case opJumpGT:
			if w[i.a] > w[i.b] {
				pc = i.d
			}
		case opJumpLE:
			if w[i.a] <= w[i.b] {
				pc = i.d
			}
		case opJumpEQK:
			if w[i.a] == i.k {
				pc = i.d
			}
		case opJumpNEK:
			if w[i.a] != i.k {
				pc = i.d
			}
		case opJumpLTK:
			if w[i.a] < i.k {
				pc = i.d
			}
		case opJumpGEK:
			if w[i.a] >= i.k {
				pc = i.d
			}
		case opJumpGTK:
			if w[i.a] > i.k {
				pc = i.d
			}
		case opJumpLEK:
			if w[i.a] <= i.k {
				pc = i.d
			}
		case opJumpIf:
			if c.tests[i.a](p) {
				pc = i.d
			}
		case opJumpIfNot:
			if !c.tests[i.a](p) {
				pc = i.d
			}

		case opLock:
			in.registers[i.a].mu.Lock()
		case opUnlock:
			in.registers[i.a].mu.Unlock()
		case opRegRead:
			if r := in.registers[i.a].cells; w[i.b] < uint64(len(r)) {
				w[i.d] = r[w[i.b]] & i.mask
			}
		case opRegWrite:
			if r := in.registers[i.a].cells; w[i.b] < uint64(len(r)) {
				r[w[i.b]] = w[i.d] & i.mask
			}
		case opCount:
			if n := in.counters[i.a]; w[i.b] < uint64(len(n)) {
				n[w[i.b]].add(p.Bytes)
			}
		}
	}
}
