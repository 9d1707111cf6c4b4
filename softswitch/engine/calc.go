package engine

import (
	"encoding/binary"
	"slices"
	"strings"
)

// calculation is a hash or checksum over fields, headers, constants and the payload.
// Fields are concatenated bit by bit; those of invalid headers are skipped.
type calculation struct {
	name    string
	algo    string
	input   []calcInput
	payload bool
	hash    hashFn
	state   int       // index of its state in the instance, -1 without
	runs    []calcRun // compiled input, nil when it must be gathered bit by bit
	sum     bool      // checksum can add it up
}

// calcInput is one part of the input: a header, a field of one, or a constant.
type calcInput struct {
	h     *header
	f     *fieldRef
	konst []uint64
	bits  int
}

func (c *compiler) buildCalculations(j *jsonProgram) {
	c.calcs = map[string]*calculation{}
	for i := range j.Calculations {
		jc := &j.Calculations[i]
		c.in("calculations", i, func() {
			if c.calcs[jc.Name] != nil {
				c.fail("calculation %q is declared twice", jc.Name)
			}
			c.calcs[jc.Name] = c.calculation(jc.Name, jc.Algo, jc.Input)
		})
	}
}

func (c *compiler) calculation(name, algo string, input []jsonValue) *calculation {
	calc := &calculation{name: name, algo: algo, state: -1}
	switch algo {
	case "round_robin", "round_robin_consistent":
		calc.state = c.nCalcs
		c.nCalcs++
	default:
		if calc.hash = hashNamed(algo); calc.hash == nil {
			c.fail("unknown hash algorithm %q", algo)
		}
	}
	for i := range input {
		in := &input[i]
		c.in("input", i, func() { calc.add(c, in) })
	}
	calc.compile()
	return calc
}

func (k *calculation) add(c *compiler, in *jsonValue) {
	switch in.Type {
	case "field":
		r := c.fieldValue(in.Value)
		k.input = append(k.input, calcInput{h: r.h, f: &r, bits: r.bits()})
	case "hexstr":
		if in.Bitwidth < 1 || in.Bitwidth > maxFieldBits {
			c.fail("bitwidth of a constant is %d, allowed are 1 to %d", in.Bitwidth, maxFieldBits)
		}
		v := make([]uint64, (in.Bitwidth+63)/64)
		putWords(v, c.hex(c.str(in.Value)), in.Bitwidth)
		k.input = append(k.input, calcInput{konst: v, bits: in.Bitwidth})
	case "header":
		h := c.headerNamed(c.str(in.Value))
		k.input = append(k.input, calcInput{h: h})
	case "payload":
		k.payload = true
	default:
		c.fail("unknown input type %q, allowed are field, hexstr, header and payload", in.Type)
	}
}

// gather writes the input to the packet's bit writer.
func (k *calculation) gather(p *Packet) []byte {
	if k.runs != nil {
		return k.gatherRuns(p)
	}
	w := &p.bits
	w.reset()
	for i := range k.input {
		in := &k.input[i]
		switch {
		case in.konst != nil:
			w.field(in.konst, in.bits)
		case !p.isValid(in.h):
		case in.f == nil:
			p.gatherHeader(w, in.h)
		case in.bits <= 64 && (in.f.f == nil || !in.f.f.vl):
			w.word(p.w[in.f.word()], in.bits)
		default:
			p.gatherField(w, *in.f)
		}
	}
	if k.payload {
		// BMv2 appends the payload on a byte boundary.
		w.n = 8 * len(w.b)
		w.bytes(p.payload())
	}
	return w.b
}

func (p *Packet) gatherField(w *bitWriter, r fieldRef) {
	at := r.word()
	if r.f.vl {
		n := int(p.w[at] / 8)
		w.bytes(p.vl[r.h.vlOff : r.h.vlOff+n])
		return
	}
	w.field(p.w[at:at+r.f.words], r.f.bits)
}

func (p *Packet) gatherHeader(w *bitWriter, h *header) {
	for i := range h.typ.fields {
		p.gatherField(w, fieldRef{h, &h.typ.fields[i]})
	}
}

// output computes the hash.
func (k *calculation) output(p *Packet) uint64 {
	if k.sum {
		return k.checksum(p)
	}
	b := k.gather(p)
	if k.state >= 0 {
		return p.in.calcs[k.state].next(k.algo, b)
	}
	return k.hash(b)
}

// checksum is one checksum of the program.
type checksum struct {
	target fieldRef
	calc   *calculation // nil for the old type ipv4
	cond   boolFn       // nil is always
	set    opFn
	whole  bool // the input is the target's header but for the target, and csum16
}

