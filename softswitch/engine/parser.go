package engine

import (
	"encoding/json"
	"math/big"
)

// parser is the compiled parser: a graph of states. A parser that makes no progress ends
// with the error ParserTimeout, where BMv2 would spin for ever.
type parser struct {
	start     *parseState
	checksums []*checksum
	codes     parserCodes
}

// parserCodes are the program's values of the core library's errors.
type parserCodes struct {
	noError, tooShort, outOfBounds, headerTooShort, timeout, invalidArgument uint32
}

// parseOp is one operation of a state. It returns false after setting p.parserError.
type parseOp func(p *Packet) bool

// parseStep is an operation, or the extraction of a header of fixed length that belongs to
// no stack and no union.
type parseStep struct {
	op           parseOp
	h            *header // nil: op
	bytes, valid int
	base, words  int
	loads        []loadOp // while places in the frame are known
}

type parseState struct {
	name    string
	ops     []parseOp
	steps   []parseStep // ops, with what is done most often in line
	hasKey  bool
	narrow  bool // the key is of plain fields and has at most 64 bits
	key     []keyPart
	keyBits int // of the byte-padded key
	cases   []parseCase
	next    *parseState // default
}

// keyPart is one element of a transition key, padded to whole bytes.
type keyPart struct {
	bits int
	load func(p *Packet, dst []uint64) bool
	word int // word of a field of at most 64 bits of a fixed header, else -1
}

type parseCase struct {
	value, mask []uint64 // most significant limb first; mask nil for value sets
	vset        *vsetSpec
	vmask       []byte
	next        *parseState
}

const maxParseStates = 4096

func (c *compiler) buildParser(j *jsonProgram) {
	c.parser = &parser{codes: parserCodes{
		noError: c.errorBy["NoError"], tooShort: c.errorBy["PacketTooShort"], outOfBounds: c.errorBy["StackOutOfBounds"],
		headerTooShort: c.errorBy["HeaderTooShort"], timeout: c.errorBy["ParserTimeout"], invalidArgument: c.errorBy["ParserInvalidArgument"],
	}}
	c.vsetBy = map[string]*vsetSpec{}
	for i, v := range j.ParseVSets {
		c.in("parse_vsets", i, func() {
			if v.Bits < 1 || v.Bits > maxFieldBits || c.vsetBy[v.Name] != nil {
				c.fail("value set %q is declared twice or has compressed_bitwidth %d", v.Name, v.Bits)
			}
			s := &vsetSpec{name: v.Name, index: len(c.vsets), bits: v.Bits}
			c.vsets, c.vsetBy[v.Name] = append(c.vsets, s), s
		})
	}
	found := false
	for i := range j.Parsers {
		if j.Parsers[i].Name == "parser" {
			c.in("parsers", i, func() { c.buildStates(&j.Parsers[i]) })
			found = true
		}
	}
	if !found {
		c.fail("there is no parser named %q", "parser")
	}
}

func (c *compiler) buildStates(j *jsonParser) {
	states := map[string]*parseState{}
	for i := range j.States {
		if states[j.States[i].Name] != nil {
			c.fail("parse state %q is declared twice", j.States[i].Name)
		}
		states[j.States[i].Name] = &parseState{name: j.States[i].Name}
	}
	for i := range j.States {
		js := &j.States[i]
		c.in("parse_states", i, func() { c.buildParseState(states[js.Name], js, states) })
	}
	c.parser.start = c.stateNamed(states, j.InitState)
}

func (c *compiler) stateNamed(states map[string]*parseState, name *string) *parseState {
	if name == nil {
		return nil
	}
	s := states[*name]
	if s == nil {
		c.fail("unknown parse state %q", *name)
	}
	return s
}

