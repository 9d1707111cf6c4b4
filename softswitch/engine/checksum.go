package engine

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine/expr"
	"github.com/headgate/headgate/softswitch/engine/hash"
	"github.com/headgate/headgate/softswitch/engine/phv"
)

// checksum is one checksum of the program.
type checksum struct {
	target phv.Ref
	calc   *calculation
	cond   predicate
	set    uint32       // code that writes the target
	whole  bool         // it is csum16 over its own header without the target field
	intact bool         // it is whole, and the parser writes the header only by extraction
	late   bool         // computed from the header's bytes after the deparser has written them
	reads  map[int]bool // words that cond reads
	at     uint         // if whole: the target's offset in the header, bytes
	size   uint         // if whole: the header's length, bytes
}

func (c *compiler) buildChecksums(j *bmv2json.Program) {
	d := c.passes[Egress].deparser
	for i := range j.Checksums {
		c.In("checksums", i, func() {
			jc := &j.Checksums[i]
			k := c.checksum(jc)
			if jc.Update == nil || *jc.Update {
				d.checksums = append(d.checksums, k)
			}
			if jc.Verify == nil || *jc.Verify {
				c.checksums = append(c.checksums, k)
			}
		})
	}
}

func (c *compiler) checksum(j *bmv2json.Checksum) *checksum {
	if len(j.Target) != 2 {
		c.Fail("target is not [header, field]")
	}
	k := &checksum{}
	c.unread(func() { k.target = c.fieldNamed(j.Target[0], j.Target[1]) })
	if t := k.target; t.F.Bits > 64 || t.F.Variable || t.IsValidity() {
		c.Fail("target %v is not a field of at most 64 bits", j.Target)
	}
	switch j.Type {
	case "ipv4":
		k.calc = ipv4Checksum(k.target)
	case "generic":
		k.calc = c.calcs.named(c, j.Calculation)
	default:
		c.Fail("unknown checksum type %q, allowed are generic and ipv4", j.Type)
	}
	if j.IfCond != nil && j.IfCond.Type != "" {
		others := c.used
		c.used = map[int]bool{}
		c.In("if_cond", -1, func() { k.cond = c.predicate(c.want(c.expression(j.IfCond), expr.Bool)) })
		k.reads = c.used
		c.used = others
		maps.Copy(c.used, k.reads)
	}
	k.whole = k.wholeHeader() && !c.reference
	k.at, k.size = uint(k.target.F.Bit/8), uint(k.target.H.Type.Bits/8)
	return k
}

// ipv4Checksum returns the calculation of the old checksum type ipv4. It covers all fields of the
// header, and counts the checksum field as 0.
func ipv4Checksum(t phv.Ref) *calculation {
	k := &calculation{hash: hash.Internet, robin: -1, csum: true, ipv4: true}
	k.addHeader(t.H)
	for i := range k.input {
		if in := &k.input[i]; in.ref == t {
			*in = calcInput{konst: make([]uint64, t.F.Words), bits: in.bits}
		}
	}
	return k
}

// update writes the checksum if its condition holds.
func (k *checksum) update(p *Packet) {
	if k.cond.holds(p) && (!k.calc.ipv4 || p.IsValid(k.target.H)) {
		p.exec(k.set)
	}
}

// verify reports whether the checksum is right. It returns true if the checksum's condition does
// not hold.
func (k *checksum) verify(p *Packet) bool {
	if !p.IsValid(k.target.H) || !k.cond.holds(p) {
		return true
	}
	if k.intact {
		if b := p.bytesAt(k.target.H, k.size); b != nil {
			sum, have := k.sumBytes(b)
			return sum == have
		}
	}
	return k.calc.output(p) == p.W[k.target.Word()]
}

