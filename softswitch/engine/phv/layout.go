// Package phv holds a program's headers in a vector of words, the packet header vector (PHV), and
// moves them between the vector and the bytes of a frame. Start reading at Layout, which places
// the fields, and Vector, which holds their values.
package phv

import "github.com/headgate/headgate/softswitch/bmv2json"

// maxWords bounds the vector, so that a hostile program cannot exhaust memory.
const maxWords = 1 << 18

// Field is one field of a header type. Its value takes words of the vector, the least
// significant first, and is always masked to its width; a signed field is in two's
// complement. A variable-length field has its length in bits in its word, and its bytes in
// the vector's VL.
type Field struct {
	Name       string
	Bits       int // 0 for a variable-length field
	Signed     bool
	Saturating bool
	Variable   bool
	Word       int    // index of its first word, from the header's base
	Words      int    // number of its words
	Mask       uint64 // mask of the last word
	Bit        int    // offset on the wire, counting the variable-length field as 0 bits
}

// Type is a header type.
type Type struct {
	Name      string
	Fields    []Field
	Words     int
	Bits      int // length on the wire, counting the variable-length field as 0 bits
	VL        int // index of the variable-length field, −1 for none
	VLMax     int // largest length of that field in bytes
	MaxBytes  int // largest length of the whole header in bytes, 0 for no limit
	LengthExp *bmv2json.Value
	Loads     []Load  // loads of all fields
	Stores    []Store // stores of all fields
	Slow      bool    // fields are read and written one at a time, bit by bit
	byName    map[string]int
}

// Field finds a field by name.
func (t *Type) Field(name string) (int, bool) {
	i, ok := t.byName[name]
	return i, ok
}

// Header is a header instance.
type Header struct {
	Name     string
	Index    int
	Type     *Type
	Metadata bool
	Base     int   // first word
	Valid    int   // word that is 1 while the header is valid
	Validity Field // Valid as a field
	VLOff    int   // first byte in VL
	Union    *Union
}

// Field finds a field of the header, "$valid$" included.
func (h *Header) Field(name string) (Ref, bool) {
	if name == "$valid$" {
		return Ref{h, &h.Validity}, true
	}
	if i, ok := h.Type.byName[name]; ok {
		return Ref{h, &h.Type.Fields[i]}, true
	}
	return Ref{}, false
}

// Union is a header union: at most one of its headers is valid.
type Union struct {
	Name  string
	Type  *bmv2json.HeaderUnionType
	Elems []*Header
}

// Stack is a header stack, or a stack of header unions.
type Stack struct {
	Name   string
	Type   *Type                     // nil for unions
	Unions []*Union                  // nil for headers
	UType  *bmv2json.HeaderUnionType // nil for headers
	Elems  [][]*Header               // the header of each element, or its union's headers
	Next   int                       // word with the index of the next element to extract
}

// Ref is a field of a header instance.
type Ref struct {
	H *Header
	F *Field
}

// Word is the first word of the field in the vector.
func (r Ref) Word() int { return r.H.Base + r.F.Word }

// IsValidity reports whether the field is the validity of its header.
func (r Ref) IsValidity() bool { return r.F == &r.H.Validity }

// Layout assigns words of the vector: first to the fields of metadata, then to those of packet
// headers, then to validities, then to the counters of stacks.
type Layout struct {
	Types       map[string]*Type // by name, like the other maps here
	List        []*Header        // all headers, by index
	Headers     map[string]*Header
	Stacks      map[string]*Stack
	Unions      map[string]*Union
	UnionStacks map[string]*Stack
	Scratch     int // first word of the architecture's scratch, the last of the metadata
	Temporary   int // words of temporaries, the first of the metadata; they need not be 0 in a new packet
	Meta        int // words of metadata
	Validities  int // first word of the headers' validities, which are in the order of List
	Words       int
	VLBytes     int
	aliases     map[string]Ref
}

// Find finds a field. Field aliases come first, as in BMv2.
func (l *Layout) Find(header, field string) (Ref, bool) {
	if r, ok := l.aliases[header+"."+field]; ok {
		return r, true
	}
	if h := l.Headers[header]; h != nil {
		return h.Field(field)
	}
	return Ref{}, false
}

// PossibleBits returns, for each word of the vector, the bits that can be set in it.
func (l *Layout) PossibleBits() []uint64 {
	list := make([]uint64, l.Words)
	for i := range list {
		list[i] = ^uint64(0)
	}
	for _, h := range l.List {
		list[h.Valid] = 1
		for i := range h.Type.Fields {
			f := &h.Type.Fields[i]
			list[h.Base+f.Word+f.Words-1] = f.Mask
		}
	}
	return list
}

