package engine

import (
	"encoding/binary"
	"slices"

	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine/phv"
)

// parser is the compiled parser, a graph of states. A parser that makes no progress ends with the
// error ParserTimeout; in BMv2 it would run for ever.
type parser struct {
	name   string
	start  *parseState
	native func(p *Packet) // runs the parser; nil if it is interpreted
}

// parserCodes holds the values that the program gives to the core library's errors.
type parserCodes struct {
	noError, tooShort, outOfBounds, headerTooShort, timeout, invalidArgument uint32
}

// parseOp is one operation of a state. It returns false after setting p.parserError.
type parseOp func(p *Packet) bool

// parseStep is an operation of a state. If h is set, it is the extraction of a fixed-length header
// outside of stacks and unions, which run performs in line.
type parseStep struct {
	op           parseOp
	what         string      // what the step extracts, for the log; empty if it extracts nothing
	number       int         // index of op among the program's operations
	pc           uint32      // code that cannot fail, 0 for none
	h            *phv.Header // nil when the step is not an extraction
	bytes, valid int
	loads        []phv.Load // the fields to load while the places of headers are known
}

type parseState struct {
	name    string
	steps   []parseStep
	lock    int  // register whose lock the state holds, −1 for none
	narrow  bool // the key consists of plain fields and has at most 64 bits
	key     []keyPart
	keyBits int // width of the byte-padded key
	cases   []parseCase
	next    *parseState // the default next state
}

// keyPart is one element of a transition key, padded to whole bytes.
type keyPart struct {
	bits int
	load func(p *Packet, dst []uint64) bool
	word int // word of a field of at most 64 bits in a header at a fixed place, else −1
}

type parseCase struct {
	value, mask []byte // value and mask of the padded key
	v, m        uint64 // value and mask if the key is narrow
	vset        *vsetSpec
	next        *parseState
}

// MaxParserStates is the number of states after which a parser ends with ParserTimeout.
const MaxParserStates = 4096

func (c *compiler) buildParsers(j *bmv2json.Program) {
	c.codes = parserCodes{
		noError: c.errorBy["NoError"], tooShort: c.errorBy["PacketTooShort"], outOfBounds: c.errorBy["StackOutOfBounds"],
		headerTooShort: c.errorBy["HeaderTooShort"], timeout: c.errorBy["ParserTimeout"], invalidArgument: c.errorBy["ParserInvalidArgument"],
	}
	c.vsets.kind = "value set"
	for i, v := range j.ValueSets {
		c.In("parse_vsets", i, func() {
			if v.Bits < 1 || v.Bits > bmv2json.MaxBits {
				c.Fail("value set %q has compressed_bitwidth %d, allowed are 1 to %d", v.Name, v.Bits, bmv2json.MaxBits)
			}
			c.vsets.add(c, v.Name, &vsetSpec{index: len(c.vsets.list), bits: v.Bits})
		})
	}
	for k := range c.passes {
		if i := block(c, "parser", c.arch.Passes[k].Parser, j.Parsers); i >= 0 {
			c.In("parsers", i, func() { c.passes[k].parser = c.buildStates(&j.Parsers[i]) })
		}
	}
}

// block returns the index of the block of an architecture that has a name, −1 if the name is "".
func block[B interface{ ObjectName() string }](c *compiler, kind, name string, list []B) int {
	i := slices.IndexFunc(list, func(b B) bool { return b.ObjectName() == name })
	if i < 0 && name != "" {
		c.Fail("there is no %s named %q", kind, name)
	}
	return i
}

func (c *compiler) buildStates(j *bmv2json.Parser) *parser {
	states := catalogue[*parseState]{kind: "parse state"}
	for i := range j.States {
		states.add(c, j.States[i].Name, &parseState{name: j.States[i].Name})
	}
	named := func(name *string) *parseState {
		if name == nil {
			return nil
		}
		return states.named(c, *name)
	}
	for i := range j.States {
		c.In("parse_states", i, func() { c.buildParseState(states.list[i], &j.States[i], named) })
	}
	return &parser{name: j.Name, start: named(j.InitState)}
}

func (c *compiler) buildParseState(s *parseState, j *bmv2json.ParseState, named func(*string) *parseState) {
	s.lock = c.locking(func() { c.parserOps(s, j.Ops) })
	c.serial = c.serial || s.lock >= 0
	for i := range s.steps {
		if s.steps[i].h != nil {
			c.extracts = append(c.extracts, &s.steps[i])
		}
	}
	s.narrow = len(j.Key) > 0
	for i := range j.Key {
		c.In("transition_key", i, func() {
			k := c.keyPart(&j.Key[i])
			s.key = append(s.key, k)
			s.keyBits += padded(k.bits)
			s.narrow = s.narrow && k.word >= 0
		})
	}
	s.narrow = s.narrow && s.keyBits <= 64
	for i := range j.Transitions {
		c.In("transitions", i, func() {
			t := &j.Transitions[i]
			c.transition(s, t, named(t.Next))
		})
	}
}

// padded rounds bits up to a multiple of 8.
func padded(bits int) int { return (bits + 7) &^ 7 }