func (c *compiler) buildChecksums(j *jsonProgram) {
	for i := range j.Checksums {
		jc := &j.Checksums[i]
		c.in("checksums", i, func() {
			if len(jc.Target) != 2 {
				c.fail("target is not [header, field]")
			}
			k := &checksum{target: c.fieldNamed(jc.Target[0], jc.Target[1])}
			if k.target.f == nil || k.target.f.bits > 64 || k.target.f.vl {
				c.fail("target %v is not a field of at most 64 bits", jc.Target)
			}
			switch jc.Type {
			case "ipv4":
				k.calc = c.ipv4Checksum(k.target)
			case "generic":
				if k.calc = c.calcs[jc.Calculation]; k.calc == nil {
					c.fail("unknown calculation %q", jc.Calculation)
				}
			default:
				c.fail("unknown checksum type %q, allowed are generic and ipv4", jc.Type)
			}
			if jc.IfCond != nil && jc.IfCond.Type != "" {
				c.in("if_cond", -1, func() { k.cond = c.want(c.expression(jc.IfCond), xBool).bool.f })
			}
			calc := k.calc
			k.set = c.assignField(&k.target, &dexpr{lo: bigZero, hi: bigMaxU64, word: -1, m: calc.output})
			if jc.Update == nil || *jc.Update {
				c.deparser.checksums = append(c.deparser.checksums, k)
			}
			k.whole = c.wholeHeader(k)
			if jc.Verify == nil || *jc.Verify {
				c.parser.checksums = append(c.parser.checksums, k)
			}
		})
	}
}

// ipv4Checksum is the calculation behind the old checksum type ipv4: all fields of the
// header but the checksum, which counts as 0.
func (c *compiler) ipv4Checksum(t fieldRef) *calculation {
	k := &calculation{name: "ipv4", algo: "csum16", hash: csum16, state: -1}
	for i := range t.h.typ.fields {
		f := &t.h.typ.fields[i]
		in := calcInput{h: t.h, f: &fieldRef{t.h, f}, bits: f.bits}
		if f == t.f {
			in = calcInput{konst: make([]uint64, f.words), bits: f.bits}
		}
		k.input = append(k.input, in)
	}
	k.compile()
	return k
}

// update writes the checksum where its condition holds.
func (k *checksum) update(p *Packet) {
	if (k.cond == nil || k.cond(p)) && (k.calc.name != "ipv4" || p.isValid(k.target.h)) {
		k.set(p)
	}
}

// verify reports whether the checksum is right, or does not apply.
func (k *checksum) verify(p *Packet) bool {
	if !p.isValid(k.target.h) || k.cond != nil && !k.cond(p) {
		return true
	}
	if k.whole && p.nPlaced > 0 {
		for i := p.nPlaced - 1; i >= 0; i-- {
			if x := &p.placed[i]; x.header == uint32(k.target.h.index) {
				return k.verifyBytes(p.buf[x.at:])
			}
		}
	}
	return k.calc.output(p) == p.w[k.target.word()]
}

// wholeHeader reports whether a checksum is that of its header, as IPv4's is, and nothing
// but extraction has written the header when checksums are verified.
func (c *compiler) wholeHeader(k *checksum) bool {
	t := k.target
	if !k.calc.sum || k.calc.payload || t.h.metadata || t.h.typ.vl >= 0 || t.h.typ.bits%16 != 0 || t.f.bits != 16 || t.f.bit%16 != 0 {
		return false
	}
	ins := slices.DeleteFunc(slices.Clone(k.calc.input), func(in calcInput) bool {
		// What the old type ipv4 puts in the target's place.
		return k.calc.name == "ipv4" && in.konst != nil
	})
	i := 0
	for f := range t.h.typ.fields {
		field := &t.h.typ.fields[f]
		if field == t.f {
			continue
		}
		if i == len(ins) || ins[i].f == nil || ins[i].f.h != t.h || ins[i].f.f != field || c.parsed[t.h.base+field.word] {
			return false
		}
		i++
	}
	return i == len(ins) && !c.parsed[t.word()]
}

// verifyBytes is verify for a header whose bytes are at hand.
func (k *checksum) verifyBytes(b []byte) bool {
	n, at := k.target.h.typ.bits/8, k.target.f.bit/8
	have := uint64(binary.BigEndian.Uint16(b[at:]))
	// sumWords adds 32-bit words, but for a last one of 16 bits.
	sum := sumWords(0, b[:n])
	if at%4 == 0 && at+2 < n {
		sum -= have << 16
	} else {
		sum -= have
	}
	return foldSum(sum) == have
}

// buildSelector compiles the hash of an action selector.
func (c *compiler) buildSelector(j *jsonSelector) *calculation {
	var k *calculation
	c.in("selector", -1, func() {
		input := slices.Clone(j.Input)
		for i := range input {
			if strings.TrimSpace(input[i].Type) == "" {
				input[i].Type = "field"
			}
		}
		k = c.calculation("selector", j.Algo, input)
	})
	return k
}