func (c *compiler) buildParseState(s *parseState, j *jsonParseState, states map[string]*parseState) {
	outer := c.regs
	c.regs = nil
	for i := range j.Ops {
		c.in("parser_ops", i, func() { s.ops = append(s.ops, c.parserOp(&j.Ops[i])) })
	}
	if lock := c.lockOf(c.regs); lock >= 0 {
		s.ops = []parseOp{lockedOps(lock, s.ops)}
	}
	c.regs = outer
	for _, op := range s.ops {
		s.steps = append(s.steps, parseStep{op: op})
	}
	for i := range j.Ops {
		if h := c.plainExtract(&j.Ops[i]); h != nil && len(s.steps) == len(j.Ops) {
			s.steps[i] = parseStep{h: h, bytes: h.typ.bits / 8, valid: h.valid, base: h.base, words: h.typ.words}
			c.extracts = append(c.extracts, &s.steps[i])
		}
	}
	for i := range j.Key {
		c.in("transition_key", i, func() {
			k := c.keyPart(&j.Key[i])
			s.key = append(s.key, k)
			s.keyBits += (k.bits + 7) / 8 * 8
		})
	}
	s.hasKey = len(j.Key) > 0
	s.narrow = s.hasKey && s.keyBits <= 64
	for i := range s.key {
		s.narrow = s.narrow && s.key[i].word >= 0
	}
	for i := range j.Transitions {
		c.in("transitions", i, func() { c.transition(s, &j.Transitions[i], states) })
	}
}

// lockedOps runs the operations of a state under the locks of the registers they use.
func lockedOps(lock int, ops []parseOp) parseOp {
	f := locked(lock, func(p *Packet) {
		p.parseOK = true
		for _, op := range ops {
			if !op(p) {
				p.parseOK = false
				return
			}
		}
	})
	return func(p *Packet) bool { f(p); return p.parseOK }
}

func (c *compiler) transition(s *parseState, j *jsonTransition, states map[string]*parseState) {
	typ := "hexstr"
	if j.Type != nil {
		typ = *j.Type
	}
	if typ == "hexstr" && !isNull(j.Value) && c.str(j.Value) == "default" {
		typ = "default"
	}
	next := c.stateNamed(states, j.Next)
	switch typ {
	case "default":
		s.next = next
	case "hexstr":
		if !s.hasKey {
			return // BMv2 goes to the default state when there is nothing to compare
		}
		n := s.keyBits / 8
		k := parseCase{next: next, value: c.keyWords(c.str(j.Value), n)}
		k.mask = make([]uint64, len(k.value))
		if j.Mask != nil {
			k.mask = c.keyWords(*j.Mask, n)
		} else {
			for i := range k.mask {
				k.mask[i] = ^uint64(0)
			}
		}
		for i := range k.value {
			k.value[i] &= k.mask[i]
		}
		s.cases = append(s.cases, k)
	case "parse_vset":
		v := c.vsetBy[c.str(j.Value)]
		if v == nil {
			c.fail("unknown value set %s", clip(j.Value))
		}
		k := parseCase{next: next, vset: v}
		if j.Mask != nil {
			k.vmask = c.fixed(*j.Mask, max((v.bits+7)/8, s.keyBits/8))
		}
		widths := make([]int, len(s.key))
		for i := range s.key {
			widths[i] = s.key[i].bits
		}
		if v.widths == nil {
			v.widths = widths
		}
		if sum(widths) != v.bits {
			c.fail("value set %q has %d bits, the transition key %d", v.name, v.bits, sum(widths))
		}
		s.cases = append(s.cases, k)
	default:
		c.fail("unknown transition type %q, allowed are default, hexstr and parse_vset", typ)
	}
}

func sum(v []int) (n int) {
	for _, x := range v {
		n += x
	}
	return n
}

// keyWords reads n bytes of hexadecimal as limbs, the most significant first, aligned to
// the right.
func (c *compiler) keyWords(s string, n int) []uint64 {
	b := c.hexBytes(s)
	if len(b) != n {
		c.fail("%q has %d bytes, the transition key has %d", s, len(b), n)
	}
	k := (n + 7) / 8
	z := new(big.Int).SetBytes(b)
	v := make([]uint64, k)
	for i := range v {
		v[i] = bigLimb(z, k-1-i)
	}
	return v
}