func (c *compiler) transition(s *parseState, j *bmv2json.Transition, next *parseState) {
	typ := "hexstr"
	if j.Type != nil {
		typ = *j.Type
	}
	if typ == "hexstr" && !bmv2json.IsNull(j.Value) && c.Str(j.Value) == "default" {
		typ = "default"
	}
	n := s.keyBits / 8
	k := parseCase{next: next}
	switch typ {
	case "default":
		s.next = next
		return
	case "hexstr":
		if len(s.key) == 0 {
			return // without a key, BMv2 goes to the default state
		}
		k.value = c.keyBytes(c.Str(j.Value), n)
	case "parse_vset":
		k.vset = c.vsets.named(c, c.Str(j.Value))
		n = max((k.vset.bits+7)/8, n)
		k.vset.use(c, s.key)
	default:
		c.Fail("unknown transition type %q, allowed are default, hexstr and parse_vset", typ)
	}
	switch {
	case j.Mask == nil:
		k.mask = make([]byte, n)
		for i := range k.mask {
			k.mask[i] = 0xff
		}
	case k.vset != nil:
		k.mask = c.Fixed(*j.Mask, n)
	default:
		k.mask = c.keyBytes(*j.Mask, n)
	}
	for i := range k.value {
		k.value[i] &= k.mask[i]
	}
	if s.narrow && k.vset == nil {
		k.v = phv.ReadBits(k.value, 0, s.keyBits)
		k.m = phv.ReadBits(k.mask, 0, s.keyBits)
	}
	s.cases = append(s.cases, k)
}

// keyBytes reads a hexadecimal number of exactly n bytes.
func (c *compiler) keyBytes(s string, n int) []byte {
	b := c.HexBytes(s)
	if len(b) != n {
		c.Fail("%q has %d bytes, the transition key has %d", s, len(b), n)
	}
	return b
}

// dataEnd returns the end of the bytes that the parser may read.
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

// Parse runs the parser of a pass over the packet, which must have no valid headers. It makes the
// extracted headers valid and moves p.head behind them.
func (p *Packet) Parse(pass Pass) {
	if p.parsed {
		p.parsed = false
		return
	}
	ps := p.in.prog.passes[pass].parser
	p.parserError, p.checksumBad = p.in.prog.codes.noError, false
	p.base, p.nPlaced = p.head, 0
	switch run := ps.native; {
	case p.watch != nil:
		p.watchParser(ps)
	case run != nil:
		run(p)
	default:
		p.states(ps.start)
	}
	for _, k := range p.in.prog.checksums {
		if !k.verify(p) {
			p.checksumBad = true
			p.Note("Verified checksum: failed")
		}
	}
}

// states runs states from s on.
func (p *Packet) states(s *parseState) {
	for n := 0; s != nil; n++ {
		if n > MaxParserStates {
			p.parserError = p.in.prog.codes.timeout
			break
		}
		var ok bool
		if s.lock < 0 {
			s, ok = s.run(p)
		} else {
			mu := p.in.registers[s.lock].mu
			mu.Lock()
			s, ok = s.run(p)
			mu.Unlock()
		}
		if !ok {
			break
		}
	}
}

// run executes a state and returns the next one.
func (s *parseState) run(p *Packet) (*parseState, bool) {
	for i := range s.steps {
		o := &s.steps[i]
		switch {
		case o.pc != 0:
			p.exec(o.pc)
			continue
		case o.op != nil:
			if !o.op(p) {
				return nil, false
			}
			continue
		}
		if p.dataEnd()-p.head < o.bytes {
			return nil, p.parseFail(p.in.prog.codes.tooShort)
		}
		if n := p.nPlaced; uint(n) < uint(len(p.placed)) {
			phv.LoadFields(o.loads, p.W, p.buf[p.head:])
			p.placed[n] = placement{uint32(o.h.Index), uint32(p.head)}
			p.nPlaced = n + 1
		} else {
			p.extractUnplaced(o.h)
		}
		p.W[o.valid] = 1
		p.head += o.bytes
	}
	if len(s.key) == 0 {
		return s.next, true
	}
	if !s.narrow {
		return s.runWide(p)
	}
	v := s.narrowKey(p)
	for i := range s.cases {
		k := &s.cases[i]
		if k.vset == nil {
			if v&k.m == k.v {
				return k.next, true
			}
			continue
		}
		p.input.B = binary.BigEndian.AppendUint64(p.input.B[:0], v)
		if k.vset.contains(p, p.input.B[8-s.keyBits/8:], k.mask) {
			return k.next, true
		}
	}
	return s.next, true
}

// narrowKey returns the transition key of a state whose key is narrow.
func (s *parseState) narrowKey(p *Packet) uint64 {
	v := p.W[s.key[0].word]
	for i := 1; i < len(s.key); i++ {
		k := &s.key[i]
		v = v<<(uint(k.bits+7)&^7) | p.W[k.word]
	}
	return v
}

// extractUnplaced extracts a header although the Packet has no place left for it: it forgets all places first.
func (p *Packet) extractUnplaced(h *phv.Header) {
	p.forgetPlaces()
	p.Extract(h, p.buf[p.head:], 0)
}

// runWide chooses the next state by a key that is not narrow.
func (s *parseState) runWide(p *Packet) (*parseState, bool) {
	w := &p.input
	w.Reset()
	for i := range s.key {
		k := &s.key[i]
		n := phv.Words(k.bits)
		if cap(p.wide) < n {
			p.wide = make([]uint64, n)
		}
		if !k.load(p, p.wide[:n]) {
			return nil, false
		}
		w.Append(zeroWord[:], padded(k.bits)-k.bits)
		w.Append(p.wide[:n], k.bits)
	}
	for i := range s.cases {
		if k := &s.cases[i]; k.vset != nil && k.vset.contains(p, w.B, k.mask) || k.vset == nil && k.matches(w.B) {
			return k.next, true
		}
	}
	return s.next, true
}

var zeroWord [1]uint64

func (k *parseCase) matches(key []byte) bool {
	for i := range key {
		if key[i]&k.mask[i] != k.value[i] {
			return false
		}
	}
	return true
}
