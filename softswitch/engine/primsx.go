package engine

// addHeader makes a header valid with all fields 0, unless it is valid already.
func addHeader(h *hexpr) opFn {
	return func(p *Packet) {
		x := h.at(p)
		if x == nil || p.isValid(x) {
			return
		}
		p.forget() // the packet leaves with other headers than it came with
		p.zero(x)
		p.markValid(x)
		p.size += p.bytesOf(x)
	}
}

func addHeaderFast(h *hexpr) opFn {
	return func(p *Packet) {
		if x := h.at(p); x != nil {
			p.markValid(x)
		}
	}
}

func removeHeader(h *hexpr) opFn {
	return func(p *Packet) {
		if x := h.at(p); x != nil && p.isValid(x) {
			p.size -= p.bytesOf(x)
			p.w[x.valid] = 0
		}
	}
}

// primHash compiles dst = base + hash mod max; max 0 counts as 1, as in BMv2.
func (c *compiler) primHash(j *jsonPrimitive) opFn {
	name := c.nameArg(j, 2, "calculation")
	calc := c.calcs[name]
	if calc == nil {
		c.fail("unknown calculation %q", name)
	}
	c.usesInput(calc)
	base, size := c.dataArg(j, 1).m, c.dataArg(j, 3).m
	return c.assign(c.target(j, 0), &dexpr{lo: bigZero, hi: bigMaxU64, word: -1, m: func(p *Packet) uint64 {
		return base(p) + calc.output(p)%max(1, size(p))
	}})
}

func (c *compiler) primMeter(j *jsonPrimitive) opFn {
	name := c.nameArg(j, 0, "meter_array")
	s := c.meterBy[name]
	if s == nil || s.direct {
		c.fail("unknown meter array %q", name)
	}
	var color uint64dst
	set := c.assign(c.target(j, 2), color.expr())
	at := index(c.dataArg(j, 1), s.size)
	return func(p *Packet) {
		i := at(p)
		if i < 0 {
			return
		}
		n := uint64(1)
		if s.bytes {
			n = uint64(p.Bytes)
		}
		p.key[3] = p.in.meters[s.index][i].run(n, s.rates, p.now)
		set(p)
	}
}

// uint64dst hands a computed value to an assignment through the packet's scratch word.
type uint64dst struct{}

func (uint64dst) expr() *dexpr {
	return &dexpr{lo: bigZero, hi: bigMaxU64, word: -1, m: func(p *Packet) uint64 { return p.key[3] }}
}

func (c *compiler) primCount(j *jsonPrimitive) opFn {
	name := c.nameArg(j, 0, "counter_array")
	s := c.counterBy[name]
	if s == nil {
		c.fail("unknown counter array %q", name)
	}
	at, k := index(c.dataArg(j, 1), s.size), s.index
	return func(p *Packet) {
		if i := at(p); i >= 0 {
			p.in.counters[k][i].add(p.Bytes)
		}
	}
}

// primRegisterRead compiles reading a cell; out of bounds the target stays as it is.
func (c *compiler) primRegisterRead(j *jsonPrimitive) opFn {
	r := c.registerNamed(c.nameArg(j, 1, "register_array"))
	idx := c.dataArg(j, 2)
	dst := c.target(j, 0)
	if dst.ref != nil && dst.ref.f != nil && dst.ref.f.bits <= 64 && !dst.ref.f.sat && !dst.ref.f.vl && r.bits <= 64 {
		c.writes(*dst.ref)
		at, k, w, mask := index(idx, r.size), r.index, dst.ref.word(), dst.ref.f.mask
		return func(p *Packet) {
			if i := at(p); i >= 0 {
				p.w[w] = p.in.registers[k].cells[i] & mask
			}
		}
	}
	set, at := c.assign(dst, c.readRegister(r, idx)), index(idx, r.size)
	return func(p *Packet) {
		if at(p) >= 0 {
			set(p)
		}
	}
}

func (c *compiler) primRegisterWrite(j *jsonPrimitive) opFn {
	r := c.registerNamed(c.nameArg(j, 0, "register_array"))
	return c.writeRegister(r, c.dataArg(j, 1), c.dataArg(j, 2))
}