func (c *compiler) keyPart(j *jsonValue) keyPart {
	switch j.Type {
	case "field":
		r := c.fieldValue(j.Value)
		if r.f != nil && r.f.vl {
			c.fail("variable-length field %q in a transition key", r.f.name)
		}
		w, n := r.word(), 1
		if r.f != nil {
			n = r.f.words
		}
		k := keyPart{bits: r.bits(), word: -1, load: func(p *Packet, dst []uint64) bool {
			copy(dst, p.w[w:w+n])
			return true
		}}
		if n == 1 {
			k.word = w
		}
		return k
	case "stack_field", "union_stack_field":
		return c.lastKeyPart(j)
	case "lookahead":
		off, bits := c.lookahead(j.Value)
		return keyPart{bits: bits, word: -1, load: func(p *Packet, dst []uint64) bool {
			return p.peek(dst, off, bits)
		}}
	}
	c.fail("unknown type %q in a transition key, allowed are field, stack_field, union_stack_field and lookahead", j.Type)
	return keyPart{}
}

// lastKeyPart is a field of the last extracted element of a stack or union stack.
func (c *compiler) lastKeyPart(j *jsonValue) keyPart {
	var v []string
	c.decode(j.Value, &v)
	var s *stack
	var typ *headerType
	member := 0
	switch {
	case j.Type == "stack_field" && len(v) == 2:
		s = c.stackNamed(v[0])
		typ = s.typ
	case j.Type == "union_stack_field" && len(v) == 3:
		s = c.layout.ustacks[v[0]]
		if s == nil {
			c.fail("unknown header union stack %q", v[0])
		}
		typ, member = c.unionMember(s.utyp, v[1])
	default:
		c.fail("%s does not name a field of a stack", clip(j.Value))
	}
	i, ok := typ.byName[v[len(v)-1]]
	if !ok || typ.fields[i].vl {
		c.fail("header type %q has no fixed-length field %q", typ.name, v[len(v)-1])
	}
	f := &typ.fields[i]
	return keyPart{bits: f.bits, word: -1, load: func(p *Packet, dst []uint64) bool {
		n := p.w[s.next]
		if n == 0 {
			return p.parseFail(p.in.prog.parser.codes.outOfBounds)
		}
		h := s.element(int(n-1), member)
		copy(dst, p.w[h.base+f.word:h.base+f.word+f.words])
		return true
	}}
}

// element is header i of a stack, or member of union i.
func (s *stack) element(i, member int) *header {
	if s.unions != nil {
		return s.unions[i].elems[member]
	}
	return s.elems[i]
}

func (c *compiler) unionMember(u *jsonHeaderUnionType, name string) (*headerType, int) {
	for i, m := range u.Headers {
		if m[0] == name {
			return c.layout.types[m[1]], i
		}
	}
	c.fail("header union type %q has no member %q", u.Name, name)
	return nil, 0
}

func (c *compiler) lookahead(raw json.RawMessage) (off, bits int) {
	var v [2]int
	c.decode(raw, &v)
	if v[0] < 0 || v[1] < 1 || v[0] > maxFieldBits || v[1] > maxFieldBits {
		c.fail("lookahead of %d bits at %d, allowed are 1 to %d", v[1], v[0], maxFieldBits)
	}
	return v[0], v[1]
}

// peek reads bits that the parser has not reached; what is not there is PacketTooShort.
func (p *Packet) peek(dst []uint64, off, bits int) bool {
	if off+bits > 8*(p.dataEnd()-p.head) {
		return p.parseFail(p.in.prog.parser.codes.tooShort)
	}
	readField(dst, p.buf[p.head:], off, bits)
	return true
}

// dataEnd is where the packet ends for the parser.
func (p *Packet) dataEnd() int {
	if p.trunc < p.end-p.start {
		return p.start + p.trunc
	}
	return p.end
}

func (p *Packet) parseFail(code uint32) bool {
	p.parserError = code
	return false
}

