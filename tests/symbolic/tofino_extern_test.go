package symbolic

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// MathUnit is the math unit of a stateful ALU with exponent shift 0 and no inversion: it looks up the four
// leading bits of its input and shifts the result. The public compiler describes and fills it in this way (p4c,
// backends/tofino, MathUnit.execute of stateful_alu.cpp: Data[i] = f(i/8)·2^−Scale for i from 8 to 15). Bits
// shifted out to the right are lost.
type MathUnit struct {
	Scale int       // −32 to 31
	Data  [16]uint8 // by leading bits; below 8 only for 0
}

// Execute returns the unit's output.
func (m *MathUnit) Execute(x uint32) uint32 {
	if x == 0 {
		return uint32(m.Data[0])
	}
	exponent := bits.Len32(x) - 1
	v := uint64(m.Data[uint64(x)<<3>>exponent])
	if shift := exponent + m.Scale; shift >= 0 {
		return uint32(v << shift)
	} else {
		return uint32(v >> -shift)
	}
}

// Count is a counter's value.
type Count struct{ Packets, Bytes uint64 }

// register is a register's cells; missing cells hold 0.
type register struct {
	t     *typ
	name  string
	cells map[uint64]uint64
}

// registerAction is one action on a register.
type registerAction struct {
	of *register
	do *function
	in *instance
}

type counter struct{ cells map[uint64]Count }

// These externs have no state that outlives a packet.
type (
	hash struct {
		to  *typ
		crc bool // CRC-32, or the fields as they are
	}
	random        struct{ to *typ }
	filter        struct{}
	directCounter struct{ name string }
	checksum      struct {
		bad bool
		sum uint16 // the sum without what subtract removed
		of  *run
	}
	digester struct{}
	mirror   struct{}
	selector struct{}
)

// newExtern makes an extern's instance.
func (c *Chip) newExtern(in *instance, o *object) any {
	r := &run{chip: c, prog: c.prog}
	s := &scope{of: in}
	name := fullName(in.path, o.name, o.full)
	switch o.typ.name {
	case "Register":
		x := &register{t: o.typ.args[0], name: name, cells: map[uint64]uint64{}}
		c.registers[name] = x
		return x
	case "RegisterAction":
		of, _, _ := r.ref(o.args[0], s)
		return &registerAction{of.obj.(*register), o.methods["apply"], in}
	case "MathUnit":
		m := &MathUnit{Scale: int(r.eval(o.args[2], s).int64())}
		for i, v := range r.eval(o.args[3], s).list { // from the highest on
			m.Data[15-i] = uint8(v.n)
		}
		return m
	case "Counter":
		x := &counter{map[uint64]Count{}}
		c.counters[name] = x
		return x
	case "DirectCounter":
		return &directCounter{name}
	case "Hash":
		return &hash{o.typ.args[0], o.args[0].name == "CRC32"}
	case "Random":
		return &random{o.typ.args[0]}
	case "Lpf":
		return &filter{}
	case "Checksum":
		return &checksum{}
	case "Digest":
		return &digester{}
	case "Mirror":
		return &mirror{}
	case "ActionProfile", "ActionSelector":
		return &selector{}
	}
	panic("unknown extern " + o.typ.name)
}