// wholeHeader reports whether a checksum covers exactly its own header, as IPv4's does.
func (k *checksum) wholeHeader() bool {
	t := k.target
	if !k.calc.csum || k.calc.payload || t.H.Metadata || t.H.Type.VL >= 0 || t.H.Type.Bits%16 != 0 ||
		t.F.Bits != 16 || t.F.Bit%16 != 0 || t.F.Signed || t.F.Saturating {
		return false
	}
	ins := slices.DeleteFunc(slices.Clone(k.calc.input), func(in calcInput) bool {
		return k.calc.ipv4 && in.konst != nil // the zero stands for the target
	})
	fields := new(calculation)
	fields.addHeader(t.H)
	rest := slices.DeleteFunc(fields.input, func(in calcInput) bool { return in.ref == t })
	return slices.EqualFunc(ins, rest, func(a, b calcInput) bool { return a.ref == b.ref })
}

// finishChecksums decides for each checksum whether it is computed from bytes or from fields. It
// runs when everything else is compiled.
func (c *compiler) finishChecksums() {
	for _, k := range c.checksums {
		k.intact = k.whole
		for i := range k.target.H.Type.Words {
			k.intact = k.intact && !c.parsed[k.target.H.Base+i]
		}
		if !k.intact {
			c.usesInput(k.calc)
			c.uses(k.target)
		}
	}
	d := c.passes[Egress].deparser
	all := d.checksums
	for _, k := range all {
		k.late = k.whole && d.prims == nil
	}
	// Late checksums are updated after all others. That gives the same result only if no other
	// checksum reads the target of a late one, and if no checksum that the program updates after a
	// late one changes a field that the late one reads.
	early := map[*checksum]bool{}
	for n := -1; n < len(early); {
		n = len(early)
		for i, k := range all {
			changed := slices.ContainsFunc(all[i+1:], func(o *checksum) bool {
				return early[o] && (o.target.H == k.target.H || k.reads[o.target.Word()])
			})
			if k.late && !c.used[k.target.Word()] && !changed || early[k] {
				continue
			}
			k.late, early[k] = false, true
			c.usesInput(k.calc)
			c.uses(k.target)
		}
	}
	d.checksums = nil
	for _, k := range all {
		target, scratch := k.target, c.scratch
		set := func(a *assembler) {
			a.emit(instr{op: opMove, d: uint32(target.Word()), a: uint32(scratch), mask: target.F.Mask})
		}
		if !k.late {
			set = c.assign(expr.NewField(target), expr.NewWord(scratch, 64, false))
		}
		k.set = c.fragment(Call(func(p *Packet) { p.W[scratch] = k.calc.output(p) }), set)
		if k.late {
			d.late = append(d.late, k)
		} else {
			d.checksums = append(d.checksums, k)
		}
	}
}

// bytesAt returns the n bytes of a header where it was last extracted, or nil if the place is not
// known.
func (p *Packet) bytesAt(h *phv.Header, n uint) []byte {
	for i := p.nPlaced - 1; i >= 0; i-- {
		if x := &p.placed[i]; x.header == uint32(h.Index) {
			return p.buf[x.at : uint(x.at)+n]
		}
	}
	return nil
}

// updateBytes does what update does, from the header's bytes.
func (k *checksum) updateBytes(p *Packet) {
	if !k.cond.holds(p) {
		return
	}
	if b := p.bytesAt(k.target.H, k.size); b != nil {
		sum, _ := k.sumBytes(b)
		binary.BigEndian.PutUint16(b[k.at:k.at+2], uint16(sum))
	}
}

// sumBytes returns the checksum of a header's bytes without the target field, and the target
// field's value.
func (k *checksum) sumBytes(b []byte) (sum, have uint64) {
	have = uint64(binary.BigEndian.Uint16(b[k.at : k.at+2]))
	// hash.Sum adds 32-bit words, and a last one of 16 bits.
	sum = hash.Sum(0, b)
	if k.at%4 == 0 && k.at+2 < k.size {
		sum -= have << 16
	} else {
		sum -= have
	}
	return hash.Fold(sum), have
}
