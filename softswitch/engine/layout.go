package engine

import (
	"math/big"
)

// Limits that keep a hostile program from exhausting memory; BMv2 has none.
const (
	maxFieldBits  = 1 << 16
	maxPHVWords   = 1 << 18
	maxArrayCells = 1 << 26
	maxStateBytes = 4 << 30
)

// field is one field of a header type. Its value lives in words of the packet header
// vector, least significant word first, always masked to its width; a signed field is
// held in two's complement. A variable-length field holds its length in bits in one
// word, and its bytes in the packet's vl area.
type field struct {
	name   string
	bits   int // 0 for a variable-length field
	signed bool
	sat    bool
	vl     bool
	word   int    // first word, counted from the header's base
	words  int    // number of words
	mask   uint64 // of the last word
	bit    int    // offset in the header on the wire, the variable-length field counted as 0
}

type headerType struct {
	name   string
	id     int
	fields []field
	byName map[string]int
	words  int
	bits   int // on the wire, the variable-length field counted as 0
	vl     int // index of the variable-length field, -1 without
	vlMax  int // its room in bytes
	max    int // bytes of the whole header, 0 when not limited
	vlExp  *jsonValue
	codec  *headerCodec
}

// header is a header instance: where it lives in the packet header vector.
type header struct {
	name     string
	id       int
	index    int
	typ      *headerType
	metadata bool
	base     int // first word
	valid    int // word that is 1 while the header is valid
	vlOff    int // first byte in the vl area
	union    *union
	loads    []loadOp // of the fields that extraction loads
	left     []loadOp // of the others, see fill
}

// stack is a header stack or, when unions is set, a header union stack.
type stack struct {
	name   string
	typ    *headerType
	utyp   *jsonHeaderUnionType
	elems  []*header
	unions []*union
	next   int // word that holds the index of the next element to be extracted
}

func (s *stack) size() int { return max(len(s.elems), len(s.unions)) }

type union struct {
	name  string
	typ   *jsonHeaderUnionType
	elems []*header
}

// layout is where everything lives in the packet header vector: the fields of metadata
// headers first, then those of packet headers, then validity and stack counters.
type layout struct {
	types   map[string]*headerType
	headers []*header
	byName  map[string]*header
	byID    map[int]*header
	stacks  map[string]*stack
	unions  map[string]*union
	unionID map[int]*union
	ustacks map[string]*stack
	aliases map[string]fieldRef
	meta    int // words of metadata
	words   int
	vlBytes int
}

// fieldRef is a field of a header instance; f is nil for "$valid$".
type fieldRef struct {
	h *header
	f *field
}

// word is the first word of the field in the packet header vector.
func (r fieldRef) word() int {
	if r.f == nil {
		return r.h.valid
	}
	return r.h.base + r.f.word
}

func (r fieldRef) bits() int {
	if r.f == nil {
		return 1
	}
	return r.f.bits
}

func (c *compiler) buildLayout(doc *jsonProgram) {
	l := &c.layout
	l.types = map[string]*headerType{}
	for i := range doc.HeaderTypes {
		c.in("header_types", i, func() { c.buildHeaderType(&doc.HeaderTypes[i]) })
	}
	l.byName, l.byID = map[string]*header{}, map[int]*header{}
	for i := range doc.Headers {
		c.in("headers", i, func() {
			j := &doc.Headers[i]
			t := l.types[j.Type]
			if t == nil {
				c.fail("header %q has unknown header_type %q", j.Name, j.Type)
			}
			if l.byName[j.Name] != nil || l.byID[j.ID] != nil {
				c.fail("header %q with id %d is declared twice", j.Name, j.ID)
			}
			h := &header{name: j.Name, id: j.ID, typ: t, metadata: j.Metadata, index: len(l.headers)}
			l.headers = append(l.headers, h)
			l.byName[j.Name], l.byID[j.ID] = h, h
		})
	}
	place := func(metadata bool) {
		for _, h := range l.headers {
			if h.metadata != metadata {
				continue
			}
			h.base = l.words
			l.words += h.typ.words
			h.vlOff = l.vlBytes
			l.vlBytes += h.typ.vlMax
			if l.words > maxPHVWords || l.vlBytes > 8*maxPHVWords {
				c.fail("headers take more than %d bytes", 8*maxPHVWords)
			}
		}
	}
	place(true)
	l.meta = l.words
	place(false)
	for _, h := range l.headers {
		h.valid = l.words
		l.words++
	}
	c.buildStacks(doc)
	c.chosen = map[*header]bool{}
	for _, h := range l.headers {
		c.chosen[h] = h.union != nil
	}
	for _, s := range l.stacks {
		for _, h := range s.elems {
			c.chosen[h] = true
		}
	}
	l.aliases = map[string]fieldRef{}
	for i, a := range doc.FieldAliases {
		c.in("field_aliases", i, func() { c.unread(func() { l.aliases[a.From] = c.fieldNamed(a.Header, a.Field) }) })
	}
}

