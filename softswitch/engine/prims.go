package engine

import (
	"bytes"
	"fmt"
	"math/big"
	"math/bits"
	"strings"
)

// primitive compiles one primitive call other than a jump.
func (c *compiler) primitive(j *jsonPrimitive) opFn {
	f, ok := primitiveTable()[j.Op]
	if !ok {
		c.fail("unknown primitive %q", j.Op)
	}
	if f.params != len(j.Parameters) {
		c.fail("primitive %q has %d parameters, want %d", j.Op, len(j.Parameters), f.params)
	}
	return f.compile(c, j)
}

type primitiveSpec struct {
	params  int
	compile func(c *compiler, j *jsonPrimitive) opFn
}

// primitiveTable lists BMv2's core primitives and those of simple_switch.
func primitiveTable() map[string]primitiveSpec {
	assign := primitiveSpec{2, (*compiler).primAssign}
	header := func(f func(h *hexpr) opFn) primitiveSpec {
		return primitiveSpec{1, func(c *compiler, j *jsonPrimitive) opFn {
			return f(c.headerArg(j, 0))
		}}
	}
	binary := func(op string) primitiveSpec {
		return primitiveSpec{3, func(c *compiler, j *jsonPrimitive) opFn {
			return c.assign(c.target(j, 0), c.arith(op, c.dataArg(j, 1), c.dataArg(j, 2)))
		}}
	}
	inPlace := func(op string) primitiveSpec {
		return primitiveSpec{2, func(c *compiler, j *jsonPrimitive) opFn {
			x := c.typedArg(j, 0, xData)
			return c.assign(c.target(j, 0), c.arith(op, x.data, c.dataArg(j, 1)))
		}}
	}
	request := func(set func(p *Packet, v uint32)) primitiveSpec {
		return primitiveSpec{1, func(c *compiler, j *jsonPrimitive) opFn {
			m := c.dataArg(j, 0).m
			return func(p *Packet) { set(p, uint32(m(p)&0xffff)) }
		}}
	}
	clone := primitiveSpec{2, func(c *compiler, j *jsonPrimitive) opFn {
		s, l := c.dataArg(j, 0).m, c.dataArg(j, 1).m
		return func(p *Packet) {
			p.cloneSession = uint32(s(p)&0xffff) | cloneValid
			p.cloneList = uint32(l(p) & 0xffff)
		}
	}}
	nothing := primitiveSpec{0, func(*compiler, *jsonPrimitive) opFn { return func(*Packet) {} }}
	return map[string]primitiveSpec{
		"assign": assign, "modify_field": assign,
		"assign_VL": {2, func(c *compiler, j *jsonPrimitive) opFn {
			return c.assignVL(c.fieldArg(j, 0), c.fieldArg(j, 1))
		}},
		"assign_header": {2, (*compiler).primAssignHeader}, "copy_header": {2, (*compiler).primAssignHeader},
		"assign_union":        {2, (*compiler).primAssignUnion},
		"assign_header_stack": {2, (*compiler).primAssignStack},
		"assign_union_stack":  {2, (*compiler).primAssignStack},
		"push":                {2, (*compiler).primPush},
		"pop":                 {2, (*compiler).primPop},
		"assert":              {1, (*compiler).primAssert}, "assume": {1, (*compiler).primAssert},
		"exit":    {0, func(*compiler, *jsonPrimitive) opFn { return func(p *Packet) { p.exit = true } }},
		"log_msg": {2, (*compiler).primLog},
		"add":     binary("+"), "subtract": binary("-"), "bit_xor": binary("^"), "bit_or": binary("|"), "bit_and": binary("&"),
		"shift_left": binary("<<"), "shift_right": binary(">>"),
		"add_to_field": inPlace("+"), "subtract_from_field": inPlace("-"),
		"modify_field_rng_uniform":    {3, (*compiler).primRandom},
		"drop":                        {0, (*compiler).primDrop},
		"mark_to_drop":                {1, (*compiler).primMarkToDrop},
		"generate_digest":             {2, (*compiler).primDigest},
		"add_header":                  header(addHeader),
		"add_header_fast":             header(addHeaderFast),
		"remove_header":               header(removeHeader),
		"clone_ingress_pkt_to_egress": clone, "clone_egress_pkt_to_egress": clone,
		"resubmit":                            request(func(p *Packet, v uint32) { p.resubmit = v }),
		"recirculate":                         request(func(p *Packet, v uint32) { p.recirculate = v }),
		"modify_field_with_hash_based_offset": {4, (*compiler).primHash},
		"no_op":                               nothing,
		"execute_meter":                       {3, (*compiler).primMeter},
		"count":                               {2, (*compiler).primCount},
		"register_read":                       {3, (*compiler).primRegisterRead},
		"register_write":                      {3, (*compiler).primRegisterWrite},
		"truncate": {1, func(c *compiler, j *jsonPrimitive) opFn {
			m := c.dataArg(j, 0).m
			return func(p *Packet) { p.trunc = int(min(m(p), uint64(p.trunc))) }
		}},
	}
}