// parse runs the parser over the packet: headers become valid, p.head moves behind them.
func (p *Packet) parse() {
	ps := p.in.prog.parser
	p.parserError, p.checksumBad = ps.codes.noError, false
	p.base, p.nPlaced = p.head, 0
	s := ps.start
	for n := 0; s != nil; n++ {
		if n > maxParseStates {
			p.parserError = ps.codes.timeout
			break
		}
		var ok bool
		if s, ok = s.run(p); !ok {
			break
		}
	}
	for _, k := range ps.checksums {
		if !k.verify(p) {
			p.checksumBad = true
		}
	}
}

// run executes a state and finds the next one.
func (s *parseState) run(p *Packet) (*parseState, bool) {
	for i := range s.steps {
		o := &s.steps[i]
		if o.h == nil {
			if !o.op(p) {
				return nil, false
			}
			continue
		}
		if p.dataEnd()-p.head < o.bytes {
			return nil, p.parseFail(p.in.prog.parser.codes.tooShort)
		}
		if n := p.nPlaced; uint(n) < uint(len(p.placed)) {
			load(o.loads, p.w[o.base:o.base+o.words], p.buf[p.head:])
			p.placed[n] = placement{uint32(o.h.index), uint32(p.head)}
			p.nPlaced = n + 1
		} else {
			p.forget()
			o.h.typ.codec.extract(p.w[o.base:o.base+o.words], p.buf[p.head:])
		}
		p.w[o.valid] = 1
		p.head += o.bytes
	}
	if !s.hasKey {
		return s.next, true
	}
	if s.narrow {
		v := p.w[s.key[0].word]
		for i := 1; i < len(s.key); i++ {
			k := &s.key[i]
			v = v<<(uint(k.bits+7)&^7) | p.w[k.word]
		}
		for i := range s.cases {
			k := &s.cases[i]
			if k.vset == nil {
				if v&k.mask[0] == k.value[0] {
					return k.next, true
				}
			} else if p.key[0] = v; k.vset.contains(p, p.key[:1], s, k) {
				return k.next, true
			}
		}
		return s.next, true
	}
	return s.runWide(p)
}

// runWide matches keys of several parts or of more than 64 bits.
func (s *parseState) runWide(p *Packet) (*parseState, bool) {
	n := (s.keyBits + 63) / 64
	words := 0
	for i := range s.key {
		words = max(words, (s.key[i].bits+63)/64)
	}
	if need := n + words; cap(p.tmp) < need {
		p.tmp = make([]uint64, need)
	}
	key, part := p.tmp[:n], p.tmp[n:n+words]
	clear(key)
	for i := range s.key {
		k := &s.key[i]
		if !k.load(p, part) {
			return nil, false
		}
		bits := (k.bits + 7) / 8 * 8
		limbs := (k.bits + 63) / 64
		shiftIn(key, part[:limbs], bits)
	}
	for i := range s.cases {
		k := &s.cases[i]
		if k.vset != nil {
			if k.vset.contains(p, key, s, k) {
				return k.next, true
			}
			continue
		}
		match := true
		for x := range key {
			if key[x]&k.mask[x] != k.value[x] {
				match = false
				break
			}
		}
		if match {
			return k.next, true
		}
	}
	return s.next, true
}

// shiftIn moves key, most significant limb first, left by bits and puts part, least
// significant limb first, in the gap.
func shiftIn(key, part []uint64, bits int) {
	for left := bits; left > 0; {
		// The parts are fed from the top so that no step shifts by more than a limb.
		n := (left-1)%64 + 1
		v := part[(left-1)/64]
		if n < 64 {
			v &= 1<<n - 1
		}
		for i := 0; i < len(key)-1; i++ {
			if n == 64 {
				key[i] = key[i+1]
			} else {
				key[i] = key[i]<<n | key[i+1]>>(64-n)
			}
		}
		last := len(key) - 1
		if n == 64 {
			key[last] = v
		} else {
			key[last] = key[last]<<n | v
		}
		left -= n
	}
}