// builder makes a Layout. It panics with a bmv2json.Error if the program is wrong.
type builder struct {
	*Layout
	*bmv2json.Reader
	byID    map[int]*Header
	unionBy map[int]*Union
	utypes  map[string]*bmv2json.HeaderUnionType
}

// NewLayout lays out a program's headers, and words of scratch. Fields of bmv2json.Scalars in temporaries come first.
// It panics with a bmv2json.Error if they are wrong.
func NewLayout(r *bmv2json.Reader, doc *bmv2json.Program, scratch int, temporaries map[string]bool) *Layout {
	b := &builder{&Layout{
		Types: map[string]*Type{}, Stacks: map[string]*Stack{}, Unions: map[string]*Union{}, UnionStacks: map[string]*Stack{},
		Headers: map[string]*Header{}, aliases: map[string]Ref{},
	}, r, map[int]*Header{}, map[int]*Union{}, map[string]*bmv2json.HeaderUnionType{}}
	for i := range doc.HeaderTypes {
		r.In("header_types", i, func() {
			if t := &doc.HeaderTypes[i]; len(temporaries) > 0 && t.Name == doc.Headers[0].Type {
				b.addType(t, temporaries)
			} else {
				b.addType(t, nil)
			}
		})
	}
	for i := range doc.Headers {
		r.In("headers", i, func() { b.addHeader(&doc.Headers[i]) })
	}
	b.place(true)
	b.Scratch = b.Words
	b.Words += scratch
	b.Meta = b.Words
	b.place(false)
	b.Validities = b.Words
	for _, h := range b.List {
		h.Valid = b.Words
		h.Validity = Field{Name: "$valid$", Bits: 1, Word: h.Valid - h.Base, Words: 1, Mask: 1}
		b.Words++
	}
	for i := range doc.HeaderStacks {
		r.In("header_stacks", i, func() { b.addStack(&doc.HeaderStacks[i]) })
	}
	for i := range doc.HeaderUnionTypes {
		j := &doc.HeaderUnionTypes[i]
		b.utypes[j.Name] = j
	}
	for i := range doc.HeaderUnions {
		r.In("header_unions", i, func() { b.addUnion(&doc.HeaderUnions[i]) })
	}
	for i := range doc.HeaderUnionStacks {
		r.In("header_union_stacks", i, func() { b.addUnionStack(&doc.HeaderUnionStacks[i]) })
	}
	for i, a := range doc.FieldAliases {
		r.In("field_aliases", i, func() {
			ref, ok := b.Find(a.Header, a.Field)
			if !ok {
				r.Fail("there is no field %q of a header %q", a.Field, a.Header)
			}
			b.aliases[a.From] = ref
		})
	}
	return b.Layout
}

// addType adds a header type. The words of temporaries come first.
func (b *builder) addType(j *bmv2json.HeaderType, temporaries map[string]bool) {
	if b.Types[j.Name] != nil {
		b.Fail("header type %q is declared twice", j.Name)
	}
	t := &Type{Name: j.Name, byName: map[string]int{}, VL: -1, LengthExp: j.LengthExp}
	for i, jf := range j.Fields {
		f := Field{Name: jf.Name, Bits: jf.Bits, Signed: jf.Signed, Saturating: jf.Saturating, Variable: jf.Variable, Bit: t.Bits}
		if _, ok := t.byName[f.Name]; ok {
			b.Fail("field %q of header type %q is declared twice", f.Name, j.Name)
		}
		t.byName[f.Name] = i
		switch {
		case f.Variable && t.VL >= 0:
			b.Fail("header type %q has two variable-length fields", j.Name)
		case f.Variable:
			f.Bits, f.Words, f.Mask, t.VL = 0, 1, ^uint64(0), i
		case f.Bits < 0 || f.Bits > bmv2json.MaxBits:
			b.Fail("field %q of header type %q has %d bits, allowed are 0 to %d", f.Name, j.Name, f.Bits, bmv2json.MaxBits)
		case f.Signed && f.Bits < 2:
			b.Fail("signed field %q of header type %q has %d bits, at least 2 are needed", f.Name, j.Name, f.Bits)
		default:
			f.Words, f.Mask = max(1, Words(f.Bits)), LastMask(f.Bits)
		}
		t.Fields = append(t.Fields, f)
		t.Bits += f.Bits
	}
	for _, temporary := range []bool{true, false} {
		for i := range t.Fields {
			if f := &t.Fields[i]; temporaries[f.Name] == temporary {
				f.Word = t.Words
				t.Words += f.Words
			}
		}
		if temporary {
			b.Temporary += t.Words
		}
	}
	if t.VL >= 0 {
		t.MaxBytes = j.MaxLength
		t.VLMax = 2048 // enough for any frame that a standard port takes
		if t.MaxBytes < 0 || t.MaxBytes > bmv2json.MaxBits {
			b.Fail("max_length of header type %q is %d, allowed are 0 to %d bytes", j.Name, t.MaxBytes, bmv2json.MaxBits)
		}
		if t.MaxBytes > 0 {
			t.VLMax = max(0, t.MaxBytes-t.Bits/8)
		}
	}
	if t.Words > maxWords {
		b.Fail("header type %q is too large", j.Name)
	}
	t.compile()
	b.Types[j.Name] = t
}

