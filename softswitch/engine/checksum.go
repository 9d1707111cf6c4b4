package engine

import (
	"encoding/binary"
	"maps"
	"slices"
)

// checksum is one checksum of the program.
type checksum struct {
	target fieldRef
	calc   *calculation // nil for the old type ipv4
	cond   boolFn       // nil is always
	set    opFn
	whole  bool         // csum16 of the target's header but for the target
	intact bool         // and nothing but extraction has written that when checksums are verified
	late   bool         // updated in the header's bytes
	reads  map[int]bool // words that cond reads
}

func (c *compiler) buildChecksums(j *jsonProgram) {
	for i := range j.Checksums {
		jc := &j.Checksums[i]
		c.in("checksums", i, func() {
			if len(jc.Target) != 2 {
				c.fail("target is not [header, field]")
			}
			k := &checksum{}
			c.unread(func() { k.target = c.fieldNamed(jc.Target[0], jc.Target[1]) })
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
				others := c.used
				c.used = map[int]bool{}
				c.in("if_cond", -1, func() { k.cond = c.want(c.expression(jc.IfCond), xBool).bool.f })
				k.reads = c.used
				c.used = others
				maps.Copy(c.used, k.reads)
			}
			k.whole = k.wholeHeader()
			if jc.Update == nil || *jc.Update {
				c.deparser.checksums = append(c.deparser.checksums, k)
			}
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
	if k.intact {
		if b := p.bytesAt(k.target.h); b != nil {
			return k.verifyBytes(b)
		}
	}
	return k.calc.output(p) == p.w[k.target.word()]
}

// wholeHeader reports whether a checksum is that of its header, as IPv4's is.
func (k *checksum) wholeHeader() bool {
	t := k.target
	if !k.calc.sum || k.calc.payload || t.h.metadata || t.h.typ.vl >= 0 || t.h.typ.bits%16 != 0 ||
		t.f.bits != 16 || t.f.bit%16 != 0 || t.f.signed || t.f.sat {
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
		if i == len(ins) || ins[i].f == nil || ins[i].f.h != t.h || ins[i].f.f != field {
			return false
		}
		i++
	}
	return i == len(ins)
}

// finishChecksums decides, when everything else is compiled, which checksums are of bytes
// and which are of fields.
func (c *compiler) finishChecksums() {
	for _, k := range c.parser.checksums {
		k.intact = k.whole
		for i := range k.target.h.typ.words {
			k.intact = k.intact && !c.parsed[k.target.h.base+i]
		}
		if !k.intact {
			c.usesInput(k.calc)
			c.uses(k.target)
		}
	}
	all := c.deparser.checksums
	for _, k := range all {
		k.late = k.whole && c.deparser.prims == nil
	}
	// Late ones are updated behind all others, which must make no difference: no other reads
	// the target of a late one, and none that the program updates after it changes what it
	// reads.
	early := map[*checksum]bool{}
	for n := -1; n < len(early); {
		n = len(early)
		for i, k := range all {
			changed := slices.ContainsFunc(all[i+1:], func(o *checksum) bool {
				return early[o] && (o.target.h == k.target.h || k.reads[o.target.word()])
			})
			if k.late && !c.used[k.target.word()] && !changed || early[k] {
				continue
			}
			k.late, early[k] = false, true
			c.usesInput(k.calc)
			c.uses(k.target)
		}
	}
	c.deparser.checksums = nil
	for _, k := range all {
		calc, w := k.calc, k.target.word()
		if k.late {
			k.set = func(p *Packet) { p.w[w] = calc.output(p) }
			c.deparser.late = append(c.deparser.late, k)
			continue
		}
		k.set = c.assignField(&k.target, &dexpr{lo: bigZero, hi: bigMaxU64, word: -1, m: calc.output})
		c.deparser.checksums = append(c.deparser.checksums, k)
	}
}

// bytesAt is the frame from where a header was extracted last, nil when that is not known.
func (p *Packet) bytesAt(h *header) []byte {
	for i := p.nPlaced - 1; i >= 0; i-- {
		if x := &p.placed[i]; x.header == uint32(h.index) {
			return p.buf[x.at:]
		}
	}
	return nil
}

// verifyBytes is verify for a header whose bytes are at hand.
func (k *checksum) verifyBytes(b []byte) bool {
	return k.sumBytes(b) == uint64(binary.BigEndian.Uint16(b[k.target.f.bit/8:]))
}

// updateBytes is update for a header that is written where it was extracted.
func (k *checksum) updateBytes(p *Packet) {
	if k.cond != nil && !k.cond(p) {
		return
	}
	if b := p.bytesAt(k.target.h); b != nil {
		binary.BigEndian.PutUint16(b[k.target.f.bit/8:], uint16(k.sumBytes(b)))
	}
}

// sumBytes is the checksum of a header's bytes but for the target.
func (k *checksum) sumBytes(b []byte) uint64 {
	n, at := k.target.h.typ.bits/8, k.target.f.bit/8
	have := uint64(binary.BigEndian.Uint16(b[at:]))
	// sumWords adds 32-bit words, but for a last one of 16 bits.
	sum := sumWords(0, b[:n])
	if at%4 == 0 && at+2 < n {
		sum -= have << 16
	} else {
		sum -= have
	}
	return foldSum(sum)
}