func (c *compiler) primAssign(j *jsonPrimitive) opFn {
	return c.assign(c.target(j, 0), c.dataArg(j, 1))
}

func (c *compiler) primAssignHeader(j *jsonPrimitive) opFn {
	d, s := c.typedArg(j, 0, xHeader).head, c.typedArg(j, 1, xHeader).head
	if d.typ != s.typ {
		c.fail("header of type %q assigned to one of type %q", s.typ.name, d.typ.name)
	}
	c.writesTo(d)
	if d.fixed != nil && s.fixed != nil {
		x, y := d.fixed, s.fixed
		return func(p *Packet) { p.assignHeader(x, y) }
	}
	return func(p *Packet) {
		if x, y := d.at(p), s.at(p); x != nil && y != nil {
			p.assignHeader(x, y)
		}
	}
}

func (c *compiler) primAssignUnion(j *jsonPrimitive) opFn {
	d, s := c.typedArg(j, 0, xUnion).union, c.typedArg(j, 1, xUnion).union
	if d.typ != s.typ {
		c.fail("header union of type %q assigned to one of type %q", s.typ.Name, d.typ.Name)
	}
	c.writesUnion(d.typ)
	return func(p *Packet) { p.assignUnion(d.at(p), s.at(p)) }
}

func (p *Packet) assignUnion(d, s *union) {
	if d == nil || s == nil || d == s {
		return
	}
	for i := range d.elems {
		p.assignHeader(d.elems[i], s.elems[i])
	}
}

func (c *compiler) stackArg(j *jsonPrimitive, i int) *stack {
	x := c.arg(j, i)
	if x.stack == nil {
		c.in("parameters", i, func() { c.fail("want a header stack, not %v", x.kind) })
	}
	c.writesStack(x.stack)
	return x.stack
}

func (c *compiler) primAssignStack(j *jsonPrimitive) opFn {
	d, s := c.stackArg(j, 0), c.stackArg(j, 1)
	if d.typ != s.typ || d.utyp != s.utyp || d.size() != s.size() {
		c.fail("header stacks %q and %q differ in type or size", d.name, s.name)
	}
	return func(p *Packet) {
		p.w[d.next] = p.w[s.next]
		for i := range d.elems {
			p.assignHeader(d.elems[i], s.elems[i])
		}
		for i := range d.unions {
			p.assignUnion(d.unions[i], s.unions[i])
		}
	}
}

// swapElems exchanges two elements of a stack.
func (p *Packet) swapElems(s *stack, i, j int) {
	if s.unions == nil {
		p.swapHeaders(s.elems[i], s.elems[j])
		return
	}
	for k := range s.unions[i].elems {
		p.swapHeaders(s.unions[i].elems[k], s.unions[j].elems[k])
	}
}

// dropElem makes an element invalid. BMv2 leaves unions in union stacks as they are.
func (p *Packet) dropElem(s *stack, i int) {
	if s.unions == nil {
		p.w[s.elems[i].valid] = 0
		return
	}
	for _, h := range s.unions[i].elems {
		p.w[h.valid] = 0
	}
}

func (c *compiler) primPush(j *jsonPrimitive) opFn {
	s, num := c.stackArg(j, 0), c.dataArg(j, 1).m
	size := s.size()
	return func(p *Packet) {
		n := int(min(num(p), uint64(size)))
		if n == 0 {
			return
		}
		p.w[s.next] = min(uint64(size), p.w[s.next]+uint64(n))
		for i := size - 1; i > n-1; i-- {
			p.swapElems(s, i, i-n)
		}
		for i := range n {
			p.dropElem(s, i)
		}
	}
}

func (c *compiler) primPop(j *jsonPrimitive) opFn {
	s, num := c.stackArg(j, 0), c.dataArg(j, 1).m
	size := s.size()
	return func(p *Packet) {
		n := int(min(num(p), uint64(size)))
		if n == 0 {
			return
		}
		p.w[s.next] -= min(p.w[s.next], uint64(n))
		for i := range size - n {
			p.swapElems(s, i, i+n)
		}
		for i := size - n; i < size; i++ {
			p.dropElem(s, i)
		}
	}
}