// bits is, by word, what may be set in it.
func (l *layout) bits() []uint64 {
	list := make([]uint64, l.words)
	for i := range list {
		list[i] = ^uint64(0)
	}
	for _, h := range l.headers {
		list[h.valid] = 1
		for i := range h.typ.fields {
			if f := &h.typ.fields[i]; !f.vl {
				list[h.base+f.word+f.words-1] = f.mask
			}
		}
	}
	return list
}

func (c *compiler) buildHeaderType(j *jsonHeaderType) {
	if c.layout.types[j.Name] != nil {
		c.fail("header type %q is declared twice", j.Name)
	}
	t := &headerType{name: j.Name, id: j.ID, byName: map[string]int{}, vl: -1, vlExp: j.LengthExp}
	for i, jf := range j.Fields {
		f := field{name: jf.Name, bits: jf.Bits, signed: jf.Signed, sat: jf.Saturating, word: t.words, bit: t.bits}
		if _, ok := t.byName[jf.Name]; ok {
			c.fail("field %q of header type %q is declared twice", jf.Name, j.Name)
		}
		t.byName[jf.Name] = i
		switch {
		case jf.Variable && t.vl >= 0:
			c.fail("header type %q has two variable-length fields", j.Name)
		case jf.Variable:
			f.vl, f.bits, f.words = true, 0, 1
			f.mask = ^uint64(0)
			t.vl = i
		case jf.Bits < 0 || jf.Bits > maxFieldBits:
			c.fail("field %q of header type %q has %d bits, allowed are 0 to %d", jf.Name, j.Name, jf.Bits, maxFieldBits)
		default:
			if f.signed && f.bits < 2 {
				c.fail("signed field %q of header type %q has %d bits, at least 2 are needed", jf.Name, j.Name, f.bits)
			}
			f.words = max(1, (f.bits+63)/64)
			f.mask = lastMask(f.bits)
		}
		t.fields = append(t.fields, f)
		t.words += f.words
		t.bits += f.bits
	}
	if t.vl >= 0 {
		t.max = j.MaxLength
		t.vlMax = 2048 // enough for any frame a standard port takes
		if t.max < 0 || t.max > maxFieldBits {
			c.fail("max_length of header type %q is %d, allowed are 0 to %d bytes", j.Name, t.max, maxFieldBits)
		}
		if t.max > 0 {
			t.vlMax = max(0, t.max-t.bits/8)
		}
		if t.fields[t.vl].bit%8 != 0 {
			t.vlMax++ // room for the unaligned reader
		}
	}
	if t.words > maxPHVWords {
		c.fail("header type %q is too large", j.Name)
	}
	c.layout.types[j.Name] = t
}