func (b *builder) addHeader(j *bmv2json.Header) {
	t := b.Types[j.Type]
	if t == nil {
		b.Fail("header %q has unknown header_type %q", j.Name, j.Type)
	}
	if b.Headers[j.Name] != nil || b.byID[j.ID] != nil {
		b.Fail("header %q with id %d is declared twice", j.Name, j.ID)
	}
	h := &Header{Name: j.Name, Type: t, Metadata: j.Metadata, Index: len(b.List)}
	b.List = append(b.List, h)
	b.Headers[j.Name], b.byID[j.ID] = h, h
}

// place assigns words to metadata, or to all other headers.
func (b *builder) place(metadata bool) {
	for _, h := range b.List {
		if h.Metadata != metadata {
			continue
		}
		h.Base, h.VLOff = b.Words, b.VLBytes
		b.Words += h.Type.Words
		b.VLBytes += h.Type.VLMax
		if b.Words > maxWords || b.VLBytes > 8*maxWords {
			b.Fail("headers take more than %d bytes", 8*maxWords)
		}
	}
}

func (b *builder) addStack(j *bmv2json.HeaderStack) {
	s := &Stack{Name: j.Name, Type: b.Types[j.Type], Next: b.Words}
	if s.Type == nil {
		b.Fail("header stack %q has unknown header_type %q", j.Name, j.Type)
	}
	b.Words++
	for _, id := range j.Headers {
		h := b.byID[id]
		if h == nil || h.Type != s.Type {
			b.Fail("header stack %q holds header id %d, which is not a header of type %q", j.Name, id, j.Type)
		}
		s.Elems = append(s.Elems, []*Header{h})
	}
	if len(s.Elems) == 0 || b.Stacks[j.Name] != nil {
		b.Fail("header stack %q is empty or declared twice", j.Name)
	}
	b.Stacks[j.Name] = s
}

func (b *builder) addUnion(j *bmv2json.HeaderUnion) {
	u := &Union{Name: j.Name, Type: b.utypes[j.Type]}
	if u.Type == nil || len(u.Type.Headers) != len(j.Headers) || len(j.Headers) == 0 {
		b.Fail("header union %q does not fit its union_type %q", j.Name, j.Type)
	}
	for k, id := range j.Headers {
		h := b.byID[id]
		if typ := u.Type.Headers[k][1]; h == nil || h.Metadata || h.Type != b.Types[typ] || h.Union != nil {
			b.Fail("header union %q holds header id %d, which is not a free header of type %q", j.Name, id, typ)
		}
		h.Union = u
		u.Elems = append(u.Elems, h)
	}
	if b.Unions[j.Name] != nil || b.unionBy[j.ID] != nil {
		b.Fail("header union %q is declared twice", j.Name)
	}
	b.Unions[j.Name], b.unionBy[j.ID] = u, u
}

func (b *builder) addUnionStack(j *bmv2json.HeaderUnionStack) {
	s := &Stack{Name: j.Name, UType: b.utypes[j.Type], Next: b.Words}
	b.Words++
	for _, id := range j.Unions {
		u := b.unionBy[id]
		if u == nil || u.Type != s.UType {
			b.Fail("header union stack %q holds union id %d, which is not a union of type %q", j.Name, id, j.Type)
		}
		s.Unions, s.Elems = append(s.Unions, u), append(s.Elems, u.Elems)
	}
	if len(s.Unions) == 0 || b.UnionStacks[j.Name] != nil {
		b.Fail("header union stack %q is empty or declared twice", j.Name)
	}
	b.UnionStacks[j.Name] = s
}
