package engine

import (
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
		var r fieldRef
		c.unread(func() { r = c.fieldValue(in.Value) }) // see usesInput
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
		c.usesInput(k)
	})
	return k
}