func (c *compiler) buildStacks(doc *jsonProgram) {
	l := &c.layout
	l.stacks, l.unions, l.ustacks = map[string]*stack{}, map[string]*union{}, map[string]*stack{}
	l.unionID = map[int]*union{}
	for i, j := range doc.HeaderStacks {
		c.in("header_stacks", i, func() {
			s := &stack{name: j.Name, typ: l.types[j.Type], next: l.words}
			if s.typ == nil {
				c.fail("header stack %q has unknown header_type %q", j.Name, j.Type)
			}
			l.words++
			for _, id := range j.Headers {
				h := l.byID[id]
				if h == nil || h.typ != s.typ {
					c.fail("header stack %q holds header id %d, which is not a header of type %q", j.Name, id, j.Type)
				}
				s.elems = append(s.elems, h)
			}
			if len(s.elems) == 0 || l.stacks[j.Name] != nil {
				c.fail("header stack %q is empty or declared twice", j.Name)
			}
			l.stacks[j.Name] = s
		})
	}
	utypes := map[string]*jsonHeaderUnionType{}
	for i := range doc.HeaderUnionTypes {
		j := &doc.HeaderUnionTypes[i]
		utypes[j.Name] = j
	}
	for i, j := range doc.HeaderUnions {
		c.in("header_unions", i, func() {
			u := &union{name: j.Name, typ: utypes[j.Type]}
			if u.typ == nil || len(u.typ.Headers) != len(j.Headers) || len(j.Headers) == 0 {
				c.fail("header union %q does not fit its union_type %q", j.Name, j.Type)
			}
			for k, id := range j.Headers {
				h := l.byID[id]
				if h == nil || h.metadata || h.typ != l.types[u.typ.Headers[k][1]] || h.union != nil {
					c.fail("header union %q holds header id %d, which is not a free header of type %q", j.Name, id, u.typ.Headers[k][1])
				}
				h.union = u
				u.elems = append(u.elems, h)
			}
			if l.unions[j.Name] != nil || l.unionID[j.ID] != nil {
				c.fail("header union %q is declared twice", j.Name)
			}
			l.unions[j.Name], l.unionID[j.ID] = u, u
		})
	}
	for i, j := range doc.HeaderUnionStacks {
		c.in("header_union_stacks", i, func() {
			s := &stack{name: j.Name, utyp: utypes[j.Type], next: l.words}
			l.words++
			for _, id := range j.Unions {
				u := l.unionID[id]
				if u == nil || u.typ != s.utyp {
					c.fail("header union stack %q holds union id %d, which is not a union of type %q", j.Name, id, j.Type)
				}
				s.unions = append(s.unions, u)
			}
			if len(s.unions) == 0 || l.ustacks[j.Name] != nil {
				c.fail("header union stack %q is empty or declared twice", j.Name)
			}
			l.ustacks[j.Name] = s
		})
	}
}

// fieldNamed resolves header.field, field aliases first as BMv2 does. Unless it is called
// within unread, the field counts as read.
func (c *compiler) fieldNamed(h, f string) fieldRef {
	r, ok := c.layout.find(h, f)
	if !ok {
		if c.layout.byName[h] == nil {
			c.fail("unknown header %q", h)
		}
		c.fail("header %q has no field %q", h, f)
	}
	c.uses(r)
	return r
}

func (l *layout) find(hname, fname string) (fieldRef, bool) {
	if r, ok := l.aliases[hname+"."+fname]; ok {
		return r, true
	}
	h := l.byName[hname]
	if h == nil {
		return fieldRef{}, false
	}
	if fname == "$valid$" {
		return fieldRef{h, nil}, true
	}
	i, ok := h.typ.byName[fname]
	if !ok {
		return fieldRef{}, false
	}
	return fieldRef{h, &h.typ.fields[i]}, true
}

// lastMask is the mask of the most significant word of a value of the given width.
func lastMask(bits int) uint64 {
	if bits%64 == 0 && bits > 0 {
		return ^uint64(0)
	}
	return 1<<(bits%64) - 1
}

func pow2(n int) *big.Int { return new(big.Int).Lsh(big.NewInt(1), uint(n)) }

func constMask(bits int) *big.Int { return new(big.Int).Sub(pow2(bits), big.NewInt(1)) }
