package engine

// The loader lowers the pipelines to a list of instructions. Conditions, tables and actions then
// run in one loop over a flat array. Operands are words of the packet header vector; temporaries
// follow its fields. A program that is linked in runs as Go instead, see Native. Whoever changes
// an instruction must change nativeWriter too.

type opcode uint8

const (
	opEnd   opcode = iota // end the code with result k; instruction 0 is an opEnd
	opRet                 // return from the action
	opLeave               // end the pipeline if an action called exit
	opJump
	opTable // look up table a, run its action, jump to the table's next node
	opArgs  // use args[a] as the action's parameters
	opCall  // call ops[a]

	opConst // d = k
	opMove  // d = a & mask
	opParam // d = parameter a & mask
	opDiv   // d = (a / b) & mask, 0 where b is 0
	opMod

	opAdd // d = (a + b) & mask, and likewise below; the second row has k in place of b
	opSub
	opMul
	opAnd
	opOr
	opXor
	opShl
	opShr
	opMin
	opSubNat // 0 if b > a
	opAddK
	opSubK
	opMulK
	opAndK
	opOrK
	opXorK
	opShlK
	opShrK
	opMinK
	opSubNatK

	opJumpEQ // jumps to d if a == b; the others compare likewise, all unsigned; the second row has k in place of b
	opJumpNE
	opJumpLT
	opJumpGE
	opJumpEQK
	opJumpNEK
	opJumpLTK
	opJumpGEK

	opLock     // lock register a
	opUnlock   // unlock register a
	opRegRead  // d = register a at index b & mask; beyond the end d is unchanged
	opRegWrite // register a at index b = d & mask
	opCount    // counter a at index b
)

// toK is the distance between the two rows of opcodes.
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

// code holds the lowered pipelines of a program.
type code struct {
	list  []instr
	ops   []func(p *Packet)
	args  [][]uint64
	base  uint32 // index of the first temporary's word
	temps int    // number of words for temporaries

	fragments []uint32 // first instructions of code that runs outside of the pipelines

	native    Native    // zero if the program is interpreted
	parserOps []parseOp // by parseStep.number
}

// exec runs code from instruction pc to its end or to exit, and returns its result.
func (p *Packet) exec(pc uint32) uint64 {
	if run := p.in.prog.code.native.Exec; run != nil {
		return run(p, pc)
	}
	return p.Interpret(pc)
}

// pipeline runs the pipeline of a pass.
func (p *Packet) pipeline(pass Pass) {
	if p.watch != nil {
		p.watchPipeline(pass)
	} else {
		p.exec(p.in.prog.passes[pass].pc)
	}
}

// Interpret does what exec does, without a Native.
func (p *Packet) Interpret(pc uint32) uint64 {
	in := p.in
	c := &in.prog.code
	list, w := c.list, p.W
	ret := uint32(0) // the instruction to which a table's action returns
	p.exit = false
	for {
		i := &list[pc]
		pc++
		switch i.op {
		case opEnd:
			return i.k
		case opRet:
			if p.exit {
				return 0
			}
			pc = ret
		case opLeave:
			if p.exit {
				return 0
			}
		case opJump:
			pc = i.d
		case opTable:
			s := in.tables[i.a].Match(p)
			p.Args, pc, ret = s.args, s.pc, s.ret
		case opArgs:
			p.Args = c.args[i.a]
		case opCall:
			c.ops[i.a](p)

		case opConst:
			w[i.d] = i.k
		case opMove:
			w[i.d] = w[i.a] & i.mask
		case opParam:
			w[i.d] = p.Args[i.a] & i.mask
		case opDiv:
			v := uint64(0)
			if w[i.b] != 0 {
				v = w[i.a] / w[i.b]
			}
			w[i.d] = v & i.mask
		case opMod:
			v := uint64(0)
			if w[i.b] != 0 {
				v = w[i.a] % w[i.b]
			}
			w[i.d] = v & i.mask

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
		case opSubNat:
			w[i.d] = (w[i.a] - min(w[i.a], w[i.b])) & i.mask
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
		case opSubNatK:
			w[i.d] = (w[i.a] - min(w[i.a], i.k)) & i.mask

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
				n[w[i.b]].Add(p.Bytes)
			}
		}
	}
}