// primAssert: BMv2 aborts the process when an assertion fails; here the packet is dropped.
func (c *compiler) primAssert(j *jsonPrimitive) opFn {
	ok := truth(c.dataArg(j, 0))
	what := fmt.Sprintf("%s failed in %s", j.Op, strings.Join(c.path, "."))
	return func(p *Packet) {
		if !ok(p) {
			p.failed, p.exit = true, true
			p.in.asserts.Add(1)
			p.in.log(what)
		}
	}
}

// primLog compiles log_msg: every {} of the format is replaced by a value.
func (c *compiler) primLog(j *jsonPrimitive) opFn {
	format := c.nameArg(j, 0, "string")
	var args []bigFn
	c.in("parameters", 1, func() {
		if j.Parameters[1].Type != "parameters_vector" {
			c.fail("parameter is of type %q, want parameters_vector", j.Parameters[1].Type)
		}
		var vs []jsonValue
		// Older versions of p4c write an empty vector as an empty object.
		if v := bytes.TrimSpace(j.Parameters[1].Value); !emptyObject(v) {
			c.decode(v, &vs)
		}
		for i := range vs {
			x := c.expression(&vs[i])
			if x.kind == xBool {
				x.data, x.kind = boolData(x.bool), xData
			}
			args = append(args, c.want(x, xData).data.exact())
		}
	})
	if n := strings.Count(format, "{}"); n != len(args) {
		c.fail("log_msg format %q has %d {} for %d values", format, n, len(args))
	}
	return func(p *Packet) {
		if p.in.opts.Log == nil {
			return
		}
		parts := strings.SplitAfter(format, "{}")
		var sb strings.Builder
		for i, part := range parts {
			if i < len(args) {
				z := new(big.Int)
				args[i](p, z)
				part = strings.TrimSuffix(part, "{}") + z.String()
			}
			sb.WriteString(part)
		}
		p.in.log(sb.String())
	}
}

func (c *compiler) primRandom(j *jsonPrimitive) opFn {
	lo, hi := c.dataArg(j, 1).m, c.dataArg(j, 2).m
	draw := &dexpr{lo: bigZero, hi: bigMaxU64, word: -1, m: func(p *Packet) uint64 {
		a := lo(p)
		return a + p.in.random(hi(p)-a)
	}}
	set := c.assign(c.target(j, 0), draw)
	return func(p *Packet) {
		if lo(p) <= hi(p) { // otherwise BMv2 leaves the result alone
			set(p)
		}
	}
}

// random draws from 0 to n.
func (in *Instance) random(n uint64) uint64 {
	v := mix(in.seed.Add(0x9e3779b97f4a7c15))
	if n == ^uint64(0) {
		return v
	}
	hi, _ := bits.Mul64(v, n+1)
	return hi
}

// mix is the output function of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (c *compiler) primDrop(*jsonPrimitive) opFn {
	spec, mc := c.std.egressSpec, c.std.mcastGrp
	if spec < 0 {
		c.fail("drop needs standard_metadata.egress_spec")
	}
	mask := c.std.specMask
	return func(p *Packet) {
		p.w[spec] = uint64(p.in.opts.DropPort) & mask
		if mc >= 0 {
			p.w[mc] = 0
		}
	}
}

func (c *compiler) primMarkToDrop(j *jsonPrimitive) opFn {
	h := c.headerArg(j, 0)
	if h.fixed == nil {
		c.fail("mark_to_drop wants a fixed header")
	}
	i, ok := h.typ.byName["egress_spec"]
	if !ok || h.typ.fields[i].bits > 64 {
		c.fail("header %q has no field egress_spec", h.fixed.name)
	}
	c.writesTo(h)
	spec, mask, mc := h.fixed.base+h.typ.fields[i].word, h.typ.fields[i].mask, -1
	if k, ok := h.typ.byName["mcast_grp"]; ok {
		mc = h.fixed.base + h.typ.fields[k].word
	}
	return func(p *Packet) {
		p.w[spec] = uint64(p.in.opts.DropPort) & mask
		if mc >= 0 {
			p.w[mc] = 0
		}
	}
}

func (c *compiler) primDigest(j *jsonPrimitive) opFn {
	id := c.dataArg(j, 1)
	if id.konst != nil && id.konst.Sign() != 0 && c.learns[int(id.konst.Int64())] == nil {
		c.fail("generate_digest names learn list %v, which is not declared", id.konst)
	}
	m := id.m
	return func(p *Packet) { p.learnList = uint32(m(p) & 0xffff) }
}

// emptyObject reports whether v is a JSON object without members.
func emptyObject(v []byte) bool {
	return len(v) >= 2 && v[0] == '{' && len(bytes.TrimSpace(v[1:])) == 1
}