// extern runs an extern's method.
func (r *run) extern(x *expr, obj any, method string, args []*expr, s *scope) value {
	num := func(i int) uint64 { return r.eval(args[i], s).n }
	switch o := obj.(type) {
	case *packet:
		return r.packetMethod(x, o, method, args, s)
	case *registerAction:
		return r.access(x, o, num(0))
	case *MathUnit:
		return value{n: uint64(o.Execute(uint32(num(0)))), w: 32}
	case *counter:
		r.count(o.cells, num(0), args[1:], s)
		return value{}
	case *directCounter:
		r.count(r.entry.counts, 0, args, s)
		return value{}
	case *hash:
		fields := r.eval(args[0], s)
		if o.crc {
			return value{n: uint64(crc32.ChecksumIEEE(flat(fields))), w: 32}
		}
		n := uint64(0)
		for _, v := range fields.list {
			n = n<<v.w | v.n
		}
		return value{n: mask(n, o.to.width), w: o.to.width}
	case *random:
		return value{n: mask(r.chip.Draw(), o.to.width), w: o.to.width}
	case *filter:
		return value{n: num(0), w: 32}
	case *checksum:
		switch method {
		case "add":
			o.bad = internet(flat(r.eval(args[0], s))) != 0
			return value{}
		case "subtract": // adds the complements of the fields
			if o.of != r {
				o.sum, o.of = 0, r
			}
			o.sum = ^internet(binary.BigEndian.AppendUint16(complement(flat(r.eval(args[0], s))), o.sum))
			return value{}
		case "get":
			return value{n: uint64(o.sum), w: 16}
		case "verify": // 1 for a wrong checksum
			return truth(o.bad)
		}
		return value{n: uint64(internet(flat(r.eval(args[0], s)))), w: 16}
	case *digester:
		for _, v := range r.eval(args[0], s).list {
			if v.w > 64 {
				r.digest = append(r.digest, v.hi)
			}
			r.digest = append(r.digest, v.n)
		}
		return value{}
	case *mirror:
		r.mirrored = true
		r.session = num(0)
		for i, v := range r.eval(args[1], s).list {
			v.w = x.a[0].typ.fields[i].typ.width
			r.mirror.list = append(r.mirror.list, v)
		}
		return value{}
	}
	fail(x, "no method %s", method)
	return value{}
}

// access lets a packet access a register, which it can do once.
func (r *run) access(x *expr, a *registerAction, index uint64) value {
	if r.accessed[a.of] {
		fail(x, "%s is accessed twice by one packet", a.of.name)
	}
	r.accessed[a.of] = true
	cell := &slot{t: a.of.t, n: a.of.cells[index]}
	args := []*slot{cell}
	v := value{}
	if len(a.do.params) > 1 {
		args = append(args, r.chip.place(a.do.params[1].typ))
	}
	r.invoke(a.do, a.in.frame, args)
	a.of.cells[index] = cell.n
	if len(args) > 1 {
		v = args[1].value()
	}
	return v
}

// count counts the packet and its bytes, without those that the program excludes.
func (r *run) count(cells map[uint64]Count, index uint64, less []*expr, s *scope) {
	v := cells[index]
	v.Packets++
	v.Bytes += uint64(r.bytes)
	if len(less) > 0 {
		v.Bytes -= r.eval(less[0], s).n
	}
	cells[index] = v
}

// internet is the checksum of RFC 1071; over data with a correct checksum it is 0.
func internet(data []byte) uint16 {
	n := uint32(0)
	for i := 0; i+1 < len(data); i += 2 {
		n += uint32(binary.BigEndian.Uint16(data[i:]))
	}
	n = n>>16 + n&0xffff
	return ^uint16(n>>16 + n)
}

func complement(data []byte) []byte {
	for i := range data {
		data[i] = ^data[i]
	}
	return data
}

// packet holds the bits that a parser extracts, or a deparser emits.
type packet struct {
	data []byte
	at   int // bits
}

// partialHeader is the parser's error for a packet that ends too early.
const partialHeader = 2

func (p *packet) take(w int) (v value) {
	for range w {
		v.hi = v.hi<<1 | v.n>>63
		v.n = v.n<<1 | uint64(p.data[p.at/8]>>(7-p.at%8)&1)
		p.at++
	}
	v.w = w
	return v
}

func (r *run) packetMethod(x *expr, p *packet, method string, args []*expr, s *scope) value {
	left := 8*len(p.data) - p.at
	switch method {
	case "lookahead":
		if left < x.a[0].typ.width {
			r.parserError = partialHeader
			return value{w: x.a[0].typ.width}
		}
		v := p.take(x.a[0].typ.width)
		p.at -= v.w
		return v
	case "advance":
		p.at += int(r.eval(args[0], s).n)
		return value{}
	}
	h := r.eval(args[0], s).slot
	if method == "emit" {
		if h.valid {
			p.data = append(p.data, flat(value{slot: h})...)
		}
		return value{}
	}
	if left < size(h.t) {
		r.parserError = partialHeader
		return value{}
	}
	h.valid = true
	for _, f := range h.t.fields {
		v := p.take(f.typ.width)
		h.f[f.name].n, h.f[f.name].hi = v.n, v.hi
	}
	return value{}
}
